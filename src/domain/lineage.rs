//! Lineage: the sandboxes that are based on a snapshot and the snapshots that were taken of those; and the other way round,
//! where a sandbox comes from.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::domain::name::{SandboxId, SnapshotId};
use crate::domain::patch::{Patch, PatchState};
use crate::domain::pending_patches::{pending_patches, settled_state};
use crate::domain::sandbox::{SandboxRecord, State};
use crate::domain::snapshot::{SnapshotRecord, SnapshotState};

/// A sandbox that is based on a snapshot.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct BasedOn {
    /// Id.
    pub id: SandboxId,
    /// Name.
    pub name: Option<String>,
    /// State.
    pub state: State,
    /// Progress of its patches, with those that wait counted in.
    pub patch_state: PatchState,
    /// The highest sequence it has.
    pub last_patch_sequence: u64,
    /// Sequences it will get on its next wake.
    pub owes: Vec<u64>,
    /// Patch that failed, and how to go on.
    pub patch_error: Option<String>,
}

/// A snapshot and what hangs on it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SnapshotView {
    /// The record.
    #[serde(flatten)]
    pub record: SnapshotRecord,
    /// Patches, in their order.
    pub patches: Vec<Patch>,
    /// Sandboxes that are based on it, oldest first: none that is over, or failed before anything was made.
    pub sandboxes: Vec<BasedOn>,
    /// Snapshots that were taken of those, oldest first.
    pub children: Vec<SnapshotId>,
}

impl SnapshotView {
    /// The view of `record`, from all that there is.
    pub fn of<'a>(
        record: &SnapshotRecord,
        patches: &[Patch],
        sandboxes: impl IntoIterator<Item = &'a SandboxRecord>,
        snapshots: &[SnapshotRecord],
    ) -> Self {
        let mut mine: Vec<Patch> =
            patches.iter().filter(|patch| patch.snapshot_id == record.id).cloned().collect();
        mine.sort_by_key(|patch| patch.sequence);
        let based =
            sandboxes.into_iter().filter(|sandbox| sandbox.needs_snapshot() == Some(&record.id));
        let mut based: Vec<&SandboxRecord> = based.collect();
        based.sort_by(|a, b| (a.created_at, &a.id).cmp(&(b.created_at, &b.id)));
        let sandboxes = based.into_iter().map(|sandbox| based_on(sandbox, &mine)).collect();
        let children =
            snapshots.iter().filter(|other| other.parent_snapshot.as_ref() == Some(&record.id));
        let mut children: Vec<&SnapshotRecord> = children.collect();
        children.sort_by(|a, b| (a.created_at, &a.id).cmp(&(b.created_at, &b.id)));
        let children = children.into_iter().map(|child| child.id.clone()).collect();
        Self { record: record.clone(), patches: mine, sandboxes, children }
    }

    /// Why it cannot be deleted without force, a sentence each: patches, and sandboxes based on it.
    pub fn dependants(&self) -> Vec<String> {
        let patches =
            self.patches.iter().map(|patch| format!("patch {} ({})", patch.sequence, patch.id));
        let sandboxes = self.sandboxes.iter().map(|sandbox| match &sandbox.name {
            Some(name) => format!("sandbox {name} ({})", sandbox.id),
            None => format!("sandbox {}", sandbox.id),
        });
        patches.chain(sandboxes).collect()
    }
}

fn based_on(sandbox: &SandboxRecord, patches: &[Patch]) -> BasedOn {
    let pending = pending_patches(sandbox, patches, false);
    let patch_state = match &sandbox.patch_state {
        PatchState::Applying => PatchState::Applying,
        _ => settled_state(sandbox, patches),
    };
    BasedOn {
        id: sandbox.id.clone(),
        name: sandbox.name.clone(),
        state: sandbox.state.clone(),
        patch_state,
        last_patch_sequence: sandbox.last_patch_sequence,
        owes: pending.run.iter().map(|patch| patch.sequence).collect(),
        patch_error: sandbox.patch_error.clone(),
    }
}

/// Where a sandbox comes from and what was made of it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Lineage {
    /// The snapshot it is based on, and that one's ancestors, nearest first. One that is gone ends the line.
    pub ancestors: Vec<SnapshotId>,
    /// Snapshots taken of it, oldest first.
    pub snapshots: Vec<SnapshotId>,
}

impl Lineage {
    /// Of one sandbox, from all snapshots.
    pub fn of(record: &SandboxRecord, snapshots: &[SnapshotRecord]) -> Self {
        let mut ancestors = Vec::new();
        let mut next = record.based_on_snapshot.clone();
        while let Some(id) = next.take().filter(|id| !ancestors.contains(id)) {
            next = snapshots.iter().find(|s| s.id == id).and_then(|s| s.parent_snapshot.clone());
            ancestors.push(id);
        }
        let mut taken: Vec<&SnapshotRecord> = snapshots
            .iter()
            .filter(|s| s.sandbox_id == record.id && s.state == SnapshotState::Ready)
            .collect();
        taken.sort_by(|a, b| (a.created_at, &a.id).cmp(&(b.created_at, &b.id)));
        Self { ancestors, snapshots: taken.into_iter().map(|s| s.id.clone()).collect() }
    }
}

#[cfg(test)]
mod tests;
