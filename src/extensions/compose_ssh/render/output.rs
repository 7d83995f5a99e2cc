//! Output of a rendering.

use std::collections::BTreeMap;

use super::builds::BuildContext;
use super::pulls::Pull;
use super::services::ServicePlan;
use crate::domain::sandbox::Rewrite;

/// A compose file ready to start, and what is known about it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rendered {
    /// The file's text: JSON under a comment, which every YAML reader takes alike.
    pub yaml: String,
    /// The services that are started, in the file's order.
    pub services: Vec<ServicePlan>,
    /// Change that was made.
    pub rewrites: Vec<Rewrite>,
    /// Images that are pulled, sorted; built ones are not among them.
    pub images: Vec<String>,
    /// Whether a network asks for certain addresses, so that it matters which ones lead somewhere on the host.
    pub fixed_addresses: bool,
    /// Images that must be on the host before anything can be started or built.
    pub pulls: Vec<Pull>,
    /// Named volumes, as the file calls them, sorted.
    pub volumes: Vec<String>,
    /// Workspace-relative paths that the engine mounts or builds from, sorted. Containers can replace them by
    /// links: look again on the host before each start.
    pub sources: Vec<String>,
    /// Folders of this host that its images are built from.
    pub contexts: Vec<BuildContext>,
    /// Files that lie beside it, by name: secrets that are a variable's value.
    pub secrets: BTreeMap<String, String>,
    /// Variables that it was filled in with: whoever tells what a tool said of it masks these.
    pub variables: BTreeMap<String, String>,
}
