//! Operations whose process died: who they were, their end, and what may begin over them.

use crate::domain::error::{Code, Error};
use crate::domain::name::OperationId;
use crate::domain::operation::{CancelOutcome, Operation, OperationKind, OperationState, Subject};
use crate::domain::sandbox::{Running, SandboxRecord, State};
use crate::manager::deps::Deps;

/// Ends the dead operation over which another one began. Who cannot write that down leaves it to `recover`.
pub(crate) async fn end_predecessor(deps: &Deps, dead: Option<&Running>) {
    let Some(dead) = dead else { return };
    if let Err(error) = end_dead_operation(deps, &dead.id).await {
        tracing::warn!(operation = %dead.id, %error, "its end could not be written");
    }
}

/// Refuses to begin where a dead operation may have left what only `recover` brings in order: containers that are paused,
/// or neither awake nor asleep.
///
/// Errors: `conflict`, with the dead operation.
pub(crate) fn check_can_start(kind: &OperationKind, record: &SandboxRecord) -> Result<(), Error> {
    use OperationKind::{Patch, Recreate, Sleep, Wake};
    let Some(dead) = &record.operation else { return Ok(()) };
    let hides_nothing = match &dead.kind {
        // Nobody knows whether its script ran, which is on the record from here on.
        Patch => true,
        // Recreate removes nothing before the record says so.
        Recreate => record.state != State::Provisioning,
        // A sleep or a wake does all of it, whatever was done already.
        Sleep | Wake => matches!(kind, Sleep | Wake),
        _ => false,
    };
    if hides_nothing {
        return Ok(());
    }
    let (id, dead_was) = (&record.id, by(&dead.kind, dead.pid, &dead.host));
    Err(Error::new(
        Code::Conflict,
        format!("sandbox {id} is not in order: {dead_was} died over it"),
    )
    .hint("`sandboxer recover` brings it in order; then try again")
    .detail("operation", dead.id.as_str())
    .detail("state", record.state.as_str()))
}

/// Whether somebody may still work on an operation.
pub(crate) async fn is_alive(deps: &Deps, operation: &Operation) -> Result<bool, Error> {
    if operation.host == deps.settings.machine && (deps.alive)(operation.pid, operation.started_at)
    {
        return Ok(true);
    }
    match &operation.subject {
        Subject::Sandbox(sandbox) | Subject::SandboxAndSnapshot(sandbox, _) => {
            Ok(deps.locks.try_lock(sandbox).await?.is_none())
        }
        Subject::Snapshot(snapshot) => Ok(deps.locks.try_lock_snapshot(snapshot).await?.is_none()),
        Subject::Host => Ok(false),
    }
}

/// Writes an operation's end for the process that died over it.
pub(crate) async fn end_dead_operation(deps: &Deps, id: &OperationId) -> Result<(), Error> {
    let Some(mut operation) = deps.operations.get(id).await? else { return Ok(()) };
    if operation.state != OperationState::Running {
        return Ok(());
    }
    let message = format!("the process {} on {} died", operation.pid, operation.host);
    operation.state = OperationState::Failed;
    operation.cancel_outcome = operation.cancel_requested.then_some(CancelOutcome::Stopped);
    operation.finished_at = Some(deps.now());
    operation.error = Some(Box::new(Error::new(Code::OperationFailed, message)));
    deps.operations.put(operation).await
}

pub(crate) fn by(kind: &OperationKind, pid: u32, host: &str) -> String {
    format!("{kind} by process {pid} on {host}")
}

/// Operation on a record whose lock is free, if the very process that runs it lives on this machine: it would hold the lock, if
/// this were the data directory that it works on. One that wrote its end down, and left something to bring in order, works no more.
pub(crate) async fn works_elsewhere<'a>(
    deps: &Deps,
    operation: Option<&'a Running>,
) -> Result<Option<&'a Running>, Error> {
    let lives =
        |it: &&Running| it.host == deps.settings.machine && (deps.alive)(it.pid, it.started_at);
    let Some(working) = operation.filter(lives) else { return Ok(None) };
    let known = deps.operations.get(&working.id).await?;
    let has_ended = known.is_some_and(|known| known.state != OperationState::Running);
    Ok((!has_ended).then_some(working))
}

/// Reason to leave what is worked on elsewhere.
pub(crate) fn elsewhere_words(working: &Running) -> String {
    let pid = working.pid;
    format!("process {pid} still works on it, and not on this data directory: this is a copy")
}
