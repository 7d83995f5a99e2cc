//! Problems of a file or of a value, and where each stands.

pub(crate) mod violation;

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::domain::error::{Code, Error};
use crate::domain::text::{is_unsafe, nearest};

/// How much of a foreign word or line is shown, in characters.
const SHOWN: usize = 60;

/// Value that is well formed and still refused.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct FieldProblem {
    /// Path of the key, such as `inputs.repo.kind`.
    pub path: String,
    /// Sentence.
    pub message: String,
    /// Nearest valid word, where there is one.
    pub suggestion: Option<String>,
}

impl FieldProblem {
    pub fn new(path: impl Into<String>, message: impl Into<String>) -> Self {
        Self { path: path.into(), message: message.into(), suggestion: None }
    }

    /// The same problem with the nearest of these words, if one is near.
    #[must_use]
    pub fn near<'w>(mut self, word: &str, valid: impl IntoIterator<Item = &'w str>) -> Self {
        self.suggestion = nearest(word, valid).map(str::to_owned);
        self
    }
}

/// Problem of a file. `{}` prints `file:line:column: message, did you mean 'x'?`; `{:#}` adds the source
/// line with a mark under the place.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ParseProblem {
    /// The file as the operator named it.
    pub file: String,
    /// Line, from 1; 0 when the problem is the file itself.
    pub line: u32,
    /// Column in characters, from 1; 0 when the problem is the file itself.
    pub column: u32,
    /// The key's path, such as `inputs.repo.kind`; empty for the document itself.
    pub path: String,
    /// Sentence, without the place and the suggestion.
    pub message: String,
    /// The nearest valid word, where there is one near enough.
    pub suggestion: Option<String>,
    /// The source line and a mark under the place: two lines of text, cleaned of control characters.
    pub snippet: Option<Box<str>>,
}

impl ParseProblem {
    /// A problem with the file itself.
    pub fn whole(file: &str, message: impl Into<String>) -> Self {
        Self {
            file: file.to_owned(),
            line: 0,
            column: 0,
            path: String::new(),
            message: message.into(),
            suggestion: None,
            snippet: None,
        }
    }

    /// The same problem at a place.
    #[must_use]
    pub fn at(mut self, line: u32, column: u32) -> Self {
        self.line = line;
        self.column = column;
        self
    }
}

impl fmt::Display for ParseProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.file)?;
        if self.line > 0 {
            write!(f, ":{}:{}", self.line, self.column)?;
        }
        write!(f, ": {}", self.message)?;
        if let Some(word) = &self.suggestion {
            write!(f, ", did you mean '{word}'?")?;
        }
        match &self.snippet {
            Some(snippet) if f.alternate() => write!(f, "\n{snippet}"),
            _ => Ok(()),
        }
    }
}

impl std::error::Error for ParseProblem {}

/// Error for a file with problems: the first as its sentence, all of them in `details.problems`.
pub(crate) fn problems_error(code: Code, problems: &[ParseProblem]) -> Error {
    let message = match problems {
        [] => "the file is refused".to_owned(),
        [only] => only.to_string(),
        [first, rest @ ..] => format!("{first} (and {} more)", rest.len()),
    };
    let list = serde_json::to_value(problems).unwrap_or_default();
    Error::new(code, message).detail("problems", list)
}

/// Foreign word in quotes, without control or direction characters and cut to a readable length.
pub(crate) fn shown(word: &str) -> String {
    format!("'{}'", plain_start(word, SHOWN))
}

/// Start of a foreign text, without control or direction characters.
pub(crate) fn plain_start(text: &str, limit: usize) -> String {
    let mut out = String::new();
    for (count, c) in text.chars().enumerate() {
        if count == limit {
            out.push('…');
            break;
        }
        out.push(if is_unsafe(c) { '\u{fffd}' } else { c });
    }
    out
}

/// Path of a key within `path`.
pub(crate) fn join(path: &str, key: &str) -> String {
    if path.is_empty() { key.to_owned() } else { format!("{path}.{key}") }
}
