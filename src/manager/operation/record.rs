//! Record of an operation of this process, and the mark that it puts on what it works on.

use crate::domain::name::OperationId;
use crate::domain::operation::{Operation, OperationKind, OperationState, Subject};
use crate::domain::sandbox::{Running, SandboxRecord};
use crate::domain::snapshot::SnapshotRecord;
use crate::manager::deps::Deps;

/// A new operation of this process on what bears this name.
pub(crate) fn new_operation(
    deps: &Deps,
    kind: OperationKind,
    subject: Subject,
    name: Option<&str>,
) -> Operation {
    Operation {
        id: OperationId::from_random((deps.random_u32)()),
        kind,
        subject,
        name: name.map(str::to_owned),
        state: OperationState::Running,
        stage: None,
        done: None,
        of: None,
        bytes: None,
        started_at: deps.now(),
        finished_at: None,
        pid: std::process::id(),
        host: deps.settings.machine.clone(),
        actor: deps.actor(),
        cancel_requested: false,
        cancel_outcome: None,
        error: None,
    }
}

/// A new operation of this process on a sandbox.
pub(crate) fn operation_on(deps: &Deps, kind: OperationKind, record: &SandboxRecord) -> Operation {
    new_operation(deps, kind, Subject::Sandbox(record.id.clone()), record.name.as_deref())
}

/// A new operation of this process on a snapshot.
pub(crate) fn operation_on_snapshot(
    deps: &Deps,
    kind: OperationKind,
    record: &SnapshotRecord,
) -> Operation {
    new_operation(deps, kind, Subject::Snapshot(record.id.clone()), record.name.as_deref())
}

/// The operation as a record that it works on shows it.
pub(crate) fn running(operation: &Operation) -> Running {
    Running {
        id: operation.id.clone(),
        kind: operation.kind.clone(),
        started_at: operation.started_at,
        pid: operation.pid,
        host: operation.host.clone(),
        actor: operation.actor.clone(),
        cancel_requested: false,
    }
}
