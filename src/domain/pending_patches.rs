//! Patches that are pending on a sandbox: those of the snapshot it is based on that it does not have (semantics 7).

use std::collections::BTreeSet;

use crate::domain::name::PatchId;
use crate::domain::patch::{AppliedPatch, Patch, PatchState};
use crate::domain::sandbox::SandboxRecord;

/// Patch that stands in the way of a sandbox's next one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Blocked<'a> {
    /// A patch that is still attached failed on it.
    Failed(&'a AppliedPatch),
    /// A crash left it open whether this one ran.
    Unknown(&'a AppliedPatch),
}

/// Patches of the snapshot a sandbox is based on that it does not have.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct PendingPatches<'a> {
    /// Patches that a pass would run, in ascending sequence.
    pub run: Vec<&'a Patch>,
    /// Patch that stops the pass before it begins; `run` is what comes behind it then.
    pub blocked: Option<Blocked<'a>>,
}

/// Patches of `patches` (any order; other snapshots' are passed over) that are pending on a sandbox. One level deep: only
/// those of the snapshot it is based on. A patch that failed, or of which nobody knows whether it ran, stops the pass
/// unless `retry` asks for it again; a patch that was removed from the snapshot counts no more.
pub fn pending_patches<'a>(
    record: &'a SandboxRecord,
    patches: &'a [Patch],
    retry: bool,
) -> PendingPatches<'a> {
    let Some(base) = &record.based_on_snapshot else { return PendingPatches::default() };
    let mut mine: Vec<&Patch> = patches.iter().filter(|patch| patch.snapshot_id == *base).collect();
    mine.sort_by_key(|patch| patch.sequence);
    let on_it =
        |patch: &Patch| record.applied_patches.iter().find(|applied| applied.id == patch.id);
    let mut found = PendingPatches::default();
    for patch in mine {
        match on_it(patch) {
            Some(applied) if applied.state == PatchState::Applied => {}
            Some(applied) if !retry => {
                let stops = match applied.state {
                    PatchState::Failed => Blocked::Failed(applied),
                    _ => Blocked::Unknown(applied),
                };
                found.blocked = found.blocked.or(Some(stops));
            }
            _ => found.run.push(patch),
        }
    }
    found
}

/// State for a record's `patch_state` while no pass runs.
pub fn settled_state(record: &SandboxRecord, patches: &[Patch]) -> PatchState {
    let pending = pending_patches(record, patches, false);
    match pending.blocked {
        Some(Blocked::Failed(_)) => PatchState::Failed,
        Some(Blocked::Unknown(_)) => PatchState::Unknown,
        None if !pending.run.is_empty() => PatchState::Pending,
        None if record
            .applied_patches
            .iter()
            .any(|applied| applied.state == PatchState::Applied) =>
        {
            PatchState::Applied
        }
        None => PatchState::None,
    }
}

pub(crate) fn applied_ids(record: &SandboxRecord) -> BTreeSet<&PatchId> {
    let has = record.applied_patches.iter().filter(|applied| applied.state == PatchState::Applied);
    has.map(|applied| &applied.id).collect()
}

/// Next step for a patch that stands in the way; the snapshot by its name or id.
pub(crate) fn next_step_words(record: &SandboxRecord, snapshot: &str, sequence: u64) -> String {
    format!(
        "`sandboxer patches remove {snapshot} {sequence}` takes it away, `sandboxer patches apply {} --retry` runs it again",
        record.id
    )
}

/// A sentence for a patch of which nobody knows whether it came to its end, with what somebody does about it.
pub(crate) fn unknown_words(record: &SandboxRecord, snapshot: &str, run: &AppliedPatch) -> String {
    let how = next_step_words(record, snapshot, run.sequence);
    format!("nobody knows whether patch {} ({}) came to its end; {how}", run.sequence, run.id)
}

/// A script was running when its process died: nobody knows whether it came to its end.
pub(crate) fn settle_applying(record: &mut SandboxRecord) {
    let cut =
        record.applied_patches.iter().position(|applied| applied.state == PatchState::Applying);
    let Some(cut) = cut else { return };
    record.applied_patches[cut].state = PatchState::Unknown;
    record.patch_state = PatchState::Unknown;
    let base = record.based_on_snapshot.as_ref().map(ToString::to_string).unwrap_or_default();
    let run = &record.applied_patches[cut];
    let error = (run.id.clone(), unknown_words(record, &base, run));
    record.set_patch_error(Some(error));
}

#[cfg(test)]
mod tests;
