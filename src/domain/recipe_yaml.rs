//! From YAML text to a typed value, with every problem at its line and column.
//!
//! Operators edit these files by hand, so the message is the product. A [`Document`] is the text as a tree whose
//! nodes know their place; types read themselves from it with [`FromYaml`], noting problems as they go instead of
//! stopping at the first. The YAML library is lenient (`'1'` as a number, `yes` as true); this layer is not.

mod node;
mod problem;
mod reader;
mod values;

pub use node::{Kind, MapEntry, Node};
pub use problem::{ParseProblem, nearest, problems_fault, shown};
pub use reader::{Fields, FromYaml, Reader};

pub(crate) use values::words_from_yaml;

use std::collections::BTreeMap;

use problem::snippet;

use crate::domain::profile::FieldProblem;

/// The largest file that is read, in bytes.
pub const MAX_FILE_BYTES: u64 = 1024 * 1024;

/// How many problems of one file are told: a file of another kind would have thousands.
const MAX_PROBLEMS: usize = 100;

/// A parsed file: its text, and its tree with places.
#[derive(Debug, Clone)]
pub struct Document {
    file: String,
    source: String,
    root: Node,
    duplicates: Vec<ParseProblem>,
}

impl Document {
    /// Parses a file's bytes; `file` is the name that problems show.
    ///
    /// Errors: over [`MAX_FILE_BYTES`], not UTF-8, not YAML, several documents, or aliases that grow without bound.
    pub fn from_bytes(file: &str, bytes: &[u8]) -> Result<Self, ParseProblem> {
        if bytes.len() as u64 > MAX_FILE_BYTES {
            return Err(ParseProblem::whole(file, "the file is over 1 MiB"));
        }
        match std::str::from_utf8(bytes) {
            Ok(source) => Self::parse(file, source),
            Err(error) => {
                let before = String::from_utf8_lossy(&bytes[..error.valid_up_to()]);
                let line = before.matches('\n').count() as u32 + 1;
                let column =
                    before.rsplit('\n').next().unwrap_or_default().chars().count() as u32 + 1;
                Err(ParseProblem::whole(file, "the file is not UTF-8 text").at(line, column))
            }
        }
    }

    /// Parses a text; see [`Document::from_bytes`].
    pub fn parse(file: &str, source: &str) -> Result<Self, ParseProblem> {
        if source.len() as u64 > MAX_FILE_BYTES {
            return Err(ParseProblem::whole(file, "the file is over 1 MiB"));
        }
        // The parser would take a NUL for text; no value of ours may hold one.
        if let Some(at) = source.find('\0') {
            let before = &source[..at];
            let line = before.matches('\n').count() as u32 + 1;
            let column = before.rsplit('\n').next().unwrap_or_default().chars().count() as u32 + 1;
            return Err(
                ParseProblem::whole(file, "the file holds a NUL character").at(line, column)
            );
        }
        let root = node::parse(source).map_err(|fault| {
            let mut problem = ParseProblem::whole(file, fault.message).at(fault.line, fault.column);
            problem.snippet = snippet(source, fault.line, fault.column);
            problem
        })?;
        let mut document =
            Self { file: file.to_owned(), source: source.to_owned(), root, duplicates: Vec::new() };
        let mut duplicates = Vec::new();
        document.find_duplicates(&document.root, "", &mut duplicates);
        document.duplicates = duplicates;
        Ok(document)
    }

    /// The name that problems show.
    pub fn file(&self) -> &str {
        &self.file
    }

    /// The tree.
    pub fn root(&self) -> &Node {
        &self.root
    }

    /// A top-level key's text, if it is one.
    pub fn text(&self, key: &str) -> Option<&str> {
        match &self.root.get(key)?.kind {
            Kind::Text(text) => Some(text),
            _ => None,
        }
    }

    /// Reads the whole document as a `T`, with every problem found on the way. A `T` may come back beside problems,
    /// so that its meaning can be checked too; it is good only where there are none.
    pub fn read<T: FromYaml>(&self) -> (Option<T>, Vec<ParseProblem>) {
        let mut reader = Reader::new(self);
        reader.problems.extend(self.duplicates.iter().cloned());
        let value = T::from_yaml(&self.root, "", &mut reader);
        (value, sorted(reader.problems))
    }

    /// A problem at a path such as `inputs.repo.kind` or `placement.hosts[1]`; where the path does not exist, at the
    /// nearest part of it that does.
    pub fn problem(&self, path: &str, message: impl Into<String>) -> ParseProblem {
        let node = self.root.nearest(path);
        self.problem_at(node.line, node.column, path, message)
    }

    /// Adds what a value's own rules found, each at its place. A key that already has a problem was replaced by its
    /// default: no second complaint about it.
    pub fn with_fields(
        &self,
        mut problems: Vec<ParseProblem>,
        fields: Vec<FieldProblem>,
    ) -> Vec<ParseProblem> {
        for field in fields {
            let mut problem = self.problem(&field.path, field.message);
            problem.suggestion = field.suggestion;
            let known = problems.iter().any(|p| {
                p.path == problem.path || p.line == problem.line && p.column == problem.column
            });
            if !known {
                problems.push(problem);
            }
        }
        sorted(problems)
    }

    pub(crate) fn problem_at(
        &self,
        line: u32,
        column: u32,
        path: &str,
        message: impl Into<String>,
    ) -> ParseProblem {
        let mut problem = ParseProblem::whole(&self.file, message).at(line, column);
        path.clone_into(&mut problem.path);
        problem.snippet = snippet(&self.source, line, column);
        problem
    }

    fn find_duplicates(&self, node: &Node, path: &str, found: &mut Vec<ParseProblem>) {
        match &node.kind {
            Kind::Map(entries) => {
                let mut first = BTreeMap::new();
                for entry in entries {
                    let inner = join(path, &entry.key);
                    if let Some(line) = first.get(entry.key.as_str()) {
                        let message = format!(
                            "duplicate key {}, first set at line {line}",
                            shown(&entry.key)
                        );
                        found.push(self.problem_at(entry.line, entry.column, &inner, message));
                    } else {
                        first.insert(entry.key.as_str(), entry.line);
                    }
                    self.find_duplicates(&entry.value, &inner, found);
                }
            }
            Kind::List(items) => {
                for (index, item) in items.iter().enumerate() {
                    self.find_duplicates(item, &format!("{path}[{index}]"), found);
                }
            }
            _ => {}
        }
    }
}

/// Problems in the order of the file, each place and sentence once.
pub(crate) fn sorted(mut problems: Vec<ParseProblem>) -> Vec<ParseProblem> {
    problems.sort_by_key(|problem| (problem.line, problem.column));
    problems.truncate(MAX_PROBLEMS);
    problems.dedup_by(|a, b| (a.line, a.column, &a.message) == (b.line, b.column, &b.message));
    problems
}

/// A key's path within `path`.
pub(crate) fn join(path: &str, key: &str) -> String {
    if path.is_empty() { key.to_owned() } else { format!("{path}.{key}") }
}

#[cfg(test)]
mod tests;
