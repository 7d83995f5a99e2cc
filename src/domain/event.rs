//! Events: what happened, numbered and kept.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::domain::actor::Actor;
use crate::domain::name::{EventId, SandboxId};
use crate::domain::words::string_enum;
use crate::domain::{Time, Usd};

string_enum! {
    /// The kinds of events of the contract (section 3).
    pub enum EventKind {
        /// A create was written down.
        SandboxRequested = "sandbox.requested",
        /// Work on a host began.
        SandboxProvisioning = "sandbox.provisioning",
        /// Sandbox is ready.
        SandboxReady = "sandbox.ready",
        /// Establishment failed.
        SandboxFailed = "sandbox.failed",
        /// Services were stopped.
        SandboxSleeping = "sandbox.sleeping",
        /// Services were started again.
        SandboxWoken = "sandbox.woken",
        /// Sandbox was made again.
        SandboxRecreated = "sandbox.recreated",
        /// Sandbox was restored from a snapshot.
        SandboxRestored = "sandbox.restored",
        /// Sandbox was adopted from a host.
        SandboxAdopted = "sandbox.adopted",
        /// Host says it is gone.
        SandboxLost = "sandbox.lost",
        /// Deadline is near.
        SandboxExpiring = "sandbox.expiring",
        /// Deadline was moved.
        SandboxExtended = "sandbox.extended",
        /// Labels changed.
        SandboxLabelled = "sandbox.labelled",
        /// Removal began.
        SandboxDestroying = "sandbox.destroying",
        /// Sandbox is gone.
        SandboxDestroyed = "sandbox.destroyed",
        /// Sandbox was given up.
        SandboxForgotten = "sandbox.forgotten",
        /// A snapshot is ready.
        SnapshotReady = "snapshot.ready",
        /// A snapshot failed.
        SnapshotFailed = "snapshot.failed",
        /// A snapshot was copied to another host.
        SnapshotCopied = "snapshot.copied",
        /// A snapshot was deleted.
        SnapshotDeleted = "snapshot.deleted",
        /// A patch was added.
        PatchAdded = "patch.added",
        /// A patch was removed.
        PatchRemoved = "patch.removed",
        /// A patch was applied.
        PatchApplied = "patch.applied",
        /// A patch failed.
        PatchFailed = "patch.failed",
        /// Credits were held.
        CreditsHeld = "credits.held",
        /// Credits were charged.
        CreditsCharged = "credits.charged",
        /// A hold was released.
        CreditsReleased = "credits.released",
        /// Credits were granted.
        CreditsGranted = "credits.granted",
        /// A charge was higher than its hold.
        CreditsShortfall = "credits.shortfall",
        /// A reap was planned.
        ReapPlanned = "reap.planned",
        /// A reap was applied.
        ReapApplied = "reap.applied",
        /// A host stopped answering.
        HostDown = "host.down",
        /// A host answers again.
        HostUp = "host.up",
        /// A host is another one than before.
        HostChanged = "host.changed",
    }
}

/// Something that happened, numbered per installation and per sandbox.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Event {
    /// Place in the installation's order; never used again.
    pub seq: u64,
    /// Place in the sandbox's order, from 1 without gaps; null without a sandbox.
    pub sandbox_seq: Option<u64>,
    /// Id; derived from the record's write that caused it.
    pub id: EventId,
    /// When it happened.
    pub time: Time,
    /// Kind.
    pub kind: EventKind,
    /// To which sandbox.
    pub sandbox_id: Option<SandboxId>,
    /// Actor that caused it.
    pub actor: Actor,
    /// Particulars, by kind.
    #[serde(default)]
    pub data: serde_json::Value,
}

/// Groups of kinds, which their names have: a kind of a newer version is in one too.
impl EventKind {
    pub(crate) fn is_of_snapshot(&self) -> bool {
        self.as_str().starts_with("snapshot.")
    }

    pub(crate) fn is_of_patch(&self) -> bool {
        self.as_str().starts_with("patch.")
    }

    pub(crate) fn is_of_credits(&self) -> bool {
        self.as_str().starts_with("credits.")
    }

    /// Whether an operation causes it, whose begin, end and outcome say as much.
    pub(crate) fn is_of_operation(&self) -> bool {
        match self {
            Self::SandboxRequested
            | Self::SandboxProvisioning
            | Self::SandboxReady
            | Self::SandboxFailed
            | Self::SandboxSleeping
            | Self::SandboxWoken
            | Self::SandboxRecreated
            | Self::SandboxRestored
            | Self::SandboxDestroying
            | Self::SandboxDestroyed
            | Self::SandboxForgotten
            | Self::SnapshotReady
            | Self::SnapshotFailed
            | Self::SnapshotCopied
            | Self::SnapshotDeleted
            | Self::PatchApplied
            | Self::PatchFailed
            | Self::CreditsHeld
            | Self::CreditsCharged
            | Self::CreditsReleased => true,
            Self::SandboxAdopted
            | Self::SandboxLost
            | Self::SandboxExpiring
            | Self::SandboxExtended
            | Self::SandboxLabelled
            | Self::PatchAdded
            | Self::PatchRemoved
            | Self::CreditsGranted
            | Self::CreditsShortfall
            | Self::ReapPlanned
            | Self::ReapApplied
            | Self::HostDown
            | Self::HostUp
            | Self::HostChanged
            | Self::Other(_) => false,
        }
    }
}

/// Particulars: the one place that reads them by their names.
impl Event {
    /// A text among them, unless it is empty.
    pub fn text(&self, name: &str) -> Option<&str> {
        self.data.get(name).and_then(serde_json::Value::as_str).filter(|text| !text.is_empty())
    }

    /// The host that it is about.
    pub fn host(&self) -> Option<&str> {
        self.text("host")
    }

    /// The machine that a host was seen to be.
    pub fn machine_id(&self) -> Option<&str> {
        self.text("machine_id")
    }

    /// The snapshot that it is about.
    pub fn snapshot_id(&self) -> Option<&str> {
        self.text("snapshot_id")
    }

    /// The name of the snapshot that it is about.
    pub(crate) fn snapshot_name(&self) -> Option<&str> {
        self.text("snapshot_name")
    }

    /// The place in the order of the patch that it is about.
    pub(crate) fn patch_sequence(&self) -> Option<u64> {
        self.number("sequence")
    }

    /// The amount of money among them.
    pub fn usd(&self) -> Option<Usd> {
        Usd::deserialize(self.data.get("usd")?).ok()
    }

    /// The name of the sandbox that it tells of, where it says so.
    pub fn sandbox_name(&self) -> Option<&str> {
        self.text("name")
    }

    /// Labels that were set, as `key=value`, and those that were removed, as `key-`.
    pub(crate) fn label_changes(&self) -> Vec<String> {
        let set = self.data.get("set").and_then(serde_json::Value::as_object);
        let set = set.into_iter().flatten().map(|(key, value)| match value.as_str() {
            Some(value) => format!("{key}={value}"),
            None => key.clone(),
        });
        let removed = self.data.get("removed").and_then(serde_json::Value::as_array);
        let removed = removed.into_iter().flatten().filter_map(serde_json::Value::as_str);
        set.chain(removed.map(|key| format!("{key}-"))).collect()
    }

    fn number(&self, name: &str) -> Option<u64> {
        self.data.get(name).and_then(serde_json::Value::as_u64)
    }
}

/// An event that a record's write caused and that still has to be appended to the log, which numbers it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PendingEvent {
    /// Derived from (record id, revision, kind), so that a second append is recognised.
    pub id: EventId,
    /// When it happened.
    pub time: Time,
    /// Kind.
    pub kind: EventKind,
    /// To which sandbox.
    pub sandbox_id: Option<SandboxId>,
    /// Actor that caused it.
    pub actor: Actor,
    /// Particulars, by kind.
    #[serde(default)]
    pub data: serde_json::Value,
}

impl PendingEvent {
    /// The amount among its particulars.
    pub fn usd(&self) -> Option<Usd> {
        Usd::deserialize(self.data.get("usd")?).ok()
    }

    /// The event, once the log gave it its numbers.
    pub fn numbered(self, seq: u64, sandbox_seq: Option<u64>) -> Event {
        Event {
            seq,
            sandbox_seq,
            id: self.id,
            time: self.time,
            kind: self.kind,
            sandbox_id: self.sandbox_id,
            actor: self.actor,
            data: self.data,
        }
    }
}

/// The namespace of event ids (a random UUID, fixed for ever).
const EVENT_NAMESPACE: uuid::Uuid =
    uuid::Uuid::from_u128(0x7d1c_41f2_93a8_4c55_9f0e_2b8a_64d0_11c3);

/// The id of the event of this kind that the write of `record` at `revision` causes.
pub fn derived_event_id(record: &str, revision: u64, kind: &EventKind) -> EventId {
    let name = format!("{record}\n{revision}\n{kind}");
    EventId::new(uuid::Uuid::new_v5(&EVENT_NAMESPACE, name.as_bytes()).to_string())
}
