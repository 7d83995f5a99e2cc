//! Output of a command or a service, on its way from a host to a face.

use async_trait::async_trait;
use futures_util::stream::{self, BoxStream, StreamExt as _};
use futures_util::{FutureExt as _, Stream, future};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Stream of a command that something came from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Source {
    /// stdout.
    Stdout,
    /// stderr.
    Stderr,
}

/// Takes output as it comes. A slow one slows the command down: nothing is kept in between.
#[async_trait]
pub trait OutputSink: Send {
    /// Takes some bytes, exactly as they were written; whether more is wanted. `false` ends the command.
    async fn take(&mut self, source: Source, bytes: &[u8]) -> bool;
}

/// Stream of `items`, which `work` sends: it is driven by whoever reads, and dropped with the stream.
pub(crate) fn driven<T: Send + 'static>(
    work: impl Future<Output = ()> + Send + 'static,
    items: impl Stream<Item = T> + Send + 'static,
) -> BoxStream<'static, T> {
    let work = work.into_stream().filter_map(|()| future::ready(None));
    stream::select(items, work).boxed()
}

/// Line of a service's log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogLine {
    pub service: String,
    /// Stream of its container.
    pub source: Source,
    /// Bytes without the line break, exactly; at most `LOG_LINE_LIMIT` of them.
    pub bytes: Vec<u8>,
    /// Whether the line was longer than that; the rest is not told.
    pub cut: bool,
}

/// Longest part of a log's line that is passed on, in bytes.
pub(crate) const LOG_LINE_LIMIT: usize = 128 * 1024;

/// Takes log lines as they come. A slow one slows the log down.
#[async_trait]
pub trait LogSink: Send {
    /// Takes a line; whether more is wanted.
    async fn take(&mut self, line: LogLine) -> bool;
}

/// Output of an `exec` while it runs, and at last its end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ExecOutput {
    /// Bytes that the command wrote, exactly.
    Output(Source, Vec<u8>),
    /// Exit status, 128 + n after signal n. Nothing follows.
    Exit(i32),
}

/// A program of this machine that opens a shell in a sandbox on the terminal it is given.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Interactive {
    /// The program and its arguments, to be run without a shell and with the terminal as all three streams.
    pub words: Vec<std::ffi::OsString>,
    /// The folder to run it in; none: wherever.
    pub folder: Option<std::path::PathBuf>,
}
