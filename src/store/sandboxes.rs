//! `sandboxes.json`, and the history its records go to.

use std::borrow::Borrow;
use std::collections::{BTreeSet, HashSet};
use std::sync::Arc;

use async_trait::async_trait;

use crate::domain::fault::{Code, Fault};
use crate::domain::name::{EventId, SandboxId};
use crate::domain::{SandboxRecord, State, Time};
use crate::store::document::{Content, Document, Entry, Record};
use crate::store::files::{DataDir, blocking};
use crate::store::history::History;
use crate::store::{Admit, Change, SandboxStore};

impl Record for SandboxRecord {
    fn key(&self) -> &str {
        self.id.as_str()
    }
}

/// The sandboxes, in files.
pub struct SandboxFile {
    document: Document<SandboxRecord>,
    history: History,
}

impl SandboxFile {
    pub(super) fn new(dir: &DataDir) -> Self {
        Self { document: Document::new(dir, "sandboxes"), history: History::new(dir) }
    }

    async fn in_history(&self, id: &SandboxId) -> Result<bool, Fault> {
        let (history, id) = (self.history.clone(), id.clone());
        blocking(move || history.contains(id.as_str())).await
    }
}

/// The loser of a race gets the record as it is.
fn conflict(message: impl Into<String>, field: &str, current: &SandboxRecord) -> Fault {
    let current = serde_json::to_value(current).unwrap_or_default();
    Fault::new(Code::Conflict, message).detail("field", field).detail("current", current)
}

/// Whether a record's key, id or name is another one's already. `others` are without the record itself.
fn refuse_taken(record: &SandboxRecord, others: &[&SandboxRecord]) -> Result<(), Fault> {
    // The key first: a repeated request has the same name too, and must learn that it is a repeat.
    let same_key = |other: &&&SandboxRecord| other.idempotency_key == record.idempotency_key;
    if record.idempotency_key.is_some()
        && let Some(other) = others.iter().find(same_key)
    {
        let message = format!("the sandbox {} was made under this idempotency key", other.id);
        return Err(conflict(message, "idempotency_key", other));
    }
    let name = name_in_use(record);
    for other in others {
        if other.id == record.id {
            return Err(conflict(format!("there is a sandbox with the id {}", record.id), "id", other)
                .hint("an id is used once; choose another"));
        }
        if name_in_use(other) == Some(record.id.as_str()) {
            return Err(conflict(format!("{} is the name of the sandbox {}", record.id, other.id), "id", other)
                .hint("choose another id"));
        }
        let Some(name) = name else { continue };
        if name_in_use(other) == Some(name) {
            return Err(conflict(format!("the name {name} is taken by the sandbox {}", other.id), "name", other)
                .hint("choose another name, or destroy that sandbox first"));
        }
        if other.id.as_str() == name {
            return Err(conflict(format!("{name} is the id of a sandbox, so it cannot be a name"), "name", other)
                .hint("choose another name"));
        }
    }
    Ok(())
}

/// The name that a record keeps from others: none once it is over.
fn name_in_use(record: &SandboxRecord) -> Option<&str> {
    record.name.as_deref().filter(|_| !record.state.is_over())
}

/// What an update may not do, whoever asks.
fn refuse_illegal(old: &SandboxRecord, new: &SandboxRecord) -> Result<(), Fault> {
    if new.id != old.id {
        return Err(Fault::internal(format!("a change of {} tried to give it another id", old.id)));
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
    record.state == State::Destroyed && record.since < before && record.pending.is_empty() && record.operation.is_none()
}

/// The bytes of a record on one line.
fn on_one_line(entry: &Entry<SandboxRecord>) -> Result<String, Fault> {
    if !entry.raw().contains(['\n', '\r']) {
        return Ok(entry.raw().to_owned());
    }
    let value: serde_json::Value = serde_json::from_str(entry.raw())
        .map_err(|error| Fault::internal("a record cannot be put on one line").because(error))?;
    Ok(value.to_string())
}

fn oldest_first<R: Borrow<SandboxRecord>>(records: &mut [R]) {
    records.sort_by(|a, b| {
        let (a, b) = (a.borrow(), b.borrow());
        (a.created_at, &a.id).cmp(&(b.created_at, &b.id))
    });
}

#[async_trait]
impl SandboxStore for SandboxFile {
    async fn insert_if(&self, mut record: SandboxRecord, admit: Admit<'_>) -> Result<SandboxRecord, Fault> {
        let writing = self.document.write().await?;
        {
            let others = writing.content.records()?;
            refuse_taken(&record, &others)?;
            admit(&others)?;
        }
        // Under the lock: a record on its way to the history is in one of the two.
        if self.in_history(&record.id).await? {
            return Err(Fault::new(Code::Conflict, format!("there was a sandbox with the id {}", record.id))
                .hint("an id is used once; choose another")
                .detail("field", "id"));
        }
        record.revision = 1;
        let mut entries = writing.content.entries.clone();
        entries.push(Arc::new(Entry::new(record.clone(), None)?));
        self.document.commit(writing, entries).await?;
        Ok(record)
    }

    async fn get(&self, id: &SandboxId) -> Result<Option<SandboxRecord>, Fault> {
        Ok(self.document.read().await?.find(id.as_str())?.map(|(_, record)| record.clone()))
    }

    async fn list(&self) -> Result<Vec<SandboxRecord>, Fault> {
        let content = self.document.read().await?;
        let mut records = content.records()?;
        oldest_first(&mut records);
        Ok(records.into_iter().cloned().collect())
    }

    async fn update(
        &self,
        id: &SandboxId,
        expected: Option<u64>,
        change: Change<'_, SandboxRecord>,
    ) -> Result<SandboxRecord, Fault> {
        let writing = self.document.write().await?;
        let content = Arc::clone(&writing.content);
        let Some((index, old)) = content.find(id.as_str())? else {
            return Err(Fault::new(Code::NotFound, format!("there is no sandbox {id}")).detail("id", id.as_str()));
        };
        if let Some(expected) = expected
            && expected != old.revision
        {
            return Err(conflict(format!("sandbox {id} was changed by somebody else meanwhile"), "revision", old)
                .hint("look at it again, then decide")
                .detail("expected", expected));
        }
        let mut new = old.clone();
        change(&mut new)?;
        new.revision = old.revision + 1;
        refuse_illegal(old, &new)?;
        if new.name != old.name || new.idempotency_key != old.idempotency_key {
            let others: Vec<_> = content.records()?.into_iter().filter(|other| other.id != old.id).collect();
            refuse_taken(&new, &others)?;
        }
        let mut entries = content.entries.clone();
        entries[index] = Arc::new(Entry::new(new.clone(), Some(&content.entries[index]))?);
        self.document.commit(writing, entries).await?;
        Ok(new)
    }

    async fn told(&self, events: &BTreeSet<EventId>) -> Result<(), Fault> {
        let writing = self.document.write().await?;
        let mut entries = writing.content.entries.clone();
        let mut changed = false;
        for entry in &mut entries {
            let Some(record) = entry.record() else { continue };
            if record.pending.iter().any(|event| events.contains(&event.id)) {
                let mut record = record.clone();
                record.pending.retain(|event| !events.contains(&event.id));
                *entry = Arc::new(Entry::new(record, Some(entry))?);
                changed = true;
            }
        }
        if changed { self.document.commit(writing, entries).await } else { Ok(()) }
    }

    async fn archive(&self, before: Time) -> Result<usize, Fault> {
        let due = |content: &Content<SandboxRecord>| {
            let due = |entry: &Entry<_>| entry.record().is_some_and(|record| is_archivable(record, before));
            content.entries.iter().cloned().partition::<Vec<_>, _>(|entry| due(entry))
        };
        // Mostly nothing is due: that needs no lock.
        if due(&*self.document.read().await?).0.is_empty() {
            return Ok(0);
        }
        let writing = self.document.write().await?;
        let (going, staying) = due(&writing.content);
        if going.is_empty() {
            return Ok(0);
        }
        let count = going.len();
        let history = self.history.clone();
        // First there, then gone here: whoever dies in between leaves it in both, and readers count it once.
        let into_history = move || {
            let mut lines = Vec::with_capacity(going.len());
            for entry in &going {
                if !history.contains(entry.key().unwrap_or_default())? {
                    lines.push(on_one_line(entry)?);
                }
            }
            if lines.is_empty() { Ok(()) } else { history.append(&lines) }
        };
        self.document.commit_after(writing, staying, into_history).await?;
        Ok(count)
    }

    async fn history(&self) -> Result<Vec<SandboxRecord>, Fault> {
        let history = self.history.clone();
        let mut records = blocking(move || history.read()).await?;
        let live = self.document.read().await?;
        // A crash while archiving left some in both places.
        let live: HashSet<&str> = live.entries.iter().filter_map(|entry| entry.key()).collect();
        records.retain(|record| !live.contains(record.id.as_str()));
        oldest_first(&mut records);
        Ok(records)
    }

    async fn version(&self) -> Result<u64, Fault> {
        self.document.version().await
    }
}
