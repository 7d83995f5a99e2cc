//! Start of an operation on a sandbox or snapshot that is there.

use crate::domain::error::Error;
use crate::domain::operation::OperationKind;
use crate::domain::sandbox::SandboxRecord;
use crate::domain::snapshot::SnapshotRecord;
use crate::manager::deps::Deps;
use crate::manager::journal::Guard;
use crate::manager::operation::Op;
use crate::manager::operation::dead::check_can_start;
use crate::manager::operation::locks::lock_snapshot;
use crate::manager::operation::record::{operation_on, operation_on_snapshot};
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

/// Takes the lock of a snapshot and starts an operation on it, with what `change` makes of the record, or refuses.
pub(crate) async fn start_on_snapshot(
    deps: &Deps,
    kind: OperationKind,
    record: SnapshotRecord,
    change: impl FnOnce(&mut SnapshotRecord) -> Result<(), Error> + Send,
) -> Result<Op<SnapshotRecord>, Error> {
    let lock = lock_snapshot(deps, &record.id).await?;
    let operation = operation_on_snapshot(deps, kind, &record);
    Box::pin(Op::start(deps, operation, (record, lock), Guard::Any, change)).await
}
