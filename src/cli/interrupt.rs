//! Runs a verb's work while progress is shown. The first Ctrl-C rolls back and says what remains, the second
//! leaves at once.

use std::cell::{Cell, RefCell};
use std::future::{self, Future};
use std::task::{Context, Poll};

use futures_util::stream;
use futures_util::{FutureExt as _, StreamExt as _};

use super::output::{Face, Stop};
use super::progress::Meter;
use crate::client::{Client, Problem, Started};
use crate::domain::{Code, OperationId, SandboxId, SandboxRecord};

/// The status of a command that Ctrl-C ended.
pub(super) const INTERRUPTED: u8 = 130;

/// How many reports are still shown after an operation's end.
const LAST_WORDS: usize = 256;

/// The operations that a verb has started, so that Ctrl-C can roll them back.
pub(super) struct Running<'a> {
    client: &'a dyn Client,
    asked: Cell<bool>,
    operations: RefCell<Vec<(OperationId, SandboxId)>>,
}

impl<'a> Running<'a> {
    pub(super) fn new(client: &'a dyn Client) -> Self {
        Self { client, asked: Cell::new(false), operations: RefCell::default() }
    }

    /// Waits for what was started; the record as it is then. An operation that began after Ctrl-C (the request was
    /// under way) is cancelled at once.
    pub(super) async fn finish(&self, started: Started) -> Result<SandboxRecord, Problem> {
        let Some(operation) = started.operation else { return Ok(started.sandbox) };
        self.operations.borrow_mut().push((operation.clone(), started.sandbox.id));
        if self.asked.get() {
            self.client.cancel(&operation).await?;
        }
        let ended = self.client.finish(&operation).await;
        self.operations.borrow_mut().retain(|(known, _)| *known != operation);
        ended
    }

    /// The error of what has not begun when Ctrl-C is pressed: nothing new is begun then.
    pub(super) fn cancelled(&self) -> Option<Problem> {
        self.asked.get().then(|| Problem::new(Code::Cancelled, "cancelled before it began"))
    }

    /// Returns once Ctrl-C was pressed. Only for work that [`attend`] awaits: it looks again whenever that goes on.
    pub(super) async fn asked_to_stop(&self) {
        let asked = |_: &mut Context<'_>| if self.asked.get() { Poll::Ready(()) } else { Poll::Pending };
        future::poll_fn(asked).await;
    }

    async fn roll_back(&self) {
        self.asked.set(true);
        let operations: Vec<_> = self.operations.borrow().iter().map(|(operation, _)| operation.clone()).collect();
        for operation in operations {
            // An operation that just ended cannot be cancelled; `finish` says how it ended.
            let _ = self.client.cancel(&operation).await;
        }
    }

    /// What may be left when nobody waits for the rollback.
    fn abandoned(&self) -> Problem {
        let problem = Problem::new(Code::Cancelled, "left before the rollback had ended");
        let ids: Vec<_> = self.operations.borrow().iter().map(|(_, id)| id.to_string()).collect();
        if ids.is_empty() {
            problem
        } else {
            problem.hint(format!("sandboxer destroy {} removes what remains", ids.join(" ")))
        }
    }
}

/// Awaits `work` and shows progress meanwhile. The work is never dropped on the first Ctrl-C: what it began is
/// rolled back and it is awaited on, since dropping a future stops nothing on a host.
///
/// Errors: `cancelled` on a second Ctrl-C, with [`super::Io::leave_at_once`] set.
pub(super) async fn attend<T>(
    face: &mut Face<'_>,
    running: &Running<'_>,
    work: impl Future<Output = T>,
) -> Result<T, Stop> {
    // Before the work begins, so that its first step is not missed. Progress is an ornament: no stream, no error.
    let mut updates = face.client.subscribe().await.unwrap_or_else(|_| stream::pending().boxed());
    let mut meter = Meter::new(face);
    let mut tick = tokio::time::interval(std::time::Duration::from_millis(100));
    tokio::pin!(work);
    loop {
        tokio::select! {
            ended = &mut work => {
                // What was reported before the end and not yet read. Bounded: others may go on reporting.
                for _ in 0..LAST_WORDS {
                    let Some(Some(update)) = updates.next().now_or_never() else { break };
                    meter.hear(face.io, &update);
                }
                meter.clear();
                return Ok(ended);
            }
            Some(update) = updates.next() => meter.hear(face.io, &update),
            Some(()) = face.io.interrupts.next() => {
                meter.clear();
                if running.asked.get() {
                    face.io.leave_at_once = true;
                    return Err(running.abandoned().into());
                }
                face.remark("cancelling; Ctrl-C again leaves at once");
                running.roll_back().await;
            }
            _ = tick.tick(), if meter.moves() => meter.tick(),
        }
    }
}

/// Awaits something that changes nothing; Ctrl-C just ends it.
///
/// Errors: `cancelled`.
pub(super) async fn look_on<T>(face: &mut Face<'_>, work: impl Future<Output = T>) -> Result<T, Stop> {
    tokio::select! {
        ended = work => Ok(ended),
        Some(()) = face.io.interrupts.next() => Err(Problem::new(Code::Cancelled, "cancelled; nothing was changed").into()),
    }
}
