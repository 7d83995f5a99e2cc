//! Archives of snapshots on the lab's hosts, through the real binary: what is verified, copied, exported, imported and
//! removed. `tests/lab/up` first, then `tests/run --test lab archives::`.

mod altered;
mod copies;
mod diff;
mod files;
mod full;
mod hostile;
mod interrupts;
mod kills;
pub(crate) mod source;
