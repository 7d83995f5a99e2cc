//! What a record says of the patches that its sandbox owes (semantics 7). It is settled in the very write that frees a
//! record of its operation, and looked at again behind that: patches have a store of their own.

use crate::domain::error::{Code, Error};
use crate::domain::event::Update;
use crate::domain::name::{PatchId, SnapshotId};
use crate::domain::operation::Operation;
use crate::domain::patch::{AppliedPatch, Blocked, Patch, PatchState, owed, settled_state};
use crate::domain::sandbox::SandboxRecord;
use crate::manager::SandboxManager;
use crate::manager::record::Guard;

/// How often a record that others change meanwhile is looked at again.
const NOTE_TRIES: u32 = 8;

/// What the sandboxes that are based on a snapshot may owe.
pub(super) struct Base {
    /// The snapshot's name or id.
    title: String,
    patches: Vec<Patch>,
}

impl SandboxManager {
    /// What a sandbox may owe; `None` for one that is based on nothing.
    pub(super) async fn patch_base(&self, record: &SandboxRecord) -> Result<Option<Base>, Error> {
        let Some(base) = &record.based_on_snapshot else { return Ok(None) };
        let patches = self.patches_of(base).await?;
        Ok(Some(Base { title: self.base_title(base).await, patches }))
    }

    async fn base_title(&self, base: &SnapshotId) -> String {
        let snapshot = self.parts.snapshots.get(base).await.ok().flatten();
        snapshot.map_or_else(|| base.to_string(), |snapshot| snapshot.title().to_owned())
    }

    /// Says on the records of those that are based on a snapshot whether they owe something now.
    pub(super) async fn note_owed(&self, snapshot: &SnapshotId) {
        let sandboxes = match self.based_on(snapshot).await {
            Ok(sandboxes) => sandboxes,
            Err(fault) => {
                return tracing::warn!(%snapshot, %fault, "its sandboxes were not told of the change");
            }
        };
        for record in sandboxes {
            self.note_owing(record).await;
        }
    }

    /// Says on a record whether it owes something now; the record as it is then. The record is read before the patches, and
    /// written only as it was read: of two who look at once, the later one writes what is true.
    pub(super) async fn note_owing(&self, record: SandboxRecord) -> SandboxRecord {
        let mut latest = record;
        for _ in 0..NOTE_TRIES {
            match self.try_note(&latest).await {
                Ok(None) => return latest,
                Ok(Some(noted)) => {
                    self.jobs.publish(Update::Record(Box::new(noted.clone())));
                    return noted;
                }
                Err(fault) if fault.code == Code::Conflict => {
                    match self.parts.sandboxes.get(&latest.id).await {
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
    async fn try_note(&self, record: &SandboxRecord) -> Result<Option<SandboxRecord>, Error> {
        let in_a_pass = record.operation.is_some() && record.patch_state == PatchState::Applying;
        if in_a_pass || record.state.is_over() {
            return Ok(None);
        }
        let Some(base) = self.patch_base(record).await? else { return Ok(None) };
        if is_settled(record, &base) {
            return Ok(None);
        }
        let guard = Guard::Revision(Some(record.revision));
        self.write(&record.id, guard, Vec::new(), move |record| settle(record, &base))
            .await
            .map(Some)
    }

    /// Writes what a sandbox's patches have come to, where nothing is left to run or something stands in the way.
    pub(super) async fn settle_patches(
        &self,
        operation: &Operation,
        record: &SandboxRecord,
    ) -> Result<SandboxRecord, Error> {
        // Read anew: somebody may have added or removed one meanwhile.
        let base = self.patch_base(record).await?;
        let Some(base) = base.filter(|base| !is_settled(record, base)) else {
            return Ok(record.clone());
        };
        let mine = Guard::Operation(operation.id.clone());
        self.transition(&record.id, mine, Vec::new(), move |record| settle(record, &base)).await
    }

    /// What somebody does about a patch that stands in the way.
    pub(super) async fn how_to_go_on(&self, record: &SandboxRecord, sequence: u64) -> String {
        let title = match &record.based_on_snapshot {
            Some(base) => self.base_title(base).await,
            None => String::new(),
        };
        go_on(record, &title, sequence)
    }
}

fn is_settled(record: &SandboxRecord, base: &Base) -> bool {
    let mut settled = record.clone();
    settle(&mut settled, base);
    settled == *record
}

/// Puts on a record what its patches have come to. What is said of one that it still owes stays; what is said of one that
/// is gone goes.
pub(super) fn settle(record: &mut SandboxRecord, base: &Base) {
    if record.operation.is_none() {
        settle_applying(record);
    }
    record.patch_state = settled_state(record, &base.patches);
    record.patch_error = settled_error(record, base);
}

fn settled_error(record: &SandboxRecord, base: &Base) -> Option<String> {
    let said_of =
        |id: &PatchId| record.patch_error.clone().filter(|error| error.contains(id.as_str()));
    let owes = owed(record, &base.patches, false);
    match owes.blocked {
        None => owes.run.iter().find_map(|patch| said_of(&patch.id)),
        Some(Blocked::Failed(run)) => said_of(&run.id).or_else(|| {
            let exit = run
                .exit_status
                .map(|status| format!(" with exit status {status}"))
                .unwrap_or_default();
            let how = go_on(record, &base.title, run.sequence);
            Some(format!("patch {} ({}) failed{exit}; {how}", run.sequence, run.id))
        }),
        Some(Blocked::Unknown(run)) => {
            said_of(&run.id).or_else(|| Some(unknown(record, &base.title, run)))
        }
    }
}

/// What somebody does about a patch that stands in the way; the snapshot by its name or id.
fn go_on(record: &SandboxRecord, snapshot: &str, sequence: u64) -> String {
    format!(
        "`sandboxer patches remove {snapshot} {sequence}` takes it away, `sandboxer patches apply {} --retry` runs it again",
        record.id
    )
}

fn unknown(record: &SandboxRecord, snapshot: &str, run: &AppliedPatch) -> String {
    let how = go_on(record, snapshot, run.sequence);
    format!("nobody knows whether patch {} ({}) came to its end; {how}", run.sequence, run.id)
}

/// A script was running when its process died: nobody knows whether it came to its end.
pub(super) fn settle_applying(record: &mut SandboxRecord) {
    let cut =
        record.applied_patches.iter().position(|applied| applied.state == PatchState::Applying);
    let Some(cut) = cut else { return };
    record.applied_patches[cut].state = PatchState::Unknown;
    record.patch_state = PatchState::Unknown;
    let base = record.based_on_snapshot.as_ref().map(ToString::to_string).unwrap_or_default();
    record.patch_error = Some(unknown(record, &base, &record.applied_patches[cut]));
}
