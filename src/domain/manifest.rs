//! An extension's manifest: what a backend adapter says of itself.

use std::collections::BTreeSet;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::domain::extension::Capability;
use crate::domain::name::ExtensionId;
use crate::domain::problem::{FieldProblem, shown};
use crate::domain::usd::Usd;
use crate::domain::words::string_enum;

mod price;
mod schema;

/// Manifest of an extension: what it says of itself.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ExtensionManifest {
    /// `ext.` and a name.
    pub id: ExtensionId,
    /// Its version (semver).
    #[schemars(with = "String")]
    pub version: semver::Version,
    /// Line for lists.
    #[serde(default)]
    pub summary: String,
    /// How it is run.
    pub kind: ExtensionKind,
    /// The program and its arguments, of a `process`.
    #[serde(default)]
    pub command: Vec<String>,
    /// Capabilities beyond making and removing.
    #[serde(default)]
    pub capabilities: BTreeSet<Capability>,
    /// JSON Schema of a profile's `config`.
    #[serde(default = "any_config")]
    #[schemars(with = "serde_json::Map<String, serde_json::Value>")]
    pub config_schema: serde_json::Value,
    /// The only variables of our environment that a `process` gets.
    #[serde(default)]
    pub env: Vec<String>,
    /// Prices, of a metered one.
    #[serde(default)]
    pub rates: Rates,
}

fn any_config() -> serde_json::Value {
    serde_json::json!({"type": "object"})
}

string_enum! {
    /// How an extension is run.
    pub enum ExtensionKind {
        /// Part of the program.
        Builtin = "builtin",
        /// Program, spoken to over stdin and stdout.
        Process = "process",
    }
}

/// Prices of a metered extension; what is not set costs nothing.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Rates {
    /// For each second of a sandbox's life.
    #[serde(default)]
    pub per_second_usd: Option<Usd>,
    /// For each GB (10^9 bytes) that is stored or sent.
    #[serde(default)]
    pub per_gb_usd: Option<Usd>,
    /// The least that a sandbox costs.
    #[serde(default)]
    pub minimum_usd: Option<Usd>,
}

impl Rates {
    /// The highest rate: a higher one is a slip of the pen.
    pub const HIGHEST: Usd = Usd::from_micros(1_000_000_000_000);

    /// Rates that are set, by the keys of the manifest.
    fn by_key(&self) -> impl Iterator<Item = (&'static str, Usd)> {
        let rates = [
            ("per_second_usd", self.per_second_usd),
            ("per_gb_usd", self.per_gb_usd),
            ("minimum_usd", self.minimum_usd),
        ];
        rates.into_iter().filter_map(|(key, rate)| Some((key, rate?)))
    }

    /// Whether nothing has a price.
    pub fn is_free(&self) -> bool {
        *self == Self::default()
    }
}

impl ExtensionManifest {
    /// Whether it can do this.
    pub fn has(&self, capability: &Capability) -> bool {
        self.capabilities.contains(capability)
    }

    /// Every rule that one manifest can break by itself. Empty: it is good.
    pub fn validate(&self) -> Vec<FieldProblem> {
        use crate::domain::profile::is_catalogue_id;
        let mut found = Vec::new();
        let mut refuse = |path: &str, message: String| found.push(FieldProblem::new(path, message));
        if !is_catalogue_id(self.id.as_str(), "ext.") {
            refuse(
                "id",
                format!("{} is not 'ext.' and a name of a-z, 0-9 and '-'", shown(self.id.as_str())),
            );
        }
        match (&self.kind, self.command.first()) {
            (ExtensionKind::Process, None) => {
                refuse("command", "an extension of kind process needs 'command'".to_owned());
            }
            (ExtensionKind::Process, Some(program)) if program.trim().is_empty() => {
                refuse("command[0]", "the program's name is empty".to_owned());
            }
            (ExtensionKind::Builtin, Some(_)) => {
                refuse("command", "'command' is for extensions of kind process".to_owned());
            }
            _ => {}
        }
        if self.kind == ExtensionKind::Builtin && !self.env.is_empty() {
            refuse("env", "'env' is for extensions of kind process".to_owned());
        }
        for (index, name) in self.env.iter().enumerate() {
            let head = name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_');
            if !(head && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')) {
                refuse(
                    &format!("env[{index}]"),
                    format!("{} is not the name of a variable", shown(name)),
                );
            }
        }
        if !self.rates.is_free() && !self.has(&Capability::Metered) {
            refuse("rates", "'rates' needs the capability 'metered'".to_owned());
        }
        for (key, rate) in self.rates.by_key() {
            if !(Usd::ZERO..=Rates::HIGHEST).contains(&rate) {
                refuse(
                    &format!("rates.{key}"),
                    format!("'rates.{key}' is no rate: it is from $0.00 to {}", Rates::HIGHEST),
                );
            }
        }
        if self.has(&Capability::Patches) && !self.has(&Capability::Snapshots) {
            refuse("capabilities", "the capability 'patches' needs 'snapshots'".to_owned());
        }
        found.extend(self.check_schema());
        found
    }
}
