//! Operations: what is being done, by which process, and how it ended.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::domain::Time;
use crate::domain::event::Actor;
use crate::domain::fault::{Code, Fault};
use crate::domain::name::{OperationId, SandboxId, SnapshotId};
use crate::domain::words::string_enum;

string_enum! {
    /// What an operation does.
    pub enum OperationKind {
        /// Make a sandbox.
        Create = "create",
        /// Remove one.
        Destroy = "destroy",
        /// Remove and make again under the same id.
        Recreate = "recreate",
        /// Make one from a snapshot.
        Restore = "restore",
        /// Checkpoint one.
        Snapshot = "snapshot",
        /// Stop one.
        Sleep = "sleep",
        /// Start a sleeping one.
        Wake = "wake",
        /// Apply patches.
        Patch = "patch",
        /// Copy a snapshot to another host.
        Copy = "copy",
        /// Read a snapshot and compare it with what is known of it.
        Verify = "verify",
        /// Take a snapshot from a file.
        Import = "import",
        /// Remove a snapshot.
        Delete = "delete",
        /// Try everything on a host.
        Check = "check",
        /// Bring into order what a dead process left.
        Recover = "recover",
    }
}

string_enum! {
    /// How far an operation has come.
    pub enum OperationState {
        /// Somebody works on it.
        Running = "running",
        /// Done.
        Succeeded = "succeeded",
        /// Ended with an error.
        Failed = "failed",
        /// Rolled back on request.
        Cancelled = "cancelled",
    }
}

/// An error as it is kept on an operation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct OperationError {
    /// The error's code.
    pub code: Code,
    /// Its sentence.
    pub message: String,
    /// The sentences of its causes, outermost first.
    #[serde(default)]
    pub causes: Vec<String>,
    /// What to do next.
    pub hint: Option<String>,
    /// Whether the same request may succeed later.
    #[serde(default)]
    pub retryable: bool,
    /// Machine-readable particulars, or null.
    #[serde(default)]
    pub details: serde_json::Value,
}

impl From<Fault> for OperationError {
    fn from(fault: Fault) -> Self {
        Self {
            causes: fault.causes(),
            code: fault.code,
            message: fault.message,
            hint: fault.hint,
            retryable: fault.retryable,
            details: fault.details,
        }
    }
}

impl From<OperationError> for Fault {
    fn from(error: OperationError) -> Self {
        let mut fault = Self::new(error.code, error.message).retryable(error.retryable);
        (fault.hint, fault.details) = (error.hint, error.details);
        if error.causes.is_empty() { fault } else { fault.because(error.causes.join(": ")) }
    }
}

/// One operation (contract, section 3). `stage`, `done`, `of` and `bytes` live only in the running process.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Operation {
    /// Its id.
    pub id: OperationId,
    /// What it does.
    pub kind: OperationKind,
    /// On which sandbox.
    pub sandbox_id: Option<SandboxId>,
    /// On which snapshot.
    pub snapshot_id: Option<SnapshotId>,
    /// How far it has come.
    pub state: OperationState,
    /// The step it is at.
    pub stage: Option<String>,
    /// How much of the step is done, in the step's unit.
    pub done: Option<u64>,
    /// Out of how much.
    pub of: Option<u64>,
    /// Bytes moved.
    pub bytes: Option<u64>,
    /// When it began.
    pub started_at: Time,
    /// When it ended.
    pub finished_at: Option<Time>,
    /// The process that runs it.
    pub pid: u32,
    /// The machine that process is on.
    pub host: String,
    /// Who asked for it.
    pub actor: Actor,
    /// Whether somebody asked to roll it back.
    #[serde(default)]
    pub cancel_requested: bool,
    /// How it failed. Boxed: most have not.
    pub error: Option<Box<OperationError>>,
}
