//! Journal: every write of a record is compare-and-set, carries the events that it causes, and publishes them. The record is
//! the truth: an append to the log that fails is made up for by the record's next writer.

use std::fmt;
use std::future::Future;
use std::sync::Arc;

use crate::domain::clock::ClockReading;
use crate::domain::credit::LedgerEntry;
use crate::domain::event::{EventKind, PendingEvent, derived_event_id};
use crate::domain::name::{EventId, OperationId, SandboxId, SnapshotId};
use crate::domain::pending_patches::settle_applying;
use crate::domain::sandbox::{Running, SandboxRecord, State};
use crate::domain::update::Update;
use crate::domain::{Actor, Code, Error, SnapshotRecord, Time};
use crate::manager::credits::pending::append_to_ledger;
use crate::manager::deps::Deps;
use crate::store::Change;

/// Condition under which a record may be changed.
#[derive(Debug, Clone)]
pub(crate) enum Guard {
    Any,
    /// Revision that it must have (`None`: whatever it is).
    Revision(Option<u64>),
    /// Operation that must work on it. The operation holds the record's lock, so others change at most
    /// labels, deadline and `cancel_requested` meanwhile: its own view of the revision does not matter.
    Operation(OperationId),
}

/// Event that a write causes: its kind and particulars.
pub(crate) type NewEvent = (EventKind, serde_json::Value);

/// Record as it was seen on its host, the events of its change, and the change.
pub(crate) type Observed =
    (Arc<SandboxRecord>, Vec<NewEvent>, Box<dyn FnOnce(&mut SandboxRecord) + Send>);

pub(crate) trait JournalRecord: Clone + Send + Sync + 'static {
    type Id: Clone + fmt::Display + Send + Sync + 'static;

    /// The word for it in a sentence.
    const NOUN: &'static str;

    fn id(&self) -> &Self::Id;

    fn operation(&self) -> Option<&Running>;

    /// Puts an operation on it, or takes it off.
    fn set_operation(&mut self, operation: Option<Running>);

    /// Events that are not in the log yet.
    fn pending(&mut self) -> &mut Vec<PendingEvent>;

    /// Reads it from its store.
    fn read(deps: &Deps, id: &Self::Id)
    -> impl Future<Output = Result<Option<Self>, Error>> + Send;

    /// Writes it to its store.
    fn store<'a>(
        deps: &'a Deps,
        id: &'a Self::Id,
        expected: Option<u64>,
        change: Change<'a, Self>,
    ) -> impl Future<Output = Result<Self, Error>> + Send + 'a;

    /// An event of its next revision.
    fn event(&self, event: NewEvent, actor: &Actor, now: Time) -> PendingEvent;

    /// Applies a change, with what that means for the rest of the record.
    fn apply(
        &mut self,
        reading: &ClockReading,
        change: impl FnOnce(&mut Self) -> Result<(), Error>,
    ) -> Result<(), Error> {
        let _ = reading;
        change(self)
    }

    /// Tells listeners that it was written, where no event does.
    fn announce(deps: &Deps) {
        let _ = deps;
    }
}

impl JournalRecord for SandboxRecord {
    type Id = SandboxId;

    const NOUN: &'static str = "sandbox";

    fn id(&self) -> &SandboxId {
        &self.id
    }

    fn operation(&self) -> Option<&Running> {
        self.operation.as_ref()
    }

    fn set_operation(&mut self, operation: Option<Running>) {
        self.operation = operation;
    }

    fn pending(&mut self) -> &mut Vec<PendingEvent> {
        &mut self.pending
    }

    async fn read(deps: &Deps, id: &SandboxId) -> Result<Option<Self>, Error> {
        deps.sandboxes.get(id).await
    }

    async fn store(
        deps: &Deps,
        id: &SandboxId,
        expected: Option<u64>,
        change: Change<'_, Self>,
    ) -> Result<Self, Error> {
        deps.sandboxes.update(id, expected, change).await
    }

    /// The revisions of an adopted one begin anew: its events are told apart from those of its earlier life by when that was.
    fn event(&self, (kind, data): NewEvent, actor: &Actor, now: Time) -> PendingEvent {
        let name = match self.adopted_at {
            Some(at) => format!("{}@{at}", self.id),
            None => self.id.to_string(),
        };
        PendingEvent {
            id: derived_event_id(&name, self.revision + 1, &kind),
            time: now,
            // Nobody's doing: a host has nothing of it any more.
            actor: if kind == EventKind::SandboxLost { Actor::observer() } else { actor.clone() },
            kind,
            sandbox_id: Some(self.id.clone()),
            data,
        }
    }

    fn apply(
        &mut self,
        reading: &ClockReading,
        change: impl FnOnce(&mut Self) -> Result<(), Error>,
    ) -> Result<(), Error> {
        let (before, since) = (self.state.clone(), self.since);
        let worker = self.operation.as_ref().map(|running| running.id.clone());
        change(self)?;
        // A record that is put back says itself since when it was so.
        if self.state != before && self.since == since {
            self.since = reading.wall;
        }
        // A script is its operation's: nobody else sees its end.
        if self.operation.as_ref().map(|running| &running.id) != worker.as_ref() {
            settle_applying(self);
        }
        if let Some(meter) = &mut self.meter
            && self.state != before
        {
            if self.state == State::Lost {
                meter.stop(reading);
            } else if matches!(self.state, State::Ready | State::Sleeping) {
                meter.stopped_ms = None;
            }
        }
        Ok(())
    }
}

impl JournalRecord for SnapshotRecord {
    type Id = SnapshotId;

    const NOUN: &'static str = "snapshot";

    fn id(&self) -> &SnapshotId {
        &self.id
    }

    fn operation(&self) -> Option<&Running> {
        self.operation.as_ref()
    }

    fn set_operation(&mut self, operation: Option<Running>) {
        self.operation = operation;
    }

    fn pending(&mut self) -> &mut Vec<PendingEvent> {
        &mut self.pending
    }

    async fn read(deps: &Deps, id: &SnapshotId) -> Result<Option<Self>, Error> {
        deps.snapshots.get(id).await
    }

    async fn store(
        deps: &Deps,
        id: &SnapshotId,
        expected: Option<u64>,
        change: Change<'_, Self>,
    ) -> Result<Self, Error> {
        deps.snapshots.update(id, expected, change).await
    }

    /// The event says which snapshot it is about. Of an adopted one, as of a sandbox.
    fn event(&self, (kind, mut data): NewEvent, actor: &Actor, now: Time) -> PendingEvent {
        let name = match self.adopted_at {
            Some(at) => format!("{}@{at}", self.id),
            None => self.id.to_string(),
        };
        if let Some(map) = data.as_object_mut() {
            map.insert("snapshot_id".to_owned(), self.id.as_str().into());
            map.insert("snapshot_name".to_owned(), self.name.as_deref().into());
        }
        PendingEvent {
            id: derived_event_id(&name, self.revision + 1, &kind),
            time: now,
            kind,
            sandbox_id: Some(self.sandbox_id.clone()),
            actor: actor.clone(),
            data,
        }
    }

    fn announce(deps: &Deps) {
        deps.jobs.publish(Update::Snapshots);
    }
}

/// Changes a record if it is as `guard` says, with the events that this causes, and publishes them.
///
/// Errors: `conflict` for another revision or another operation; whatever `change` refuses.
pub(crate) async fn update<R: JournalRecord>(
    deps: &Deps,
    id: &R::Id,
    guard: Guard,
    events: Vec<NewEvent>,
    change: impl FnOnce(&mut R) -> Result<(), Error> + Send,
) -> Result<R, Error> {
    let flushed = flush::<R>(deps, id).await?;
    let (expected, working) = match guard {
        Guard::Any => (None, None),
        Guard::Revision(revision) => (revision, None),
        Guard::Operation(operation) => (None, Some(operation)),
    };
    let write = with_events(deps, &flushed, deps.actor(), events, change);
    let change = Box::new(move |record: &mut R| {
        if let Some(operation) = working
            && record.operation().is_none_or(|running| running.id != operation)
        {
            let message = format!("another operation has taken {} {} over", R::NOUN, record.id());
            return Err(Error::new(Code::Conflict, message));
        }
        write(record)
    });
    let mut record = R::store(deps, id, expected, change).await?;
    publish_pending(deps, record.pending()).await;
    R::announce(deps);
    Ok(record)
}

/// [`update`] of a record as it is, without an event.
pub(crate) async fn change<R: JournalRecord>(
    deps: &Deps,
    id: &R::Id,
    change: impl FnOnce(&mut R) + Send,
) -> Result<R, Error> {
    let change = |record: &mut R| {
        change(record);
        Ok(())
    };
    update(deps, id, Guard::Any, Vec::new(), change).await
}

/// Frees a snapshot of its operation, with a change of its record.
pub(crate) async fn free_snapshot(
    deps: &Deps,
    id: &SnapshotId,
    also: impl FnOnce(&mut SnapshotRecord) + Send,
) -> Result<SnapshotRecord, Error> {
    change(deps, id, |record: &mut SnapshotRecord| {
        record.operation = None;
        also(record);
    })
    .await
}

/// Changes a snapshot's record, without events, where the change also looks at all the others, in the order in which they
/// came.
pub(crate) async fn update_among(
    deps: &Deps,
    id: &SnapshotId,
    expected: Option<u64>,
    change: impl FnOnce(&mut SnapshotRecord, &[&SnapshotRecord]) -> Result<(), Error> + Send,
) -> Result<SnapshotRecord, Error> {
    let flushed = flush::<SnapshotRecord>(deps, id).await?;
    let change = move |record: &mut SnapshotRecord, all: &[&SnapshotRecord]| {
        change(record, all)?;
        record.pending.retain(|event| !flushed.contains(&event.id));
        Ok(())
    };
    let record = deps.snapshots.update_among(id, expected, Box::new(change)).await?;
    publish_pending(deps, &record.pending).await;
    SnapshotRecord::announce(deps);
    Ok(record)
}

/// Changes records on which nobody works, each as its host was seen to have it; those that somebody changed meanwhile stay as
/// they are. What became of each.
pub(crate) async fn update_observed(
    deps: &Deps,
    observed: Vec<Observed>,
) -> Result<Vec<Result<SandboxRecord, Error>>, Error> {
    update_many(deps, Actor::observer(), observed).await
}

/// Changes records that are as they were read, in one write, with the events that this causes in one append of the log. One
/// that somebody changed meanwhile is a `conflict` and holds up none of the others. What became of each.
///
/// Errors: none of them is written.
pub(crate) async fn update_many(
    deps: &Deps,
    actor: Actor,
    changes: Vec<Observed>,
) -> Result<Vec<Result<SandboxRecord, Error>>, Error> {
    let pending = changes.iter().flat_map(|(record, ..)| record.pending.iter().cloned()).collect();
    let flushed = flush_pending(deps, pending).await;
    let changes = changes.into_iter().map(|(record, events, change)| {
        let change = |record: &mut SandboxRecord| {
            change(record);
            Ok(())
        };
        let change = with_events(deps, &flushed, actor.clone(), events, change);
        (record.id.clone(), Some(record.revision), Box::new(change) as Change<'_, SandboxRecord>)
    });
    let outcomes = deps.sandboxes.update_many(changes.collect()).await?;
    let pending: Vec<_> =
        outcomes.iter().flatten().flat_map(|record| record.pending.iter().cloned()).collect();
    publish_pending(deps, &pending).await;
    Ok(outcomes)
}

/// A change of a record with the events that it causes; `flushed` are in the log.
fn with_events<'a, R, F>(
    deps: &Deps,
    flushed: &'a [EventId],
    actor: Actor,
    events: Vec<NewEvent>,
    change: F,
) -> impl FnOnce(&mut R) -> Result<(), Error> + Send + use<'a, R, F>
where
    R: JournalRecord,
    F: FnOnce(&mut R) -> Result<(), Error> + Send,
{
    let reading = deps.read_clocks();
    move |record| {
        let now = reading.wall;
        record.apply(&reading, change)?;
        record.pending().retain(|event| !flushed.contains(&event.id));
        let caused: Vec<_> =
            events.into_iter().map(|event| record.event(event, &actor, now)).collect();
        record.pending().extend(caused);
        Ok(())
    }
}

/// Appends what earlier writers of this record left pending; the ids that are in the log now.
async fn flush<R: JournalRecord>(deps: &Deps, id: &R::Id) -> Result<Vec<EventId>, Error> {
    let Some(mut record) = R::read(deps, id).await? else { return Ok(Vec::new()) };
    Ok(flush_pending(deps, std::mem::take(record.pending())).await)
}

/// Appends what earlier writers left pending on a record; the ids that are in the log now.
pub(crate) async fn flush_pending(deps: &Deps, pending: Vec<PendingEvent>) -> Vec<EventId> {
    match append(deps, &pending).await {
        Ok(told) => told,
        // The record is the truth: a log that cannot be written holds up no operation.
        Err(error) => {
            tracing::warn!(%error, "events stay pending on a record");
            Vec::new()
        }
    }
}

/// Appends events that records' writes caused, and says which are in the log now. Those that are about credits go to the ledger
/// first, since what is in the log is taken off the record; where that cannot be written they wait, and the others do not.
pub(crate) async fn append(deps: &Deps, pending: &[PendingEvent]) -> Result<Vec<EventId>, Error> {
    let mut events = pending.to_vec();
    if let Err(error) = append_to_ledger(deps, pending).await {
        tracing::warn!(%error, "events over credits stay pending on a record");
        events.retain(|event| LedgerEntry::of_event(event).is_none());
    }
    let told = events.iter().map(|event| event.id.clone()).collect();
    if !events.is_empty() {
        deps.events.append(events).await?;
        deps.appended();
    }
    Ok(told)
}

/// Appends the events of a write that just happened. The write stands whether or not this works.
pub(crate) async fn publish_pending(deps: &Deps, pending: &[PendingEvent]) {
    if let Err(error) = append(deps, pending).await {
        tracing::warn!(%error, "events stay pending on a record");
    }
}
