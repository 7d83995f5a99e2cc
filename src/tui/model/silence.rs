//! Silence of a host, in words, for whoever is about to act on it.

use super::{Model, Standing, age};
use crate::domain::Time;

impl Model {
    /// Warning of a host that does not answer, if it does not.
    pub fn silence(&self, name: &str, observed: Option<Time>) -> Option<String> {
        if !self.hosts.is_silent(name, self.now, self.started) {
            return None;
        }
        let host = self.hosts.get(name);
        let down = host.filter(|host| host.standing(self.now) == Standing::Down);
        let since = host.and_then(|host| host.answered).or(observed);
        let since = since.map_or_else(
            || "never".to_owned(),
            |at| format!("{} ago", age(self.now.since(at).as_secs())),
        );
        let word = if down.is_some() { "is down" } else { "has not answered" };
        Some(format!("{name} {word}; last heard of {since}"))
    }

    /// The same of several hosts, each once.
    pub fn silences<'a>(&self, hosts: impl Iterator<Item = &'a str>) -> Vec<String> {
        let hosts: std::collections::BTreeSet<&str> = hosts.collect();
        hosts.into_iter().filter_map(|host| self.silence(host, None)).collect()
    }
}
