//! How a console ends, and what is done about it: by the operator, by a signal, with its terminal.

use std::io::{self, Write as _};

use rustix::io::Errno;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::time::{Duration, sleep};

use super::model::many;
use super::update::{self, update};
use super::{Console, Effect, EventSource, Msg, terminal, unusable};
use crate::domain::error::Error;
use crate::failpoint;

/// How long what runs may take when nobody sees it any more.
const UNSEEN: Duration = Duration::from_mins(30);
/// How long it may then take to roll that back.
const ROLLBACK: Duration = Duration::from_mins(5);

/// How a console came to its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ended {
    /// The operator left.
    Left,
    /// A signal, or the terminal's end.
    By(EndSignal),
}

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
    fn from(fault: Error) -> Self {
        Self::Failed(fault)
    }
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

impl Console {
    /// Waits for what runs, and begins nothing. Another signal, or the end of the patience, leaves it to be rolled back.
    pub(super) async fn finish_without_screen(
        &mut self,
        source: &mut EventSource,
    ) -> Result<(), LoopEnd> {
        self.effects.begin_nothing();
        for effect in update::go_unseen(&mut self.model) {
            self.effects.run(effect);
        }
        let count = self.model.jobs.running_here().count();
        tracing::info!(count, "the terminal is gone: what runs is finished without it");
        if count > 0 {
            // Where the signal came alone, somebody waits for the terminal.
            let jobs = many(count, "job is", "jobs are");
            let _ = writeln!(
                io::stderr(),
                "sandboxer: {jobs} finished without the screen; ctrl-c rolls back what runs"
            );
        }
        let patience = sleep(failpoint::limit("unseen.limit", UNSEEN));
        tokio::pin!(patience);
        while self.model.jobs.running_here().next().is_some() {
            tokio::select! {
                signal = source.signals.ends.next() => match signal {
                    EndSignal::HangUp => {}
                    EndSignal::Terminate | EndSignal::Interrupt | EndSignal::Quit => return Err(LoopEnd::Signal(signal)),
                },
                () = &mut patience => {
                    tracing::warn!("what still runs is rolled back: nobody has seen it for half an hour");
                    break;
                }
                Some(msg) = source.inbox.recv() => self.take_unseen(msg),
            }
        }
        Err(LoopEnd::Signal(EndSignal::HangUp))
    }

    /// Takes a message for what it says of the jobs.
    fn take_unseen(&mut self, msg: Msg) {
        for effect in update(&mut self.model, msg) {
            if matches!(effect, Effect::Cancel(..)) {
                self.effects.run(effect);
            }
        }
    }
}
