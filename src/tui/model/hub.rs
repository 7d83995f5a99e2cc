//! State Hub: how far it has heard of what happened, in words.

use super::{Fetch, Load};
use crate::client::HubBacklog;
use crate::domain::Time;

/// Backlog as it was read last.
#[derive(Debug, Clone, Default)]
pub struct Hub {
    /// Whether it was read.
    pub load: Load,
    pub reading: Fetch,
    /// When it was read last.
    pub read_at: Option<Time>,
    /// The backlog; none where no State Hub is configured.
    pub backlog: Option<HubBacklog>,
}
