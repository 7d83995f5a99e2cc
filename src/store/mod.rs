//! Stores: traits that a file or a database can keep, and their contract.
//!
//! `insert` fails on an existing id; `update` is a compare-and-set on the record's revision. Only transitions are
//! stored, never progress. Errors: `not_found`, `conflict` (with the current record in `details.current`),
//! `store_corrupt`, `store_foreign`, `invalid_config` for a data directory that cannot be used (not ours, not writable, a file in
//! the way), `internal` for other I/O (with the path and the system's words as cause).

pub mod catalogue;
mod compact;
mod content;
mod corruption;
pub mod credits;
mod document;
mod document_entry;
pub(crate) mod earlier;
mod earlier_store;
pub(crate) mod event_file;
mod event_numbers;
mod event_pages;
mod event_reading;
mod event_window;
mod files;
mod history;
pub(crate) mod hosts;
pub(crate) mod installation;
pub mod json;
pub(crate) mod lock;
mod named_files;
pub(crate) mod operations;
pub(crate) mod outbox;
pub(crate) mod patches;
pub(crate) mod pinned_profiles;
pub(crate) mod plans;
mod reserve;
mod rotation;
pub mod sandboxes;
mod shape;
pub mod snapshots;
pub(crate) mod sweeps;
mod unknown_fields;
mod writing;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use async_trait::async_trait;

use crate::domain::clock::ClockReading;
use crate::domain::credit::{HistoryEntry, LedgerEntry, LedgerSums};
use crate::domain::error::Error;
use crate::domain::event::{Event, EventKind, PendingEvent};
use crate::domain::extension::OwnerStamp;
use crate::domain::name::{
    EventId, HostName, OperationId, OwnerId, PatchId, PlanId, SandboxId, SnapshotId,
};
use crate::domain::operation::Operation;
use crate::domain::outbox::{Cursor, DeadLetter, EventsOf};
use crate::domain::patch::Patch;
use crate::domain::profile::Profile;
use crate::domain::root::HostRecord;
use crate::domain::stale::ReapPlan;
use crate::domain::{SandboxRecord, SnapshotRecord, Time};

pub(crate) use earlier_store::{EarlierFile, EarlierKind, EarlierStore};
pub use reserve::ending;

/// Change of a record: in place, under the store's lock. An error leaves it as it was.
pub type Change<'a, R> = Box<dyn FnOnce(&mut R) -> Result<(), Error> + Send + 'a>;

/// Change of a batch: the record, its revision (`None`: whatever it is), and what is done to it.
pub type ChangeOf<'a, R = SandboxRecord, I = SandboxId> = (I, Option<u64>, Change<'a, R>);

/// [`Change`], with all records at hand as they are at that moment, in the order in which they were inserted.
pub type ChangeAmong<'a, R> = Box<dyn FnOnce(&mut R, &[&R]) -> Result<(), Error> + Send + 'a>;

/// Admission of a record among the live ones. An error keeps it out.
pub type Admit<'a> = &'a (dyn Fn(&[&SandboxRecord]) -> Result<(), Error> + Send + Sync);

/// Whether this data directory may act for what its records name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Ownership {
    /// Own data directory of this machine, as far as it can be told.
    Own,
    /// Copy from another machine, which may still work with the original.
    Copied,
    /// A host has seen a later state of it: it is an old copy, put back.
    Behind {
        /// The host that told.
        host: HostName,
        /// The counter that the host has.
        counter: u64,
    },
    /// Directory whose records have an owner that its file `owner` does not name.
    Unnamed {
        /// The owner.
        owner: OwnerId,
    },
}

/// Lines that cannot be read, and that readers pass over.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnreadableLines {
    /// The file, or whatever has lines.
    pub file: String,
    /// Numbers of the lines, from 1.
    pub lines: Vec<u64>,
}

#[async_trait]
pub trait SandboxStore: Send + Sync {
    /// Writes a new record at revision 1. `conflict` if its id exists here or in the history, or is a name of a sandbox or
    /// snapshot; if its name is taken by one that is not over, or is an id here or in the history; or if another record
    /// has its idempotency key. No snapshot is inserted meanwhile.
    async fn insert(&self, record: SandboxRecord) -> Result<SandboxRecord, Error> {
        self.insert_if(record, &|_| Ok(())).await
    }

    /// [`Self::insert`], if `admit` agrees to the live records as they are at that moment: two processes that
    /// insert at once are asked one after the other.
    async fn insert_if(
        &self,
        record: SandboxRecord,
        admit: Admit<'_>,
    ) -> Result<SandboxRecord, Error>;

    /// The record with exactly this id; `None` if there is none here (the history is not asked).
    async fn get(&self, id: &SandboxId) -> Result<Option<SandboxRecord>, Error>;

    /// All live records, oldest first. Those moved to the history are not among them.
    async fn list(&self) -> Result<Vec<Arc<SandboxRecord>>, Error>;

    /// Changes the record if its revision is still `expected` (`None`: whatever it is); raises the revision, which
    /// `change` sees as it was. `conflict` for another revision (`details.expected`), a move that its state may not
    /// make (`details.from`, `details.to`), or a name that is taken; each with `details.current`.
    async fn update(
        &self,
        id: &SandboxId,
        expected: Option<u64>,
        change: Change<'_, SandboxRecord>,
    ) -> Result<SandboxRecord, Error> {
        let mut done = self.update_many(vec![(id.clone(), expected, change)]).await?;
        done.pop()
            .unwrap_or_else(|| Err(Error::internal(format!("the change of {id} came to nothing"))))
    }

    /// Same as [`Self::update`] for each of these in their order, in one write: what is refused holds up none of the others. What
    /// came of each.
    ///
    /// Errors: none of them is written.
    async fn update_many(
        &self,
        changes: Vec<ChangeOf<'_>>,
    ) -> Result<Vec<Result<SandboxRecord, Error>>, Error>;

    /// Takes these events, which are in the log by now, out of what is pending on any record: one write for all of
    /// them. No record's revision changes by it, because nothing that anybody decides on does.
    async fn clear_pending(&self, events: &BTreeSet<EventId>) -> Result<(), Error>;

    /// Writes the records of earlier versions as this one writes them, all at once. How many. No record's revision changes by it,
    /// because nothing that anybody decides on does.
    async fn renew(&self) -> Result<usize, Error> {
        Ok(0)
    }

    /// Moves records that are destroyed since before `before`, and have nothing pending, to the history. How many.
    /// Forgotten ones stay: their tombstone waits for the host.
    async fn archive(&self, before: Time) -> Result<usize, Error>;

    /// The records in the history, oldest first.
    async fn history(&self) -> Result<Vec<Arc<SandboxRecord>>, Error>;

    /// Lines of the history that cannot be read, and are not among its records. A store whose history is whole has none.
    async fn unreadable_lines(&self) -> Result<Vec<UnreadableLines>, Error> {
        Ok(Vec::new())
    }

    /// A number that changes whenever any record changed, by whichever process; cheap.
    async fn version(&self) -> Result<u64, Error>;
}

#[async_trait]
pub trait SnapshotStore: Send + Sync {
    /// Writes a new record, one revision above what it says: 0 for one that never was before, the last one of its earlier life
    /// for one that comes back. `conflict` (`details.field` is `id` or `name`) if its id exists, or its name is
    /// that of one that has not failed, or either is the id of a sandbox, here or in the history. No sandbox is inserted
    /// meanwhile.
    async fn insert(&self, record: SnapshotRecord) -> Result<SnapshotRecord, Error>;

    /// The record with exactly this id.
    async fn get(&self, id: &SnapshotId) -> Result<Option<SnapshotRecord>, Error>;

    /// All records, oldest first.
    async fn list(&self) -> Result<Vec<SnapshotRecord>, Error>;

    /// All records, in the order in which they were inserted, whatever the clock said then.
    async fn list_by_insertion(&self) -> Result<Vec<SnapshotRecord>, Error>;

    /// Changes the record if its revision is still `expected` (`None`: whatever it is), and raises the revision.
    /// `conflict` as [`SandboxStore::update`] has it.
    async fn update(
        &self,
        id: &SnapshotId,
        expected: Option<u64>,
        change: Change<'_, SnapshotRecord>,
    ) -> Result<SnapshotRecord, Error> {
        let mut done = self.update_many(vec![(id.clone(), expected, change)]).await?;
        done.pop()
            .unwrap_or_else(|| Err(Error::internal(format!("the change of {id} came to nothing"))))
    }

    /// [`SandboxStore::update_many`].
    async fn update_many(
        &self,
        changes: Vec<ChangeOf<'_, SnapshotRecord, SnapshotId>>,
    ) -> Result<Vec<Result<SnapshotRecord, Error>>, Error>;

    /// [`Self::update`], for a change that is right only as long as the others are what they are: nobody writes any of
    /// them meanwhile.
    async fn update_among(
        &self,
        id: &SnapshotId,
        expected: Option<u64>,
        change: ChangeAmong<'_, SnapshotRecord>,
    ) -> Result<SnapshotRecord, Error>;

    /// Takes the record out: its archive is gone. The record as it was.
    async fn remove(&self, id: &SnapshotId, expected: Option<u64>)
    -> Result<SnapshotRecord, Error>;

    /// Takes these events, which are in the log by now, out of what is pending on any record: one write for all of them. No
    /// record's revision changes by it, because nothing that anybody decides on does.
    async fn clear_pending(&self, events: &BTreeSet<EventId>) -> Result<(), Error>;

    /// A number that changes whenever any record changed, by whichever process; cheap.
    async fn version(&self) -> Result<u64, Error>;
}

/// The patches. One is written once and never changed; what a sandbox has of it stands on the sandbox.
#[async_trait]
pub trait PatchStore: Send + Sync {
    /// Writes a new patch. `conflict` if its id exists, or its snapshot has one with its sequence.
    async fn insert(&self, patch: Patch) -> Result<Patch, Error>;

    /// All of them, by snapshot and sequence.
    async fn list(&self) -> Result<Vec<Patch>, Error>;

    /// Takes these events, which are in the log by now, out of what is pending on any of them: one write for all.
    async fn clear_pending(&self, events: &BTreeSet<EventId>) -> Result<(), Error>;

    /// Takes it out; `None` if it is not there.
    async fn remove(&self, id: &PatchId) -> Result<Option<Patch>, Error>;

    /// A number that changes whenever any of them changed, by whichever process; cheap.
    async fn version(&self) -> Result<u64, Error>;
}

/// The operations: those that run, and the last day's.
#[async_trait]
pub trait OperationStore: Send + Sync {
    /// Writes an operation, new or changed (by id); drops ended ones older than a day.
    async fn put(&self, operation: Operation) -> Result<(), Error>;
    /// Writes that somebody asks for an operation's end, if it runs; the operation as it is then. Whoever writes its end
    /// meanwhile comes before or after this.
    async fn request_cancel(&self, id: &OperationId) -> Result<Option<Operation>, Error>;
    /// The operation with exactly this id.
    async fn get(&self, id: &OperationId) -> Result<Option<Operation>, Error>;
    /// All that are kept, oldest first.
    async fn list(&self) -> Result<Vec<Operation>, Error>;
    /// A number that changes whenever any of them changed, by whichever process; cheap.
    async fn version(&self) -> Result<u64, Error>;
}

/// The hosts, as what they said last has them known.
#[async_trait]
pub trait HostStore: Send + Sync {
    /// Record of a host; `None` where it was never met.
    async fn get(&self, host: &HostName) -> Result<Option<HostRecord>, Error>;
    /// Changes what is known of a host, of which nothing need be known yet; what `change` leaves as it was is not written.
    async fn update(
        &self,
        host: &HostName,
        change: Change<'_, HostRecord>,
    ) -> Result<HostRecord, Error>;
}

/// The last sweep, by whichever process.
#[async_trait]
pub trait SweepStore: Send + Sync {
    /// Clocks at the last sweep that was noted; `None` where none was.
    async fn last(&self) -> Result<Option<ClockReading>, Error>;
    /// Notes a sweep. What is noted at once by two processes is either.
    async fn note(&self, reading: &ClockReading) -> Result<(), Error>;
    /// Takes the lock of a sweep that wants to be alone. `None`: another one has it.
    async fn try_lock(&self) -> Result<Option<Box<dyn Held>>, Error>;
}

/// Plans of reaps, for as long as they may be applied.
#[async_trait]
pub trait PlanStore: Send + Sync {
    /// Keeps a plan; drops those that are over.
    async fn put(&self, plan: &ReapPlan) -> Result<(), Error>;
    /// The plan with exactly this id; `None` where none is kept any more, or it cannot be read.
    async fn get(&self, id: &PlanId) -> Result<Option<ReapPlan>, Error>;
    /// Clocks at the last plan; `None` where none was made.
    async fn last(&self) -> Result<Option<ClockReading>, Error>;
    async fn note(&self, reading: &ClockReading) -> Result<(), Error>;
    /// Takes the lock of a reap that wants to be alone. `None`: another one has it.
    async fn try_lock(&self) -> Result<Option<Box<dyn Held>>, Error>;
}

/// Query of the event log.
#[derive(Debug, Clone, Default)]
pub struct EventFilter {
    /// Only events after this number.
    pub after_seq: Option<u64>,
    /// Only events at or after this time.
    pub since: Option<Time>,
    /// Only this sandbox's.
    pub sandbox: Option<SandboxId>,
    /// Only these kinds; empty: all.
    pub kinds: Vec<EventKind>,
    /// Only this actor's (`adm:NAME`).
    pub actor: Option<String>,
    /// Only the newest so many of those.
    pub newest: Option<usize>,
}

impl EventFilter {
    /// Whether an event passes.
    pub fn matches(&self, event: &Event) -> bool {
        self.after_seq.is_none_or(|seq| event.seq > seq)
            && self.since.is_none_or(|since| event.time >= since)
            && self.sandbox.as_ref().is_none_or(|id| event.sandbox_id.as_ref() == Some(id))
            && (self.kinds.is_empty() || self.kinds.contains(&event.kind))
            && self.actor.as_ref().is_none_or(|actor| event.actor.to_string() == *actor)
    }
}

/// Page of the event log: what comes after a number, oldest first.
#[derive(Debug, Clone)]
pub struct EventPage {
    /// Number behind which it begins.
    pub after: u64,
    /// Number of the last event that may be on it.
    pub up_to: Option<u64>,
    /// Owner of the order of its events; none: all events.
    pub of: Option<EventsOf>,
    pub at_most: usize,
}

/// The event log: append-only, numbered by itself alone.
#[async_trait]
pub trait EventLog: Send + Sync {
    /// Appends what is not there yet (by id) and numbers it; the events with their numbers, in order.
    async fn append(&self, events: Vec<PendingEvent>) -> Result<Vec<Event>, Error>;
    /// The kept events that pass, in order.
    async fn read(&self, filter: &EventFilter) -> Result<Vec<Event>, Error>;
    /// Events that any process appended after `after`, in order; cheap when there are none.
    async fn tail(&self, after: u64) -> Result<Vec<Event>, Error>;
    /// The last number; 0 when there is none.
    async fn last_seq(&self) -> Result<u64, Error>;
    /// A page of kept events. What comes before it costs nothing.
    async fn page(&self, page: EventPage) -> Result<Vec<Event>, Error>;
    /// Gives up what was kept only until it was delivered. A store that keeps everything has nothing to do.
    async fn drop_delivered(&self) -> Result<(), Error> {
        Ok(())
    }
    /// Lines of the log that cannot be read, and are not among its events; reads all of it. A log that is whole has none.
    async fn unreadable_lines(&self) -> Result<Vec<UnreadableLines>, Error> {
        Ok(Vec::new())
    }
}

/// The ledger of credits: append-only.
#[async_trait]
pub trait CreditStore: Send + Sync {
    /// Sums of its entries; cheap while nothing was appended.
    ///
    /// Errors: `store_corrupt` with the entry that cannot be read: nothing is counted past it.
    async fn sums(&self) -> Result<LedgerSums, Error>;
    /// Appends what is not there yet (by id), all of it or nothing; what was appended, as it was. A charge or release is cut to
    /// what is held, what is about nothing is left out.
    ///
    /// Errors: `insufficient_credits` for a hold above the balance, as that is at that moment.
    async fn append(&self, entries: Vec<LedgerEntry>) -> Result<Vec<LedgerEntry>, Error>;
    /// All entries with the balance behind each, oldest first.
    async fn history(&self) -> Result<Vec<HistoryEntry>, Error>;
    /// Lock of whoever holds credits and then writes that on a record; waits for others'.
    async fn lock_holders(&self) -> Result<Box<dyn Held>, Error>;
}

/// Cursor of the outbox as it is found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CursorFound {
    /// Nothing was ever delivered.
    None,
    Cursor(Cursor),
    /// Cursor cannot be read: nobody knows what was delivered.
    Unreadable,
}

/// The outbox: how far the event log was delivered, and what will never be.
#[async_trait]
pub trait OutboxStore: Send + Sync {
    /// Takes the lock of who delivers. `None`: another process has it.
    async fn try_lock(&self) -> Result<Option<Box<dyn Held>>, Error>;
    /// Cursor as it was written last.
    ///
    /// Errors: `store_foreign` for one of a newer version.
    async fn cursor(&self) -> Result<CursorFound, Error>;
    /// Writes the cursor; one that cannot be read is kept beside it. Call it under the lock.
    async fn write(&self, cursor: &Cursor) -> Result<(), Error>;
    /// Writes letters to the dead letter, for good. Call it under the lock.
    async fn give_up(&self, letters: Vec<DeadLetter>) -> Result<(), Error>;
    /// Events of the dead letter, and where it is.
    async fn dead(&self) -> Result<(u64, String), Error>;
}

/// A lock that is freed when it is dropped or when its process dies.
pub trait Held: Send + Sync {}

/// Two locks are held as one.
impl Held for (Box<dyn Held>, Box<dyn Held>) {}

/// Locks across processes, one per sandbox and one per snapshot.
#[async_trait]
pub trait Locks: Send + Sync {
    /// Takes the sandbox's operation lock if it is free. `None`: somebody holds it.
    async fn try_lock(&self, id: &SandboxId) -> Result<Option<Box<dyn Held>>, Error>;
    /// Takes a snapshot's operation lock if it is free: of one that is made, copied, deleted or gets a patch. Restores only
    /// read, and take none. `None`: somebody holds it.
    async fn try_lock_snapshot(&self, id: &SnapshotId) -> Result<Option<Box<dyn Held>>, Error>;
    /// Drops what is kept for locks of sandboxes that are not among `live`, unless somebody holds them.
    async fn tidy(&self, live: BTreeSet<SandboxId>) -> Result<(), Error>;
}

/// Installation: its owner ids, its machine, its counter.
#[async_trait]
pub trait Installation: Send + Sync {
    /// Id of this machine; nothing is written for it.
    fn machine_id(&self) -> &str;
    /// Raises the counter and returns what the next prepare call writes to the host.
    async fn next_stamp(&self) -> Result<OwnerStamp, Error>;
    /// The owner ids that count as ours, the one for new sandboxes first. The first one is made when asked for.
    async fn owners(&self) -> Result<Vec<OwnerId>, Error>;
    /// Stamp that the last prepare call wrote to its host, by whichever process.
    async fn stamp(&self) -> Result<OwnerStamp, Error>;
    /// Whether this directory may act for what its records name.
    async fn ownership(&self) -> Result<Ownership, Error>;
    /// Notes the counter that a host has. Higher than ours, it says that we are an old copy, until `claim`.
    async fn seen_on(&self, host: &HostName, counter: u64) -> Result<Ownership, Error>;
    /// Makes this machine the installation's from now on, and raises the counter above its own and `counters_seen`: hosts
    /// are to be told that, so that every other copy is behind them.
    async fn claim(&self, counters_seen: u64) -> Result<OwnerStamp, Error>;
    /// Counter of each owner id that counts as ours, as far as it is known here.
    async fn owner_counters(&self) -> Result<BTreeMap<OwnerId, u64>, Error>;
    /// Makes an owner id one of ours, with a counter above `counter_seen`: what hosts are to be told, so that whoever else has it is
    /// the one behind.
    async fn adopt_owner(&self, owner: &OwnerId, counter_seen: u64) -> Result<OwnerStamp, Error>;
}

/// Profiles by content, so that a sandbox can be made again as it was although the catalogue changed.
#[async_trait]
pub trait PinnedProfileStore: Send + Sync {
    /// Keeps a profile under its hash.
    async fn put(&self, profile: &Profile) -> Result<(), Error>;
    async fn get(&self, hash: &str) -> Result<Option<Profile>, Error>;
}
