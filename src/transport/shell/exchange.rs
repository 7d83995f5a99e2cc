//! One request and its answer over a [`Channel`].

use std::time::{Duration, Instant};

use tokio::io::{AsyncReadExt, AsyncWriteExt};

use crate::domain::fault::Fault;
use crate::transport::shell::channel::{Broken, Channel};
use crate::transport::shell::frame::Frame;
use crate::transport::shell::kept::{Head, Lines, Tail};
use crate::transport::{Command, LineSink, Output, Source, watchdog};

/// How a request went.
pub(crate) enum Answer {
    /// It is complete.
    Done {
        /// The command's exit status.
        status: i32,
        /// From sending it to the first byte of its answer: a round trip.
        round_trip: Duration,
    },
    /// The shell ended first.
    Broken(Broken),
}

/// Runs a small command on a shell; its output is kept from the beginning.
pub(crate) async fn run(channel: &mut Channel, command: &Command, last: bool) -> Result<(Answer, Output), Fault> {
    let (mut out, mut err) = (Head::default(), Head::default());
    let answer = exchange(channel, command, last, &mut |source, chunk| match source {
        Source::Stdout => out.push(chunk),
        Source::Stderr => err.push(chunk),
    })
    .await?;
    let truncated = out.truncated || err.truncated;
    let output = Output { status: status_of(&answer), stdout: out.bytes, stderr: err.bytes, truncated };
    Ok((answer, output))
}

/// Runs long work on a shell of its own; lines go to `sink`, the output is kept at its end.
pub(crate) async fn stream(
    channel: &mut Channel,
    command: &Command,
    sink: LineSink<'_>,
) -> Result<(Answer, Output), Fault> {
    let (mut out, mut err) = (Tail::default(), Tail::default());
    let (mut out_lines, mut err_lines) = (Lines::default(), Lines::default());
    let answer = exchange(channel, command, true, &mut |source, chunk| {
        let (tail, lines) = match source {
            Source::Stdout => (&mut out, &mut out_lines),
            Source::Stderr => (&mut err, &mut err_lines),
        };
        tail.push(chunk);
        lines.push(chunk, &mut |line| sink(source, line));
    })
    .await?;
    out_lines.finish(&mut |line| sink(Source::Stdout, line));
    err_lines.finish(&mut |line| sink(Source::Stderr, line));
    let truncated = out.truncated || err.truncated;
    let output = Output { status: status_of(&answer), stdout: out.bytes, stderr: err.bytes, truncated };
    Ok((answer, output))
}

fn status_of(answer: &Answer) -> i32 {
    match answer {
        Answer::Done { status, .. } => *status,
        Answer::Broken(_) => 255,
    }
}

async fn exchange(
    channel: &mut Channel,
    command: &Command,
    last: bool,
    take: &mut (dyn FnMut(Source, &[u8]) + Send),
) -> Result<Answer, Fault> {
    let nonce = watchdog::nonce();
    let mut text = if channel.prepared { Vec::new() } else { watchdog::PREAMBLE.as_bytes().to_vec() };
    text.extend(watchdog::request(command, &nonce, last)?);
    channel.prepared = true;

    let (mut out, mut err) = (Frame::new(&nonce), Frame::new(&nonce));
    let (mut out_buffer, mut err_buffer) = (vec![0; 32 * 1024], vec![0; 8 * 1024]);
    let (mut out_open, mut err_open) = (true, true);
    let mut round_trip = None;
    let mut error = None;
    let mut sent = 0;
    let started = Instant::now();
    while let Some(stdin) = channel.stdin.as_mut() {
        // Complete: both marks are there. Over: neither stream can bring them any more.
        if out.status().is_some() && err.status().is_some() || !out_open && (!err_open || err.status().is_some()) {
            break;
        }
        tokio::select! {
            read = channel.stdout.read(&mut out_buffer), if out_open => match read {
                Ok(0) => out_open = false,
                Err(fault) => (out_open, error) = (false, Some(fault)),
                Ok(length) => {
                    out.push(&out_buffer[..length], &mut |bytes| take(Source::Stdout, bytes));
                    if out.begun() && round_trip.is_none() {
                        round_trip = Some(started.elapsed());
                    }
                }
            },
            read = channel.stderr.read(&mut err_buffer), if err_open => match read {
                Ok(0) | Err(_) => err_open = false,
                Ok(length) => err.push(&err_buffer[..length], &mut |bytes| take(Source::Stderr, bytes)),
            },
            written = stdin.write(&text[sent..]), if sent < text.len() => match written {
                Ok(length) => sent += length,
                // Not the end yet: what the shell said before it died is still to be read.
                Err(fault) => (sent, error) = (text.len(), Some(fault)),
            },
        }
    }
    Ok(match (out.status(), round_trip) {
        (Some(status), Some(round_trip)) => Answer::Done { status, round_trip },
        _ => Answer::Broken(broken(&out, &err, error)),
    })
}

/// What can be said of a shell that ended early.
pub(crate) fn broken(out: &Frame, err: &Frame, error: Option<std::io::Error>) -> Broken {
    let begun = out.begun();
    let said =
        |frame: &Frame| if begun { String::new() } else { String::from_utf8_lossy(frame.noise()).trim().to_owned() };
    let words = [said(err), said(out)].into_iter().filter(|text| !text.is_empty()).collect::<Vec<_>>().join("\n");
    Broken { begun, words, error }
}
