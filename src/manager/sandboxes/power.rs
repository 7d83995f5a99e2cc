//! Sleep and wake (semantics 1 and 7). A state is written when the host confirmed it. One that fails leaves what the host
//! says, and a message; a wake that fails or is cancelled is put back to sleep first, so that it can be tried again.

use std::time::Duration;

use tokio::time::Instant;

use crate::domain::error::{Code, Error, Kind};
use crate::domain::event::EventKind;
use crate::domain::extension::{Capability, Inspection, Readiness, SandboxExtension, Target};
use crate::domain::operation::{CancelOutcome, OperationKind};
use crate::domain::request::{SleepRequest, Started};
use crate::domain::sandbox::{Reason, Running, SandboxRecord, State};
use crate::failpoint;
use crate::manager::credits::cover::cover;
use crate::manager::deps::Deps;
use crate::manager::hosts::status::report_host_error;
use crate::manager::journal::NewEvent;
use crate::manager::operation::Op;
use crate::manager::operation::locks::lock_sandbox;
use crate::manager::operation::start::start;
use crate::manager::patches::apply::apply_pending;
use crate::manager::patches::find::ensure_patches_as_shown;
use crate::manager::patches::pending::has_pending;
use crate::manager::sandboxes::find::get_at_revision;
use crate::manager::sandboxes::inspect::{inspect_sandbox, lose, lost_event};
use crate::manager::sandboxes::resolve::resolve;
use crate::manager::sandboxes::settle::{RunningServices, patch_and_settle};

/// Limit of putting a failed wake back to sleep, and of the inspection after it.
const UNDO_LIMIT: Duration = Duration::from_mins(2);

/// Starts to stop one that is ready, and returns at once. One that sleeps is nothing to do.
pub(crate) async fn sleep(deps: &Deps, request: &SleepRequest) -> Result<Started, Error> {
    Box::pin(change_power_state(deps, OperationKind::Sleep, request)).await
}

/// Starts to wake one that sleeps, patches and all, and returns at once. One that is ready is nothing to do.
pub(crate) async fn wake(deps: &Deps, request: &SleepRequest) -> Result<Started, Error> {
    Box::pin(change_power_state(deps, OperationKind::Wake, request)).await
}

async fn change_power_state(
    deps: &Deps,
    kind: OperationKind,
    request: &SleepRequest,
) -> Result<Started, Error> {
    let record = get_at_revision(deps, &request.id, request.revision).await?;
    let extension = deps.extension(&record.extension)?;
    extension.ensure(&Capability::Sleep, kind.as_str())?;
    let (record, lock) = lock_sandbox(deps, &request.id, request.revision).await?;
    if !needs_change(&kind, &record)? {
        return Ok(Started { operation: None, sandbox: record });
    }
    ensure_patches_as_shown(deps, &record, request.patches.as_deref()).await?;
    let target = resolve(deps, &record).await?;
    let half = |dead: &Running| matches!(dead.kind, OperationKind::Sleep | OperationKind::Wake);
    let dead = record.operation.clone().filter(half);
    // Its hold may have run out while it slept, or been cut by a clock that was wrong.
    let record = if kind == OperationKind::Wake { cover(deps, record).await? } else { record };
    let op = start(deps, kind.clone(), (record, lock)).await?;
    let sandbox = op.subject.clone();
    let host = Some(sandbox.host.clone());
    let operation = op.run(host, move |op| async move {
        let change = PowerChange { op: &op, dead, extension: extension.as_ref(), target: &target };
        match kind {
            OperationKind::Sleep => run_sleep(&change).await,
            _ => run_wake(&change).await,
        }
    });
    Ok(Started { operation: Some(operation), sandbox })
}

/// Sleep or wake that runs.
struct PowerChange<'a> {
    op: &'a Op<SandboxRecord>,
    /// The dead sleep or wake over which it began.
    dead: Option<Running>,
    extension: &'a dyn SandboxExtension,
    target: &'a Target,
}

async fn run_sleep(change: &PowerChange<'_>) -> Result<(), Error> {
    let PowerChange { op, extension, target, .. } = *change;
    if let Err(error) = op.or_cancelled(extension.sleep(target, &op.progress)).await {
        return if error.is_refusal() {
            Err(put_back_refused(change, error).await)
        } else {
            reconcile(change, error).await
        };
    }
    failpoint::reached("sleep.confirmed");
    let now = op.deps.now();
    // For what is shown; that it sleeps is known.
    let seen = inspect_sandbox(&op.deps, extension, target).await.unwrap_or_default();
    op.update(vec![power_event(op, EventKind::SandboxSleeping)], move |record| {
        record.state = State::Sleeping;
        record.reason = Some(Reason::User);
        record.message = None;
        record.observed_at = Some(now);
        record.services = seen.services;
        record.reachability = None;
        record.operation = None;
    })
    .await?;
    failpoint::reached("sleep.sleeping");
    Ok(())
}

async fn run_wake(change: &PowerChange<'_>) -> Result<(), Error> {
    let PowerChange { op, extension, target, .. } = *change;
    let (ready, message) = match wake_and_patch(change).await {
        Ok(woken) => woken,
        Err(error) if error.is_refusal() => {
            return Err(put_back_refused(change, error).await);
        }
        Err(error) => {
            let id = &op.subject.id;
            let back = extension.sleep(target, &op.progress);
            match tokio::time::timeout(UNDO_LIMIT, back).await {
                Ok(Ok(())) => {}
                Ok(Err(why)) => {
                    tracing::warn!(sandbox = %id, error = %why, "it was not put back to sleep");
                }
                Err(_) => tracing::warn!(sandbox = %id, "it was not put back to sleep in time"),
            }
            return reconcile(change, error).await;
        }
    };
    let now = op.deps.now();
    op.update(vec![power_event(op, EventKind::SandboxWoken)], move |record| {
        record.state = State::Ready;
        record.reason = Some(Reason::User);
        record.message = message;
        record.observed_at = Some(now);
        record.services = ready.services;
        record.reachability = Some(ready.reachability);
        record.operation = None;
    })
    .await?;
    failpoint::reached("wake.ready");
    Ok(())
}

/// Wakes and patches: the services that run again, and a message on them. A patch that fails is no error: the sandbox is
/// usable.
async fn wake_and_patch(change: &PowerChange<'_>) -> Result<(Readiness, Option<String>), Error> {
    let PowerChange { op, extension, target, .. } = *change;
    let before = &op.subject;
    let limit = target.profile.ready_timeout.duration();
    op.progress.announce(0, u32::from(has_pending(&op.deps, before).await));
    let until = Instant::now() + limit;
    let ready = op.or_cancelled(extension.wake(target, limit, &op.progress)).await?;
    failpoint::reached("wake.awake");
    let patch = async {
        let applied = apply_pending(op, before, false).await?;
        failpoint::reached("wake.patched");
        Ok(applied.record.applied_patches != before.applied_patches)
    };
    let services = RunningServices { extension, target, until };
    let woken = Box::pin(patch_and_settle(op, services, ready, patch)).await?;
    failpoint::reached("wake.settled");
    Ok(woken)
}

/// After a sleep or a wake that was refused: the record is what it was; the error to tell.
async fn put_back_refused(change: &PowerChange<'_>, error: Error) -> Error {
    let dead = change.dead.clone();
    let write = change.op.update(Vec::new(), |record| record.operation = dead);
    write.await.err().unwrap_or(error)
}

/// After a sleep or a wake that failed: what the host says is written down, with the reason.
///
/// Errors: why it failed; none if it was cancelled and the host says that it was done by then.
async fn reconcile(change: &PowerChange<'_>, error: Error) -> Result<(), Error> {
    let PowerChange { op, extension, target, .. } = *change;
    let (deps, before) = (&op.deps, &op.subject);
    let look = tokio::time::timeout(UNDO_LIMIT, inspect_sandbox(deps, extension, target));
    let seen = look.await.ok().and_then(Result::ok);
    let now = deps.now();
    let verb = op.operation.kind.as_str();
    let end = outcome(op, error, seen.as_ref());
    let message = end.as_ref().err().map(|error| match error.code {
        Code::Cancelled => error.message.clone(),
        _ => format!("{verb} failed: {}", error.message),
    });
    let state = seen.as_ref().map_or_else(|| before.state.clone(), |seen| observed(before, seen));
    let mut events = Vec::new();
    match &state {
        State::Lost => events.extend(lost_event(before)),
        state if *state == before.state => {}
        State::Ready => events.push(power_event(op, EventKind::SandboxWoken)),
        _ => events.push(power_event(op, EventKind::SandboxSleeping)),
    }
    // `recover` looks again at what neither this nor the look has settled: over a dead one, where nobody could look, and after
    // a wake that left it in between.
    let known =
        seen.as_ref().is_some_and(|seen| seen.ready || seen.asleep || seen.resources.is_empty());
    let woken = op.operation.kind == OperationKind::Wake;
    let between = seen.as_ref().is_none_or(|seen| woken && seen.halfway);
    let dead = change.dead.clone().or_else(|| between.then(|| op.running())).filter(|_| !known);
    let write = op.update(events, move |record| {
        record.operation = dead;
        record.message = message;
        let Some(seen) = seen else { return };
        record.observed_at = Some(now);
        if state == State::Lost {
            return lose(record);
        }
        if state != record.state {
            record.reason = Some(Reason::User);
        }
        record.reachability = match state {
            State::Sleeping => None,
            _ => seen.reachability.or(record.reachability.take()),
        };
        record.services = seen.services;
        record.state = state;
    });
    write.await?;
    if let Err(error) = &end {
        report_host_error(deps, &before.host, error).await;
    }
    end
}

/// The event of a sandbox that went to sleep or woke.
fn power_event(op: &Op<SandboxRecord>, kind: EventKind) -> NewEvent {
    (kind, serde_json::json!({"host": op.subject.host, "took_ms": op.took_ms()}))
}

/// The state that an inspection shows. Something between awake and asleep leaves it as it was.
fn observed(before: &SandboxRecord, seen: &Inspection) -> State {
    if seen.resources.is_empty() {
        State::Lost
    } else if seen.ready {
        State::Ready
    } else if seen.asleep {
        State::Sleeping
    } else {
        before.state.clone()
    }
}

/// End of a sleep or a wake that was interrupted, by what its host says then.
///
/// Errors: the error, which says of a cancelled one how that left the sandbox.
fn outcome(op: &Op<SandboxRecord>, error: Error, seen: Option<&Inspection>) -> Result<(), Error> {
    // A patch that was cut off says so itself.
    if error.code != Code::Cancelled || error.kind == Kind::Cancelled(CancelOutcome::Stopped) {
        return Err(error);
    }
    let (id, verb) = (&op.subject.id, &op.operation.kind);
    let sleeps = *verb == OperationKind::Sleep;
    match seen {
        Some(seen) if sleeps && seen.asleep => Ok(()),
        Some(seen) if seen.ready && sleeps || seen.asleep => {
            let state = if sleeps { "runs" } else { "sleeps" };
            Err(CancelOutcome::Undone
                .error(format!("sandbox {id}: {verb} was cancelled; it {state} as before")))
        }
        _ => {
            let message = format!(
                "sandbox {id}: {verb} was cut off; some of its services may run and others not"
            );
            let hint = format!(
                "`sandboxer get {id}` shows them; `sandboxer {verb} {id}` again does all of it"
            );
            Err(CancelOutcome::Stopped.error(message).hint(hint))
        }
    }
}

/// Whether the state is to change; `conflict` from any other state. An operation on the record may be a dead one, over
/// which the sandbox stopped half-way.
fn needs_change(kind: &OperationKind, record: &SandboxRecord) -> Result<bool, Error> {
    let (from, to) = match kind {
        OperationKind::Sleep => (State::Ready, State::Sleeping),
        _ => (State::Sleeping, State::Ready),
    };
    if record.state == from || record.state == to {
        return Ok(record.state == from || record.operation.is_some());
    }
    let (id, state) = (&record.id, &record.state);
    let what = match kind {
        OperationKind::Sleep => "only one that is ready goes to sleep",
        _ => "only one that sleeps can be woken",
    };
    Err(Error::new(Code::Conflict, format!("sandbox {id} is {state}; {what}"))
        .hint(format!("`sandboxer get {id}` shows what became of it"))
        .detail("state", state.as_str()))
}
