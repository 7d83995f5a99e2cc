//! Waiting for the end of an operation, of this process or of another.

use std::sync::PoisonError;
use std::time::Duration;

use crate::domain::error::{Code, Error};
use crate::domain::name::OperationId;
use crate::domain::operation::{Operation, OperationState};
use crate::domain::sandbox::SandboxRecord;
use crate::domain::snapshot::SnapshotRecord;
use crate::manager::deps::Deps;
use crate::manager::sandboxes::find::find_sandbox;
use crate::store::Held;

/// Waits for the end of an operation on a snapshot; the record as it is then. One that was deleted is told as it was.
pub(crate) async fn wait_for_snapshot_operation(
    deps: &Deps,
    id: &OperationId,
) -> Result<SnapshotRecord, Error> {
    let operation = match deps.jobs.ended(id).await {
        Some(operation) => operation,
        None => wait_elsewhere(deps, id).await?,
    };
    if let Some(error) = operation.error {
        return Err(*error);
    }
    let snapshot =
        operation.snapshot_id.ok_or_else(|| Error::internal("the operation has no snapshot"))?;
    if let Some(record) = deps.snapshots.get(&snapshot).await? {
        return Ok(record);
    }
    let gone = deps.deleted.lock().unwrap_or_else(PoisonError::into_inner).get(&snapshot).cloned();
    gone.ok_or_else(|| Error::new(Code::NotFound, format!("snapshot {snapshot} is deleted")))
}

/// How often another process's operation is looked at.
const WATCH_EVERY: Duration = Duration::from_millis(300);

/// The lock under which an operation works, if nobody has it.
async fn try_lock_of(deps: &Deps, operation: &Operation) -> Result<Option<Box<dyn Held>>, Error> {
    match (&operation.sandbox_id, &operation.snapshot_id) {
        (Some(sandbox), _) => deps.locks.try_lock(sandbox).await,
        (None, Some(snapshot)) => deps.locks.try_lock_snapshot(snapshot).await,
        (None, None) => Ok(None),
    }
}

/// Waits for the end of an operation that another process runs.
pub(crate) async fn wait_elsewhere(deps: &Deps, id: &OperationId) -> Result<Operation, Error> {
    loop {
        let operation = deps
            .operations
            .get(id)
            .await?
            .ok_or_else(|| Error::new(Code::NotFound, format!("there is no operation {id}")))?;
        if operation.state != OperationState::Running {
            return Ok(operation);
        }
        if let Some(free) = try_lock_of(deps, &operation).await? {
            drop(free);
            // It may have ended between the two looks.
            if let Some(ended) = deps.operations.get(id).await?
                && ended.state != OperationState::Running
            {
                return Ok(ended);
            }
            return Err(Error::new(
                Code::OperationFailed,
                format!("the process {} that ran operation {id} is gone", operation.pid),
            )
            .hint("`sandboxer recover` brings what it left into order"));
        }
        tokio::time::sleep(WATCH_EVERY).await;
    }
}

/// Waits for an operation's end; the record as it is then, or what went wrong.
pub(crate) async fn wait_for_operation(
    deps: &Deps,
    id: &OperationId,
) -> Result<(Operation, Option<SandboxRecord>), Error> {
    let operation = match deps.jobs.ended(id).await {
        Some(operation) => operation,
        None => wait_elsewhere(deps, id).await?,
    };
    let record = match &operation.sandbox_id {
        Some(sandbox) => Some(find_sandbox(deps, sandbox.as_str()).await?),
        None => None,
    };
    Ok((operation, record))
}
