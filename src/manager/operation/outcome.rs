//! Outcome of an operation: the record of what it worked on as it is then, or why it failed.

use std::sync::PoisonError;

use crate::domain::error::{Code, Error};
use crate::domain::name::{SandboxId, SnapshotId};
use crate::domain::operation::{Operation, OperationKind, Subject};
use crate::domain::record::Record;
use crate::domain::snapshot::SnapshotRecord;
use crate::manager::deps::Deps;
use crate::manager::sandboxes::find::find_sandbox;

/// Outcome of an operation that has ended.
///
/// Errors: the operation's own; `not_found` when what it worked on is gone.
pub(crate) async fn outcome_of(deps: &Deps, operation: &Operation) -> Result<Record, Error> {
    match (&operation.subject, &operation.kind) {
        (Subject::Sandbox(sandbox), _)
        | (Subject::SandboxAndSnapshot(sandbox, _), OperationKind::Restore) => {
            sandbox_outcome(deps, operation, sandbox).await
        }
        (Subject::Snapshot(snapshot) | Subject::SandboxAndSnapshot(_, snapshot), _) => {
            failure(operation)?;
            last_record(deps, snapshot).await.map(Record::from)
        }
        // A failure is in its item, and none of the report.
        (Subject::Host, OperationKind::Reap) => {
            let report =
                deps.reaps.lock().unwrap_or_else(PoisonError::into_inner).remove(&operation.id);
            match report {
                Some(report) => Ok(report.into()),
                None => Err(failure(operation).err().unwrap_or_else(|| {
                    Error::internal(format!("{} is no reap of this process", operation.id))
                })),
            }
        }
        // Steps that failed are among the findings, and no failure of the check.
        (Subject::Host, _) => {
            let findings = &deps.deeply_checked;
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

async fn sandbox_outcome(
    deps: &Deps,
    operation: &Operation,
    sandbox: &SandboxId,
) -> Result<Record, Error> {
    let record = find_sandbox(deps, sandbox.as_str()).await;
    let Err(error) = failure(operation) else { return record.map(Record::from) };
    let Ok(record) = record else { return Err(error) };
    let error = error.detail("id", record.id.as_str()).detail("state", record.state.as_str());
    Err(match &record.failure {
        Some(failure) => error.step(failure.step.as_str()),
        None => error,
    })
}

/// Record of a snapshot; of one that this process deleted, its last.
async fn last_record(deps: &Deps, snapshot: &SnapshotId) -> Result<SnapshotRecord, Error> {
    if let Some(record) = deps.snapshots.get(snapshot).await? {
        return Ok(record);
    }
    let gone = deps.deleted.lock().unwrap_or_else(PoisonError::into_inner).remove(snapshot);
    gone.ok_or_else(|| Error::new(Code::NotFound, format!("snapshot {snapshot} is deleted")))
}
