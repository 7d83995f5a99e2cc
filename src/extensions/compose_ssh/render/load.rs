//! From a file's name to one project: reads, interpolates, anchors, and resolves `extends` and `include`.

use std::collections::HashMap;

use serde_json::{Map, Value};

use super::document::{self, Document, child};
use super::dotenv;
use super::findings::Findings;
use super::interpolate::{self, Variables};
use super::merge;
use super::paths::{Target, Workspace, normalize, parent};
use super::tree::Entry;
use super::{RenderError, anchor};

/// Most files one project is made of, and the longest chain of `extends` or `include`.
const MAX_FILES: usize = 32;
pub(super) const MAX_CHAIN: usize = 16;
/// What all files of a project may have together, in bytes, each counted as often as it is read.
const MAX_TOTAL: usize = 8 * document::MAX_BYTES;

/// Names compose looks for, best first.
pub(super) const DEFAULT_NAMES: [&str; 4] =
    ["compose.yaml", "compose.yml", "docker-compose.yml", "docker-compose.yaml"];

/// Names compose lays over those when no file is named.
const OVERRIDE_NAMES: [&str; 4] =
    ["compose.override.yaml", "compose.override.yml", "docker-compose.override.yml", "docker-compose.override.yaml"];

fn beside(folder: &str, name: &str) -> String {
    if folder.is_empty() { name.to_owned() } else { format!("{folder}/{name}") }
}

/// Reads files into a project.
pub(super) struct Loader<'a> {
    pub workspace: &'a Workspace<'a>,
    pub findings: &'a mut Findings,
    pub bind_allowed: bool,
    /// Every file read so far.
    pub documents: Vec<Document>,
    /// Services of each file, interpolated and anchored, `extends` not yet resolved.
    files: HashMap<String, Map<String, Value>>,
    /// The files that include each other on the way to the one being read.
    pub including: Vec<String>,
    /// Bytes that may still be read.
    left: usize,
}

/// A file that was found and may be read, or the reason why not.
enum Found {
    Bytes(String, Vec<u8>),
    Missing(String),
    Refused(String),
}

impl<'a> Loader<'a> {
    pub(super) fn new(workspace: &'a Workspace<'a>, findings: &'a mut Findings, bind_allowed: bool) -> Self {
        Self {
            workspace,
            findings,
            bind_allowed,
            documents: Vec::new(),
            files: HashMap::new(),
            including: Vec::new(),
            left: MAX_TOTAL,
        }
    }

    /// The main file as a project without `extends` and `include`.
    pub(super) fn main(&mut self, file: &str, variables: &Variables) -> Result<Map<String, Value>, RenderError> {
        let plain = normalize(file);
        if file.starts_with('/') || plain.is_empty() || plain.starts_with("..") || file.chars().any(char::is_control) {
            return Err(RenderError::Outside {
                file: file.escape_debug().to_string(),
                why: "is no path inside the workspace".to_owned(),
            });
        }
        match self.find(&self.workspace.absolute(&plain))? {
            Found::Bytes(_, bytes) => self.project(&plain, &bytes, parent(&plain), variables),
            Found::Refused(why) => Err(RenderError::Outside { file: plain, why }),
            Found::Missing(_) => Err(RenderError::Missing { near: self.nearest(parent(&plain)), file: plain }),
        }
    }

    /// A compose file that does exist in the same folder.
    fn nearest(&self, folder: &str) -> Option<String> {
        DEFAULT_NAMES.iter().map(|name| beside(folder, name)).find(|name| self.is_file(name))
    }

    /// Says that an override file is left alone, which compose reads only where no file is named.
    pub(super) fn mention_override(&mut self, file: &str) {
        let plain = normalize(file);
        let folder = parent(&plain);
        if DEFAULT_NAMES.iter().any(|name| beside(folder, name) == plain) {
            let names = OVERRIDE_NAMES.iter().map(|name| beside(folder, name));
            let there: Vec<_> = names.filter(|name| self.is_file(name)).collect();
            for name in there {
                self.findings.rewrite(&name, "is not read: a sandbox starts the named compose file alone");
            }
        }
    }

    fn is_file(&self, relative: &str) -> bool {
        matches!(self.workspace.follow(relative), Ok(Target::Inside(_, Entry::File)))
    }

    fn find(&mut self, anchored: &str) -> Result<Found, RenderError> {
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

    /// As [`Self::find`] for a file that another one names: what cannot be read becomes a refusal at `path`.
    pub(super) fn named(&mut self, anchored: &str, path: &str) -> Result<Option<(String, Vec<u8>)>, RenderError> {
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
                self.findings.refuse(path, None, format!("`{anchored}` {why}; copy it into the workspace"));
            }
        }
        Ok(None)
    }

    /// Does an anchored path lead out of the workspace?
    pub(super) fn leads_out(&self, anchored: &str) -> Result<bool, RenderError> {
        let unreadable = |source| RenderError::Unreadable { file: anchored.to_owned(), source };
        Ok(matches!(self.workspace.locate(anchored).map_err(unreadable)?, Target::Outside(_)))
    }

    /// As [`Self::named`], but the file need not be there.
    pub(super) fn optional(&mut self, anchored: &str, path: &str) -> Result<Option<(String, Vec<u8>)>, RenderError> {
        match self.find(anchored)? {
            Found::Missing(_) => Ok(None),
            _ => self.named(anchored, path),
        }
    }

    fn parse(&mut self, file: &str, bytes: &[u8], variables: &Variables) -> Result<Map<String, Value>, RenderError> {
        if self.documents.len() >= MAX_FILES {
            return Err(RenderError::TooLarge {
                file: file.to_owned(),
                message: format!("the project has more than {MAX_FILES} files; use fewer"),
            });
        }
        let mut document = document::parse(file, bytes)?;
        let Value::Object(mut root) = document.value.take() else {
            let what = if bytes.iter().all(u8::is_ascii_whitespace) { "it is empty" } else { "it is not a mapping" };
            let message = format!("{what}; a compose file starts with `services:`");
            return Err(RenderError::NotYaml { file: file.to_owned(), message, place: None });
        };
        root.retain(|key, _| !key.starts_with("x-"));
        let project = interpolate::interpolate(Value::Object(root), variables, self.findings);
        self.findings.locate(std::slice::from_ref(&document));
        self.documents.push(document);
        match project {
            Value::Object(project) => Ok(project),
            _ => Ok(Map::new()),
        }
    }

    pub(super) fn project(
        &mut self,
        file: &str,
        bytes: &[u8],
        base: &str,
        variables: &Variables,
    ) -> Result<Map<String, Value>, RenderError> {
        let mut project = self.parse(file, bytes, variables)?;
        let services = section(&mut project, "services", self.findings);
        anchor::resources(&mut project, base, self.workspace);
        let names: Vec<String> = services.keys().cloned().collect();
        self.keep(file, services, base);
        let mut resolved = Map::new();
        for name in names {
            if let Some(service) = self.service(file, &name, variables, &mut Vec::new())? {
                resolved.insert(name, Value::Object(service));
            }
        }
        project.insert("services".to_owned(), Value::Object(resolved));
        if let Some(include) = project.shift_remove("include") {
            self.including.push(file.to_owned());
            for (index, item) in merge::list(include).into_iter().enumerate() {
                self.include(&mut project, item, &format!("include[{index}]"), base, variables)?;
            }
            self.including.pop();
        }
        Ok(project)
    }

    fn keep(&mut self, file: &str, mut services: Map<String, Value>, base: &str) {
        for service in services.values_mut().filter_map(Value::as_object_mut) {
            anchor::service(service, base, self.workspace);
            if let Some(extends) = service.get_mut("extends").and_then(Value::as_object_mut)
                && let Some(Value::String(path)) = extends.get_mut("file")
            {
                *path = self.workspace.anchor(base, path);
            }
        }
        self.files.insert(file.to_owned(), services);
    }

    /// One service with everything it extends below it.
    fn service(
        &mut self,
        file: &str,
        name: &str,
        variables: &Variables,
        trail: &mut Vec<(String, String)>,
    ) -> Result<Option<Map<String, Value>>, RenderError> {
        let path = format!("services.{name}");
        let here = (file.to_owned(), name.to_owned());
        if trail.contains(&here) || trail.len() > MAX_CHAIN {
            self.findings.refuse(
                &path,
                None,
                "`extends` goes in a circle or through too many services; shorten the chain",
            );
            return Ok(None);
        }
        let mut service = match self.files.get(file).and_then(|services| services.get(name)) {
            Some(Value::Object(service)) => service.clone(),
            Some(Value::Null) => Map::new(),
            Some(_) => {
                self.findings.refuse(&path, None, "a service is a mapping; give it at least `image:` or `build:`");
                return Ok(None);
            }
            None => {
                let from = trail.last().map_or(path.clone(), |(_, name)| format!("services.{name}.extends"));
                self.findings.refuse(&from, None, format!("there is no service `{name}` in {file}"));
                return Ok(None);
            }
        };
        let Some(extends) = service.shift_remove("extends") else { return Ok(Some(service)) };
        let extends_path = child(&path, "extends");
        let Some((other, parent_name)) = self.extended(&extends, file, &extends_path, variables)? else {
            return Ok(Some(service));
        };
        trail.push(here);
        let base = self.service(&other, &parent_name, variables, trail)?;
        trail.pop();
        Ok(Some(merge::services(base.unwrap_or_default(), service)))
    }

    /// The file and the name that an `extends` means; the file is read if it was not yet.
    fn extended(
        &mut self,
        extends: &Value,
        file: &str,
        path: &str,
        variables: &Variables,
    ) -> Result<Option<(String, String)>, RenderError> {
        let name = extends.as_str().or_else(|| extends.get("service").and_then(Value::as_str));
        let Some(name) = name.map(str::to_owned) else {
            self.findings.refuse(path, None, "name the service to extend: `extends: {service: NAME}`");
            return Ok(None);
        };
        let Some(anchored) = extends.get("file").and_then(Value::as_str) else {
            return Ok(Some((file.to_owned(), name)));
        };
        let Some((other, bytes)) = self.named(anchored, &child(path, "file"))? else { return Ok(None) };
        if !self.files.contains_key(&other) {
            let mut project = self.parse(&other, &bytes, variables)?;
            let services = section(&mut project, "services", self.findings);
            self.keep(&other, services, parent(&other));
        }
        Ok(Some((other, name)))
    }

    /// The variables of a `.env` that need not exist.
    pub(super) fn environment_file(&mut self, relative: &str, outer: &Variables) -> Result<Variables, RenderError> {
        match self.find(&self.workspace.absolute(relative))? {
            Found::Bytes(file, bytes) => self.entries(&file, &bytes, outer),
            Found::Missing(_) => Ok(Variables::new()),
            Found::Refused(why) => {
                self.findings.refuse(relative, None, format!("{why}; put a regular file there"));
                Ok(Variables::new())
            }
        }
    }

    pub(super) fn entries(&mut self, file: &str, bytes: &[u8], outer: &Variables) -> Result<Variables, RenderError> {
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
pub(super) fn section(project: &mut Map<String, Value>, name: &str, findings: &mut Findings) -> Map<String, Value> {
    match project.shift_remove(name) {
        Some(Value::Object(map)) => map,
        None | Some(Value::Null) => Map::new(),
        Some(_) => {
            findings.refuse(
                name,
                None,
                format!("`{name}` is a mapping from names to definitions; write `{name}: {{NAME: ...}}`"),
            );
            Map::new()
        }
    }
}
