//! Cancelling: asked of an operation of this process or of another, and heard by the work.

use crate::domain::error::{Code, Error};
use crate::domain::name::{OperationId, SandboxId};
use crate::domain::operation::OperationState;
use crate::domain::sandbox::{Running, SandboxRecord};
use crate::manager::deps::Deps;
use crate::manager::journal::{self, Guard};
use crate::store::ending;

/// Sets `cancel_requested` on the operation that works on a sandbox, if one does; with `only`, if that is it.
pub(crate) async fn request_cancel(
    deps: &Deps,
    id: &SandboxId,
    only: Option<&OperationId>,
) -> Result<SandboxRecord, Error> {
    let meant = |running: &Running| only.is_none_or(|only| running.id == *only);
    let ask = journal::update(deps, id, Guard::Any, Vec::new(), |record: &mut SandboxRecord| {
        if let Some(running) = record.operation.as_mut().filter(|running| meant(running)) {
            running.cancel_requested = true;
        }
        Ok(())
    });
    let record = ending(ask).await?;
    // An operation that still waits for the sandbox is not on the record.
    let asked = only.or(record.operation.as_ref().map(|running| &running.id));
    if let Some(asked) = asked {
        deps.operations.request_cancel(asked).await?;
    }
    Ok(record)
}

/// Asks for an operation's end: of one of this process directly, of another's through its record.
pub(crate) async fn cancel_operation(deps: &Deps, id: &OperationId) -> Result<(), Error> {
    if deps.jobs.cancel(id) {
        return Ok(());
    }
    let operation = deps.operations.get(id).await?.ok_or_else(|| {
        Error::new(Code::NotFound, format!("there is no operation {id}"))
            .hint("the dashboard's J lists them")
    })?;
    match operation.subject.sandbox() {
        Some(sandbox) if operation.state == OperationState::Running => {
            request_cancel(deps, sandbox, Some(id)).await.map(|_| ())
        }
        // An operation on a snapshot alone looks for this by itself.
        None if operation.state == OperationState::Running => {
            deps.operations.request_cancel(id).await.map(|_| ())
        }
        // Ended by itself.
        _ => Ok(()),
    }
}
