//! Changes of labels, and the labels before.

use std::collections::{BTreeMap, BTreeSet};

use super::definition::Notes;
use crate::domain::name::check_label;
use crate::tui::model::Role;

/// Labels of some sandboxes: the values of each key, each with how many have it.
#[derive(Debug, Clone)]
pub(super) struct KnownLabels {
    values: BTreeMap<String, BTreeMap<String, usize>>,
    sandboxes: usize,
}

impl KnownLabels {
    /// Labels of these sandboxes.
    pub(super) fn of<'a>(all: impl Iterator<Item = &'a BTreeMap<String, String>>) -> Self {
        let mut known = Self { values: BTreeMap::new(), sandboxes: 0 };
        for labels in all {
            known.sandboxes += 1;
            for (key, value) in labels {
                let values = known.values.entry(key.clone()).or_default();
                *values.entry(value.clone()).or_default() += 1;
            }
        }
        known
    }

    pub(super) fn keys(&self) -> impl Iterator<Item = &String> {
        self.values.keys()
    }

    /// Whether a sandbox has it.
    pub(super) fn has(&self, key: &str) -> bool {
        self.values.contains_key(key)
    }

    /// The value that every sandbox has.
    pub(super) fn common(&self, key: &str) -> Option<&str> {
        let (value, count) = self.values.get(key)?.iter().next()?;
        (*count == self.sandboxes).then_some(value)
    }

    /// The values of a key: `core on 2 of 3, web on 1 of 3`.
    pub(super) fn was(&self, key: &str) -> String {
        let all = self.sandboxes;
        let values = self.values.get(key).into_iter().flatten();
        let value = |(value, on): (&String, &usize)| {
            if *on == all { value.clone() } else { format!("{value} on {on} of {all}") }
        };
        values.map(value).collect::<Vec<_>>().join(", ")
    }
}

/// Changes of labels, on every target.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Changes {
    /// Values that keys get.
    pub(super) set: BTreeMap<String, String>,
    /// Keys that are removed.
    pub(super) remove: BTreeSet<String>,
    /// Keys that are to be removed and that no target has.
    pub(super) unknown: Vec<String>,
}

impl Changes {
    /// Sets one; what is so already is no change.
    pub(super) fn set(&mut self, known: &KnownLabels, key: &str, value: &str) {
        self.remove.remove(key);
        if known.common(key) == Some(value) {
            self.set.remove(key);
        } else {
            self.set.insert(key.to_owned(), value.to_owned());
        }
    }

    /// Removes one, where a sandbox has it.
    pub(super) fn remove(&mut self, known: &KnownLabels, key: &str) {
        self.set.remove(key);
        if known.has(key) {
            self.remove.insert(key.to_owned());
        }
    }

    /// `+ zone = a`, `~ team = web  was core`, `- team = core  to be removed`.
    pub(super) fn lines(&self, known: &KnownLabels) -> Notes {
        let set = self.set.iter().map(|(key, value)| match known.was(key) {
            was if was.is_empty() => (Role::Good, format!("+ {key} = {value}")),
            was => (Role::Warn, format!("~ {key} = {value}  was {was}")),
        });
        let removed = self
            .remove
            .iter()
            .map(|key| (Role::Bad, format!("- {key} = {}  to be removed", known.was(key))));
        let unknown = self.unknown.iter().map(|key| (Role::Warn, format!("⚠ {}", no_label(key))));
        set.chain(removed).chain(unknown).collect()
    }
}

/// Sentence on a label that cannot be removed.
pub(super) fn no_label(key: &str) -> String {
    format!("no sandbox here has the label '{key}'")
}

/// Reads `key=value key-`: what is set, and what is removed. A word that is neither goes on with the value before it.
pub(super) fn read_changes(text: &str) -> Result<Vec<(String, Option<String>)>, String> {
    let mut changes: Vec<(String, Option<String>)> = Vec::new();
    for word in text.split_inclusive([' ', ',']) {
        let bare = word.trim_end_matches([' ', ',']);
        if let Some((key, _)) = bare.split_once('=') {
            let value = word.split_once('=').map(|(_, value)| value.to_owned());
            changes.push((key.to_owned(), value));
        } else if let Some(key) = bare.strip_suffix('-') {
            changes.push((key.to_owned(), None));
        } else if let Some((_, Some(value))) = changes.last_mut() {
            value.push_str(word);
        } else if !bare.is_empty() {
            return Err(format!(
                "'{bare}' is not key=value, which adds it, nor key-, which removes it"
            ));
        }
    }
    for value in changes.iter_mut().filter_map(|(_, value)| value.as_mut()) {
        *value = value.trim_end_matches([' ', ',']).to_owned();
    }
    Ok(changes)
}

/// Whether a text says which labels come and which go.
pub(super) fn check_changes(text: &str) -> Result<(), String> {
    for (key, value) in read_changes(text)? {
        // What is removed has no value: one that every key may have.
        check_label(&key, value.as_deref().unwrap_or("false")).map_err(|error| error.message)?;
    }
    Ok(())
}
