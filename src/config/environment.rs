//! The environment as an argument.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::PathBuf;

use crate::domain::error::{Code, Error};

/// Environment variables. An empty one counts as not set.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Environment {
    variables: BTreeMap<OsString, OsString>,
}

impl Environment {
    /// The process's own. The only place that reads it.
    pub fn from_process() -> Self {
        Self { variables: std::env::vars_os().collect() }
    }

    /// From names and values.
    pub fn from_pairs<N: Into<OsString>, V: Into<OsString>>(
        pairs: impl IntoIterator<Item = (N, V)>,
    ) -> Self {
        Self {
            variables: pairs.into_iter().map(|(name, value)| (name.into(), value.into())).collect(),
        }
    }

    /// A variable's text; `None` when it is not set, empty, or not UTF-8.
    pub fn text(&self, name: &str) -> Option<&str> {
        self.raw(name)?.to_str()
    }

    /// Refuses variables that are set to something else than text: ignoring one would act as somebody else, or
    /// somewhere else, than was meant.
    ///
    /// Errors: `usage`, naming the variable.
    pub fn check_text(&self, names: &[&str]) -> Result<(), Error> {
        let odd =
            names.iter().find(|name| self.raw(name).is_some_and(|value| value.to_str().is_none()));
        odd.map_or(Ok(()), |name| {
            Err(Error::new(Code::Usage, format!("{name} is not UTF-8"))
                .hint(format!("set {name} to plain text")))
        })
    }

    /// A variable as a path, in any encoding; `None` when it is not set or empty.
    pub fn path(&self, name: &str) -> Option<PathBuf> {
        self.raw(name).map(PathBuf::from)
    }

    /// The home directory; `None` when `HOME` is not set, empty or relative.
    pub fn home(&self) -> Option<PathBuf> {
        self.path("HOME").filter(|home| home.is_absolute())
    }

    fn raw(&self, name: &str) -> Option<&OsString> {
        self.variables.get(std::ffi::OsStr::new(name)).filter(|value| !value.is_empty())
    }
}

impl std::fmt::Debug for Environment {
    /// The names only: values may be secrets.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_set().entries(self.variables.keys()).finish()
    }
}
