//! Everything that needs no host: `tests/run --test it`. `tests/run --test it manager::` runs a part of it.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::format_push_string,
    clippy::match_same_arms,
    clippy::missing_panics_doc,
    clippy::needless_pass_by_value,
    clippy::result_large_err,
    unreachable_pub,
    reason = "a test that cannot go on has failed; the judge is tables: what is fine stands with its kind"
)]

mod architecture;
mod cli_face;
mod cli_schemas;
mod dashboard;
#[allow(dead_code, reason = "shared with tests/lab")]
#[path = "../fuzz/mod.rs"]
mod fuzz;
mod hub;
mod judge;
mod manager;
mod registry;
mod render;
mod stores;
mod stub;
#[allow(dead_code, reason = "shared with tests/lab")]
#[path = "../support/mod.rs"]
mod support;
mod test_env;
