//! `busy`: who holds a sandbox or a snapshot, and since when (semantics 1).

use std::time::Duration;

use crate::domain::error::{Code, Error};
use crate::domain::name::{SandboxId, SnapshotId};
use crate::domain::operation::{Operation, OperationKind, OperationState};
use crate::domain::sandbox::{Running, SandboxRecord};
use crate::domain::snapshot::SnapshotRecord;
use crate::manager::SandboxManager;
use crate::manager::record::running;

/// How often is looked for what the one who holds a lock writes down: that comes right behind the lock.
const TELL_LOOKS: u32 = 20;

/// How long between two looks.
const TELL_LOOK: Duration = Duration::from_millis(20);

impl SandboxManager {
    /// The fault of somebody who wants a sandbox whose lock another one has.
    pub(super) async fn busy(&self, id: &SandboxId) -> Error {
        let what = format!("sandbox {id} is busy");
        for _ in 0..TELL_LOOKS {
            if let Ok(Some(SandboxRecord { operation: Some(who), .. })) =
                self.parts.sandboxes.get(id).await
            {
                return held_by(&what, Some(&who));
            }
            tokio::time::sleep(TELL_LOOK).await;
        }
        // A removal that waits for this lock is written down too.
        let on_it = |one: &Operation| {
            one.subject.sandbox() == Some(id) && one.kind != OperationKind::Destroy
        };
        held_by(&what, newest(&self.running_operations().await, on_it).as_ref())
    }

    /// The fault of somebody who wants a snapshot whose lock another one has.
    pub(super) async fn snapshot_busy(&self, id: &SnapshotId) -> Error {
        let what = format!("snapshot {id} is busy");
        for _ in 0..TELL_LOOKS {
            if let Ok(Some(SnapshotRecord { operation: Some(who), .. })) =
                self.parts.snapshots.get(id).await
            {
                return held_by(&what, Some(&who));
            }
            tokio::time::sleep(TELL_LOOK).await;
        }
        let on_it = |one: &Operation| one.subject.snapshot() == Some(id);
        held_by(&what, newest(&self.running_operations().await, on_it).as_ref())
    }

    /// What refuses a snapshot for its state: `busy` while somebody works on it, who may change that.
    pub(super) async fn busy_or(&self, id: &SnapshotId, refusal: Error) -> Error {
        match self.parts.locks.try_lock_snapshot(id).await {
            Ok(None) => self.snapshot_busy(id).await,
            Ok(Some(_)) | Err(_) => refusal,
        }
    }

    async fn running_operations(&self) -> Vec<Operation> {
        let mut operations = self.parts.operations.list().await.unwrap_or_default();
        operations.retain(|operation| operation.state == OperationState::Running);
        operations
    }
}

fn newest(operations: &[Operation], on_it: impl Fn(&Operation) -> bool) -> Option<Running> {
    operations.iter().rfind(|operation| on_it(operation)).map(running)
}

/// `busy`, with who and since when where that is known.
pub(super) fn held_by(what: &str, who: Option<&Running>) -> Error {
    let hint = "try again when it has ended, or cancel it";
    let Some(who) = who else {
        return Error::new(Code::Busy, format!("{what}: another process holds it for a moment"))
            .hint(hint);
    };
    let message = format!(
        "{what}: {} by process {} on {} since {}",
        who.kind, who.pid, who.host, who.started_at
    );
    Error::new(Code::Busy, message)
        .hint(hint)
        .detail("operation", who.id.as_str())
        .detail("pid", who.pid)
        .detail("host", who.host.as_str())
}
