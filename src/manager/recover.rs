//! What a killed process left, brought into order (semantics 5, `stuck`). The lock of a sandbox is freed by the kernel
//! when its process dies: an operation on a record whose lock is free has nobody who works on it.

mod observe;
pub(super) mod snapshots;

use futures_util::stream::{self, StreamExt};

use crate::domain::error::{Code, Error};
use crate::domain::event::EventKind;
use crate::domain::extension::{Inspection, SandboxExtension, Target};
use crate::domain::name::{OperationId, SandboxId};
use crate::domain::operation::{CancelOutcome, Operation, OperationKind, OperationState, Subject};
use crate::domain::request::Recovered;
use crate::domain::sandbox::{Reason, Running, SandboxRecord, State};
use crate::manager::SandboxManager;
use crate::manager::lifecycle::{not_clean, note_teardown};
use crate::manager::record::{Guard, running};
use crate::manager::reporter::JobReporter;
use crate::store::{Held, ending};

/// Sandboxes that are worked on at a time.
const AT_ONCE: usize = 6;

/// What is to be done with a record that nobody works on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Course {
    /// Nothing was done on the host yet: it is closed.
    Close,
    /// It was never ready, or was being removed: what is there is removed.
    Remove,
    /// It was ready once: it goes back to what the host says.
    Observe,
    /// It failed, and not all of it could be taken away then.
    Clear,
}

/// What a dead process left of a record.
struct Left {
    course: Course,
    /// Whose it was, for a person.
    was: String,
}

impl SandboxManager {
    /// Ends what dead processes began: an item for each thing that was left.
    ///
    /// Errors: `conflict` in a copied or restored data directory.
    pub async fn recover(&self) -> Result<Vec<Recovered>, Error> {
        ending(self.recover_all()).await
    }

    async fn recover_all(&self) -> Result<Vec<Recovered>, Error> {
        self.ensure_own().await?;
        if let Err(fault) = self.settle().await {
            tracing::warn!(%fault, "pending events could not be settled");
        }
        let records = self.parts.sandboxes.list().await?;
        let stuck = records.iter().filter(|record| left(record).is_some());
        let stuck: Vec<SandboxId> = stuck.map(|record| record.id.clone()).collect();
        let done: Vec<Result<Option<Recovered>, Error>> = stream::iter(stuck)
            .map(|id| self.recover_one(id))
            .buffer_unordered(AT_ONCE)
            .collect()
            .await;
        let mut items = Vec::new();
        for item in done {
            items.extend(item?);
        }
        items.extend(self.recover_snapshots().await?);
        items.extend(self.end_dead_operations().await?);
        items.sort_by(|a, b| a.id.cmp(&b.id));
        Ok(items)
    }

    /// `None`: somebody works on it after all, or it is in order by now.
    async fn recover_one(&self, id: SandboxId) -> Result<Option<Recovered>, Error> {
        let Some(held) = self.parts.locks.try_lock(&id).await? else { return Ok(None) };
        let Some(record) = self.parts.sandboxes.get(&id).await? else { return Ok(None) };
        let Some(Left { course, was }) = left(&record) else { return Ok(None) };
        if let Some(working) = record.operation.as_ref().filter(|dead| self.is_there(dead))
            && !self.has_ended(&working.id).await?
        {
            return Ok(Some(still_there(&record, working)));
        }
        let operation = self.new_operation(OperationKind::Recover, &id);
        self.parts.operations.put(operation.clone()).await?;
        let name = operation.id.clone();
        self.start_recovery(operation, record, course, held);
        let error = self
            .jobs
            .ended(&name)
            .await
            .and_then(|ended| ended.operation.error)
            .map(|error| *error);
        let record = self.get(id.as_str()).await?;
        Ok(Some(Recovered {
            id: id.to_string(),
            ok: error.is_none(),
            was,
            message: match &error {
                None if course == Course::Clear => {
                    "failed as before; nothing of it is left on its host".to_owned()
                }
                None => outcome(&record),
                Some(error) => error.message.clone(),
            },
            state: Some(record.state),
            error,
        }))
    }

    /// Whether the very process that ran an operation lives on this machine. It would hold the lock, if this were the
    /// data directory that it works on: this one is a copy.
    fn is_there(&self, operation: &Running) -> bool {
        operation.host == self.parts.settings.machine
            && (self.parts.alive)(operation.pid, operation.started_at)
    }

    /// Whether its process wrote its end down, and left something to bring in order all the same.
    async fn has_ended(&self, id: &OperationId) -> Result<bool, Error> {
        let operation = self.parts.operations.get(id).await?;
        Ok(operation.is_some_and(|operation| operation.state != OperationState::Running))
    }

    fn start_recovery(
        &self,
        operation: Operation,
        record: SandboxRecord,
        course: Course,
        held: Box<dyn Held>,
    ) {
        self.run_held(operation, held, None, move |manager, operation, cancel| async move {
            if let Some(dead) = &record.operation {
                manager.end_dead(&dead.id).await?;
            }
            match course {
                Course::Close => manager.close_untouched(&operation, &record).await,
                Course::Remove => {
                    // Our records may be an old copy in which what is ready by now is half-made: the host knows.
                    manager.prove_current(&record).await?;
                    manager.remove_held(&operation, &record, Reason::CrashRecovered, &cancel).await
                }
                Course::Clear => Box::pin(manager.clear_leftovers(&operation, &record)).await,
                Course::Observe => {
                    Box::pin(manager.back_to_observed(&operation, &record, &cancel)).await
                }
            }
        });
    }

    /// Takes away what a failed one left, when its host could not be asked. It stays failed, with its evidence.
    async fn clear_leftovers(
        &self,
        operation: &Operation,
        record: &SandboxRecord,
    ) -> Result<(), Error> {
        let id = &record.id;
        let mark = running(operation);
        let record = self
            .transition(id, Guard::Any, Vec::new(), |record| record.operation = Some(mark))
            .await?;
        let report =
            self.tear_down_checked(&record, &JobReporter::new(&self.jobs, operation)).await;
        let report = report.map_err(|error| error.fault);
        let mine = Guard::Operation(operation.id.clone());
        let seen = report.as_ref().ok().cloned();
        self.transition(id, mine, Vec::new(), move |record| {
            record.operation = None;
            if seen.is_some() {
                note_teardown(record, seen);
            }
        })
        .await?;
        if let Err(fault) = &report {
            self.saw_fault_of(&record.host, fault).await;
        }
        match report? {
            report if report.is_clean() => Ok(()),
            report => Err(not_clean(id, &report)),
        }
    }

    /// Closes a record that was written ahead and of which no host has heard.
    async fn close_untouched(
        &self,
        operation: &Operation,
        record: &SandboxRecord,
    ) -> Result<(), Error> {
        let data = serde_json::json!({"host": record.host, "was": record.state, "reason": Reason::CrashRecovered});
        let mark = running(operation);
        self.transition(
            &record.id,
            Guard::Any,
            vec![(EventKind::SandboxDestroying, data)],
            |record| {
                record.state = State::Destroying;
                record.reason = Some(Reason::CrashRecovered);
                record.operation = Some(mark);
            },
        )
        .await?;
        self.parts.ledger.release(&record.id).await?;
        let news = vec![(EventKind::SandboxDestroyed, serde_json::json!({"host": record.host}))];
        let mine = Guard::Operation(operation.id.clone());
        self.transition(&record.id, mine, news, |record| {
            record.state = State::Destroyed;
            record.message =
                Some("the process that was to make it died before it touched the host".to_owned());
            record.operation = None;
        })
        .await
        .map(|_| ())
    }

    /// Asks the host whether it has seen a later state than our records. Nothing is written or removed.
    async fn prove_current(&self, record: &SandboxRecord) -> Result<(), Error> {
        let extension = self.extension(&record.extension)?;
        match self.inspect(extension.as_ref(), &self.target_as_known(record).await?).await {
            Err(fault) if fault.code == Code::Unsupported => Ok(()),
            outcome => outcome.map(|_| ()),
        }
    }

    pub(super) async fn inspect(
        &self,
        extension: &dyn SandboxExtension,
        target: &Target,
    ) -> Result<Inspection, Error> {
        let target =
            &Target { stamp: Some(self.parts.installation.stamp().await?), ..target.clone() };
        let seen = extension.inspect(target).await.map_err(|error| error.fault)?;
        if let Some(root) = seen.root.clone() {
            self.learn_root(&target.host, root).await;
        }
        if let Some(counter) = seen.counter {
            self.parts.installation.seen_on(&target.host, counter).await?;
            self.ensure_own().await?;
        }
        Ok(seen)
    }

    /// Ends operations that no record knows any more: their process died between two writes.
    async fn end_dead_operations(&self) -> Result<Vec<Recovered>, Error> {
        let mut items = Vec::new();
        for operation in self.parts.operations.list().await? {
            if operation.state != OperationState::Running || self.is_alive(&operation).await? {
                continue;
            }
            // What it made is by now as sandboxes and snapshots are that nobody works on, and nobody's all the same.
            let cleared = match operation.kind {
                OperationKind::Check => {
                    self.take_back(&operation.id).await.map(|made| made.words())
                }
                _ => Ok(String::new()),
            };
            let message = match &cleared {
                Ok(ids) if ids.is_empty() => "ended; it had nothing in hand".to_owned(),
                Ok(ids) => format!("ended; removed what it had made: {ids}"),
                Err(fault) => fault.message.clone(),
            };
            if cleared.is_ok() {
                self.end_dead(&operation.id).await?;
            }
            items.push(Recovered {
                id: operation.id.to_string(),
                ok: cleared.is_ok(),
                was: by(&operation.kind, operation.pid, &operation.host),
                state: None,
                message,
                error: cleared.err().map(Error::from),
            });
        }
        Ok(items)
    }

    /// Whether somebody may still work on an operation.
    pub(super) async fn is_alive(&self, operation: &Operation) -> Result<bool, Error> {
        if operation.host == self.parts.settings.machine
            && (self.parts.alive)(operation.pid, operation.started_at)
        {
            return Ok(true);
        }
        match &operation.subject {
            Subject::Sandbox(sandbox) | Subject::SandboxAndSnapshot(sandbox, _) => {
                Ok(self.parts.locks.try_lock(sandbox).await?.is_none())
            }
            Subject::Snapshot(snapshot) => {
                Ok(self.parts.locks.try_lock_snapshot(snapshot).await?.is_none())
            }
            Subject::Host => Ok(false),
        }
    }

    /// Writes an operation's end for the process that died over it.
    pub(super) async fn end_dead(&self, id: &OperationId) -> Result<(), Error> {
        let Some(mut operation) = self.parts.operations.get(id).await? else { return Ok(()) };
        if operation.state != OperationState::Running {
            return Ok(());
        }
        let message = format!("the process {} on {} died", operation.pid, operation.host);
        operation.state = OperationState::Failed;
        operation.cancel_outcome = operation.cancel_requested.then_some(CancelOutcome::Stopped);
        operation.finished_at = Some(self.now());
        operation.error = Some(Box::new(Error::from(Error::new(Code::OperationFailed, message))));
        self.parts.operations.put(operation).await
    }
}

fn still_there(record: &SandboxRecord, working: &Running) -> Recovered {
    let message = format!(
        "process {} still works on it, and not on this data directory: this is a copy",
        working.pid
    );
    let fault = Error::new(Code::Conflict, message.clone())
        .hint("recover in the original, or wait until it has ended");
    Recovered {
        id: record.id.to_string(),
        ok: false,
        was: by(&working.kind, working.pid, &working.host),
        state: Some(record.state.clone()),
        message,
        error: Some(Error::from(fault)),
    }
}

pub(super) fn by(kind: &OperationKind, pid: u32, host: &str) -> String {
    format!("{kind} by process {pid} on {host}")
}

/// What is to be done with a record if nobody works on it; `None` when it is in order.
fn left(record: &SandboxRecord) -> Option<Left> {
    use OperationKind::{Create, Destroy, Recreate, Restore};
    let was = match &record.operation {
        Some(dead) => by(&dead.kind, dead.pid, &dead.host),
        None if record.state == State::Failed => "failed, and something of it was left".to_owned(),
        None => record.state.to_string(),
    };
    let left_over = !record.leftovers.is_empty() && !record.kept_failed;
    let made = record
        .operation
        .as_ref()
        .is_some_and(|dead| matches!(dead.kind, Create | Restore | Recreate | Destroy));
    let course = match (&record.state, &record.operation) {
        (State::Requested, _) => Course::Close,
        (State::Destroying | State::Forgotten, _) | (State::Provisioning, None) => Course::Remove,
        (State::Failed, None) if left_over => Course::Clear,
        (State::Destroyed, _) | (_, None) => return None,
        // Its host may have begun to remove it before anybody could write that down.
        (_, Some(dead)) if dead.kind == Destroy => Course::Remove,
        _ if made && record.ready_at.is_none() => Course::Remove,
        _ => Course::Observe,
    };
    Some(Left { course, was })
}

/// What became of it, in a sentence.
fn outcome(record: &SandboxRecord) -> String {
    match &record.state {
        State::Destroyed => "removed".to_owned(),
        State::Ready => "ready, as its host says".to_owned(),
        state => match &record.message {
            Some(message) => message.clone(),
            None => state.to_string(),
        },
    }
}
