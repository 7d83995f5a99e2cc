//! Locks of sandboxes and snapshots, and the error `busy`: who holds one, and since when (semantics 1).

use std::time::Duration;

use tokio::time::Instant;

use crate::domain::error::{Code, Error};
use crate::domain::name::{SandboxId, SnapshotId};
use crate::domain::operation::{Operation, OperationKind, OperationState};
use crate::domain::reporter::{Report, Reporter as _};
use crate::domain::sandbox::{Running, SandboxRecord};
use crate::domain::snapshot::SnapshotRecord;
use crate::manager::deps::Deps;
use crate::manager::operation::progress::ProgressReporter;
use crate::manager::operation::record::running;
use crate::manager::sandboxes::find::get_at_revision;
use crate::store::Held;

/// Tries to read who holds a lock: that is written right behind the lock.
const HOLDER_TRIES: u32 = 20;

const HOLDER_POLL: Duration = Duration::from_millis(20);

/// Time that a restore waits for whoever holds its snapshot: a copy of it may take that long.
const QUEUE_LIMIT: Duration = Duration::from_mins(30);

/// Pause between two tries of a restore.
const QUEUE_POLL: Duration = Duration::from_millis(300);

/// Time that a change of a snapshot's patches waits for another one.
const LOCK_LIMIT: Duration = Duration::from_secs(3);

/// Pause between two tries of such a change.
const LOCK_POLL: Duration = Duration::from_millis(50);

/// `busy` for a sandbox whose lock somebody else has.
pub(crate) async fn sandbox_busy_error(deps: &Deps, id: &SandboxId) -> Error {
    let what = format!("sandbox {id} is busy");
    for _ in 0..HOLDER_TRIES {
        if let Ok(Some(SandboxRecord { operation: Some(who), .. })) = deps.sandboxes.get(id).await {
            return busy_error(&what, Some(&who));
        }
        tokio::time::sleep(HOLDER_POLL).await;
    }
    // A removal that waits for this lock is written down too.
    let on_it =
        |one: &Operation| one.subject.sandbox() == Some(id) && one.kind != OperationKind::Destroy;
    busy_error(&what, newest(&running_operations(deps).await, on_it).as_ref())
}

/// `busy` for a snapshot whose lock somebody else has.
async fn snapshot_busy_error(deps: &Deps, id: &SnapshotId) -> Error {
    let what = format!("snapshot {id} is busy");
    for _ in 0..HOLDER_TRIES {
        if let Ok(Some(SnapshotRecord { operation: Some(who), .. })) = deps.snapshots.get(id).await
        {
            return busy_error(&what, Some(&who));
        }
        tokio::time::sleep(HOLDER_POLL).await;
    }
    let on_it = |one: &Operation| one.subject.snapshot() == Some(id);
    busy_error(&what, newest(&running_operations(deps).await, on_it).as_ref())
}

/// Refusal of a snapshot for its state; `busy` while somebody works on it, who may change that.
pub(crate) async fn busy_or_refusal(deps: &Deps, id: &SnapshotId, refusal: Error) -> Error {
    match deps.locks.try_lock_snapshot(id).await {
        Ok(None) => snapshot_busy_error(deps, id).await,
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
pub(crate) fn busy_error(what: &str, who: Option<&Running>) -> Error {
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

/// A snapshot's lock, once nobody else has it.
///
/// Errors: `busy` after [`QUEUE_LIMIT`].
pub(crate) async fn queue_for_snapshot_lock(
    deps: &Deps,
    id: &SnapshotId,
    progress: &ProgressReporter,
) -> Result<Box<dyn Held>, Error> {
    let until = Instant::now() + QUEUE_LIMIT;
    let mut reported = false;
    loop {
        if let Some(lock) = deps.locks.try_lock_snapshot(id).await? {
            return Ok(lock);
        }
        if Instant::now() >= until {
            return Err(snapshot_busy_error(deps, id).await);
        }
        if !std::mem::replace(&mut reported, true) {
            let message = Some(format!(
                "waits for its turn: {}",
                snapshot_busy_error(deps, id).await.message
            ));
            progress.report(Report { stage: "wait", message, ..Report::default() });
        }
        tokio::time::sleep(QUEUE_POLL).await;
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
        return Err(sandbox_busy_error(deps, &record.id).await);
    };
    Ok((get_at_revision(deps, id, revision).await?, lock))
}

/// The snapshot's lock, or `busy` with who has it.
pub(crate) async fn lock_snapshot(deps: &Deps, id: &SnapshotId) -> Result<Box<dyn Held>, Error> {
    match deps.locks.try_lock_snapshot(id).await? {
        Some(lock) => Ok(lock),
        None => Err(snapshot_busy_error(deps, id).await),
    }
}

/// The snapshot's lock: changes of its patches take a moment, and wait for one another.
pub(crate) async fn wait_to_lock_snapshot(
    deps: &Deps,
    id: &SnapshotId,
) -> Result<Box<dyn Held>, Error> {
    let until = tokio::time::Instant::now() + LOCK_LIMIT;
    loop {
        match deps.locks.try_lock_snapshot(id).await? {
            Some(lock) => return Ok(lock),
            None if tokio::time::Instant::now() >= until => {
                return Err(snapshot_busy_error(deps, id).await);
            }
            None => tokio::time::sleep(LOCK_POLL).await,
        }
    }
}
