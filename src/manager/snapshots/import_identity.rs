//! Identity of an imported snapshot: whether it keeps the id that its file claims. Sandboxes here may still be based on the
//! one that it names, and would be made again from what is in it.

use serde::{Deserialize, Serialize};

use crate::domain::error::Error;
use crate::domain::event::EventKind;
use crate::domain::name::SnapshotId;
use crate::domain::request::EventQuery;
use crate::domain::snapshot::{ArchiveManifest, SnapshotRecord};
use crate::manager::deps::Deps;
use crate::manager::patches::find::{based_on, patches_of};
use crate::manager::updates::read_events;

/// The most that the number of a next patch is believed to be; a file may say anything.
const MAX_NEXT_SEQUENCE: u64 = 1 << 32;

/// Identity that an import gets.
pub(crate) struct ImportIdentity {
    /// Reason for another id than the file's; `None` when it keeps that.
    pub(crate) refused: Option<String>,
    /// The sequence of its next patch.
    pub(crate) next_patch_sequence: u64,
    /// The last revision that this id had here.
    pub(crate) revision: u64,
}

/// History of an id that is no snapshot's any more.
#[derive(Default)]
struct IdHistory {
    /// Deletion of the last snapshot that had it.
    deleted: Option<DeletionRecord>,
    /// The last revision in the event log.
    revision: u64,
}

/// Facts of a deleted snapshot in the event of its deletion, for an import that claims to be this one. Field names are
/// those of the event.
#[derive(Serialize, Deserialize)]
struct DeletionRecord {
    sha256: Option<String>,
    recipe: String,
    next_patch_sequence: u64,
}

/// The particulars of the event of a deletion.
pub(crate) fn deletion_record(record: &SnapshotRecord) -> serde_json::Value {
    let deletion = DeletionRecord {
        sha256: record.archive.sha256.clone(),
        recipe: record.profile.hash.clone(),
        next_patch_sequence: record.next_patch_sequence,
    };
    serde_json::to_value(deletion).unwrap_or_default()
}

/// An id is kept where this installation made it, has it no more, and either nothing here refers to it, or the content is
/// what was deleted.
pub(crate) async fn decide_identity(
    deps: &Deps,
    manifest: &ArchiveManifest,
    ours: bool,
) -> Result<ImportIdentity, Error> {
    let refused = |why: String| {
        Ok(ImportIdentity { refused: Some(why), next_patch_sequence: 1, revision: 0 })
    };
    if !ours {
        return refused("another installation made it".to_owned());
    }
    if deps.snapshots.get(&manifest.id).await?.is_some() {
        return refused("that one is here".to_owned());
    }
    let IdHistory { deleted, revision } = read_id_history(deps, &manifest.id).await?;
    let same = deleted.as_ref().is_some_and(|deletion| {
        deletion.sha256.is_some()
            && deletion.sha256 == manifest.snapshot.archive.sha256
            && deletion.recipe == manifest.recipe.hash()
    });
    let refers = references_to(deps, &manifest.id).await?;
    if !same && !refers.is_empty() {
        return refused(format!(
            "since this is not known to be what it was for {}",
            refers.join(", ")
        ));
    }
    // Numbers are never used again, whatever the file says.
    let stated = manifest.snapshot.next_patch_sequence.clamp(1, MAX_NEXT_SEQUENCE);
    let next_patch_sequence =
        deleted.map_or(stated, |deletion| deletion.next_patch_sequence.max(stated));
    Ok(ImportIdentity { refused: None, next_patch_sequence, revision })
}

async fn read_id_history(deps: &Deps, id: &SnapshotId) -> Result<IdHistory, Error> {
    let kinds = [
        EventKind::SnapshotReady,
        EventKind::SnapshotFailed,
        EventKind::SnapshotCopied,
        EventKind::SnapshotDeleted,
    ];
    let query = EventQuery { kinds: kinds.into(), ..EventQuery::default() };
    let mut past = IdHistory::default();
    for event in read_events(deps, &query).await? {
        if event.snapshot_id() != Some(id.as_str()) {
            continue;
        }
        past.revision = past.revision.max(event.revision().unwrap_or(0));
        if event.kind == EventKind::SnapshotDeleted {
            past.deleted = serde_json::from_value(event.data).ok();
        }
    }
    Ok(past)
}

/// Sandboxes, snapshots and patches that refer to the snapshot with this id, though it is gone.
async fn references_to(deps: &Deps, id: &SnapshotId) -> Result<Vec<String>, Error> {
    let sandboxes = based_on(deps, id).await?;
    let patches = patches_of(deps, id).await?;
    let snapshots = deps.snapshots.list().await?;
    let children = snapshots.iter().filter(|other| other.parent_snapshot.as_ref() == Some(id));
    let sandboxes = sandboxes.iter().map(|sandbox| format!("sandbox {}", sandbox.id));
    let children = children.map(|child| format!("snapshot {}", child.id));
    let patches = patches.iter().map(|patch| format!("patch {}", patch.id));
    Ok(sandboxes.chain(children).chain(patches).collect())
}
