//! Child processes: begun here alone, so that no secret of ours is in the environment of what we start.
//!
//! A child of `local` runs what sandboxes bring: services' scripts, patches, commands of `exec`. ssh hands variables on
//! (`SendEnv`), and everything else has no use for them.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::process::Command;
use std::sync::{Mutex, PoisonError};

/// Variable that holds a secret, whatever the configuration says.
const TOKEN: &str = "SANDBOXER_TOKEN";

static SECRET_VARIABLES: Mutex<BTreeSet<String>> = Mutex::new(BTreeSet::new());

/// Keeps a variable out of the environment of every child from now on: it holds a secret.
pub(crate) fn withhold(variable: &str) {
    let mut variables = SECRET_VARIABLES.lock().unwrap_or_else(PoisonError::into_inner);
    variables.insert(variable.to_owned());
}

/// A program that is to be a child process, with the environment of this one but for its secrets.
pub(crate) fn child(program: impl AsRef<OsStr>) -> Command {
    let mut command = Command::new(program);
    command.env_remove(TOKEN);
    for variable in SECRET_VARIABLES.lock().unwrap_or_else(PoisonError::into_inner).iter() {
        command.env_remove(variable);
    }
    command
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_child_has_no_variable_that_is_withheld() {
        withhold("SBX_TEST_SECRET");
        let command = child("true");
        let gone: Vec<_> =
            command.get_envs().filter(|(_, value)| value.is_none()).map(|(name, _)| name).collect();
        assert!(gone.contains(&OsStr::new("SBX_TEST_SECRET")), "{gone:?}");
        assert!(gone.contains(&OsStr::new(TOKEN)), "{gone:?}");
    }
}
