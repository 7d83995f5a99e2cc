//! Operations: how one begins, changes what it works on, hears a cancel, runs as a job, and ends.
//!
//! A verb takes a lock ([`locks`]), starts an [`Op`] on the record, and runs its work, which changes the record through
//! [`Op::update`] alone. However the work ends (well, with an error, cancelled, by a panic), the operation has one end.

pub(super) mod cancel;
pub(super) mod dead;
pub(super) mod find;
pub(super) mod jobs;
pub(super) mod locks;
pub(super) mod outcome;
pub(super) mod progress;
pub(super) mod record;
pub(super) mod start;
pub(super) mod subject;
pub(super) mod wait;

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use tokio_util::sync::CancellationToken;

use crate::domain::error::{Code, Error};
use crate::domain::host_sight::HostSight;
use crate::domain::name::{HostName, OperationId};
use crate::domain::operation::{CancelOutcome, Operation, OperationKind, OperationState};
use crate::domain::record::Record;
use crate::domain::sandbox::Running;
use crate::domain::time::took_ms;
use crate::domain::update::Ended;
use crate::manager::deps::Deps;
use crate::manager::hosts::status::report_host_status;
use crate::manager::journal::{Guard, NewEvent};
use crate::manager::operation::dead::end_predecessor;
use crate::manager::operation::outcome::outcome_of;
use crate::manager::operation::progress::ProgressReporter;
use crate::manager::operation::record::running;
use crate::manager::operation::subject::OperationRecord;
use crate::store::{Held, ending};

/// Pause between two looks for a cancel by another process.
const CANCEL_POLL: Duration = Duration::from_millis(250);

/// An operation of this process, and what it works on.
pub(crate) struct Op<S> {
    pub(crate) deps: Deps,
    /// Record of the operation, as it was written when it began.
    pub(crate) operation: Operation,
    /// Record that it works on, as that was when the operation began.
    pub(crate) subject: S,
    pub(crate) progress: ProgressReporter,
    cancel: CancellationToken,
    lock: Option<Box<dyn Held>>,
}

impl<S> Op<S> {
    fn new(deps: &Deps, operation: Operation, subject: S, lock: Option<Box<dyn Held>>) -> Self {
        Self {
            deps: deps.clone(),
            progress: ProgressReporter::new(&deps.jobs, &operation),
            operation,
            subject,
            cancel: CancellationToken::new(),
            lock,
        }
    }

    /// Writes an operation down that has not taken what it works on yet.
    pub(crate) async fn queue(
        deps: &Deps,
        operation: Operation,
        subject: S,
        lock: Option<Box<dyn Held>>,
    ) -> Result<Self, Error> {
        let put = deps.operations.put(operation.clone());
        if ends_something(&operation.kind) {
            ending(put).await?;
        } else {
            put.await?;
        }
        Ok(Self::new(deps, operation, subject, lock))
    }

    pub(crate) fn id(&self) -> &OperationId {
        &self.operation.id
    }

    /// The condition under which it changes records that it is on.
    pub(crate) fn guard(&self) -> Guard {
        Guard::Operation(self.operation.id.clone())
    }

    /// The operation as records that it works on show it.
    pub(crate) fn running(&self) -> Running {
        running(&self.operation)
    }

    pub(crate) fn took_ms(&self) -> u64 {
        took_ms(self.deps.now().since(self.operation.started_at))
    }

    /// The token that is cancelled when this process is asked for its end.
    pub(crate) fn cancel_token(&self) -> &CancellationToken {
        &self.cancel
    }

    /// Whether this process was asked for its end.
    pub(crate) fn is_cancelled(&self) -> bool {
        self.cancel.is_cancelled()
    }

    /// Returns when another process asked for its end.
    pub(crate) async fn cancel_requested(&self) {
        let mut seen = None;
        loop {
            tokio::time::sleep(CANCEL_POLL).await;
            let version = self.deps.operations.version().await.ok();
            if version.is_some() && version == seen {
                continue;
            }
            seen = version;
            if self.is_cancel_written().await.unwrap_or(false) {
                return;
            }
        }
    }

    /// Whether another process asked for its end by now.
    pub(crate) async fn is_cancel_written(&self) -> Result<bool, Error> {
        let written = self.deps.operations.get(&self.operation.id).await?;
        Ok(written.is_some_and(|written| {
            written.state == OperationState::Running && written.cancel_requested
        }))
    }

    /// Runs extension work until it ends or somebody, here or in another process, cancels the operation: that ends with what
    /// `cancelled` says. The work is dropped then: the extension's contract says that this is safe.
    pub(crate) async fn or_cancelled_with<T, E>(
        &self,
        cancelled: impl Fn() -> E,
        work: impl Future<Output = Result<T, E>>,
    ) -> Result<T, E> {
        tokio::select! {
            biased;
            () = self.cancel.cancelled() => Err(cancelled()),
            result = work => result,
            () = self.cancel_requested() => Err(cancelled()),
        }
    }

    /// Puts the operation on another record that it works on, and ends the dead one that was there.
    pub(crate) async fn attach_to<T: OperationRecord>(
        &self,
        before: &T,
        guard: Guard,
        change: impl FnOnce(&mut T) -> Result<(), Error> + Send,
    ) -> Result<T, Error> {
        let running = self.running();
        let attached = T::write(&self.deps, before.id(), guard, Vec::new(), |record| {
            change(record)?;
            record.set_operation(Some(running));
            Ok(())
        });
        // Boxed, as every write of a record here: it is large, and a part of every verb.
        let attached = Box::pin(attached).await?;
        end_predecessor(&self.deps, before.operation()).await;
        Ok(attached)
    }

    /// [`Op::update`] of another record that it is on.
    pub(crate) async fn update_on<T: OperationRecord>(
        &self,
        id: &T::Id,
        events: Vec<NewEvent>,
        change: impl FnOnce(&mut T) + Send,
    ) -> Result<T, Error> {
        let change = |record: &mut T| {
            change(record);
            Ok(())
        };
        Box::pin(T::write(&self.deps, id, self.guard(), events, change)).await
    }

    /// Holds another lock until its end.
    pub(crate) fn add_lock(&mut self, lock: Box<dyn Held>) {
        self.lock = Some(match self.lock.take() {
            Some(first) => Box::new((first, lock)),
            None => lock,
        });
    }

    /// Ends an operation that never ran, and says why.
    pub(crate) async fn abort(self, error: Error) -> Error {
        end(&self.deps, self.operation, Err(error.clone())).await;
        error
    }
}

impl<S: OperationRecord> Op<S> {
    /// Starts an operation on a record whose lock is held, over a dead one too: writes it down, and on the record with what
    /// `change` makes of that.
    ///
    /// Errors: whatever `change` refuses, and `conflict` where the record is not as `guard` says; then it never was.
    pub(crate) async fn start(
        deps: &Deps,
        operation: Operation,
        (before, lock): (S, Box<dyn Held>),
        guard: Guard,
        change: impl FnOnce(&mut S) -> Result<(), Error> + Send,
    ) -> Result<Self, Error> {
        deps.operations.put(operation.clone()).await?;
        let mut op = Self::new(deps, operation, before, Some(lock));
        match op.attach(guard, change).await {
            Ok(attached) => {
                op.subject = attached;
                Ok(op)
            }
            Err(error) => Err(Box::pin(op.abort(error)).await),
        }
    }

    /// Starts the operation that makes a record: writes it down first, then the record that names it, so that whoever reads
    /// the record can wait for its end.
    ///
    /// Errors: whatever the store refuses; then it never was.
    pub(crate) async fn start_new<Inserted: Future<Output = Result<S, Error>>>(
        deps: &Deps,
        operation: Operation,
        (mut draft, lock): (S, Box<dyn Held>),
        insert: impl FnOnce(S) -> Inserted,
    ) -> Result<Self, Error> {
        deps.operations.put(operation.clone()).await?;
        draft.set_operation(Some(running(&operation)));
        let mut op = Self::new(deps, operation, draft.clone(), Some(lock));
        match Box::pin(insert(draft)).await {
            Ok(inserted) => {
                op.subject = inserted;
                Ok(op)
            }
            Err(error) => Err(Box::pin(op.abort(error)).await),
        }
    }

    /// Puts the operation on the record that it works on, and ends the dead one that was there.
    pub(crate) async fn attach(
        &self,
        guard: Guard,
        change: impl FnOnce(&mut S) -> Result<(), Error> + Send,
    ) -> Result<S, Error> {
        self.attach_to(&self.subject, guard, change).await
    }

    /// Changes the record that it works on, with the events that this causes. A change that takes the operation off the record
    /// frees it.
    ///
    /// Errors: `conflict` where another operation has taken it over.
    pub(crate) async fn update(
        &self,
        events: Vec<NewEvent>,
        change: impl FnOnce(&mut S) + Send,
    ) -> Result<S, Error> {
        self.update_on(self.subject.id(), events, change).await
    }

    /// [`Self::or_cancelled_with`] the subject's message. How a cancel leaves things is the caller's to say.
    pub(crate) async fn or_cancelled<T>(
        &self,
        work: impl Future<Output = Result<T, Error>>,
    ) -> Result<T, Error> {
        let cancelled = || {
            let message = self.subject.cancelled_message(&self.operation.kind);
            Error::new(Code::Cancelled, message)
        };
        self.or_cancelled_with(cancelled, work).await
    }

    /// Runs the work as a job; the lock is freed when it has ended. After work that went well on `reached`, what waits for
    /// that host is done.
    pub(crate) fn run<W, F>(self, reached: Option<HostName>, work: W) -> OperationId
    where
        W: FnOnce(Arc<Self>) -> F,
        F: Future<Output = Result<(), Error>> + Send + 'static,
    {
        let (deps, operation) = (self.deps.clone(), self.operation.clone());
        let panicked = async move |error| S::fail_after_panic(&deps, &operation, &error).await;
        self.run_or(reached, work, panicked)
    }

    /// [`Self::run`] to its end, which has the work's error.
    pub(crate) async fn run_to_end<W, F>(self, work: W) -> Result<Ended, Error>
    where
        W: FnOnce(Arc<Self>) -> F,
        F: Future<Output = Result<(), Error>> + Send + 'static,
    {
        let (jobs, kind) = (Arc::clone(&self.deps.jobs), self.operation.kind.clone());
        let ended = jobs.ended(&self.run(None, work)).await;
        ended.ok_or_else(|| Error::internal(format!("nobody knows how the {kind} ended")))
    }
}

impl<S: Send + Sync + 'static> Op<S> {
    /// [`Self::run`], with what a panic of the work leaves to be done.
    pub(crate) fn run_or<W, F, P, Q>(
        mut self,
        reached: Option<HostName>,
        work: W,
        panicked: P,
    ) -> OperationId
    where
        W: FnOnce(Arc<Self>) -> F,
        F: Future<Output = Result<(), Error>> + Send + 'static,
        P: FnOnce(Error) -> Q + Send + 'static,
        Q: Future<Output = ()> + Send + 'static,
    {
        let (deps, operation) = (self.deps.clone(), self.operation.clone());
        let (id, cancel) = (operation.id.clone(), self.cancel.clone());
        let fallback = (deps.clone(), operation.clone());
        let lock = self.lock.take();
        let work = work(Arc::new(self));
        let jobs = Arc::clone(&deps.jobs);
        let body = async move {
            let ends = ends_something(&operation.kind);
            // A pass over patches that has nothing to run reaches no host.
            let is_seen = operation.kind != OperationKind::Patch;
            let result = if ends { ending(work).await } else { work.await };
            let well = result.is_ok();
            let ended = end(&deps, operation, result).await;
            drop(lock);
            let reached = reached.filter(|_| well).map(|host| host_of(&ended, host));
            if let Some(host) = reached {
                if is_seen {
                    report_host_status(&deps, &host, HostSight::Answers(None), None).await;
                }
                (deps.host_reached)(&deps, &host).await;
            }
            ended
        };
        let (deps, operation) = fallback;
        let panicked = async move |error: Error| {
            ending(panicked(error.clone())).await;
            end(&deps, operation, Err(error)).await
        };
        jobs.start(&id, cancel, body, panicked);
        id
    }
}

/// Ends an operation with what came of it, and writes that down.
async fn end(deps: &Deps, mut operation: Operation, result: Result<(), Error>) -> Ended {
    operation.finished_at = Some(deps.now());
    // Another process may have asked for the end meanwhile, which only the written one says.
    let written = deps.operations.get(&operation.id).await.ok().flatten();
    operation.cancel_requested |= written.is_some_and(|written| written.cancel_requested)
        || deps.jobs.is_cancelled(&operation.id);
    operation.cancel_outcome = operation.cancel_requested.then(|| cancel_outcome(&result));
    operation.state = match &result {
        Ok(()) => OperationState::Succeeded,
        Err(error) if error.code == Code::Cancelled => OperationState::Cancelled,
        Err(_) => OperationState::Failed,
    };
    operation.error = result.err().map(Box::new);
    if let Err(error) = ending(deps.operations.put(operation.clone())).await {
        tracing::warn!(operation = %operation.id, %error, "the operation's end could not be written");
    }
    let outcome = Box::pin(outcome_of(deps, &operation)).await;
    Ended { operation, outcome }
}

/// Host on which an operation ended well that began for this one: a create may have fallen back to another.
fn host_of(ended: &Ended, began_for: HostName) -> HostName {
    match (&ended.operation.kind, &ended.outcome) {
        (OperationKind::Create, Ok(Record::Sandbox(record))) => record.host.clone(),
        _ => began_for,
    }
}

/// Whether an operation ends something, so that a full disk must not stop it.
fn ends_something(kind: &OperationKind) -> bool {
    matches!(kind, OperationKind::Destroy | OperationKind::Delete | OperationKind::Recover)
}

/// Outcome of a cancel, by the operation's result.
fn cancel_outcome(result: &Result<(), Error>) -> CancelOutcome {
    match result {
        // A panic, say: nobody knows how far it came.
        Err(error) if error.code == Code::Internal => CancelOutcome::Stopped,
        Err(error) => error.cancel_outcome().unwrap_or(CancelOutcome::Done),
        Ok(()) => CancelOutcome::Done,
    }
}
