//! Runs a verb's work while progress is shown. The first Ctrl-C cancels and says how that left things, the
//! second leaves at once.

use std::cell::{Cell, RefCell};
use std::future::{self, Future};
use std::task::{Context as TaskContext, Poll};

use futures_util::stream::{self, BoxStream};
use futures_util::{FutureExt as _, StreamExt as _};

use super::output::{CliError, Context};
use super::progress::ProgressDisplay;
use crate::client::{Client, Error, Record, Request, SnapshotImportRequest, Started};
use crate::domain::{Code, Operation, OperationId, OperationState, SandboxId, SandboxRecord};

/// The status of a command that Ctrl-C ended.
pub(super) const INTERRUPTED: u8 = 130;

/// How many reports are still shown after an operation's end.
const LAST_WORDS: usize = 256;

/// Verb that brings into order the remains of an operation that nobody waited for.
enum Remedy {
    /// The sandbox is being made or removed.
    Destroy(SandboxId),
    /// The sandbox that it works on is to stay.
    Recover,
}

/// The operations that a verb has started, so that Ctrl-C can cancel them.
pub(super) struct Running<'a> {
    client: &'a dyn Client,
    asked: Cell<bool>,
    operations: RefCell<Vec<(OperationId, Remedy)>>,
    /// Whether operations run whose ids only the client knows.
    several: Cell<bool>,
    /// Whether one that was to be cancelled came to its end all the same.
    done_anyway: Cell<bool>,
}

impl<'a> Running<'a> {
    fn new(client: &'a dyn Client) -> Self {
        Self {
            client,
            asked: Cell::default(),
            operations: RefCell::default(),
            several: Cell::default(),
            done_anyway: Cell::default(),
        }
    }

    /// Starts what is asked for. An operation that began after Ctrl-C (the request was under way) is cancelled at once.
    pub(super) async fn start(&self, request: Request) -> Result<Started, Error> {
        let makes_or_removes = match &request {
            Request::Create(_)
            | Request::Destroy(_)
            | Request::Recreate(_)
            | Request::Restore(_)
            | Request::Undo(_) => true,
            Request::Sleep(_)
            | Request::Wake(_)
            | Request::ApplyPatches(_)
            | Request::Snapshot(_)
            | Request::VerifySnapshot(_)
            | Request::CopySnapshot(_)
            | Request::DeleteSnapshot(_)
            | Request::CheckHost(_)
            | Request::Reap(_) => false,
        };
        let started = self.client.start(request).await?;
        let remedy = match &started.record {
            Record::Sandbox(record) if makes_or_removes => Remedy::Destroy(record.id.clone()),
            Record::Sandbox(_) | Record::Snapshot(_) | Record::Host(_) | Record::Reap(_) => {
                Remedy::Recover
            }
        };
        self.begin(&started, remedy).await?;
        Ok(started)
    }

    /// Starts to take a snapshot from a file, as [`Self::start`] does.
    pub(super) async fn start_import(
        &self,
        request: SnapshotImportRequest,
        source: BoxStream<'static, Result<Vec<u8>, Error>>,
    ) -> Result<Started, Error> {
        let started = self.client.import_snapshot(request, source).await?;
        self.begin(&started, Remedy::Recover).await?;
        Ok(started)
    }

    /// Waits for the end of what was started; what it works on as it is then.
    pub(super) async fn finish(&self, started: Started) -> Result<Record, Error> {
        let Some(operation) = started.operation else { return Ok(started.record) };
        let ended = self.client.wait(&operation).await;
        // A reap's report comes of a cancelled one too: [`Self::was_cancelled`] tells.
        let is_done = matches!(&ended, Ok(record) if !matches!(record, Record::Reap(_)));
        self.done_anyway.set(self.done_anyway.get() || self.asked.get() && is_done);
        self.operations.borrow_mut().retain(|(known, _)| *known != operation);
        ended
    }

    /// Whether Ctrl-C cut short an operation that has ended and whose report comes either way.
    pub(super) async fn was_cancelled(&self, operation: Option<&OperationId>) -> bool {
        let Some(operation) = operation.filter(|_| self.asked.get()) else { return false };
        let ended = self.client.operation(operation.as_str()).await;
        let cancelled = ended.is_ok_and(|ended| ended.state == OperationState::Cancelled);
        self.done_anyway.set(!cancelled);
        cancelled
    }

    /// Does what is asked for, to its end.
    pub(super) async fn run(&self, request: Request) -> Result<Record, Error> {
        self.finish(self.start(request).await?).await
    }

    /// Makes a sandbox, to its end. With the error of one that was begun comes its id.
    pub(super) async fn make_sandbox(
        &self,
        request: Request,
    ) -> Result<SandboxRecord, (Error, Option<SandboxId>)> {
        let started = self.start(request).await.map_err(|problem| (problem, None))?;
        let id = match &started.record {
            Record::Sandbox(record) => Some(record.id.clone()),
            Record::Snapshot(_) | Record::Host(_) | Record::Reap(_) => None,
        };
        let ended = self.finish(started).await.and_then(Record::into_sandbox);
        ended.map_err(|problem| (problem, id))
    }

    async fn begin(&self, started: &Started, remedy: Remedy) -> Result<(), Error> {
        let Some(operation) = &started.operation else { return Ok(()) };
        self.operations.borrow_mut().push((operation.clone(), remedy));
        if self.asked.get() {
            self.client.cancel(operation).await?;
        }
        Ok(())
    }

    /// Awaits a verb that starts operations of its own one after the other, and ends at the first that is cancelled.
    pub(super) async fn several<T>(&self, verb: impl Future<Output = T>) -> T {
        self.several.set(true);
        let ended = verb.await;
        self.several.set(false);
        ended
    }

    /// The error of what has not begun when Ctrl-C is pressed: nothing new is begun then.
    pub(super) fn cancelled(&self) -> Option<Error> {
        self.asked.get().then(|| Error::new(Code::Cancelled, "cancelled before it began"))
    }

    /// Awaits a verb that may be left before its end: nothing of it has to be rolled back. Only within [`with_progress`], which looks
    /// again whenever that goes on.
    ///
    /// Errors: `cancelled` once Ctrl-C was pressed, with what goes on with the rest as its hint.
    pub(super) async fn or_left<T>(
        &self,
        verb: impl Future<Output = Result<T, Error>>,
        left: &str,
        hint: &str,
    ) -> Result<T, Error> {
        let asked = |_: &mut TaskContext<'_>| {
            if self.asked.get() { Poll::Ready(()) } else { Poll::Pending }
        };
        tokio::select! {
            done = verb => done,
            () = future::poll_fn(asked) => Err(Error::new(Code::Cancelled, left).hint(hint)),
        }
    }

    async fn cancel(&self) {
        self.asked.set(true);
        let mut operations: Vec<_> =
            self.operations.borrow().iter().map(|(operation, _)| operation.clone()).collect();
        if self.several.get() {
            let known = self.client.operations().await.unwrap_or_default();
            let ours = |one: &Operation| {
                one.state == OperationState::Running && one.pid == std::process::id()
            };
            operations.extend(known.into_iter().filter(ours).map(|one| one.id));
        }
        for operation in operations {
            // An operation that just ended cannot be cancelled; `wait` says how it ended.
            let _ = self.client.cancel(&operation).await;
        }
    }

    /// Possible remains when nobody waits for the end of an operation that was cancelled.
    fn abandoned(&self) -> Error {
        let problem = Error::new(
            Code::Cancelled,
            "left before the cancel had ended: what it began may be half done",
        );
        let operations = self.operations.borrow();
        let doomed = operations.iter().filter_map(|(_, remedy)| match remedy {
            Remedy::Destroy(id) => Some(id.to_string()),
            Remedy::Recover => None,
        });
        let doomed: Vec<_> = doomed.collect();
        if !doomed.is_empty() {
            problem.hint(format!("sandboxer destroy {} removes what remains", doomed.join(" ")))
        } else if self.several.get() || !operations.is_empty() {
            problem.hint("sandboxer recover brings into order what remains")
        } else {
            problem
        }
    }
}

/// Awaits a verb that works on operations, as [`with_progress`] does.
pub(super) async fn awaited<T>(
    context: &mut Context<'_>,
    verb: impl AsyncFnOnce(&Running<'_>) -> T,
) -> Result<T, CliError> {
    let running = Running::new(context.client);
    Box::pin(with_progress(context, &running, verb(&running))).await
}

/// Awaits `work` and shows progress meanwhile. The work is never dropped on the first Ctrl-C: what it began is
/// cancelled and it is awaited on, since dropping a future stops nothing on a host.
///
/// Errors: `cancelled` on a second Ctrl-C, with [`Io::leave_at_once`](super::output::Io::leave_at_once) set.
async fn with_progress<T>(
    context: &mut Context<'_>,
    running: &Running<'_>,
    work: impl Future<Output = T>,
) -> Result<T, CliError> {
    // Before the work begins, so that its first step is not missed. Progress is an ornament: no stream, no error.
    let mut updates =
        context.client.subscribe().await.unwrap_or_else(|_| stream::pending().boxed());
    let mut display = ProgressDisplay::new(context);
    let mut tick = tokio::time::interval(std::time::Duration::from_millis(100));
    tokio::pin!(work);
    loop {
        tokio::select! {
            ended = &mut work => {
                // What was reported before the end and not yet read. Bounded: others may go on reporting.
                for _ in 0..LAST_WORDS {
                    let Some(Some(update)) = updates.next().now_or_never() else { break };
                    display.hear(context.io, &update);
                }
                display.clear();
                if running.done_anyway.get() {
                    context.remark("the cancel came too late: it is done");
                }
                return Ok(ended);
            }
            Some(update) = updates.next() => display.hear(context.io, &update),
            Some(()) = context.io.interrupts.next() => {
                display.clear();
                if running.asked.get() {
                    context.io.leave_at_once = true;
                    return Err(running.abandoned().into());
                }
                context.remark("cancelling; Ctrl-C again leaves at once");
                running.cancel().await;
            }
            _ = tick.tick(), if display.moves() => display.tick(),
        }
    }
}

/// Awaits something that changes nothing; Ctrl-C just ends it.
///
/// Errors: `cancelled`.
pub(super) async fn until_interrupted<T>(
    context: &mut Context<'_>,
    work: impl Future<Output = T>,
) -> Result<T, CliError> {
    tokio::select! {
        ended = work => Ok(ended),
        Some(()) = context.io.interrupts.next() => Err(Error::new(Code::Cancelled, "cancelled; nothing was changed").into()),
    }
}
