//! Candidates of a profile: the extensions that it may come to use, and what it is for one of them.

use std::borrow::Cow;

use super::definition::{Placement, Profile, empty_object};
use super::routing::Candidate;
use crate::domain::name::ExtensionId;

/// Extension that a profile may come to use, and what it would be given.
#[derive(Debug, Clone, PartialEq)]
pub struct ExtensionUse<'p> {
    pub extension: &'p ExtensionId,
    /// Where the profile names it, such as `routing.candidates[1].extension`.
    pub path: String,
    /// Its `config`.
    pub config: Cow<'p, serde_json::Value>,
    /// Where the profile says so.
    pub config_path: String,
}

impl Profile {
    /// The profile's own extension, then its routes'.
    pub fn uses(&self) -> Vec<ExtensionUse<'_>> {
        let own = ExtensionUse {
            extension: &self.extension,
            path: "extension".to_owned(),
            config: Cow::Borrowed(&self.config),
            config_path: "config".to_owned(),
        };
        let routes = self.routing.candidates.iter().enumerate().map(|(at, candidate)| {
            let (config, config_path) = match &candidate.config {
                Some(config) => (Cow::Borrowed(config), format!("routing.candidates[{at}].config")),
                None if candidate.extension == self.extension => {
                    (own.config.clone(), own.config_path.clone())
                }
                None => (Cow::Owned(empty_object()), format!("routing.candidates[{at}]")),
            };
            let path = format!("routing.candidates[{at}].extension");
            ExtensionUse { extension: &candidate.extension, path, config, config_path }
        });
        let routes: Vec<_> = routes.collect();
        std::iter::once(own).chain(routes).collect()
    }

    /// Whether a sandbox of this profile may be an extension's.
    pub fn may_use(&self, extension: &ExtensionId) -> bool {
        self.uses().iter().any(|used| used.extension == extension)
    }

    /// Profile as its file says it, whichever candidate this is used for.
    pub fn as_written(&self) -> &Self {
        self.written.as_deref().unwrap_or(self)
    }

    /// Profile as one of its candidates uses it.
    #[must_use]
    pub fn for_candidate(&self, candidate: &Candidate) -> Self {
        let hosts =
            if candidate.hosts.is_empty() { &self.placement.hosts } else { &candidate.hosts };
        let config = match &candidate.config {
            Some(config) => config.clone(),
            None if candidate.extension == self.extension => self.config.clone(),
            None => empty_object(),
        };
        Self {
            extension: candidate.extension.clone(),
            placement: Placement { hosts: hosts.clone(), ..self.placement.clone() },
            config,
            written: Some(Box::new(self.as_written().clone())),
            ..self.clone()
        }
    }

    /// Profile as an extension uses it, by which a sandbox was made. Candidates of one extension have the same `config`, so this
    /// is known for good. As it is where no candidate is of that extension.
    #[must_use]
    pub fn for_extension(self, extension: &ExtensionId) -> Self {
        let written = self.as_written();
        match written.routing.candidates.iter().find(|one| one.extension == *extension) {
            Some(candidate) => written.for_candidate(candidate),
            None => self,
        }
    }
}
