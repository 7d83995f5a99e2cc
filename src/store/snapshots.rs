//! `snapshots.json`.

use std::sync::Arc;

use async_trait::async_trait;

use crate::domain::fault::{Code, Fault};
use crate::domain::name::SnapshotId;
use crate::domain::snapshot::{SnapshotRecord, SnapshotState};
use crate::store::document::Document;
use crate::store::entry::{Entry, Record};
use crate::store::files::DataDir;
use crate::store::{Change, SnapshotStore};

impl Record for SnapshotRecord {}

/// The snapshots, in a file.
pub struct SnapshotFile {
    document: Document<SnapshotRecord>,
}

impl SnapshotFile {
    pub(super) fn new(dir: &DataDir) -> Self {
        Self { document: Document::new(dir, "snapshots") }
    }
}

/// The loser of a race gets the record as it is.
fn conflict(message: impl Into<String>, field: &str, current: &SnapshotRecord) -> Fault {
    let current = serde_json::to_value(current).unwrap_or_default();
    Fault::new(Code::Conflict, message).detail("field", field).detail("current", current)
}

/// The name that a record keeps from others: none once it has failed.
fn name_in_use(record: &SnapshotRecord) -> Option<&str> {
    record.name.as_deref().filter(|_| record.state != SnapshotState::Failed)
}

/// Whether a record's id or name is another one's already. `others` are without the record itself.
fn refuse_taken<'a>(
    record: &SnapshotRecord,
    others: impl IntoIterator<Item = &'a SnapshotRecord>,
) -> Result<(), Fault> {
    let name = name_in_use(record);
    for other in others {
        if other.id == record.id {
            return Err(conflict(format!("there is a snapshot with the id {}", record.id), "id", other));
        }
        if name.is_some() && name_in_use(other) == name {
            let message = format!("the name {} is taken by the snapshot {}", record.title(), other.id);
            return Err(conflict(message, "name", other).hint("choose another name, or delete that snapshot first"));
        }
    }
    Ok(())
}

fn missing(id: &SnapshotId) -> Fault {
    Fault::new(Code::NotFound, format!("there is no snapshot {id}")).detail("id", id.as_str())
}

#[async_trait]
impl SnapshotStore for SnapshotFile {
    async fn insert(&self, mut record: SnapshotRecord) -> Result<SnapshotRecord, Fault> {
        let writing = self.document.write().await?;
        refuse_taken(&record, writing.content.records()?.into_iter().map(|other| &**other))?;
        record.revision = 1;
        let mut entries = writing.content.entries.clone();
        entries.push(Arc::new(Entry::new(record.clone(), None)?));
        self.document.commit(writing, entries).await?;
        Ok(record)
    }

    async fn get(&self, id: &SnapshotId) -> Result<Option<SnapshotRecord>, Fault> {
        Ok(self.document.read().await?.find(id.as_str())?.map(|(_, record)| SnapshotRecord::clone(record)))
    }

    async fn list(&self) -> Result<Vec<SnapshotRecord>, Fault> {
        let content = self.document.read().await?;
        let mut records: Vec<SnapshotRecord> =
            content.records()?.into_iter().map(|record| SnapshotRecord::clone(record)).collect();
        records.sort_by(|a, b| (a.created_at, &a.id).cmp(&(b.created_at, &b.id)));
        Ok(records)
    }

    async fn update(
        &self,
        id: &SnapshotId,
        expected: Option<u64>,
        change: Change<'_, SnapshotRecord>,
    ) -> Result<SnapshotRecord, Fault> {
        let writing = self.document.write().await?;
        let content = Arc::clone(&writing.content);
        let Some((index, old)) = content.find(id.as_str())? else { return Err(missing(id)) };
        if let Some(expected) = expected
            && expected != old.revision
        {
            return Err(conflict(format!("snapshot {id} was changed by somebody else meanwhile"), "revision", old)
                .hint("look at it again, then decide")
                .detail("expected", expected));
        }
        let mut new = SnapshotRecord::clone(old);
        change(&mut new)?;
        new.revision = old.revision + 1;
        if new.id != old.id {
            return Err(Fault::internal(format!("a change of {id} tried to give it another id")));
        }
        if !old.state.may_become(&new.state) {
            let message = format!("snapshot {id} is {}; it cannot become {}", old.state, new.state);
            return Err(conflict(message, "state", old)
                .detail("from", old.state.as_str())
                .detail("to", new.state.as_str()));
        }
        if name_in_use(&new) != name_in_use(old) {
            let others = content.records()?.into_iter().map(|other| &**other).filter(|other| other.id != old.id);
            refuse_taken(&new, others)?;
        }
        let mut entries = content.entries.clone();
        entries[index] = Arc::new(Entry::new(new.clone(), Some(&content.entries[index]))?);
        self.document.commit(writing, entries).await?;
        Ok(new)
    }

    async fn remove(&self, id: &SnapshotId, expected: Option<u64>) -> Result<SnapshotRecord, Fault> {
        let writing = self.document.write().await?;
        let content = Arc::clone(&writing.content);
        let Some((index, old)) = content.find(id.as_str())? else { return Err(missing(id)) };
        if let Some(expected) = expected
            && expected != old.revision
        {
            return Err(conflict(format!("snapshot {id} was changed by somebody else meanwhile"), "revision", old));
        }
        let mut entries = content.entries.clone();
        entries.remove(index);
        let gone = SnapshotRecord::clone(old);
        self.document.commit(writing, entries).await?;
        Ok(gone)
    }

    async fn version(&self) -> Result<u64, Fault> {
        self.document.version().await
    }
}
