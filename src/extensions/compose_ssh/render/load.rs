//! Reading of the files that a project is made of, within bounds.

use std::collections::HashMap;

use serde_json::{Map, Value};

use super::document::{self, Document};
use super::dotenv;
use super::error::RenderError;
use super::findings::Findings;
use super::interpolate::{self, Variables};
use super::paths::{Target, Workspace};
use super::tree::Entry;

/// Most files one project is made of, and the longest chain of `extends` or `include`.
const MAX_FILES: usize = 256;
pub(super) const MAX_CHAIN: usize = 16;
/// Limit of all files of a project together, in bytes, each counted as often as it is read; variables may fill in as much.
const MAX_TOTAL: usize = 8 * document::MAX_BYTES;
/// Most entries of a project: of its files, aliases counted as often as they are used, and of what is copied by `extends`.
const MAX_ENTRIES: usize = 2 * document::MAX_ENTRIES;

/// Reads files into a project.
pub(super) struct Loader<'a> {
    pub workspace: &'a Workspace<'a>,
    pub findings: &'a mut Findings,
    pub bind_allowed: bool,
    /// Every file read so far; of those that lie over each other the upper one first.
    pub documents: Vec<Document>,
    pub files: HashMap<String, Services>,
    /// The projects that include each other on the way to the one being read, each by its files.
    pub including: Vec<Vec<String>>,
    /// Bytes that may still be read.
    left: usize,
    /// Entries that it may still have.
    entries: usize,
    /// Bytes that variables may still fill in.
    growth: usize,
}

/// Services of one file, interpolated and anchored, `extends` not yet resolved.
pub(super) struct Services {
    pub services: Map<String, Value>,
    /// The keys that lead to what the file resets or replaces.
    pub replaced: Vec<Vec<String>>,
}

/// A file as it was read, interpolated.
pub(super) struct Parsed {
    pub project: Map<String, Value>,
    /// The keys that lead to what it resets or replaces.
    pub replaced: Vec<Vec<String>>,
}

/// A file that was found and may be read, or the reason why not.
pub(super) enum Found {
    Bytes(String, Vec<u8>),
    Missing(String),
    Refused(String),
}

impl<'a> Loader<'a> {
    pub(super) fn new(
        workspace: &'a Workspace<'a>,
        findings: &'a mut Findings,
        bind_allowed: bool,
    ) -> Self {
        Self {
            workspace,
            findings,
            bind_allowed,
            documents: Vec::new(),
            files: HashMap::new(),
            including: Vec::new(),
            left: MAX_TOTAL,
            entries: MAX_ENTRIES,
            growth: MAX_TOTAL,
        }
    }

    pub(super) fn is_file(&self, relative: &str) -> bool {
        matches!(self.workspace.follow(relative), Ok(Target::Inside(_, Entry::File)))
    }

    pub(super) fn find(&mut self, anchored: &str) -> Result<Found, RenderError> {
        let unreadable = |source| RenderError::Unreadable { file: anchored.to_owned(), source };
        Ok(match self.workspace.locate(anchored).map_err(unreadable)? {
            Target::Inside(path, Entry::File) => {
                let bytes = self.workspace.tree.read(&path).map_err(unreadable)?;
                self.left = self.left.checked_sub(bytes.len()).ok_or_else(|| RenderError::TooLarge {
                    file: path.clone(),
                    message: format!("the project's files have more than {MAX_TOTAL} bytes together; use smaller ones"),
                })?;
                Found::Bytes(path, bytes)
            }
            Target::Inside(path, _) => Found::Refused(format!("`{path}` is not a regular file")),
            Target::Missing(path) => Found::Missing(path),
            Target::Outside(why) => Found::Refused(why),
        })
    }

    /// [`Self::find`] for a file that another one names: what cannot be read becomes a refusal at `path`.
    pub(super) fn named(
        &mut self,
        anchored: &str,
        path: &str,
    ) -> Result<Option<(String, Vec<u8>)>, RenderError> {
        match self.find(anchored)? {
            Found::Bytes(file, bytes) => return Ok(Some((file, bytes))),
            Found::Missing(file) => {
                self.findings.refuse(
                    path,
                    None,
                    format!("`{file}` is not in the workspace; add it, or see whether `sync.exclude` leaves it out"),
                );
            }
            // Files are read here, where no other machine's file could be meant: no allowance opens this.
            Found::Refused(why) => {
                self.findings.refuse(
                    path,
                    None,
                    format!("`{anchored}` {why}; copy it into the workspace"),
                );
            }
        }
        Ok(None)
    }

    /// Path of a file without links, where there is one.
    pub(super) fn real(&self, anchored: &str) -> Result<Option<String>, RenderError> {
        let unreadable = |source| RenderError::Unreadable { file: anchored.to_owned(), source };
        Ok(match self.workspace.locate(anchored).map_err(unreadable)? {
            Target::Inside(path, Entry::File) => Some(path),
            Target::Inside(..) | Target::Missing(_) | Target::Outside(_) => None,
        })
    }

    /// Does an anchored path lead out of the workspace?
    pub(super) fn leads_out(&self, anchored: &str) -> Result<bool, RenderError> {
        let unreadable = |source| RenderError::Unreadable { file: anchored.to_owned(), source };
        Ok(matches!(self.workspace.locate(anchored).map_err(unreadable)?, Target::Outside(_)))
    }

    /// [`Self::named`], but the file need not be there.
    pub(super) fn optional(
        &mut self,
        anchored: &str,
        path: &str,
    ) -> Result<Option<(String, Vec<u8>)>, RenderError> {
        match self.find(anchored)? {
            Found::Missing(_) => Ok(None),
            _ => self.named(anchored, path),
        }
    }

    /// A file with its variables filled in; `at` is its place among the documents.
    pub(super) fn parse(
        &mut self,
        file: &str,
        bytes: &[u8],
        variables: &Variables,
        at: usize,
    ) -> Result<Parsed, RenderError> {
        if self.documents.len() >= MAX_FILES {
            return Err(RenderError::TooLarge {
                file: file.to_owned(),
                message: format!("the project has more than {MAX_FILES} files; use fewer"),
            });
        }
        let mut document = document::parse(file, bytes)?;
        self.count(file, document.entries)?;
        let Value::Object(mut root) = document.value.take() else {
            let what = if bytes.iter().all(u8::is_ascii_whitespace) {
                "it is empty"
            } else {
                "it is not a mapping"
            };
            let message = format!("{what}; a compose file starts with `services:`");
            return Err(RenderError::NotYaml { file: file.to_owned(), message, place: None });
        };
        root.retain(|key, _| !key.starts_with("x-"));
        let project = interpolate::interpolate(
            Value::Object(root),
            variables,
            self.findings,
            &mut self.growth,
        );
        self.findings.locate(std::slice::from_ref(&document));
        let replaced = std::mem::take(&mut document.replaced);
        self.documents.insert(at, document);
        let Value::Object(project) = project else {
            return Ok(Parsed { project: Map::new(), replaced });
        };
        Ok(Parsed { project, replaced })
    }

    /// Counts bytes that variables fill in at `path`; too many are refused.
    pub(super) fn fits(&mut self, bytes: usize, path: &str) -> bool {
        let left = self.growth.checked_sub(bytes);
        match left {
            Some(left) => self.growth = left,
            None => self.findings.refuse(path, None, interpolate::TOO_LONG),
        }
        left.is_some()
    }

    /// Counts entries that the project gets; what files are made of in the end is what bounds them.
    pub(super) fn count(&mut self, file: &str, entries: usize) -> Result<(), RenderError> {
        self.entries = self.entries.checked_sub(entries).ok_or_else(|| RenderError::TooLarge {
            file: file.to_owned(),
            message: format!("the project grows beyond {MAX_ENTRIES} entries with it; write fewer"),
        })?;
        Ok(())
    }

    /// The variables of a `.env` that need not exist.
    pub(super) fn environment_file(
        &mut self,
        relative: &str,
        outer: &Variables,
    ) -> Result<Variables, RenderError> {
        match self.find(&self.workspace.absolute(relative))? {
            Found::Bytes(file, bytes) => self.entries(&file, &bytes, outer),
            Found::Missing(_) => Ok(Variables::new()),
            Found::Refused(why) => {
                self.findings.refuse(relative, None, format!("{why}; put a regular file there"));
                Ok(Variables::new())
            }
        }
    }

    pub(super) fn entries(
        &mut self,
        file: &str,
        bytes: &[u8],
        outer: &Variables,
    ) -> Result<Variables, RenderError> {
        let entries = read_entries(file, bytes, outer, self.findings)?;
        Ok(entries.into_iter().filter_map(|(name, value)| Some((name, value?))).collect())
    }
}

/// The entries of an environment file; what cannot be parsed becomes a refusal at `FILE line N`.
pub(super) fn read_entries(
    file: &str,
    bytes: &[u8],
    outer: &Variables,
    findings: &mut Findings,
) -> Result<Vec<dotenv::Entry>, RenderError> {
    if bytes.len() > document::MAX_BYTES {
        return Err(RenderError::TooLarge {
            file: file.to_owned(),
            message: format!("at most {} bytes are read", document::MAX_BYTES),
        });
    }
    let Ok(text) = std::str::from_utf8(bytes) else {
        findings.refuse(file, None, "it is not UTF-8; save it as UTF-8");
        return Ok(Vec::new());
    };
    Ok(dotenv::parse(text, outer).unwrap_or_else(|(line, message)| {
        findings.refuse(&format!("{file} line {line}"), None, message);
        Vec::new()
    }))
}

/// Takes a section that has to be a mapping out of a project.
pub(super) fn section(
    project: &mut Map<String, Value>,
    name: &str,
    findings: &mut Findings,
) -> Map<String, Value> {
    match project.shift_remove(name) {
        Some(Value::Object(map)) => map,
        None | Some(Value::Null) => Map::new(),
        Some(_) => {
            findings.refuse(
                name,
                None,
                format!(
                    "`{name}` is a mapping from names to definitions; write `{name}: {{NAME: ...}}`"
                ),
            );
            Map::new()
        }
    }
}
