//! Updates for whoever listens: this process's events and other processes' by one path, the log.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use futures_util::stream::{self, BoxStream, StreamExt};
use tokio::sync::broadcast::error::RecvError;

use crate::domain::error::Error;
use crate::domain::event::{Event, EventKind};
use crate::domain::name::SandboxId;
use crate::domain::request::EventQuery;
use crate::domain::sandbox::SandboxRecord;
use crate::domain::update::Update;
use crate::manager::deps::Deps;
use crate::store::EventFilter;

/// Pause between two looks at the log for other processes' events; one `stat` each time.
const FOLLOW_EVERY: Duration = Duration::from_millis(250);

/// Time behind an event of a patch in which others still write what it means for sandboxes.
const PATCHED_FOR: Duration = Duration::from_secs(5);

/// Kept events that pass, in order.
pub(crate) async fn read_events(deps: &Deps, query: &EventQuery) -> Result<Vec<Event>, Error> {
    let filter = EventFilter {
        after_seq: query.after_seq,
        since: query.since,
        sandbox: query.sandbox.clone(),
        kinds: query.kinds.clone(),
        actor: query.actor.clone(),
        newest: query.newest,
    };
    deps.events.read(&filter).await
}

/// Everything that happens from now on, in this process and in others.
pub(crate) async fn subscribe(deps: &Deps) -> Result<BoxStream<'static, Update>, Error> {
    let receiver = deps.jobs.listen();
    // Numbered before the follower starts, so that nothing falls between a listing and this stream.
    let last = deps.events.last_seq().await?;
    let seen = snapshots_and_patches_version(deps).await;
    let operations = deps.operations.version().await.ok();
    deps.following.call_once(|| {
        let follower = deps.clone();
        deps.jobs.background(async move { follow_log(&follower, last, seen, operations).await });
    });
    let updates = stream::unfold(receiver, |mut receiver| async move {
        match receiver.recv().await {
            Ok(update) => Some((update, receiver)),
            Err(RecvError::Lagged(_)) => Some((Update::Resync, receiver)),
            Err(RecvError::Closed) => None,
        }
    });
    Ok(updates.boxed())
}

async fn follow_log(
    deps: &Deps,
    mut last: u64,
    mut seen: (Option<u64>, Option<u64>),
    mut operations: Option<u64>,
) {
    let mut patched = PatchedSandboxes::default();
    loop {
        tokio::select! {
            () = deps.log_grew.notified() => {}
            () = tokio::time::sleep(FOLLOW_EVERY) => {}
        }
        match deps.events.tail(last).await {
            Ok(events) => {
                for event in events {
                    last = last.max(event.seq);
                    patched.note(&event);
                    deps.jobs.publish(Update::Event(event));
                }
            }
            Err(error) => tracing::warn!(%error, "the event log could not be followed"),
        }
        patched.publish(deps).await;
        let now = snapshots_and_patches_version(deps).await;
        if now != seen {
            seen = now;
            deps.jobs.publish(Update::Snapshots);
        }
        // Not every operation has an event: a verify, or patches that are applied.
        let now = deps.operations.version().await.ok();
        if now != operations {
            operations = now;
            deps.jobs.publish(Update::Operations);
        }
    }
}

/// Changes whenever a snapshot or a patch does.
async fn snapshots_and_patches_version(deps: &Deps) -> (Option<u64>, Option<u64>) {
    (deps.snapshots.version().await.ok(), deps.patches.version().await.ok())
}

/// Sandboxes whose patch state changes without an event of theirs, behind one of a patch.
#[derive(Default)]
struct PatchedSandboxes {
    until: Option<Instant>,
    told: BTreeMap<SandboxId, u64>,
}

impl PatchedSandboxes {
    fn note(&mut self, event: &Event) {
        if matches!(event.kind, EventKind::PatchAdded | EventKind::PatchRemoved) {
            self.until = Some(Instant::now() + PATCHED_FOR);
        }
    }

    /// Publishes those that changed since they were told last.
    async fn publish(&mut self, deps: &Deps) {
        let Some(until) = self.until else { return };
        match deps.sandboxes.list().await {
            Ok(records) => {
                for record in records.iter().filter(|record| record.based_on_snapshot.is_some()) {
                    let told = self.told.insert(record.id.clone(), record.revision);
                    if told != Some(record.revision) {
                        deps.jobs.publish(Update::Record(Box::new(SandboxRecord::clone(record))));
                    }
                }
            }
            Err(error) => tracing::warn!(%error, "sandboxes of a patch could not be read"),
        }
        if Instant::now() > until {
            *self = Self::default();
        }
    }
}
