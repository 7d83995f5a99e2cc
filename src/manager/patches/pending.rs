//! Patch state of a record: the patches that are pending (semantics 7). It is settled in the very write that frees a
//! record of its operation, and looked at again behind that: patches have a store of their own.

use crate::domain::error::{Code, Error};
use crate::domain::name::{PatchId, SnapshotId};
use crate::domain::patch::{Patch, PatchState};
use crate::domain::pending_patches::{
    Blocked, next_step_words, pending_patches, settle_applying, settled_state, unknown_words,
};
use crate::domain::sandbox::SandboxRecord;
use crate::domain::update::Update;
use crate::manager::deps::Deps;
use crate::manager::journal::{self, Guard};
use crate::manager::patches::find::{based_on, patches_of};

/// Tries on a record that others change meanwhile.
const REFRESH_TRIES: u32 = 8;

/// Whether a pass would run something, as far as that is known now.
pub(crate) async fn has_pending(deps: &Deps, record: &SandboxRecord) -> bool {
    let Some(base) = &record.based_on_snapshot else { return false };
    let patches = patches_of(deps, base).await.unwrap_or_default();
    let pending = pending_patches(record, &patches, false);
    pending.blocked.is_none() && !pending.run.is_empty()
}

/// Patches of the snapshot that sandboxes are based on.
pub(crate) struct PatchBase {
    title: String,
    patches: Vec<Patch>,
}

/// Patches of a sandbox's base; `None` for one that is based on nothing.
pub(crate) async fn patch_base(
    deps: &Deps,
    record: &SandboxRecord,
) -> Result<Option<PatchBase>, Error> {
    let Some(base) = &record.based_on_snapshot else { return Ok(None) };
    let patches = patches_of(deps, base).await?;
    Ok(Some(PatchBase { title: base_title(deps, base).await, patches }))
}

async fn base_title(deps: &Deps, base: &SnapshotId) -> String {
    let snapshot = deps.snapshots.get(base).await.ok().flatten();
    snapshot.map_or_else(|| base.to_string(), |snapshot| snapshot.title().to_owned())
}

/// Refreshes the patch state of all sandboxes that are based on a snapshot.
pub(crate) async fn refresh_patch_states(deps: &Deps, snapshot: &SnapshotId) {
    let sandboxes = match based_on(deps, snapshot).await {
        Ok(sandboxes) => sandboxes,
        Err(error) => {
            return tracing::warn!(%snapshot, %error, "its sandboxes could not be listed");
        }
    };
    for record in sandboxes {
        refresh_patch_state(deps, record).await;
    }
}

/// Refreshes the patch state of a record; the record as it is then. The record is read before the patches, and
/// written only as it was read: of two who look at once, the later one writes what is true.
pub(crate) async fn refresh_patch_state(deps: &Deps, record: SandboxRecord) -> SandboxRecord {
    let mut latest = record;
    for _ in 0..REFRESH_TRIES {
        match try_refresh(deps, &latest).await {
            Ok(None) => return latest,
            Ok(Some(noted)) => {
                deps.jobs.publish(Update::Record(Box::new(noted.clone())));
                return noted;
            }
            Err(error) if error.code == Code::Conflict => {
                match deps.sandboxes.get(&latest.id).await {
                    Ok(Some(now)) => latest = now,
                    _ => return latest,
                }
            }
            Err(error) => {
                tracing::warn!(sandbox = %latest.id, %error, "its patch state was not written down");
                return latest;
            }
        }
    }
    tracing::warn!(sandbox = %latest.id, "its patch state was not written down: others kept changing it");
    latest
}

/// `None`: the record says it already, or a pass runs, behind which it is settled.
async fn try_refresh(deps: &Deps, record: &SandboxRecord) -> Result<Option<SandboxRecord>, Error> {
    let in_a_pass = record.operation.is_some() && record.patch_state == PatchState::Applying;
    if in_a_pass || record.state.is_over() {
        return Ok(None);
    }
    let Some(base) = patch_base(deps, record).await? else { return Ok(None) };
    if is_settled(record, &base) {
        return Ok(None);
    }
    let guard = Guard::Revision(Some(record.revision));
    let write =
        journal::update(deps, &record.id, guard, Vec::new(), move |record: &mut SandboxRecord| {
            settle(record, &base);
            Ok(())
        });
    write.await.map(Some)
}

/// Hint for a patch that stands in the way.
pub(crate) async fn next_step(deps: &Deps, record: &SandboxRecord, sequence: u64) -> String {
    let title = match &record.based_on_snapshot {
        Some(base) => base_title(deps, base).await,
        None => String::new(),
    };
    next_step_words(record, &title, sequence)
}

/// Whether a record's patch state is what its patches have come to.
pub(crate) fn is_settled(record: &SandboxRecord, base: &PatchBase) -> bool {
    let mut settled = record.clone();
    settle(&mut settled, base);
    settled == *record
}

/// Puts on a record what its patches have come to. The error of a pending patch stays; the error of a patch
/// that is gone goes.
pub(crate) fn settle(record: &mut SandboxRecord, base: &PatchBase) {
    if record.operation.is_none() {
        settle_applying(record);
    }
    record.patch_state = settled_state(record, &base.patches);
    record.set_patch_error(settled_error(record, base));
}

/// The error of the patch that stands in the way or is pending, and which one that is.
fn settled_error(record: &SandboxRecord, base: &PatchBase) -> Option<(PatchId, String)> {
    // A record of an earlier version does not say which patch its error is about: the one that is asked for.
    let is_about = |id: &PatchId| record.patch_error_of.as_ref().is_none_or(|of| of == id);
    let last_error_for = |id: &PatchId| {
        let error = record.patch_error.clone().filter(|_| is_about(id))?;
        Some((id.clone(), error))
    };
    let pending = pending_patches(record, &base.patches, false);
    match pending.blocked {
        None => pending.run.iter().find_map(|patch| last_error_for(&patch.id)),
        Some(Blocked::Failed(run)) => last_error_for(&run.id).or_else(|| {
            let exit = run
                .exit_status
                .map(|status| format!(" with exit status {status}"))
                .unwrap_or_default();
            let how = next_step_words(record, &base.title, run.sequence);
            let error = format!("patch {} ({}) failed{exit}; {how}", run.sequence, run.id);
            Some((run.id.clone(), error))
        }),
        Some(Blocked::Unknown(run)) => last_error_for(&run.id)
            .or_else(|| Some((run.id.clone(), unknown_words(record, &base.title, run)))),
    }
}
