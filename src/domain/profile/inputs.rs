//! Inputs of a profile: what it asks of a create, and the check of one value.

use std::borrow::Cow;

use schemars::JsonSchema;
use serde::de::{Deserializer, MapAccess, Visitor};
use serde::ser::{SerializeMap, Serializer};
use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::domain::problem::shown;
use crate::domain::text::nearest;
use crate::domain::words::string_enum;

/// The longest value of an input, in bytes.
pub(crate) const MAX_INPUT_BYTES: usize = 4096;

/// The input that every profile has: another way to say `--id`.
pub(super) const SANDBOX_ID: &str = "sandbox_id";

string_enum! {
    /// Kind of an input's value.
    pub enum InputKind {
        /// A text.
        String = "string",
        /// A directory on the operator's machine, or an upload.
        Directory = "directory",
        /// A whole number.
        Integer = "integer",
        /// `true` or `false`.
        Boolean = "boolean",
        /// Word of the `choices`.
        Choice = "choice",
    }
}

/// Input of a profile.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize, JsonSchema)]
pub struct InputSpec {
    /// Whether a create must give it.
    #[serde(default)]
    pub required: bool,
    /// Kind of its value.
    #[serde(default = "text")]
    pub kind: InputKind,
    /// The value when none is given, as text; `null` means none.
    #[serde(default)]
    pub default: Option<String>,
    /// Line for the form and the help.
    #[serde(default)]
    pub help: Option<String>,
    /// The values of a `choice`.
    #[serde(default)]
    pub choices: Vec<String>,
}

/// `kind` where a profile does not say it.
fn text() -> InputKind {
    InputKind::String
}

/// A profile's inputs by name, in the file's order.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Inputs(Vec<(String, InputSpec)>);

impl Inputs {
    /// From names and specs in order; a later one of the same name is dropped.
    pub fn new(list: impl IntoIterator<Item = (String, InputSpec)>) -> Self {
        let mut inputs = Self::default();
        for (name, spec) in list {
            if inputs.get(&name).is_none() {
                inputs.0.push((name, spec));
            }
        }
        inputs
    }

    /// Names and specs in order.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &InputSpec)> {
        self.0.iter().map(|(name, spec)| (name.as_str(), spec))
    }

    /// The names in order.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(|(name, _)| name.as_str())
    }

    pub fn get(&self, name: &str) -> Option<&InputSpec> {
        self.0.iter().find(|(known, _)| known == name).map(|(_, spec)| spec)
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl Serialize for Inputs {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(self.0.len()))?;
        for (name, spec) in &self.0 {
            map.serialize_entry(name, spec)?;
        }
        map.end()
    }
}

impl<'de> Deserialize<'de> for Inputs {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct InOrder;
        impl<'de> Visitor<'de> for InOrder {
            type Value = Inputs;

            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("a mapping of inputs")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Inputs, A::Error> {
                let mut list = Vec::new();
                while let Some(entry) = map.next_entry::<String, InputSpec>()? {
                    list.push(entry);
                }
                Ok(Inputs::new(list))
            }
        }
        deserializer.deserialize_map(InOrder)
    }
}

impl JsonSchema for Inputs {
    fn schema_name() -> Cow<'static, str> {
        "Inputs".into()
    }

    fn json_schema(generator: &mut schemars::SchemaGenerator) -> schemars::Schema {
        let spec = generator.subschema_for::<InputSpec>();
        schemars::json_schema!({"type": "object", "additionalProperties": spec})
    }
}

/// Input that is refused.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema, Error)]
#[error("{message}")]
pub struct InputProblem {
    /// The input's name as given.
    pub field: String,
    /// Sentence that names it.
    pub message: String,
}

impl InputSpec {
    /// Checks one value; the sentence begins with the input's name. Whether a directory exists is not asked here.
    pub fn check(&self, name: &str, value: &str) -> Result<(), String> {
        if value.contains('\0') {
            return Err(format!("input '{name}' holds a NUL character"));
        }
        if value.len() > MAX_INPUT_BYTES {
            return Err(format!(
                "input '{name}' is {} bytes long, at most {MAX_INPUT_BYTES} are allowed",
                value.len()
            ));
        }
        match &self.kind {
            InputKind::Directory if value.is_empty() => {
                Err(format!("input '{name}' must name a directory"))
            }
            InputKind::Integer if value.parse::<i64>().is_err() => {
                Err(format!("input '{name}' must be a whole number, not {}", shown(value)))
            }
            InputKind::Boolean if !matches!(value, "true" | "false") => {
                Err(format!("input '{name}' must be true or false, not {}", shown(value)))
            }
            InputKind::Choice if !self.choices.iter().any(|choice| choice == value) => {
                let near = nearest(value, self.choices.iter().map(String::as_str));
                let near = near.map(|near| format!(", did you mean '{near}'?")).unwrap_or_default();
                Err(format!(
                    "input '{name}' must be one of {}, not {}{near}",
                    self.choices.join(", "),
                    shown(value)
                ))
            }
            _ => Ok(()),
        }
    }
}
