//! Profile from YAML.

use std::sync::LazyLock;

use serde_json::Value;

use super::check::Checked;
use super::document::Document;
use super::form::Form;
use super::schema::{FORM, Schema};
use crate::domain::problem::{ParseProblem, shown};
use crate::domain::profile::{Profile, Seconds};

/// How long a sandbox lives when its profile does not say.
const DEFAULT_TTL: Seconds = Seconds::hours(4);

static SCHEMA: LazyLock<Schema> = LazyLock::new(|| {
    Schema::of::<Profile>(|schema| {
        let keys = &mut schema["properties"];
        keys["version"] = serde_json::json!({FORM: Form::Version.word()});
        for key in ["ttl", "max_ttl"] {
            keys[key] = serde_json::json!({FORM: Form::Lifetime.word()});
        }
    })
});

/// Reads and validates a profile.
///
/// Errors: every problem found, in the order of the file.
pub(crate) fn profile(document: &Document) -> Result<Profile, Vec<ParseProblem>> {
    let mut value = document.value().clone();
    if let Some(Value::Object(inputs)) = value.get_mut("inputs") {
        inputs.values_mut().for_each(unquoted_default);
    }
    let mut checked = document.check(&SCHEMA, value);
    empty_lists(document, &mut checked);
    checked.stand_in(&[
        ("id", "profile.unknown"),
        ("version", "0.0.0"),
        ("extension", "ext.unknown"),
    ]);
    for key in ["ttl", "max_ttl"] {
        if checked.value[key] == "none" {
            checked.value[key] = Value::Null;
        }
    }
    let says_ttl = checked.value.get("ttl").is_some();
    checked.read(|profile: &mut Profile| {
        if !says_ttl {
            profile.ttl = Some(profile.max_ttl.map_or(DEFAULT_TTL, |max| max.min(DEFAULT_TTL)));
        }
        profile.validate()
    })
}

/// A default that need not be quoted: the number or truth value of an input that is one.
fn unquoted_default(input: &mut Value) {
    if matches!(input["kind"].as_str(), Some("integer" | "boolean"))
        && let Some(default) = input.get_mut("default")
        && matches!(default, Value::Number(_) | Value::Bool(_))
    {
        *default = Value::String(default.to_string());
    }
}

/// Values that may be left out, and mean nothing when they are empty.
fn empty_lists(document: &Document, checked: &mut Checked<'_>) {
    let written = document.value();
    if written.get("ttl").is_some_and(Value::is_null) {
        // Nothing at all might be meant as none, which is too different from the default to guess.
        let message = "'ttl' needs a value: a duration, or none";
        checked.problems.push(document.problem("ttl", message));
    }
    let is_empty = |value: &Value| value.as_array().is_some_and(Vec::is_empty);
    if is_empty(&written["routing"]["candidates"]) {
        let message = "a list of candidates names one at least; without the key, the profile's own extension makes every sandbox";
        checked.problems.push(document.problem("routing.candidates", message));
    }
    let groups = written["routing"]["conditions"].as_object();
    for (name, _) in groups.into_iter().flatten().filter(|(_, group)| is_empty(group)) {
        let message = format!("the group {} names no condition", shown(name));
        checked.problems.push(document.problem(&format!("routing.conditions.{name}"), message));
    }
}
