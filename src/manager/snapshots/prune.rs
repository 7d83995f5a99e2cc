//! Prune, a profile's `keep`, and what is kept for undo: old snapshots on which nothing depends are deleted. And records of failed
//! ones: they tell why, for a while.

use std::sync::Arc;

use crate::domain::error::{Code, Error};
use crate::domain::lineage::SnapshotView;
use crate::domain::name::{HostName, SandboxId, SnapshotId};
use crate::domain::reporter::{Report, Reporter};
use crate::domain::request::{PruneItem, PruneRequest, SnapshotDeleteRequest, SnapshotQuery};
use crate::domain::retention::{RetentionRule, surplus_undo};
use crate::domain::snapshot::SnapshotRecord;
use crate::domain::time::Time;
use crate::domain::update::Update;
use crate::manager::deps::Deps;
use crate::manager::journal::{self, flush_pending};
use crate::manager::operation::progress::ProgressReporter;
use crate::manager::operation::wait::wait_for_snapshot;
use crate::manager::snapshots::delete::delete_snapshot;
use crate::manager::snapshots::find::list_snapshots;
use crate::manager::upkeep::ownership::ensure_own;

/// Failed snapshots of each sandbox that stay.
const MAX_FAILED: usize = 10;

/// Age in seconds beyond which they go.
const MAX_AGE_S: u64 = 30 * 86_400;

/// Deletes old snapshots on which nothing depends, or says which it would.
///
/// Errors: `invalid_input` when neither a number nor an age says which are old.
pub(crate) async fn prune_snapshots(
    deps: &Deps,
    request: &PruneRequest,
) -> Result<Vec<PruneItem>, Error> {
    if request.keep.is_none() && request.older_than_s.is_none() {
        return Err(Error::invalid_input(
            "keep",
            "which snapshots are old is said by --keep, --older-than, or both",
        ));
    }
    if !request.dry_run {
        ensure_own(deps).await?;
    }
    let rule =
        RetentionRule { keep: request.keep, older_than_s: request.older_than_s, taken_here: false };
    let mut items = Vec::new();
    for (view, why) in old_snapshots(deps, &rule).await? {
        let record = &view.record;
        let depends = view.dependants();
        let stays = if record.is_protected() {
            Some("kept, labelled protect=true".to_owned())
        } else {
            (!depends.is_empty()).then(|| format!("kept, in use by {}", depends.join(", ")))
        };
        let mut item = PruneItem {
            id: record.id.clone(),
            name: record.name.clone(),
            ok: stays.is_none(),
            bytes: record.archive.bytes,
            reason: stays.unwrap_or(why),
            error: None,
        };
        if item.ok && !request.dry_run {
            item.ended(delete_while_old(deps, &record.id, rule).await);
        }
        items.push(item);
    }
    Ok(items)
}

/// Deletes one, unless it is not old any more, or something depends on it by now; its last record.
async fn delete_while_old(
    deps: &Deps,
    id: &SnapshotId,
    rule: RetentionRule,
) -> Result<SnapshotRecord, Error> {
    let request = SnapshotDeleteRequest {
        id: id.to_string(),
        rule: Some(rule),
        ..SnapshotDeleteRequest::default()
    };
    let started = delete_snapshot(deps, &request).await?;
    match started.operation {
        Some(operation) => wait_for_snapshot(deps, &operation).await,
        None => Ok(started.snapshot),
    }
}

/// A profile's `keep`, after a snapshot that went well: what it deleted is in the message of that one. What cannot be
/// deleted stays, and is no failure.
pub(crate) async fn apply_keep(
    deps: &Deps,
    newest: &SnapshotRecord,
    keep: u32,
    progress: &ProgressReporter,
) {
    let sandbox = &newest.sandbox_id;
    let rule = RetentionRule { keep: Some(keep), taken_here: true, ..RetentionRule::default() };
    let old = match beyond_newest(deps, sandbox, keep).await {
        Ok(old) => old,
        Err(error) => {
            return tracing::warn!(%sandbox, %error, "old snapshots could not be looked for");
        }
    };
    let mut gone = Vec::new();
    for (at, view) in old.iter().enumerate() {
        let (done, of) = (Some(at as u64), Some(old.len() as u64));
        progress.report(Report { stage: "keep", done, of, ..Report::default() });
        let record = &view.record;
        // Boxed: it starts operations of this very kind.
        match Box::pin(delete_while_old(deps, &record.id, rule)).await {
            Ok(_) => gone.push(record.title()),
            Err(error) => {
                tracing::warn!(snapshot = %record.id, %error, "an old snapshot could not be deleted");
            }
        }
    }
    if gone.is_empty() {
        return;
    }
    let message = format!("the profile keeps {keep} of a sandbox: deleted {}", gone.join(", "));
    let note = |record: &mut SnapshotRecord| record.message = Some(message);
    let noted = journal::change(deps, &newest.id, note);
    if let Err(error) = noted.await {
        tracing::warn!(snapshot = %newest.id, %error, "what was deleted for it is not on its record");
    }
}

/// The snapshots of a sandbox that a profile's `keep` would delete.
pub(crate) async fn beyond_newest(
    deps: &Deps,
    sandbox: &SandboxId,
    keep: u32,
) -> Result<Vec<Arc<SnapshotView>>, Error> {
    let rule = RetentionRule { keep: Some(keep), taken_here: true, ..RetentionRule::default() };
    let old = old_snapshots(deps, &rule).await?.into_iter().map(|(view, _)| view);
    let goes =
        |view: &Arc<SnapshotView>| !view.record.is_protected() && view.dependants().is_empty();
    Ok(old.filter(|view| view.record.sandbox_id == *sandbox && goes(view)).collect())
}

/// Snapshots that a rule calls old, and why.
async fn old_snapshots(
    deps: &Deps,
    rule: &RetentionRule,
) -> Result<Vec<(Arc<SnapshotView>, String)>, Error> {
    let records = deps.snapshots.list_by_insertion().await?;
    let views = list_snapshots(deps, &SnapshotQuery { all: true }).await?;
    let view_of = |id: &SnapshotId| views.iter().find(|view| view.record.id == *id).cloned();
    let old = rule.old(&records.iter().collect::<Vec<_>>(), deps.now());
    Ok(old.into_iter().filter_map(|(record, why)| Some((view_of(&record.id)?, why))).collect())
}

/// Takes out records of failed snapshots, of which nothing is left on a host, that are old or too many. What cannot be
/// taken out stays for the next time.
pub(crate) async fn collect_failed(deps: &Deps) {
    let dropped = async {
        let mut any = false;
        for record in expired(deps.snapshots.list_by_insertion().await?, deps.now()) {
            // Its events are appended first.
            if flush_pending(deps, record.pending.clone()).await.len() < record.pending.len() {
                continue;
            }
            // Whoever changed it meanwhile has a reason.
            any |= deps.snapshots.remove(&record.id, Some(record.revision)).await.is_ok();
        }
        Ok::<bool, Error>(any)
    };
    match dropped.await {
        Ok(true) => deps.jobs.publish(Update::Snapshots),
        Ok(false) => {}
        Err(error) => {
            tracing::warn!(%error, "old records of failed snapshots could not be taken out");
        }
    }
}

/// Records (given in the order in which they came) that go.
fn expired(mut records: Vec<SnapshotRecord>, now: Time) -> Vec<SnapshotRecord> {
    records.retain(SnapshotRecord::came_to_nothing);
    let newer_of = |at: usize| {
        records[at + 1..].iter().filter(|other| other.sandbox_id == records[at].sandbox_id).count()
    };
    let goes = |at: usize| {
        newer_of(at) >= MAX_FAILED || now.since(records[at].created_at).as_secs() > MAX_AGE_S
    };
    let going: Vec<bool> = (0..records.len()).map(goes).collect();
    records.into_iter().zip(going).filter_map(|(record, goes)| goes.then_some(record)).collect()
}

/// Deletes the undo snapshots of a host that are not kept any longer, but for the `newest`, and for those that something
/// depends on. What fails is tried again at the next contact.
pub(crate) async fn prune_undo(deps: &Deps, host: &HostName, newest: Option<&SnapshotId>) {
    let surplus = match surplus_undo_on(deps, host, newest).await {
        Ok(surplus) => surplus,
        Err(error) => {
            return tracing::warn!(%host, %error, "old undo snapshots could not be looked for");
        }
    };
    if surplus.is_empty() {
        return;
    }
    // By a clock that jumped since the last sweep nothing is over.
    let swept = deps.sweeps.last().await.ok().flatten();
    if let Some(jump) = swept.and_then(|last| deps.read_clocks().jump_since(&last)) {
        return tracing::warn!(%host, ?jump, "old undo snapshots stay: the clock jumped");
    }
    if let Err(error) = ensure_own(deps).await {
        return tracing::warn!(%host, %error, "old undo snapshots are not deleted from here");
    }
    for (snapshot, why) in surplus {
        tracing::info!(snapshot = %snapshot.id, %host, why, "an undo snapshot goes");
        delete_undo(deps, &snapshot.id, Some(snapshot.revision)).await;
    }
}

async fn surplus_undo_on(
    deps: &Deps,
    host: &HostName,
    newest: Option<&SnapshotId>,
) -> Result<Vec<(SnapshotRecord, String)>, Error> {
    let records = deps.snapshots.list_by_insertion().await?;
    let all: Vec<&SnapshotRecord> = records.iter().collect();
    let surplus = surplus_undo(&all, host, &deps.settings.undo, deps.now());
    if surplus.is_empty() {
        return Ok(Vec::new());
    }
    let views = list_snapshots(deps, &SnapshotQuery { all: true }).await?;
    let is_needed = |id: &SnapshotId| {
        let view = views.iter().find(|view| view.record.id == *id);
        view.is_none_or(|view| !view.dependants().is_empty())
    };
    let goes = |(record, _): &(&SnapshotRecord, String)| {
        newest != Some(&record.id) && !is_needed(&record.id)
    };
    Ok(surplus.into_iter().filter(goes).map(|(record, why)| (record.clone(), why)).collect())
}

/// Deletes an undo snapshot, at this revision. One that stays goes when its window is over.
pub(crate) async fn delete_undo(deps: &Deps, id: &SnapshotId, revision: Option<u64>) {
    let request =
        SnapshotDeleteRequest { id: id.to_string(), revision, ..SnapshotDeleteRequest::default() };
    let deleted = async {
        // Boxed: it starts an operation of its own, which is a part of every verb here.
        let started = Box::pin(delete_snapshot(deps, &request)).await?;
        let Some(operation) = started.operation else { return Ok(()) };
        let ended = deps.jobs.ended(&operation).await;
        ended.and_then(|ended| ended.operation.error).map_or(Ok(()), |error| Err(*error))
    };
    match deleted.await {
        Ok(()) => {}
        // Somebody else is at it, or uses it.
        Err(error) if matches!(error.code, Code::Busy | Code::NotFound | Code::Conflict) => {
            tracing::debug!(snapshot = %id, %error, "an undo snapshot is left to others");
        }
        Err(error) => {
            tracing::warn!(snapshot = %id, %error, "an undo snapshot could not be deleted");
        }
    }
}
