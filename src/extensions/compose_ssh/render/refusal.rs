//! Refusal: something that a compose file asks for and does not get, and where it says so.

use std::fmt;

use crate::domain::extension;
use crate::domain::profile::Allowance;

/// A place in a source file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// The file, relative to the workspace.
    pub file: String,
    /// Line, from 1.
    pub line: u64,
    /// Column in characters, from 1.
    pub column: u64,
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} line {} column {}", self.file, self.line, self.column)
    }
}

/// Something a compose file asks for and does not get.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// Where, as in `services.web.privileged`.
    pub path: String,
    /// A sentence that says what to do.
    pub message: String,
    /// The item of the profile's `compose.allow` that would permit it, if any does.
    pub allow: Option<Allowance>,
    /// The place in the source, where it is known.
    pub place: Option<Place>,
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.path, self.message)?;
        if let Some(allow) = &self.allow {
            write!(f, "; `compose.allow: [{allow}]` in the profile permits it")?;
        }
        self.place.as_ref().map_or(Ok(()), |place| write!(f, " ({place})"))
    }
}

impl From<Refusal> for extension::Refusal {
    /// The place becomes part of the sentence.
    fn from(refusal: Refusal) -> Self {
        let place = refusal.place.map(|place| format!(" ({place})")).unwrap_or_default();
        let allow = refusal.allow.map(|allow| allow.as_str().to_owned());
        Self { path: refusal.path, message: format!("{}{place}", refusal.message), allow }
    }
}
