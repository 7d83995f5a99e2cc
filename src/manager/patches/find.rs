//! Patches of a snapshot, and which of its sandboxes has which.

use crate::domain::error::{Code, Error, Kind};
use crate::domain::name::{PatchId, SnapshotId};
use crate::domain::patch::{AppliedPatch, Patch, PatchState};
use crate::domain::pending_patches::pending_patches;
use crate::domain::request::{PatchStanding, PatchStatus};
use crate::domain::sandbox::SandboxRecord;
use crate::manager::deps::Deps;
use crate::manager::snapshots::find::get_snapshot_at_revision;

/// Status of each patch of a snapshot: the sandboxes that have it, will get it, or failed.
pub(crate) async fn patch_status(deps: &Deps, snapshot: &str) -> Result<Vec<PatchStatus>, Error> {
    let snapshot = get_snapshot_at_revision(deps, snapshot, None).await?;
    let patches = patches_of(deps, &snapshot.id).await?;
    let sandboxes = based_on(deps, &snapshot.id).await?;
    let standings =
        |patch: &Patch| sandboxes.iter().map(|record| standing(record, &patches, patch)).collect();
    Ok(patches
        .iter()
        .map(|patch| PatchStatus { sandboxes: standings(patch), patch: patch.clone() })
        .collect())
}

pub(crate) async fn patches_of(deps: &Deps, snapshot: &SnapshotId) -> Result<Vec<Patch>, Error> {
    let mut patches = deps.patches.list().await?;
    patches.retain(|patch| patch.snapshot_id == *snapshot);
    patches.sort_by_key(|patch| patch.sequence);
    Ok(patches)
}

/// The sandboxes that are based on a snapshot and are not over, oldest first.
pub(crate) async fn based_on(
    deps: &Deps,
    snapshot: &SnapshotId,
) -> Result<Vec<SandboxRecord>, Error> {
    let records = deps.sandboxes.list().await?;
    let based = records
        .iter()
        .filter(|r| r.based_on_snapshot.as_ref() == Some(snapshot) && !r.state.is_over());
    Ok(based.map(|record| SandboxRecord::clone(record)).collect())
}

fn standing(record: &SandboxRecord, patches: &[Patch], patch: &Patch) -> PatchStanding {
    let run: Option<&AppliedPatch> =
        record.applied_patches.iter().find(|applied| applied.id == patch.id);
    PatchStanding {
        id: record.id.clone(),
        name: record.name.clone(),
        host: record.host.clone(),
        state: run.map_or(PatchState::Pending, |run| run.state.clone()),
        blocked: run.is_none() && pending_patches(record, patches, false).blocked.is_some(),
        run: run.cloned(),
    }
}

/// Compares the patches of a sandbox's snapshot with those that somebody was shown.
///
/// Errors: `conflict` when they are others by now.
pub(crate) async fn ensure_patches_as_shown(
    deps: &Deps,
    record: &SandboxRecord,
    shown: Option<&[PatchId]>,
) -> Result<(), Error> {
    let Some(shown) = shown else { return Ok(()) };
    let patches = match &record.based_on_snapshot {
        Some(base) => patches_of(deps, base).await?,
        None => Vec::new(),
    };
    if patches.iter().map(|patch| &patch.id).eq(shown) {
        return Ok(());
    }
    let message = format!("the patches of sandbox {} changed since it was looked at", record.id);
    Err(Error::new(Code::Conflict, message).of_kind(Kind::Stale).hint("look again, then decide"))
}
