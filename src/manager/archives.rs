//! What is done with a snapshot that is there: verify, copy, export, import, compare.

use crate::domain::archive::ByteStream;
use crate::domain::fault::{Code, Fault};
use crate::domain::request::{
    SnapshotCopyRequest, SnapshotDiff, SnapshotDiffRequest, SnapshotImportRequest, SnapshotStarted,
};
use crate::manager::SandboxManager;

impl SandboxManager {
    /// Starts to read a snapshot and to compare it with what is known of it.
    pub async fn verify_snapshot(&self, id: &str) -> Result<SnapshotStarted, Fault> {
        Err(Fault::new(Code::Unsupported, format!("{id}: not there yet")))
    }

    /// Starts to copy a snapshot to another host.
    pub async fn copy_snapshot(&self, request: &SnapshotCopyRequest) -> Result<SnapshotStarted, Fault> {
        Err(Fault::new(Code::Unsupported, format!("{}: not there yet", request.id)))
    }

    /// The bytes of a file that an import takes.
    pub async fn export_snapshot(&self, id: &str) -> Result<ByteStream, Fault> {
        Err(Fault::new(Code::Unsupported, format!("{id}: not there yet")))
    }

    /// Starts to take a snapshot from a file's bytes.
    pub async fn import_snapshot(
        &self,
        request: &SnapshotImportRequest,
        _source: ByteStream,
    ) -> Result<SnapshotStarted, Fault> {
        Err(Fault::new(Code::Unsupported, format!("{}: not there yet", request.host)))
    }

    /// What differs between a snapshot and another one, or a sandbox as it is now.
    pub async fn diff_snapshot(&self, request: &SnapshotDiffRequest) -> Result<SnapshotDiff, Fault> {
        Err(Fault::new(Code::Unsupported, format!("{}: not there yet", request.a)))
    }
}
