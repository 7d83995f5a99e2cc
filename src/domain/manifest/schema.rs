//! A profile's `config` against the manifest's JSON Schema.

use jsonschema::error::ValidationErrorKind;
use serde_json::Value;

use super::ExtensionManifest;
use crate::domain::problem::violation::{around, keys, schema_at, sentence, unescaped};
use crate::domain::problem::{FieldProblem, join, plain_start, shown};

impl ExtensionManifest {
    /// Whether the schema itself is one.
    pub(super) fn check_schema(&self) -> Option<FieldProblem> {
        if !self.config_schema.is_object() {
            return Some(FieldProblem::new("config_schema", "'config_schema' must be a mapping"));
        }
        let error = jsonschema::validator_for(&self.config_schema).err()?;
        let path = dotted("config_schema", error.instance_path().as_str());
        let why = plain_start(&error.to_string(), 200);
        let message = format!("not a JSON Schema: {}", why.trim_end_matches('.'));
        Some(FieldProblem::new(path, message))
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
                    let schema = schema_at(&self.config_schema, &around(&error));
                    found.extend(unexpected.iter().map(|key| {
                        let message = format!("{} has no setting {}", self.id, shown(key));
                        FieldProblem::new(join(&at, key), message).near(key, keys(schema))
                    }));
                }
                ValidationErrorKind::Required { property } => {
                    let key = property.as_str().unwrap_or_default();
                    let message = format!("{} needs the setting '{key}'", self.id);
                    found.push(FieldProblem::new(at, message));
                }
                _ => {
                    let (message, suggestion) = sentence(&error, &shown(&at));
                    found.push(FieldProblem { path: at, message, suggestion });
                }
            }
        }
        found
    }
}

/// A JSON pointer as a path of ours: `/a/0/b` within `config` is `config.a[0].b`.
fn dotted(root: &str, pointer: &str) -> String {
    pointer.split('/').skip(1).map(unescaped).fold(root.to_owned(), |path, part| {
        if part.parse::<usize>().is_ok() { format!("{path}[{part}]") } else { join(&path, &part) }
    })
}
