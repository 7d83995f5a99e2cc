//! Removal of one sandbox by a sweep: under its lock, and only where its record is still the one that was judged.

use std::sync::Arc;

use crate::domain::error::{Code, Error, Kind};
use crate::domain::name::SandboxId;
use crate::domain::operation::OperationKind;
use crate::domain::profile::Seconds;
use crate::domain::sandbox::{Reason, SandboxRecord};
use crate::domain::sweep::{
    SkipReason, SweepItem, SweepOutcome, SweepTask, reason_to_finish, task_of,
};
use crate::manager::deps::Deps;
use crate::manager::hosts::places::read_manifest;
use crate::manager::operation::dead::{elsewhere_words, works_elsewhere};
use crate::manager::operation::locks::sandbox_busy_error;
use crate::manager::operation::start::run_to_end;
use crate::manager::sandboxes::remove::destroy_unchanged;
use crate::manager::snapshots::undo_snapshot::UndoPolicy;
use crate::manager::upkeep::sweep_memory::Paused;
use crate::store::Held;
use crate::transport::probe::HostManifest;

pub(crate) struct Due {
    /// Record as it was judged.
    pub(crate) record: Arc<SandboxRecord>,
    pub(crate) task: SweepTask,
}

enum Locked {
    /// Record is as it was judged, and nobody works on it.
    Unchanged(Box<dyn Held>),
    Left(SkipReason, String),
    /// Somebody does what is due already.
    AtWork,
}

/// Removes a sandbox, once there is room on its host; what became of it. `None`: somebody is at it already.
pub(crate) async fn remove_due(deps: &Deps, due: &Due) -> Option<SweepItem> {
    let record = &due.record;
    let _under_way = deps.sweep.begin(&record.id)?;
    let room = deps.sweep.room(&record.host);
    let _place = room.acquire().await.ok()?;
    // A host may have failed while there was no room on it.
    if let Some(item) = wait_longer(deps, record) {
        return Some(item);
    }
    match remove_locked(deps, due).await {
        Ok(item) => {
            if item.as_ref().is_some_and(|item| item.skipped.is_none()) {
                deps.sweep.went_well(&Paused::Sandbox(record.id.clone()));
                deps.sweep.went_well(&Paused::host(&record.host));
            }
            item
        }
        Err(error) if error.kind == Kind::Stale => {
            Some(skipped_item(record, SkipReason::Changed, error.message))
        }
        Err(error) => {
            tracing::warn!(sandbox = %record.id, %error, "the sweep could not remove it");
            let paused = match error.code {
                Code::HostUnreachable => Paused::host(&record.host),
                _ => Paused::Sandbox(record.id.clone()),
            };
            deps.sweep.failed(paused, &deps.read_clocks(), &error.message);
            Some(failed_item(record, error))
        }
    }
}

/// Item of a sandbox that failed, or whose host did, a moment ago.
fn wait_longer(deps: &Deps, record: &SandboxRecord) -> Option<SweepItem> {
    let reading = deps.read_clocks();
    let subjects = [Paused::Sandbox(record.id.clone()), Paused::host(&record.host)];
    let (left, why) = subjects.iter().find_map(|subject| deps.sweep.pause_of(subject, &reading))?;
    let words = format!("tried again in {}: {why}", Seconds(left.div_ceil(1000)));
    Some(skipped_item(record, SkipReason::Waits, words))
}

/// Removes it if it is as it was judged; `None`: somebody does that already.
async fn remove_locked(deps: &Deps, due: &Due) -> Result<Option<SweepItem>, Error> {
    let record = &due.record;
    let lock = match lock_unchanged(deps, due).await? {
        Locked::Unchanged(lock) => lock,
        Locked::Left(reason, words) => return Ok(Some(skipped_item(record, reason, words))),
        Locked::AtWork => return Ok(None),
    };
    let (reason, outcome, words) = match due.task {
        SweepTask::Destroy => (Reason::TtlExpired, SweepOutcome::Destroyed, "its time was over"),
        SweepTask::Collect => {
            (Reason::User, SweepOutcome::Collected, "it had been forgotten; nothing is left of it")
        }
        SweepTask::Unpaid => (Reason::Credits, SweepOutcome::Destroyed, "its credits ran out"),
        SweepTask::Finish | SweepTask::Warn | SweepTask::Protected | SweepTask::Renew => {
            (reason_to_finish(record), SweepOutcome::Finished, "its removal is finished")
        }
    };
    let subject = (SandboxRecord::clone(record), lock);
    let ended = run_to_end(deps, OperationKind::Destroy, subject, |op| async move {
        destroy_unchanged(&op, &op.subject, reason, UndoPolicy::BestEffort).await
    });
    let ended = ended.await?;
    if let Some(error) = ended.operation.error {
        return Err(*error);
    }
    // Undo snapshot of it, or why there is none.
    let note = ended.outcome.ok().and_then(|record| record.into_sandbox().ok()?.message);
    let words = note.map_or_else(|| words.to_owned(), |note| format!("{words}; {note}"));
    Ok(Some(item(record, outcome, words)))
}

/// Takes the sandbox's lock, reads its record again, and compares.
async fn lock_unchanged(deps: &Deps, due: &Due) -> Result<Locked, Error> {
    let judged = &due.record;
    let Some(lock) = deps.locks.try_lock(&judged.id).await? else {
        let is_due_anyway = matches!(due.task, SweepTask::Finish | SweepTask::Collect);
        if is_due_anyway || is_being_destroyed(deps, &judged.id).await? {
            return Ok(Locked::AtWork);
        }
        let busy = sandbox_busy_error(deps, &judged.id).await;
        return Ok(Locked::Left(SkipReason::Busy, busy.message));
    };
    let found = deps.sandboxes.get(&judged.id).await?;
    let Some(found) = found.filter(|found| {
        found.revision == judged.revision && task_of(found, deps.now()) == Some(due.task)
    }) else {
        let words = "somebody changed it after it was judged".to_owned();
        return Ok(Locked::Left(SkipReason::Changed, words));
    };
    if let Some(working) = works_elsewhere(deps, found.operation.as_ref()).await? {
        return Ok(Locked::Left(SkipReason::Busy, elsewhere_words(working)));
    }
    if matches!(due.task, SweepTask::Destroy | SweepTask::Unpaid)
        && let Some(words) = spared_by_manifest(deps, &found).await
    {
        return Ok(Locked::Left(SkipReason::Changed, words));
    }
    Ok(Locked::Unchanged(lock))
}

/// Whether the operation that stands on a sandbox is its removal: its state tells that only once its host removes something.
async fn is_being_destroyed(deps: &Deps, id: &SandboxId) -> Result<bool, Error> {
    let working = deps.sandboxes.get(id).await?.and_then(|record| record.operation);
    Ok(working.is_some_and(|working| working.kind == OperationKind::Destroy))
}

/// Sentence on what the manifest on its host has against the end of a sandbox, and this data directory does not know of: it is
/// protected, or has a deadline that is yet to come. A host that does not tell says nothing against a removal, which proves for
/// itself what it removes.
async fn spared_by_manifest(deps: &Deps, record: &SandboxRecord) -> Option<String> {
    told_by_manifest(deps, record).await.ok().flatten()
}

/// [`spared_by_manifest`], for whoever removes nothing of which its host does not tell.
///
/// Errors: why the host does not tell.
pub(crate) async fn told_by_manifest(
    deps: &Deps,
    record: &SandboxRecord,
) -> Result<Option<String>, Error> {
    // Knowledge of this data directory is newer then.
    let Some(workdir) = record.workdir.as_deref().filter(|_| !record.manifest_pending) else {
        return Ok(None);
    };
    let told = read_manifest(deps, &record.host, workdir, (&record.id, &record.owner)).await?;
    Ok(told.and_then(|told| spared_by(deps, record, &told)))
}

fn spared_by(deps: &Deps, record: &SandboxRecord, told: &HostManifest) -> Option<String> {
    let whence = "from another copy of this data directory";
    if told.protected {
        let host = &record.host;
        return Some(format!(
            "the manifest on {host} says protect=true: somebody labelled it {whence}"
        ));
    }
    let deadline = told.expires_at?;
    // Of an adopted one its first console may have made another, with a life of its own.
    let is_possible =
        record.adopted_at.is_some() || record.max_expires_at.is_none_or(|most| deadline <= most);
    let is_later = deadline > deps.now() && Some(deadline) > record.expires_at && is_possible;
    is_later.then(|| {
        format!(
            "the manifest on {} says that it lives until {deadline}: somebody moved its deadline {whence}",
            record.host
        )
    })
}

/// Item of a sandbox about which something was done.
pub(crate) fn item(record: &SandboxRecord, outcome: SweepOutcome, message: String) -> SweepItem {
    SweepItem {
        id: record.id.clone(),
        name: record.name.clone(),
        host: record.host.clone(),
        outcome,
        skipped: None,
        message,
        error: None,
    }
}

/// Item of a sandbox that was passed over.
pub(crate) fn skipped_item(
    record: &SandboxRecord,
    reason: SkipReason,
    message: String,
) -> SweepItem {
    SweepItem { skipped: Some(reason), ..item(record, SweepOutcome::Skipped, message) }
}

/// Item of a sandbox about which something could not be done.
pub(crate) fn failed_item(record: &SandboxRecord, error: Error) -> SweepItem {
    let message = error.message.clone();
    SweepItem { error: Some(error), ..item(record, SweepOutcome::Failed, message) }
}
