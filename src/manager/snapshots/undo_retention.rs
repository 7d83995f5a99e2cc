//! Retention of undo snapshots: those whose window is over go, and the oldest where all of a host take too much.

use crate::domain::error::{Code, Error};
use crate::domain::name::{HostName, SnapshotId};
use crate::domain::request::{SnapshotDeleteRequest, SnapshotQuery};
use crate::domain::retention::surplus_undo;
use crate::domain::snapshot::SnapshotRecord;
use crate::manager::deps::Deps;
use crate::manager::snapshots::delete::delete_snapshot;
use crate::manager::snapshots::find::list_snapshots;
use crate::manager::upkeep::ownership::ensure_own;

/// Deletes the undo snapshots of a host that are not kept any longer, but for the `newest`, and for those that something
/// depends on. What fails is tried again at the next contact.
pub(crate) async fn prune_undo(deps: &Deps, host: &HostName, newest: Option<&SnapshotId>) {
    let surplus = match surplus_on(deps, host, newest).await {
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
        delete(deps, &snapshot.id, Some(snapshot.revision)).await;
    }
}

async fn surplus_on(
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

/// Deletes an undo snapshot whose sandbox is there as it was. One that stays goes when its window is over.
pub(crate) async fn discard_undo(deps: &Deps, id: &SnapshotId) {
    delete(deps, id, None).await;
}

async fn delete(deps: &Deps, id: &SnapshotId, revision: Option<u64>) {
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
