//! Garbage collection of records of failed snapshots: they tell why, for a while.

use crate::domain::error::Error;
use crate::domain::snapshot::SnapshotRecord;
use crate::domain::time::Time;
use crate::domain::update::Update;
use crate::manager::deps::Deps;
use crate::manager::journal::flush_pending;

/// Failed snapshots of each sandbox that stay.
const MAX_FAILED: usize = 10;

/// Age in seconds beyond which they go.
const MAX_AGE_S: u64 = 30 * 86_400;

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
