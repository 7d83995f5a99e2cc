//! What a killed process left, brought into order (semantics 5, `stuck`). The lock of a sandbox is freed by the kernel
//! when its process dies: an operation on a record whose lock is free has nobody who works on it.

pub(super) mod snapshots;

use futures_util::stream::{self, StreamExt};
use tokio_util::sync::CancellationToken;

use crate::domain::event::EventKind;
use crate::domain::extension::{Inspection, SandboxExtension, Target};
use crate::domain::fault::{Code, Fault};
use crate::domain::name::{OperationId, SandboxId};
use crate::domain::operation::{Operation, OperationError, OperationKind, OperationState};
use crate::domain::patch::owed;
use crate::domain::request::Recovered;
use crate::domain::sandbox::{Reason, Running, SandboxRecord, State};
use crate::failpoint;
use crate::manager::SandboxManager;
use crate::manager::lifecycle::{host_news, not_clean, note_teardown};
use crate::manager::patch_pass::settle_applying;
use crate::manager::record::{Guard, JobReporter, running};
use crate::manager::services::{lose, lost_news};
use crate::store::Held;

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
    pub async fn recover(&self) -> Result<Vec<Recovered>, Fault> {
        self.ensure_own().await?;
        if let Err(fault) = self.settle().await {
            tracing::warn!(%fault, "pending events could not be settled");
        }
        let records = self.parts.sandboxes.list().await?;
        let stuck = records.iter().filter(|record| left(record).is_some());
        let stuck: Vec<SandboxId> = stuck.map(|record| record.id.clone()).collect();
        let done: Vec<Result<Option<Recovered>, Fault>> =
            stream::iter(stuck).map(|id| self.recover_one(id)).buffer_unordered(AT_ONCE).collect().await;
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
    async fn recover_one(&self, id: SandboxId) -> Result<Option<Recovered>, Fault> {
        let Some(held) = self.parts.locks.try_lock(&id).await? else { return Ok(None) };
        let Some(record) = self.parts.sandboxes.get(&id).await? else { return Ok(None) };
        let Some(Left { course, was }) = left(&record) else { return Ok(None) };
        if let Some(working) = record.operation.as_ref().filter(|dead| self.is_there(dead)) {
            return Ok(Some(still_there(&record, working)));
        }
        let operation = self.new_operation(OperationKind::Recover, &id);
        self.parts.operations.put(operation.clone()).await?;
        let name = operation.id.clone();
        self.start_recovery(operation, record, course, held);
        let error = self.jobs.ended(&name).await.and_then(|ended| ended.error).map(|error| *error);
        if let Some(base) = &self.get(id.as_str()).await?.based_on_snapshot {
            self.note_owed(base).await;
        }
        let record = self.get(id.as_str()).await?;
        Ok(Some(Recovered {
            id: id.to_string(),
            ok: error.is_none(),
            was,
            message: match &error {
                None if course == Course::Clear => "failed as before; nothing of it is left on its host".to_owned(),
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
        operation.host == self.parts.settings.machine && (self.parts.alive)(operation.pid, operation.started_at)
    }

    fn start_recovery(&self, operation: Operation, record: SandboxRecord, course: Course, held: Box<dyn Held>) {
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
                Course::Observe => Box::pin(manager.back_to_observed(&operation, &record, &cancel)).await,
            }
        });
    }

    /// Takes away what a failed one left, when its host could not be asked. It stays failed, with its evidence.
    async fn clear_leftovers(&self, operation: &Operation, record: &SandboxRecord) -> Result<(), Fault> {
        let id = &record.id;
        let mark = running(operation);
        let record = self.transition(id, Guard::Any, Vec::new(), |record| record.operation = Some(mark)).await?;
        let report = self.tear_down_checked(&record, &JobReporter::new(&self.jobs, operation)).await;
        let mine = Guard::Operation(operation.id.clone());
        let news = report.as_ref().err().map_or_else(Vec::new, |fault| host_news(&record, fault));
        let seen = report.as_ref().ok().cloned();
        self.transition(id, mine, news, move |record| {
            record.operation = None;
            if seen.is_some() {
                note_teardown(record, seen);
            }
        })
        .await?;
        match report? {
            report if report.is_clean() => Ok(()),
            report => Err(not_clean(id, &report)),
        }
    }

    /// Closes a record that was written ahead and of which no host has heard.
    async fn close_untouched(&self, operation: &Operation, record: &SandboxRecord) -> Result<(), Fault> {
        let data = serde_json::json!({"host": record.host, "was": record.state, "reason": Reason::CrashRecovered});
        let mark = running(operation);
        self.transition(&record.id, Guard::Any, vec![(EventKind::SandboxDestroying, data)], |record| {
            record.state = State::Destroying;
            record.reason = Some(Reason::CrashRecovered);
            record.operation = Some(mark);
        })
        .await?;
        self.parts.ledger.release(&record.id).await?;
        let news = vec![(EventKind::SandboxDestroyed, serde_json::json!({"host": record.host}))];
        let mine = Guard::Operation(operation.id.clone());
        self.transition(&record.id, mine, news, |record| {
            record.state = State::Destroyed;
            record.message = Some("the process that was to make it died before it touched the host".to_owned());
            record.operation = None;
        })
        .await
        .map(|_| ())
    }

    /// Asks the host. What runs as it should is ready again; a recreate that died half-way is a failed one, of which
    /// nothing stays; everything else keeps its state.
    async fn back_to_observed(
        &self,
        operation: &Operation,
        before: &SandboxRecord,
        cancel: &CancellationToken,
    ) -> Result<(), Fault> {
        let id = &before.id;
        let mark = running(operation);
        let record = self
            .transition(id, Guard::Any, Vec::new(), |record| {
                record.operation = Some(mark);
                settle_applying(record);
            })
            .await?;
        let extension = self.extension(&record.extension)?;
        let target = self.target(&record).await?;
        let dead = before.operation.as_ref().map(|dead| &dead.kind);
        let reporter = JobReporter::new(&self.jobs, operation);
        let look = async {
            let seen = self.inspect(extension.as_ref(), &target).await?;
            // The host is proved by now. What it has may run again, or sleep, after this.
            match dead {
                Some(OperationKind::Snapshot) => extension.resume(&target).await,
                Some(turn) if self.is_half_turned(turn, &record, &seen).await? => {
                    extension.sleep(&target, &reporter).await
                }
                _ => return Ok(seen),
            }
            .map_err(|error| error.fault)?;
            self.inspect(extension.as_ref(), &target).await
        };
        let seen = tokio::select! {
            biased;
            () = cancel.cancelled() => Err(Fault::new(Code::Cancelled, format!("sandbox {id}: not looked at yet"))),
            seen = look => seen,
        };
        failpoint::reached("recover.inspected");
        match seen {
            // A failed one stays failed: it is made again, or destroyed, by whoever asks for it.
            Ok(seen) if seen.ready && record.state.may_become(&State::Ready) => {
                self.ready_again(operation, &record, extension.as_ref(), &target, seen).await
            }
            Ok(_) if record.state == State::Provisioning => self.remake_failed(operation, &record).await,
            Ok(seen) => {
                let now = self.now();
                let gone = seen.resources.is_empty() && record.state.may_become(&State::Lost);
                let asleep = seen.asleep && record.state == State::Ready;
                let news = match (gone, asleep) {
                    (true, _) => lost_news(&record),
                    (false, true) => vec![(EventKind::SandboxSleeping, serde_json::json!({"host": record.host}))],
                    (false, false) => Vec::new(),
                };
                self.transition(id, Guard::Operation(operation.id.clone()), news, move |record| {
                    record.services = seen.services;
                    record.observed_at = Some(now);
                    record.message = Some(BACK.to_owned());
                    record.operation = None;
                    if gone {
                        lose(record);
                    } else if asleep {
                        record.state = State::Sleeping;
                        record.reason = Some(Reason::CrashRecovered);
                        record.reachability = None;
                    }
                })
                .await
                .map(|_| ())
            }
            Err(fault) => {
                // Nobody could look: it stays as the dead process left it, for the next time.
                let dead = before.operation.clone();
                let mine = Guard::Operation(operation.id.clone());
                self.transition(id, mine, host_news(&record, &fault), move |record| record.operation = dead).await?;
                Err(fault)
            }
        }
    }

    /// Whether a sleep or a wake was cut off in the middle: neither awake, with its patches, nor asleep. It is put to sleep,
    /// from where a wake does all of it.
    async fn is_half_turned(
        &self,
        dead: &OperationKind,
        record: &SandboxRecord,
        seen: &Inspection,
    ) -> Result<bool, Fault> {
        let patches = match (dead, &record.based_on_snapshot) {
            (OperationKind::Wake, Some(base)) if record.state == State::Sleeping => self.patches_of(base).await?,
            (OperationKind::Wake | OperationKind::Sleep, _) => Vec::new(),
            _ => return Ok(false),
        };
        let owes = owed(record, &patches, false);
        let awake = seen.ready && (owes.run.is_empty() || owes.blocked.is_some());
        Ok(!awake && !seen.asleep && !seen.resources.is_empty())
    }

    /// Asks the host whether it has seen a later state than our records. Nothing is written or removed.
    async fn prove_current(&self, record: &SandboxRecord) -> Result<(), Fault> {
        let extension = self.extension(&record.extension)?;
        match self.inspect(extension.as_ref(), &self.target(record).await?).await {
            Err(fault) if fault.code == Code::Unsupported => Ok(()),
            outcome => outcome.map(|_| ()),
        }
    }

    pub(super) async fn inspect(&self, extension: &dyn SandboxExtension, target: &Target) -> Result<Inspection, Fault> {
        let target = &Target { stamp: Some(self.parts.installation.stamp().await?), ..target.clone() };
        let seen = extension.inspect(target).await.map_err(|error| error.fault)?;
        if let Some(counter) = seen.counter {
            self.parts.installation.seen_on(&target.host, counter).await?;
            self.ensure_own().await?;
        }
        Ok(seen)
    }

    async fn ready_again(
        &self,
        operation: &Operation,
        record: &SandboxRecord,
        extension: &dyn SandboxExtension,
        target: &Target,
        seen: Inspection,
    ) -> Result<(), Fault> {
        let now = self.now();
        // A recreate starts the time to live again; whatever else died leaves the deadline as it was.
        let remade = record.state == State::Provisioning;
        let ready_at = if remade { now } else { record.ready_at.unwrap_or(now) };
        let expires_at = if remade { record.ttl_s.map(|ttl| now.plus_seconds(ttl)) } else { record.expires_at };
        if expires_at != record.expires_at {
            extension.set_deadline(target, expires_at).await.map_err(|error| error.fault)?;
        }
        let mut seen = seen;
        let alone = match &mut seen.reachability {
            Some(there) => self.attach(&record.id, there).await,
            None => None,
        };
        let max_s = target.profile.max_ttl.map(crate::domain::profile::Seconds::get);
        let data = serde_json::json!({"host": record.host, "reason": Reason::CrashRecovered});
        let news = vec![(EventKind::SandboxReady, data)];
        self.transition(&record.id, Guard::Operation(operation.id.clone()), news, move |record| {
            record.state = State::Ready;
            record.reason = Some(Reason::CrashRecovered);
            record.message = Some(alone.map_or_else(|| BACK.to_owned(), |why| format!("{BACK}; {why}")));
            record.observed_at = Some(now);
            record.ready_at = Some(ready_at);
            record.expires_at = expires_at;
            record.max_expires_at = max_s.map(|max| ready_at.plus_seconds(max));
            record.services = seen.services;
            record.reachability = seen.reachability.or(record.reachability.take());
            record.operation = None;
        })
        .await
        .map(|_| ())
    }

    /// Removes what a recreate that died had removed or made in part, and leaves `failed`: it can be recreated.
    async fn remake_failed(&self, operation: &Operation, record: &SandboxRecord) -> Result<(), Fault> {
        let reporter = JobReporter::new(&self.jobs, operation);
        let mine = Guard::Operation(operation.id.clone());
        let report = match self.tear_down_checked(record, &reporter).await {
            Ok(report) => report,
            Err(fault) => {
                let news = host_news(record, &fault);
                let mark = Running { kind: OperationKind::Recreate, ..running(operation) };
                self.transition(&record.id, mine, news, move |record| record.operation = Some(mark)).await?;
                return Err(fault);
            }
        };
        let clean = report.is_clean();
        let id = record.id.clone();
        let message = format!("the process that made it again died; `sandboxer recreate {id}` makes it again");
        let data = serde_json::json!({"code": Code::OperationFailed, "step": "recreate", "message": message});
        self.transition(&record.id, mine, vec![(EventKind::SandboxFailed, data)], move |record| {
            record.state = State::Failed;
            record.reason = Some(Reason::CrashRecovered);
            record.message = Some(message);
            record.expires_at = None;
            record.operation = None;
            record.reachability = None;
            record.services.clear();
            note_teardown(record, Some(report));
        })
        .await?;
        if clean { Ok(()) } else { Err(Fault::new(Code::OperationFailed, format!("sandbox {id}: something is left"))) }
    }

    /// Ends operations that no record knows any more: their process died between two writes.
    async fn end_dead_operations(&self) -> Result<Vec<Recovered>, Fault> {
        let mut items = Vec::new();
        for operation in self.parts.operations.list().await? {
            if operation.state != OperationState::Running || self.is_alive(&operation).await? {
                continue;
            }
            self.end_dead(&operation.id).await?;
            items.push(Recovered {
                id: operation.id.to_string(),
                ok: true,
                was: by(&operation.kind, operation.pid, &operation.host),
                state: None,
                message: "ended; it had nothing in hand".to_owned(),
                error: None,
            });
        }
        Ok(items)
    }

    /// Whether somebody may still work on an operation.
    pub(super) async fn is_alive(&self, operation: &Operation) -> Result<bool, Fault> {
        if operation.host == self.parts.settings.machine && (self.parts.alive)(operation.pid, operation.started_at) {
            return Ok(true);
        }
        match (&operation.sandbox_id, &operation.snapshot_id) {
            (Some(sandbox), _) => Ok(self.parts.locks.try_lock(sandbox).await?.is_none()),
            (None, Some(snapshot)) => Ok(self.parts.locks.try_lock_snapshot(snapshot).await?.is_none()),
            (None, None) => Ok(false),
        }
    }

    /// Writes an operation's end for the process that died over it.
    async fn end_dead(&self, id: &OperationId) -> Result<(), Fault> {
        let Some(mut operation) = self.parts.operations.get(id).await? else { return Ok(()) };
        if operation.state != OperationState::Running {
            return Ok(());
        }
        let message = format!("the process {} on {} died", operation.pid, operation.host);
        operation.state = OperationState::Failed;
        operation.finished_at = Some(self.now());
        operation.error = Some(Box::new(OperationError::from(Fault::new(Code::OperationFailed, message))));
        self.parts.operations.put(operation).await
    }
}

fn still_there(record: &SandboxRecord, working: &Running) -> Recovered {
    let message = format!("process {} still works on it, and not on this data directory: this is a copy", working.pid);
    let fault = Fault::new(Code::Conflict, message.clone()).hint("recover in the original, or wait until it has ended");
    Recovered {
        id: record.id.to_string(),
        ok: false,
        was: by(&working.kind, working.pid, &working.host),
        state: Some(record.state.clone()),
        message,
        error: Some(OperationError::from(fault)),
    }
}

const BACK: &str = "the process that worked on it died; this is what its host says";

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
    let made = record.operation.as_ref().is_some_and(|dead| matches!(dead.kind, Create | Restore | Recreate | Destroy));
    let course = match (&record.state, &record.operation) {
        (State::Requested, _) => Course::Close,
        (State::Destroying | State::Forgotten, _) | (State::Provisioning, None) => Course::Remove,
        (State::Failed, None) if left_over => Course::Clear,
        (State::Destroyed, _) | (_, None) => return None,
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
        State::Failed if record.leftovers.is_empty() => {
            "failed as before; nothing of it is left on its host".to_owned()
        }
        state => match &record.message {
            Some(message) => message.clone(),
            None => state.to_string(),
        },
    }
}
