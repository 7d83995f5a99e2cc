//! The host as the renderer knows it.

use crate::domain::compose_host::{ComposeHost, TakenSubnet};

use super::dialect::Dialect;

/// Host as the renderer is told of it. The default is what can be said without one: Docker's own compose, an engine
/// that keeps builds in, and no routes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HostContext {
    /// Dialect of its compose.
    pub dialect: Dialect,
    /// Whether podman runs the containers, and not Docker.
    pub podman: bool,
    /// Why a build may get out of the sandbox there, as the beginning of a sentence; none where its builder keeps it in.
    pub builds_escape: Option<String>,
    /// Addresses that lead somewhere there; none where that is not known.
    pub taken: Option<Vec<TakenSubnet>>,
}

impl From<&ComposeHost> for HostContext {
    fn from(host: &ComposeHost) -> Self {
        Self {
            dialect: Dialect::of(&host.runtime),
            podman: host.runtime.is_podman(),
            builds_escape: host.runtime.builds_escape(),
            taken: host.taken.clone(),
        }
    }
}
