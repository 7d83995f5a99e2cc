//! Configuration: a file, then the environment, then flags; the stronger one last.
//!
//! The process's environment is read in one place, [`Environment::from_process`]; everything else gets it as an
//! argument. The file is strict: an unknown key is an error with its line, column and the nearest known name.

mod environment;
mod paths;
mod read;
mod sections;
mod terminal;

pub use environment::Environment;
pub use paths::{Overrides, Paths};
pub use sections::{Dashboard, Notify, ServeSettings, StateHub, SweepSettings, Theme};
pub use terminal::{Colours, Terminal};

use crate::domain::child_process;
use crate::domain::error::{Code, Error};
use crate::domain::host::HostSpec;
use crate::domain::name::{HostName, ProfileId};
use crate::domain::recipe_yaml::{Document, problems_fault};
use crate::domain::secret::Secret;
use crate::domain::stale::StaleSettings;
use crate::domain::undo::UndoSettings;

/// Everything an operator can set.
#[derive(Debug, Clone)]
pub struct Config {
    /// Where files are.
    pub paths: Paths,
    /// The hosts in the file's order; `local` is always among them, first if the file does not name it.
    pub hosts: Vec<HostSpec>,
    /// Where a sandbox goes when nothing else is said.
    pub default_host: HostName,
    /// What a create without a profile makes.
    pub default_profile: ProfileId,
    /// Who hears of every event.
    pub state_hub: Option<StateHub>,
    /// Undo snapshots.
    pub undo: UndoSettings,
    /// When something is stale.
    pub stale: StaleSettings,
    /// The sweep of a dashboard or server.
    pub sweep: SweepSettings,
    /// The HTTP server.
    pub serve: ServeSettings,
    /// The dashboard.
    pub dashboard: Dashboard,
    /// The host of `SANDBOXER_HOST`, stronger than a profile's list and weaker than `--host`.
    pub requested_host: Option<HostName>,
    /// The compose command of `SANDBOXER_COMPOSE_CMD`, weaker than a host's `compose_cmd`.
    pub compose_cmd: Option<String>,
    /// Who acts, from `--actor` or `SANDBOXER_ACTOR`, as written.
    pub actor: Option<String>,
    /// The name of the account, for the default actor `adm:<user>`.
    pub user: Option<String>,
    /// The filter of the log, from `SANDBOXER_LOG`.
    pub log_filter: Option<String>,
    /// Bearer token of the State Hub, from the variable that `state_hub.token_env` names.
    pub hub_token: Option<Secret>,
    /// The file, for problems that only a later layer can see; `None` when there is none.
    document: Option<Document>,
}

impl Config {
    /// Reads the configuration. The default file may be missing; one that was named may not.
    ///
    /// Errors: `invalid_config`, with file, line and column of every problem in `details.problems`.
    pub fn load(overrides: &Overrides, environment: &Environment) -> Result<Self, Error> {
        let paths = Paths::resolve(overrides, environment)?;
        paths.check_named_directories()?;
        let document = paths.read_config_file()?;
        let mut config = read::read(paths, document)
            .map_err(|problems| problems_fault(Code::InvalidConfig, &problems))?;
        config.requested_host = read::requested_host(environment)?;
        environment.check_text(&[
            "SANDBOXER_HOST",
            "SANDBOXER_COMPOSE_CMD",
            "SANDBOXER_ACTOR",
            "SANDBOXER_LOG",
        ])?;
        config.compose_cmd = environment.text("SANDBOXER_COMPOSE_CMD").map(str::to_owned);
        config.actor = overrides
            .actor
            .clone()
            .or_else(|| environment.text("SANDBOXER_ACTOR").map(str::to_owned));
        config.user =
            environment.text("USER").or_else(|| environment.text("LOGNAME")).map(str::to_owned);
        config.log_filter = environment.text("SANDBOXER_LOG").map(str::to_owned);
        let token = config.state_hub.as_ref().and_then(|hub| hub.token_env.as_deref());
        config.hub_token = token.and_then(|name| environment.text(name)).map(Secret::new);
        if let Some(name) = token {
            child_process::withhold(name);
        }
        Ok(config)
    }

    /// The host with this name, without regard to case; `None` if the file does not name it.
    pub fn host(&self, name: &str) -> Option<&HostSpec> {
        self.hosts.iter().find(|host| host.name.same(name))
    }

    /// A fault about a value of the file that only a later layer can judge, such as `dashboard.keys.destroy`: with
    /// file, line and column where the file has that key.
    pub fn fault_at(&self, path: &str, message: &str) -> Error {
        match &self.document {
            Some(document) => {
                problems_fault(Code::InvalidConfig, &[document.problem(path, message)])
            }
            None => Error::new(Code::InvalidConfig, message),
        }
    }
}

#[cfg(test)]
mod tests;
