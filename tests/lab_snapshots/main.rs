//! Snapshots of trees with everything in them that a file system can hold, taken and restored on the lab's real hosts,
//! through the real binary: `tests/lab/up` first, then `tests/run --test lab_snapshots`.

#![allow(clippy::unwrap_used, clippy::expect_used, missing_docs)]

mod across;
mod environment;
mod faithful;
#[allow(dead_code)]
#[path = "../lab_sandboxes/faults.rs"]
mod faults;
mod flavours;
#[allow(dead_code)]
#[path = "../lab_sandboxes/lab.rs"]
mod lab;
mod left_out;
mod neutral;
mod odd_names;
mod odd_root;
mod onto_vm;
mod place;
mod sudo;
