//! The sandbox record: what is known of one sandbox, and the moves its state may make.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::domain::actor::Actor;
use crate::domain::canary::CanaryTelemetry;
pub use crate::domain::error::Failure;
use crate::domain::event::PendingEvent;
use crate::domain::facts::{Certificate, HostIdentity};
use crate::domain::meter::CostMeter;
use crate::domain::name::{
    ExtensionId, HostName, OperationId, OwnerId, PatchId, ProfileId, SandboxId, SnapshotId,
};
use crate::domain::operation::OperationKind;
use crate::domain::patch::{AppliedPatch, PatchState};
use crate::domain::raw_json::RawJson;
use crate::domain::route::Attempt;
pub use crate::domain::route::{Route, Verdict};
use crate::domain::teardown::{Resource, TeardownLine, TeardownOutcome};
use crate::domain::words::string_enum;
use crate::domain::{Time, Usd};

/// Handle by which the extension finds a sandbox again, beyond its id. Opaque to everyone else.
pub type Handle = serde_json::Value;

string_enum! {
    /// State that was observed last (at `observed_at`).
    pub enum State {
        /// Written down; nothing was done on a host yet.
        Requested = "requested",
        /// Being made.
        Provisioning = "provisioning",
        /// The backend said that every long-running service runs.
        Ready = "ready",
        /// Stopped, to be woken.
        Sleeping = "sleeping",
        /// An establishment ended without a sandbox.
        Failed = "failed",
        /// The recorded host says that all of it is gone.
        Lost = "lost",
        /// Being removed.
        Destroying = "destroying",
        /// A read-back showed that nothing is left.
        Destroyed = "destroyed",
        /// Given up without looking; a tombstone waits for the host.
        Forgotten = "forgotten",
    }
}

string_enum! {
    /// Why a state was entered.
    pub enum Reason {
        /// Somebody asked for it.
        User = "user",
        /// Deadline passed.
        TtlExpired = "ttl_expired",
        /// A reap plan named it.
        Reaped = "reaped",
        /// A step of the establishment failed.
        ProvisionFailed = "provision_failed",
        /// The host did not answer.
        HostLost = "host_lost",
        /// The balance ran out.
        Credits = "credits",
        /// The operation was cancelled.
        Cancelled = "cancelled",
        /// The process that worked on it died.
        CrashRecovered = "crash_recovered",
        /// A later one took its place.
        Replaced = "replaced",
    }
}

impl State {
    /// Whether a transition from this state to `next` is legal (semantics 1). Staying is always legal.
    pub(crate) fn may_become(&self, next: &Self) -> bool {
        use State::{
            Destroyed, Destroying, Failed, Forgotten, Lost, Provisioning, Ready, Requested,
            Sleeping,
        };
        if self == next {
            return true;
        }
        match self {
            Requested => matches!(next, Provisioning | Failed | Destroying | Forgotten),
            // Back to what was observed, when a recreate could not even look at the host.
            Provisioning => {
                matches!(next, Ready | Sleeping | Lost | Failed | Destroying | Forgotten)
            }
            Ready => matches!(next, Sleeping | Lost | Provisioning | Destroying | Forgotten),
            Sleeping => matches!(next, Ready | Lost | Provisioning | Destroying | Forgotten),
            Failed => matches!(next, Provisioning | Destroying | Forgotten),
            Lost => {
                matches!(next, Ready | Sleeping | Failed | Provisioning | Destroying | Forgotten)
            }
            Destroying => matches!(next, Destroyed | Forgotten),
            Forgotten => matches!(next, Destroyed),
            Destroyed => false,
            Self::Other(_) => matches!(next, Destroying | Forgotten),
        }
    }

    /// Whether the sandbox is over: nothing is left, or nobody will look again.
    pub fn is_over(&self) -> bool {
        matches!(self, Self::Destroyed | Self::Forgotten)
    }

    /// Whether it may be destroyed: from every state except `destroyed`.
    pub(crate) fn may_be_destroyed(&self) -> bool {
        *self != Self::Destroyed
    }

    pub(crate) fn may_be_recreated(&self) -> bool {
        matches!(self, Self::Ready | Self::Sleeping | Self::Failed | Self::Lost)
    }
}

/// Profile that a sandbox was made from, to the byte.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ProfileRef {
    /// The profile's id.
    pub id: ProfileId,
    /// Semantic version.
    pub version: String,
    /// SHA-256 (hex) of its canonical JSON.
    pub hash: String,
}

/// Service as the engine reported it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Service {
    /// The service's name in the compose file.
    pub name: String,
    /// The engine's word: `running`, `exited`, `created`, `paused`, or `missing`.
    pub state: String,
    /// Exit status of a container that ended.
    pub exit_code: Option<i32>,
    /// Number of times that the engine started it again.
    pub restarts: Option<u32>,
    /// The engine's word on a health check, where there is one. Shown, never waited for.
    pub health: Option<String>,
}

impl Service {
    /// Whether a long-running service is no longer there: neither running nor a one-shot that ended well.
    pub(crate) fn is_degraded(&self) -> bool {
        match self.state.as_str() {
            "running" => false,
            "exited" => self.exit_code != Some(0),
            _ => true,
        }
    }
}

/// A published port and the ways to reach it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Endpoint {
    /// The service that listens.
    pub service: String,
    /// The port inside the container.
    pub container_port: u16,
    /// The port on the host.
    pub host_port: u16,
    /// `tcp` or `udp`.
    pub protocol: String,
    /// Address on the host itself.
    pub url: String,
    /// An `ssh -L` command to paste; null on `local`.
    pub tunnel: Option<String>,
}

/// A tunnel that another service holds for us.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Attachment {
    /// Holder.
    pub provider: String,
    /// Id there.
    pub id: String,
    /// The local end.
    pub local: String,
    /// The provider's word on it.
    pub state: String,
}

/// Access to a sandbox.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Reachability {
    /// The host's name.
    pub host: HostName,
    /// A command to paste that opens a shell in the workspace; empty where nobody can have one.
    pub ssh: String,
    /// The workspace on the host.
    pub workdir: String,
    /// Published ports.
    #[serde(default)]
    pub endpoints: Vec<Endpoint>,
    /// Tunnels that another service holds.
    #[serde(default)]
    pub attachments: Vec<Attachment>,
}

impl Reachability {
    /// Command that opens a shell; none where nobody can have one.
    pub(crate) fn ssh_command(&self) -> Option<&str> {
        Some(self.ssh.as_str()).filter(|command| !command.is_empty())
    }
}

/// The operation that works on a sandbox now, and who runs it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Running {
    /// The operation.
    pub id: OperationId,
    /// Kind.
    pub kind: OperationKind,
    /// When it began.
    pub started_at: Time,
    /// The process that runs it.
    pub pid: u32,
    /// The machine that process is on.
    pub host: String,
    /// Actor that asked for it.
    pub actor: Actor,
    /// Set by another process that wants it rolled back.
    #[serde(default)]
    pub cancel_requested: bool,
}

/// A change the renderer made to what the user wrote.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Rewrite {
    /// Where, such as `services.web.container_name`.
    pub path: String,
    /// Sentence.
    pub what: String,
}

/// Record of a sandbox (contract, section 3).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SandboxRecord {
    /// Id.
    pub id: SandboxId,
    /// Name, unique among those that are not destroyed.
    pub name: Option<String>,
    /// Free labels; `protect=true` keeps every sweep and bulk verb away.
    #[serde(default)]
    pub labels: BTreeMap<String, String>,
    /// The profile.
    pub profile: ProfileRef,
    /// The backend.
    pub extension: ExtensionId,
    /// The place.
    pub host: HostName,
    /// Identity that the host proved at the first contact.
    pub host_identity: Option<HostIdentity>,
    /// `<workspace_root>/sbx-<id>` as the host resolved it.
    pub workdir: Option<String>,
    /// State that was observed last.
    pub state: State,
    /// Why.
    pub reason: Option<Reason>,
    /// A sentence for a person.
    pub message: Option<String>,
    /// When the state was entered.
    pub since: Time,
    /// When the host last said so.
    pub observed_at: Option<Time>,
    /// Grows by one with each write; the compare-and-set's key.
    pub revision: u64,
    /// Operation that works on it now.
    pub operation: Option<Running>,
    /// The inputs, with defaults filled in.
    #[serde(default)]
    pub inputs: BTreeMap<String, String>,
    /// Handle by which the extension finds it again; cleanup works without.
    pub handle: Option<Handle>,
    /// Access to it.
    pub reachability: Option<Reachability>,
    /// Services as the engine reported them.
    #[serde(default)]
    pub services: Vec<Service>,
    /// When the record was written.
    pub created_at: Time,
    /// When it became ready; TTL counts from here.
    pub ready_at: Option<Time>,
    /// Deadline; null means none.
    pub expires_at: Option<Time>,
    /// Limit that no `extend` passes.
    pub max_expires_at: Option<Time>,
    /// The deadline of which `sandbox.expiring` was told; null: none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expiring_told: Option<Time>,
    /// Whether the manifest on its host may still say what was so before: the next contact with the host writes it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub manifest_pending: bool,
    /// The time to live that was asked for, in seconds; null means none.
    #[serde(default)]
    pub ttl_s: Option<u64>,
    /// The snapshot it was restored from.
    pub based_on_snapshot: Option<SnapshotId>,
    /// Patches.
    #[serde(default)]
    pub applied_patches: Vec<AppliedPatch>,
    /// The highest sequence it has.
    #[serde(default)]
    pub last_patch_sequence: u64,
    /// Progress of its patches.
    #[serde(default)]
    pub patch_state: PatchState,
    /// Patch that failed, and how to go on.
    pub patch_error: Option<String>,
    /// The patch that `patch_error` is about; none in records that were written before it was kept.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub patch_error_of: Option<PatchId>,
    /// The destroyed sandbox that this one brings back.
    pub undo_of: Option<SandboxId>,
    /// The price that was quoted.
    pub quote_usd: Option<Usd>,
    /// Amount held for it.
    pub hold_usd: Option<Usd>,
    /// Cost: charged by its runs that are over, and what the one that goes on has come to when somebody asks.
    pub cost_usd: Option<Usd>,
    /// Meter of its run, where that costs something.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub meter: Option<CostMeter>,
    /// Why this host.
    pub route: Option<Route>,
    /// Places that were tried, in order.
    #[serde(default)]
    pub attempts: Vec<Attempt>,
    /// Changes that the renderer made.
    #[serde(default)]
    pub rewrites: Vec<Rewrite>,
    /// The evidence of a failed step.
    pub failure: Option<Failure>,
    /// Lines of the last teardown, one for each resource.
    #[serde(default)]
    pub teardown: Vec<TeardownLine>,
    /// Resources that it could not remove.
    #[serde(default)]
    pub leftovers: Vec<Resource>,
    /// Properties that a restore could not set on the target, counted by kind.
    #[serde(default)]
    pub not_preserved: BTreeMap<String, u64>,
    /// The host's facts when the sandbox was made, its inventory as counts (the canary's).
    pub telemetry: Option<RawJson<CanaryTelemetry>>,
    /// Certificate of the host's compose runtime (the canary's).
    pub certificate: Option<RawJson<Certificate>>,
    /// Actor that asked for it.
    pub actor: Actor,
    /// The installation that made it.
    pub owner: OwnerId,
    /// The caller's key against a second create.
    pub idempotency_key: Option<String>,
    /// SHA-256 of the request under that key, to tell a repeat from another request.
    #[serde(default)]
    pub request_hash: Option<String>,
    /// A failed establishment that was kept for looking at (`--keep-failed`).
    #[serde(default)]
    pub kept_failed: bool,
    /// When it was made of what its host had; none for what this data directory always knew.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub adopted_at: Option<Time>,
    /// Fields of the earlier Python tool's record that have no place here, where it was imported.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub imported: Option<serde_json::Value>,
    /// Events that this record's last write caused and that nobody has appended yet.
    #[serde(default)]
    pub pending: Vec<PendingEvent>,
}

/// Beginning of a record: what every one has from its first write on.
#[derive(Debug, Clone)]
pub struct RecordStart {
    pub id: SandboxId,
    pub profile: ProfileRef,
    /// The backend.
    pub extension: ExtensionId,
    /// The place.
    pub host: HostName,
    /// The installation that made it.
    pub owner: OwnerId,
    /// Actor that asked for it.
    pub actor: Actor,
    /// When the record was written.
    pub created_at: Time,
}

impl SandboxRecord {
    /// Record of which nothing else is known: `requested`, and not in a store yet.
    pub fn new(start: RecordStart) -> Self {
        Self {
            id: start.id,
            name: None,
            labels: BTreeMap::new(),
            profile: start.profile,
            extension: start.extension,
            host: start.host,
            host_identity: None,
            workdir: None,
            state: State::Requested,
            reason: None,
            message: None,
            since: start.created_at,
            observed_at: None,
            revision: 0,
            operation: None,
            inputs: BTreeMap::new(),
            handle: None,
            reachability: None,
            services: Vec::new(),
            created_at: start.created_at,
            ready_at: None,
            expires_at: None,
            max_expires_at: None,
            expiring_told: None,
            manifest_pending: false,
            ttl_s: None,
            based_on_snapshot: None,
            applied_patches: Vec::new(),
            last_patch_sequence: 0,
            patch_state: PatchState::None,
            patch_error: None,
            patch_error_of: None,
            undo_of: None,
            quote_usd: None,
            hold_usd: None,
            cost_usd: None,
            meter: None,
            route: None,
            attempts: Vec::new(),
            rewrites: Vec::new(),
            failure: None,
            teardown: Vec::new(),
            leftovers: Vec::new(),
            not_preserved: BTreeMap::new(),
            telemetry: None,
            certificate: None,
            actor: start.actor,
            owner: start.owner,
            idempotency_key: None,
            request_hash: None,
            kept_failed: false,
            adopted_at: None,
            imported: None,
            pending: Vec::new(),
        }
    }

    /// Services that should run and do not.
    pub fn degraded(&self) -> impl Iterator<Item = &Service> {
        self.services.iter().filter(|service| self.state == State::Ready && service.is_degraded())
    }

    /// Whether no sweep, reap or bulk verb may touch it.
    pub fn is_protected(&self) -> bool {
        self.labels.get("protect").is_some_and(|value| value == "true")
    }

    /// Sets `patch_error`, and the patch that it is about.
    pub(crate) fn set_patch_error(&mut self, error: Option<(PatchId, String)>) {
        (self.patch_error_of, self.patch_error) = error.unzip();
    }

    /// Whether it failed and a look at its host found nothing of it; one that is removed since is no different.
    pub(crate) fn left_nothing(&self) -> bool {
        let gone = || self.teardown.iter().all(|line| line.outcome != TeardownOutcome::Failed);
        let came_to_nothing =
            matches!(self.state, State::Failed | State::Destroying) && !self.kept_failed;
        came_to_nothing && self.leftovers.is_empty() && !self.teardown.is_empty() && gone()
    }

    /// The name that it keeps from others: none once it is over, or failed and left nothing.
    pub(crate) fn name_in_use(&self) -> Option<&str> {
        self.name.as_deref().filter(|_| !self.state.is_over() && !self.left_nothing())
    }

    /// The snapshot that it needs: none once it is over, or where nothing was ever made from it.
    pub(crate) fn needs_snapshot(&self) -> Option<&SnapshotId> {
        let never_was = self.left_nothing() && self.ready_at.is_none();
        self.based_on_snapshot.as_ref().filter(|_| !self.state.is_over() && !never_was)
    }

    /// The name, or the id where it has none.
    pub fn title(&self) -> &str {
        self.name.as_deref().unwrap_or(self.id.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn destroy_is_legal_from_every_state_but_destroyed() {
        for state in State::ALL {
            assert_eq!(state.may_be_destroyed(), *state != State::Destroyed, "{state}");
            if !state.is_over() {
                assert!(state.may_become(&State::Destroying), "{state}");
            }
        }
    }

    #[test]
    fn only_establishment_ends_in_failed() {
        let into_failed: Vec<_> = State::ALL
            .iter()
            .filter(|s| **s != State::Failed && s.may_become(&State::Failed))
            .collect();
        assert_eq!(into_failed, [&State::Requested, &State::Provisioning, &State::Lost]);
    }

    #[test]
    fn an_unknown_state_is_kept_as_it_was_read() {
        let state: State = serde_json::from_str("\"hibernating\"").unwrap();
        assert_eq!(serde_json::to_string(&state).unwrap(), "\"hibernating\"");
    }
}
