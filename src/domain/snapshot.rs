//! Snapshots: what is known of one, where its archives are, and what lies beside each on its host.

mod archive_facts;
mod earlier;

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::domain::actor::Actor;
use crate::domain::event::PendingEvent;
use crate::domain::facts::HostIdentity;
use crate::domain::name::{ExtensionId, HostName, OwnerId, SandboxId, SnapshotId};
use crate::domain::profile::Profile;
use crate::domain::sandbox::{Failure, ProfileRef, Running};
use crate::domain::time::Time;
use crate::domain::undo::UndoFacts;
use crate::domain::words::string_enum;

pub use archive_facts::{ArchiveFacts, ArchiveFormat, CapturedVolume, Consistency, NotCaptured};

string_enum! {
    /// Purpose of a snapshot.
    #[derive(Default)]
    pub enum SnapshotKind {
        /// Somebody asked for it.
        #[default]
        User = "user",
        /// Taken before a removal, to take that back.
        Undo = "undo",
    }
}

string_enum! {
    /// How far a snapshot has come.
    pub enum SnapshotState {
        /// Written down; its archive is being made, copied here or checked.
        Creating = "creating",
        /// Its archive is whole.
        Ready = "ready",
        /// Not made; nothing of it is left on the host.
        Failed = "failed",
        /// Being removed.
        Deleting = "deleting",
    }
}

impl SnapshotState {
    /// Whether a transition to `next` is legal. Staying is always legal.
    pub fn may_become(&self, next: &Self) -> bool {
        use SnapshotState::{Creating, Deleting, Failed, Ready};
        self == next
            || match self {
                Creating => matches!(next, Ready | Failed | Deleting),
                // Back, when dependants turn up, or nobody could reach the host.
                Deleting => matches!(next, Ready | Failed | Self::Other(_)),
                Ready | Failed | Self::Other(_) => matches!(next, Deleting),
            }
    }
}

string_enum! {
    /// State of a replica.
    pub enum ReplicaState {
        /// On its way, or what was left by whoever brought it: `recover` lists it, or sweeps it away.
        Arriving = "arriving",
        /// Whole, as far as nobody found it otherwise.
        Ready = "ready",
        /// Not what it was, or not there, by the last verify.
        Damaged = "damaged",
        /// To be removed when its host answers.
        Removing = "removing",
    }
}

/// Archive of a snapshot on a host.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Replica {
    /// The host.
    pub host: HostName,
    /// Identity that it proved.
    #[serde(default)]
    pub host_identity: Option<HostIdentity>,
    /// The folder on it, absolute; null until it is known.
    pub path: Option<String>,
    /// How it is.
    pub state: ReplicaState,
    /// Why it is damaged, or not removed yet; a sentence.
    #[serde(default)]
    pub message: Option<String>,
    /// How it is compressed there.
    #[serde(default)]
    pub format: Option<ArchiveFormat>,
    /// Its size there; bytes.
    #[serde(default)]
    pub bytes: Option<u64>,
    /// When it was written down, or came to be whole.
    pub created_at: Time,
}

impl Replica {
    /// Replica that is about to be made on a host, or brought there.
    pub fn arriving(host: HostName, host_identity: Option<HostIdentity>, now: Time) -> Self {
        Self {
            host,
            host_identity,
            path: None,
            state: ReplicaState::Arriving,
            message: None,
            format: None,
            bytes: None,
            created_at: now,
        }
    }

    /// Whether it is in this folder of this machine, whatever its host is called: the same place is the same machine id and
    /// root.
    pub fn is_at(&self, identity: Option<&HostIdentity>, path: Option<&str>) -> bool {
        let machine = |identity: Option<&HostIdentity>| {
            identity.map(|it| it.machine_id.clone()).filter(|id| !id.is_empty())
        };
        let known = machine(self.host_identity.as_ref());
        known.is_some()
            && known == machine(identity)
            && path.is_some()
            && self.path.as_deref() == path
    }
}

/// Record of a snapshot (contract, section 3).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(remote = "Self")]
pub struct SnapshotRecord {
    /// `snap-` plus 8 hex digits.
    pub id: SnapshotId,
    /// Its name, unique among snapshots that have not failed.
    pub name: Option<String>,
    /// Purpose.
    pub kind: SnapshotKind,
    /// The sandbox it was taken from.
    pub sandbox_id: SandboxId,
    /// That sandbox's name then.
    #[serde(default)]
    pub sandbox_name: Option<String>,
    /// The profile of that sandbox; a restore uses it, whatever the catalogue says by then.
    pub profile: ProfileRef,
    /// The backend.
    pub extension: ExtensionId,
    /// The version of that backend that made its archive; null on one of an earlier sandboxer.
    #[serde(default)]
    pub extension_version: Option<String>,
    /// Where its archive was made.
    pub host: HostName,
    /// How far it has come.
    pub state: SnapshotState,
    /// A sentence for a person.
    #[serde(default)]
    pub message: Option<String>,
    /// The evidence of a failure.
    #[serde(default)]
    pub failure: Option<Failure>,
    /// When it was written down.
    pub created_at: Time,
    /// When it came here from a file; null on one that was taken here. A profile's `keep` leaves those alone.
    #[serde(default)]
    pub imported_at: Option<Time>,
    /// The id that it had where that file was written.
    #[serde(default)]
    pub imported_from: Option<SnapshotId>,
    /// When its record was made from what its host has; null where it was recorded as it was taken.
    #[serde(default)]
    pub adopted_at: Option<Time>,
    /// When it goes by itself (undo snapshots); null means never.
    pub expires_at: Option<Time>,
    /// Facts that an undo snapshot has of its sandbox besides.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub undo: Option<Box<UndoFacts>>,
    /// Facts of its archive.
    #[serde(flatten)]
    pub archive: ArchiveFacts,
    /// The snapshot that its sandbox was restored from.
    pub parent_snapshot: Option<SnapshotId>,
    /// The highest patch of that one its sandbox had.
    pub patch_level: u64,
    /// The sequence of the next patch on this one, from 1; only grows.
    pub next_patch_sequence: u64,
    /// Labels, taken over from the sandbox.
    #[serde(default)]
    pub labels: BTreeMap<String, String>,
    /// The sandbox's inputs, for what is restored from it.
    #[serde(default)]
    pub inputs: BTreeMap<String, String>,
    /// All that hosts have of it, or may have: the archive that it was made with, and copies. One for each host.
    #[serde(default)]
    pub replicas: Vec<Replica>,
    /// When all of them were last read and found to be what they were.
    #[serde(default)]
    pub verified_at: Option<Time>,
    /// Words of the last verify in `message`, where it could not read all of them: the next one takes them back.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unread: Option<String>,
    /// Operation that works on it now.
    #[serde(default)]
    pub operation: Option<Running>,
    /// Actor that asked for it.
    pub actor: Actor,
    /// The installation that made it.
    pub owner: OwnerId,
    /// Grows by one with each write.
    pub revision: u64,
    /// Fields of the earlier Python tool's record that have no place here, where it was imported.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub imported: Option<serde_json::Value>,
    /// Events that its last write caused and that nobody has appended yet.
    #[serde(default)]
    pub pending: Vec<PendingEvent>,
}

impl SnapshotRecord {
    /// The name, or the id where it has none.
    pub fn title(&self) -> &str {
        self.name.as_deref().unwrap_or(self.id.as_str())
    }

    /// The name that it keeps from others: none once it has failed.
    pub fn name_in_use(&self) -> Option<&str> {
        self.name.as_deref().filter(|_| self.state != SnapshotState::Failed)
    }

    /// Whether it is labelled `protect=true`: then no sweep and no bulk touches it. The labels of an undo snapshot are its
    /// sandbox's, and say nothing of it.
    pub fn is_protected(&self) -> bool {
        let labelled = self.labels.get("protect").is_some_and(|value| value == "true");
        labelled && self.kind == SnapshotKind::User
    }

    pub fn replica_on(&self, host: &HostName) -> Option<&Replica> {
        self.replicas.iter().find(|replica| replica.host.same(host.as_str()))
    }

    /// The archives that are to be there.
    pub fn archives(&self) -> impl Iterator<Item = &Replica> {
        self.replicas.iter().filter(|replica| replica.state != ReplicaState::Arriving)
    }

    pub fn hosts(&self) -> impl Iterator<Item = &HostName> {
        self.archives().map(|replica| &replica.host)
    }

    /// The archives that are there and not what they were.
    pub fn damaged(&self) -> impl Iterator<Item = &Replica> {
        self.replicas.iter().filter(|replica| replica.state == ReplicaState::Damaged)
    }

    /// Lists an archive, in place of whatever was known of its host, or of its place under another name.
    pub fn list_replica(&mut self, listed: Replica) {
        let is_here = |known: &Replica| {
            known.host.same(listed.host.as_str())
                || known.is_at(listed.host_identity.as_ref(), listed.path.as_deref())
        };
        let at = self.replicas.iter().position(is_here).unwrap_or(self.replicas.len());
        self.replicas.retain(|known| !is_here(known));
        self.replicas.insert(at, listed);
    }

    /// Takes off what is known of a host.
    pub fn drop_replica(&mut self, host: &HostName) {
        self.replicas.retain(|replica| !replica.host.same(host.as_str()));
    }

    /// Notes how the archive on a host is, if it is listed.
    pub fn mark_replica(&mut self, host: &HostName, state: ReplicaState, message: Option<String>) {
        let known = self.replicas.iter_mut().find(|replica| replica.host.same(host.as_str()));
        if let Some(replica) = known {
            (replica.state, replica.message) = (state, message);
        }
    }

    /// Notes the same of all of its archives.
    pub fn mark_all(&mut self, state: &ReplicaState) {
        for replica in &mut self.replicas {
            replica.state = state.clone();
        }
    }

    /// Whether it failed, nobody works on it, and nothing of it is left on a host: a record and no more.
    pub fn came_to_nothing(&self) -> bool {
        self.state == SnapshotState::Failed && self.replicas.is_empty() && self.operation.is_none()
    }

    /// Brings the JSON of a record of an earlier version into today's shape.
    pub(crate) fn bring_up_to_date(record: &mut serde_json::Map<String, serde_json::Value>) {
        earlier::list_replicas(record);
    }

    /// Whether its deletion began, and nobody is at it: a host did not let it go.
    pub fn is_half_deleted(&self) -> bool {
        self.state == SnapshotState::Deleting && self.operation.is_none()
    }

    /// Whether hosts may have something of it that is to be finished or removed: `recover` looks.
    pub fn has_remains(&self) -> bool {
        let is_left = |replica: &Replica| {
            matches!(replica.state, ReplicaState::Arriving | ReplicaState::Removing)
        };
        self.replicas.iter().any(is_left)
    }

    /// Whether its archives are damaged, each of them: nothing can be restored from it.
    pub fn is_lost(&self) -> bool {
        let is_damaged = |replica: &Replica| replica.state == ReplicaState::Damaged;
        self.damaged().next().is_some() && self.archives().all(is_damaged)
    }

    /// Its replicas that are not `ready`, in a few words each: `damaged`, or `damaged on HOST` where another one is sound.
    pub fn replica_words(&self) -> Vec<String> {
        let told = self.replicas.iter().filter(|replica| match replica.state {
            ReplicaState::Ready => false,
            // The snapshot's own state says the same.
            ReplicaState::Arriving => self.state != SnapshotState::Creating,
            ReplicaState::Removing => self.state != SnapshotState::Deleting,
            ReplicaState::Damaged | ReplicaState::Other(_) => true,
        });
        let alone = self.replicas.len() == 1;
        told.map(|replica| match &replica.state {
            state if alone => state.to_string(),
            state => format!("{state} on {}", replica.host),
        })
        .collect()
    }
}

impl Serialize for SnapshotRecord {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        Self::serialize(self, serializer)
    }
}

impl<'de> Deserialize<'de> for SnapshotRecord {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let mut record = serde_json::Map::deserialize(deserializer)?;
        Self::bring_up_to_date(&mut record);
        Self::deserialize(serde_json::Value::Object(record)).map_err(D::Error::custom)
    }
}

/// Manifest beside an archive on a host: enough to list it again, and to restore it, with no other record of it.
/// `id` and `owner` come first and on lines of their own, so that a shell script can tell whose it is.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ArchiveManifest {
    /// 1.
    pub schema: u64,
    pub id: SnapshotId,
    /// The installation that made it.
    pub owner: OwnerId,
    /// The record as it was when the archive was sealed. On a copy, `archive.format` and `archive.bytes` are the copy's.
    pub snapshot: SnapshotRecord,
    #[serde(rename = "recipe")]
    pub profile: Profile,
}

#[cfg(test)]
mod tests;
