//! Undo: what is kept of a sandbox before it is removed, and the way back (semantics 5).

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::domain::profile::{Bytes, Seconds};

/// Undo snapshots.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UndoSettings {
    /// How long one is kept.
    pub window: Seconds,
    /// Above this workspace size none is taken.
    pub max_bytes: Bytes,
    /// What all of a host may take; the oldest go first.
    pub max_total: Bytes,
}

impl Default for UndoSettings {
    fn default() -> Self {
        Self { window: Seconds::hours(24), max_bytes: Bytes::gib(1), max_total: Bytes::gib(5) }
    }
}

/// Request to bring a removed sandbox back.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct UndoRequest {
    /// The sandbox that was removed, by its id or name; none: the last one that was.
    pub id: Option<String>,
}
