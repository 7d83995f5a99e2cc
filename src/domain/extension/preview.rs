//! Preview: what a create would do and refuse.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::domain::error::Error;
use crate::domain::sandbox::Rewrite;

/// Preview of a create, found without touching anything.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Preview {
    /// Bytes to transfer.
    pub bytes: u64,
    /// Files to transfer.
    pub files: u64,
    /// Changes that the renderer would make.
    pub rewrites: Vec<Rewrite>,
    /// Everything that would be refused, not only the first.
    pub refusals: Vec<Refusal>,
    /// Services that would be started.
    pub services: Vec<String>,
}

/// Thing that is refused.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Refusal {
    /// Where, such as `services.web.privileged` or an input's name.
    pub path: String,
    /// Sentence.
    pub message: String,
    /// The word for the profile's `compose.allow` that would permit it.
    pub allow: Option<String>,
}

impl Preview {
    /// Whether nothing is refused.
    ///
    /// Errors: `invalid_input` for the first refusal, with all of them (each a cause) and the words that would permit them.
    pub fn check(&self) -> Result<(), Error> {
        let Some(first) = self.refusals.first() else { return Ok(()) };
        let error = Refusal::error(&first.path, &self.refusals)
            .detail("refusals", serde_json::to_value(&self.refusals).unwrap_or_default());
        let mut words: Vec<&str> = Vec::new();
        for word in self.refusals.iter().filter_map(|refusal| refusal.allow.as_deref()) {
            if !words.contains(&word) {
                words.push(word);
            }
        }
        if words.is_empty() {
            return Err(error);
        }
        let words = words.join(", ");
        Err(error.hint(format!(
            "change the compose file, or use a profile whose compose.allow names {words}"
        )))
    }
}

impl Refusal {
    /// Error of a field for which these are refused: the only one is its sentence, of several each is a cause.
    pub fn error(field: &str, refusals: &[Self]) -> Error {
        let sentence = |refusal: &Self| format!("{}: {}", refusal.path, refusal.message);
        if let [one] = refusals {
            return Error::invalid_input(field, sentence(one));
        }
        let sentences = refusals.iter().map(sentence);
        let causes =
            sentences.rev().fold(None, |next, sentence| Some(Box::new(Listed { sentence, next })));
        let error = Error::invalid_input(field, format!("{} things are refused", refusals.len()));
        match causes {
            Some(causes) => error.because(causes),
            None => error,
        }
    }
}

/// Sentence of several that stand side by side, as an error's cause; the next one is its source.
#[derive(Debug, thiserror::Error)]
#[error("{sentence}")]
struct Listed {
    sentence: String,
    #[source]
    next: Option<Box<Listed>>,
}
