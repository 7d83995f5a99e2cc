//! What a record says of the patches that its sandbox owes (semantics 7). It is settled in the very write that frees a
//! record of its operation, and looked at again behind that: patches have a store of their own.

use crate::domain::error::{Code, Error};
use crate::domain::event::Update;
use crate::domain::name::{PatchId, SnapshotId};
use crate::domain::patch::{
    Blocked, Patch, PatchState, next_step_words, owed, settle_applying, settled_state,
    unknown_words,
};
use crate::domain::sandbox::SandboxRecord;
use crate::manager::deps::Deps;
use crate::manager::journal::{self, Guard};
use crate::manager::patches::find::{based_on, patches_of};

/// Whether a pass would run something, as far as that can be told now.
pub(crate) async fn has_pending(deps: &Deps, record: &SandboxRecord) -> bool {
    let Some(base) = &record.based_on_snapshot else { return false };
    let patches = patches_of(deps, base).await.unwrap_or_default();
    let owes = owed(record, &patches, false);
    owes.blocked.is_none() && !owes.run.is_empty()
}

/// How often a record that others change meanwhile is looked at again.
const NOTE_TRIES: u32 = 8;

/// What the sandboxes that are based on a snapshot may owe.
pub(crate) struct Base {
    /// The snapshot's name or id.
    title: String,
    patches: Vec<Patch>,
}

/// What a sandbox may owe; `None` for one that is based on nothing.
pub(crate) async fn patch_base(deps: &Deps, record: &SandboxRecord) -> Result<Option<Base>, Error> {
    let Some(base) = &record.based_on_snapshot else { return Ok(None) };
    let patches = patches_of(deps, base).await?;
    Ok(Some(Base { title: base_title(deps, base).await, patches }))
}

async fn base_title(deps: &Deps, base: &SnapshotId) -> String {
    let snapshot = deps.snapshots.get(base).await.ok().flatten();
    snapshot.map_or_else(|| base.to_string(), |snapshot| snapshot.title().to_owned())
}

/// Says on the records of those that are based on a snapshot whether they owe something now.
pub(crate) async fn refresh_patch_states(deps: &Deps, snapshot: &SnapshotId) {
    let sandboxes = match based_on(deps, snapshot).await {
        Ok(sandboxes) => sandboxes,
        Err(fault) => {
            return tracing::warn!(%snapshot, %fault, "its sandboxes were not told of the change");
        }
    };
    for record in sandboxes {
        refresh_patch_state(deps, record).await;
    }
}

/// Says on a record whether it owes something now; the record as it is then. The record is read before the patches, and
/// written only as it was read: of two who look at once, the later one writes what is true.
pub(crate) async fn refresh_patch_state(deps: &Deps, record: SandboxRecord) -> SandboxRecord {
    let mut latest = record;
    for _ in 0..NOTE_TRIES {
        match try_refresh(deps, &latest).await {
            Ok(None) => return latest,
            Ok(Some(noted)) => {
                deps.jobs.publish(Update::Record(Box::new(noted.clone())));
                return noted;
            }
            Err(fault) if fault.code == Code::Conflict => {
                match deps.sandboxes.get(&latest.id).await {
                    Ok(Some(now)) => latest = now,
                    _ => return latest,
                }
            }
            Err(fault) => {
                tracing::warn!(sandbox = %latest.id, %fault, "what it owes was not written down");
                return latest;
            }
        }
    }
    tracing::warn!(sandbox = %latest.id, "what it owes was not written down: others kept changing it");
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

/// What somebody does about a patch that stands in the way.
pub(crate) async fn next_step(deps: &Deps, record: &SandboxRecord, sequence: u64) -> String {
    let title = match &record.based_on_snapshot {
        Some(base) => base_title(deps, base).await,
        None => String::new(),
    };
    next_step_words(record, &title, sequence)
}

pub(crate) fn is_settled(record: &SandboxRecord, base: &Base) -> bool {
    let mut settled = record.clone();
    settle(&mut settled, base);
    settled == *record
}

/// Puts on a record what its patches have come to. What is said of one that it still owes stays; what is said of one that
/// is gone goes.
pub(crate) fn settle(record: &mut SandboxRecord, base: &Base) {
    if record.operation.is_none() {
        settle_applying(record);
    }
    record.patch_state = settled_state(record, &base.patches);
    record.set_patch_error(settled_error(record, base));
}

/// The error of the patch that stands in the way or is pending, and which one that is.
fn settled_error(record: &SandboxRecord, base: &Base) -> Option<(PatchId, String)> {
    // A record of an earlier version does not say which patch its error is about: the one that is asked for.
    let is_about = |id: &PatchId| record.patch_error_of.as_ref().is_none_or(|of| of == id);
    let said_of = |id: &PatchId| {
        let error = record.patch_error.clone().filter(|_| is_about(id))?;
        Some((id.clone(), error))
    };
    let owes = owed(record, &base.patches, false);
    match owes.blocked {
        None => owes.run.iter().find_map(|patch| said_of(&patch.id)),
        Some(Blocked::Failed(run)) => said_of(&run.id).or_else(|| {
            let exit = run
                .exit_status
                .map(|status| format!(" with exit status {status}"))
                .unwrap_or_default();
            let how = next_step_words(record, &base.title, run.sequence);
            let error = format!("patch {} ({}) failed{exit}; {how}", run.sequence, run.id);
            Some((run.id.clone(), error))
        }),
        Some(Blocked::Unknown(run)) => said_of(&run.id)
            .or_else(|| Some((run.id.clone(), unknown_words(record, &base.title, run)))),
    }
}
