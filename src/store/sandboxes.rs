//! `sandboxes.json`, and the history its records go to.

use std::collections::{BTreeSet, HashSet};
use std::sync::Arc;

use async_trait::async_trait;

use crate::domain::error::{Code, Error, Unique};
use crate::domain::name::{EventId, SandboxId, is_hex8};
use crate::domain::{SandboxRecord, SnapshotRecord, State, Time};
use crate::store::document::Document;
use crate::store::document_entry::DocumentEntry;
use crate::store::files::blocking;
use crate::store::history::History;
use crate::store::named_files::NamedFiles;
use crate::store::writing::Writing;
use crate::store::{Admit, Change, ChangeOf, SandboxStore, UnreadableLines};

/// The sandboxes, in files.
pub struct SandboxFile {
    document: Arc<Document<SandboxRecord>>,
    history: History,
    snapshots: Arc<Document<SnapshotRecord>>,
}

impl SandboxFile {
    pub(super) fn new(files: &NamedFiles) -> Self {
        let NamedFiles { sandboxes, history, snapshots } = files.clone();
        Self { document: sandboxes, history, snapshots }
    }

    /// Whether what a record wants to be called is the id of one in the history, or a snapshot's. Asked in a turn to write: a
    /// record on its way to the history is in one of the two, and no snapshot comes meanwhile.
    async fn refuse_elsewhere(&self, record: &SandboxRecord) -> Result<(), Error> {
        if self.history.has(record.id.as_str()).await? {
            return Err(Error::taken(
                Unique::Id,
                format!("there was a sandbox with the id {}", record.id),
            )
            .hint("an id is used once; choose another"));
        }
        self.refuse_old_id(record.name_in_use()).await?;
        let id = record.id.as_str();
        // Shape of a random id, which no snapshot is called.
        if is_hex8(id) {
            return Ok(());
        }
        let snapshots = self.snapshots.read().await?;
        let called =
            |one: &&Arc<SnapshotRecord>| one.id.as_str() == id || one.name_in_use() == Some(id);
        match snapshots.records()?.into_iter().find(called) {
            Some(one) => Err(Error::taken(
                Unique::Id,
                format!("{id} is the name of the snapshot {}", one.id),
            )
            .hint("choose another id")
            .detail("current", serde_json::to_value(&**one).unwrap_or_default())),
            None => Ok(()),
        }
    }

    /// Changes one of these, of which earlier changes of the same turn may be a part.
    async fn change(
        &self,
        writing: &mut Writing<SandboxRecord>,
        index: usize,
        expected: Option<u64>,
        change: Change<'_, SandboxRecord>,
    ) -> Result<SandboxRecord, Error> {
        let old = Arc::clone(writing.record(index)?);
        if let Some(expected) = expected
            && expected != old.revision
        {
            let message = format!("sandbox {} was changed by somebody else meanwhile", old.id);
            return Err(conflict(message, "revision", &old)
                .hint("look at it again, then decide")
                .detail("expected", expected));
        }
        let mut new = SandboxRecord::clone(&old);
        change(&mut new)?;
        new.revision = old.revision + 1;
        refuse_illegal(&old, &new)?;
        let takes_name = new.name_in_use() != old.name_in_use() && new.name_in_use().is_some();
        if takes_name || new.idempotency_key != old.idempotency_key {
            let all = writing.records()?.into_iter().map(|other| &**other);
            let others: Vec<_> = all.filter(|other| other.id != old.id).collect();
            refuse_taken(&new, &others)?;
            self.refuse_old_id(new.name_in_use().filter(|_| new.name != old.name)).await?;
        }
        writing.replace(index, new).map(|written| SandboxRecord::clone(written))
    }

    async fn refuse_old_id(&self, name: Option<&str>) -> Result<(), Error> {
        match name {
            Some(name) if self.history.has(name).await? => Err(Error::taken(
                Unique::Name,
                format!("{name} is the id of a sandbox, so it cannot be a name"),
            )
            .hint("choose another name")),
            _ => Ok(()),
        }
    }
}

/// The loser of a race gets the record as it is.
fn conflict(message: impl Into<String>, field: &str, current: &SandboxRecord) -> Error {
    let current = serde_json::to_value(current).unwrap_or_default();
    Error::new(Code::Conflict, message).detail("field", field).detail("current", current)
}

/// A record that wants to be called what another is, which is there to be read.
fn taken(message: impl Into<String>, what: Unique, current: &SandboxRecord) -> Error {
    Error::taken(what, message).detail("current", serde_json::to_value(current).unwrap_or_default())
}

/// Whether a record's key, id or name is another one's already. `others` are without the record itself.
fn refuse_taken(record: &SandboxRecord, others: &[&SandboxRecord]) -> Result<(), Error> {
    // The key first: a repeated request has the same name too, and must learn that it is a repeat.
    let same_key = |other: &&&SandboxRecord| other.idempotency_key == record.idempotency_key;
    if record.idempotency_key.is_some()
        && let Some(other) = others.iter().find(same_key)
    {
        let message = format!("the sandbox {} was made under this idempotency key", other.id);
        return Err(taken(message, Unique::IdempotencyKey, other));
    }
    let name = record.name_in_use();
    for other in others {
        if other.id == record.id {
            return Err(taken(
                format!("there is a sandbox with the id {}", record.id),
                Unique::Id,
                other,
            )
            .hint("an id is used once; choose another"));
        }
        if other.name_in_use() == Some(record.id.as_str()) {
            return Err(taken(
                format!("{} is the name of the sandbox {}", record.id, other.id),
                Unique::Id,
                other,
            )
            .hint("choose another id"));
        }
        let Some(name) = name else { continue };
        if other.name_in_use() == Some(name) {
            return Err(taken(
                format!("the name {name} is taken by the sandbox {}", other.id),
                Unique::Name,
                other,
            )
            .hint("choose another name, or destroy that sandbox first"));
        }
        if other.id.as_str() == name {
            return Err(taken(
                format!("{name} is the id of a sandbox, so it cannot be a name"),
                Unique::Name,
                other,
            )
            .hint("choose another name"));
        }
    }
    Ok(())
}

/// Changes that no update may make, whoever asks.
fn refuse_illegal(old: &SandboxRecord, new: &SandboxRecord) -> Result<(), Error> {
    if new.id != old.id {
        return Err(Error::internal(format!("a change of {} tried to give it another id", old.id)));
    }
    if !old.state.may_become(&new.state) {
        return Err(conflict(
            format!("sandbox {} is {}; it cannot become {}", old.id, old.state, new.state),
            "state",
            old,
        )
        .detail("from", old.state.as_str())
        .detail("to", new.state.as_str()));
    }
    Ok(())
}

/// Whether a record goes to the history. A forgotten one stays: its tombstone waits for the host.
fn is_archivable(record: &SandboxRecord, before: Time) -> bool {
    record.state == State::Destroyed
        && record.since < before
        && record.pending.is_empty()
        && record.operation.is_none()
}

/// Text of a record on one line.
fn on_one_line(text: &str) -> Result<String, Error> {
    if !text.contains(['\n', '\r']) {
        return Ok(text.to_owned());
    }
    let value: serde_json::Value = serde_json::from_str(text)
        .map_err(|error| Error::internal("a record cannot be put on one line").because(error))?;
    Ok(value.to_string())
}

fn oldest_first(records: &mut [Arc<SandboxRecord>]) {
    records.sort_by(|a, b| (a.created_at, &a.id).cmp(&(b.created_at, &b.id)));
}

#[async_trait]
impl SandboxStore for SandboxFile {
    async fn insert_if(
        &self,
        mut record: SandboxRecord,
        admit: Admit<'_>,
    ) -> Result<SandboxRecord, Error> {
        let mut writing = self.document.write().await?;
        {
            let others: Vec<&SandboxRecord> =
                writing.content.records()?.into_iter().map(|other| &**other).collect();
            refuse_taken(&record, &others)?;
            admit(&others)?;
        }
        self.refuse_elsewhere(&record).await?;
        record.revision = 1;
        let written = SandboxRecord::clone(writing.add(record)?);
        self.document.commit(writing).await?;
        Ok(written)
    }

    async fn get(&self, id: &SandboxId) -> Result<Option<SandboxRecord>, Error> {
        Ok(self
            .document
            .read()
            .await?
            .find(id.as_str())?
            .map(|(_, record)| SandboxRecord::clone(record)))
    }

    async fn list(&self) -> Result<Vec<Arc<SandboxRecord>>, Error> {
        let content = self.document.read().await?;
        let mut records: Vec<_> = content.records()?.into_iter().cloned().collect();
        oldest_first(&mut records);
        Ok(records)
    }

    async fn update_many(
        &self,
        changes: Vec<ChangeOf<'_>>,
    ) -> Result<Vec<Result<SandboxRecord, Error>>, Error> {
        let mut writing = self.document.write().await?;
        let places = writing.content.places(changes.iter().map(|(id, ..)| id.as_str()));
        let mut outcomes = Vec::with_capacity(changes.len());
        for (id, expected, change) in changes {
            let outcome = match places.get(id.as_str()) {
                Some(index) => self.change(&mut writing, *index, expected, change).await,
                None => Err(Error::new(Code::NotFound, format!("there is no sandbox {id}"))
                    .detail("id", id.as_str())),
            };
            outcomes.push(outcome);
        }
        if outcomes.iter().any(Result::is_ok) {
            self.document.commit(writing).await?;
        }
        Ok(outcomes)
    }

    async fn clear_pending(&self, events: &BTreeSet<EventId>) -> Result<(), Error> {
        let without = |_: &DocumentEntry<_>, record: &SandboxRecord| {
            record.pending.iter().any(|event| events.contains(&event.id)).then(|| {
                let mut record = SandboxRecord::clone(record);
                record.pending.retain(|event| !events.contains(&event.id));
                record
            })
        };
        self.document.rewrite(without).await.map(|_| ())
    }

    async fn renew(&self) -> Result<usize, Error> {
        // Mostly there is none: that needs no lock.
        if !self.document.read().await?.entries.iter().any(|entry| entry.is_of_earlier_version()) {
            return Ok(0);
        }
        let anew = |entry: &DocumentEntry<_>, record: &SandboxRecord| {
            entry.is_of_earlier_version().then(|| record.clone())
        };
        self.document.rewrite(anew).await
    }

    async fn archive(&self, before: Time) -> Result<usize, Error> {
        let due = |entry: &&Arc<DocumentEntry<SandboxRecord>>| {
            entry.read().is_ok_and(|record| is_archivable(record, before))
        };
        // Mostly nothing is due: that needs no lock.
        if self.document.read().await?.entries.iter().find(due).is_none() {
            return Ok(0);
        }
        let mut writing = self.document.write().await?;
        let mut going = Vec::new();
        for entry in writing.content.entries.iter().filter(due) {
            let id = entry.key().unwrap_or_default().to_owned();
            going.push((id, on_one_line(entry.text(&writing.file))?));
        }
        let count = going.len();
        if count == 0 {
            return Ok(0);
        }
        writing.retain(|record| !is_archivable(record, before));
        let history = self.history.clone();
        // First there, then gone here: whoever dies in between leaves it in both, and readers count it once.
        let into_history = move || {
            let mut lines = Vec::with_capacity(going.len());
            for (id, line) in going {
                if !history.contains(&id)? {
                    lines.push(line);
                }
            }
            if lines.is_empty() { Ok(()) } else { history.append(&lines) }
        };
        self.document.commit_after(writing, into_history).await?;
        Ok(count)
    }

    async fn history(&self) -> Result<Vec<Arc<SandboxRecord>>, Error> {
        let history = self.history.clone();
        let (mut records, _) = blocking(move || history.read()).await?;
        let live = self.document.read().await?;
        // A crash while archiving left some in both places.
        let live: HashSet<_> = live.entries.iter().filter_map(|entry| entry.key()).collect();
        records.retain(|record| !live.contains(record.id.as_str()));
        oldest_first(&mut records);
        Ok(records)
    }

    async fn unreadable_lines(&self) -> Result<Vec<UnreadableLines>, Error> {
        let history = self.history.clone();
        Ok(blocking(move || history.read()).await?.1.into_iter().collect())
    }

    async fn version(&self) -> Result<u64, Error> {
        self.document.version().await
    }
}
