//! Flush of events that dead processes left pending, and move of records that are over to the history.

use std::sync::Arc;
use std::time::Duration;

use crate::domain::error::Error;
use crate::domain::event::PendingEvent;
use crate::domain::sandbox::SandboxRecord;
use crate::manager::credits::account::tell_grants;
use crate::manager::deps::Deps;
use crate::manager::journal::append;
use crate::manager::snapshots::prune::collect_failed;

/// Wait before a starting dashboard or server looks after what others left: its first screen has the processor until then.
const SETTLE_AFTER: Duration = Duration::from_millis(500);

/// Appends what dead processes left pending and writes records of earlier versions anew, behind the start of this process.
pub(crate) async fn settle_behind_start(deps: &Deps) {
    tokio::time::sleep(SETTLE_AFTER).await;
    if let Err(error) = settle(deps).await {
        tracing::warn!(%error, "pending events could not be settled");
    }
}

/// Appends what dead processes left pending, and writes records of earlier versions anew.
pub(crate) async fn settle(deps: &Deps) -> Result<(), Error> {
    flush_all_pending(deps).await?;
    deps.sandboxes.renew().await?;
    tell_grants(deps).await
}

/// Appends what dead processes left pending on records, and clears it.
pub(crate) async fn flush_all_pending(deps: &Deps) -> Result<(), Error> {
    flush_sandboxes(deps, deps.sandboxes.list().await?.iter()).await?;
    let snapshots = deps.snapshots.list().await?;
    let pending: Vec<PendingEvent> =
        snapshots.into_iter().flat_map(|snapshot| snapshot.pending).collect();
    if !pending.is_empty() {
        let flushed = append(deps, &pending).await?.into_iter().collect();
        deps.snapshots.clear_pending(&flushed).await?;
    }
    let patches = deps.patches.list().await?;
    let pending: Vec<PendingEvent> = patches.into_iter().flat_map(|patch| patch.pending).collect();
    if !pending.is_empty() {
        let flushed = append(deps, &pending).await?.into_iter().collect();
        deps.patches.clear_pending(&flushed).await?;
    }
    archive_old(deps).await
}

async fn flush_sandboxes<'a>(
    deps: &Deps,
    records: impl Iterator<Item = &'a Arc<SandboxRecord>>,
) -> Result<(), Error> {
    let pending: Vec<PendingEvent> =
        records.flat_map(|record| record.pending.iter().cloned()).collect();
    if !pending.is_empty() {
        let flushed = append(deps, &pending).await?.into_iter().collect();
        deps.sandboxes.clear_pending(&flushed).await?;
    }
    Ok(())
}

/// Moves what has been over for a day to the history, and takes out snapshots that failed long ago.
pub(crate) async fn archive_old(deps: &Deps) -> Result<(), Error> {
    collect_failed(deps).await;
    let day_ago = deps.now().minus_seconds(24 * 3600);
    let over = |record: &SandboxRecord| record.state.is_over() && record.since < day_ago;
    let records = deps.sandboxes.list().await?;
    flush_sandboxes(deps, records.iter().filter(|record| over(record))).await?;
    if deps.sandboxes.archive(day_ago).await? > 0 {
        let live = deps.sandboxes.list().await?.iter().map(|record| record.id.clone()).collect();
        deps.locks.tidy(live).await?;
    }
    Ok(())
}
