//! A local tree onto a host: what would go ([`plan`]), and the going ([`send`]).
//!
//! By rsync where both ends have it, else as a tar stream; either way the same tree arrives: modes, mtimes, symlinks as
//! symlinks, hard links, everything owned by the account on the host. Nothing on the host is deleted: the destination
//! is new.

mod child;
mod plan;
mod rsync;
mod tar;

use std::path::Path;
use std::time::{Duration, Instant};

use crate::domain::error::{Code, Error};
use crate::domain::text::{clean_block, clean_line, last_lines};
use crate::transport::Transport;

pub use plan::{IGNORE_FILE, Limits, Plan, plan};

/// Time that a transfer may stand still.
const IDLE: Duration = Duration::from_mins(2);

/// Pause between two words of progress, at least.
const PROGRESS_EVERY: Duration = Duration::from_millis(100);

/// Method by which a tree was sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Method {
    /// rsync on both ends.
    Rsync,
    /// A tar stream.
    Tar,
}

impl Method {
    /// `rsync` or `tar`.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Rsync => "rsync",
            Self::Tar => "tar",
        }
    }
}

/// Result of a transfer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sent {
    /// Method.
    pub method: Method,
    /// Bytes that went: of content with rsync, of the stream with tar.
    pub bytes: u64,
    /// Files that changed or vanished while they were read, a sentence each, at most [`MAX_WARNINGS`].
    pub warnings: Vec<String>,
}

pub(crate) const MAX_WARNINGS: usize = 20;

/// Takes (done, of) in bytes.
pub(crate) type OnBytes<'a> = &'a (dyn Fn(u64, u64) + Send + Sync);

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
    let mut progress = Progress { on_bytes, of: plan.bytes, told: None };
    let sent = if both_have_rsync {
        rsync::send(transport, plan, source, dest, &mut progress).await
    } else {
        tar::send(transport, plan, source, dest, &mut progress).await
    };
    let sent = sent.map_err(|error| error.step("transfer"))?;
    on_bytes(plan.bytes, plan.bytes);
    Ok(sent)
}

/// Whether this machine has rsync; the host says its own with its facts' `tools`.
pub(crate) fn rsync_here() -> bool {
    let Some(path) = std::env::var_os("PATH") else { return false };
    std::env::split_paths(&path).any(|folder| {
        let program = folder.join("rsync");
        program.is_file() && rustix::fs::access(&program, rustix::fs::Access::EXEC_OK).is_ok()
    })
}

/// Tells progress, but not more often than anyone can look.
struct Progress<'a> {
    on_bytes: OnBytes<'a>,
    of: u64,
    told: Option<Instant>,
}

impl Progress<'_> {
    fn at(&mut self, done: u64) {
        if self.told.is_none_or(|told| told.elapsed() >= PROGRESS_EVERY) {
            self.told = Some(Instant::now());
            (self.on_bytes)(done.min(self.of), self.of);
        }
    }
}

/// Error of a program of either end that failed, with its words.
fn failed(sentence: &str, status: i32, stderr: &str) -> Error {
    let words =
        reason(stderr).unwrap_or_else(|| format!("it ended with status {status} and said nothing"));
    Error::new(Code::OperationFailed, sentence)
        .detail("exit_status", status)
        .detail("output", clean_block(&last_lines(stderr, 40)))
        .because(words)
}

/// The line that says why: a full disk before anything else, since it makes programs say much more after it.
fn reason(stderr: &str) -> Option<String> {
    let lines = || stderr.lines().map(str::trim).filter(|line| !line.is_empty());
    let full = lines().find(|line| {
        line.contains("No space left on device") || line.contains("Disk quota exceeded")
    });
    full.or_else(|| lines().next()).map(|line| clean_line(line, 400))
}

#[cfg(test)]
mod tests;
