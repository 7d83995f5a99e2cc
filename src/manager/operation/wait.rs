//! Waiting for the end of an operation, of this process or of another.

use std::time::Duration;

use crate::domain::error::{Code, Error};
use crate::domain::name::OperationId;
use crate::domain::operation::{Operation, OperationState, Subject};
use crate::domain::record::Record;
use crate::domain::sandbox::SandboxRecord;
use crate::domain::snapshot::SnapshotRecord;
use crate::manager::deps::Deps;
use crate::manager::operation::outcome::outcome_of;
use crate::manager::sandboxes::find::find_sandbox;
use crate::store::Held;

/// Pause between two looks at another process's operation.
const WATCH_POLL: Duration = Duration::from_millis(300);

/// Waits for an operation's end, whichever process runs it; what it worked on as it is then, or what went wrong.
pub(crate) async fn wait(deps: &Deps, id: &OperationId) -> Result<Record, Error> {
    match deps.jobs.ended(id).await {
        Some(ended) => ended.outcome,
        None => outcome_of(deps, &wait_for_other_process(deps, id).await?).await,
    }
}

/// Waits for an operation's end; the snapshot that it worked on as it is then.
pub(crate) async fn wait_for_snapshot(
    deps: &Deps,
    id: &OperationId,
) -> Result<SnapshotRecord, Error> {
    wait(deps, id).await?.into_snapshot()
}

/// The lock under which an operation works, if nobody has it.
async fn try_lock_of(deps: &Deps, operation: &Operation) -> Result<Option<Box<dyn Held>>, Error> {
    match &operation.subject {
        Subject::Sandbox(sandbox) | Subject::SandboxAndSnapshot(sandbox, _) => {
            deps.locks.try_lock(sandbox).await
        }
        Subject::Snapshot(snapshot) => deps.locks.try_lock_snapshot(snapshot).await,
        Subject::Host => Ok(None),
    }
}

/// Waits for the end of an operation that another process runs.
async fn wait_for_other_process(deps: &Deps, id: &OperationId) -> Result<Operation, Error> {
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
            // Ended between the two looks, perhaps.
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
        tokio::time::sleep(WATCH_POLL).await;
    }
}

/// Waits for an operation's end; the operation, and the sandbox that it worked on, as they are then.
pub(crate) async fn wait_for_operation(
    deps: &Deps,
    id: &OperationId,
) -> Result<(Operation, Option<SandboxRecord>), Error> {
    let operation = match deps.jobs.ended(id).await {
        Some(ended) => ended.operation,
        None => wait_for_other_process(deps, id).await?,
    };
    let record = match operation.subject.sandbox() {
        Some(sandbox) => Some(find_sandbox(deps, sandbox.as_str()).await?),
        None => None,
    };
    Ok((operation, record))
}
