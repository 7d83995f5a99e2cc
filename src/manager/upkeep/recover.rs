//! Recovery of what a killed process left (semantics 5, `stuck`). The lock of a sandbox is freed by the kernel
//! when its process dies: an operation on a record whose lock is free has nobody who works on it.

use futures_util::stream::{self, StreamExt};

use crate::domain::Usd;
use crate::domain::error::{Code, Error};
use crate::domain::event::EventKind;
use crate::domain::name::SandboxId;
use crate::domain::operation::{OperationKind, OperationState};
use crate::domain::request::Recovered;
use crate::domain::sandbox::{Reason, SandboxRecord, State};
use crate::domain::settlement::After;
use crate::manager::credits::account::tell_grants;
use crate::manager::credits::charge::{Ran, settle_with, settlement_of};
use crate::manager::credits::unclaimed::{LostHold, hold_lost, release_unclaimed};
use crate::manager::deps::Deps;
use crate::manager::hosts::deep_check::cleanup::cleanup;
use crate::manager::hosts::status::report_host_error;
use crate::manager::journal::Guard;
use crate::manager::operation::Op;
use crate::manager::operation::dead::{by, end_dead_operation, is_alive, works_elsewhere};
use crate::manager::operation::start::run_to_end;
use crate::manager::operation::subject::OperationRecord as _;
use crate::manager::sandboxes::find::find_sandbox;
use crate::manager::sandboxes::inspect::inspect_sandbox;
use crate::manager::sandboxes::remove::destroy_locked;
use crate::manager::sandboxes::resolve::resolve_as_known;
use crate::manager::sandboxes::teardown::{leftovers_error, note_teardown, tear_down_checked};
use crate::manager::upkeep::flush::flush_all_pending;
use crate::manager::upkeep::ownership::ensure_own;
use crate::manager::upkeep::reconcile::reconcile;
use crate::manager::upkeep::recover_snapshots::{copy_error, recover_snapshots, recovered};
use crate::store::ending;

/// Sandboxes that are worked on at a time.
const AT_ONCE: usize = 6;

/// Recovery of a record that nobody works on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RecoveryAction {
    /// Nothing done on the host yet: it is closed.
    Close,
    /// Never ready, or being removed: what is there is removed.
    Remove,
    /// Ready once: it goes back to what the host says.
    Observe,
    /// Failed, and not all of it could be removed then.
    Clear,
}

/// Plan for a record that a dead process left.
pub(crate) struct RecoveryPlan {
    pub(crate) action: RecoveryAction,
    /// Operation or state that it was left in, for a person.
    pub(crate) was: String,
}

/// Ends what dead processes began: an item for each thing that was left.
///
/// Errors: `conflict` in a copied or restored data directory.
pub(crate) async fn recover(deps: &Deps) -> Result<Vec<Recovered>, Error> {
    ending(Box::pin(recover_all(deps))).await
}

async fn recover_all(deps: &Deps) -> Result<Vec<Recovered>, Error> {
    ensure_own(deps).await?;
    let flushed = flush_all_pending(deps).await;
    let records = deps.sandboxes.list().await?;
    let stuck = records.iter().filter(|record| plan_recovery(record).is_some());
    let stuck: Vec<SandboxId> = stuck.map(|record| record.id.clone()).collect();
    let done: Vec<Result<Option<Recovered>, Error>> = stream::iter(stuck)
        .map(|id| recover_one(deps, id, None))
        .buffer_unordered(AT_ONCE)
        .collect()
        .await;
    let mut items = Vec::new();
    for item in done {
        items.extend(item?);
    }
    items.extend(recover_snapshots(deps).await?);
    items.extend(end_dead_operations(deps).await?);
    items.extend(recover_holds(deps).await);
    if let Err(error) = flushed {
        items.push(recovered("events", "events that wait".to_owned(), Err(error)));
    }
    items.sort_by(|a, b| a.id.cmp(&b.id));
    Ok(items)
}

/// Items of the holds that no record has, and of those that the ledger lacks. A ledger that cannot be read keeps nothing else from
/// being brought in order.
async fn recover_holds(deps: &Deps) -> Vec<Recovered> {
    let looked = async {
        tell_grants(deps).await?;
        Ok::<_, Error>((release_unclaimed(deps).await?, hold_lost(deps).await?))
    };
    let (released, lost) = match looked.await {
        Ok(found) => found,
        Err(error) => {
            tracing::warn!(%error, "holds could not be compared with the records");
            return Vec::new();
        }
    };
    let item = |(sandbox, usd): (SandboxId, Usd)| {
        let was = format!("a hold of {usd} that no record has");
        recovered(sandbox.as_str(), was, Ok("released".to_owned()))
    };
    let held_anew = |LostHold { sandbox, usd, held }: LostHold| {
        let was = format!("a hold of {usd} that the ledger lacks");
        recovered(sandbox.as_str(), was, held.map(|()| "held".to_owned()))
    };
    released.into_iter().map(item).chain(lost.into_iter().map(held_anew)).collect()
}

/// `None`: somebody works on it after all, it is in order by now, or not at the revision that was `judged`.
pub(crate) async fn recover_one(
    deps: &Deps,
    id: SandboxId,
    judged: Option<u64>,
) -> Result<Option<Recovered>, Error> {
    let Some(lock) = deps.locks.try_lock(&id).await? else { return Ok(None) };
    let Some(record) = deps.sandboxes.get(&id).await? else { return Ok(None) };
    if judged.is_some_and(|revision| revision != record.revision) {
        return Ok(None);
    }
    let Some(RecoveryPlan { action, was }) = plan_recovery(&record) else { return Ok(None) };
    if let Some(working) = works_elsewhere(deps, record.operation.as_ref()).await? {
        let error = copy_error(working, "recover in the original, or wait until it has ended");
        let state = Some(record.state.clone());
        return Ok(Some(Recovered { state, ..recovered(id.as_str(), was, Err(error)) }));
    }
    let ended = run_to_end(deps, OperationKind::Recover, (record, lock), move |op| async move {
        run_recovery(&op, action).await
    });
    let error = ended.await?.operation.error;
    let record = find_sandbox(deps, id.as_str()).await?;
    let came_to = match error {
        None if action == RecoveryAction::Clear => {
            Ok("failed as before; nothing of it is left on its host".to_owned())
        }
        None => Ok(outcome(&record)),
        Some(error) => Err(*error),
    };
    Ok(Some(Recovered { state: Some(record.state), ..recovered(id.as_str(), was, came_to) }))
}

async fn run_recovery(op: &Op<SandboxRecord>, action: RecoveryAction) -> Result<(), Error> {
    let (deps, record) = (&op.deps, &op.subject);
    if let Some(dead) = &record.operation {
        end_dead_operation(deps, &dead.id).await?;
    }
    match action {
        RecoveryAction::Close => close_untouched(op).await,
        RecoveryAction::Remove => {
            // Our records may be an old copy in which what is ready by now is half-made: the host knows.
            ensure_records_current(deps, record).await?;
            destroy_locked(op, record, Reason::CrashRecovered).await
        }
        RecoveryAction::Clear => Box::pin(clear_leftovers(op)).await,
        RecoveryAction::Observe => Box::pin(reconcile(op, record)).await,
    }
}

/// Removes what a failed one left, when its host could not be asked. It stays failed, with its evidence.
async fn clear_leftovers(op: &Op<SandboxRecord>) -> Result<(), Error> {
    let (deps, id) = (&op.deps, &op.subject.id);
    let record = op.attach(Guard::Any, |_| Ok(())).await?;
    let report = tear_down_checked(deps, &record, &op.progress).await;
    let seen = report.as_ref().ok().cloned();
    let settlement = match &seen {
        Some(report) => settlement_of(op, report, After::Over).await,
        None => None,
    };
    op.update(Vec::new(), move |record| {
        record.operation = None;
        if let Some(settlement) = settlement {
            settlement.write_on(record);
        }
        if seen.is_some() {
            note_teardown(record, seen);
        }
    })
    .await?;
    if let Err(error) = &report {
        report_host_error(deps, &record.host, error).await;
    }
    match report? {
        report if report.is_clean() => Ok(()),
        report => Err(leftovers_error(id, &report)),
    }
}

/// Closes a record that was written ahead and of which no host has heard.
async fn close_untouched(op: &Op<SandboxRecord>) -> Result<(), Error> {
    let (deps, record) = (&op.deps, &op.subject);
    let data = serde_json::json!({"host": record.host, "was": record.state, "reason": Reason::CrashRecovered});
    let events = vec![(EventKind::SandboxDestroying, data)];
    let running = op.running();
    SandboxRecord::write(deps, &record.id, Guard::Any, events, |record| {
        record.state = State::Destroying;
        record.reason = Some(Reason::CrashRecovered);
        record.operation = Some(running);
        Ok(())
    })
    .await?;
    let events = vec![(EventKind::SandboxDestroyed, serde_json::json!({"host": record.host}))];
    settle_with(op, Ran::Nothing, events, |record| {
        record.state = State::Destroyed;
        record.message =
            Some("the process that was to make it died before it touched the host".to_owned());
        record.operation = None;
    })
    .await
    .map(|_| ())
}

/// Asks the host whether it has seen a later state than our records. Nothing is written or removed.
async fn ensure_records_current(deps: &Deps, record: &SandboxRecord) -> Result<(), Error> {
    let extension = deps.extension(&record.extension)?;
    match inspect_sandbox(deps, extension.as_ref(), &resolve_as_known(deps, record).await?).await {
        Err(error) if error.code == Code::Unsupported => Ok(()),
        outcome => outcome.map(|_| ()),
    }
}

/// Ends operations that no record knows any more: their process died between two writes.
async fn end_dead_operations(deps: &Deps) -> Result<Vec<Recovered>, Error> {
    let mut items = Vec::new();
    for operation in deps.operations.list().await? {
        if operation.state != OperationState::Running || is_alive(deps, &operation).await? {
            continue;
        }
        // Things that it made are by now as sandboxes and snapshots are that nobody works on, and nobody's all the same.
        let cleared = match operation.kind {
            OperationKind::Check => cleanup(deps, &operation.id).await.map(|made| made.words()),
            _ => Ok(String::new()),
        };
        if cleared.is_ok() {
            end_dead_operation(deps, &operation.id).await?;
        }
        let came_to = cleared.map(|ids| match ids.as_str() {
            "" => "ended; it had nothing in hand".to_owned(),
            ids => format!("ended; removed what it had made: {ids}"),
        });
        let was = by(&operation.kind, operation.pid, &operation.host);
        items.push(recovered(operation.id.as_str(), was, came_to));
    }
    Ok(items)
}

/// Plans the recovery of a record if nobody works on it; `None` when it is in order.
pub(crate) fn plan_recovery(record: &SandboxRecord) -> Option<RecoveryPlan> {
    use OperationKind::{Create, Destroy, Recreate, Restore};
    let was = match &record.operation {
        Some(dead) => by(&dead.kind, dead.pid, &dead.host),
        None if record.state == State::Failed => "failed, and something of it was left".to_owned(),
        None => record.state.to_string(),
    };
    let left_over = !record.leftovers.is_empty() && !record.kept_failed;
    let made = record
        .operation
        .as_ref()
        .is_some_and(|dead| matches!(dead.kind, Create | Restore | Recreate | Destroy));
    let action = match (&record.state, &record.operation) {
        (State::Requested, _) => RecoveryAction::Close,
        (State::Destroying | State::Forgotten, _) | (State::Provisioning, None) => {
            RecoveryAction::Remove
        }
        (State::Failed, None) if left_over => RecoveryAction::Clear,
        (State::Destroyed, _) | (_, None) => return None,
        // Its host may have begun to remove it before anybody could write that down.
        (_, Some(dead)) if dead.kind == Destroy => RecoveryAction::Remove,
        _ if made && record.ready_at.is_none() => RecoveryAction::Remove,
        _ => RecoveryAction::Observe,
    };
    Some(RecoveryPlan { action, was })
}

fn outcome(record: &SandboxRecord) -> String {
    match &record.state {
        State::Destroyed => "removed".to_owned(),
        State::Ready => "ready, as its host says".to_owned(),
        state => match &record.message {
            Some(message) => message.clone(),
            None => state.to_string(),
        },
    }
}
