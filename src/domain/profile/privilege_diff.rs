//! Privilege diff: a profile from outside may not ask for more than the operator's own of its name.

use super::definition::{Allowance, Compose, PortPolicy, Profile};
use super::quantity::Seconds;
use super::routing::Routing;
use crate::domain::problem::shown;
use crate::domain::text::plural;

impl Profile {
    /// Phrases, one for each thing that this profile asks for beyond `known`, the operator's of the same name. Without one
    /// it may ask for nothing that a profile must ask for by name, and for an end.
    pub(crate) fn widens(&self, known: Option<&Self>) -> Vec<String> {
        let mut more = self.compose.beyond(known.map(|known| &known.compose));
        if known.map_or_else(
            || has_config(self),
            |known| self.config != known.config && has_config(self),
        ) {
            more.push(format!("has the config {}", self.config));
        }
        if known.map_or_else(
            || self.routing != Routing::default(),
            |known| self.routing != known.routing,
        ) {
            more.push("has other routes".to_owned());
        }
        match known {
            Some(known) => more.extend(self.beyond_known(known)),
            None if self.ttl.is_none() => more.push("lets a sandbox live without end".to_owned()),
            None => {}
        }
        more
    }

    fn beyond_known(&self, known: &Self) -> Vec<String> {
        let mut more = Vec::new();
        if self.extension != known.extension {
            more.push(format!("is for the extension {}", shown(self.extension.as_str())));
        }
        let lifetimes = [("ttl", self.ttl, known.ttl), ("max_ttl", self.max_ttl, known.max_ttl)];
        for (key, asked, most) in lifetimes {
            if asked.map_or(u64::MAX, Seconds::get) > most.map_or(u64::MAX, Seconds::get) {
                let asked = asked.map_or_else(|| "none".to_owned(), |asked| asked.to_string());
                more.push(format!("has the {key} {asked}"));
            }
        }
        let times = [
            ("ready_timeout", self.ready_timeout, known.ready_timeout),
            ("settle", self.settle, known.settle),
            ("stop_grace", self.stop_grace, known.stop_grace),
            ("patches.timeout", self.patches.timeout, known.patches.timeout),
            ("patches.pass_timeout", self.patches.pass_timeout, known.patches.pass_timeout),
        ];
        let longer = times.into_iter().filter(|(_, asked, most)| asked > most);
        more.extend(longer.map(|(key, asked, _)| format!("has the {key} {asked}")));
        // Both directions: one takes room, the other takes away what somebody counts on.
        if self.undo != known.undo {
            more.push(format!("has undo: {}", self.undo));
        }
        if self.snapshot.keep != known.snapshot.keep {
            let kept = |keep| plural(u64::from(keep), "snapshot", "snapshots");
            let keep = self.snapshot.keep.map_or_else(|| "all snapshots".to_owned(), kept);
            more.push(format!("keeps {keep}"));
        }
        let bared = known
            .snapshot
            .exclude
            .iter()
            .filter(|pattern| !self.snapshot.exclude.contains(pattern));
        more.extend(bared.map(|pattern| format!("leaves {} in snapshots", shown(pattern))));
        more
    }
}

impl Compose {
    fn beyond(&self, known: Option<&Self>) -> Vec<String> {
        let allowed = known.map(|known| known.allow.as_slice()).unwrap_or_default();
        let new = self.allow.iter().filter(|word| !allowed.contains(word));
        let new: Vec<&str> = new.map(Allowance::as_str).collect();
        let mut more = Vec::new();
        if !new.is_empty() {
            more.push(format!("allows {}", new.join(", ")));
        }
        let ports = known.map(|known| known.ports.clone()).unwrap_or_default();
        if self.ports != PortPolicy::Ephemeral && self.ports != ports {
            more.push(format!("has the ports {}", self.ports));
        }
        more
    }
}

fn has_config(profile: &Profile) -> bool {
    profile.config.as_object().is_none_or(|config| !config.is_empty())
}
