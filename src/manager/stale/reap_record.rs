//! Reap of what has a record: under its lock, and only where the record is still the one that was planned.

use crate::domain::error::{Error, Kind};
use crate::domain::name::{SandboxId, SnapshotId};
use crate::domain::operation::OperationKind;
use crate::domain::request::Recovered;
use crate::domain::sandbox::{Reason, SandboxRecord, State};
use crate::domain::stale::{ReapOutcome, StaleClass, StaleItem};
use crate::manager::deps::Deps;
use crate::manager::operation::dead::{elsewhere_words, works_elsewhere};
use crate::manager::operation::locks::sandbox_busy_error;
use crate::manager::operation::start::run_to_end;
use crate::manager::sandboxes::remove::destroy_unchanged;
use crate::manager::snapshots::undo_snapshot::UndoPolicy;
use crate::manager::stale::inspect::is_gone;
use crate::manager::stale::outcome::Done;
use crate::manager::upkeep::recover::recover_one;
use crate::manager::upkeep::recover_snapshots::recover_snapshot;
use crate::manager::upkeep::sweep_removal::told_by_manifest;
use crate::store::Held;

/// Words of an item whose record is another one by now.
const CHANGED: &str = "somebody changed it after the plan was made";

/// Destroys an expired or failed sandbox, or closes the record of one that is lost.
pub(crate) async fn reap_record(
    deps: &Deps,
    item: &StaleItem,
    no_undo: bool,
) -> Result<Done, Error> {
    let id = SandboxId::new(item.id());
    let (record, lock) = match lock_as_planned(deps, item, &id).await? {
        Ok(locked) => locked,
        Err(why) => return Ok(Done::Skipped(why)),
    };
    if let Some(why) = reason_to_leave(deps, item, &record).await? {
        return Ok(Done::Skipped(why));
    }
    let undo = if no_undo { UndoPolicy::None } else { UndoPolicy::BestEffort };
    let ended = run_to_end(deps, OperationKind::Destroy, (record, lock), |op| async move {
        destroy_unchanged(&op, &op.subject, Reason::Reaped, undo).await
    });
    let ended = ended.await?;
    match ended.operation.error {
        Some(error) if error.kind == Kind::Stale => Ok(Done::Skipped(CHANGED.to_owned())),
        Some(error) => Err(*error),
        None if item.class == StaleClass::Lost => Ok(Done::As(
            ReapOutcome::Closed,
            format!("its record is closed; {} had nothing of it", item.host),
        )),
        None => {
            let record = deps.sandboxes.get(&id).await?;
            // Whether something is kept of it, and for how long.
            let note = record.and_then(|record| record.message);
            let note = note.map(|note| format!("; {note}")).unwrap_or_default();
            Ok(Done::As(ReapOutcome::Removed, format!("destroyed{note}")))
        }
    }
}

/// Takes the sandbox's lock, reads its record again, and compares; a sentence where it is another one.
async fn lock_as_planned(
    deps: &Deps,
    item: &StaleItem,
    id: &SandboxId,
) -> Result<Result<(SandboxRecord, Box<dyn Held>), String>, Error> {
    let Some(lock) = deps.locks.try_lock(id).await? else {
        return Ok(Err(sandbox_busy_error(deps, id).await.message));
    };
    let Some(record) = deps.sandboxes.get(id).await? else {
        return Ok(Err("there is no record of it any more".to_owned()));
    };
    if format!("revision {}", record.revision) != item.identity || record.is_protected() {
        return Ok(Err(CHANGED.to_owned()));
    }
    Ok(Ok((record, lock)))
}

/// Why a sandbox that is as it was planned is left all the same.
async fn reason_to_leave(
    deps: &Deps,
    item: &StaleItem,
    record: &SandboxRecord,
) -> Result<Option<String>, Error> {
    if let Some(working) = works_elsewhere(deps, record.operation.as_ref()).await? {
        return Ok(Some(elsewhere_words(working)));
    }
    if item.class == StaleClass::Expired
        && let Some(why) = told_by_manifest(deps, record).await?
    {
        return Ok(Some(why));
    }
    if item.class == StaleClass::Lost && !is_gone(deps, record).await? {
        return Ok(Some(format!("{} has something of it again", record.host)));
    }
    Ok(None)
}

/// Does for a sandbox or snapshot that a dead process left what `recover` does.
pub(crate) async fn recover_as_planned(deps: &Deps, item: &StaleItem) -> Result<Done, Error> {
    let recovered = match (&item.sandbox_id, &item.snapshot_id) {
        (Some(id), _) => recover_one(deps, SandboxId::new(id.as_str()), item.revision()).await?,
        (None, Some(id)) => recover_snapshot(deps, &SnapshotId::new(id.as_str())).await?,
        (None, None) => None,
    };
    let Some(Recovered { ok, state, message, error, .. }) = recovered else {
        return Ok(Done::Skipped("somebody works on it, or it is in order by now".to_owned()));
    };
    match error {
        Some(error) if !ok => Err(error),
        _ => {
            let outcome = match state {
                Some(State::Destroyed) => ReapOutcome::Removed,
                _ => ReapOutcome::Recovered,
            };
            Ok(Done::As(outcome, message))
        }
    }
}
