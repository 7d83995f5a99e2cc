//! Configuration: a file, then the environment, then flags; the stronger one last.
//!
//! The process's environment is read in one place, [`Environment::from_process`]; everything else gets it as an
//! argument. The file is strict: an unknown key is an error with its line, column and the nearest known name.

mod environment;
mod paths;
mod read;
mod sections;
mod settings;
mod terminal;

pub use environment::Environment;
pub use paths::Overrides;
pub(crate) use paths::Paths;
pub(crate) use sections::{Notify, StateHub};
pub use settings::Config;
pub(crate) use terminal::{Colours, Terminal};

use crate::domain::child_process;
use crate::domain::error::{Code, Error};
use crate::domain::problem::problems_error;
use crate::domain::secret::Secret;

impl Config {
    /// Reads the configuration. The default file may be missing; one that was named may not.
    ///
    /// Errors: `invalid_config`, with file, line and column of every problem in `details.problems`.
    pub fn load(overrides: &Overrides, environment: &Environment) -> Result<Self, Error> {
        let paths = Paths::resolve(overrides, environment)?;
        paths.check_named_directories()?;
        let document = paths.read_config_file()?;
        let mut config = read::read(paths, document)
            .map_err(|problems| problems_error(Code::InvalidConfig, &problems))?;
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
}

#[cfg(test)]
mod tests;
