//! Labels of one or several sandboxes, and what is to become of them. The targets are frozen when the overlay opens:
//! each is written with the revision that the operator saw.

use std::collections::{BTreeMap, BTreeSet};

use tui_input::Input;

use super::rows::Entry;
use crate::client::{Error, LabelRequest};
use crate::domain::name::{SandboxId, check_label};
use crate::domain::sandbox::SandboxRecord;

/// The label that keeps sweeps and bulks away.
const PROTECT: &str = "protect";

/// How far a target has come.
#[derive(Debug, Clone, PartialEq)]
pub enum Labelling {
    /// Nothing was asked yet.
    Waiting,
    /// It is being written.
    Writing,
    /// It is written.
    Written,
    /// It was refused: it changed meanwhile, or cannot be written.
    Refused(Error),
}

/// One sandbox.
#[derive(Debug, Clone, PartialEq)]
pub struct LabelTarget {
    /// Its id.
    pub id: SandboxId,
    /// Its name.
    pub name: Option<String>,
    /// The revision that the operator saw.
    pub revision: u64,
    /// Its labels then.
    pub labels: BTreeMap<String, String>,
    /// How far it has come.
    pub state: Labelling,
}

/// One label among the targets.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LabelRow {
    /// Its key.
    pub key: String,
    /// Its values, each with how many targets have it.
    pub was: Vec<(String, usize)>,
    /// What it becomes.
    pub change: LabelChange,
}

/// What becomes of a label.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LabelChange {
    /// It stays as it is.
    Kept,
    /// It gets this value, on every target.
    Set(String),
    /// It is taken away from every target.
    Removed,
}

/// The overlay.
#[derive(Debug, Clone)]
pub struct Labels {
    /// The targets.
    pub targets: Vec<LabelTarget>,
    /// The label under the cursor.
    pub at: usize,
    /// The text field while it is open, and what is wrong with it.
    pub field: Option<(Input, Option<String>)>,
    /// Whether it was on the screen.
    pub drawn: bool,
    set: BTreeMap<String, String>,
    remove: BTreeSet<String>,
}

impl LabelTarget {
    fn of(record: &SandboxRecord) -> Self {
        Self {
            id: record.id.clone(),
            name: record.name.clone(),
            revision: record.revision,
            labels: record.labels.clone(),
            state: Labelling::Waiting,
        }
    }
}

impl Labels {
    /// Freezes rows.
    pub fn of<'a>(entries: impl IntoIterator<Item = &'a Entry>) -> Self {
        Self {
            targets: entries.into_iter().map(|entry| LabelTarget::of(&entry.record)).collect(),
            at: 0,
            field: None,
            drawn: false,
            set: BTreeMap::new(),
            remove: BTreeSet::new(),
        }
    }

    /// Every label that a target has or is to have.
    pub fn rows(&self) -> Vec<LabelRow> {
        let mut was: BTreeMap<&str, BTreeMap<&str, usize>> = BTreeMap::new();
        for (key, value) in self.targets.iter().flat_map(|target| &target.labels) {
            *was.entry(key).or_default().entry(value).or_default() += 1;
        }
        for key in self.set.keys() {
            was.entry(key).or_default();
        }
        was.into_iter()
            .map(|(key, values)| LabelRow {
                key: key.to_owned(),
                was: values.into_iter().map(|(value, count)| (value.to_owned(), count)).collect(),
                change: match self.set.get(key) {
                    Some(value) => LabelChange::Set(value.clone()),
                    None if self.remove.contains(key) => LabelChange::Removed,
                    None => LabelChange::Kept,
                },
            })
            .collect()
    }

    /// The label under the cursor.
    pub fn row(&self) -> Option<LabelRow> {
        self.rows().into_iter().nth(self.at)
    }

    /// Whether there is something to write.
    pub fn is_changed(&self) -> bool {
        !self.set.is_empty() || !self.remove.is_empty()
    }

    /// Whether an answer is waited for.
    pub fn is_writing(&self) -> bool {
        self.targets.iter().any(|target| target.state == Labelling::Writing)
    }

    /// Takes `key=value` from the field; the sentence that says what is wrong with it otherwise.
    pub fn take(&mut self, text: &str) -> Result<(), String> {
        let (key, value) = text.split_once('=').ok_or("a label is written key=value")?;
        let (key, value) = (key.trim(), value.trim());
        check_label(key, value).map_err(|fault| fault.message)?;
        self.remove.remove(key);
        let same = !self.targets.is_empty()
            && self
                .targets
                .iter()
                .all(|target| target.labels.get(key).is_some_and(|known| known == value));
        if same {
            self.set.remove(key);
        } else {
            self.set.insert(key.to_owned(), value.to_owned());
        }
        self.at = self.rows().iter().position(|row| row.key == key).unwrap_or(self.at);
        Ok(())
    }

    /// Takes the label under the cursor away, or takes back what was to become of it.
    pub fn toggle_removal(&mut self) {
        let Some(row) = self.row() else { return };
        match row.change {
            LabelChange::Kept => drop(self.remove.insert(row.key)),
            LabelChange::Set(_) => drop(self.set.remove(&row.key)),
            LabelChange::Removed => drop(self.remove.remove(&row.key)),
        }
        self.at = self.at.min(self.rows().len().saturating_sub(1));
    }

    /// Whether every target will be protected.
    pub fn is_protected(&self) -> bool {
        let has =
            |target: &LabelTarget| target.labels.get(PROTECT).is_some_and(|value| value == "true");
        match self.set.get(PROTECT) {
            Some(value) => value == "true",
            None => !self.remove.contains(PROTECT) && self.targets.iter().all(has),
        }
    }

    /// Protects every target, or none.
    pub fn toggle_protection(&mut self) {
        if self.is_protected() {
            self.set.remove(PROTECT);
            if self.targets.iter().any(|target| target.labels.contains_key(PROTECT)) {
                self.remove.insert(PROTECT.to_owned());
            }
        } else {
            // It cannot be wrong, and finds by itself whether anything changes.
            let _ = self.take("protect=true");
        }
        self.at = self.at.min(self.rows().len().saturating_sub(1));
    }

    /// What is asked for, for every target that is not written yet.
    pub fn requests(&mut self) -> Vec<LabelRequest> {
        let mut requests = Vec::new();
        for target in self.targets.iter_mut().filter(|target| target.state == Labelling::Waiting) {
            target.state = Labelling::Writing;
            requests.push(LabelRequest {
                id: target.id.to_string(),
                revision: Some(target.revision),
                set: self.set.clone(),
                remove: self.remove.iter().cloned().collect(),
            });
        }
        requests
    }

    /// Takes a target's answer; whether all are written.
    pub fn answered(&mut self, id: &SandboxId, answer: &Result<(), Error>) -> bool {
        for target in self.targets.iter_mut().filter(|target| target.id == *id) {
            target.state = match answer {
                Ok(()) => Labelling::Written,
                Err(problem) => Labelling::Refused(problem.clone()),
            };
        }
        self.targets.iter().all(|target| target.state == Labelling::Written)
    }

    /// Looks at a refused target anew: the operator saw why.
    pub fn look_again(&mut self, record: &SandboxRecord) {
        for target in self.targets.iter_mut().filter(|target| target.id == record.id) {
            if matches!(target.state, Labelling::Refused(_)) {
                *target = LabelTarget::of(record);
            }
        }
    }

    /// Those that were refused.
    pub fn refused(&self) -> impl Iterator<Item = &LabelTarget> {
        self.targets.iter().filter(|target| matches!(target.state, Labelling::Refused(_)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn labels(targets: &[&[(&str, &str)]]) -> Labels {
        let target = |(number, labels): (usize, &&[(&str, &str)])| LabelTarget {
            id: format!("{number:08}").as_str().into(),
            name: None,
            revision: 3,
            labels: labels
                .iter()
                .map(|(key, value)| ((*key).to_owned(), (*value).to_owned()))
                .collect(),
            state: Labelling::Waiting,
        };
        Labels {
            targets: targets.iter().enumerate().map(target).collect(),
            at: 0,
            field: None,
            drawn: true,
            set: BTreeMap::new(),
            remove: BTreeSet::new(),
        }
    }

    #[test]
    fn set_removed_and_taken_back() {
        let mut labels = labels(&[&[("team", "core"), ("zone", "a")], &[("team", "web")]]);
        assert_eq!(labels.rows()[0].was, [("core".to_owned(), 1), ("web".to_owned(), 1)]);
        assert_eq!(labels.take("team=core"), Ok(()));
        assert_eq!(labels.rows()[0].change, LabelChange::Set("core".to_owned()));
        assert_eq!(
            labels.take("zoné=x").unwrap_err(),
            "a label's key is 1 to 63 characters of a-z, 0-9, '_', '.', '/' and '-', and begins with a letter or digit"
        );
        assert!(labels.take("nothing").is_err() && labels.take("sandboxer.id=1").is_err());
        labels.at = 1;
        labels.toggle_removal();
        let requests = labels.requests();
        assert_eq!(requests.len(), 2);
        assert_eq!(requests[0].set, BTreeMap::from([("team".to_owned(), "core".to_owned())]));
        assert!(requests[0].remove.contains("zone"));
        assert!(labels.requests().is_empty(), "asked once");
    }

    #[test]
    fn one_key_protects_all_or_none() {
        let mut labels = labels(&[&[("protect", "true")], &[]]);
        assert!(!labels.is_protected());
        labels.toggle_protection();
        assert!(labels.is_protected() && labels.is_changed());
        labels.toggle_protection();
        assert!(!labels.is_protected());
        assert_eq!(labels.rows()[0].change, LabelChange::Removed);
        let mut labels = self::labels(&[&[("protect", "true")]]);
        labels.toggle_protection();
        labels.toggle_protection();
        assert!(!labels.is_changed(), "back to what it was");
    }

    #[test]
    fn what_is_so_already_is_no_change() {
        let mut labels = labels(&[&[("team", "core")]]);
        labels.take("team=core").unwrap();
        assert!(!labels.is_changed());
        labels.take("team=web").unwrap();
        labels.take("team=core").unwrap();
        assert!(!labels.is_changed());
    }
}
