//! Facts that a host says of itself.

use std::collections::BTreeMap;
use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::domain::Time;
use crate::domain::words::string_enum;

/// Identity of a host: proof that it is still the same one (semantics 1).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct HostIdentity {
    /// `/etc/machine-id`.
    pub machine_id: String,
    /// `docker` or `podman`; null where the sandbox needs no engine.
    pub engine: Option<String>,
    /// Docker's `ID`; for podman the graph root and its inode.
    pub engine_id: Option<String>,
}

impl HostIdentity {
    /// Identity of a machine, whatever engine it has.
    pub fn of_machine(machine_id: impl Into<String>) -> Self {
        Self { machine_id: machine_id.into(), engine: None, engine_id: None }
    }
}

string_enum! {
    /// A way to run a compose file.
    pub enum Flavour {
        /// `docker compose` v2 and later.
        DockerComposeV2 = "docker-compose-v2",
        /// `docker-compose` v1 (Python).
        DockerComposeV1 = "docker-compose-v1",
        /// `podman-compose`.
        PodmanCompose = "podman-compose",
    }
}

/// A compose runtime on a host.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Runtime {
    /// Kind of runtime.
    pub flavour: Flavour,
    /// The compose tool's version.
    pub version: String,
    /// The command's words, such as `["docker", "compose"]`.
    pub command: Vec<String>,
    /// `docker` or `podman`: the program that is asked what runs.
    pub engine: String,
    /// The engine's version.
    pub engine_version: Option<String>,
    /// Identity of the engine (see [`HostIdentity`]).
    pub engine_id: Option<String>,
    /// Whether the engine runs without root.
    pub rootless: bool,
    /// `override` where the configuration or the environment named the command, else `detected`.
    pub chosen: String,
    /// Whether podman answers where `docker` is asked.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub podman_behind: bool,
}

/// The first podman whose builder is not known to let a build out. Before 4.9.4 a link led a bind mount to the host's root
/// (CVE-2024-1753); before 5.2.4 a mount's propagation (CVE-2024-9407), before 5.2.5 the id of a cache (CVE-2024-9675), before
/// 5.3.2 two stages at once (CVE-2024-11218) led to the host's files. Podman brings its own buildah along, so its version
/// decides; a distribution that mended an older one cannot be told from one that did not.
const BUILDS_STAY_IN: [u64; 3] = [5, 3, 2];

impl fmt::Display for Runtime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let engine = if self.podman_behind { "podman" } else { &self.engine };
        write!(f, "{} {} with {engine}", self.command.join(" "), self.version)?;
        self.engine_version.as_ref().map_or(Ok(()), |version| write!(f, " {version}"))
    }
}

impl Runtime {
    /// Whether podman runs the containers, whichever program is asked.
    pub fn is_podman(&self) -> bool {
        self.engine == "podman" || self.podman_behind
    }

    /// Why a build may get out of the sandbox here, as the beginning of a sentence. An engine whose version is not known counts
    /// as an old one.
    pub fn builds_escape(&self) -> Option<String> {
        if !self.is_podman() {
            return None;
        }
        let version = self.engine_version.as_deref().unwrap_or("of an unknown version");
        let mut parts = version
            .split(|c: char| !c.is_ascii_digit())
            .map(|part| part.parse::<u64>().unwrap_or(0));
        let known = std::array::from_fn(|_| parts.next().unwrap_or(0));
        (known < BUILDS_STAY_IN).then(|| {
            format!(
                "podman {version} lets a build reach the host's files (CVE-2024-1753, CVE-2024-9407, CVE-2024-9675, CVE-2024-11218; mended in podman 5.3.2)"
            )
        })
    }
}

/// A file system.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Disk {
    /// The path that was asked about.
    pub path: String,
    /// Size in bytes.
    pub total_bytes: u64,
    /// Room that the account can still write, in bytes.
    pub available_bytes: u64,
}

/// Facts of a host when it was probed. Sizes are bytes.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct HostFacts {
    /// When.
    pub at: Time,
    /// `/etc/machine-id`, empty where there is none.
    pub machine_id: String,
    /// `uname -n`.
    pub hostname: String,
    /// `uname -sr`.
    pub kernel: String,
    /// `PRETTY_NAME` of `/etc/os-release`.
    pub os: Option<String>,
    /// The account.
    pub user: String,
    /// Numeric id.
    pub uid: u32,
    /// Processors.
    pub cpus: u32,
    /// Load of the last minute.
    pub load1: f64,
    /// Memory.
    pub mem_total_bytes: u64,
    /// Memory that programs can still have.
    pub mem_available_bytes: u64,
    /// The workspace root's file system; null where it did not answer.
    pub disk: Option<Disk>,
    /// The workspace root as the host resolved it.
    pub workspace_root: String,
    /// Seconds that the host's clock is ahead of ours (negative: behind).
    pub clock_offset_s: Option<f64>,
    /// Tools that are there, with their path: tar, rsync, zstd, gzip, ...
    #[serde(default)]
    pub tools: BTreeMap<String, String>,
    /// Id of this start of the host: another one after each reboot; null where the kernel says none.
    #[serde(default)]
    pub boot_id: Option<String>,
    /// Container engines that answer.
    #[serde(default)]
    pub engines: Vec<Engine>,
    /// Compose runtimes that were found, the preferred one first.
    #[serde(default)]
    pub runtimes: Vec<Runtime>,
    /// Runtimes and engines that are there and do not count, and figures that did not come; a sentence each.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub findings: Vec<String>,
    /// Things of ours (or another installation's) that are there.
    pub inventory: Option<Inventory>,
}

impl HostFacts {
    /// Container engines that are installed and do not answer.
    pub(crate) fn silent_engines(&self) -> Vec<&'static str> {
        let answers = |program: &str| self.engines.iter().any(|known| known.program == program);
        let is_silent = |program: &&str| self.tools.contains_key(*program) && !answers(program);
        ["docker", "podman"].into_iter().filter(is_silent).collect()
    }
}

/// A container engine that answers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Engine {
    /// The program that is asked: `docker` or `podman`.
    pub program: String,
    /// The engine's version.
    pub version: Option<String>,
    /// Docker's `ID`; podman's graph root and its inode.
    pub id: Option<String>,
    /// Whether it runs without root.
    pub rootless: bool,
    /// Whether `docker` talks to podman here.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub podman_behind: bool,
}

/// Sandboxes and archives found on a host, by what carries our labels or manifest.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct Inventory {
    /// Entry per sandbox id.
    pub sandboxes: Vec<InventoryItem>,
    /// Snapshots' archives, ordered by id.
    #[serde(default)]
    pub archives: Vec<InventoryArchive>,
    /// Networks of each engine.
    #[serde(default)]
    pub networks: Vec<NetworkUse>,
    /// Workspace roots that were looked into.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub roots: Vec<InventoryRoot>,
    /// When the directories were measured; null before the first time.
    #[serde(default)]
    pub sizes_at: Option<Time>,
}

/// Workspace root that an inventory looked into.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct InventoryRoot {
    /// Where it is.
    pub path: String,
    /// Whether it is there.
    pub there: bool,
    /// The mark that it bears.
    pub mark: Option<String>,
}

/// Networks of an engine: each takes a block of addresses from its pools, of which Docker has about 31 by default.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct NetworkUse {
    /// The program that was asked.
    pub engine: String,
    /// Networks with addresses of their own.
    pub used: u32,
    /// Networks that the engine's pools still have room for; null where it does not say what its pools are.
    pub left: Option<u32>,
}

/// Archive of a snapshot on a host.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct InventoryArchive {
    /// The snapshot's id, from the directory's name.
    pub snapshot_id: String,
    /// The sandbox that its manifest names.
    pub sandbox_id: Option<String>,
    /// The owner that its manifest names.
    pub owner: Option<String>,
    /// Directory.
    pub directory: String,
    /// When it was made.
    pub created_at: Option<Time>,
    /// Size by its manifest.
    pub bytes: Option<u64>,
    /// The snapshot's name, by its manifest.
    #[serde(default)]
    pub name: Option<String>,
    /// When it goes by itself (undo snapshots), by its manifest.
    #[serde(default)]
    pub expires_at: Option<Time>,
    /// Whether its manifest says `protect=true`.
    #[serde(default)]
    pub protected: bool,
    /// SHA-256 (hex) of all that was read of it: another one where anything changed.
    #[serde(default)]
    pub fingerprint: String,
}

/// Word of a manifest for a sandbox that was made without an engine.
pub(crate) const NO_ENGINE: &str = "none";

/// Things of one sandbox on a host.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct InventoryItem {
    /// The id, from a directory's name or a label.
    pub sandbox_id: String,
    /// The owner that its manifest or label names.
    pub owner: Option<String>,
    /// Directory, where there is one.
    pub directory: Option<String>,
    /// Containers' names, whatever their state.
    #[serde(default)]
    pub containers: Vec<String>,
    /// Networks' names.
    #[serde(default)]
    pub networks: Vec<String>,
    /// Volumes' names.
    #[serde(default)]
    pub volumes: Vec<String>,
    /// The profile that its manifest or label names.
    #[serde(default)]
    pub profile: Option<String>,
    /// When it was made: by its manifest, else its oldest container.
    #[serde(default)]
    pub created_at: Option<Time>,
    /// The deadline in its manifest; null for none, and where there is no manifest.
    #[serde(default)]
    pub expires_at: Option<Time>,
    /// Size of its directory on disk, as far as the account can read it; null until it was measured.
    #[serde(default)]
    pub bytes: Option<u64>,
    /// The sandbox's name, by its manifest.
    #[serde(default)]
    pub name: Option<String>,
    /// Whether its manifest says `protect=true`.
    #[serde(default)]
    pub protected: bool,
    /// Programs of the engines that have something of it.
    #[serde(default)]
    pub engines: Vec<String>,
    /// Engine that its manifest says it was made on, `none` where it was made without; null where nothing says it.
    #[serde(default)]
    pub made_on: Option<String>,
    /// SHA-256 (hex) of all that was read of it: another one where anything changed.
    #[serde(default)]
    pub fingerprint: String,
}

/// Certificate: what a host's compose runtime was found to be worth, by the canary.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Certificate {
    /// When it was examined.
    pub at: Time,
    /// The runtime that was examined; null where there is none.
    pub runtime: Option<Runtime>,
    /// Whether its exit status tells failure from success.
    pub exit_codes_trusted: Option<bool>,
    /// `json-array`, `json-lines`, `none` (no `ps --format json`).
    pub ps_format: Option<String>,
    /// Findings, a sentence each.
    #[serde(default)]
    pub findings: Vec<String>,
}
