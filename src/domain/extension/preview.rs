//! Preview: what a create would do and refuse.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::domain::fault::Fault;
use crate::domain::sandbox::Rewrite;

/// Preview of a create, found without touching anything.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Preview {
    /// Bytes to transfer.
    pub bytes: u64,
    /// Files to transfer.
    pub files: u64,
    /// What the renderer would change.
    pub rewrites: Vec<Rewrite>,
    /// Everything that would be refused, not only the first.
    pub refusals: Vec<Refusal>,
    /// Services that would be started.
    pub services: Vec<String>,
}

/// One thing that is refused.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Refusal {
    /// Where, such as `services.web.privileged` or an input's name.
    pub path: String,
    /// One sentence.
    pub message: String,
    /// The word for the profile's `compose.allow` that would permit it.
    pub allow: Option<String>,
}

impl Preview {
    /// Whether nothing is refused.
    ///
    /// Errors: `invalid_input` for the first refusal, with all of them and the words that would permit them.
    pub fn check(&self) -> Result<(), Fault> {
        let Some(first) = self.refusals.first() else { return Ok(()) };
        let list: Vec<String> = self.refusals.iter().map(sentence).collect();
        let message = match list.as_slice() {
            [one] => one.clone(),
            list => format!("{} things are refused: {}", list.len(), list.join("; ")),
        };
        let fault = Fault::invalid_input(&first.path, message)
            .detail("refusals", serde_json::to_value(&self.refusals).unwrap_or_default());
        let mut words: Vec<&str> = Vec::new();
        for word in self.refusals.iter().filter_map(|refusal| refusal.allow.as_deref()) {
            if !words.contains(&word) {
                words.push(word);
            }
        }
        if words.is_empty() {
            return Err(fault);
        }
        let words = words.join(", ");
        Err(fault.hint(format!("change the compose file, or use a profile whose compose.allow names {words}")))
    }
}

fn sentence(refusal: &Refusal) -> String {
    format!("{}: {}", refusal.path, refusal.message)
}
