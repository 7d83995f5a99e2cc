//! Manifest of an extension from YAML.

use std::sync::LazyLock;

use super::document::Document;
use super::form::Form;
use super::schema::{FORM, Schema};
use crate::domain::manifest::ExtensionManifest;
use crate::domain::problem::ParseProblem;

static SCHEMA: LazyLock<Schema> = LazyLock::new(|| {
    Schema::of::<ExtensionManifest>(|schema| {
        schema["properties"]["version"] = serde_json::json!({FORM: Form::Version.word()});
    })
});

/// Reads and validates a manifest.
///
/// Errors: every problem found, in the order of the file.
pub(crate) fn manifest(document: &Document) -> Result<ExtensionManifest, Vec<ParseProblem>> {
    let mut checked = document.check(&SCHEMA, document.value().clone());
    let knows_kind = checked.value.get("kind").is_some();
    checked.stand_in(&[("id", "ext.unknown"), ("version", "0.0.0"), ("kind", "builtin")]);
    checked.read(|manifest: &mut ExtensionManifest| {
        if !knows_kind {
            // What a command or a variable means depends on the kind.
            manifest.command.clear();
            manifest.env.clear();
        }
        manifest.validate()
    })
}
