//! A command that reads a stream of ours on stdin.

use std::io;
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::time::{Instant, sleep_until};

use crate::transport::shell::channel::{BrokenChannel, Channel};
use crate::transport::shell::frame::Frame;
use crate::transport::shell::output_buffer::{LineSplitter, OutputHead};
use crate::transport::shell::request::broken;
use crate::transport::{LineSink, Output, Source};

const PIECE: usize = 256 * 1024;

pub(crate) enum Fed {
    /// The command ended; also when it did so before the stream's end.
    Done(Output),
    /// Nothing moved for the idle time.
    Stalled,
    /// The stream of ours could not be read.
    Source(io::Error),
    /// The shell ended without an answer.
    Broken(BrokenChannel),
}

/// Feeds `source` to its end and waits for the command's, which has this nonce; its lines go to `sink`. Dropped with the channel at any point,
/// the command is ended by its watchdog, which then has nobody to write to.
pub(crate) async fn drive(
    channel: &mut Channel,
    nonce: &str,
    (source, idle): (&mut (dyn AsyncRead + Send + Unpin), Duration),
    sink: LineSink<'_>,
) -> Fed {
    let mut frames = (Frame::new(nonce), Frame::new(nonce));
    let mut pump = Pump { piece: vec![0; PIECE], filled: 0, sent: 0 };
    let (mut out_buffer, mut err_buffer) = (vec![0; 8 * 1024], vec![0; 8 * 1024]);
    let (mut out, mut err) = (OutputHead::default(), OutputHead::default());
    let (mut out_lines, mut err_lines) = (LineSplitter::default(), LineSplitter::default());
    let (mut out_open, mut err_open) = (true, true);
    let mut error = None;
    let mut moved_at = Instant::now();
    loop {
        // Complete: both marks are there. Over: neither stream can bring them any more.
        let err_done = frames.1.status().is_some();
        if frames.0.status().is_some() && err_done || !out_open && (!err_open || err_done) {
            break;
        }
        tokio::select! {
            read = channel.stdout.read(&mut out_buffer), if out_open => match read {
                Ok(0) | Err(_) => out_open = false,
                Ok(length) => frames.0.push(&out_buffer[..length], &mut |bytes| {
                    moved_at = Instant::now();
                    out.push(bytes);
                    out_lines.push(bytes, &mut |line| sink(Source::Stdout, line));
                }),
            },
            read = channel.stderr.read(&mut err_buffer), if err_open => match read {
                Ok(0) | Err(_) => err_open = false,
                Ok(length) => frames.1.push(&err_buffer[..length], &mut |bytes| {
                    moved_at = Instant::now();
                    err.push(bytes);
                    err_lines.push(bytes, &mut |line| sink(Source::Stderr, line));
                }),
            },
            moved = pump.step(&mut channel.stdin, source), if channel.stdin.is_some() => {
                moved_at = Instant::now();
                match moved {
                    Moved::Bytes => {}
                    Moved::End => channel.stdin = None,
                    // The command reads no further. Why is in its own words, not in a broken pipe.
                    Moved::Refused(cause) => (channel.stdin, error) = (None, Some(cause)),
                    Moved::Unreadable(cause) => return Fed::Source(cause),
                }
            }
            // The marks that say that the host is alive are no movement.
            () = sleep_until(moved_at + idle) => return Fed::Stalled,
        }
    }
    out_lines.finish(&mut |line| sink(Source::Stdout, line));
    err_lines.finish(&mut |line| sink(Source::Stderr, line));
    match frames.0.status() {
        Some(status) => {
            let truncated = out.truncated || err.truncated;
            Fed::Done(Output { status, stdout: out.bytes, stderr: err.bytes, truncated })
        }
        None => Fed::Broken(broken(&frames.0, &frames.1, error)),
    }
}

/// Carries bytes from the source to the command, one read or write at a time; each may be dropped half-way.
struct Pump {
    piece: Vec<u8>,
    filled: usize,
    sent: usize,
}

enum Moved {
    Bytes,
    End,
    Refused(io::Error),
    Unreadable(io::Error),
}

impl Pump {
    async fn step(
        &mut self,
        stdin: &mut Option<Box<dyn AsyncWrite + Send + Unpin>>,
        source: &mut (dyn AsyncRead + Send + Unpin),
    ) -> Moved {
        if self.sent == self.filled {
            match source.read(&mut self.piece).await {
                Ok(0) => return Moved::End,
                Ok(length) => (self.filled, self.sent) = (length, 0),
                Err(error) => return Moved::Unreadable(error),
            }
            return Moved::Bytes;
        }
        let Some(stdin) = stdin else { return Moved::End };
        match stdin.write(&self.piece[self.sent..self.filled]).await {
            Ok(length) => {
                self.sent += length;
                Moved::Bytes
            }
            Err(error) => Moved::Refused(error),
        }
    }
}
