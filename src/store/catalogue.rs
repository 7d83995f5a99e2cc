//! The catalogue of profiles and extension manifests: built in, then the operator's.
//!
//! An operator's file with the id of a built-in one takes its place. A broken file makes its own id unusable and
//! nothing else: it is listed with what is wrong. It never falls back to the built-in one, which would run another
//! profile than the operator wrote.

mod builtin;
mod entry;
mod files;
mod merge;

use std::collections::BTreeSet;
use std::path::Path;

use crate::domain::error::{Code, Error};
use crate::domain::manifest::{ExtensionKind, ExtensionManifest};
use crate::domain::problem::{FieldProblem, ParseProblem, shown};
use crate::domain::profile::{ExtensionUse, Profile};
use crate::domain::text::nearest;
use crate::yaml::{self, Document};

pub(crate) use entry::Entry;
use files::{CatalogueFile, Found};

/// A profile as it is listed.
pub type ProfileEntry = Entry<Profile>;
/// An extension's manifest as it is listed.
pub type ManifestEntry = Entry<ExtensionManifest>;

/// Kind of file that `profiles validate` found.
#[derive(Debug, Clone, PartialEq)]
pub enum Validated {
    Profile(Box<ProfileEntry>),
    /// An extension's manifest.
    Manifest(Box<ManifestEntry>),
}

/// The profiles and manifests that this process works with.
#[derive(Debug, Clone, Default)]
pub struct Catalogue {
    /// Ids of the extensions that this build implements.
    available: BTreeSet<String>,
    profiles: Vec<ProfileEntry>,
    extensions: Vec<ManifestEntry>,
}

impl Catalogue {
    /// Reads the built-in files and the operator's directories; a directory that is missing is empty. `available`
    /// are the ids of the extensions that this build implements. Never fails: what is wrong is on its entry.
    pub fn load(
        profiles_dir: Option<&Path>,
        extensions_dir: Option<&Path>,
        available: &BTreeSet<&str>,
    ) -> Self {
        let extensions = merge::merge(
            builtin::manifests(),
            files::read_dir::<ExtensionManifest>(extensions_dir),
        );
        let profiles = merge::merge(builtin::profiles(), files::read_dir::<Profile>(profiles_dir));
        let available = available.iter().map(|id| (*id).to_owned()).collect();
        let mut catalogue = Self { available, ..Self::default() };
        catalogue.extensions =
            extensions.into_iter().map(|found| catalogue.manifest_entry(found)).collect();
        catalogue.profiles =
            profiles.into_iter().map(|found| catalogue.profile_entry(found)).collect();
        catalogue
    }

    /// Every profile: the built-in ones in their order, then the operator's by id; broken ones among them.
    pub fn profiles(&self) -> &[ProfileEntry] {
        &self.profiles
    }

    /// Every extension, in the same order.
    pub fn extensions(&self) -> &[ManifestEntry] {
        &self.extensions
    }

    /// The profile with this id, with or without `profile.`.
    ///
    /// Errors: `not_found` with the nearest id; `invalid_profile` with file, line and column when its file is broken.
    pub fn profile(&self, id: &str) -> Result<&ProfileEntry, Error> {
        find(&self.profiles, "profile", "profile.", id)
    }

    /// The profile of a profile, to be used as it is.
    ///
    /// Errors: as [`Catalogue::profile`]; `unsupported` when this build cannot make it.
    pub fn usable_profile(&self, id: &str) -> Result<&Profile, Error> {
        let entry = self.profile(id)?;
        entry.ensure_available()?;
        entry.definition()
    }

    /// The extension with this id, with or without `ext.`.
    ///
    /// Errors: as [`Catalogue::profile`].
    pub fn extension(&self, id: &str) -> Result<&ManifestEntry, Error> {
        find(&self.extensions, "extension", "ext.", id)
    }

    /// Every workspace root that a profile names (`config.root`): inventory and adopt read them beside the host's.
    pub fn workspace_roots(&self) -> BTreeSet<String> {
        let profiles = self.profiles.iter().filter_map(|entry| entry.definition.as_ref());
        profiles
            .flat_map(Profile::uses)
            .filter_map(|used| Some(used.config.get("root")?.as_str()?.to_owned()))
            .collect()
    }

    /// Checks one file as the catalogue would: a manifest if it looks like one, else a profile, whose
    /// extension is looked up here. One of the operator's directories is also held against the others there.
    ///
    /// Errors: everything that is wrong with it.
    pub fn validate_file(&self, path: &Path) -> Result<Validated, Vec<ParseProblem>> {
        let document = yaml::read_document(path).map_err(|problem| vec![problem])?;
        // A profile names its extension; a manifest with a misspelt id is still a manifest.
        let manifest = document.text("id").is_some_and(|id| id.starts_with("ext."))
            || (document.text("kind").is_some() && document.text("extension").is_none());
        if manifest {
            let entry = self.manifest_entry(Found::operator(path, &document));
            let problems = problems_of(&entry, &self.extensions, path);
            if problems.is_empty() {
                Ok(Validated::Manifest(Box::new(entry)))
            } else {
                Err(problems)
            }
        } else {
            let entry = self.profile_entry(Found::operator(path, &document));
            let problems = problems_of(&entry, &self.profiles, path);
            if problems.is_empty() {
                Ok(Validated::Profile(Box::new(entry)))
            } else {
                Err(problems)
            }
        }
    }

    /// Makes a manifest's entry.
    fn manifest_entry(&self, found: Found<ExtensionManifest>) -> ManifestEntry {
        let reason = found.definition.as_ref().and_then(|manifest| match manifest.kind {
            ExtensionKind::Builtin if self.available.contains(manifest.id.as_str()) => None,
            ExtensionKind::Process => Some(format!(
                "{} is a process extension, which this build cannot run yet",
                manifest.id
            )),
            _ => Some(format!("{} is not part of this build", manifest.id)),
        });
        found.entry(reason)
    }

    /// Checks a profile against the extensions, and makes its entry.
    fn profile_entry(&self, mut found: Found<Profile>) -> ProfileEntry {
        let mut fields = Vec::new();
        let mut unavailable = Vec::new();
        for used in found.definition.iter().flat_map(Profile::uses) {
            match self.used(&used) {
                Ok((entry, manifest)) => {
                    fields.extend(manifest.check_config(&used.config_path, &used.config));
                    unavailable.push(entry.unavailable.clone());
                }
                Err(problem) => fields.push(problem),
            }
        }
        found.add(fields);
        // Its own extension comes first, and makes nothing where there are candidates.
        let makers = if unavailable.len() > 1 { &unavailable[1..] } else { &unavailable };
        let missing = makers.iter().all(Option::is_some);
        let unavailable = makers.iter().flatten().next().filter(|_| missing).cloned();
        let mut entry = found.entry(unavailable);
        entry.hash = entry.definition.as_ref().map(Profile::hash);
        entry
    }

    /// The extension that a profile uses.
    fn used(
        &self,
        used: &ExtensionUse<'_>,
    ) -> Result<(&ManifestEntry, &ExtensionManifest), FieldProblem> {
        let id = used.extension.as_str();
        let Some(entry) = self.extensions.iter().find(|entry| entry.id == id) else {
            let message = format!("there is no extension {}", shown(id));
            let ids = self.extensions.iter().map(|entry| entry.id.as_str());
            return Err(FieldProblem::new(&used.path, message).near(id, ids));
        };
        entry.definition.as_ref().map(|manifest| (entry, manifest)).ok_or_else(|| {
            let first = entry.problems.first().map(ToString::to_string).unwrap_or_default();
            FieldProblem::new(
                &used.path,
                format!("the manifest of {} is broken: {first}", shown(id)),
            )
        })
    }
}

/// Problems of a file by itself, else with its place among those that are listed.
fn problems_of<T>(alone: &Entry<T>, listed: &[Entry<T>], path: &Path) -> Vec<ParseProblem> {
    if !alone.problems.is_empty() {
        return alone.problems.clone();
    }
    let Ok(path) = std::fs::canonicalize(path) else { return Vec::new() };
    let is_this = |entry: &&Entry<T>| {
        let listed = entry.path.as_ref().and_then(|listed| std::fs::canonicalize(listed).ok());
        listed.is_some_and(|listed| listed == path)
    };
    listed.iter().find(is_this).map(|entry| entry.problems.clone()).unwrap_or_default()
}

/// Entry of an id, the prefix optional.
fn find<'e, T>(
    entries: &'e [Entry<T>],
    noun: &str,
    prefix: &str,
    id: &str,
) -> Result<&'e Entry<T>, Error> {
    let whole = format!("{prefix}{id}");
    let by_id = |wanted: &str| entries.iter().find(|entry| entry.id == wanted);
    // A file so broken that its id cannot be read is meant by its name.
    let by_file = || {
        let bare = id.strip_prefix(prefix).unwrap_or(id);
        let mut broken = entries.iter().filter(|entry| !entry.problems.is_empty());
        broken.find(|entry| {
            entry.id.strip_suffix(".yaml").is_some_and(|stem| stem == bare || stem == id)
        })
    };
    let entry = by_id(id).or_else(|| by_id(&whole)).or_else(by_file);
    if let Some(entry) = entry {
        entry.definition()?;
        return Ok(entry);
    }
    let error =
        Error::new(Code::NotFound, format!("there is no {noun} {}", shown(id))).detail("id", id);
    let ids = || entries.iter().map(|entry| entry.id.as_str());
    let bare = ids().filter_map(|id| id.strip_prefix(prefix));
    let near = nearest(id, ids())
        .map(str::to_owned)
        .or_else(|| nearest(id, bare).map(|near| format!("{prefix}{near}")));
    Err(match near {
        Some(near) => error.hint(format!("did you mean {near}?")),
        None => error.hint(format!("sandboxer {noun}s list")),
    })
}

impl CatalogueFile for Profile {
    const PREFIX: &'static str = "profile.";

    fn read(document: &Document) -> Result<Self, Vec<ParseProblem>> {
        yaml::profile(document)
    }

    fn id(&self) -> &str {
        self.id.as_str()
    }
}

impl CatalogueFile for ExtensionManifest {
    const PREFIX: &'static str = "ext.";

    fn read(document: &Document) -> Result<Self, Vec<ParseProblem>> {
        yaml::manifest(document)
    }

    fn id(&self) -> &str {
        self.id.as_str()
    }
}

#[cfg(test)]
mod tests;
