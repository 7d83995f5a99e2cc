//! Where files are: the XDG base directories on every Unix, then variables of ours, then flags.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use super::Environment;
use crate::domain::error::{Code, Error};
use crate::domain::problem::problems_error;
use crate::yaml::{Document, read_document};

/// Paths of flags; each is stronger than the environment and the file.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Overrides {
    /// `--config`
    pub config: Option<PathBuf>,
    /// `--profiles-dir`
    pub profiles_dir: Option<PathBuf>,
    /// `--extensions-dir`
    pub extensions_dir: Option<PathBuf>,
    /// `--data-dir`
    pub data_dir: Option<PathBuf>,
    /// `--log-file`
    pub log_file: Option<PathBuf>,
    /// `--actor`
    pub actor: Option<String>,
}

/// Where files are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Paths {
    /// `config.yaml`.
    pub config_file: PathBuf,
    /// Whether the configuration was named by flag or variable: then it must exist.
    pub config_named: bool,
    /// The operator's profiles.
    pub profiles_dir: PathBuf,
    /// Whether that directory was named by flag: then it must exist.
    pub profiles_named: bool,
    /// The operator's extension manifests.
    pub extensions_dir: PathBuf,
    /// Whether that directory was named by flag: then it must exist.
    pub extensions_named: bool,
    /// Records, events, credits.
    pub data_dir: PathBuf,
    pub log_file: PathBuf,
    /// The account of `ext.saas-stub`; `None` when nothing says where it would be.
    pub stub_dir: Option<PathBuf>,
    /// Sockets of this login (`XDG_RUNTIME_DIR`); `None` when there is none.
    pub runtime_dir: Option<PathBuf>,
    /// The home directory; `None` when it is not known.
    pub home: Option<PathBuf>,
}

impl Paths {
    /// Works out every path. Touches no file.
    ///
    /// Errors: `invalid_config` when a path depends on `HOME` and that is not set; it names the flags to use instead.
    pub fn resolve(overrides: &Overrides, environment: &Environment) -> Result<Self, Error> {
        let home = environment.home();
        // The specification says that a relative path is invalid and to be ignored.
        let base = |variable: &str, below_home: &str| {
            let own = environment.path(variable).filter(|path| path.is_absolute());
            own.or_else(|| home.as_ref().map(|home| home.join(below_home)))
                .map(|base| base.join("sandboxer"))
        };
        let config_dir = base("XDG_CONFIG_HOME", ".config");
        let named_config =
            overrides.config.clone().or_else(|| environment.path("SANDBOXER_CONFIG"));
        let named_data =
            overrides.data_dir.clone().or_else(|| environment.path("SANDBOXER_DATA_DIR"));
        let in_config = |name: &str| config_dir.as_ref().map(|dir| dir.join(name));

        let mut missing = Vec::new();
        let mut take = |flag: &'static str, path: Option<PathBuf>| {
            if path.is_none() {
                missing.push(flag);
            }
            path.unwrap_or_default()
        };
        let paths = Self {
            config_named: named_config.is_some(),
            config_file: take("--config", named_config.or_else(|| in_config("config.yaml"))),
            profiles_named: overrides.profiles_dir.is_some(),
            profiles_dir: take(
                "--profiles-dir",
                overrides.profiles_dir.clone().or_else(|| in_config("profiles")),
            ),
            extensions_named: overrides.extensions_dir.is_some(),
            extensions_dir: take(
                "--extensions-dir",
                overrides.extensions_dir.clone().or_else(|| in_config("extensions")),
            ),
            data_dir: take(
                "--data-dir",
                named_data.or_else(|| base("XDG_DATA_HOME", ".local/share")),
            ),
            log_file: take(
                "--log-file",
                overrides.log_file.clone().or_else(|| {
                    base("XDG_STATE_HOME", ".local/state").map(|dir| dir.join("sandboxer.log"))
                }),
            ),
            stub_dir: environment.path("SANDBOXER_STUB_DIR").or_else(|| {
                base("XDG_STATE_HOME", ".local/state").map(|dir| dir.join("saas-stub"))
            }),
            runtime_dir: environment.path("XDG_RUNTIME_DIR").filter(|path| path.is_absolute()),
            home,
        };
        if missing.is_empty() {
            return Ok(paths);
        }
        let problem = if environment.path("HOME").is_some() {
            "HOME is not an absolute path"
        } else {
            "HOME is not set"
        };
        Err(Error::new(
            Code::InvalidConfig,
            format!("{problem}, so it is not known where sandboxer's files are"),
        )
        .hint(format!("set HOME, or pass {}", missing.join(", "))))
    }

    /// Errors: `invalid_config` when a directory that a flag names is missing.
    pub(super) fn check_named_directories(&self) -> Result<(), Error> {
        let named = [
            ("--profiles-dir", &self.profiles_dir, self.profiles_named),
            ("--extensions-dir", &self.extensions_dir, self.extensions_named),
        ];
        for (flag, dir, _) in named.into_iter().filter(|(_, _, named)| *named) {
            if !dir.is_dir() {
                let message = format!("{flag} names {}, which is not a directory", dir.display());
                return Err(Error::new(Code::InvalidConfig, message)
                    .detail("path", dir.display().to_string()));
            }
        }
        Ok(())
    }

    /// The configuration file; `None` when it is missing and was not named.
    pub(super) fn read_config_file(&self) -> Result<Option<Document>, Error> {
        match std::fs::symlink_metadata(&self.config_file) {
            Err(error) if error.kind() == ErrorKind::NotFound && !self.config_named => {
                return Ok(None);
            }
            // ENOTDIR: a part of the default path is a file.
            Err(error) if error.kind() == ErrorKind::NotADirectory && !self.config_named => {
                return Ok(None);
            }
            Err(error) if error.kind() == ErrorKind::NotFound => {
                let message =
                    format!("the configuration file {} does not exist", self.config_file.display());
                return Err(Error::new(Code::InvalidConfig, message).because(error));
            }
            _ => {}
        }
        let document = read_document(&self.config_file)
            .map_err(|problem| problems_error(Code::InvalidConfig, &[problem]))?;
        Ok(Some(document))
    }

    /// A local path of the configuration: `~` is the home, a relative one stands beside the configuration file.
    ///
    /// Errors: one sentence, when it is another account's home, or the home is not known.
    pub fn expand(&self, text: &str) -> Result<PathBuf, String> {
        if let Some(rest) = text.strip_prefix('~') {
            let inner = match rest.strip_prefix('/') {
                Some(inner) => inner.trim_start_matches('/'),
                None if rest.is_empty() => "",
                None => {
                    return Err(format!(
                        "'{text}': another account's home is not looked up, write the whole path"
                    ));
                }
            };
            let home = self
                .home
                .as_ref()
                .ok_or_else(|| format!("'{text}' needs HOME, which is not set"))?;
            return Ok(if inner.is_empty() { home.clone() } else { home.join(inner) });
        }
        let beside = self.config_file.parent().unwrap_or_else(|| Path::new(""));
        Ok(beside.join(text))
    }
}
