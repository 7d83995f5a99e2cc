//! Form of the labels of one or several sandboxes. The targets are frozen when it opens: each is written with the revision that
//! the operator saw.

use std::collections::BTreeMap;

use super::definition::{Asked, Definition, Notes};
use super::field::{Field, FieldKey, Fields};
use super::label_changes::{Changes, KnownLabels, check_changes, no_label, read_changes};
use crate::client::{Error, LabelRequest};
use crate::domain::Time;
use crate::domain::name::{SandboxId, check_label};
use crate::domain::sandbox::SandboxRecord;
use crate::tui::model::{Entry, Role};

/// The label that keeps sweeps and bulks away.
const PROTECT: &str = "protect";
/// How many targets are named at most.
const NAMED: usize = 6;

/// How far a target has come.
#[derive(Debug, Clone, PartialEq)]
pub enum Labelling {
    /// Nothing was asked yet.
    Waiting,
    /// Being written.
    Writing,
    Written,
    /// Refused: it changed meanwhile, or cannot be written.
    Refused(Error),
}

/// Sandbox whose labels are written.
#[derive(Debug, Clone, PartialEq)]
pub struct LabelTarget {
    pub id: SandboxId,
    pub name: Option<String>,
    /// The revision that the operator saw.
    pub revision: u64,
    /// Its labels then.
    pub labels: BTreeMap<String, String>,
    /// How far it has come.
    pub state: Labelling,
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

    fn title(&self) -> String {
        match &self.name {
            Some(name) => format!("{} {name}", self.id),
            None => self.id.to_string(),
        }
    }

    fn line(&self) -> (Role, String) {
        let title = self.title();
        match &self.state {
            Labelling::Waiting => (Role::Dim, format!("· {title}")),
            Labelling::Writing => (Role::Busy, format!("◐ {title}  writing")),
            Labelling::Written => (Role::Good, format!("✓ {title}  written")),
            Labelling::Refused(problem) => (Role::Bad, format!("✗ {title}  {}", problem.message)),
        }
    }
}

/// Labels of these sandboxes.
#[derive(Debug, Clone)]
pub struct EditLabels {
    pub targets: Vec<LabelTarget>,
    /// Their labels when it opened.
    known: KnownLabels,
}

impl EditLabels {
    /// Freezes rows.
    pub fn of<'a>(entries: impl IntoIterator<Item = &'a Entry>) -> Self {
        let targets = entries.into_iter().map(|entry| LabelTarget::of(&entry.record)).collect();
        Self::new(targets)
    }

    fn new(targets: Vec<LabelTarget>) -> Self {
        let known = KnownLabels::of(targets.iter().map(|target| &target.labels));
        Self { targets, known }
    }

    fn changes(&self, fields: &Fields) -> Changes {
        let mut changes = Changes::default();
        if fields.is_yes(&FieldKey::Protect) {
            changes.set(&self.known, PROTECT, "true");
        } else if fields.value(&FieldKey::Protect).is_some() {
            changes.remove(&self.known, PROTECT);
        }
        for field in &fields.list {
            let FieldKey::Label(key) = &field.key else { continue };
            match (self.known.common(key), field.input.value().trim()) {
                (Some(was), typed) if was.trim() == typed => {}
                (None, "") => {}
                (Some(_), "") => changes.remove(&self.known, key),
                (_, typed) => changes.set(&self.known, key, typed),
            }
        }
        let typed = fields.value(&FieldKey::LabelChanges).unwrap_or_default();
        for (key, value) in read_changes(&typed).unwrap_or_default() {
            match value {
                Some(value) => changes.set(&self.known, &key, &value),
                None if self.known.has(&key) => changes.remove(&self.known, &key),
                None => changes.unknown.push(key),
            }
        }
        changes
    }

    /// Sandboxes that wait are being written from here on.
    pub fn begin(&mut self) {
        for target in self.targets.iter_mut().filter(|it| it.state == Labelling::Waiting) {
            target.state = Labelling::Writing;
        }
    }

    /// Whether an answer is waited for.
    pub fn is_writing(&self) -> bool {
        self.targets.iter().any(|target| target.state == Labelling::Writing)
    }

    pub fn is_written(&self) -> bool {
        self.targets.iter().all(|target| target.state == Labelling::Written)
    }

    /// Takes a target's answer.
    pub fn answered(&mut self, id: &SandboxId, answer: &Result<(), Error>) {
        for target in self.targets.iter_mut().filter(|target| target.id == *id) {
            target.state = match answer {
                Ok(()) => Labelling::Written,
                Err(problem) => Labelling::Refused(problem.clone()),
            };
        }
    }

    /// Takes a refused target as it is now: the operator saw why.
    pub fn look_again(&mut self, record: &SandboxRecord) {
        let is_it = |target: &&mut LabelTarget| {
            target.id == record.id && matches!(target.state, Labelling::Refused(_))
        };
        for target in self.targets.iter_mut().filter(is_it) {
            *target = LabelTarget::of(record);
        }
    }

    /// Sandboxes whose labels were refused.
    pub fn refused(&self) -> impl Iterator<Item = &LabelTarget> {
        self.targets.iter().filter(|target| matches!(target.state, Labelling::Refused(_)))
    }
}

impl Definition for EditLabels {
    fn title(&self) -> String {
        match self.targets.as_slice() {
            [only] => format!("Labels of {}", only.title()),
            many => format!("Labels of {} sandboxes", many.len()),
        }
    }

    fn fields(&self) -> Vec<Field> {
        let mut protect = Field::toggle(FieldKey::Protect, "yes keeps sweeps and bulks away");
        protect.default = match (self.known.common(PROTECT), self.known.was(PROTECT)) {
            (Some("true"), _) => "yes".to_owned(),
            (Some(_), _) => "no".to_owned(),
            (None, was) if was.is_empty() => "no".to_owned(),
            (None, was) => was,
        };
        let label = |key: &String| {
            let field = FieldKey::Label(key.clone());
            match self.known.common(key) {
                Some(value) => Field::text(field, "removed", "empty: it is removed").with(value),
                None => Field::text(field, &self.known.was(key), "empty: each keeps its own"),
            }
            .checked(|value| check_label("a", value).map_err(|error| error.message))
        };
        let mut fields = vec![protect];
        fields.extend(self.known.keys().filter(|key| *key != PROTECT).map(label));
        let help = "key=value adds a label, key- removes one; several, separated by spaces";
        fields.push(Field::text(FieldKey::LabelChanges, "nothing", help).checked(check_changes));
        fields
    }

    fn notes(&self, fields: &Fields, _now: Time) -> Notes {
        let mut notes = self.changes(fields).lines(&self.known);
        let waits = |target: &LabelTarget| target.state == Labelling::Waiting;
        if notes.is_empty() {
            notes.push((Role::Dim, "nothing is changed".to_owned()));
        } else if self.targets.iter().all(waits) {
            notes.push((Role::Warn, "not written yet".to_owned()));
        }
        if let [only] = self.targets.as_slice()
            && waits(only)
        {
            return notes;
        }
        // What was refused is seen first.
        let mut sorted: Vec<&LabelTarget> = self.targets.iter().collect();
        sorted.sort_by_key(|target| !matches!(target.state, Labelling::Refused(_)));
        notes.extend(sorted.iter().take(NAMED).map(|target| target.line()));
        if sorted.len() > NAMED {
            notes.push((Role::Dim, format!("  and {} more", sorted.len() - NAMED)));
        }
        notes
    }

    /// Of every target that is not written yet.
    fn asked(&self, fields: &Fields) -> Result<Asked, String> {
        let changes = self.changes(fields);
        if let Some(key) = changes.unknown.first() {
            return Err(no_label(key));
        }
        if changes == Changes::default() {
            return Err("nothing is changed".to_owned());
        }
        let waiting = self.targets.iter().filter(|target| target.state == Labelling::Waiting);
        let request = |target: &LabelTarget| LabelRequest {
            id: target.id.to_string(),
            revision: Some(target.revision),
            set: changes.set.clone(),
            remove: changes.remove.iter().cloned().collect(),
        };
        let requests: Vec<LabelRequest> = waiting.map(request).collect();
        if requests.is_empty() {
            return Err("one that was refused is asked again when it was looked at anew".to_owned());
        }
        Ok(Asked::Labels(requests))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tui_input::Input;

    fn labels(targets: &[&[(&str, &str)]]) -> (EditLabels, Fields) {
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
        let labels = EditLabels::new(targets.iter().enumerate().map(target).collect());
        let fields = Fields::new(labels.fields());
        (labels, fields)
    }

    fn typed(fields: &mut Fields, label: &str, value: &str) -> Option<String> {
        fields.focus = fields.list.iter().position(|field| field.label() == label).unwrap();
        fields.list[fields.focus].input = Input::new(value.to_owned());
        fields.check();
        fields.list[fields.focus].error.clone()
    }

    /// `2 +team=core -zone`: how many are asked, and what of each.
    fn asked(labels: &EditLabels, fields: &Fields) -> Result<String, String> {
        let Asked::Labels(requests) = labels.asked(fields)? else { panic!() };
        assert!(requests.iter().all(|request| request.revision == Some(3)));
        let set = requests[0].set.iter().map(|(key, value)| format!(" +{key}={value}"));
        let removed = requests[0].remove.iter().map(|key| format!(" -{key}"));
        Ok(format!("{}{}", requests.len(), set.chain(removed).collect::<String>()))
    }

    #[test]
    fn labels_are_set_removed_and_as_they_were_again() {
        let (labels, mut fields) =
            labels(&[&[("team", "core"), ("zone", "a")], &[("team", "web"), ("zone", "a")]]);
        assert_eq!(asked(&labels, &fields), Err("nothing is changed".to_owned()));
        assert_eq!(typed(&mut fields, "team", "core"), None);
        assert_eq!(typed(&mut fields, "zone", ""), None);
        assert_eq!(asked(&labels, &fields).unwrap(), "2 +team=core -zone");
        assert_eq!(typed(&mut fields, "zone", "a"), None);
        assert_eq!(asked(&labels, &fields).unwrap(), "2 +team=core");
        assert_eq!(typed(&mut fields, "add, remove", "note=eu west, b=2 zone-"), None);
        let all = "2 +b=2 +note=eu west +team=core -zone";
        assert_eq!(asked(&labels, &fields).unwrap(), all);
        for wrong in ["zoné=x", "nothing", "sandboxer.id=1", "protect=maybe", "x"] {
            assert!(typed(&mut fields, "add, remove", wrong).is_some(), "{wrong}");
        }
        typed(&mut fields, "add, remove", "zoen-");
        assert!(asked(&labels, &fields).unwrap_err().contains("'zoen'"));
    }

    #[test]
    fn one_field_protects_all_or_none() {
        let (labels, mut fields) = labels(&[&[("protect", "true")], &[]]);
        assert_eq!(fields.list[0].default, "true on 1 of 2");
        typed(&mut fields, "protect", "yes");
        assert_eq!(asked(&labels, &fields).unwrap(), "2 +protect=true");
        typed(&mut fields, "protect", "no");
        assert_eq!(asked(&labels, &fields).unwrap(), "2 -protect");
        let (labels, mut fields) = self::labels(&[&[("protect", "true")]]);
        typed(&mut fields, "protect", "yes");
        assert!(asked(&labels, &fields).is_err(), "what is so already is no change");
    }
}
