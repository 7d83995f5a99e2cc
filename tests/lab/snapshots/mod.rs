//! Snapshots of trees with everything in them that a file system can hold, taken and restored on the lab's real hosts,
//! through the real binary: `tests/lab/up` first, then `tests/run --test lab snapshots::`.

mod across;
mod environment;
mod faithful;
mod flavours;
mod left_out;
mod neutral;
mod odd_names;
mod odd_root;
mod onto_vm;
pub(crate) mod place;
mod sudo;
