//! How a console ends when its terminal is gone: what runs is finished without it.

use std::io::{self, Write as _};
use std::time::Duration;

use tokio::time::sleep;

use super::console::{Console, EventSource};
use super::message::{Effect, Msg};
use super::model::many;
use super::signals::{EndSignal, LoopEnd};
use super::update::{self, update};
use crate::failpoint;

/// How long what runs may take when nobody sees it any more.
const UNSEEN: Duration = Duration::from_mins(30);

/// How a console came to its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ended {
    /// The operator left.
    Left,
    /// A signal, or the terminal's end.
    By(EndSignal),
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
