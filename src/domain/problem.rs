//! Problems of a file or of a value, and where each stands.

use std::fmt;

use crate::domain::error::{Code, Error};

/// How much of a foreign word or line is shown, in characters.
const SHOWN: usize = 60;

/// Value that is well formed and still refused.
#[derive(
    Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize, schemars::JsonSchema,
)]
pub struct FieldProblem {
    /// Path of the key, such as `inputs.repo.kind`.
    pub path: String,
    /// One sentence.
    pub message: String,
    /// Nearest valid word, where there is one.
    pub suggestion: Option<String>,
}

impl FieldProblem {
    /// A problem at a path.
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
#[derive(
    Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize, schemars::JsonSchema,
)]
pub struct ParseProblem {
    /// The file as the operator named it.
    pub file: String,
    /// Line, from 1; 0 when the problem is the file itself.
    pub line: u32,
    /// Column in characters, from 1; 0 when the problem is the file itself.
    pub column: u32,
    /// The key's path, such as `inputs.repo.kind`; empty for the document itself.
    pub path: String,
    /// One sentence, without the place and the suggestion.
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

    /// The same problem with the nearest of these words, if one is near.
    #[must_use]
    pub fn near<'w>(mut self, word: &str, valid: impl IntoIterator<Item = &'w str>) -> Self {
        self.suggestion = nearest(word, valid).map(str::to_owned);
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

/// A error for a file with problems: the first as its sentence, all of them in `details.problems`.
pub fn problems_error(code: Code, problems: &[ParseProblem]) -> Error {
    let message = match problems {
        [] => "the file is refused".to_owned(),
        [only] => only.to_string(),
        [first, rest @ ..] => format!("{first} (and {} more)", rest.len()),
    };
    let list = serde_json::to_value(problems).unwrap_or_default();
    Error::new(code, message).detail("problems", list)
}

/// Nearest valid word to a mistyped one, if it is near enough to be meant.
pub fn nearest<'w>(word: &str, valid: impl IntoIterator<Item = &'w str>) -> Option<&'w str> {
    // The distance costs the product of both lengths; nothing valid is this long.
    if word.chars().count() > 128 {
        return None;
    }
    let plain = |text: &str| text.to_lowercase().replace('-', "_");
    let wanted = plain(word);
    let length = wanted.chars().count();
    let allowed = if length <= 2 { 1 } else { (length / 3).max(2) };
    valid
        .into_iter()
        .map(|candidate| (strsim::damerau_levenshtein(&wanted, &plain(candidate)), candidate))
        // A distance of the whole length would call any short word near.
        .filter(|(distance, candidate)| {
            *distance <= allowed && *distance < candidate.chars().count().max(length)
        })
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, candidate)| candidate)
}

/// Foreign word in quotes, without control or direction characters and cut to a readable length.
pub fn shown(word: &str) -> String {
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
        out.push(if hidden(c) { '\u{fffd}' } else { c });
    }
    out
}

/// Characters that move the cursor or the direction of the text.
fn hidden(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{feff}')
}

/// Path of a key within `path`.
pub(crate) fn join(path: &str, key: &str) -> String {
    if path.is_empty() { key.to_owned() } else { format!("{path}.{key}") }
}
