//! A profile or manifest as the catalogue lists it.

use crate::domain::error::{Code, Error};
use crate::domain::manifest::ExtensionManifest;
use crate::domain::problem::{ParseProblem, problems_error};
use crate::domain::profile::Profile;
use crate::domain::request::{ExtensionView, ProfileView};
use crate::domain::words::string_enum;

string_enum! {
    /// Where a profile or manifest comes from.
    pub enum Origin {
        /// Part of the program.
        Builtin = "builtin",
        /// A file of the operator.
        Operator = "operator",
    }
}

/// Line of `profiles list` or `extensions list`: a definition, or what is wrong with its file.
#[derive(Debug, Clone, PartialEq)]
pub struct Entry<T> {
    /// The id; of a file that has none that can be read, the file's name.
    pub id: String,
    /// Where it comes from.
    pub source: Origin,
    /// The operator's file; `null` for one that is built in.
    pub path: Option<String>,
    /// Whether an operator's file took the place of a built-in one.
    pub overrides_builtin: bool,
    /// Whether this build can make it.
    pub available: bool,
    /// Why not, as one sentence.
    pub unavailable: Option<String>,
    /// The content hash that sandboxes record.
    pub hash: Option<String>,
    /// Problems of the file; empty for a good one.
    pub problems: Vec<ParseProblem>,
    /// The definition; `null` when the file is broken.
    pub definition: Option<T>,
}

impl<T> Entry<T> {
    /// The definition, to be used.
    ///
    /// Errors: `invalid_profile` with file, line and column when the file is broken.
    pub fn definition(&self) -> Result<&T, Error> {
        match &self.definition {
            Some(definition) if self.problems.is_empty() => Ok(definition),
            _ => {
                let error = problems_error(Code::InvalidProfile, &self.problems);
                Err(match &self.path {
                    Some(path) => error.hint(format!("sandboxer profiles validate {path}")),
                    None => error,
                })
            }
        }
    }

    /// Errors: `unsupported` when this build cannot make it.
    pub fn ensure_available(&self) -> Result<(), Error> {
        match &self.unavailable {
            Some(reason) if !self.available => Err(Error::new(Code::Unsupported, reason.clone())),
            _ => Ok(()),
        }
    }

    /// Problem of the file, as one line.
    fn error(&self) -> Option<String> {
        (!self.problems.is_empty())
            .then(|| problems_error(Code::InvalidProfile, &self.problems).message)
    }
}

impl From<&Entry<Profile>> for ProfileView {
    fn from(entry: &Entry<Profile>) -> Self {
        let profile = entry.definition.as_ref();
        Self {
            id: entry.id.clone(),
            version: profile.map(|profile| profile.version.to_string()),
            summary: profile.map(|profile| profile.summary.clone()),
            extension: profile.map(|profile| profile.extension.to_string()),
            available: entry.available,
            unavailable: entry.unavailable.clone(),
            source: entry.source.to_string(),
            path: entry.path.clone(),
            overrides_builtin: entry.overrides_builtin,
            error: entry.error(),
            hash: entry.hash.clone(),
            profile: profile.cloned(),
        }
    }
}

impl From<&Entry<ExtensionManifest>> for ExtensionView {
    fn from(entry: &Entry<ExtensionManifest>) -> Self {
        Self {
            id: entry.id.clone(),
            version: entry.definition.as_ref().map(|manifest| manifest.version.to_string()),
            available: entry.available,
            unavailable: entry.unavailable.clone(),
            source: entry.source.to_string(),
            path: entry.path.clone(),
            overrides_builtin: entry.overrides_builtin,
            error: entry.error(),
            manifest: entry.definition.clone(),
            place: None,
        }
    }
}
