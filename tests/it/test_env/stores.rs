//! Stores in which something may happen at a moment that a test chooses.

use std::collections::BTreeSet;
use std::sync::Arc;

use async_trait::async_trait;
use sandboxer::domain::name::{EventId, PatchId};
use sandboxer::domain::{Error, Patch, SandboxId, SnapshotId};
use sandboxer::store::{Held, Locks, PatchStore};

use super::script::Scripted;

/// The locks of the files; something may happen right before one is asked for.
pub(super) struct SlowLocks {
    pub(super) kept: Arc<dyn Locks>,
    pub(super) script: Arc<Scripted>,
}

#[async_trait]
impl Locks for SlowLocks {
    async fn try_lock(&self, id: &SandboxId) -> Result<Option<Box<dyn Held>>, Error> {
        let before = self.script.before_lock.next();
        if let Some(before) = before {
            before.await;
        }
        self.kept.try_lock(id).await
    }

    async fn try_lock_snapshot(&self, id: &SnapshotId) -> Result<Option<Box<dyn Held>>, Error> {
        self.kept.try_lock_snapshot(id).await
    }

    async fn tidy(&self, live: BTreeSet<SandboxId>) -> Result<(), Error> {
        self.kept.tidy(live).await
    }
}

/// The patches of the files; somebody who reads them may be slow to go on.
pub(super) struct Patches {
    pub(super) kept: Arc<dyn PatchStore>,
    pub(super) script: Arc<Scripted>,
}

#[async_trait]
impl PatchStore for Patches {
    async fn insert(&self, patch: Patch) -> Result<Patch, Error> {
        self.kept.insert(patch).await
    }

    async fn list(&self) -> Result<Vec<Patch>, Error> {
        let read = self.kept.list().await;
        let act = self.script.list.next();
        if let Some(act) = act {
            self.script.note("patches read");
            Scripted::act(act).await?;
        }
        read
    }

    async fn clear_pending(&self, events: &BTreeSet<EventId>) -> Result<(), Error> {
        self.kept.clear_pending(events).await
    }

    async fn remove(&self, id: &PatchId) -> Result<Option<Patch>, Error> {
        self.kept.remove(id).await
    }

    async fn version(&self) -> Result<u64, Error> {
        self.kept.version().await
    }
}
