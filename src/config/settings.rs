//! Settings: everything an operator can set, as it was read.

use super::paths::Paths;
use super::sections::{Dashboard, ServeSettings, StateHub, SweepSettings};
use crate::domain::error::{Code, Error};
use crate::domain::host::HostSpec;
use crate::domain::name::{HostName, ProfileId};
use crate::domain::problem::problems_error;
use crate::domain::secret::Secret;
use crate::domain::stale::StaleSettings;
use crate::domain::undo::UndoSettings;
use crate::yaml::Document;

/// Everything an operator can set.
#[derive(Debug, Clone)]
pub struct Config {
    /// Where files are.
    pub paths: Paths,
    /// The hosts in the file's order; `local` is always among them, first if the file does not name it.
    pub hosts: Vec<HostSpec>,
    /// Where a sandbox goes when nothing else is said.
    pub default_host: HostName,
    /// Profile of a create that names none.
    pub default_profile: ProfileId,
    /// Receivers of every event.
    pub state_hub: Option<StateHub>,
    /// Undo snapshots.
    pub undo: UndoSettings,
    /// When something is stale.
    pub stale: StaleSettings,
    /// The sweep of a dashboard or server.
    pub sweep: SweepSettings,
    /// The HTTP server.
    pub serve: ServeSettings,
    pub dashboard: Dashboard,
    /// The host of `SANDBOXER_HOST`, stronger than a profile's list and weaker than `--host`.
    pub requested_host: Option<HostName>,
    /// The compose command of `SANDBOXER_COMPOSE_CMD`, weaker than a host's `compose_cmd`.
    pub compose_cmd: Option<String>,
    /// Actor from `--actor` or `SANDBOXER_ACTOR`, as written.
    pub actor: Option<String>,
    /// The name of the account, for the default actor `adm:<user>`.
    pub user: Option<String>,
    /// The filter of the log, from `SANDBOXER_LOG`.
    pub log_filter: Option<String>,
    /// Bearer token of the State Hub, from the variable that `state_hub.token_env` names.
    pub hub_token: Option<Secret>,
    /// The file, for problems that only a later layer can see; `None` when there is none.
    pub(super) document: Option<Document>,
}

impl Config {
    /// The host with this name, without regard to case; `None` if the file does not name it.
    pub fn host(&self, name: &str) -> Option<&HostSpec> {
        self.hosts.iter().find(|host| host.name.same(name))
    }

    /// A error about a value of the file that only a later layer can judge, such as `dashboard.keys.destroy`: with
    /// file, line and column where the file has that key.
    pub fn error_at(&self, path: &str, message: &str) -> Error {
        match &self.document {
            Some(document) => {
                problems_error(Code::InvalidConfig, &[document.problem(path, message)])
            }
            None => Error::new(Code::InvalidConfig, message),
        }
    }
}
