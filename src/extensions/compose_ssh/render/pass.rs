//! Rendering under way: what every part of it is handed.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::error::RenderError;
use super::findings::Findings;
use super::input::RenderInput;
use super::interpolate::Variables;
use super::load::Loader;
use super::paths::Target;
use crate::domain::profile::Allowance;

/// Rendering under way.
pub(super) struct Pass<'a> {
    pub input: &'a RenderInput<'a>,
    pub loader: Loader<'a>,
    pub variables: Variables,
    pub images: BTreeSet<String>,
    pub sources: BTreeSet<String>,
    /// Files beside the rendered one, by name.
    pub secrets: BTreeMap<String, String>,
    /// Paths that the engine looks up when a container starts, relative to the workspace.
    pub mounted: BTreeSet<String>,
    /// Paths that a container can write, relative to the workspace, and where the file says so.
    pub writable: Vec<(String, String)>,
}

impl<'a> Pass<'a> {
    pub(super) fn new(
        input: &'a RenderInput<'a>,
        loader: Loader<'a>,
        variables: Variables,
    ) -> Self {
        Self {
            input,
            loader,
            variables,
            images: BTreeSet::new(),
            sources: BTreeSet::new(),
            secrets: BTreeMap::new(),
            mounted: BTreeSet::new(),
            writable: Vec::new(),
        }
    }

    pub(super) fn findings(&mut self) -> &mut Findings {
        self.loader.findings
    }

    /// Refuses at `path` unless the profile permits `allow`; is it permitted?
    pub(super) fn guard(
        &mut self,
        allow: Allowance,
        path: &str,
        message: impl Into<String>,
    ) -> bool {
        let permitted = self.input.compose.allow.contains(&allow);
        if !permitted {
            self.findings().refuse(path, Some(allow), message);
        }
        permitted
    }

    pub(super) fn locate(&self, anchored: &str) -> Result<Target, RenderError> {
        self.loader
            .workspace
            .locate(anchored)
            .map_err(|source| RenderError::Unreadable { file: anchored.to_owned(), source })
    }

    pub(super) fn labels(&self) -> [(String, Value); 3] {
        [
            ("sandboxer.id", self.input.sandbox_id),
            ("sandboxer.owner", self.input.owner),
            ("sandboxer.profile", self.input.profile_id),
        ]
        .map(|(name, value)| (name.to_owned(), value.into()))
    }

    /// The name of an image that the sandbox builds. The service is the tag, which takes whatever a service may be called: in
    /// `sbx-a-b-c` nobody can tell where the id ends, and a repository's name has no capitals.
    pub(super) fn image_of(&self, service: &str) -> String {
        format!("sbx-{}-built:{service}", self.input.sandbox_id)
    }
}
