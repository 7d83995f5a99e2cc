//! Dialect of the compose on the host: where one reads less than Docker's own, that is done in its words, said, or
//! refused. Nothing is dropped without a word. Measured; docs/runtimes.md has the table.

use crate::domain::facts::{Flavour, Runtime};

/// Dialect of the compose on the host.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Dialect {
    /// `docker compose`, whatever its engine.
    #[default]
    Full,
    /// `docker-compose` 1.29: refuses keys that are younger than it, and ignores `configs` and `deploy.resources`.
    V1,
    /// podman-compose from 1.1 on: takes every key, and ignores those it does not know.
    Podman,
    /// podman-compose 1.0: as later ones, with no aliases, `network_mode` or volume options, and it waits for nothing.
    Narrow,
}

/// Keys of a service that podman-compose 1.0.3 reads.
const NARROW: &[&str] = &[
    "annotations",
    "build",
    "cap_add",
    "cap_drop",
    "command",
    "cpu_shares",
    "cpus",
    "depends_on",
    "deploy",
    "devices",
    "entrypoint",
    "environment",
    "expose",
    "extra_hosts",
    "healthcheck",
    "hostname",
    "image",
    "init",
    "labels",
    "links",
    "logging",
    "mem_limit",
    "mem_reservation",
    "network_mode",
    "networks",
    "ports",
    "privileged",
    "pull_policy",
    "read_only",
    "restart",
    "scale",
    "secrets",
    "security_opt",
    "shm_size",
    "stdin_open",
    "stop_signal",
    "sysctls",
    "tmpfs",
    "tty",
    "ulimits",
    "user",
    "volumes",
    "working_dir",
];

/// Further ones that podman-compose 1.6 reads.
const PODMAN: &[&str] = &[
    "cpuset",
    "device_cgroup_rules",
    "dns",
    "dns_opt",
    "dns_search",
    "group_add",
    "mac_address",
    "pid",
    "pids_limit",
    "platform",
    "runtime",
    "stop_grace_period",
    "userns_mode",
];

/// Keys of a service that are younger than docker-compose 1.29; it stops at one.
const AFTER_V1: &[&str] = &[
    "annotations",
    "attach",
    "cgroup",
    "gpus",
    "models",
    "post_start",
    "pre_stop",
    "provider",
    "pull_refresh_after",
    "use_api_socket",
    "uts",
];

impl Dialect {
    pub fn of(runtime: &Runtime) -> Self {
        match runtime.flavour {
            Flavour::DockerComposeV2 | Flavour::Other(_) => Self::Full,
            Flavour::DockerComposeV1 => Self::V1,
            Flavour::PodmanCompose
                if ["0.", "1.0."].iter().any(|old| runtime.version.starts_with(old)) =>
            {
                Self::Narrow
            }
            Flavour::PodmanCompose => Self::Podman,
        }
    }

    pub(super) const fn tool(self) -> &'static str {
        match self {
            Self::Full => "this compose",
            Self::V1 => "docker-compose 1.29",
            Self::Podman => "podman-compose",
            Self::Narrow => "podman-compose 1.0",
        }
    }

    pub(super) fn reads(self, key: &str) -> bool {
        match self {
            Self::Full => true,
            Self::V1 => key != "configs" && !AFTER_V1.contains(&key),
            Self::Podman => NARROW.contains(&key) || PODMAN.contains(&key),
            Self::Narrow => NARROW.contains(&key),
        }
    }
}
