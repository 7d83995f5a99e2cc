//! Everything that needs real hosts: `tests/lab/up` first, then `tests/run --test lab`. `tests/run --test lab transport::`
//! runs a part of it.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::match_same_arms,
    clippy::needless_pass_by_value,
    clippy::too_many_lines,
    reason = "a test that cannot go on has failed; the judge is tables: what is fine stands with its kind"
)]

mod archives;
mod dashboard;
mod each_case;
mod faults;
#[allow(dead_code, reason = "shared with tests/it")]
#[path = "../fuzz/mod.rs"]
mod fuzz;
mod held;
#[allow(clippy::module_inception)]
mod lab;
mod patches;
mod render;
mod sandboxes;
mod snapshots;
mod stale;
#[allow(dead_code, reason = "shared with tests/it")]
#[path = "../support/mod.rs"]
mod support;
mod transfer;
mod transport;
mod undo;
mod verbs;
