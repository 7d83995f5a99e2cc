//! Updates: what a face hears while it listens. Progress is what is happening, streamed and forgotten.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::domain::error::Error;
use crate::domain::event::Event;
use crate::domain::host_view::HostView;
use crate::domain::name::{OperationId, SandboxId};
use crate::domain::operation::{Operation, OperationKind};
use crate::domain::record::Record;
use crate::domain::sandbox::SandboxRecord;
use crate::domain::stale::ReapItem;

/// Progress of a running operation. Streamed to every face, never stored.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Progress {
    /// The operation.
    pub operation: OperationId,
    /// Kind.
    pub kind: OperationKind,
    /// On which sandbox.
    pub sandbox_id: Option<SandboxId>,
    /// On which snapshot.
    #[serde(default)]
    pub snapshot_id: Option<crate::domain::name::SnapshotId>,
    /// The step's name, such as `transfer`.
    pub stage: String,
    /// The step's number, from 1.
    pub step: u32,
    /// Number of steps.
    pub steps: u32,
    /// Part of the step that is done, in the step's unit (bytes where `bytes` is set).
    pub done: Option<u64>,
    /// Out of how much.
    pub of: Option<u64>,
    /// Bytes moved so far.
    pub bytes: Option<u64>,
    /// A line that the step's program wrote, or a sentence.
    pub message: Option<String>,
}

/// End of an operation.
#[derive(Debug, Clone, PartialEq)]
pub struct Ended {
    /// The operation as it is stored now.
    pub operation: Operation,
    /// Subject as it is now, or the operation's error.
    pub outcome: Result<Record, Error>,
}

/// Update that a face hears while it listens.
#[derive(Debug, Clone, PartialEq)]
pub enum Update {
    /// Something happened: this process's or another's.
    Event(Event),
    /// An operation of this process moved.
    Progress(Progress),
    /// An operation of this process ended. Of another process's, [`Self::Operations`] says that there is news.
    Ended(Box<Ended>),
    /// A reap of this process is done with an item of its plan.
    Reaped(OperationId, Box<ReapItem>),
    /// A host's state changed.
    Host(Box<HostView>),
    /// A record changed without an event: its services were seen in another state.
    Record(Box<SandboxRecord>),
    /// Snapshots or patches changed, by whichever process.
    Snapshots,
    /// Operations began or ended, by whichever process.
    Operations,
    /// The listener was too slow, or events are older than kept: read everything again.
    Resync,
}
