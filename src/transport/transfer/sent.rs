//! Result of a transfer, its progress and its failure, whichever the method.

use std::time::{Duration, Instant};

use crate::domain::error::{Code, Error};
use crate::domain::text::{clean_block, clean_line, last_lines};

/// How long a transfer may stand still.
pub(super) const IDLE: Duration = Duration::from_mins(2);

/// How often progress is told, at most.
const PROGRESS_EVERY: Duration = Duration::from_millis(100);

/// How a tree was sent.
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

/// Files that were sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sent {
    /// How.
    pub method: Method,
    /// Bytes that went: of content with rsync, of the stream with tar.
    pub bytes: u64,
}

/// Takes (done, of) in bytes.
pub(crate) type OnBytes<'a> = &'a (dyn Fn(u64, u64) + Send + Sync);

/// Tells progress, but not more often than anyone can look.
pub(super) struct Progress<'a> {
    on_bytes: OnBytes<'a>,
    of: u64,
    told: Option<Instant>,
}

impl<'a> Progress<'a> {
    pub(super) fn new(on_bytes: OnBytes<'a>, of: u64) -> Self {
        Self { on_bytes, of, told: None }
    }

    /// All that is to go.
    pub(super) fn of(&self) -> u64 {
        self.of
    }

    pub(super) fn at(&mut self, done: u64) {
        if self.told.is_none_or(|told| told.elapsed() >= PROGRESS_EVERY) {
            self.told = Some(Instant::now());
            (self.on_bytes)(done.min(self.of), self.of);
        }
    }
}

/// The error for a program of either end that failed, with its words.
pub(super) fn failed(sentence: &str, status: i32, stderr: &str) -> Error {
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
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    #[test]
    fn the_reason_is_the_full_disk_wherever_it_stands() {
        let said = "tar: ./a: Cannot open: x\ntar: ./b: Wrote only 512 of 10240 bytes\ntar: ./b: Cannot write: No space left on device\n";
        let error = failed("no", 2, said);
        assert_eq!(error.causes, ["tar: ./b: Cannot write: No space left on device"]);
        assert_eq!(error.details["exit_status"], 2);
        assert_eq!(reason("\n\n"), None);
    }

    #[test]
    fn progress_is_told_rarely() {
        let told = std::sync::Mutex::new(BTreeMap::new());
        let on_bytes = |done: u64, of: u64| {
            told.lock().unwrap().insert(done, of);
        };
        let mut progress = Progress { on_bytes: &on_bytes, of: 100, told: None };
        for done in 0..1000 {
            progress.at(done * 10);
        }
        assert_eq!(*told.lock().unwrap(), BTreeMap::from([(0, 100)]));
    }
}
