//! Removal of patches from a snapshot. Sandboxes that have them keep them.

use crate::domain::error::{Code, Error};
use crate::domain::event::{EventKind, PendingEvent};
use crate::domain::name::SnapshotId;
use crate::domain::patch::{Patch, find};
use crate::domain::snapshot::SnapshotRecord;
use crate::manager::deps::Deps;
use crate::manager::journal::{self, Guard, flush_pending};
use crate::manager::operation::locks::wait_to_lock_snapshot;
use crate::manager::patches::find::patches_of;
use crate::manager::patches::pending::refresh_patch_states;
use crate::manager::snapshots::find::get_snapshot_at_revision;

/// Takes a patch away from a snapshot. Sandboxes that have it keep it.
///
/// Errors: `not_found` when the snapshot has no such patch, or not any more.
pub(crate) async fn remove_patch(deps: &Deps, snapshot: &str, patch: &str) -> Result<Patch, Error> {
    let snapshot = get_snapshot_at_revision(deps, snapshot, None).await?;
    let _lock = wait_to_lock_snapshot(deps, &snapshot.id).await?;
    let patches = patches_of(deps, &snapshot.id).await?;
    let missing = || no_such_patch(&snapshot, &patches, patch);
    let found = find(&patches, patch).ok_or_else(missing)?;
    let gone = remove_one(deps, found).await?.ok_or_else(missing)?;
    refresh_patch_states(deps, &snapshot.id).await;
    Ok(Patch { pending: Vec::new(), ..gone })
}

/// Takes away all patches of a snapshot that goes.
pub(crate) async fn remove_patches_of(deps: &Deps, snapshot: &SnapshotId) -> Result<(), Error> {
    let patches = patches_of(deps, snapshot).await?;
    for patch in &patches {
        remove_one(deps, patch).await?;
    }
    if !patches.is_empty() {
        refresh_patch_states(deps, snapshot).await;
    }
    Ok(())
}

/// Removes one, with an event; `None` if it is not there any more. The snapshot's lock is the caller's.
async fn remove_one(deps: &Deps, patch: &Patch) -> Result<Option<Patch>, Error> {
    let flushed = flush_pending(deps, patch.pending.clone()).await;
    let Some(gone) = deps.patches.remove(&patch.id).await? else { return Ok(None) };
    let data = serde_json::json!({
        "patch_id": gone.id, "sequence": gone.sequence, "run_in": gone.run_in, "description": gone.description,
    });
    // Earlier events come before this one's; where the log could not be written, the snapshot carries them on.
    let unflushed: Vec<PendingEvent> =
        gone.pending.iter().filter(|event| !flushed.contains(&event.id)).cloned().collect();
    let carry_on = |snapshot: &mut SnapshotRecord| {
        snapshot.pending.extend(unflushed);
        Ok(())
    };
    journal::update(
        deps,
        &gone.snapshot_id,
        Guard::Any,
        vec![(EventKind::PatchRemoved, data)],
        carry_on,
    )
    .await?;
    Ok(Some(gone))
}

fn no_such_patch(snapshot: &SnapshotRecord, patches: &[Patch], reference: &str) -> Error {
    let shown: String = reference.chars().take(80).collect();
    let error =
        Error::new(Code::NotFound, format!("snapshot {} has no patch {shown:?}", snapshot.title()));
    if patches.is_empty() {
        return error.hint("it has no patches");
    }
    let there: Vec<String> =
        patches.iter().map(|patch| format!("{} ({})", patch.sequence, patch.id)).collect();
    error.hint(format!("it has {}", there.join(", ")))
}
