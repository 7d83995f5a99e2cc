//! Archives of snapshots on the lab's hosts, through the real binary: what is verified, copied, exported, imported and
//! removed. `tests/lab/up` first, then `tests/run --test lab_archives`.

#![allow(clippy::unwrap_used, clippy::expect_used, missing_docs, dead_code)]

mod altered;
mod copies;
mod diff;
#[path = "../lab_sandboxes/faults.rs"]
mod faults;
mod files;
mod full;
#[path = "../lab_sandboxes/held.rs"]
mod held;
mod hostile;
mod interrupts;
mod kills;
#[path = "../lab_sandboxes/lab.rs"]
mod lab;
mod source;
