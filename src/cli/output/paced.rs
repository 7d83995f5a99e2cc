//! Bytes to an output that may be slow: a pager, a full pipe, a stopped terminal. Ctrl-C is heard meanwhile.

use std::io;

use futures_util::{FutureExt as _, StreamExt as _};

use crate::cli::output::Io;
use crate::domain::output::Source;

/// Most bytes that a pipe takes without waiting, if it takes anything (`PIPE_BUF`).
const PORTION: usize = 4096;

/// Writes bytes as they are, and out at once; `false` when Ctrl-C came first.
pub(in crate::cli) async fn write_paced(
    io: &mut Io,
    source: Source,
    bytes: &[u8],
) -> io::Result<bool> {
    for portion in bytes.chunks(PORTION) {
        // A write that waits is resumed after a signal that has a handler: so it must not be begun.
        while !(io.takes)(source) {
            if io.interrupts.next().now_or_never().is_some() {
                return Ok(false);
            }
            tokio::task::yield_now().await;
        }
        let out = match source {
            Source::Stdout => &mut io.stdout,
            Source::Stderr => &mut io.stderr,
        };
        out.write_all(portion)?;
        out.flush()?;
    }
    Ok(true)
}
