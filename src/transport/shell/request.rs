//! Request and its answer over a [`Channel`].

use std::io;
use std::time::{Duration, Instant};

use futures_util::StreamExt;
use tokio::io::{AsyncReadExt, AsyncWrite, AsyncWriteExt};

use crate::domain::error::Error;
use crate::domain::output::OutputSink;
use crate::transport::shell::channel::{BrokenChannel, Channel};
use crate::transport::shell::frame::Frame;
use crate::transport::shell::output_buffer::{LineSplitter, OutputHead, OutputTail};
use crate::transport::{Command, InputStream, LineSink, Output, Source, watchdog};

pub(crate) enum Answer {
    Done {
        status: i32,
        /// From sending it to the first byte of its answer: a round trip.
        round_trip: Duration,
    },
    /// The shell ended first.
    Broken(BrokenChannel),
}

/// Runs a small command on a shell; its output is kept from the beginning.
pub(crate) async fn run(
    channel: &mut Channel,
    command: &Command,
    last: bool,
) -> Result<(Answer, Output), Error> {
    let (mut out, mut err) = (OutputHead::default(), OutputHead::default());
    let answer = exchange(channel, command, last, &mut |source, chunk| match source {
        Source::Stdout => out.push(chunk),
        Source::Stderr => err.push(chunk),
    })
    .await?;
    let truncated = out.truncated || err.truncated;
    let output =
        Output { status: status_of(&answer), stdout: out.bytes, stderr: err.bytes, truncated };
    Ok((answer, output))
}

/// Runs long work on a shell of its own; lines go to `sink`, the output is kept at its end.
pub(crate) async fn stream(
    channel: &mut Channel,
    command: &Command,
    sink: LineSink<'_>,
) -> Result<(Answer, Output), Error> {
    let (mut out, mut err) = (OutputTail::default(), OutputTail::default());
    let (mut out_lines, mut err_lines) = (LineSplitter::default(), LineSplitter::default());
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
    let output =
        Output { status: status_of(&answer), stdout: out.bytes, stderr: err.bytes, truncated };
    Ok((answer, output))
}

fn status_of(answer: &Answer) -> i32 {
    match answer {
        Answer::Done { status, .. } => *status,
        Answer::Broken(_) => 255,
    }
}

/// Runs long work on a shell of its own for somebody who watches: every piece goes to `sink`, which may take its time,
/// and nothing is read meanwhile. `None`: the sink wants no more.
pub(crate) async fn attach(
    channel: &mut Channel,
    command: &Command,
    input: Option<InputStream<'_>>,
    sink: &mut dyn OutputSink,
) -> Result<Option<Answer>, Error> {
    let mut exchange = Exchange::begin(channel, command, true)?;
    exchange.input = input.map(|source| Input { source, piece: Vec::new(), sent: 0 });
    let mut piece = Vec::new();
    while let Some(source) = exchange.step(&mut |_, bytes| piece.extend_from_slice(bytes)).await {
        if !piece.is_empty() && !sink.take(source, &piece).await {
            return Ok(None);
        }
        piece.clear();
        if let Some(error) = exchange.unread.take() {
            return Err(error);
        }
    }
    Ok(Some(exchange.answer()))
}

async fn exchange(
    channel: &mut Channel,
    command: &Command,
    last: bool,
    take: &mut (dyn FnMut(Source, &[u8]) + Send),
) -> Result<Answer, Error> {
    let mut exchange = Exchange::begin(channel, command, last)?;
    while exchange.step(take).await.is_some() {}
    Ok(exchange.answer())
}

struct Exchange<'a> {
    channel: &'a mut Channel,
    text: Vec<u8>,
    sent: usize,
    out: Frame,
    err: Frame,
    out_buffer: Vec<u8>,
    err_buffer: Vec<u8>,
    out_open: bool,
    err_open: bool,
    started: Instant,
    round_trip: Option<Duration>,
    unsent: bool,
    error: Option<io::Error>,
    /// Stdin of the command, until its end was sent.
    input: Option<Input<'a>>,
    /// Why the input could not be read.
    unread: Option<Error>,
}

struct Input<'a> {
    source: InputStream<'a>,
    piece: Vec<u8>,
    sent: usize,
}

enum Sent {
    Request(io::Result<usize>),
    Input,
    InputEnd(Option<Error>),
}

/// Sends a piece of the request, and when the answer has begun (the shell has read all of the request then, and takes nothing
/// of what follows for its own) one of the input. May be dropped half-way. Never ends when there is nothing to send.
async fn send(
    stdin: &mut Option<Box<dyn AsyncWrite + Send + Unpin>>,
    request: &[u8],
    input: Option<&mut Input<'_>>,
) -> Sent {
    let Some(stdin) = stdin else { return std::future::pending().await };
    if !request.is_empty() {
        return Sent::Request(stdin.write(request).await);
    }
    let Some(input) = input else { return std::future::pending().await };
    if input.sent == input.piece.len() {
        match input.source.next().await {
            Some(Ok(piece)) => (input.piece, input.sent) = (piece, 0),
            Some(Err(error)) => return Sent::InputEnd(Some(error)),
            None => return Sent::InputEnd(None),
        }
        return Sent::Input;
    }
    match stdin.write(&input.piece[input.sent..]).await {
        Ok(length) => input.sent += length,
        // The command reads no further. How it ends says whether it should have.
        Err(_) => return Sent::InputEnd(None),
    }
    Sent::Input
}

impl<'a> Exchange<'a> {
    fn begin(channel: &'a mut Channel, command: &Command, last: bool) -> Result<Self, Error> {
        let nonce = watchdog::nonce();
        let mut text =
            if channel.prepared { Vec::new() } else { watchdog::PREAMBLE.as_bytes().to_vec() };
        text.extend(watchdog::request(command, &nonce, last)?);
        channel.prepared = true;
        Ok(Self {
            channel,
            text,
            sent: 0,
            out: Frame::new(&nonce),
            err: Frame::new(&nonce),
            out_buffer: vec![0; 32 * 1024],
            err_buffer: vec![0; 8 * 1024],
            out_open: true,
            err_open: true,
            started: Instant::now(),
            round_trip: None,
            unsent: false,
            error: None,
            input: None,
            unread: None,
        })
    }

    /// Waits for one thing to happen and tells which stream it was on; what belongs to the answer goes to `take`.
    /// `None`: it is complete, or nothing can come any more.
    async fn step(&mut self, take: &mut (dyn FnMut(Source, &[u8]) + Send)) -> Option<Source> {
        // Complete: both marks are there. Over: neither stream can bring them any more.
        let err_done = self.err.status().is_some();
        if self.out.status().is_some() && err_done || !self.out_open && (!self.err_open || err_done)
        {
            return None;
        }
        let input = self.input.as_mut().filter(|_| self.out.begun());
        tokio::select! {
            read = self.channel.stdout.read(&mut self.out_buffer), if self.out_open => {
                match read {
                    Ok(0) => self.out_open = false,
                    Err(error) => (self.out_open, self.error) = (false, Some(error)),
                    Ok(length) => {
                        self.out.push(&self.out_buffer[..length], &mut |bytes| take(Source::Stdout, bytes));
                        if self.out.begun() && self.round_trip.is_none() {
                            self.round_trip = Some(self.started.elapsed());
                        }
                    }
                }
                Some(Source::Stdout)
            }
            read = self.channel.stderr.read(&mut self.err_buffer), if self.err_open => {
                match read {
                    Ok(0) | Err(_) => self.err_open = false,
                    Ok(length) => self.err.push(&self.err_buffer[..length], &mut |bytes| take(Source::Stderr, bytes)),
                }
                Some(Source::Stderr)
            }
            sent = send(&mut self.channel.stdin, &self.text[self.sent..], input) => {
                match sent {
                    Sent::Request(Ok(length)) => self.sent += length,
                    // Not the end yet: what the shell said before it died is still to be read.
                    Sent::Request(Err(error)) => {
                        (self.sent, self.unsent, self.error) = (self.text.len(), true, Some(error));
                    }
                    Sent::Input => {}
                    Sent::InputEnd(error) => (self.channel.stdin, self.input, self.unread) = (None, None, error),
                }
                Some(Source::Stdout)
            }
        }
    }

    fn answer(self) -> Answer {
        match (self.out.status(), self.round_trip) {
            (Some(status), Some(round_trip)) => Answer::Done { status, round_trip },
            _ => Answer::Broken(BrokenChannel {
                unsent: self.unsent,
                ..broken(&self.out, &self.err, self.error)
            }),
        }
    }
}

/// Evidence of a shell that ended early.
pub(crate) fn broken(out: &Frame, err: &Frame, error: Option<io::Error>) -> BrokenChannel {
    let begun = out.begun();
    let said = |frame: &Frame| {
        if begun { String::new() } else { String::from_utf8_lossy(frame.noise()).trim().to_owned() }
    };
    let words = [said(err), said(out)]
        .into_iter()
        .filter(|text| !text.is_empty())
        .collect::<Vec<_>>()
        .join("\n");
    BrokenChannel { begun, unsent: false, words, error }
}
