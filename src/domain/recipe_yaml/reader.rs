//! How a type reads itself from a tree.

use super::node::{Kind, MapEntry, Node};
use super::problem::{ParseProblem, shown};
use super::{Document, join};

/// A type that reads itself from YAML.
pub trait FromYaml: Sized {
    /// Reads a node at a path. What is wrong is noted in the reader; `None` when no value can be made.
    fn from_yaml(node: &Node, path: &str, reader: &mut Reader<'_>) -> Option<Self>;
}

/// Collects the problems of one document.
#[derive(Debug)]
pub struct Reader<'d> {
    document: &'d Document,
    /// What was found so far, in the order it was found.
    pub problems: Vec<ParseProblem>,
}

impl<'d> Reader<'d> {
    pub(super) fn new(document: &'d Document) -> Self {
        Self { document, problems: Vec::new() }
    }

    /// Notes a problem with a node. Always `None`, so that a reader may return it.
    pub fn refuse<T>(&mut self, node: &Node, path: &str, message: impl Into<String>) -> Option<T> {
        let problem = self.document.problem_at(node.line, node.column, path, message);
        self.problems.push(problem);
        None
    }

    /// Notes a word that is none of the valid ones.
    pub fn refuse_word<T>(
        &mut self,
        node: &Node,
        path: &str,
        word: &str,
        valid: &[&str],
    ) -> Option<T> {
        let message = format!("{} is not one of {}", shown(word), valid.join(", "));
        let problem = self.document.problem_at(node.line, node.column, path, message);
        self.problems.push(problem.near(word, valid.iter().copied()));
        None
    }

    /// Opens a mapping with these keys, noting every other key. `None` when the node is no mapping.
    pub fn fields<'n>(&mut self, node: &'n Node, path: &str, known: &[&str]) -> Option<Fields<'n>> {
        let entries = match &node.kind {
            Kind::Map(entries) => entries.as_slice(),
            Kind::Null if path.is_empty() => return self.refuse(node, path, "the file is empty"),
            Kind::Null => &[],
            _ => {
                let what = if path.is_empty() { "the file".to_owned() } else { shown(path) };
                return self.refuse(
                    node,
                    path,
                    format!("{what} must be a mapping, not {}", node.noun()),
                );
            }
        };
        let mut meant = Vec::new();
        for entry in entries.iter().filter(|entry| !known.contains(&entry.key.as_str())) {
            let message = format!("unknown key {}", shown(&entry.key));
            let inner = join(path, &entry.key);
            let problem = self.document.problem_at(entry.line, entry.column, &inner, message);
            let problem = problem.near(&entry.key, known.iter().copied());
            meant.extend(problem.suggestion.clone());
            self.problems.push(problem);
        }
        Some(Fields { node, path: path.to_owned(), entries, meant })
    }

    /// Notes a key whose name is not allowed where names are free.
    pub fn refuse_key(&mut self, entry: &MapEntry, path: &str, message: impl Into<String>) {
        let problem = self.document.problem_at(entry.line, entry.column, path, message);
        self.problems.push(problem);
    }
}

/// An open mapping.
#[derive(Debug)]
pub struct Fields<'n> {
    node: &'n Node,
    path: String,
    entries: &'n [MapEntry],
    /// Known keys that an unknown one was probably meant to be: their absence is no second problem.
    meant: Vec<String>,
}

impl Fields<'_> {
    /// A key's value; absent or `null` is `None`.
    pub fn optional<T: FromYaml>(&self, reader: &mut Reader<'_>, key: &str) -> Option<T> {
        let entry = self.entries.iter().find(|entry| entry.key == key)?;
        match entry.value.kind {
            Kind::Null => None,
            _ => T::from_yaml(&entry.value, &join(&self.path, key), reader),
        }
    }

    /// Whether the key is there, with or without a value.
    pub fn has(&self, key: &str) -> bool {
        self.entries.iter().any(|entry| entry.key == key)
    }

    /// A key's value, or this default.
    pub fn or<T: FromYaml>(&self, reader: &mut Reader<'_>, key: &str, default: T) -> T {
        self.optional(reader, key).unwrap_or(default)
    }

    /// A key that must be there.
    pub fn required<T: FromYaml>(&self, reader: &mut Reader<'_>, key: &str) -> Option<T> {
        match self.entries.iter().find(|entry| entry.key == key) {
            None if self.meant.iter().any(|meant| meant == key) => None,
            None => {
                let place = if self.path.is_empty() {
                    String::new()
                } else {
                    format!(" in {}", shown(&self.path))
                };
                reader.refuse(self.node, &self.path, format!("missing key '{key}'{place}"))
            }
            Some(MapEntry { value, .. }) if value.kind == Kind::Null => {
                reader.refuse(value, &join(&self.path, key), format!("'{key}' needs a value"))
            }
            Some(_) => self.optional(reader, key),
        }
    }
}
