//! Deep check (`hosts check --deep`): steps tried on a host, and their outcomes.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::domain::error::Error;
use crate::domain::name::{OperationId, SandboxId, SnapshotId};
use crate::domain::teardown::Resource;
use crate::domain::words::string_enum;

string_enum! {
    /// A step of a deep check, in their order.
    pub enum DeepStage {
        /// The host answers and says what it is.
        Probe = "probe",
        /// A sandbox without containers.
        Canary = "canary",
        /// A compose stack from an image that the host has.
        Stack = "stack",
        /// A file in the workspace and, where there is a stack, one in its volume.
        Write = "write",
        /// A snapshot of it.
        Snapshot = "snapshot",
        /// A new sandbox from that snapshot, on the same host.
        Restore = "restore",
        /// Both files, in the new one.
        Compare = "compare",
        /// All of it is removed.
        Destroy = "destroy",
        /// The host has nothing more of it.
        Host = "host",
    }
}

string_enum! {
    /// Outcome of a step.
    pub enum DeepOutcome {
        /// Step worked.
        Ok = "ok",
        /// Step was not tried; the message says why.
        Skipped = "skipped",
        /// Step did not work.
        Failed = "failed",
    }
}

/// Step of a deep check.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct DeepStep {
    /// Part of the host that was tried.
    pub stage: DeepStage,
    /// Outcome.
    pub outcome: DeepOutcome,
    /// Duration, in milliseconds.
    pub took_ms: u64,
    /// Work that was done, or the reason why it was skipped.
    pub message: Option<String>,
    /// Why it failed; `details.failure` has the last lines of the program that did.
    pub error: Option<Box<Error>>,
}

/// Findings of a deep check of one host.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct DeepCheck {
    /// Whether no step failed and nothing is left.
    pub ok: bool,
    /// The check's operation. Its sandboxes and its snapshot are labelled `sandboxer.check` with this id.
    pub operation: OperationId,
    /// Every step, in order; one that came after a failure is skipped.
    pub steps: Vec<DeepStep>,
    /// The sandboxes that were made.
    pub sandboxes: Vec<SandboxId>,
    /// The snapshots that were made.
    pub snapshots: Vec<SnapshotId>,
    /// Remains of them on the host. Other changes meanwhile are others' business.
    pub left: Vec<Resource>,
}

impl DeepCheck {
    /// Why the first step that failed did.
    pub fn error(&self) -> Option<&Error> {
        self.steps.iter().find_map(|step| step.error.as_deref())
    }
}
