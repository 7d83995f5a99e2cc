//! Records of snapshots that came to nothing: they tell why, for a while.

use crate::domain::error::Error;
use crate::domain::event::Update;
use crate::domain::snapshot::SnapshotRecord;
use crate::domain::time::Time;
use crate::manager::SandboxManager;

/// So many of each sandbox stay.
const KEPT: usize = 10;

/// How long they stay at most; seconds.
const KEPT_S: u64 = 30 * 86_400;

impl SandboxManager {
    /// Takes out records of failed snapshots, of which nothing is left on a host, that are old or too many. What cannot be
    /// taken out stays for the next time.
    pub(super) async fn drop_bygone(&self) {
        let dropped = async {
            let mut any = false;
            for record in bygone(self.parts.snapshots.by_arrival().await?, self.now()) {
                // What it caused is told first.
                if self.told(record.pending.clone()).await.len() < record.pending.len() {
                    continue;
                }
                // Whoever changed it meanwhile has a reason.
                any |= self.parts.snapshots.remove(&record.id, Some(record.revision)).await.is_ok();
            }
            Ok::<bool, Error>(any)
        };
        match dropped.await {
            Ok(true) => self.jobs.publish(Update::Snapshots),
            Ok(false) => {}
            Err(fault) => {
                tracing::warn!(%fault, "old records of failed snapshots could not be taken out");
            }
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
