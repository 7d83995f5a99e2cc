//! Input of a rendering.

use std::collections::BTreeMap;

use super::host::HostContext;
use crate::domain::profile::Compose;

/// Everything that decides what is rendered, beside the workspace.
#[derive(Clone, Copy, Debug)]
pub struct RenderInput<'a> {
    /// The sandbox's id, for labels, the project and image names.
    pub sandbox_id: &'a str,
    /// The installation's id, for the label.
    pub owner: &'a str,
    /// The profile's id, for the label.
    pub profile_id: &'a str,
    /// Absolute path of the workspace on the host.
    pub workdir: &'a str,
    /// The compose files, relative to the workspace, with commas between them; none: `COMPOSE_FILE` of `.env`, or the names that
    /// compose looks for.
    pub compose_file: Option<&'a str>,
    /// Rules of the profile: for published ports, and what it permits by name.
    pub compose: &'a Compose,
    /// Variables of the profile; they win over `.env`.
    pub variables: &'a BTreeMap<String, String>,
    pub host: &'a HostContext,
}
