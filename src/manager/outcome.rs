//! Outcome of an operation: the record of what it worked on as it is then, or why it failed.

use std::sync::PoisonError;

use crate::domain::error::{Code, Error};
use crate::domain::name::{SandboxId, SnapshotId};
use crate::domain::operation::{Operation, OperationKind, Subject};
use crate::domain::record::Record;
use crate::domain::snapshot::SnapshotRecord;
use crate::manager::SandboxManager;

/// Outcome of an operation that has ended.
///
/// Errors: the operation's own; `not_found` when what it worked on is gone.
pub(super) async fn outcome_of(
    manager: &SandboxManager,
    operation: &Operation,
) -> Result<Record, Error> {
    match (&operation.subject, &operation.kind) {
        (Subject::Sandbox(sandbox), _)
        | (Subject::SandboxAndSnapshot(sandbox, _), OperationKind::Restore) => {
            of_sandbox(manager, operation, sandbox).await
        }
        (Subject::Snapshot(snapshot) | Subject::SandboxAndSnapshot(_, snapshot), _) => {
            failure(operation)?;
            last_record(manager, snapshot).await.map(Record::from)
        }
        // Steps that failed are among the findings, and no failure of the check.
        (Subject::Host, _) => {
            let findings = &manager.deeply_checked;
            let found =
                findings.lock().unwrap_or_else(PoisonError::into_inner).remove(&operation.id);
            match found {
                Some(view) => Ok(view.into()),
                None => Err(failure(operation).err().unwrap_or_else(|| {
                    Error::internal(format!("{} is no deep check of this process", operation.id))
                })),
            }
        }
    }
}

fn failure(operation: &Operation) -> Result<(), Error> {
    operation.error.as_deref().cloned().map_or(Ok(()), Err)
}

async fn of_sandbox(
    manager: &SandboxManager,
    operation: &Operation,
    sandbox: &SandboxId,
) -> Result<Record, Error> {
    let record = manager.get(sandbox.as_str()).await;
    let Err(error) = failure(operation) else { return record.map(Record::from) };
    let Ok(record) = record else { return Err(error) };
    let error = error.detail("id", record.id.as_str()).detail("state", record.state.as_str());
    Err(match &record.failure {
        Some(failure) => error.detail("step", failure.step.as_str()),
        None => error,
    })
}

/// Record of a snapshot; of one that this process deleted, its last.
async fn last_record(
    manager: &SandboxManager,
    snapshot: &SnapshotId,
) -> Result<SnapshotRecord, Error> {
    if let Some(record) = manager.parts.snapshots.get(snapshot).await? {
        return Ok(record);
    }
    let gone =
        manager.deleted.lock().unwrap_or_else(PoisonError::into_inner).get(snapshot).cloned();
    gone.ok_or_else(|| Error::new(Code::NotFound, format!("snapshot {snapshot} is deleted")))
}
