//! What a profile asks of a create, and the check of what was given.

use std::borrow::Cow;
use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};
use serde::ser::{Serialize, SerializeMap, Serializer};

use super::Profile;
use crate::domain::problem::shown;
use crate::domain::text::nearest;
use crate::domain::words::string_enum;

/// The longest value of an input, in bytes.
pub const MAX_INPUT_BYTES: usize = 4096;

/// The input that every profile has: another way to say `--id`.
pub(super) const SANDBOX_ID: &str = "sandbox_id";

string_enum! {
    /// What an input's value is.
    pub enum InputKind {
        /// A text.
        String = "string",
        /// A directory on the operator's machine, or an upload.
        Directory = "directory",
        /// A whole number.
        Integer = "integer",
        /// `true` or `false`.
        Boolean = "boolean",
        /// One of the `choices`.
        Choice = "choice",
    }
}

/// One input of a profile.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize, JsonSchema)]
pub struct InputSpec {
    /// Whether a create must give it.
    #[serde(default)]
    pub required: bool,
    /// What its value is.
    #[serde(default = "text")]
    pub kind: InputKind,
    /// The value when none is given, as text; `null` means none.
    #[serde(default)]
    pub default: Option<String>,
    /// One line for the form and the help.
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

    /// One input.
    pub fn get(&self, name: &str) -> Option<&InputSpec> {
        self.0.iter().find(|(known, _)| known == name).map(|(_, spec)| spec)
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there are none.
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

/// One input that is refused.
#[derive(
    Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize, JsonSchema, thiserror::Error,
)]
#[error("{message}")]
pub struct InputProblem {
    /// The input's name as given.
    pub field: String,
    /// One sentence that names it.
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

impl Profile {
    /// Checks what a create gives and fills in defaults. Returns every input that has a value, `sandbox_id` left
    /// out (the caller takes it as the id); or everything that is wrong, required ones that are missing last.
    pub fn check_inputs(
        &self,
        given: &BTreeMap<String, String>,
    ) -> Result<BTreeMap<String, String>, Vec<InputProblem>> {
        let mut problems = Vec::new();
        for (name, value) in given.iter().filter(|(name, _)| name.as_str() != SANDBOX_ID) {
            let verdict = match self.inputs.get(name) {
                Some(spec) => spec.check(name, value),
                None => Err(self.unknown_input(name)),
            };
            problems
                .extend(verdict.err().map(|message| InputProblem { field: name.clone(), message }));
        }
        let mut resolved = BTreeMap::new();
        for (name, spec) in self.inputs.iter() {
            match given.get(name).or(spec.default.as_ref()) {
                Some(value) => {
                    resolved.insert(name.to_owned(), value.clone());
                }
                None if spec.required => {
                    let help =
                        spec.help.as_deref().map(|help| format!(" ({help})")).unwrap_or_default();
                    let message = format!("input '{name}' is required by {}{help}", self.id);
                    problems.push(InputProblem { field: name.to_owned(), message });
                }
                None => {}
            }
        }
        if problems.is_empty() { Ok(resolved) } else { Err(problems) }
    }

    fn unknown_input(&self, name: &str) -> String {
        let end = match nearest(name, self.inputs.names().chain([SANDBOX_ID])) {
            Some(near) => format!(", did you mean '{near}'?"),
            None if self.inputs.is_empty() => format!("; {} takes no inputs", self.id),
            None => format!(
                "; {} takes {}",
                self.id,
                self.inputs.names().collect::<Vec<_>>().join(", ")
            ),
        };
        format!("unknown input {}{end}", shown(name))
    }
}
