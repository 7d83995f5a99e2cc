//! Records of the earlier Python tool: what of them has a place here. Their exact shape is unknown, so every field is looked at as
//! if it could be anything; what has no place is kept as it was, under `imported`.

mod fields;

use serde_json::Value;
use sha2::{Digest as _, Sha256};

use crate::domain::name::{SandboxId, SnapshotId, is_hex8};
use crate::domain::sandbox::{RecordStart, SandboxRecord, State};
use crate::domain::snapshot::{ArchiveFacts, SnapshotKind, SnapshotRecord, SnapshotState};
use crate::domain::text::clean_line;
use fields::{Fields, duration, has_field, word};

pub(crate) use fields::ImportInto;

/// The word for the state of an imported record: nobody has looked at it, and nothing on a host proves what is there its own.
pub(crate) const IMPORTED: &str = "imported";

/// Keys under which the tool may have kept its entries.
const CONTAINERS: [&str; 3] = ["sandboxes", "snapshots", "items"];

/// Entry of a file of the tool's: the key that it stood under, and what it is.
pub(crate) type EarlierEntry = (Option<String>, Value);

/// Entries of a file of the tool's: a list or a map, itself or under a key of its own; none where it is another program's.
pub(crate) fn entries_of(value: &Value) -> Option<Vec<EarlierEntry>> {
    let entries: Vec<EarlierEntry> = match value {
        Value::Array(items) => items.iter().map(|item| (None, item.clone())).collect(),
        Value::Object(fields) => {
            let inner = CONTAINERS.iter().filter_map(|key| fields.get(*key));
            let mut inner = inner.filter(|inner| inner.is_array() || inner.is_object());
            if let Some(inner) = inner.next().filter(|_| !has_field(value)) {
                return entries_of(inner);
            }
            fields.iter().map(|(key, item)| (Some(key.clone()), item.clone())).collect()
        }
        _ => return None,
    };
    let is_its = entries.is_empty() || entries.iter().any(|(_, item)| has_field(item));
    is_its.then_some(entries)
}

/// Record made of an entry, and what somebody should know of it.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Imported<R> {
    pub record: R,
    /// Changes that were made to it, a sentence each.
    pub remarks: Vec<String>,
}

/// Record of a sandbox of the earlier tool's.
///
/// Errors: why an entry is none.
pub(crate) fn sandbox_of(
    (key, entry): &EarlierEntry,
    into: &ImportInto<'_>,
) -> Result<Imported<SandboxRecord>, String> {
    let mut fields = Fields::of(entry)?;
    let was = fields.id(&["id", "sandbox_id"], key.as_deref())?;
    let id = sandbox_id(&was);
    let is_same = id.as_str() == was;
    if !is_same {
        let was = clean_line(&was, 60);
        fields.remark(format!("its id {was:?} is none that a sandbox may have here: it is {id}"));
    }
    let (profile, extension) = fields.profile(into);
    let host = fields.host();
    let created_at = fields.created_at(into.now);
    let (said, is_over) = fields.state();
    let ttl = fields.rest.get("ttl").or(fields.rest.get("ttl_s")).and_then(duration);
    let based_on = fields.rest.get("snapshot_id").and_then(word).map(|id| snapshot_id(&id));
    let (name, labels, inputs) = (fields.name(), fields.labels(), fields.inputs());
    let message = if is_over {
        format!("imported from the earlier tool, by which it was {said}")
    } else {
        format!(
            "imported from the earlier tool, which called it {said}: nothing on {host} proves anything there its own, and sandboxer touches none of it"
        )
    };
    let (imported, remarks) = fields.end(if is_same { &["id", "sandbox_id"] } else { &[] });
    let record = SandboxRecord {
        name,
        labels,
        state: if is_over { State::Destroyed } else { State::Other(IMPORTED.to_owned()) },
        message: Some(message),
        since: into.now,
        inputs,
        // Without a deadline: no sweep ends what nobody can prove.
        ttl_s: ttl,
        based_on_snapshot: based_on,
        imported,
        ..SandboxRecord::new(RecordStart {
            id,
            profile,
            extension,
            host,
            owner: into.owner.clone(),
            actor: into.actor.clone(),
            created_at,
        })
    };
    Ok(Imported { record, remarks })
}

/// Record of a snapshot of the earlier tool's. Its archive, a tar that the tool left on a host, is none of sandboxer's.
///
/// Errors: why an entry is none.
pub(crate) fn snapshot_of(
    (key, entry): &EarlierEntry,
    into: &ImportInto<'_>,
) -> Result<Imported<SnapshotRecord>, String> {
    let mut fields = Fields::of(entry)?;
    let was = fields.id(&["snapshot_id", "id"], key.as_deref())?;
    let id = snapshot_id(&was);
    let is_same = id.as_str() == was;
    if !is_same {
        let was = clean_line(&was, 60);
        fields.remark(format!("its id {was:?} is none that a snapshot may have here: it is {id}"));
    }
    let source = fields.text("sandbox_id").unwrap_or_default();
    let (profile, extension) = fields.profile(into);
    let host = fields.host();
    let created_at = fields.created_at(into.now);
    let (said, _) = fields.state();
    let (name, labels, inputs) = (fields.name(), fields.labels(), fields.inputs());
    let message = format!(
        "imported from the earlier tool, which called it {said}: its archive is where that left it, and cannot be restored from here"
    );
    let (imported, remarks) = fields.end(if is_same { &["id", "snapshot_id"] } else { &[] });
    let record = SnapshotRecord {
        id,
        name,
        kind: SnapshotKind::User,
        sandbox_id: sandbox_id(&source),
        sandbox_name: None,
        profile,
        extension,
        extension_version: None,
        host,
        state: SnapshotState::Other(IMPORTED.to_owned()),
        message: Some(message),
        failure: None,
        created_at,
        imported_at: Some(into.now),
        imported_from: None,
        adopted_at: None,
        expires_at: None,
        archive: ArchiveFacts::default(),
        parent_snapshot: None,
        patch_level: 0,
        next_patch_sequence: 1,
        labels,
        inputs,
        replicas: Vec::new(),
        verified_at: None,
        unread: None,
        undo: None,
        operation: None,
        actor: into.actor.clone(),
        owner: into.owner.clone(),
        revision: 0,
        imported,
        pending: Vec::new(),
    };
    Ok(Imported { record, remarks })
}

/// The id that a sandbox of the tool's has here: its own, where a sandbox may have that; else one that follows from it.
fn sandbox_id(was: &str) -> SandboxId {
    let reserved = ["snap-", "pat-", "op-", "plan-"];
    let is_reserved = reserved.iter().any(|kind| was.strip_prefix(kind).is_some_and(is_hex8));
    match SandboxId::parse(was) {
        Ok(id) if !is_reserved => id,
        _ => SandboxId::from_random(bits_of("sandbox", was)),
    }
}

fn snapshot_id(was: &str) -> SnapshotId {
    if SnapshotId::is_one(was) {
        SnapshotId::new(was)
    } else {
        SnapshotId::from_random(bits_of("snapshot", was))
    }
}

/// The same bits for the same text: an import that is begun again gives the same ids.
fn bits_of(kind: &str, text: &str) -> u32 {
    let digest = Sha256::digest(format!("{kind}\n{text}"));
    let mut bits = [0; 4];
    bits.copy_from_slice(&digest[..4]);
    u32::from_be_bytes(bits)
}

#[cfg(test)]
mod tests;
