//! A profile's `config` against the manifest's JSON Schema.

use jsonschema::error::ValidationErrorKind;
use serde_json::Value;

use super::ExtensionManifest;
use crate::domain::problem::{FieldProblem, join, shown};

impl ExtensionManifest {
    /// Whether the schema itself is one.
    pub(super) fn check_schema(&self) -> Option<FieldProblem> {
        if !self.config_schema.is_object() {
            return Some(FieldProblem::new("config_schema", "'config_schema' must be a mapping"));
        }
        let error = jsonschema::validator_for(&self.config_schema).err()?;
        let path = dotted("config_schema", error.instance_path().as_str());
        Some(FieldProblem::new(
            path,
            format!("not a JSON Schema: {}", one_line(&error.to_string())),
        ))
    }

    /// Checks a profile's `config`; `path` is where it stands in the profile, such as `config`. Every problem has its
    /// own path within it.
    pub fn check_config(&self, path: &str, config: &Value) -> Vec<FieldProblem> {
        let Ok(validator) = jsonschema::validator_for(&self.config_schema) else {
            return vec![FieldProblem::new(
                path,
                format!("the schema of {} is not a JSON Schema", self.id),
            )];
        };
        let mut found = Vec::new();
        for error in validator.iter_errors(config) {
            let at = dotted(path, error.instance_path().as_str());
            match error.kind() {
                ValidationErrorKind::AdditionalProperties { unexpected } => {
                    let valid = properties(&self.config_schema, error.instance_path().as_str());
                    found.extend(unexpected.iter().map(|key| {
                        let message = format!("{} has no setting {}", self.id, shown(key));
                        FieldProblem::new(join(&at, key), message)
                            .near(key, valid.iter().map(String::as_str))
                    }));
                }
                ValidationErrorKind::Required { property } => {
                    let key = property.as_str().unwrap_or_default();
                    found.push(FieldProblem::new(
                        at,
                        format!("{} needs the setting '{key}'", self.id),
                    ));
                }
                _ => found.push(FieldProblem::new(at, one_line(&error.to_string()))),
            }
        }
        found
    }
}

/// A JSON pointer as a path of ours: `/a/0/b` within `config` is `config.a[0].b`.
fn dotted(root: &str, pointer: &str) -> String {
    pointer.split('/').skip(1).fold(root.to_owned(), |path, part| {
        let part = part.replace("~1", "/").replace("~0", "~");
        if part.parse::<usize>().is_ok() { format!("{path}[{part}]") } else { join(&path, &part) }
    })
}

/// The settings that a schema names at a place, as far as plain `properties` lead there.
fn properties(schema: &Value, pointer: &str) -> Vec<String> {
    let place = pointer
        .split('/')
        .skip(1)
        .try_fold(schema, |schema, part| schema.get("properties")?.get(part));
    let map = place.and_then(|schema| schema.get("properties")).and_then(Value::as_object);
    map.map(|map| map.keys().cloned().collect()).unwrap_or_default()
}

/// The library's sentence quotes the value, which may be long or hold control characters.
fn one_line(text: &str) -> String {
    let text: String =
        text.chars().map(|c| if c.is_control() { ' ' } else { c }).take(200).collect();
    text.trim_end_matches('.').to_owned()
}
