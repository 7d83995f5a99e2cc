//! How an operation begins on a sandbox whose lock is free: over a dead one only where that hides nothing of what it left
//! (semantics 5 and 7).

use crate::domain::error::{Code, Error};
use crate::domain::operation::{Operation, OperationKind};
use crate::domain::sandbox::{SandboxRecord, State};
use crate::manager::SandboxManager;
use crate::manager::record::{Guard, running};
use crate::manager::recover::by;

impl SandboxManager {
    /// Writes an operation down, and on the record of a sandbox whose lock is held.
    ///
    /// Errors: as [`may_follow`], and `conflict` for a record that changed since it was read.
    pub(super) async fn begin(
        &self,
        kind: OperationKind,
        record: &SandboxRecord,
    ) -> Result<(Operation, SandboxRecord), Error> {
        may_follow(&kind, record)?;
        let operation = self.new_operation(kind, &record.id);
        self.parts.operations.put(operation.clone()).await?;
        match self.mark(&operation, record).await {
            Ok(record) => Ok((operation, record)),
            Err(fault) => {
                let told = Error::new(fault.code.clone(), fault.message.clone());
                self.end_operation(operation, Err(told)).await;
                Err(fault)
            }
        }
    }

    /// Puts an operation that is written down on the record of a sandbox whose lock is held, and that it [`may_follow`].
    pub(super) async fn mark(
        &self,
        operation: &Operation,
        record: &SandboxRecord,
    ) -> Result<SandboxRecord, Error> {
        let mark = running(operation);
        let marked = self
            .transition(
                &record.id,
                Guard::Revision(Some(record.revision)),
                Vec::new(),
                move |record| {
                    record.operation = Some(mark);
                },
            )
            .await?;
        self.end_followed(record).await;
        Ok(marked)
    }

    /// Ends the dead operation over which another one began. Who cannot write that down leaves it to `recover`.
    pub(super) async fn end_followed(&self, before: &SandboxRecord) {
        let Some(dead) = &before.operation else { return };
        if let Err(fault) = self.end_dead(&dead.id).await {
            tracing::warn!(operation = %dead.id, %fault, "its end could not be written");
        }
    }
}

/// Refuses to begin where a dead operation may have left what only `recover` brings in order: containers that are paused,
/// or neither awake nor asleep.
///
/// Errors: `conflict`, with the dead operation.
pub(super) fn may_follow(kind: &OperationKind, record: &SandboxRecord) -> Result<(), Error> {
    use OperationKind::{Patch, Recreate, Sleep, Wake};
    let Some(dead) = &record.operation else { return Ok(()) };
    let hides_nothing = match &dead.kind {
        // Nobody knows whether its script ran, which is on the record from here on.
        Patch => true,
        // It removes nothing before the record says so.
        Recreate => record.state != State::Provisioning,
        // A sleep or a wake does all of it, whatever was done already.
        Sleep | Wake => matches!(kind, Sleep | Wake),
        _ => false,
    };
    if hides_nothing {
        return Ok(());
    }
    let (id, dead_was) = (&record.id, by(&dead.kind, dead.pid, &dead.host));
    Err(Error::new(
        Code::Conflict,
        format!("sandbox {id} is not in order: {dead_was} died over it"),
    )
    .hint("`sandboxer recover` brings it in order; then try again")
    .detail("operation", dead.id.as_str())
    .detail("state", record.state.as_str()))
}
