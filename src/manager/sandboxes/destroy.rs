//! Destroy (semantics 1 and 3).

use crate::domain::error::{Code, Error};
use crate::domain::operation::OperationKind;
use crate::domain::request::{DestroyRequest, Started};
use crate::domain::sandbox::{SandboxRecord, State};
use crate::manager::deps::Deps;
use crate::manager::operation::Op;
use crate::manager::operation::record::operation_on;
use crate::manager::sandboxes::find::{find_sandbox, get_at_revision};
use crate::manager::sandboxes::remove::{destroy_keeping_undo, take_over_lock};
use crate::manager::snapshots::undo_snapshot::UndoPolicy;
use crate::manager::upkeep::forget::forget_sandbox;
use crate::manager::upkeep::ownership::ensure_own;

/// Starts a removal and returns at once. One that is destroyed already is nothing to do.
pub(crate) async fn destroy(deps: &Deps, request: &DestroyRequest) -> Result<Started, Error> {
    let record = get_at_revision(deps, &request.id, request.revision).await?;
    if record.state == State::Destroyed || request.forget && record.state == State::Forgotten {
        return Ok(Started { operation: None, sandbox: record });
    }
    check_protection(&record, request.force_protected)?;
    let (forget, forced) = (request.forget, request.force_protected);
    let undo = UndoPolicy::of_request(request.no_undo);
    if !forget {
        refuse_imported(&record)?;
        ensure_own(deps).await?;
    }
    let operation = operation_on(deps, OperationKind::Destroy, &record);
    let op = Box::pin(Op::queue(deps, operation, record.clone(), None)).await?;
    let operation = op.run(None, move |op| async move {
        if forget { forget_sandbox(&op).await } else { destroy_waiting(&op, forced, undo).await }
    });
    Ok(Started { operation: Some(operation), sandbox: record })
}

async fn destroy_waiting(
    op: &Op<SandboxRecord>,
    forced: bool,
    undo: UndoPolicy,
) -> Result<(), Error> {
    let deps = &op.deps;
    let lock = take_over_lock(op, false).await?;
    let before = find_sandbox(deps, op.subject.id.as_str()).await?;
    if before.state == State::Destroyed {
        return Ok(());
    }
    // Somebody may have protected it while the lock was waited for, or its undo snapshot was taken.
    let allowed = |record: &SandboxRecord| check_protection(record, forced);
    allowed(&before)?;
    destroy_keeping_undo(op, &before, undo, allowed).await?;
    drop(lock);
    (deps.host_reached)(deps, &before.host).await;
    Ok(())
}

/// Refuses one of the earlier tool's: it bears no label and no manifest, so a look would find nothing of it, and what is there
/// would be called destroyed.
pub(crate) fn refuse_imported(record: &SandboxRecord) -> Result<(), Error> {
    if record.imported.is_none() {
        return Ok(());
    }
    let (id, host) = (&record.id, &record.host);
    let message = format!(
        "sandbox {id} was imported from the earlier tool: nothing on {host} proves anything there its own"
    );
    Err(Error::new(Code::Unsupported, message).hint(format!(
        "remove it on {host} by hand (`sandboxer get {id} --json` shows its handle under `imported`), then `sandboxer destroy {id} --forget`"
    )))
}

/// Refuses what is too late for a sandbox once its removal waits for its host; `what`: that it cannot be done.
pub(crate) fn refuse_during_removal(record: &SandboxRecord, what: &str) -> Result<(), Error> {
    let removed_by = record.operation.as_ref().filter(|on_it| on_it.kind == OperationKind::Destroy);
    let Some(on_it) = removed_by else { return Ok(()) };
    let (id, since) = (&record.id, on_it.started_at);
    let message = format!("sandbox {id} is being destroyed since {since}; {what}");
    Err(Error::new(Code::Conflict, message)
        .hint("cancel that first, if it is not too late")
        .detail("operation", on_it.id.as_str()))
}

pub(crate) fn check_protection(record: &SandboxRecord, forced: bool) -> Result<(), Error> {
    if record.is_protected() && !forced {
        return Err(Error::new(
            Code::Conflict,
            format!("sandbox {} is labelled protect=true", record.id),
        )
        .hint("--force-protected does it all the same"));
    }
    Ok(())
}
