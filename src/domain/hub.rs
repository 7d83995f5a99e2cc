//! State Hub: how far it has heard of what happened.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::domain::Time;
use crate::domain::error::Error;

/// Backlog of a State Hub that is configured.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct HubBacklog {
    /// Events that it has not taken yet.
    pub waiting: u64,
    /// When the oldest of them happened; null where none waits.
    pub oldest_at: Option<Time>,
    /// Events that it refused for good, in the dead letter.
    pub dead: u64,
    /// When it is tried again; null where no backoff runs.
    pub next_try_at: Option<Time>,
    /// What the last failed try said.
    pub last_error: Option<String>,
}

/// Report of a delivery.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct FlushReport {
    /// Events that the hub took.
    pub delivered: u64,
    /// Events that it refused for good meanwhile.
    pub dead: u64,
    /// Backlog afterwards.
    pub backlog: HubBacklog,
    /// Why not all were delivered.
    pub error: Option<Error>,
}
