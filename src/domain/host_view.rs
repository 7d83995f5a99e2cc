//! Host as a face shows it.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::domain::Time;
use crate::domain::deep_check::DeepCheck;
use crate::domain::facts::HostFacts;
use crate::domain::host::Limits;
use crate::domain::name::HostName;
use crate::domain::telemetry::HostSample;
use crate::domain::words::string_enum;

string_enum! {
    /// Whether a host answers.
    pub enum HostState {
        /// Nobody has asked it yet.
        Unknown = "unknown",
        /// A connection is being made.
        Connecting = "connecting",
        /// Host answers.
        Up = "up",
        /// Host answers late.
        Slow = "slow",
        /// Host does not answer.
        Down = "down",
        /// The configuration forbids it.
        Forbidden = "forbidden",
    }
}

/// A host as a face shows it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct HostView {
    /// Name.
    pub name: HostName,
    /// Target for ssh; null for `local`.
    pub ssh: Option<String>,
    /// Whether it answers.
    pub state: HostState,
    /// The last round trip, in milliseconds.
    pub latency_ms: Option<u64>,
    /// When it was asked last.
    pub checked_at: Option<Time>,
    /// Why it is down, in ssh's own words, or why it is forbidden.
    pub message: Option<String>,
    /// Next step for the user.
    pub hint: Option<String>,
    /// Sandboxes on it by our records.
    pub sandboxes: u32,
    /// Most sandboxes that it may hold.
    pub max_sandboxes: Option<u32>,
    /// Labels.
    #[serde(default)]
    pub labels: BTreeMap<String, String>,
    /// Above these nothing is placed on it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limits: Option<Limits>,
    /// Facts of its last probe.
    pub facts: Option<HostFacts>,
    /// Last light probe.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sample: Option<HostSample>,
    /// Deep check; only where one was asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deep: Option<Box<DeepCheck>>,
}
