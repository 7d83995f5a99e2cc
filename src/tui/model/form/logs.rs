//! Forms of a log: which part of it is asked for, and where what is kept of it is saved.

use super::definition::{Asked, Definition, Notes};
use super::field::{Field, FieldKey, Fields};
use crate::domain::Time;
use crate::tui::model::{Role, many};

/// Options of the log below.
#[derive(Debug, Clone)]
pub struct LogOptions {
    /// Name of its sandbox.
    pub title: String,
    pub services: Vec<String>,
    /// The service whose log is shown; none: all.
    pub service: Option<String>,
    /// How many lines of each service are asked for.
    pub lines: u64,
}

/// The choice of all services.
const ALL: &str = "all";

/// Number of lines to ask for.
fn lines(value: &str) -> Result<u64, String> {
    match value.parse() {
        Ok(lines @ 1..=100_000) => Ok(lines),
        _ => Err("a number from 1 to 100000".to_owned()),
    }
}

impl Definition for LogOptions {
    fn title(&self) -> String {
        format!("Log of {}", self.title)
    }

    fn fields(&self) -> Vec<Field> {
        let shown = self.service.as_deref().unwrap_or(ALL);
        let choices = std::iter::once(ALL.to_owned()).chain(self.services.iter().cloned());
        let help = "one alone, or all of them side by side";
        vec![
            Field::choice(FieldKey::Service, choices.collect(), shown, help),
            Field::text(FieldKey::Lines, &self.lines.to_string(), "of each service, the last ones")
                .checked(|value| lines(value).map(|_| ())),
        ]
    }

    fn notes(&self, _fields: &Fields, _now: Time) -> Notes {
        vec![(Role::Dim, "It is read anew, and followed from there on.".to_owned())]
    }

    fn asked(&self, fields: &Fields) -> Result<Asked, String> {
        let typed = fields.value(&FieldKey::Lines).map(|value| lines(&value)).transpose()?;
        let service = fields.value(&FieldKey::Service).or_else(|| self.service.clone());
        Ok(Asked::Log(service.filter(|name| name != ALL), typed.unwrap_or(self.lines)))
    }
}

/// A new file for what is kept of the log below.
#[derive(Debug, Clone)]
pub struct SaveLog {
    /// Name of its sandbox.
    pub title: String,
    /// A name for the file.
    pub file: String,
    /// How many lines are kept.
    pub kept: usize,
}

impl Definition for SaveLog {
    fn title(&self) -> String {
        format!("Save the log of {}", self.title)
    }

    fn fields(&self) -> Vec<Field> {
        let help = "on this machine; nothing is overwritten";
        vec![Field::path(FieldKey::LogFile, help).with(&self.file)]
    }

    fn notes(&self, _fields: &Fields, _now: Time) -> Notes {
        let lines = many(self.kept, "line", "lines");
        let words = format!(
            "{lines} and what comes until then, the service before each. Only you can read the file."
        );
        vec![(Role::Dim, words)]
    }

    fn asked(&self, fields: &Fields) -> Result<Asked, String> {
        fields.value(&FieldKey::LogFile).map(Asked::SaveLog).ok_or("a file needs a name".to_owned())
    }
}
