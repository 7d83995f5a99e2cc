//! Definition of a profile: its fields, and what each is where a profile does not say it.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use super::inputs::Inputs;
use super::quantity::Seconds;
use super::routing::Routing;
use crate::domain::name::{ExtensionId, HostName, ProfileId};
use crate::domain::text::hex;
use crate::domain::words::string_enum;

/// `ready_timeout` where a profile does not say it.
const READY_TIMEOUT: Seconds = Seconds(180);

/// `settle` where a profile does not say it.
const SETTLE: Seconds = Seconds(2);

/// `stop_grace` where a profile does not say it.
const STOP_GRACE: Seconds = Seconds(2);

/// The profile of a sandbox.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Profile {
    /// `profile.` and a name.
    pub id: ProfileId,
    /// Its version (semver); a sandbox records it beside the content hash.
    #[schemars(with = "String")]
    pub version: semver::Version,
    /// Line for lists.
    #[serde(default)]
    pub summary: String,
    /// Extension that makes the sandbox.
    pub extension: ExtensionId,
    /// Where it may go.
    #[serde(default)]
    pub placement: Placement,
    /// How long a sandbox lives after `ready`; `null` means for ever.
    #[serde(rename(serialize = "ttl_s", deserialize = "ttl"), alias = "ttl_s")]
    pub ttl: Option<Seconds>,
    /// The latest a sandbox can be extended to, from `ready`; `null` means without limit.
    #[serde(rename(serialize = "max_ttl_s", deserialize = "max_ttl"), alias = "max_ttl_s")]
    pub max_ttl: Option<Seconds>,
    /// How long establishment may take.
    #[serde(
        rename(serialize = "ready_timeout_s", deserialize = "ready_timeout"),
        alias = "ready_timeout_s",
        default = "usual_ready_timeout"
    )]
    pub ready_timeout: Seconds,
    /// How long a service must have run to count as ready; 0: seen running once.
    #[serde(
        rename(serialize = "settle_s", deserialize = "settle"),
        alias = "settle_s",
        default = "usual_settle"
    )]
    pub settle: Seconds,
    /// How long a container has between TERM and KILL.
    #[serde(
        rename(serialize = "stop_grace_s", deserialize = "stop_grace"),
        alias = "stop_grace_s",
        default = "usual_stop_grace"
    )]
    pub stop_grace: Seconds,
    /// Whether destroy, recreate and reap take an undo snapshot first.
    #[serde(default)]
    pub undo: bool,
    /// Inputs that a create may or must give, in the file's order.
    #[serde(default)]
    pub inputs: Inputs,
    /// Rules for what of a directory is sent.
    #[serde(default)]
    pub sync: Sync,
    /// Rules for a compose stack.
    #[serde(default)]
    pub compose: Compose,
    /// How snapshots are taken.
    #[serde(default)]
    pub snapshot: SnapshotPolicy,
    /// How long patches may take.
    #[serde(default)]
    pub patches: PatchLimits,
    /// Alternative backends, for a profile that routes.
    #[serde(default)]
    pub routing: Routing,
    /// For the extension, checked against its manifest's schema.
    #[serde(default = "empty_object")]
    #[schemars(with = "serde_json::Map<String, serde_json::Value>")]
    pub config: serde_json::Value,
    /// Profile as its file says it, where this is what a candidate of its routing makes of it.
    #[serde(skip)]
    pub written: Option<Box<Self>>,
}

impl Profile {
    /// Profile of which no more is known than what a record says: everything else is as where a profile does not say it.
    pub fn unknown(id: ProfileId, version: &str, extension: ExtensionId) -> Self {
        Self {
            id,
            version: version.parse().unwrap_or_else(|_| semver::Version::new(0, 0, 0)),
            summary: String::new(),
            extension,
            placement: Placement::default(),
            ttl: None,
            max_ttl: None,
            ready_timeout: READY_TIMEOUT,
            settle: SETTLE,
            stop_grace: STOP_GRACE,
            undo: false,
            inputs: Inputs::default(),
            sync: Sync::default(),
            compose: Compose::default(),
            snapshot: SnapshotPolicy::default(),
            patches: PatchLimits::default(),
            routing: Routing::default(),
            config: empty_object(),
            written: None,
        }
    }
}

fn usual_ready_timeout() -> Seconds {
    READY_TIMEOUT
}

/// `settle`, also of a profile that was written down before there was one.
fn usual_settle() -> Seconds {
    SETTLE
}

fn usual_stop_grace() -> Seconds {
    STOP_GRACE
}

pub(super) fn empty_object() -> serde_json::Value {
    serde_json::Value::Object(serde_json::Map::new())
}

/// Where a sandbox may go.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Placement {
    /// Hosts in order of preference; empty means `default_host`.
    #[serde(default)]
    pub hosts: Vec<HostName>,
    /// How one of them is chosen.
    #[serde(default)]
    pub strategy: Strategy,
}

string_enum! {
    /// How a host is chosen from a profile's list.
    #[derive(Default)]
    pub enum Strategy {
        /// The first that qualifies, in the list's order.
        #[default]
        FirstAvailable = "first-available",
        /// Of those that qualify, the one with the most room.
        LeastLoaded = "least-loaded",
    }
}

/// Rules for what of a directory is sent to the host.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Sync {
    /// Patterns as in a `.gitignore`, beside the tree's `.sandboxerignore` files.
    #[serde(default)]
    pub exclude: Vec<String>,
}

/// Rules for a compose stack.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Compose {
    /// Which ports of the host it gets.
    #[serde(default)]
    pub ports: PortPolicy,
    /// Ways out of the sandbox that are allowed, by name.
    #[serde(default)]
    pub allow: Vec<Allowance>,
}

string_enum! {
    /// Which ports of the host a stack's services get.
    #[derive(Default)]
    pub enum PortPolicy {
        /// A free port on the host's 127.0.0.1.
        #[default]
        Ephemeral = "ephemeral",
        /// A free port on every interface.
        Public = "public",
        /// The ports that the compose file says.
        Keep = "keep",
    }
}

string_enum! {
    /// Way out of the sandbox, refused unless a profile allows it by name.
    pub enum Allowance {
        /// Privileged containers.
        Privileged = "privileged",
        /// The host's network.
        HostNetwork = "host-network",
        /// Bind mounts from outside the workspace.
        BindMounts = "bind-mounts",
        /// Networks and volumes that exist already.
        External = "external",
        /// The host's devices.
        Devices = "devices",
        /// Builds where the engine's builder is known to let a build out.
        Builds = "builds",
    }
}

/// How snapshots are taken.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SnapshotPolicy {
    /// Treatment of the containers meanwhile; `null` means the best the runtime can.
    #[serde(default)]
    pub mode: Option<SnapshotMode>,
    /// Patterns that are left out, as in a `.gitignore`.
    #[serde(default)]
    pub exclude: Vec<String>,
    /// How many of a sandbox's snapshots are kept; `null` means all.
    #[serde(default)]
    pub keep: Option<u32>,
}

string_enum! {
    /// Treatment of the containers while a snapshot is taken.
    pub enum SnapshotMode {
        /// Nothing: files may change while they are read.
        Live = "live",
        /// They are paused.
        Pause = "pause",
        /// They are stopped and started again.
        Stop = "stop",
    }
}

/// How long patches may take.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct PatchLimits {
    /// Limit of one patch.
    #[serde(rename(serialize = "timeout_s", deserialize = "timeout"), alias = "timeout_s")]
    pub timeout: Seconds,
    /// All patches of one pass.
    #[serde(
        rename(serialize = "pass_timeout_s", deserialize = "pass_timeout"),
        alias = "pass_timeout_s"
    )]
    pub pass_timeout: Seconds,
}

impl Default for PatchLimits {
    fn default() -> Self {
        Self { timeout: Seconds(300), pass_timeout: Seconds(600) }
    }
}

impl Profile {
    /// The content hash that a sandbox records: SHA-256, in hex, of the JSON with sorted keys. A key that came later counts
    /// where it is not the usual: profiles that were written down before it keep their hash. A candidate's use of a profile has the
    /// profile's own.
    pub fn hash(&self) -> String {
        let mut text = String::new();
        let mut value = serde_json::to_value(self.as_written()).unwrap_or_default();
        if self.settle == SETTLE
            && let Some(fields) = value.as_object_mut()
        {
            fields.remove("settle_s");
        }
        write_canonical(&value, &mut text);
        hex(&Sha256::digest(text.as_bytes()))
    }
}

/// JSON without spaces and with sorted keys, so that the order of a file's keys does not count.
pub(crate) fn write_canonical(value: &serde_json::Value, out: &mut String) {
    match value {
        serde_json::Value::Object(map) => {
            let mut keys: Vec<_> = map.iter().collect();
            keys.sort_by_key(|(key, _)| key.as_str());
            out.push('{');
            for (index, (key, inner)) in keys.into_iter().enumerate() {
                if index > 0 {
                    out.push(',');
                }
                out.push_str(&serde_json::Value::from(key.as_str()).to_string());
                out.push(':');
                write_canonical(inner, out);
            }
            out.push('}');
        }
        serde_json::Value::Array(items) => {
            out.push('[');
            for (index, item) in items.iter().enumerate() {
                if index > 0 {
                    out.push(',');
                }
                write_canonical(item, out);
            }
            out.push(']');
        }
        other => out.push_str(&other.to_string()),
    }
}
