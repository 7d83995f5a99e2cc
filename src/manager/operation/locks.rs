//! Locks of sandboxes and snapshots, and `busy`: who holds one, and since when (semantics 1).

use std::time::Duration;

use tokio::time::Instant;

use crate::domain::error::{Code, Error};
use crate::domain::extension::{Report, Reporter as _};
use crate::domain::name::{SandboxId, SnapshotId};
use crate::domain::operation::{Operation, OperationKind, OperationState};
use crate::domain::sandbox::{Running, SandboxRecord};
use crate::domain::snapshot::SnapshotRecord;
use crate::manager::deps::Deps;
use crate::manager::operation::progress::ProgressReporter;
use crate::manager::operation::record::running;
use crate::manager::sandboxes::find::get_at_revision;
use crate::store::Held;

/// How often is looked for what the one who holds a lock writes down: that comes right behind the lock.
const TELL_LOOKS: u32 = 20;

/// How long between two looks.
const TELL_LOOK: Duration = Duration::from_millis(20);

/// The fault of somebody who wants a sandbox whose lock another one has.
pub(crate) async fn sandbox_busy(deps: &Deps, id: &SandboxId) -> Error {
    let what = format!("sandbox {id} is busy");
    for _ in 0..TELL_LOOKS {
        if let Ok(Some(SandboxRecord { operation: Some(who), .. })) = deps.sandboxes.get(id).await {
            return held_by(&what, Some(&who));
        }
        tokio::time::sleep(TELL_LOOK).await;
    }
    // A removal that waits for this lock is written down too.
    let on_it =
        |one: &Operation| one.subject.sandbox() == Some(id) && one.kind != OperationKind::Destroy;
    held_by(&what, newest(&running_operations(deps).await, on_it).as_ref())
}

/// The fault of somebody who wants a snapshot whose lock another one has.
pub(crate) async fn snapshot_busy(deps: &Deps, id: &SnapshotId) -> Error {
    let what = format!("snapshot {id} is busy");
    for _ in 0..TELL_LOOKS {
        if let Ok(Some(SnapshotRecord { operation: Some(who), .. })) = deps.snapshots.get(id).await
        {
            return held_by(&what, Some(&who));
        }
        tokio::time::sleep(TELL_LOOK).await;
    }
    let on_it = |one: &Operation| one.subject.snapshot() == Some(id);
    held_by(&what, newest(&running_operations(deps).await, on_it).as_ref())
}

/// What refuses a snapshot for its state: `busy` while somebody works on it, who may change that.
pub(crate) async fn busy_or(deps: &Deps, id: &SnapshotId, refusal: Error) -> Error {
    match deps.locks.try_lock_snapshot(id).await {
        Ok(None) => snapshot_busy(deps, id).await,
        Ok(Some(_)) | Err(_) => refusal,
    }
}

async fn running_operations(deps: &Deps) -> Vec<Operation> {
    let mut operations = deps.operations.list().await.unwrap_or_default();
    operations.retain(|operation| operation.state == OperationState::Running);
    operations
}

fn newest(operations: &[Operation], on_it: impl Fn(&Operation) -> bool) -> Option<Running> {
    operations.iter().rfind(|operation| on_it(operation)).map(running)
}

/// `busy`, with who and since when where that is known.
pub(crate) fn held_by(what: &str, who: Option<&Running>) -> Error {
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

/// How long a restore waits for whoever holds its snapshot: a copy of it may take that long.
const TURN_WAIT: Duration = Duration::from_mins(30);

/// How often it looks.
const TURN_LOOK: Duration = Duration::from_millis(300);

/// A snapshot's lock, once nobody else has it.
///
/// Errors: `busy` after [`TURN_WAIT`].
pub(crate) async fn queue_for_snapshot(
    deps: &Deps,
    id: &SnapshotId,
    progress: &ProgressReporter,
) -> Result<Box<dyn Held>, Error> {
    let until = Instant::now() + TURN_WAIT;
    let mut told = false;
    loop {
        if let Some(held) = deps.locks.try_lock_snapshot(id).await? {
            return Ok(held);
        }
        if Instant::now() >= until {
            return Err(snapshot_busy(deps, id).await);
        }
        if !std::mem::replace(&mut told, true) {
            let message =
                Some(format!("waits for its turn: {}", snapshot_busy(deps, id).await.message));
            progress.report(Report { stage: "wait", message, ..Report::default() });
        }
        tokio::time::sleep(TURN_LOOK).await;
    }
}

/// The sandbox's lock with its record, which still has the revision that somebody looked at; or `busy` with who has it.
pub(crate) async fn lock_sandbox(
    deps: &Deps,
    id: &str,
    revision: Option<u64>,
) -> Result<(SandboxRecord, Box<dyn Held>), Error> {
    let record = get_at_revision(deps, id, revision).await?;
    let Some(lock) = deps.locks.try_lock(&record.id).await? else {
        return Err(sandbox_busy(deps, &record.id).await);
    };
    Ok((get_at_revision(deps, id, revision).await?, lock))
}

/// The snapshot's lock, or `busy` with who has it.
pub(crate) async fn lock_snapshot(deps: &Deps, id: &SnapshotId) -> Result<Box<dyn Held>, Error> {
    match deps.locks.try_lock_snapshot(id).await? {
        Some(held) => Ok(held),
        None => Err(snapshot_busy(deps, id).await),
    }
}

/// How long somebody who changes a snapshot's patches waits for another who does.
const LOCK_WAIT: Duration = Duration::from_secs(3);

/// How often it is looked at.
const LOCK_LOOK: Duration = Duration::from_millis(50);

/// The snapshot's lock: changes of its patches take a moment, and wait for one another.
pub(crate) async fn wait_to_lock_snapshot(
    deps: &Deps,
    id: &SnapshotId,
) -> Result<Box<dyn Held>, Error> {
    let until = tokio::time::Instant::now() + LOCK_WAIT;
    loop {
        match deps.locks.try_lock_snapshot(id).await? {
            Some(held) => return Ok(held),
            None if tokio::time::Instant::now() >= until => {
                return Err(snapshot_busy(deps, id).await);
            }
            None => tokio::time::sleep(LOCK_LOOK).await,
        }
    }
}
