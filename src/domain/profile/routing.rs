//! Routing block of a profile: the backends that may take a request, and what a profile is for one of them.

use std::borrow::Cow;
use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize};

use super::check::{check_config, check_hosts};
use super::{Placement, Profile, empty_object};
use crate::domain::name::{ExtensionId, HostName};
use crate::domain::problem::{FieldProblem, shown};
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

/// Extension that a profile may come to use, and what it would be given.
#[derive(Debug, Clone, PartialEq)]
pub struct ExtensionUse<'p> {
    /// The extension.
    pub extension: &'p ExtensionId,
    /// Where the profile names it, such as `routing.candidates[1].extension`.
    pub path: String,
    /// Its `config`.
    pub config: Cow<'p, serde_json::Value>,
    /// Where the profile says so.
    pub config_path: String,
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
    fn is_like(&self, other: &Self) -> bool {
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

impl Profile {
    /// The profile's own extension, then its routes'.
    pub fn uses(&self) -> Vec<ExtensionUse<'_>> {
        let own = ExtensionUse {
            extension: &self.extension,
            path: "extension".to_owned(),
            config: Cow::Borrowed(&self.config),
            config_path: "config".to_owned(),
        };
        let routes = self.routing.candidates.iter().enumerate().map(|(at, candidate)| {
            let (config, config_path) = match &candidate.config {
                Some(config) => (Cow::Borrowed(config), format!("routing.candidates[{at}].config")),
                None if candidate.extension == self.extension => {
                    (own.config.clone(), own.config_path.clone())
                }
                None => (Cow::Owned(empty_object()), format!("routing.candidates[{at}]")),
            };
            let path = format!("routing.candidates[{at}].extension");
            ExtensionUse { extension: &candidate.extension, path, config, config_path }
        });
        let routes: Vec<_> = routes.collect();
        std::iter::once(own).chain(routes).collect()
    }

    /// Whether a sandbox of this profile may be an extension's.
    pub fn may_use(&self, extension: &ExtensionId) -> bool {
        self.uses().iter().any(|used| used.extension == extension)
    }

    /// Profile as its file says it, whichever candidate this is used for.
    pub fn as_written(&self) -> &Self {
        self.written.as_deref().unwrap_or(self)
    }

    /// Profile as one of its candidates uses it.
    #[must_use]
    pub fn for_candidate(&self, candidate: &Candidate) -> Self {
        let hosts =
            if candidate.hosts.is_empty() { &self.placement.hosts } else { &candidate.hosts };
        let config = match &candidate.config {
            Some(config) => config.clone(),
            None if candidate.extension == self.extension => self.config.clone(),
            None => empty_object(),
        };
        Self {
            extension: candidate.extension.clone(),
            placement: Placement { hosts: hosts.clone(), ..self.placement.clone() },
            config,
            written: Some(Box::new(self.as_written().clone())),
            ..self.clone()
        }
    }

    /// Profile as an extension uses it, by which a sandbox was made. Candidates of one extension have the same `config`, so this
    /// is known for good. As it is where no candidate is of that extension.
    #[must_use]
    pub fn for_extension(self, extension: &ExtensionId) -> Self {
        let written = self.as_written();
        match written.routing.candidates.iter().find(|one| one.extension == *extension) {
            Some(candidate) => written.for_candidate(candidate),
            None => self,
        }
    }

    /// Problems of the routing block.
    pub(super) fn check_routing(&self) -> Vec<FieldProblem> {
        let mut found = self.check_groups();
        for (index, candidate) in self.routing.candidates.iter().enumerate() {
            let path = |key: &str| format!("routing.candidates[{index}].{key}");
            let mut refuse = |path: &str, message: String| {
                found.push(FieldProblem::new(path, message));
            };
            check_hosts(&path("hosts"), &candidate.hosts, &mut refuse);
            if let Some(config) = &candidate.config {
                check_config(&path("config"), config, &mut refuse);
            }
            if index == 0 && !candidate.when.is_empty() {
                let message = "the first candidate has none before it: it is always considered, and 'when' says nothing";
                refuse(&path("when"), message.to_owned());
            }
            found.extend(self.check_when(candidate, &path("when")));
            let earlier = self.routing.candidates[..index].iter();
            if let Some(first) = earlier.clone().position(|one| one.is_like(candidate)) {
                let message = format!(
                    "it is candidates[{first}] once more: another extension, or other hosts, would be another candidate"
                );
                found.push(FieldProblem::new(path("extension"), message));
            }
        }
        found.extend(self.check_configs());
        found
    }

    fn check_groups(&self) -> Vec<FieldProblem> {
        let mut found = Vec::new();
        for (name, words) in &self.routing.conditions {
            let path = format!("routing.conditions.{name}");
            if is_built_in(name) {
                let message =
                    format!("{} is a condition itself: the group needs another name", shown(name));
                found.push(FieldProblem::new(&path, message));
            }
            found.extend(repeated(&path, words.iter().map(RouteCondition::as_str)));
        }
        found
    }

    fn check_when(&self, candidate: &Candidate, path: &str) -> Vec<FieldProblem> {
        let groups = self.routing.conditions.keys().map(String::as_str);
        let known: Vec<&str> =
            groups.chain(RouteCondition::ALL.iter().map(RouteCondition::as_str)).collect();
        let unknown = candidate.when.iter().enumerate();
        let unknown = unknown.filter(|(_, name)| !known.contains(&name.as_str()));
        let problem = |(at, name): (usize, &String)| {
            let message = format!("unknown condition {}", shown(name));
            FieldProblem::new(format!("{path}[{at}]"), message).near(name, known.iter().copied())
        };
        let mut found: Vec<_> = unknown.map(problem).collect();
        found.extend(repeated(path, candidate.when.iter().map(String::as_str)));
        found
    }

    /// Refuses candidates of one extension that differ in `config`: a sandbox's record says its extension, and no more.
    fn check_configs(&self) -> Vec<FieldProblem> {
        let uses = self.uses();
        let routes = uses.get(1..).unwrap_or_default();
        let mut found = Vec::new();
        for (index, used) in routes.iter().enumerate() {
            let differs = |earlier: &&ExtensionUse<'_>| {
                earlier.extension == used.extension && earlier.config != used.config
            };
            if let Some(earlier) = routes[..index].iter().find(differs) {
                let message = format!(
                    "{} has another config in {}: candidates of one extension have the same",
                    used.extension, earlier.path
                );
                let path = format!("routing.candidates[{index}].config");
                found.push(FieldProblem::new(path, message));
            }
        }
        found
    }
}

/// Problem of the first condition that a list names twice.
fn repeated<'w>(path: &str, words: impl Iterator<Item = &'w str>) -> Option<FieldProblem> {
    let words: Vec<&str> = words.collect();
    let at = (1..words.len()).find(|at| words[..*at].contains(&words[*at]))?;
    let message = format!("the condition {} is named twice", shown(words[at]));
    Some(FieldProblem::new(format!("{path}[{at}]"), message))
}

fn is_built_in(name: &str) -> bool {
    RouteCondition::ALL.iter().any(|condition| condition.as_str() == name)
}
