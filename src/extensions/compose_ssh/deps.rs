//! Dependencies of the verbs: the ways to hosts, and what the operator and the clock say.

use std::sync::Arc;

use crate::domain::error::Error;
use crate::domain::name::HostName;
use crate::domain::profile::Profile;
use crate::domain::time::Time;
use crate::transport::{Transport, Transports};

/// Dependencies that the extension holds for its verbs.
pub(super) struct Deps {
    pub(super) transports: Arc<dyn Transports>,
    /// `SANDBOXER_COMPOSE_CMD`; a host's own `compose_cmd` goes first.
    pub(super) compose_cmd: Option<String>,
    pub(super) now: fn() -> Time,
}

impl Deps {
    /// An open way to a host.
    pub(super) async fn open(&self, host: &HostName) -> Result<Arc<dyn Transport>, Error> {
        self.transports.open(host).await
    }

    /// [`Deps::open`], for who only attaches: nothing is connected yet.
    pub(super) async fn way(&self, host: &HostName) -> Result<Arc<dyn Transport>, Error> {
        self.transports.open_lazily(host).await
    }
}

/// Whether the profile makes a workspace and starts nothing.
pub(super) fn workspace_only(profile: &Profile) -> bool {
    profile.config["workspace_only"] == true
}
