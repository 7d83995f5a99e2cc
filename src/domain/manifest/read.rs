//! A manifest from YAML.

use std::collections::BTreeSet;

use super::{ExtensionKind, ExtensionManifest, Rates, any_config};
use crate::domain::extension::Capability;
use crate::domain::name::ExtensionId;
use crate::domain::recipe_yaml::{Document, FromYaml, Node, ParseProblem, Reader, words_from_yaml};

words_from_yaml!(ExtensionKind);
words_from_yaml!(Capability);

impl ExtensionManifest {
    /// Reads and validates a manifest's YAML; `file` is the name that problems show.
    ///
    /// Errors: every problem found, in the order of the file.
    pub fn from_yaml_text(file: &str, source: &str) -> Result<Self, Vec<ParseProblem>> {
        let document = Document::parse(file, source).map_err(|problem| vec![problem])?;
        Self::from_document(&document)
    }

    /// Reads and validates a parsed document.
    pub fn from_document(document: &Document) -> Result<Self, Vec<ParseProblem>> {
        let (manifest, problems) = document.read::<Self>();
        let fields = manifest.as_ref().map(Self::validate).unwrap_or_default();
        let problems = document.with_fields(problems, fields);
        match manifest {
            Some(manifest) if problems.is_empty() => Ok(manifest),
            _ => Err(problems),
        }
    }
}

/// The keys of a manifest.
const KEYS: &[&str] = &[
    "id",
    "version",
    "summary",
    "kind",
    "command",
    "capabilities",
    "config_schema",
    "env",
    "rates",
];

impl FromYaml for ExtensionManifest {
    fn from_yaml(node: &Node, path: &str, r: &mut Reader<'_>) -> Option<Self> {
        let fields = r.fields(node, path, KEYS)?;
        let id = fields.required::<ExtensionId>(r, "id");
        let version = fields.required(r, "version");
        let kind = fields.required(r, "kind");
        let manifest = Self {
            // Stand-ins for what is missing, so that the rest is judged too; the problems say that it is no manifest.
            id: id.unwrap_or_else(|| ExtensionId::from("ext.unknown")),
            version: version.unwrap_or_else(|| semver::Version::new(0, 0, 0)),
            summary: fields.or(r, "summary", String::new()),
            kind: kind.clone().unwrap_or(ExtensionKind::Builtin),
            command: fields.or(r, "command", Vec::new()),
            capabilities: fields
                .or(r, "capabilities", Vec::new())
                .into_iter()
                .collect::<BTreeSet<Capability>>(),
            config_schema: fields.or(r, "config_schema", any_config()),
            env: fields.or(r, "env", Vec::new()),
            rates: fields.or(r, "rates", Rates::default()),
        };
        // What a command or a variable means depends on the kind.
        Some(if kind.is_some() {
            manifest
        } else {
            Self { command: Vec::new(), env: Vec::new(), ..manifest }
        })
    }
}

impl FromYaml for Rates {
    fn from_yaml(node: &Node, path: &str, r: &mut Reader<'_>) -> Option<Self> {
        let fields = r.fields(node, path, &["per_second_usd", "per_gb_usd", "minimum_usd"])?;
        Some(Self {
            per_second_usd: fields.optional(r, "per_second_usd"),
            per_gb_usd: fields.optional(r, "per_gb_usd"),
            minimum_usd: fields.optional(r, "minimum_usd"),
        })
    }
}
