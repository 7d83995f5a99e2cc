//! Requests that start an operation, and what is answered: also the format of a server.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::domain::host_view::HostView;
use crate::domain::name::OperationId;
use crate::domain::record::Record;
use crate::domain::request::{
    self, ApplyRequest, CreateRequest, DestroyRequest, HostCheckRequest, RecreateRequest,
    RestoreRequest, SleepRequest, SnapshotCopyRequest, SnapshotDeleteRequest, SnapshotRequest,
    SnapshotStarted, SnapshotVerifyRequest,
};
use crate::domain::stale::{ReapRequest, ReapStarted};
use crate::domain::undo::UndoRequest;

/// Verb that starts an operation, with what it asks for. Where somebody was shown something first, its revision, patches
/// and dependants as shown are in it, and are judged where the record is written.
///
/// An import is none of them: the file's bytes come beside it, and a stream is no document.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Request {
    /// Makes a sandbox.
    Create(Box<CreateRequest>),
    /// Removes a sandbox.
    Destroy(DestroyRequest),
    /// Removes a sandbox and makes it again under the same id.
    Recreate(RecreateRequest),
    /// Stops a sandbox that is ready. One that sleeps is nothing to do.
    Sleep(SleepRequest),
    /// Wakes a sandbox that sleeps, patches and all. One that is ready is nothing to do.
    Wake(SleepRequest),
    /// Applies what a sandbox owes of its patches; it stays `ready`.
    ApplyPatches(ApplyRequest),
    /// Takes a snapshot of a sandbox.
    Snapshot(SnapshotRequest),
    /// Makes a sandbox from a snapshot.
    Restore(RestoreRequest),
    /// Reads a snapshot and compares it with what is known of it.
    VerifySnapshot(SnapshotVerifyRequest),
    /// Copies a snapshot to another host.
    CopySnapshot(SnapshotCopyRequest),
    /// Deletes a snapshot. `in_use` names what depends on it.
    DeleteSnapshot(SnapshotDeleteRequest),
    /// Tries everything on a host. What fails there is a step that says so.
    CheckHost(HostCheckRequest),
    /// Applies a reap plan. What fails or is skipped is an item that says so.
    Reap(Box<ReapRequest>),
    /// Brings a removed sandbox back, as a new one, from what was kept of it.
    Undo(UndoRequest),
}

/// Answer to a request: it was accepted, and nothing is waited for.
#[derive(Debug, Clone, PartialEq)]
pub struct Started {
    /// The operation; none when there was nothing to do (a repeated create, say).
    pub operation: Option<OperationId>,
    /// Subject, as it is now.
    pub record: Record,
}

impl From<request::Started> for Started {
    fn from(started: request::Started) -> Self {
        Self { operation: started.operation, record: started.sandbox.into() }
    }
}

impl From<ReapStarted> for Started {
    fn from(started: ReapStarted) -> Self {
        Self { operation: started.operation, record: started.report.into() }
    }
}

impl From<(OperationId, HostView)> for Started {
    fn from((operation, host): (OperationId, HostView)) -> Self {
        Self { operation: Some(operation), record: host.into() }
    }
}

impl From<SnapshotStarted> for Started {
    fn from(started: SnapshotStarted) -> Self {
        Self { operation: started.operation, record: started.snapshot.into() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_is_a_document_with_its_verb() {
        let wake = SleepRequest { id: "a1b2c3d4".into(), revision: Some(3), patches: None };
        let wake = Request::Wake(wake);
        let text = serde_json::to_string(&wake).unwrap();
        assert_eq!(text, r#"{"wake":{"id":"a1b2c3d4","revision":3}}"#);
        assert_eq!(serde_json::from_str::<Request>(&text).unwrap(), wake);
    }
}
