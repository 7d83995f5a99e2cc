//! The files of the records that have names.

use std::sync::Arc;

use crate::domain::{SandboxRecord, SnapshotRecord};
use crate::store::document::Document;
use crate::store::history::History;

/// Files whose records are called by ids and names that mean one thing among all of them. Who takes a name holds the
/// sandboxes' turn to write, and only then takes the snapshots'.
#[derive(Clone)]
pub(super) struct NamedFiles {
    pub(super) sandboxes: Arc<Document<SandboxRecord>>,
    pub(super) history: History,
    pub(super) snapshots: Arc<Document<SnapshotRecord>>,
}
