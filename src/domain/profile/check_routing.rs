//! Rules of a profile's routing block.

use super::candidates::ExtensionUse;
use super::check_fields::{check_config, check_hosts};
use super::definition::Profile;
use super::routing::Candidate;
use crate::domain::problem::{FieldProblem, shown};
use crate::domain::route::RouteCondition;

impl Profile {
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
