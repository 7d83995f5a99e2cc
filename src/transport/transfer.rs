//! A local tree onto a host: what would go ([`plan`]), and the going ([`send`]).
//!
//! By rsync where both ends have it, else as a tar stream; either way the same tree arrives: modes, mtimes, symlinks as
//! symlinks, hard links, everything owned by the account on the host. Nothing on the host is deleted: the destination
//! is new.

mod child;
mod plan;
mod rsync;
mod sent;
mod tar;

use std::path::Path;

use crate::domain::error::Error;
use crate::transport::{Command, LineSink, Output, Transport};

use sent::Progress;

pub(crate) use plan::Plan;
pub use plan::{Limits, plan};
pub(crate) use sent::OnBytes;
pub use sent::{Method, Sent};

/// Sends what was planned from `source` into `dest`, an absolute path of a directory that is there and empty.
///
/// May be dropped at any await: the local programs are killed with their process group, and the far end ends with its
/// input. Progress goes to `on_bytes`, at most every 100 ms and once at the end.
///
/// Errors: the transport's; `missing_dependency` when this machine has no such program; `timeout` when the stream
/// stood still; `operation_failed` with `details.step` = `transfer`, `details.exit_status`, `details.output`, and the
/// failing end's own words as cause.
pub async fn send(
    transport: &dyn Transport,
    plan: &Plan,
    source: &Path,
    dest: &str,
    both_have_rsync: bool,
    on_bytes: OnBytes<'_>,
) -> Result<Sent, Error> {
    let mut progress = Progress::new(on_bytes, plan.bytes);
    let sent = if both_have_rsync {
        rsync::send(transport, plan, source, dest, &mut progress).await
    } else {
        tar::send(transport, plan, source, dest, &mut progress).await
    };
    let sent = sent.map_err(|error| error.step("transfer"))?;
    on_bytes(plan.bytes, plan.bytes);
    Ok(sent)
}

/// Sends what was planned from `source` as a tar stream to a command that reads `head` before it. What the command said, as it comes
/// to `sink` too, and what came of the sending.
///
/// Errors: as [`send`]; those of the command's own end are with what came of the sending.
pub async fn feed(
    transport: &dyn Transport,
    plan: &Plan,
    source: &Path,
    (command, head): (&Command, &[u8]),
    on_bytes: OnBytes<'_>,
    sink: LineSink<'_>,
) -> Result<(Output, Result<Sent, Error>), Error> {
    let mut progress = Progress::new(on_bytes, plan.bytes);
    let fed = tar::feed(transport, plan, source, (command, head), &mut progress, sink).await;
    let (output, sent) = fed.map_err(|error| error.step("transfer"))?;
    if sent.is_ok() {
        on_bytes(plan.bytes, plan.bytes);
    }
    Ok((output, sent.map_err(|error| error.step("transfer"))))
}

/// Whether this machine has rsync; the host says its own with its facts' `tools`.
pub(crate) fn rsync_here() -> bool {
    let Some(path) = std::env::var_os("PATH") else { return false };
    std::env::split_paths(&path).any(|folder| {
        let program = folder.join("rsync");
        program.is_file() && rustix::fs::access(&program, rustix::fs::Access::EXEC_OK).is_ok()
    })
}

#[cfg(test)]
mod tests;
