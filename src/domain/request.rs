//! Requests and replies: what every face asks for and is told, above and below the client.

mod snapshots;

pub use snapshots::*;

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::domain::error::Error;
use crate::domain::extension::Preview;
use crate::domain::manifest::ExtensionManifest;
use crate::domain::name::{HostName, OperationId, PatchId, SandboxId};
use crate::domain::profile::Profile;
use crate::domain::sandbox::{Route, SandboxRecord};
use crate::domain::{EventKind, State, Time, Usd};

/// Request of a create.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct CreateRequest {
    /// The profile's id; none: the configuration's `default_profile`.
    pub profile: Option<String>,
    /// Inputs by name.
    pub inputs: BTreeMap<String, String>,
    /// The host; none: the placement order of the contract.
    pub host: Option<String>,
    /// Time to live as written (`4h`, `none`); none: the profile's.
    pub ttl: Option<String>,
    /// A chosen id.
    pub id: Option<String>,
    /// A name.
    pub name: Option<String>,
    /// Labels.
    pub labels: BTreeMap<String, String>,
    /// Against a second create of the same request.
    pub idempotency_key: Option<String>,
    /// Whether a failed one is kept for looking at.
    pub keep_failed: bool,
    /// Whether the operator agreed to a transfer above the limits.
    pub yes: bool,
}

/// Decision of a create, found without touching anything.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Decision {
    /// The profile's id.
    pub profile: String,
    /// Version.
    pub version: String,
    /// The extension's id.
    pub extension: String,
    /// Inputs with defaults filled in.
    pub inputs: BTreeMap<String, String>,
    /// The chosen host, and each candidate's verdict; null when none can take it.
    pub route: Option<Route>,
    /// Each candidate's verdict, also when none can take it.
    pub verdicts: Vec<crate::domain::sandbox::Verdict>,
    /// Verdict on each candidate of the profile's `routing`, in its order, also when none can take it; empty where it has none.
    #[serde(default)]
    pub candidates: Vec<crate::domain::route::CandidateVerdict>,
    /// The price.
    pub quote_usd: Option<Usd>,
    /// Credits that are missing for it; null where there are enough.
    #[serde(default)]
    pub missing_usd: Option<Usd>,
    /// Time to live in seconds; null means none.
    pub ttl_s: Option<u64>,
    /// Files and bytes to transfer, rewrites, refusals.
    pub preview: Preview,
    /// Whether a create would go ahead.
    pub ok: bool,
    /// Error that a create would end with, where it would not go well.
    pub error: Option<Error>,
}

/// An operation that was started, and the record it works on as it is now.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Started {
    /// The operation; null when there was nothing to do (a repeated create).
    pub operation: Option<OperationId>,
    /// The record.
    pub sandbox: SandboxRecord,
}

/// Query of sandboxes.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct ListQuery {
    /// Only these states; empty: all.
    pub states: Vec<State>,
    /// Only on this host.
    pub host: Option<String>,
    /// Only of this profile (with or without `profile.`).
    pub profile: Option<String>,
    /// Only with all of these labels.
    pub labels: BTreeMap<String, String>,
    /// Destroyed and forgotten ones too.
    pub all: bool,
}

/// Request of a destroy.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct DestroyRequest {
    /// Exact id (resolve names and prefixes first).
    pub id: String,
    /// The revision the asker saw; another one is `conflict`. None: whatever it is.
    pub revision: Option<u64>,
    /// Give it up without looking at the host.
    pub forget: bool,
    /// Take no undo snapshot.
    pub no_undo: bool,
    /// Although it is labelled `protect=true`.
    pub force_protected: bool,
}

/// Request of a recreate.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct RecreateRequest {
    /// Exact id.
    pub id: String,
    /// The revision the asker saw; another one is `conflict`. None: whatever it is.
    pub revision: Option<u64>,
    /// Take no undo snapshot.
    pub no_undo: bool,
    /// Although it is labelled `protect=true`.
    pub force_protected: bool,
    /// The patches that the asker saw on its snapshot; others are `conflict`. None: whatever is there.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub patches: Option<Vec<PatchId>>,
}

/// Request of a deep check of a host.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct HostCheckRequest {
    /// The host's name.
    pub host: String,
}

/// Command to run in a sandbox.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct ExecRequest {
    /// Exact id.
    pub id: String,
    /// The program and its arguments; no shell reads them.
    pub command: Vec<String>,
    /// In this service's container; none: in the workspace on the host.
    pub service: Option<String>,
}

/// Logs to show.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct LogsRequest {
    /// Exact id.
    pub id: String,
    /// Only this service's; none: all.
    pub service: Option<String>,
    /// Only the last lines of each; none: all.
    pub tail: Option<u64>,
    /// Stay, and tell what comes.
    pub follow: bool,
}

/// Where to open a shell.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct ShellRequest {
    /// Exact id.
    pub id: String,
    /// In this service's container; none: in the workspace on the host.
    pub service: Option<String>,
}

/// Request for another deadline: later by so much, or at a time.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct ExtendRequest {
    /// The sandbox: exact id.
    pub id: String,
    /// The deadline that was looked at; none: whatever it is.
    pub expires_at: Option<Time>,
    /// Seconds that it is moved by.
    pub by_s: Option<u64>,
    /// The time that it is moved to.
    pub to: Option<Time>,
    /// Whether it may become an earlier one.
    pub allow_shorten: bool,
}

/// A deadline that was moved.
#[derive(Debug, Clone, PartialEq)]
pub struct Extended {
    /// The record as it is then: it is what counts.
    pub sandbox: SandboxRecord,
    /// Why the manifest on the sandbox's host still says the earlier one, where it does.
    pub unwritten: Option<Error>,
}

/// Labels to change.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct LabelRequest {
    /// Exact id.
    pub id: String,
    /// The revision the asker saw; another one is `conflict`. None: whatever it is.
    pub revision: Option<u64>,
    /// Labels to set.
    pub set: BTreeMap<String, String>,
    /// Labels to take away; one that is not there is nothing to do.
    pub remove: std::collections::BTreeSet<String>,
}

/// Result of `recover` for one thing that a dead process left.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Recovered {
    /// The sandbox's id; the operation's where it has none.
    pub id: String,
    /// Whether it is in order now.
    pub ok: bool,
    /// Remains, such as `create by process 4711 on box`.
    pub was: String,
    /// The state it is in now.
    pub state: Option<State>,
    /// Work that was done, or would have to be, in a sentence.
    pub message: String,
    /// Why not.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<Error>,
}

crate::domain::words::string_enum! {
    /// Outcome of a check of `doctor`.
    pub enum CheckState {
        /// All is well.
        Ok = "ok",
        /// Works, but somebody should look.
        Warning = "warning",
        /// Does not work.
        Failed = "failed",
    }
}

/// Check of `doctor`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Check {
    /// Subject, such as `configuration`, `data directory`, `host coulombcore`.
    pub name: String,
    /// Outcome.
    pub state: CheckState,
    /// Finding, in a sentence.
    pub message: String,
    /// Next step for the user.
    pub hint: Option<String>,
}

/// A profile as the catalogue has it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ProfileView {
    /// Id.
    pub id: String,
    /// Version; null when the file is broken.
    pub version: Option<String>,
    /// Purpose, for people.
    pub summary: Option<String>,
    /// Extension.
    pub extension: Option<String>,
    /// Whether this build can create with it.
    pub available: bool,
    /// Why not, in a sentence.
    pub unavailable: Option<String>,
    /// `builtin` or `operator`.
    pub source: String,
    /// The operator's file.
    pub path: Option<String>,
    /// Whether it takes the place of a shipped one.
    pub overrides_builtin: bool,
    /// Error in its file, with file, line and column.
    pub error: Option<String>,
    /// SHA-256 of its content, by which sandboxes pin it.
    pub hash: Option<String>,
    /// The profile itself.
    pub profile: Option<Profile>,
}

/// An extension as the catalogue has it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ExtensionView {
    /// Id.
    pub id: String,
    /// Version; null when the file is broken.
    pub version: Option<String>,
    /// Whether this build has it.
    pub available: bool,
    /// Why not, in a sentence.
    pub unavailable: Option<String>,
    /// `builtin` or `operator`.
    pub source: String,
    /// The operator's file.
    pub path: Option<String>,
    /// Whether it takes the place of a shipped one.
    pub overrides_builtin: bool,
    /// Error in its file.
    pub error: Option<String>,
    /// Manifest.
    pub manifest: Option<ExtensionManifest>,
    /// Place in which it makes its sandboxes, where that is no host.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub place: Option<HostName>,
}

/// Query of events.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct EventQuery {
    /// Only after this number.
    pub after_seq: Option<u64>,
    /// Only at or after this time.
    pub since: Option<Time>,
    /// Only this sandbox's (exact id).
    pub sandbox: Option<SandboxId>,
    /// Only these kinds; empty: all.
    pub kinds: Vec<EventKind>,
    /// Only this actor's (`adm:NAME`).
    pub actor: Option<String>,
    /// Only the newest so many of those.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub newest: Option<usize>,
}
