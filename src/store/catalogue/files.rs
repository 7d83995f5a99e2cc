//! Files of profiles: read with limits, so that nothing in a directory can hang or fill the program.

use std::fs;
use std::path::{Path, PathBuf};

use super::entry::{Entry, Origin};
use crate::domain::problem::{FieldProblem, ParseProblem};
use crate::yaml::{Document, read_bytes};

/// Definition that a directory of the catalogue holds.
pub(super) trait CatalogueFile: Sized {
    /// Beginning of its id.
    const PREFIX: &'static str;
    /// Reads and validates it.
    fn read(document: &Document) -> Result<Self, Vec<ParseProblem>>;
    fn id(&self) -> &str;
}

/// A file that was found, good or broken.
#[derive(Debug)]
pub(super) struct Found<T> {
    pub(super) id: String,
    /// `None`: built in.
    pub(super) path: Option<PathBuf>,
    pub(super) overrides_builtin: bool,
    pub(super) definition: Option<T>,
    pub(super) problems: Vec<ParseProblem>,
    document: Option<Document>,
}

impl<T: CatalogueFile> Found<T> {
    pub(super) fn new(
        file: &str,
        document: Result<Document, ParseProblem>,
        path: Option<PathBuf>,
    ) -> Self {
        let name = Path::new(file)
            .file_name()
            .map_or(file, |name| name.to_str().unwrap_or(file))
            .to_owned();
        let mut found = Self {
            id: name,
            path,
            overrides_builtin: false,
            definition: None,
            problems: Vec::new(),
            document: None,
        };
        match document {
            Ok(document) => {
                match T::read(&document) {
                    Ok(definition) => {
                        definition.id().clone_into(&mut found.id);
                        found.definition = Some(definition);
                    }
                    Err(problems) => found.problems = problems,
                }
                if let Some(id) = document.text("id").filter(|id| is_plain_id(id, T::PREFIX)) {
                    id.clone_into(&mut found.id);
                }
                found.document = Some(document);
            }
            Err(problem) => found.problems = vec![problem],
        }
        found
    }

    /// An operator's file that was read already.
    pub(super) fn operator(path: &Path, document: &Document) -> Self {
        Self::new(document.file(), Ok(document.clone()), Some(path.to_path_buf()))
    }

    /// Adds problems, each at its place in the file.
    pub(super) fn add(&mut self, fields: Vec<FieldProblem>) {
        if let Some(document) = &self.document {
            self.problems = document.with_fields(std::mem::take(&mut self.problems), fields);
            return;
        }
        let file =
            self.path.as_ref().map_or_else(|| self.id.clone(), |path| path.display().to_string());
        self.problems
            .extend(fields.into_iter().map(|field| ParseProblem::whole(&file, field.message)));
    }

    /// Its line in a list. `unavailable`: why this build cannot make it.
    pub(super) fn entry(self, unavailable: Option<String>) -> Entry<T> {
        let broken = !self.problems.is_empty();
        Entry {
            id: self.id,
            source: if self.path.is_some() { Origin::Operator } else { Origin::Builtin },
            path: self.path.map(|path| path.display().to_string()),
            overrides_builtin: self.overrides_builtin,
            available: !broken && unavailable.is_none(),
            unavailable: if broken { Some("its file is broken".to_owned()) } else { unavailable },
            hash: None,
            definition: self.definition.filter(|_| !broken),
            problems: self.problems,
        }
    }
}

/// Whether a broken file's `id` can be trusted to say which id the file meant.
fn is_plain_id(id: &str, prefix: &str) -> bool {
    id.starts_with(prefix)
        && id.len() <= 100
        && id.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_'))
}

/// Every profile of a directory, by file name. A directory that is missing is empty; one that cannot be read is one
/// broken entry.
pub(super) fn read_dir<T: CatalogueFile>(dir: Option<&Path>) -> Vec<Found<T>> {
    let Some(dir) = dir else { return Vec::new() };
    let listed = fs::read_dir(dir)
        .and_then(|entries| entries.map(|entry| Ok(entry?.path())).collect::<Result<Vec<_>, _>>());
    let mut paths = match listed {
        Ok(paths) => paths,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Vec::new(),
        Err(error) => {
            let name = dir.display().to_string();
            let problem =
                ParseProblem::whole(&name, format!("the directory cannot be read: {error}"));
            return vec![Found::new(&name, Err(problem), Some(dir.to_path_buf()))];
        }
    };
    paths.sort();
    let mut found = Vec::new();
    for path in paths {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        // Editors leave locks and backups behind a dot.
        if name.starts_with('.') {
            continue;
        }
        let file = path.display().to_string();
        match path.extension().and_then(|extension| extension.to_str()) {
            Some("yaml") => found.push(read_one(&file, &path)),
            Some("yml") => {
                let problem =
                    ParseProblem::whole(&file, "files end in .yaml; this one is not read");
                found.push(Found::new(&file, Err(problem), Some(path)));
            }
            _ => {}
        }
    }
    found
}

fn read_one<T: CatalogueFile>(file: &str, path: &Path) -> Found<T> {
    let bytes = match read_bytes(path) {
        Ok(bytes) => bytes,
        Err(problem) => return Found::new(file, Err(problem), Some(path.to_path_buf())),
    };
    let document = Document::from_bytes(file, &bytes);
    let broken = document.is_err();
    let mut found = Found::new(file, document, Some(path.to_path_buf()));
    if broken && let Some(id) = written_id(&bytes, T::PREFIX) {
        found.id = id;
    }
    found
}

/// The id that a file means which is not even YAML: its first line that begins with `id:`.
fn written_id(bytes: &[u8], prefix: &str) -> Option<String> {
    let text = String::from_utf8_lossy(bytes);
    let line = text.lines().find_map(|line| line.strip_prefix("id:"))?;
    let id = line.split('#').next()?.trim().trim_matches(['"', '\'']);
    is_plain_id(id, prefix).then(|| id.to_owned())
}
