//! Snapshot: write ahead, capture, write `ready`; or leave nothing and keep the reason (semantics 6).

use crate::domain::fault::{Code, Fault};
use crate::domain::request::{PruneItem, PruneRequest, SnapshotDeleteRequest, SnapshotRequest, SnapshotStarted};
use crate::manager::SandboxManager;

impl SandboxManager {
    /// Starts a snapshot and returns at once.
    pub async fn snapshot(&self, request: &SnapshotRequest) -> Result<SnapshotStarted, Fault> {
        Err(Fault::new(Code::Unsupported, format!("{}: not there yet", request.id)))
    }

    /// Starts to delete a snapshot.
    pub async fn delete_snapshot(&self, request: &SnapshotDeleteRequest) -> Result<SnapshotStarted, Fault> {
        Err(Fault::new(Code::Unsupported, format!("{}: not there yet", request.id)))
    }

    /// Deletes old snapshots, or says which it would.
    pub async fn prune_snapshots(&self, _request: &PruneRequest) -> Result<Vec<PruneItem>, Fault> {
        Err(Fault::new(Code::Unsupported, "not there yet"))
    }
}
