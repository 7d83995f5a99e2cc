//! A host as the configuration describes it. What it is in truth (facts, inventory) is asked of the host.

use std::collections::BTreeMap;
use std::path::PathBuf;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::domain::name::{HostName, check_label};
use crate::domain::problem::{FieldProblem, shown};

/// Where sandboxes live on a host when nothing else is said.
pub const DEFAULT_ROOT: &str = "~/sandboxes";

/// Host of the configuration.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct HostSpec {
    /// Its name; compared without case.
    pub name: HostName,
    /// Destination that `ssh` is called with: an alias, `user@host` or `ssh://user@host:port`; `null` means the name.
    pub ssh: Option<String>,
    /// Passed to ssh as `-F`; `null` means the user's own configuration.
    #[schemars(with = "Option<String>")]
    pub ssh_config: Option<PathBuf>,
    /// Where sandboxes live: absolute, or under the account's home with `~/`.
    pub workspace_root: String,
    /// The compose command; `null` means detected.
    pub compose_cmd: Option<String>,
    /// How many sandboxes it takes; `null` means no limit.
    pub max_sandboxes: Option<u32>,
    /// Free labels.
    pub labels: BTreeMap<String, String>,
    /// Above these nothing is placed on it.
    pub limits: Limits,
    /// Hint at what to run when its credentials are refused.
    pub login_hint: Option<String>,
    /// Command that is asked for tunnels.
    pub reach: Option<Reach>,
    /// Why it is out of bounds; such a host is never placed on, probed or reaped.
    pub forbid: Option<String>,
}

/// Limits above which nothing is placed on a host.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Limits {
    /// Disk used, in percent.
    pub disk_used_pct: f64,
    /// Memory used, in percent.
    pub mem_used_pct: f64,
    /// Load average of one minute, per core.
    pub load_per_core: f64,
}

impl Default for Limits {
    fn default() -> Self {
        Self { disk_used_pct: 90.0, mem_used_pct: 90.0, load_per_core: 4.0 }
    }
}

/// A program that is asked for tunnels and answers JSON.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Reach {
    /// The program and its arguments.
    pub command: Vec<String>,
}

impl Default for HostSpec {
    fn default() -> Self {
        Self::named("")
    }
}

impl HostSpec {
    /// A host of which only the name is known.
    pub fn named(name: impl Into<String>) -> Self {
        Self {
            name: HostName::new(name),
            ssh: None,
            ssh_config: None,
            workspace_root: DEFAULT_ROOT.to_owned(),
            compose_cmd: None,
            max_sandboxes: None,
            labels: BTreeMap::new(),
            limits: Limits::default(),
            login_hint: None,
            reach: None,
            forbid: None,
        }
    }

    /// The host that always exists: this machine, without SSH.
    pub fn local() -> Self {
        Self::named(HostName::LOCAL)
    }

    /// Destination that `ssh` is called with; `None` for this machine.
    pub fn ssh_target(&self) -> Option<&str> {
        (!self.name.is_local()).then(|| self.ssh.as_deref().unwrap_or(self.name.as_str()))
    }

    /// The machine's name or alias in that: `ops@box`, `ssh://ops@box:22` and `box` are the same machine.
    pub fn ssh_host(&self) -> Option<&str> {
        let target = self.ssh_target()?;
        let uri = target.strip_prefix("ssh://");
        let rest = uri.unwrap_or(target);
        let rest = rest.rsplit_once('@').map_or(rest, |(_, host)| host);
        match (uri, rest.strip_prefix('[').and_then(|rest| rest.split_once(']'))) {
            (_, Some((address, _))) => Some(address),
            // Only a URI has a port; an IPv6 address has colons of its own.
            (Some(_), None) => Some(rest.split([':', '/']).next().unwrap_or(rest)),
            (None, None) => Some(rest),
        }
    }

    /// Whether it is out of bounds.
    pub fn is_forbidden(&self) -> bool {
        self.forbid.is_some()
    }

    /// Every rule that one host can break; paths are within the host, such as `limits.load_per_core`.
    pub fn validate(&self) -> Vec<FieldProblem> {
        let mut found = Vec::new();
        let mut refuse = |path: &str, message: String| found.push(FieldProblem::new(path, message));
        if let Some(ssh) = &self.ssh {
            if self.name.is_local() {
                refuse("ssh", "the host 'local' is this machine and has no 'ssh'".to_owned());
            } else if ssh.is_empty()
                || ssh.starts_with('-')
                || ssh.chars().any(|c| c.is_whitespace() || c.is_control())
            {
                // A leading dash would be an option of ssh.
                refuse("ssh", format!("{} is not a host that ssh takes", shown(ssh)));
            }
        }
        if self.ssh_config.is_some() && self.name.is_local() {
            refuse(
                "ssh_config",
                "the host 'local' is this machine and has no 'ssh_config'".to_owned(),
            );
        }
        if let Err(message) = check_root(&self.workspace_root) {
            refuse("workspace_root", message);
        }
        if self.max_sandboxes == Some(0) {
            refuse(
                "max_sandboxes",
                "'max_sandboxes' is at least 1; write forbid: with a reason to use no host"
                    .to_owned(),
            );
        }
        if self.compose_cmd.as_ref().is_some_and(|command| command.trim().is_empty()) {
            refuse("compose_cmd", "'compose_cmd' is empty".to_owned());
        }
        for (key, value) in [
            ("disk_used_pct", self.limits.disk_used_pct),
            ("mem_used_pct", self.limits.mem_used_pct),
        ] {
            if !(value > 0.0 && value <= 100.0) {
                refuse(&format!("limits.{key}"), format!("'{key}' is above 0 and at most 100"));
            }
        }
        if !(self.limits.load_per_core > 0.0 && self.limits.load_per_core <= 1000.0) {
            refuse(
                "limits.load_per_core",
                "'load_per_core' is above 0 and at most 1000".to_owned(),
            );
        }
        if self
            .reach
            .as_ref()
            .is_some_and(|reach| reach.command.first().is_none_or(String::is_empty))
        {
            refuse("reach.command", "'command' names a program and its arguments".to_owned());
        }
        for (key, value) in &self.labels {
            if let Err(error) = check_label(key, value) {
                refuse(&format!("labels.{key}"), error.message);
            }
        }
        found
    }
}

/// Checks a host's name: letters, digits, `.`, `_` and `-`, at most 255, no leading `-` (ssh would take an option).
pub fn check_host_name(text: &str) -> Result<(), String> {
    let head = text.starts_with(|c: char| c.is_ascii_alphanumeric());
    let body = text.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-'));
    if head && body && text.len() <= 255 {
        Ok(())
    } else {
        Err(format!(
            "{} is not a host's name: letters, digits, '.', '_' and '-', beginning with a letter or digit",
            shown(text)
        ))
    }
}

/// Checks a workspace root: absolute or under `~/`, below `/` and the home itself, without `..` and `:`.
pub fn check_root(text: &str) -> Result<(), String> {
    let inner = text.strip_prefix("~/").or_else(|| text.strip_prefix('/'));
    let Some(inner) = inner else {
        return Err(format!("{} must be absolute, or begin with '~/'", shown(text)));
    };
    if text.len() > 1024 || text.chars().any(char::is_control) {
        return Err("a workspace root is one line of at most 1024 bytes".to_owned());
    }
    let mut parts = inner.split('/').filter(|part| !part.is_empty() && *part != ".").peekable();
    if parts.peek().is_none() {
        return Err(format!(
            "{} is no place for sandboxes: name a directory below it",
            shown(text)
        ));
    }
    if parts.any(|part| part == "..") {
        return Err(format!("{} must not hold '..'", shown(text)));
    }
    if text.contains(':') {
        // Both engines mount a folder of the workspace as `SOURCE:TARGET`, and neither has a way to write such a source.
        return Err(format!(
            "{} must not hold ':': container engines take that for the end of a path",
            shown(text)
        ));
    }
    Ok(())
}

#[cfg(test)]
mod tests;
