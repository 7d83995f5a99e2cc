//! `snapshots.json`.

use std::collections::BTreeSet;
use std::sync::Arc;

use async_trait::async_trait;
use serde_json::Value;

use crate::domain::error::{Code, Error, Unique};
use crate::domain::name::{EventId, SnapshotId};
use crate::domain::{SandboxRecord, SnapshotRecord};
use crate::store::content::Content;
use crate::store::document::Document;
use crate::store::document_entry::{DocumentEntry, Record};
use crate::store::history::History;
use crate::store::named_files::NamedFiles;
use crate::store::writing::Writing;
use crate::store::{ChangeAmong, ChangeOf, SnapshotStore};

impl Record for SnapshotRecord {
    fn key(&self) -> &str {
        self.id.as_str()
    }

    fn bring_up_to_date(record: &mut Value) {
        if let Value::Object(record) = record {
            SnapshotRecord::bring_up_to_date(record);
        }
    }
}

/// The snapshots, in a file.
pub struct SnapshotFile {
    document: Arc<Document<SnapshotRecord>>,
    history: History,
    sandboxes: Arc<Document<SandboxRecord>>,
}

impl SnapshotFile {
    pub(super) fn new(files: &NamedFiles) -> Self {
        let NamedFiles { sandboxes, history, snapshots } = files.clone();
        Self { document: snapshots, history, sandboxes }
    }

    /// Whether what a snapshot wants to be called is the id of a sandbox. `sandboxes` are in a turn to write.
    async fn refuse_sandbox(
        &self,
        record: &SnapshotRecord,
        sandboxes: &Content<SandboxRecord>,
    ) -> Result<(), Error> {
        for (what, word) in
            [(Unique::Id, Some(record.id.as_str())), (Unique::Name, record.name_in_use())]
        {
            let Some(word) = word else { continue };
            let there = sandboxes.entries.iter().any(|entry| entry.key() == Some(word));
            if there || self.history.has(word).await? {
                let message = format!(
                    "{word} is the id of a sandbox, so it cannot be a snapshot's {}",
                    what.field()
                );
                return Err(Error::taken(what, message).hint("choose another name"));
            }
        }
        Ok(())
    }
}

/// Changes one of these, of which earlier changes of the same turn may be a part.
fn change_one(
    writing: &mut Writing<SnapshotRecord>,
    index: usize,
    expected: Option<u64>,
    change: impl FnOnce(&mut SnapshotRecord) -> Result<(), Error>,
) -> Result<SnapshotRecord, Error> {
    let old = Arc::clone(writing.record(index)?);
    if let Some(expected) = expected
        && expected != old.revision
    {
        return Err(changed_meanwhile(&old)
            .hint("look at it again, then decide")
            .detail("expected", expected));
    }
    let mut new = SnapshotRecord::clone(&old);
    change(&mut new)?;
    new.revision = old.revision + 1;
    if new.id != old.id {
        return Err(Error::internal(format!("a change of {} tried to give it another id", old.id)));
    }
    if !old.state.may_become(&new.state) {
        let message =
            format!("snapshot {} is {}; it cannot become {}", old.id, old.state, new.state);
        return Err(conflict(message, "state", &old)
            .detail("from", old.state.as_str())
            .detail("to", new.state.as_str()));
    }
    if new.name_in_use() != old.name_in_use() {
        let all = writing.records()?.into_iter().map(|other| &**other);
        refuse_taken(&new, all.filter(|other| other.id != old.id))?;
    }
    writing.replace(index, new.clone())?;
    Ok(new)
}

fn changed_meanwhile(current: &SnapshotRecord) -> Error {
    let message = format!("snapshot {} was changed by somebody else meanwhile", current.id);
    conflict(message, "revision", current)
}

/// The loser of a race gets the record as it is.
fn conflict(message: impl Into<String>, field: &str, current: &SnapshotRecord) -> Error {
    let current = serde_json::to_value(current).unwrap_or_default();
    Error::new(Code::Conflict, message).detail("field", field).detail("current", current)
}

/// A record that wants to be called what another is, which is there to be read.
fn taken(message: impl Into<String>, what: Unique, current: &SnapshotRecord) -> Error {
    Error::taken(what, message).detail("current", serde_json::to_value(current).unwrap_or_default())
}

/// Whether a record's id or name is another one's already. `others` are without the record itself.
fn refuse_taken<'a>(
    record: &SnapshotRecord,
    others: impl IntoIterator<Item = &'a SnapshotRecord>,
) -> Result<(), Error> {
    let name = record.name_in_use();
    for other in others {
        if other.id == record.id {
            return Err(taken(
                format!("there is a snapshot with the id {}", record.id),
                Unique::Id,
                other,
            ));
        }
        if name.is_some() && other.name_in_use() == name {
            let message =
                format!("the name {} is taken by the snapshot {}", record.title(), other.id);
            return Err(taken(message, Unique::Name, other)
                .hint("choose another name, or delete that snapshot first"));
        }
    }
    Ok(())
}

fn missing(id: &SnapshotId) -> Error {
    Error::new(Code::NotFound, format!("there is no snapshot {id}")).detail("id", id.as_str())
}

#[async_trait]
impl SnapshotStore for SnapshotFile {
    async fn insert(&self, mut record: SnapshotRecord) -> Result<SnapshotRecord, Error> {
        // Held to the end: nobody makes a sandbox with this name as its id meanwhile.
        let sandboxes = self.sandboxes.write().await?;
        let mut writing = self.document.write().await?;
        self.refuse_sandbox(&record, &sandboxes.content).await?;
        refuse_taken(&record, writing.content.records()?.into_iter().map(|other| &**other))?;
        record.revision += 1;
        writing.add(record.clone())?;
        self.document.commit(writing).await?;
        drop(sandboxes);
        Ok(record)
    }

    async fn get(&self, id: &SnapshotId) -> Result<Option<SnapshotRecord>, Error> {
        Ok(self
            .document
            .read()
            .await?
            .find(id.as_str())?
            .map(|(_, record)| SnapshotRecord::clone(record)))
    }

    async fn list(&self) -> Result<Vec<SnapshotRecord>, Error> {
        let content = self.document.read().await?;
        let mut records: Vec<SnapshotRecord> =
            content.records()?.into_iter().map(|record| SnapshotRecord::clone(record)).collect();
        records.sort_by(|a, b| (a.created_at, &a.id).cmp(&(b.created_at, &b.id)));
        Ok(records)
    }

    async fn list_by_insertion(&self) -> Result<Vec<SnapshotRecord>, Error> {
        // New ones are written behind the others, and none changes its place.
        let content = self.document.read().await?;
        Ok(content.records()?.into_iter().map(|record| SnapshotRecord::clone(record)).collect())
    }

    async fn update_many(
        &self,
        changes: Vec<ChangeOf<'_, SnapshotRecord, SnapshotId>>,
    ) -> Result<Vec<Result<SnapshotRecord, Error>>, Error> {
        let mut writing = self.document.write().await?;
        let places = writing.content.places(changes.iter().map(|(id, ..)| id.as_str()));
        let mut outcomes = Vec::with_capacity(changes.len());
        for (id, expected, change) in changes {
            let place = places.get(id.as_str());
            outcomes.push(match place {
                Some(index) => change_one(&mut writing, *index, expected, change),
                None => Err(missing(&id)),
            });
        }
        if outcomes.iter().any(Result::is_ok) {
            self.document.commit(writing).await?;
        }
        Ok(outcomes)
    }

    async fn update_among(
        &self,
        id: &SnapshotId,
        expected: Option<u64>,
        change: ChangeAmong<'_, SnapshotRecord>,
    ) -> Result<SnapshotRecord, Error> {
        let mut writing = self.document.write().await?;
        let content = Arc::clone(&writing.content);
        let Some((index, _)) = content.find(id.as_str())? else { return Err(missing(id)) };
        let all: Vec<_> = content.records()?.into_iter().map(|record| &**record).collect();
        let among = |record: &mut SnapshotRecord| change(record, &all);
        let changed = change_one(&mut writing, index, expected, among)?;
        self.document.commit(writing).await?;
        Ok(changed)
    }

    async fn remove(
        &self,
        id: &SnapshotId,
        expected: Option<u64>,
    ) -> Result<SnapshotRecord, Error> {
        let mut writing = self.document.write().await?;
        let content = Arc::clone(&writing.content);
        let Some((index, old)) = content.find(id.as_str())? else { return Err(missing(id)) };
        if let Some(expected) = expected
            && expected != old.revision
        {
            return Err(changed_meanwhile(old));
        }
        writing.remove(index);
        let gone = SnapshotRecord::clone(old);
        self.document.commit(writing).await?;
        Ok(gone)
    }

    async fn clear_pending(&self, events: &BTreeSet<EventId>) -> Result<(), Error> {
        let without = |_: &DocumentEntry<_>, record: &SnapshotRecord| {
            record.pending.iter().any(|event| events.contains(&event.id)).then(|| {
                let mut record = SnapshotRecord::clone(record);
                record.pending.retain(|event| !events.contains(&event.id));
                record
            })
        };
        self.document.rewrite(without).await.map(|_| ())
    }

    async fn version(&self) -> Result<u64, Error> {
        self.document.version().await
    }
}
