//! The records of snapshots: reading them, and writing them with the events that a write causes.

use std::sync::Arc;

use crate::domain::error::{Code, Error, Kind};
use crate::domain::event::{PendingEvent, Update, derived_event_id};
use crate::domain::lineage::{Lineage, SnapshotView};
use crate::domain::name::{EventId, OperationId, SnapshotId};
use crate::domain::operation::{Operation, OperationKind, Subject};
use crate::domain::request::SnapshotQuery;
use crate::domain::sandbox::SandboxRecord;
use crate::domain::snapshot::{SnapshotKind, SnapshotRecord, SnapshotState};
use crate::domain::text::nearest;
use crate::manager::SandboxManager;
use crate::manager::record::News;

impl SandboxManager {
    /// Snapshots with what hangs on them, oldest first. Undo snapshots and failed ones only with `all`.
    pub async fn snapshots(&self, query: &SnapshotQuery) -> Result<Vec<Arc<SnapshotView>>, Error> {
        let (records, patches, sandboxes) = self.all_of_snapshots().await?;
        let shown = |record: &&SnapshotRecord| {
            query.all || record.kind == SnapshotKind::User && record.state != SnapshotState::Failed
        };
        let view =
            |record| SnapshotView::of(record, &patches, sandboxes.iter().map(|s| &**s), &records);
        Ok(records.iter().filter(shown).map(|record| Arc::new(view(record))).collect())
    }

    /// The snapshot that a reference means, with what hangs on it.
    pub async fn snapshot_view(&self, reference: &str) -> Result<SnapshotView, Error> {
        let (records, patches, sandboxes) = self.all_of_snapshots().await?;
        let record = find(&records, reference)?;
        Ok(SnapshotView::of(record, &patches, sandboxes.iter().map(|s| &**s), &records))
    }

    async fn all_of_snapshots(
        &self,
    ) -> Result<(Vec<SnapshotRecord>, Vec<crate::domain::Patch>, Vec<Arc<SandboxRecord>>), Error>
    {
        let parts = &self.parts;
        tokio::try_join!(parts.snapshots.list(), parts.patches.list(), parts.sandboxes.list())
    }

    /// The snapshot that an exact id, an exact name or a unique beginning of an id means.
    pub(super) async fn find_snapshot(&self, reference: &str) -> Result<SnapshotRecord, Error> {
        find(&self.parts.snapshots.list().await?, reference).cloned()
    }

    /// The snapshot with exactly this id, at this revision.
    pub(super) async fn exact_snapshot(
        &self,
        id: &str,
        revision: Option<u64>,
    ) -> Result<SnapshotRecord, Error> {
        let record = self.find_snapshot(id).await?;
        if record.id.as_str() != id {
            return Err(Error::new(
                Code::NotFound,
                format!("there is no snapshot with the id {id}"),
            ));
        }
        match revision {
            Some(seen) if seen != record.revision => Err(Error::new(
                Code::Conflict,
                format!("snapshot {id} changed since it was looked at"),
            )
            .of_kind(Kind::Stale)
            .hint("look again, then decide")
            .detail("expected", seen)
            .detail("current", serde_json::to_value(&record).unwrap_or_default())),
            _ => Ok(record),
        }
    }

    /// Where a sandbox comes from, and the snapshots taken of it.
    pub async fn lineage(&self, id: &str) -> Result<Lineage, Error> {
        let record = self.get(id).await?;
        Ok(Lineage::of(&record, &self.parts.snapshots.list().await?))
    }

    /// Changes a snapshot's record and appends the events that this causes, as `transition` does for a sandbox.
    pub(super) async fn transition_snapshot(
        &self,
        id: &SnapshotId,
        expected: Option<u64>,
        news: Vec<News>,
        change: impl FnOnce(&mut SnapshotRecord) -> Result<(), Error> + Send,
    ) -> Result<SnapshotRecord, Error> {
        let settled = self.settle_snapshot(id).await?;
        let account = self.account_for(settled, news);
        let change = move |record: &mut SnapshotRecord| change(record).map(|()| account(record));
        let record = self.parts.snapshots.update(id, expected, Box::new(change)).await?;
        self.append_pending_of(&record.pending).await;
        self.jobs.publish(Update::Snapshots);
        Ok(record)
    }

    /// As [`Self::transition_snapshot`], without events, for a change that also looks at all the others, in the order in
    /// which they came.
    pub(super) async fn transition_among(
        &self,
        id: &SnapshotId,
        expected: Option<u64>,
        change: impl FnOnce(&mut SnapshotRecord, &[&SnapshotRecord]) -> Result<(), Error> + Send,
    ) -> Result<SnapshotRecord, Error> {
        let settled = self.settle_snapshot(id).await?;
        let account = self.account_for(settled, Vec::new());
        let change = move |record: &mut SnapshotRecord, all: &[&SnapshotRecord]| {
            change(record, all).map(|()| account(record))
        };
        let record = self.parts.snapshots.update_among(id, expected, Box::new(change)).await?;
        self.append_pending_of(&record.pending).await;
        self.jobs.publish(Update::Snapshots);
        Ok(record)
    }

    /// Puts the events that a write causes onto the record, and takes those off that are in the log.
    fn account_for(
        &self,
        settled: Vec<EventId>,
        news: Vec<News>,
    ) -> impl FnOnce(&mut SnapshotRecord) + Send + use<> {
        let now = self.now();
        let actor = self.actor();
        move |record| {
            record.pending.retain(|event| !settled.contains(&event.id));
            let revision = record.revision + 1;
            let caused: Vec<PendingEvent> = news
                .into_iter()
                .map(|(kind, data)| PendingEvent {
                    id: derived_event_id(record.id.as_str(), revision, &kind),
                    time: now,
                    kind,
                    sandbox_id: Some(record.sandbox_id.clone()),
                    actor: actor.clone(),
                    data: about(record, revision, data),
                })
                .collect();
            record.pending.extend(caused);
        }
    }

    /// Appends what earlier writers of this record left pending; the ids that are in the log now.
    async fn settle_snapshot(&self, id: &SnapshotId) -> Result<Vec<EventId>, Error> {
        let Some(record) = self.parts.snapshots.get(id).await? else { return Ok(Vec::new()) };
        Ok(self.told(record.pending).await)
    }

    /// A new operation of this process on a snapshot.
    pub(super) fn new_snapshot_operation(
        &self,
        kind: OperationKind,
        snapshot: &SnapshotId,
    ) -> Operation {
        let id = crate::domain::SandboxId::new(String::new());
        Operation { subject: Subject::Snapshot(snapshot.clone()), ..self.new_operation(kind, &id) }
    }

    /// Waits for the end of an operation on a snapshot; the record as it is then. One that was deleted is told as it was.
    pub async fn finish_snapshot(&self, id: &OperationId) -> Result<SnapshotRecord, Error> {
        self.wait(id).await?.into_snapshot()
    }
}

/// An event's particulars, with the snapshot they are about and the revision that caused them: an id that comes back with an
/// import goes on behind it, since an event's id derives from both.
fn about(record: &SnapshotRecord, revision: u64, mut data: serde_json::Value) -> serde_json::Value {
    if let Some(map) = data.as_object_mut() {
        map.insert("revision".to_owned(), revision.into());
        map.insert("snapshot_id".to_owned(), record.id.as_str().into());
        map.insert("snapshot_name".to_owned(), record.name.as_deref().into());
    }
    data
}

fn find<'a>(records: &'a [SnapshotRecord], reference: &str) -> Result<&'a SnapshotRecord, Error> {
    if let Some(found) = records.iter().find(|record| record.id.as_str() == reference) {
        return Ok(found);
    }
    let named = |record: &&SnapshotRecord| record.name.as_deref() == Some(reference);
    let living =
        records.iter().rev().filter(|record| record.state != SnapshotState::Failed).find(named);
    if let Some(found) = living.or_else(|| records.iter().rev().find(named)) {
        return Ok(found);
    }
    let long = reference.strip_prefix("snap-").is_some_and(|rest| rest.len() >= 4);
    let matches: Vec<&SnapshotRecord> =
        records.iter().filter(|record| long && record.id.as_str().starts_with(reference)).collect();
    match matches.as_slice() {
        [one] => Ok(one),
        [] => Err(not_found(records, reference)),
        several => {
            let ids: Vec<&str> = several.iter().map(|record| record.id.as_str()).collect();
            Err(Error::new(
                Code::Conflict,
                format!("several snapshots begin with that: {}", ids.join(", ")),
            )
            .hint("write more of the id")
            .detail("matches", ids))
        }
    }
}

fn not_found(records: &[SnapshotRecord], reference: &str) -> Error {
    let shown: String = reference.chars().take(80).collect();
    let fault = Error::new(Code::NotFound, format!("there is no snapshot {shown:?}"));
    let known = records
        .iter()
        .flat_map(|record| record.name.as_deref().into_iter().chain([record.id.as_str()]));
    match nearest(&shown, known) {
        Some(near) => fault.hint(format!("did you mean {near}?")),
        None => fault.hint("`sandboxer snapshots list` shows what there is"),
    }
}
