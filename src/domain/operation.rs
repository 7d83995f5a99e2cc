//! Operations: what is being done, by which process, and how it ended.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::domain::Time;
use crate::domain::actor::Actor;
pub use crate::domain::error::CancelOutcome;
use crate::domain::error::Error;
use crate::domain::name::{OperationId, SandboxId, SnapshotId};
use crate::domain::words::string_enum;

string_enum! {
    /// Kind of operation.
    pub enum OperationKind {
        /// Make a sandbox.
        Create = "create",
        /// Remove one.
        Destroy = "destroy",
        /// Remove and make again under the same id.
        Recreate = "recreate",
        /// Make one from a snapshot.
        Restore = "restore",
        /// Take a snapshot of one.
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
        /// Apply a reap plan.
        Reap = "reap",
    }
}

impl OperationKind {
    /// Consequence of cancelling it.
    pub(crate) fn cancel_leaves(&self) -> &'static str {
        match self {
            Self::Create | Self::Restore => {
                "what was made on the host is removed; the record stays as failed"
            }
            Self::Recreate => {
                "as long as nothing was removed, nothing changes; after that, what was made anew is removed, and the old one is gone"
            }
            Self::Destroy => {
                "as long as its host has not begun, nothing changes; after that, what is removed stays removed, and the rest is finished later"
            }
            Self::Delete => "what is removed stays removed; the rest is finished later",
            Self::Snapshot | Self::Copy | Self::Import => {
                "what was written of the archive is removed; containers that stand still go on"
            }
            Self::Sleep => "what is stopped already stays stopped, or is started again",
            Self::Wake => {
                "what is started already is stopped again; a patch that runs is ended and may be half done"
            }
            Self::Patch => {
                "a patch that runs is ended and may be half done; those before it stay applied"
            }
            Self::Verify => "it only reads: nothing is left of it",
            Self::Check => "what was made for it is removed",
            Self::Recover => "what is not looked at yet stays for the next recover",
            Self::Reap => "what is begun comes to its end; the rest of the plan is left",
            Self::Other(_) => "it may be half done",
        }
    }
}

string_enum! {
    /// State of an operation.
    pub enum OperationState {
        /// Somebody works on it.
        Running = "running",
        /// Done.
        Succeeded = "succeeded",
        /// Ended with an error.
        Failed = "failed",
        /// Ended on request; `cancel_outcome` says how it was left.
        Cancelled = "cancelled",
    }
}

/// Subject of an operation. In JSON the fields `sandbox_id` and `snapshot_id` of the operation itself.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(from = "SubjectIds", into = "SubjectIds")]
#[schemars(with = "SubjectIds")]
pub enum Subject {
    /// A sandbox.
    Sandbox(SandboxId),
    /// A snapshot.
    Snapshot(SnapshotId),
    /// A sandbox and a snapshot: one is made from the other, and the operation's kind says which.
    SandboxAndSnapshot(SandboxId, SnapshotId),
    /// A host, or several, which the record does not name.
    Host,
}

impl Subject {
    /// The sandbox, where there is one.
    pub fn sandbox(&self) -> Option<&SandboxId> {
        match self {
            Self::Sandbox(sandbox) | Self::SandboxAndSnapshot(sandbox, _) => Some(sandbox),
            Self::Snapshot(_) | Self::Host => None,
        }
    }

    /// The snapshot, where there is one.
    pub fn snapshot(&self) -> Option<&SnapshotId> {
        match self {
            Self::Snapshot(snapshot) | Self::SandboxAndSnapshot(_, snapshot) => Some(snapshot),
            Self::Sandbox(_) | Self::Host => None,
        }
    }
}

/// Subject of an operation as it is stored and sent.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
struct SubjectIds {
    sandbox_id: Option<SandboxId>,
    snapshot_id: Option<SnapshotId>,
}

impl From<SubjectIds> for Subject {
    fn from(ids: SubjectIds) -> Self {
        match (ids.sandbox_id, ids.snapshot_id) {
            (Some(sandbox), None) => Self::Sandbox(sandbox),
            (None, Some(snapshot)) => Self::Snapshot(snapshot),
            (Some(sandbox), Some(snapshot)) => Self::SandboxAndSnapshot(sandbox, snapshot),
            (None, None) => Self::Host,
        }
    }
}

impl From<Subject> for SubjectIds {
    fn from(subject: Subject) -> Self {
        Self { sandbox_id: subject.sandbox().cloned(), snapshot_id: subject.snapshot().cloned() }
    }
}

/// Operation (contract, section 3). `stage`, `done`, `of` and `bytes` live only in the running process.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Operation {
    /// Id.
    pub id: OperationId,
    /// Kind.
    pub kind: OperationKind,
    /// Subject.
    #[serde(flatten)]
    pub subject: Subject,
    /// The name of what it works on, as it was when the operation began; null where that has none.
    #[serde(default)]
    pub name: Option<String>,
    /// State.
    pub state: OperationState,
    /// The step it is at.
    pub stage: Option<String>,
    /// Part of the step that is done, in the step's unit.
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
    /// Actor that asked for it.
    pub actor: Actor,
    /// Whether somebody asked for its end.
    #[serde(default)]
    pub cancel_requested: bool,
    /// State in which a cancelled one was left; null while it runs.
    #[serde(default)]
    pub cancel_outcome: Option<CancelOutcome>,
    /// Error of a failed one. Boxed: most have none.
    pub error: Option<Box<Error>>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_subject_is_the_ids_of_its_operation() {
        let common = serde_json::json!({
            "id": "op-0000000a", "kind": "restore", "sandbox_id": null, "snapshot_id": null, "name": null, "state": "running",
            "stage": null, "done": null, "of": null, "bytes": null, "started_at": "2026-01-01T00:00:00.000Z",
            "finished_at": null, "pid": 1, "host": "here", "actor": {"type": "adm", "name": "kim"},
            "cancel_requested": false, "cancel_outcome": null, "error": null
        });
        let (sandbox, snapshot) = (SandboxId::new("a1b2c3d4"), SnapshotId::new("snap-0000000a"));
        for (sandbox_id, snapshot_id, subject) in [
            (Some("a1b2c3d4"), None, Subject::Sandbox(sandbox.clone())),
            (None, Some("snap-0000000a"), Subject::Snapshot(snapshot.clone())),
            (
                Some("a1b2c3d4"),
                Some("snap-0000000a"),
                Subject::SandboxAndSnapshot(sandbox.clone(), snapshot.clone()),
            ),
            (None, None, Subject::Host),
        ] {
            let mut stored = common.clone();
            stored["sandbox_id"] = sandbox_id.into();
            stored["snapshot_id"] = snapshot_id.into();
            let operation: Operation = serde_json::from_value(stored.clone()).unwrap();
            assert_eq!(operation.subject, subject);
            let written = serde_json::to_string(&operation).unwrap();
            assert_eq!(written, stored.to_string(), "field by field, in the same order");
        }
    }
}
