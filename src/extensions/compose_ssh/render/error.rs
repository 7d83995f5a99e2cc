//! Why nothing was rendered, in sentences that say what to do.

use std::fmt;
use std::io;

use super::refusal::Refusal;

/// Why nothing was rendered.
#[derive(Debug, thiserror::Error)]
pub enum RenderError {
    /// The compose file does not exist.
    #[error("{file} is not in the workspace{}", hint(.near.as_ref()))]
    Missing {
        /// The file that was asked for.
        file: String,
        /// A compose file that does exist in its folder.
        near: Option<String>,
    },
    /// No file is named, and none has a name that compose looks for: these.
    #[error("the workspace has no {0}; name its compose file with the input `compose_file`")]
    NoneFound(String),
    /// The compose file is not in the workspace.
    #[error("{file} {why}; name a compose file of the workspace")]
    Outside {
        /// The file that was asked for.
        file: String,
        /// Why it does not count as inside.
        why: String,
    },
    /// The workspace could not be read.
    #[error("cannot read {file}")]
    Unreadable {
        /// The path at which it failed.
        file: String,
        /// Error of the file system.
        source: io::Error,
    },
    /// A file is no YAML, or no compose file.
    #[error("{file}{}: {message}", at(*.place))]
    NotYaml {
        /// The file, relative to the workspace.
        file: String,
        /// Fault of it.
        message: String,
        /// 1-based line and column.
        place: Option<(u64, u64)>,
    },
    /// A file, or what its aliases and variables expand to, is beyond any honest size.
    #[error("{file} is too large: {message}")]
    TooLarge {
        /// The file, relative to the workspace.
        file: String,
        /// Which limit it met.
        message: String,
    },
    /// The compose file asks for what it does not get. All refusals, in the file's order.
    #[error("the compose file asks for what a sandbox does not give: {}", Listed(.0))]
    Refused(Vec<Refusal>),
}

fn hint(near: Option<&String>) -> String {
    near.map_or_else(
        || "; name one with the input `compose_file`".to_owned(),
        |near| format!(", did you mean {near}? Set the input `compose_file`"),
    )
}

fn at(place: Option<(u64, u64)>) -> String {
    place.map(|(line, column)| format!(" line {line} column {column}")).unwrap_or_default()
}

struct Listed<'a>(&'a [Refusal]);

impl fmt::Display for Listed<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, refusal) in self.0.iter().enumerate() {
            write!(f, "{}{refusal}", if index == 0 { "" } else { "; " })?;
        }
        Ok(())
    }
}
