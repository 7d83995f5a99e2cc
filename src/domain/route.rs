//! Route: which candidate of a profile takes a request, and why not the others.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::domain::error::Failure;
use crate::domain::name::{ExtensionId, HostName};
use crate::domain::words::string_enum;
use crate::domain::{Time, Usd};

string_enum! {
    /// Reason for which a request goes past a candidate.
    pub enum RouteCondition {
        /// None of its hosts answers.
        HostUnreachable = "host-unreachable",
        /// All of its hosts are full, or above their limits.
        Saturated = "saturated",
        /// It lacks what the request takes.
        Unsupported = "unsupported",
        /// Its price is above `max_cost_usd`, or above the credits.
        OverBudget = "over-budget",
    }
}

/// Why a host was or was not taken.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Verdict {
    /// The host.
    pub host: HostName,
    /// Whether it can take the sandbox.
    pub ok: bool,
    /// One sentence.
    pub reason: String,
}

/// Which host was chosen and why.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Route {
    /// The host that was chosen.
    pub host: HostName,
    /// One sentence.
    pub reason: String,
    /// What was found for each candidate.
    pub verdicts: Vec<Verdict>,
    /// What whoever asked should know of the choice, a sentence each.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub remarks: Vec<String>,
    /// Verdict on each candidate of the profile's `routing`, in its order; empty where it has none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub candidates: Vec<CandidateVerdict>,
}

/// Verdict on a candidate of a route.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CandidateVerdict {
    /// The backend.
    pub extension: ExtensionId,
    /// Whether it can take the sandbox.
    pub ok: bool,
    /// Condition that its refusal fulfils; null where it can take it, or was not asked.
    pub condition: Option<RouteCondition>,
    /// A sentence.
    pub reason: String,
    /// Its price; null where it costs nothing, or none was asked for.
    pub quote_usd: Option<Usd>,
    /// Verdict on each of its hosts.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub verdicts: Vec<Verdict>,
}

/// Attempt to establish a sandbox, or the verdict on a host that was not tried. Records of earlier versions have `host`, `ok` and
/// `reason` alone.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Attempt {
    /// The place.
    pub host: HostName,
    /// Whether it took the sandbox.
    pub ok: bool,
    /// A sentence.
    pub reason: String,
    /// The backend, where it was tried.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub extension: Option<ExtensionId>,
    /// When it was tried.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at: Option<Time>,
    /// Evidence of the step that failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failure: Option<Failure>,
    /// What was charged for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost_usd: Option<Usd>,
}

impl From<Verdict> for Attempt {
    fn from(verdict: Verdict) -> Self {
        let Verdict { host, ok, reason } = verdict;
        Self { host, ok, reason, extension: None, at: None, failure: None, cost_usd: None }
    }
}
