//! Start of an operation on a sandbox or snapshot that is there.

use std::future::Future;
use std::sync::Arc;

use crate::domain::error::Error;
use crate::domain::operation::OperationKind;
use crate::domain::sandbox::SandboxRecord;
use crate::domain::snapshot::SnapshotRecord;
use crate::domain::update::Ended;
use crate::manager::deps::Deps;
use crate::manager::journal::Guard;
use crate::manager::operation::Op;
use crate::manager::operation::dead::check_can_start;
use crate::manager::operation::locks::lock_snapshot;
use crate::manager::operation::record::{operation_on, operation_on_snapshot};
use crate::manager::snapshots::archives::{READABLE, ensure_ready};
use crate::store::Held;

/// Starts an operation on a sandbox whose lock is held; over a dead one only where that hides nothing of what it left.
pub(crate) async fn start(
    deps: &Deps,
    kind: OperationKind,
    (record, lock): (SandboxRecord, Box<dyn Held>),
) -> Result<Op<SandboxRecord>, Error> {
    start_with(deps, kind, (record, lock), |_| {}).await
}

/// [`start`], with a change in the write that puts the operation on the record.
pub(crate) async fn start_with(
    deps: &Deps,
    kind: OperationKind,
    (record, lock): (SandboxRecord, Box<dyn Held>),
    change: impl FnOnce(&mut SandboxRecord) + Send,
) -> Result<Op<SandboxRecord>, Error> {
    check_can_start(&kind, &record)?;
    let operation = operation_on(deps, kind, &record);
    let guard = Guard::Revision(Some(record.revision));
    let change = |record: &mut SandboxRecord| {
        change(record);
        Ok(())
    };
    Box::pin(Op::start(deps, operation, (record, lock), guard, change)).await
}

/// Runs an operation on a sandbox whose lock is held, to its end, which has the work's error. The work puts it on the record.
pub(crate) async fn run_to_end<F>(
    deps: &Deps,
    kind: OperationKind,
    (record, lock): (SandboxRecord, Box<dyn Held>),
    work: impl FnOnce(Arc<Op<SandboxRecord>>) -> F,
) -> Result<Ended, Error>
where
    F: Future<Output = Result<(), Error>> + Send + 'static,
{
    let operation = operation_on(deps, kind, &record);
    Box::pin(Op::queue(deps, operation, record, Some(lock))).await?.run_to_end(work).await
}

/// Takes the lock of a snapshot and starts an operation on it, if it is ready still.
pub(crate) async fn start_on_ready(
    deps: &Deps,
    kind: OperationKind,
    record: SnapshotRecord,
) -> Result<Op<SnapshotRecord>, Error> {
    let lock = lock_snapshot(deps, &record.id).await?;
    let operation = operation_on_snapshot(deps, kind, &record);
    let is_ready = |record: &mut SnapshotRecord| ensure_ready(record, READABLE);
    Box::pin(Op::start(deps, operation, (record, lock), Guard::Any, is_ready)).await
}
