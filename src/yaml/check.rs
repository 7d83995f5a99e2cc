//! Check of a file against its schema: every violation as a problem at its place, and what is left as a value.

use std::collections::BTreeSet;

use jsonschema::ValidationError;
use jsonschema::error::ValidationErrorKind;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::document::{Document, sorted};
use super::form::Form;
use super::schema::{FORM, Schema};
use crate::domain::problem::violation::{self, around, keys, unescaped};
use crate::domain::problem::{FieldProblem, ParseProblem, join, plain_start, shown};
use crate::domain::text::nearest;

/// Key by which the rest of a mapping is understood: where it is wrong, the mapping means nothing.
const TELLING: &str = "kind";

/// A file that was held against a schema.
#[derive(Debug)]
pub(crate) struct Checked<'d> {
    document: &'d Document,
    /// Value of the file, without what is wrong.
    pub value: Value,
    /// Problems, in no order.
    pub problems: Vec<ParseProblem>,
}

/// Step of the way to a value.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
enum Step {
    Index(usize),
    Key(String),
}

impl Document {
    /// Holds a value of the document against a schema. `value` is the document's own, or what was made of that.
    pub(crate) fn check(&self, schema: &Schema, value: Value) -> Checked<'_> {
        let mut checked = Checked { document: self, value, problems: self.duplicates() };
        let Some(validator) = schema.validator() else {
            let message = "this kind of file cannot be read by this build";
            checked.problems.push(ParseProblem::whole(self.file(), message));
            return checked;
        };
        let (wrong, empty) = {
            let mut judge = Judge {
                document: self,
                schema,
                root: &checked.value,
                problems: &mut checked.problems,
                wrong: BTreeSet::new(),
                meant: BTreeSet::new(),
                empty: Vec::new(),
            };
            let errors: Vec<_> = validator.iter_errors(&checked.value).collect();
            // A key that is nearly one that is missing was meant to be that.
            let (unknown, others): (Vec<_>, Vec<_>) = errors.iter().partition(|error| {
                matches!(error.kind(), ValidationErrorKind::AdditionalProperties { .. })
            });
            for error in unknown {
                judge.unknown(error);
            }
            for error in others {
                judge.violation(error);
            }
            (judge.wrong, judge.empty)
        };
        // The last first, so that what is before keeps its index.
        wrong.iter().rev().for_each(|steps| remove(&mut checked.value, steps));
        for steps in empty {
            if let Some(value) = find(&mut checked.value, &steps) {
                *value = Value::Object(serde_json::Map::new());
            }
        }
        checked
    }
}

impl Checked<'_> {
    /// Puts something in the place of each top-level key that is missing, so that the rest is judged too; the problems say that it
    /// is no good.
    pub(crate) fn stand_in(&mut self, stand_ins: &[(&str, &str)]) {
        if let Value::Object(map) = &mut self.value {
            for (key, value) in stand_ins {
                map.entry(*key).or_insert_with(|| Value::from(*value));
            }
        }
    }

    /// Reads the value, and has it judged by its own rules.
    ///
    /// Errors: every problem found, in the order of the file.
    pub(crate) fn read<T: DeserializeOwned>(
        self,
        judge: impl FnOnce(&mut T) -> Vec<FieldProblem>,
    ) -> Result<T, Vec<ParseProblem>> {
        let mut problems = self.problems;
        let mut read = None;
        if self.value.is_object() {
            match serde_json::from_value::<T>(self.value) {
                Ok(mut value) => {
                    problems = self.document.with_fields(problems, judge(&mut value));
                    read = Some(value);
                }
                Err(error) if problems.is_empty() => {
                    problems.push(self.document.problem("", plain_start(&error.to_string(), 160)));
                }
                Err(_) => {}
            }
        }
        match read {
            Some(value) if problems.is_empty() => Ok(value),
            _ => Err(sorted(problems)),
        }
    }
}

struct Judge<'a> {
    document: &'a Document,
    schema: &'a Schema,
    root: &'a Value,
    problems: &'a mut Vec<ParseProblem>,
    /// Ways to what is taken out of the value.
    wrong: BTreeSet<Vec<Step>>,
    /// Mappings and their known keys that an unknown one was probably meant to be: their absence is no second problem.
    meant: BTreeSet<(String, String)>,
    /// Mappings of which nothing is written.
    empty: Vec<Vec<Step>>,
}

impl Judge<'_> {
    /// Keys that a mapping does not have.
    fn unknown(&mut self, error: &ValidationError<'_>) {
        let ValidationErrorKind::AdditionalProperties { unexpected } = error.kind() else { return };
        let (steps, path) = self.place(error);
        let known: Vec<&str> = keys(self.schema.at(&around(error))).collect();
        for key in unexpected {
            let message = format!("unknown key {}", shown(key));
            let mut problem = self.document.key_problem(&join(&path, key), message);
            if let Some(near) = nearest(key, known.iter().copied()) {
                problem.suggestion = Some(near.to_owned());
                self.meant.insert((path.clone(), near.to_owned()));
            }
            self.problems.push(problem);
            self.wrong.insert([steps.as_slice(), &[Step::Key(key.clone())]].concat());
        }
    }

    fn violation(&mut self, error: &ValidationError<'_>) {
        let (steps, path) = self.place(error);
        if let ValidationErrorKind::Required { property } = error.kind() {
            let key = property.as_str().unwrap_or_default();
            if !self.meant.contains(&(path.clone(), key.to_owned())) {
                let within =
                    if path.is_empty() { String::new() } else { format!(" in {}", shown(&path)) };
                let message = format!("missing key '{key}'{within}");
                self.problems.push(self.document.problem(&path, message));
            }
            if !steps.is_empty() {
                self.wrong.insert(steps);
            }
            return;
        }
        // One sentence about a value is enough.
        if self.wrong.contains(&steps) || self.empty.contains(&steps) {
            return;
        }
        let around = around(error);
        let schema = self.schema.at(&around);
        if error.instance().is_null() && self.null(&around, schema, &steps, &path) {
            return;
        }
        let what = if path.is_empty() { "the file".to_owned() } else { shown(&path) };
        let (message, near) = sentence(error, schema, &what);
        let mut problem = self.document.problem(&path, message);
        problem.suggestion = near;
        self.problems.push(problem);
        match steps.as_slice() {
            [mapping @ .., Step::Key(key)] if key == TELLING && !mapping.is_empty() => {
                self.wrong.insert(mapping.to_vec());
            }
            _ => {}
        }
        self.wrong.insert(steps);
    }

    /// Whether nothing may stand here: for a key's value it is as if the key were not there.
    fn null(&mut self, around: &str, schema: &Value, steps: &[Step], path: &str) -> bool {
        let Some(last) = steps.last() else {
            self.problems.push(self.document.problem("", "the file is empty"));
            return true;
        };
        // As `…/properties/KEY`; behind it a `$ref` may follow.
        let place = around.trim_end_matches("/$ref").rsplit_once("/properties/");
        let (Some((mapping, _)), Step::Key(name)) =
            (place.filter(|(_, key)| !key.contains('/')), last)
        else {
            if schema["type"] == "object" {
                self.empty.push(steps.to_vec());
                return true;
            }
            return false;
        };
        let required = self.schema.at(mapping)["required"].as_array();
        if required.is_some_and(|keys| keys.iter().any(|key| key == name)) {
            self.problems.push(self.document.problem(path, format!("'{name}' needs a value")));
        }
        self.wrong.insert(steps.to_vec());
        true
    }

    /// Way to what an error is about, and its path.
    fn place(&self, error: &ValidationError<'_>) -> (Vec<Step>, String) {
        let (mut steps, mut path, mut at) = (Vec::new(), String::new(), self.root);
        for part in error.instance_path().as_str().split('/').skip(1) {
            let part = unescaped(part);
            if let (Value::Array(items), Ok(index)) = (at, part.parse::<usize>()) {
                path = format!("{path}[{index}]");
                at = items.get(index).unwrap_or(&Value::Null);
                steps.push(Step::Index(index));
            } else {
                path = join(&path, &part);
                at = &at[part.as_str()];
                steps.push(Step::Key(part));
            }
        }
        (steps, path)
    }
}

/// Why a value is refused, and the nearest word to it.
fn sentence(error: &ValidationError<'_>, schema: &Value, what: &str) -> (String, Option<String>) {
    let is_form = error.evaluation_path().as_str().ends_with(&format!("/{FORM}"));
    let form = Form::from_word(&schema[FORM]).filter(|_| is_form);
    match form.and_then(|form| form.problem(what, error.instance())) {
        Some(message) => (message, None),
        None => violation::sentence(error, what),
    }
}

fn find<'v>(value: &'v mut Value, steps: &[Step]) -> Option<&'v mut Value> {
    steps.iter().try_fold(value, |value, step| match step {
        Step::Index(index) => value.get_mut(*index),
        Step::Key(key) => value.get_mut(key.as_str()),
    })
}

fn remove(value: &mut Value, steps: &[Step]) {
    let Some((last, above)) = steps.split_last() else { return };
    match (find(value, above), last) {
        (Some(Value::Object(map)), Step::Key(key)) => drop(map.shift_remove(key)),
        (Some(Value::Array(items)), Step::Index(index)) if *index < items.len() => {
            items.remove(*index);
        }
        _ => {}
    }
}
