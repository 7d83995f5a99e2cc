//! Patches on snapshots, and the one pass that applies what a sandbox owes: on restore, wake, recreate and when somebody
//! asks (semantics 7).

use tokio_util::sync::CancellationToken;

use crate::domain::fault::{Code, Fault};
use crate::domain::operation::Operation;
use crate::domain::patch::{Patch, PatchState};
use crate::domain::request::{ApplyRequest, PatchRequest, PatchStatus, RolloutItem, RolloutRequest, Started};
use crate::domain::sandbox::SandboxRecord;
use crate::manager::SandboxManager;
use crate::manager::record::JobReporter;

impl SandboxManager {
    /// Adds a patch to a snapshot; runs nothing.
    pub async fn add_patch(&self, request: &PatchRequest) -> Result<Patch, Fault> {
        Err(Fault::new(Code::Unsupported, format!("{}: not there yet", request.snapshot)))
    }

    /// Takes a patch away from a snapshot.
    pub async fn remove_patch(&self, snapshot: &str, _patch: &str) -> Result<Patch, Fault> {
        Err(Fault::new(Code::Unsupported, format!("{snapshot}: not there yet")))
    }

    /// Which sandboxes have each patch of a snapshot, will get it, or failed.
    pub async fn patch_status(&self, snapshot: &str) -> Result<Vec<PatchStatus>, Fault> {
        Err(Fault::new(Code::Unsupported, format!("{snapshot}: not there yet")))
    }

    /// Starts to apply what a sandbox owes; it stays `ready`.
    pub async fn apply_patches(&self, request: &ApplyRequest) -> Result<Started, Fault> {
        Err(Fault::new(Code::Unsupported, format!("{}: not there yet", request.id)))
    }

    /// Applies a snapshot's patches to all sandboxes based on it, some first; stops at the first failure.
    pub async fn roll_out(&self, request: &RolloutRequest) -> Result<Vec<RolloutItem>, Fault> {
        Err(Fault::new(Code::Unsupported, format!("{}: not there yet", request.snapshot)))
    }

    /// Applies what a sandbox owes, in ascending sequence, and writes each step on its record; the record as it is then.
    /// The sandbox's lock is held, and `operation` is on its record. A patch that fails is written down (`patch_state`,
    /// `patch_error`) and is no error here: the sandbox is usable.
    ///
    /// Errors: `cancelled`, and whatever keeps the record from being written. What had begun is `unknown` then.
    pub(super) async fn patch_pass(
        &self,
        _operation: &Operation,
        record: &SandboxRecord,
        _retry: bool,
        _cancel: &CancellationToken,
        _reporter: &JobReporter,
    ) -> Result<SandboxRecord, Fault> {
        Ok(record.clone())
    }
}

/// A script was running when its process died: nobody knows whether it came to its end.
pub(super) fn settle_applying(record: &mut SandboxRecord) {
    for applied in &mut record.applied_patches {
        if applied.state == PatchState::Applying {
            applied.state = PatchState::Unknown;
            record.patch_state = PatchState::Unknown;
        }
    }
}
