//! Flush of events that dead processes left pending, and move of records that are over to the history.

use crate::domain::error::Error;
use crate::domain::event::PendingEvent;
use crate::domain::name::EventId;
use crate::domain::sandbox::SandboxRecord;
use crate::domain::snapshot::SnapshotRecord;
use crate::manager::deps::Deps;
use crate::manager::journal::{self, Guard};
use crate::manager::snapshots::gc::collect_failed;

/// Pending events of snapshots and patches, for [`flush_all_pending`].
async fn flush_snapshots_and_patches(deps: &Deps) -> Result<(), Error> {
    for record in
        deps.snapshots.list().await?.into_iter().filter(|record| !record.pending.is_empty())
    {
        let same = |_: &mut SnapshotRecord| Ok(());
        journal::update(deps, &record.id, Guard::Any, Vec::new(), same).await?;
    }
    for patch in deps.patches.list().await?.into_iter().filter(|patch| !patch.pending.is_empty()) {
        let flushed: Vec<EventId> = patch.pending.iter().map(|event| event.id.clone()).collect();
        deps.events.append(patch.pending).await?;
        deps.patches.told(&patch.id, &flushed).await?;
    }
    Ok(())
}

/// Appends what dead processes left pending on records, and clears it. A starting dashboard or server calls it.
pub(crate) async fn flush_all_pending(deps: &Deps) -> Result<(), Error> {
    let records = deps.sandboxes.list().await?;
    let pending: Vec<PendingEvent> =
        records.iter().flat_map(|record| record.pending.iter().cloned()).collect();
    if !pending.is_empty() {
        let flushed = pending.iter().map(|event| event.id.clone()).collect();
        deps.events.append(pending).await?;
        deps.sandboxes.told(&flushed).await?;
    }
    flush_snapshots_and_patches(deps).await?;
    archive_old(deps).await
}

/// Moves what has been over for a day to the history, and takes out snapshots that failed long ago.
pub(crate) async fn archive_old(deps: &Deps) -> Result<(), Error> {
    collect_failed(deps).await;
    let day_ago = deps.now().minus_seconds(24 * 3600);
    for record in deps.sandboxes.list().await? {
        if record.state.is_over() && record.since < day_ago && !record.pending.is_empty() {
            journal::update(deps, &record.id, Guard::Any, Vec::new(), |_: &mut SandboxRecord| {
                Ok(())
            })
            .await?;
        }
    }
    if deps.sandboxes.archive(day_ago).await? > 0 {
        let live = deps.sandboxes.list().await?.iter().map(|record| record.id.clone()).collect();
        deps.locks.tidy(live).await?;
    }
    Ok(())
}
