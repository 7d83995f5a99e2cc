//! Typed bytes from the terminal, one by one.
//!
//! Nothing is read ahead: a byte leaves the terminal's queue only while [`Input::next`] is awaited, and only up to the
//! end of one key. What is typed behind `!` therefore waits in the queue for the shell. crossterm's own reader takes
//! up to 1024 bytes at once, in a thread of its own, and what it took cannot be given back.

mod decode;

use std::io;
use std::os::fd::OwnedFd;
use std::time::Duration;

use crossterm::event::Event;
use rustix::io::{Errno, ioctl_fionread, read};
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;
use tokio::time::{Instant, timeout_at};

use decode::Decoder;

/// How long the rest of a sequence may take. Long enough for a slow link, too short to be felt on a bare `esc`.
const REST: Duration = Duration::from_millis(30);

/// The terminal's input.
pub(super) struct Input {
    tty: AsyncFd<OwnedFd>,
    decoder: Decoder,
    /// Bytes that are in the queue and were not read yet.
    available: u64,
    /// When the rest of a begun sequence is given up.
    until: Option<Instant>,
}

impl Input {
    /// Listens to a terminal. Needs a runtime.
    pub(super) fn new(tty: OwnedFd) -> io::Result<Self> {
        // Deprecated for what is not the owner of its descriptor; an `OwnedFd` is, and the other way is `unsafe`.
        #[allow(deprecated)]
        let tty = AsyncFd::with_interest(tty, Interest::READABLE)?;
        Ok(Self { tty, decoder: Decoder::default(), available: 0, until: None })
    }

    /// The next event; none when the terminal is gone. Safe to drop at any await: nothing is lost.
    pub(super) async fn next(&mut self) -> io::Result<Option<Event>> {
        loop {
            if let Some(event) = self.decoder.second() {
                return Ok(Some(event));
            }
            match self.byte()? {
                Byte::Some(byte) => {
                    let event = self.decoder.push(byte);
                    self.until = self.decoder.is_begun().then(|| Instant::now() + REST);
                    if event.is_some() {
                        return Ok(event);
                    }
                }
                Byte::End => return Ok(None),
                Byte::None => {
                    if !self.ready().await? {
                        self.until = None;
                        if let Some(event) = self.decoder.give_up() {
                            return Ok(Some(event));
                        }
                    }
                }
            }
        }
    }

    /// Throws away what was typed and not read: it was meant for somebody else.
    pub(super) fn forget(&mut self) {
        let _ =
            rustix::termios::tcflush(self.tty.get_ref(), rustix::termios::QueueSelector::IFlush);
        self.decoder = Decoder::default();
        self.available = 0;
        self.until = None;
    }

    /// Waits until something can be read; `false` when the rest of a sequence did not come.
    async fn ready(&mut self) -> io::Result<bool> {
        loop {
            let mut guard = match self.until {
                Some(until) => match timeout_at(until, self.tty.readable()).await {
                    Ok(guard) => guard?,
                    Err(_) => return Ok(false),
                },
                None => self.tty.readable().await?,
            };
            // Readiness is told once per arrival: it is put down only when the queue is seen to be empty.
            let (available, ended) = queued(self.tty.get_ref())?;
            if available > 0 || ended {
                self.available = available;
                return Ok(true);
            }
            guard.clear_ready();
        }
    }

    fn byte(&mut self) -> io::Result<Byte> {
        if self.available == 0 {
            let (available, ended) = queued(self.tty.get_ref())?;
            if available == 0 {
                return Ok(if ended { Byte::End } else { Byte::None });
            }
            self.available = available;
        }
        let mut byte = [0];
        match read(self.tty.get_ref(), &mut byte) {
            Ok(0) | Err(Errno::IO) => Ok(Byte::End),
            Ok(_) => {
                self.available -= 1;
                Ok(Byte::Some(byte[0]))
            }
            Err(Errno::INTR | Errno::AGAIN) => {
                self.available = 0;
                Ok(Byte::None)
            }
            Err(error) => Err(error.into()),
        }
    }
}

enum Byte {
    Some(u8),
    None,
    End,
}

/// How many bytes wait, and whether none will ever come.
fn queued(tty: &OwnedFd) -> io::Result<(u64, bool)> {
    use rustix::event::{PollFd, PollFlags, Timespec, poll};
    match ioctl_fionread(tty) {
        Ok(0) => {}
        Ok(count) => return Ok((count, false)),
        Err(Errno::IO | Errno::NOTTY) => return Ok((0, true)),
        Err(error) => return Err(error.into()),
    }
    let mut fds = [PollFd::new(tty, PollFlags::IN)];
    let polled = poll(&mut fds, Some(&Timespec { tv_sec: 0, tv_nsec: 0 }));
    Ok((0, polled.is_ok() && fds[0].revents().intersects(PollFlags::HUP | PollFlags::ERR)))
}
