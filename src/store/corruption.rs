//! Corrupt and foreign files, and how their reader gets out of it. Such a file is never written to.

use std::error::Error as StdError;
use std::path::Path;

use serde::de::IgnoredAny;

use crate::domain::error::{Code, Error};
use crate::store::files::backup_of;

/// A place in a file, as an editor counts it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Position {
    pub(super) line: usize,
    pub(super) column: usize,
}

impl Position {
    pub(super) fn of(bytes: &[u8], offset: usize) -> Self {
        START.after(&bytes[..offset.min(bytes.len())])
    }

    /// The place behind these bytes, which begin here.
    pub(super) fn after(self, bytes: &[u8]) -> Self {
        match memchr::memrchr(b'\n', bytes) {
            None => Self { column: self.column + bytes.len(), ..self },
            Some(at) => Self {
                line: self.line + memchr::memchr_iter(b'\n', bytes).count(),
                column: bytes.len() - at,
            },
        }
    }

    /// The place a JSON error is at; a value may begin somewhere in a larger file.
    pub(super) fn of_json(error: &serde_json::Error, start: Self) -> Self {
        let line = error.line().max(1);
        let column =
            if line == 1 { start.column + error.column().max(1) - 1 } else { error.column() };
        Self { line: start.line + line - 1, column }
    }
}

/// A JSON error's words without its place, which counts from where the value begins.
pub(super) fn words(error: &serde_json::Error) -> String {
    let text = error.to_string();
    text.rsplit_once(" at line ").map_or(text.as_str(), |(words, _)| words).to_owned()
}

pub(super) const START: Position = Position { line: 1, column: 1 };

/// `store_corrupt`: cannot be parsed. `what` says which part, such as `record 3 (a1b2c3d4)`.
pub(super) fn corrupt(
    path: &Path,
    what: &str,
    place: Position,
    why: impl Into<Box<dyn StdError + Send + Sync>>,
) -> Error {
    let error = Error::new(
        Code::StoreCorrupt,
        format!(
            "{}: {what} cannot be read (line {}, column {}); the file is left as it is",
            path.display(),
            place.line,
            place.column
        ),
    );
    with_way_out(error.detail("line", place.line).detail("column", place.column), path).because(why)
}

/// `store_corrupt`: the file is gone and its backup is not. No write of ours leaves that behind.
pub(super) fn missing(path: &Path) -> Error {
    let error = Error::new(
        Code::StoreCorrupt,
        format!("{} is missing, but its backup is there", path.display()),
    );
    with_way_out(error, path)
}

fn with_way_out(error: Error, path: &Path) -> Error {
    let error = error.detail("file", path.display().to_string());
    let backup = backup_of(path);
    if !backup.exists() {
        return error.hint(format!(
            "there is no backup of it; repair it, or move it away to begin anew: mv {file} {file}.damaged",
            file = quoted(path)
        ));
    }
    let text = std::fs::read_to_string(&backup);
    if !text.is_ok_and(|text| serde_json::from_str::<IgnoredAny>(&text).is_ok()) {
        let there = [path, backup.as_path()].into_iter().filter(|file| file.exists()).map(quoted);
        let away: Vec<_> = there.map(|file| format!("mv {file} {file}.damaged")).collect();
        return error.hint(format!(
            "its backup {} cannot be read either; repair one of the two, or begin anew: {}",
            backup.display(),
            away.join("; ")
        ));
    }
    error
        .hint(format!(
            "the version before the last write is in {}; look at it, then restore it: cp {} {}",
            backup.display(),
            quoted(&backup),
            quoted(path)
        ))
        .detail("backup", backup.display().to_string())
}

fn quoted(path: &Path) -> String {
    let text = path.display().to_string();
    shlex::try_quote(&text).map(std::borrow::Cow::into_owned).unwrap_or(text)
}

/// Origin of a file that is not ours.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Foreign {
    /// A later version of sandboxer wrote it.
    Newer(u64),
    Python,
    /// Nobody we know.
    Unknown,
}

/// `store_foreign`: JSON, but not ours.
pub(super) fn foreign(path: &Path, whose: Foreign) -> Error {
    let file = path.display();
    let (message, hint) = match whose {
        Foreign::Newer(schema) => (
            format!(
                "{file} was written by a newer sandboxer (schema {schema}); it is left as it is"
            ),
            "upgrade sandboxer".to_owned(),
        ),
        Foreign::Python => (
            format!("{file} has the shape of the earlier Python tool's store; it is left as it is"),
            "`sandboxer import` takes it over (--dry-run says how); or choose another --data-dir"
                .to_owned(),
        ),
        Foreign::Unknown => (
            format!("{file} is JSON of another program; it is left as it is"),
            format!(
                "move it away (mv {q} {q}.old), or choose another directory with --data-dir",
                q = quoted(path)
            ),
        ),
    };
    let error = Error::new(Code::StoreForeign, message).hint(hint).detail("file", file.to_string());
    if let Foreign::Newer(schema) = whose { error.detail("schema", schema) } else { error }
}
