//! Writing a record: compare-and-set, the events a write causes, and the operation that works on it.

use std::sync::Arc;

use tokio_util::sync::CancellationToken;

use crate::domain::error::{Code, Error};
use crate::domain::event::{Actor, Ended, EventKind, PendingEvent, derived_event_id};
use crate::domain::host_sight::HostSight;
use crate::domain::name::{EventId, HostName, OperationId, SandboxId};
use crate::domain::operation::{CancelOutcome, Operation, OperationKind, OperationState, Subject};
use crate::domain::sandbox::{Running, SandboxRecord, State};
use crate::domain::snapshot::SnapshotState;
use crate::manager::SandboxManager;
use crate::manager::outcome::outcome_of;
use crate::manager::owing::{settle, settle_applying};
use crate::store::{Change, Held, ending};

/// Under which condition a record may be changed.
#[derive(Debug, Clone)]
pub(super) enum Guard {
    /// Whatever it is.
    Any,
    /// Only while it has this revision (`None`: whatever it is).
    Revision(Option<u64>),
    /// Only while this operation works on it. The operation holds the sandbox's lock, so others change at most
    /// labels, deadline and `cancel_requested` meanwhile: its own view of the revision does not matter.
    Operation(OperationId),
}

/// An event that a write causes: its kind and particulars.
pub(super) type News = (EventKind, serde_json::Value);

/// A record as it was seen, what its change causes, and the change.
pub(super) type Seen = (Arc<SandboxRecord>, Vec<News>, Box<dyn FnOnce(&mut SandboxRecord) + Send>);

impl SandboxManager {
    /// Changes a record and appends the events that this causes. The record is the truth: they are part of the
    /// write, and an append that fails is made up for by the record's next writer. A write that frees a record of its
    /// operation says what its sandbox owes of patches.
    pub(super) async fn transition(
        &self,
        id: &SandboxId,
        guard: Guard,
        news: Vec<News>,
        change: impl FnOnce(&mut SandboxRecord) + Send,
    ) -> Result<SandboxRecord, Error> {
        let before =
            self.parts.sandboxes.get(id).await?.filter(|record| record.operation.is_some());
        let base = match &before {
            Some(before) => self.patch_base(before).await.unwrap_or_else(|fault| {
                tracing::warn!(sandbox = %id, %fault, "what it owes could not be read");
                None
            }),
            None => None,
        };
        let write = self.write(id, guard, news, move |record| {
            change(record);
            if let Some(base) =
                base.filter(|_| record.operation.is_none() && !record.state.is_over())
            {
                settle(record, &base);
            }
        });
        let record = Box::pin(write).await?;
        // Whoever added or removed a patch meanwhile has seen the record as it was, or is seen now.
        if before.is_some() && record.operation.is_none() {
            return Ok(Box::pin(self.note_owing(record)).await);
        }
        Ok(record)
    }

    /// As [`Self::transition`], of a record that stays whose it is.
    pub(super) async fn write(
        &self,
        id: &SandboxId,
        guard: Guard,
        news: Vec<News>,
        change: impl FnOnce(&mut SandboxRecord) + Send,
    ) -> Result<SandboxRecord, Error> {
        let settled = self.settle_record(id).await?;
        let expected = match guard {
            Guard::Revision(revision) => revision,
            Guard::Any | Guard::Operation(_) => None,
        };
        let mine = match guard {
            Guard::Operation(operation) => Some(operation),
            Guard::Any | Guard::Revision(_) => None,
        };
        let write = self.telling(&settled, self.actor(), news, change);
        let change = Box::new(move |record: &mut SandboxRecord| {
            if let Some(operation) = mine
                && record.operation.as_ref().is_none_or(|running| running.id != operation)
            {
                let message = format!("another operation has taken sandbox {} over", record.id);
                return Err(Error::new(Code::Conflict, message));
            }
            write(record)
        });
        let record = self.parts.sandboxes.update(id, expected, change).await?;
        self.append_pending(&record).await;
        Ok(record)
    }

    /// Changes records on which nobody works, each as its host was seen to have it, in one write; those that somebody changed meanwhile stay as
    /// they are. What became of each.
    pub(super) async fn write_seen(
        &self,
        seen: Vec<Seen>,
    ) -> Result<Vec<Result<SandboxRecord, Error>>, Error> {
        let pending = seen.iter().flat_map(|(record, ..)| record.pending.iter().cloned()).collect();
        let settled = self.told(pending).await;
        let changes = seen.into_iter().map(|(record, news, change)| {
            let change = self.telling(&settled, Actor::observer(), news, change);
            (
                record.id.clone(),
                Some(record.revision),
                Box::new(change) as Change<'_, SandboxRecord>,
            )
        });
        let outcomes = self.parts.sandboxes.update_many(changes.collect()).await?;
        let pending: Vec<_> =
            outcomes.iter().flatten().flat_map(|record| record.pending.iter().cloned()).collect();
        self.append_pending_of(&pending).await;
        Ok(outcomes)
    }

    /// A change of a record with what it means for all of it: since when it is so, whose its scripts are, which events it
    /// causes, and by whom. That a host has nothing of it any more is nobody's doing. `settled` are in the log.
    fn telling<'a>(
        &self,
        settled: &'a [EventId],
        actor: Actor,
        news: Vec<News>,
        change: impl FnOnce(&mut SandboxRecord) + Send + 'a,
    ) -> impl FnOnce(&mut SandboxRecord) -> Result<(), Error> + Send + 'a {
        let now = self.now();
        move |record| {
            let (before, since) = (record.state.clone(), record.since);
            let worker = record.operation.as_ref().map(|running| running.id.clone());
            change(record);
            // Whoever puts a record back says since when it was so.
            if record.state != before && record.since == since {
                record.since = now;
            }
            // A script is its operation's: nobody else sees its end.
            if record.operation.as_ref().map(|running| &running.id) != worker.as_ref() {
                settle_applying(record);
            }
            record.pending.retain(|event| !settled.contains(&event.id));
            let revision = record.revision + 1;
            record.pending.extend(news.into_iter().map(|(kind, data)| PendingEvent {
                id: derived_event_id(record.id.as_str(), revision, &kind),
                time: now,
                actor: if kind == EventKind::SandboxLost {
                    Actor::observer()
                } else {
                    actor.clone()
                },
                kind,
                sandbox_id: Some(record.id.clone()),
                data,
            }));
            Ok(())
        }
    }

    /// Appends what earlier writers of this record left pending; the ids that are in the log now.
    async fn settle_record(&self, id: &SandboxId) -> Result<Vec<EventId>, Error> {
        let Some(record) = self.parts.sandboxes.get(id).await? else { return Ok(Vec::new()) };
        Ok(self.told(record.pending).await)
    }

    /// Appends what earlier writers left pending on a record; the ids that are in the log now.
    pub(super) async fn told(&self, pending: Vec<PendingEvent>) -> Vec<EventId> {
        if pending.is_empty() {
            return Vec::new();
        }
        match self.tell(&pending).await {
            Ok(()) => pending.into_iter().map(|event| event.id).collect(),
            // The record is the truth: a log that cannot be written holds up no operation.
            Err(fault) => {
                tracing::warn!(%fault, "events stay pending on a record");
                Vec::new()
            }
        }
    }

    /// Appends what is pending on a record that goes: nobody could do it afterwards.
    pub(super) async fn tell(&self, pending: &[PendingEvent]) -> Result<(), Error> {
        if !pending.is_empty() {
            self.parts.events.append(pending.to_vec()).await?;
            self.log_grew.notify_one();
        }
        Ok(())
    }

    /// Appends the events of a write that just happened. The write stands whether or not this works.
    pub(super) async fn append_pending(&self, record: &SandboxRecord) {
        self.append_pending_of(&record.pending).await;
    }

    /// As [`Self::append_pending`], of whatever kind of record.
    pub(super) async fn append_pending_of(&self, pending: &[PendingEvent]) {
        if let Err(fault) = self.tell(pending).await {
            tracing::warn!(%fault, "events stay pending on a record");
        }
    }

    /// A new operation of this process.
    pub(super) fn new_operation(&self, kind: OperationKind, sandbox: &SandboxId) -> Operation {
        Operation {
            id: OperationId::from_random((self.parts.dice)()),
            kind,
            subject: Subject::Sandbox(sandbox.clone()),
            state: OperationState::Running,
            stage: None,
            done: None,
            of: None,
            bytes: None,
            started_at: self.now(),
            finished_at: None,
            pid: std::process::id(),
            host: self.parts.settings.machine.clone(),
            actor: self.actor(),
            cancel_requested: false,
            cancel_outcome: None,
            error: None,
        }
    }

    /// Starts an operation on a sandbox whose lock is held; the lock is freed when the work is done. After work that
    /// went well on `reached`, what forgotten sandboxes left on that host is removed.
    pub(super) fn run_held<W, F>(
        &self,
        operation: Operation,
        held: Box<dyn Held>,
        reached: Option<HostName>,
        work: W,
    ) where
        W: FnOnce(Self, Operation, CancellationToken) -> F,
        F: Future<Output = Result<(), Error>> + Send + 'static,
    {
        let manager = self.clone();
        let fallback = (self.clone(), operation.clone());
        let id = operation.id.clone();
        // A pass over patches that has nothing to run reaches no host.
        let is_seen = operation.kind != OperationKind::Patch;
        self.jobs.start(
            &id,
            move |cancel| {
                let ends = ends_something(&operation.kind);
                let work = work(manager.clone(), operation.clone(), cancel);
                async move {
                    let result = if ends { ending(work).await } else { work.await };
                    let well = result.is_ok();
                    let ended = manager.end_operation(operation, result).await;
                    drop(held);
                    if let Some(host) = reached.filter(|_| well) {
                        if is_seen {
                            manager.saw_host(&host, HostSight::Answers(None), None).await;
                        }
                        // Boxed: it starts operations of this very kind.
                        Box::pin(manager.collect_tombstones(&host)).await;
                    }
                    ended
                }
            },
            move |fault| async move { ending(fallback.0.abandon(fallback.1, fault)).await },
        );
    }

    /// Ends an operation with what came of it, and writes that down.
    pub(super) async fn end_operation(
        &self,
        mut operation: Operation,
        result: Result<(), Error>,
    ) -> Ended {
        operation.finished_at = Some(self.now());
        // Another process may have asked for the end meanwhile, which only the written one says.
        let written = self.parts.operations.get(&operation.id).await.ok().flatten();
        operation.cancel_requested |= written.is_some_and(|written| written.cancel_requested)
            || self.jobs.is_cancelled(&operation.id);
        operation.cancel_outcome = operation.cancel_requested.then(|| cancel_outcome(&result));
        operation.state = match &result {
            Ok(()) => OperationState::Succeeded,
            Err(fault) if fault.code == Code::Cancelled => OperationState::Cancelled,
            Err(_) => OperationState::Failed,
        };
        operation.error = result.err().map(|fault| Box::new(Error::from(fault)));
        if let Err(fault) = ending(self.parts.operations.put(operation.clone())).await {
            tracing::warn!(operation = %operation.id, %fault, "the operation's end could not be written");
        }
        let outcome = outcome_of(self, &operation).await;
        Ended { operation, outcome }
    }

    /// The last resort when an operation's body panicked: the record must not stay as if somebody worked on it.
    pub(super) async fn abandon(&self, operation: Operation, fault: Error) -> Ended {
        if let Some(id) = operation.subject.sandbox() {
            let message = fault.message.clone();
            let outcome = self
                .transition(
                    id,
                    Guard::Operation(operation.id.clone()),
                    vec![(
                        EventKind::SandboxFailed,
                        serde_json::json!({"message": message.clone()}),
                    )],
                    move |record| {
                        record.operation = None;
                        record.message = Some(message);
                        if matches!(record.state, State::Requested | State::Provisioning) {
                            record.state = State::Failed;
                            // Nobody has looked at what the panic left behind.
                            record.teardown.clear();
                        }
                    },
                )
                .await;
            if let Err(fault) = outcome {
                tracing::error!(sandbox = %id, %fault, "an abandoned operation could not be written down");
            }
        }
        if let Some(id) = operation
            .subject
            .snapshot()
            .cloned()
            .filter(|_| operation.kind != OperationKind::Restore)
        {
            let (message, mine) = (fault.message.clone(), operation.id.clone());
            let outcome = self
                .transition_snapshot(&id, None, Vec::new(), move |record| {
                    if record.operation.take_if(|running| running.id == mine).is_some() {
                        record.message = Some(message);
                        if record.state == SnapshotState::Creating {
                            record.state = SnapshotState::Failed;
                            record.unremoved = true;
                        }
                    }
                    Ok(())
                })
                .await;
            if let Err(fault) = outcome {
                tracing::error!(snapshot = %id, %fault, "an abandoned operation could not be written down");
            }
        }
        self.end_operation(operation, Err(fault)).await
    }

    /// Sets `cancel_requested` on the operation that works on a sandbox, if one does; with `only`, if that is it.
    pub(super) async fn request_cancel(
        &self,
        id: &SandboxId,
        only: Option<&OperationId>,
    ) -> Result<SandboxRecord, Error> {
        let meant = |running: &Running| only.is_none_or(|only| running.id == *only);
        let ask = self.transition(id, Guard::Any, Vec::new(), |record| {
            if let Some(running) = record.operation.as_mut().filter(|running| meant(running)) {
                running.cancel_requested = true;
            }
        });
        let record = ending(ask).await?;
        // One that still waits for the sandbox is not on the record.
        let asked = only.or(record.operation.as_ref().map(|running| &running.id));
        if let Some(asked) = asked {
            self.parts.operations.request_cancel(asked).await?;
        }
        Ok(record)
    }
}

/// Whether an operation ends something, so that a full disk must not stop it.
fn ends_something(kind: &OperationKind) -> bool {
    matches!(kind, OperationKind::Destroy | OperationKind::Delete | OperationKind::Recover)
}

/// How an operation was left whose end somebody asked for.
fn cancel_outcome(result: &Result<(), Error>) -> CancelOutcome {
    match result {
        // A panic, say: nobody knows how far it came.
        Err(fault) if fault.code == Code::Internal => CancelOutcome::Stopped,
        Err(fault) => CancelOutcome::of(&fault.code, &fault.details).unwrap_or(CancelOutcome::Done),
        Ok(()) => CancelOutcome::Done,
    }
}

/// The operation as the record shows it.
pub(super) fn running(operation: &Operation) -> Running {
    Running {
        id: operation.id.clone(),
        kind: operation.kind.clone(),
        started_at: operation.started_at,
        pid: operation.pid,
        host: operation.host.clone(),
        actor: operation.actor.clone(),
        cancel_requested: false,
    }
}
