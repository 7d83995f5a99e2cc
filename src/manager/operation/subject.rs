//! Subjects: records that an operation works on, one at a time.

use std::future::Future;

use crate::domain::error::Error;
use crate::domain::event::EventKind;
use crate::domain::operation::{Operation, OperationKind};
use crate::domain::sandbox::{SandboxRecord, State};
use crate::domain::snapshot::{ReplicaState, SnapshotRecord, SnapshotState};
use crate::manager::deps::Deps;
use crate::manager::journal::{self, Guard, JournalRecord, NewEvent};
use crate::manager::patches::pending::{patch_base, refresh_patch_state, settle};

pub(crate) trait OperationRecord: JournalRecord {
    /// Changes it, with the events that this causes, and what it means when an operation leaves it.
    fn write(
        deps: &Deps,
        id: &Self::Id,
        guard: Guard,
        events: Vec<NewEvent>,
        change: impl FnOnce(&mut Self) -> Result<(), Error> + Send,
    ) -> impl Future<Output = Result<Self, Error>> + Send;

    /// The sentence for an operation on it that was cancelled, where its verb has none.
    fn cancelled_message(&self, kind: &OperationKind) -> String;

    /// Last resort when an operation's work panicked: the record must not stay as if somebody worked on it. That it could not
    /// be written is logged.
    fn fail_after_panic(
        deps: &Deps,
        operation: &Operation,
        error: &Error,
    ) -> impl Future<Output = ()> + Send;
}

impl OperationRecord for SandboxRecord {
    /// A write that frees a record of its operation settles the sandbox's patch state.
    async fn write(
        deps: &Deps,
        id: &Self::Id,
        guard: Guard,
        events: Vec<NewEvent>,
        change: impl FnOnce(&mut Self) -> Result<(), Error> + Send,
    ) -> Result<Self, Error> {
        let before = deps.sandboxes.get(id).await?.filter(|record| record.operation.is_some());
        let base = match &before {
            Some(before) => patch_base(deps, before).await.unwrap_or_else(|error| {
                tracing::warn!(sandbox = %id, %error, "its pending patches could not be read");
                None
            }),
            None => None,
        };
        let write = journal::update(deps, id, guard, events, move |record: &mut Self| {
            change(record)?;
            if let Some(base) =
                base.filter(|_| record.operation.is_none() && !record.state.is_over())
            {
                settle(record, &base);
            }
            Ok(())
        });
        let record = Box::pin(write).await?;
        // A patch that was added or removed meanwhile has seen the record as it was, or is seen now.
        if before.is_some() && record.operation.is_none() {
            return Ok(Box::pin(refresh_patch_state(deps, record)).await);
        }
        Ok(record)
    }

    fn cancelled_message(&self, _: &OperationKind) -> String {
        format!("sandbox {}: cancelled", self.id)
    }

    async fn fail_after_panic(deps: &Deps, operation: &Operation, error: &Error) {
        let Some(id) = operation.subject.sandbox() else { return };
        let message = error.message.clone();
        let failed =
            vec![(EventKind::SandboxFailed, serde_json::json!({"message": message.clone()}))];
        let guard = Guard::Operation(operation.id.clone());
        let write = Self::write(deps, id, guard, failed, move |record| {
            record.operation = None;
            record.message = Some(message);
            if matches!(record.state, State::Requested | State::Provisioning) {
                record.state = State::Failed;
                // Nobody has looked at what the panic left behind.
                record.teardown.clear();
            }
            Ok(())
        });
        if let Err(error) = write.await {
            tracing::error!(sandbox = %id, %error, "an abandoned operation could not be written down");
        }
    }
}

impl OperationRecord for SnapshotRecord {
    async fn write(
        deps: &Deps,
        id: &Self::Id,
        guard: Guard,
        events: Vec<NewEvent>,
        change: impl FnOnce(&mut Self) -> Result<(), Error> + Send,
    ) -> Result<Self, Error> {
        journal::update(deps, id, guard, events, change).await
    }

    fn cancelled_message(&self, kind: &OperationKind) -> String {
        format!("{kind}: cancelled")
    }

    /// The sandbox that it is taken of is freed too.
    async fn fail_after_panic(deps: &Deps, operation: &Operation, error: &Error) {
        SandboxRecord::fail_after_panic(deps, operation, error).await;
        let Some(id) = operation.subject.snapshot() else { return };
        let (message, working) = (error.message.clone(), operation.id.clone());
        let write = Self::write(deps, id, Guard::Any, Vec::new(), move |record| {
            if record.operation.take_if(|running| running.id == working).is_some() {
                record.message = Some(message);
                if record.state == SnapshotState::Creating {
                    record.state = SnapshotState::Failed;
                    record.mark_all(&ReplicaState::Removing);
                }
            }
            Ok(())
        });
        if let Err(error) = write.await {
            tracing::error!(snapshot = %id, %error, "an abandoned operation could not be written down");
        }
    }
}
