//! Signals that end or wake a console, and why its loop stops without the operator.

use std::io;
use std::time::Duration;

use rustix::io::Errno;
use tokio::signal::unix::{Signal, SignalKind, signal};

use super::terminal;
use crate::domain::error::Error;
use crate::failpoint;

/// How long what runs may take to be rolled back when nobody has seen its end.
const ROLLBACK: Duration = Duration::from_mins(5);

/// A signal that ends a console.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EndSignal {
    /// SIGHUP, or the terminal is gone: what runs is finished.
    HangUp,
    /// SIGTERM: what runs is rolled back.
    Terminate,
    /// SIGINT: what runs is rolled back.
    Interrupt,
    /// SIGQUIT: what runs is rolled back.
    Quit,
}

impl EndSignal {
    /// Its name in a sentence.
    pub fn name(self) -> &'static str {
        match self {
            Self::HangUp => "a hang-up",
            Self::Terminate => "SIGTERM",
            Self::Interrupt => "SIGINT",
            Self::Quit => "SIGQUIT",
        }
    }

    /// How long the process may take to roll back what still runs. After a hang-up somebody has waited for it already: what
    /// does not end is left to `recover`.
    pub fn rollback_limit(self) -> Option<Duration> {
        match self {
            Self::HangUp => Some(failpoint::limit("unseen.limit", ROLLBACK)),
            Self::Terminate | Self::Interrupt | Self::Quit => None,
        }
    }

    /// The process's exit status: 128 and the signal's number.
    pub fn exit_status(self) -> u8 {
        match self {
            Self::HangUp => 129,
            Self::Interrupt => 130,
            Self::Quit => 131,
            Self::Terminate => 143,
        }
    }
}

/// Why the loop stopped without the operator.
#[derive(Debug)]
pub(super) enum LoopEnd {
    /// A signal, or the terminal's end.
    Signal(EndSignal),
    /// Something else.
    Failed(Error),
}

impl From<Error> for LoopEnd {
    fn from(error: Error) -> Self {
        Self::Failed(error)
    }
}

/// A failure of the terminal, or of what the loop needs of the system.
pub(super) fn unusable(message: &str, error: io::Error) -> Error {
    Error::internal(message).because(error)
}

/// A failure of the terminal. A terminal that is gone answers EIO to everything.
pub(super) fn failed(message: &str, error: io::Error) -> LoopEnd {
    match Errno::from_io_error(&error) {
        Some(Errno::IO | Errno::NXIO) => LoopEnd::Signal(EndSignal::HangUp),
        _ => LoopEnd::Failed(unusable(message, error)),
    }
}

pub(super) fn draw_failed(error: io::Error) -> LoopEnd {
    failed("the terminal cannot be written", error)
}

/// Signals that end or wake a console.
pub(super) struct Signals {
    pub(super) ends: EndSignals,
    pub(super) continued: Signal,
    pub(super) resized: Signal,
}

/// Signals that end a console.
pub(super) struct EndSignals {
    hang_up: Signal,
    terminate: Signal,
    interrupt: Signal,
    quit: Signal,
}

impl Signals {
    pub(super) fn new() -> io::Result<Self> {
        let ends = EndSignals {
            hang_up: signal(SignalKind::hangup())?,
            terminate: signal(SignalKind::terminate())?,
            interrupt: signal(SignalKind::interrupt())?,
            quit: signal(SignalKind::quit())?,
        };
        let continued = signal(SignalKind::from_raw(terminal::continued()))?;
        Ok(Self { ends, continued, resized: signal(SignalKind::window_change())? })
    }
}

impl EndSignals {
    /// The next one.
    pub(super) async fn next(&mut self) -> EndSignal {
        tokio::select! {
            _ = self.terminate.recv() => EndSignal::Terminate,
            _ = self.hang_up.recv() => EndSignal::HangUp,
            _ = self.interrupt.recv() => EndSignal::Interrupt,
            _ = self.quit.recv() => EndSignal::Quit,
        }
    }
}
