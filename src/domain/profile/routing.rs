//! Routing block of a profile: the backends that may take a request.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize};

use crate::domain::name::{ExtensionId, HostName};
use crate::domain::route::RouteCondition;
use crate::domain::usd::Usd;

/// Alternative backends, tried in order. Empty: the profile's own extension, always.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Routing {
    /// Backends in order of preference.
    #[serde(default)]
    pub candidates: Vec<Candidate>,
    /// Groups of conditions, which a candidate's `when` may name: a name, and the conditions of which one must hold.
    #[serde(default, deserialize_with = "read_groups")]
    pub conditions: BTreeMap<String, Vec<RouteCondition>>,
    /// A quote above this is refused; `null` means no limit.
    #[serde(default)]
    pub max_cost_usd: Option<Usd>,
}

/// Backend of a route.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Candidate {
    /// Extension that makes the sandbox, if this one is taken.
    pub extension: ExtensionId,
    /// Hosts in order of preference; empty means the profile's.
    #[serde(default)]
    pub hosts: Vec<HostName>,
    /// Conditions, or names of groups of them: it is considered where an earlier candidate was refused for one of these, or failed.
    /// Empty: whatever that was refused for.
    #[serde(default)]
    pub when: Vec<String>,
    /// For this extension; `null` means the profile's `config` where the extension is the profile's own, else
    /// nothing.
    #[serde(default)]
    pub config: Option<serde_json::Value>,
}

/// Groups of a profile that was kept. What an earlier version took for a condition and this one cannot is a group that never holds.
fn read_groups<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<BTreeMap<String, Vec<RouteCondition>>, D::Error> {
    let groups = BTreeMap::<String, serde_json::Value>::deserialize(deserializer)?;
    let words = |value| serde_json::from_value(value).unwrap_or_default();
    Ok(groups.into_iter().map(|(name, value)| (name, words(value))).collect())
}

impl Candidate {
    /// Whether another one is the same backend on the same hosts.
    pub(super) fn is_like(&self, other: &Self) -> bool {
        let hosts = self.hosts.len() == other.hosts.len()
            && self.hosts.iter().zip(&other.hosts).all(|(one, other)| one.same(other.as_str()));
        self.extension == other.extension && hosts
    }
}

impl Routing {
    /// Conditions that a candidate's `when` comes to.
    pub fn conditions_of(&self, candidate: &Candidate) -> Vec<RouteCondition> {
        let of = |name: &String| match self.conditions.get(name) {
            Some(group) => group.clone(),
            None => vec![RouteCondition::from_word(name)],
        };
        candidate.when.iter().flat_map(of).collect()
    }
}
