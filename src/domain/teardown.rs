//! Teardown: the resources of a sandbox on its host, and what became of each in a removal.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::domain::error::{Code, Error};
use crate::domain::words::string_enum;

/// Something on a host: a container, network, volume, pod, directory or tunnel.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Resource {
    /// `container`, `network`, `volume`, `pod`, `image`, `directory`, `mount`, `tunnel`; `process`: one that worked in the
    /// workspace.
    pub kind: String,
    /// Name on the host, or its path.
    pub id: String,
}

impl fmt::Display for Resource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.kind, self.id)
    }
}

string_enum! {
    /// Outcome of a teardown for a resource.
    pub enum TeardownOutcome {
        /// Resource was there and is gone.
        Removed = "removed",
        /// Resource was not there: only "not found" counts.
        Absent = "absent",
        /// Resource could not be removed.
        Failed = "failed",
        /// Somebody else's, with a label or a name of the sandbox: it was left.
        Foreign = "foreign",
    }
}

/// Line of a teardown's report.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TeardownLine {
    /// Resource.
    pub resource: Resource,
    /// Outcome.
    pub outcome: TeardownOutcome,
    /// Why it failed, in the program's words, or what tells that it is foreign.
    pub reason: Option<String>,
}

impl TeardownLine {
    /// Sentence on what was left because it is somebody else's, with what tells so.
    pub(crate) fn left_alone(&self) -> Option<String> {
        let why = self.reason.as_ref().map(|why| format!(": {why}")).unwrap_or_default();
        let words = || format!("left alone: {}{why}", self.resource);
        (self.outcome == TeardownOutcome::Foreign).then(words)
    }
}

/// Report of a teardown. `clean` only when a read-back showed that nothing is left.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct TeardownReport {
    /// A line per resource.
    pub lines: Vec<TeardownLine>,
    /// Resources that the read-back still found.
    pub leftovers: Vec<Resource>,
    /// Whether nothing was removed: what is there was refused to be touched.
    pub untouched: bool,
}

impl TeardownReport {
    /// Whether nothing is left.
    pub fn is_clean(&self) -> bool {
        self.leftovers.is_empty()
            && self.lines.iter().all(|line| line.outcome != TeardownOutcome::Failed)
    }

    /// Resources that are left, in words.
    pub(crate) fn left_words(&self) -> Vec<String> {
        self.leftovers.iter().map(Resource::to_string).collect()
    }

    /// Error of a removal that left something, with this message before what that is.
    pub(crate) fn leftovers_error(&self, message: &str) -> Error {
        let left = self.left_words();
        let why: Vec<String> = self.lines.iter().filter_map(|line| line.reason.clone()).collect();
        let message = format!("{message}: {}", left.join(", "));
        let error = Error::new(Code::OperationFailed, message).detail("leftovers", left);
        if why.is_empty() { error } else { error.because(why.join("; ")) }
    }
}
