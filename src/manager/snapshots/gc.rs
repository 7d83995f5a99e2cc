//! Records of snapshots that came to nothing: they tell why, for a while.

use crate::domain::error::Error;
use crate::domain::event::Update;
use crate::domain::snapshot::{SnapshotRecord, SnapshotState};
use crate::domain::time::Time;
use crate::manager::deps::Deps;
use crate::manager::journal::flush_pending;

/// Whether a dead process may have left something of it.
pub(crate) fn is_left(record: &SnapshotRecord) -> bool {
    record.operation.is_some()
        || record.unremoved
        || record.copying_to.is_some()
        || matches!(record.state, SnapshotState::Creating | SnapshotState::Deleting)
}

/// So many of each sandbox stay.
const KEPT: usize = 10;

/// How long they stay at most; seconds.
const KEPT_S: u64 = 30 * 86_400;

/// Takes out records of failed snapshots, of which nothing is left on a host, that are old or too many. What cannot be
/// taken out stays for the next time.
pub(crate) async fn collect_failed(deps: &Deps) {
    let dropped = async {
        let mut any = false;
        for record in bygone(deps.snapshots.by_arrival().await?, deps.now()) {
            // What it caused is told first.
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

/// Those of `records` (in the order in which they came) that go.
fn bygone(mut records: Vec<SnapshotRecord>, now: Time) -> Vec<SnapshotRecord> {
    records.retain(SnapshotRecord::came_to_nothing);
    let newer_of = |at: usize| {
        records[at + 1..].iter().filter(|other| other.sandbox_id == records[at].sandbox_id).count()
    };
    let goes =
        |at: usize| newer_of(at) >= KEPT || now.since(records[at].created_at).as_secs() > KEPT_S;
    let going: Vec<bool> = (0..records.len()).map(goes).collect();
    records.into_iter().zip(going).filter_map(|(record, goes)| goes.then_some(record)).collect()
}
