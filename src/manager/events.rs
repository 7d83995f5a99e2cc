//! What happened, told to whoever listens: this process's events and other processes' by one path, the log.

use std::time::Duration;

use futures_util::stream::{self, BoxStream, StreamExt};
use tokio::sync::broadcast::error::RecvError;

use crate::domain::error::{Code, Error};
use crate::domain::event::{Event, PendingEvent, Update};
use crate::domain::name::{EventId, OperationId};
use crate::domain::operation::{Operation, OperationState, Subject};
use crate::domain::request::EventQuery;
use crate::manager::SandboxManager;
use crate::manager::record::Guard;
use crate::store::{EventFilter, Held};

/// How often the log is looked at for other processes' events; one `stat` each time.
const FOLLOW_EVERY: Duration = Duration::from_millis(250);

/// How often another process's operation is looked at.
const WATCH_EVERY: Duration = Duration::from_millis(300);

impl SandboxManager {
    /// Kept events that pass, in order.
    pub async fn events(&self, query: &EventQuery) -> Result<Vec<Event>, Error> {
        let filter = EventFilter {
            after_seq: query.after_seq,
            since: query.since,
            sandbox: query.sandbox.clone(),
            kinds: query.kinds.clone(),
            actor: query.actor.clone(),
        };
        self.parts.events.read(&filter).await
    }

    /// Everything that happens from now on, in this process and in others.
    pub async fn subscribe(&self) -> Result<BoxStream<'static, Update>, Error> {
        let receiver = self.jobs.listen();
        // Numbered before the follower starts, so that nothing falls between a listing and this stream.
        let last = self.parts.events.last_seq().await?;
        let manager = self.clone();
        self.following.call_once(|| {
            let jobs = std::sync::Arc::clone(&manager.jobs);
            jobs.background(async move { manager.follow(last).await });
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

    async fn follow(&self, mut last: u64) {
        let mut seen = self.checkpoints_version().await;
        let mut operations = self.parts.operations.version().await.ok();
        loop {
            tokio::select! {
                () = self.log_grew.notified() => {}
                () = tokio::time::sleep(FOLLOW_EVERY) => {}
            }
            match self.parts.events.tail(last).await {
                Ok(events) => {
                    for event in events {
                        last = last.max(event.seq);
                        self.jobs.publish(Update::Event(event));
                    }
                }
                Err(fault) => tracing::warn!(%fault, "the event log could not be followed"),
            }
            let now = self.checkpoints_version().await;
            if now != seen {
                seen = now;
                self.jobs.publish(Update::Snapshots);
            }
            // Not every operation has an event: a verify, or patches that are applied.
            let now = self.parts.operations.version().await.ok();
            if now != operations {
                operations = now;
                self.jobs.publish(Update::Operations);
            }
        }
    }

    /// Changes whenever a snapshot or a patch does.
    async fn checkpoints_version(&self) -> (Option<u64>, Option<u64>) {
        (self.parts.snapshots.version().await.ok(), self.parts.patches.version().await.ok())
    }

    /// As [`Self::settle`], for snapshots and patches.
    async fn settle_checkpoints(&self) -> Result<(), Error> {
        for record in self
            .parts
            .snapshots
            .list()
            .await?
            .into_iter()
            .filter(|record| !record.pending.is_empty())
        {
            self.transition_snapshot(&record.id, None, Vec::new(), |_| Ok(())).await?;
        }
        for patch in
            self.parts.patches.list().await?.into_iter().filter(|patch| !patch.pending.is_empty())
        {
            let told: Vec<EventId> = patch.pending.iter().map(|event| event.id.clone()).collect();
            self.parts.events.append(patch.pending).await?;
            self.parts.patches.told(&patch.id, &told).await?;
        }
        Ok(())
    }

    /// Appends what dead processes left pending on records, and clears it. A starting dashboard or server calls it.
    pub async fn settle(&self) -> Result<(), Error> {
        let records = self.parts.sandboxes.list().await?;
        let pending: Vec<PendingEvent> =
            records.iter().flat_map(|record| record.pending.iter().cloned()).collect();
        if !pending.is_empty() {
            let told = pending.iter().map(|event| event.id.clone()).collect();
            self.parts.events.append(pending).await?;
            self.parts.sandboxes.told(&told).await?;
        }
        self.settle_checkpoints().await?;
        self.archive().await
    }

    /// Moves what has been over for a day to the history, and takes out snapshots that came to nothing long ago.
    pub(super) async fn archive(&self) -> Result<(), Error> {
        self.drop_bygone().await;
        let day_ago = self.now().minus_seconds(24 * 3600);
        for record in self.parts.sandboxes.list().await? {
            if record.state.is_over() && record.since < day_ago && !record.pending.is_empty() {
                self.transition(&record.id, Guard::Any, Vec::new(), |_| {}).await?;
            }
        }
        if self.parts.sandboxes.archive(day_ago).await? > 0 {
            let live =
                self.parts.sandboxes.list().await?.iter().map(|record| record.id.clone()).collect();
            self.parts.locks.tidy(live).await?;
        }
        Ok(())
    }

    /// The lock under which an operation works, if nobody has it.
    async fn free_lock(&self, operation: &Operation) -> Result<Option<Box<dyn Held>>, Error> {
        match &operation.subject {
            Subject::Sandbox(sandbox) | Subject::SandboxAndSnapshot(sandbox, _) => {
                self.parts.locks.try_lock(sandbox).await
            }
            Subject::Snapshot(snapshot) => self.parts.locks.try_lock_snapshot(snapshot).await,
            Subject::Host => Ok(None),
        }
    }

    /// Waits for the end of an operation that another process runs.
    pub(super) async fn watch_elsewhere(&self, id: &OperationId) -> Result<Operation, Error> {
        loop {
            let operation =
                self.parts.operations.get(id).await?.ok_or_else(|| {
                    Error::new(Code::NotFound, format!("there is no operation {id}"))
                })?;
            if operation.state != OperationState::Running {
                return Ok(operation);
            }
            if let Some(free) = self.free_lock(&operation).await? {
                drop(free);
                // It may have ended between the two looks.
                if let Some(ended) = self.parts.operations.get(id).await?
                    && ended.state != OperationState::Running
                {
                    return Ok(ended);
                }
                return Err(Error::new(
                    Code::OperationFailed,
                    format!("the process {} that ran operation {id} is gone", operation.pid),
                )
                .hint("`sandboxer recover` brings what it left into order"));
            }
            tokio::time::sleep(WATCH_EVERY).await;
        }
    }
}
