//! Text overlay: a record as YAML, a script, or what something wrote.

use crate::domain::State;
use crate::domain::sandbox::SandboxRecord;
use crate::domain::telling::{folded, telling_lines};
use crate::present::failure::exit;

/// A script, or what it wrote.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TextOverlay {
    /// Its kind.
    pub title: String,
    pub text: String,
    /// The first line on the screen.
    pub offset: usize,
}

impl TextOverlay {
    /// A record as YAML; why it cannot be written so. By way of a value: parts of a record that are kept as JSON text are YAML
    /// too then.
    pub fn of_record(
        title: String,
        value: Result<serde_json::Value, serde_json::Error>,
    ) -> Result<Self, String> {
        let value = value.map_err(|error| error.to_string())?;
        let text = serde_saphyr::to_string(&value).map_err(|error| error.to_string())?;
        Ok(Self { title, text, offset: 0 })
    }

    /// Failure of a sandbox that nothing is left of, to be read where a log would be: why, then all that its step wrote.
    pub fn of_failed(record: &SandboxRecord) -> Option<Self> {
        let failure = record
            .failure
            .as_ref()
            .filter(|_| record.state == State::Failed && !record.kept_failed)?;
        let telling = telling_lines(&failure.output);
        let all = folded(&failure.output);
        let text = if telling.len() < all.lines().count() {
            format!("{}\n\n{all}", telling.join("\n"))
        } else {
            all
        };
        let exit = exit(failure.exit_status);
        Some(Self {
            title: format!("{}: output of step {}{exit}", record.title(), failure.step),
            text,
            offset: 0,
        })
    }
}
