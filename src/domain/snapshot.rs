//! Snapshots: what is known of each, and what lies beside its archive on a host.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::domain::actor::Actor;
use crate::domain::event::PendingEvent;
use crate::domain::facts::HostIdentity;
use crate::domain::name::{ExtensionId, HostName, OwnerId, SandboxId, SnapshotId};
use crate::domain::profile::{Profile, SnapshotMode};
use crate::domain::sandbox::{Failure, ProfileRef, Running};
use crate::domain::time::Time;
use crate::domain::undo::UndoFacts;
use crate::domain::words::string_enum;

string_enum! {
    /// Who a snapshot is for.
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
        /// It could not be made; nothing of it is left on the host.
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
    /// What the archive is worth.
    pub enum Consistency {
        /// Nothing changed while it was read.
        Clean = "clean",
        /// Files changed while they were read (GNU tar's exit status 1).
        Fuzzy = "fuzzy",
    }
}

string_enum! {
    /// How an archive is compressed.
    pub enum ArchiveFormat {
        /// `archive.tar.zst`.
        TarZst = "tar.zst",
        /// `archive.tar.gz`.
        TarGz = "tar.gz",
    }
}

impl ArchiveFormat {
    /// The archive's file name.
    pub fn file_name(&self) -> String {
        format!("archive.{self}")
    }
}

/// A volume whose content is in the archive, under `volumes/<name>/`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CapturedVolume {
    /// Its name in the compose file.
    pub name: String,
}

/// A volume that is not in the archive.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct NotCaptured {
    /// Its name in the compose file.
    pub name: String,
    /// Why, in a sentence.
    pub reason: String,
}

/// What is known of an archive once it is whole. The same beside it on the host and in the record.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct ArchiveFacts {
    /// The archive file's size on the host; bytes.
    pub bytes: Option<u64>,
    /// The size of the tar inside; bytes. What extracting may at most write is less.
    pub content_bytes: Option<u64>,
    /// Entries in it, folders too.
    pub files: Option<u64>,
    /// SHA-256 (hex) of the tar inside: the same whatever it is compressed with.
    pub sha256: Option<String>,
    /// How it is compressed.
    pub format: Option<ArchiveFormat>,
    /// What happened to the containers meanwhile.
    pub mode: Option<SnapshotMode>,
    /// What it is worth.
    pub consistency: Option<Consistency>,
    /// How much of the tar is `volumes/…`, which come first; bytes. What follows is `workspace/…`.
    pub volumes_bytes: u64,
    /// Volumes in it.
    pub captured_volumes: Vec<CapturedVolume>,
    /// Volumes that are not.
    pub not_captured: Vec<NotCaptured>,
    /// Remarks, a sentence each: what did not stand still, and what will be in the way of who restores it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub remarks: Vec<String>,
    /// What the host could not put into it, counted by kind (`xattrs`, `sparse`).
    pub not_preserved: BTreeMap<String, u64>,
    /// Sockets and device nodes, which are never in it: their paths, at most 100.
    pub left_out: Vec<String>,
    /// How many there were.
    pub left_out_count: u64,
    /// Entries that do not belong to `self`, the account that made the sandbox.
    pub foreign_owners: u64,
    /// The numbers of `self` (`UID:GID`), where the tar inside has no such name: busybox's knows none.
    pub account: Option<String>,
    /// Whether it takes GNU tar to read it (pax headers for sparse files and xattrs).
    pub needs_gnu_tar: bool,
    /// SHA-256 (hex) of the compose file that was running.
    pub compose_hash: Option<String>,
    /// Image ids or digests by service.
    pub images: BTreeMap<String, String>,
    /// Patterns that were left out.
    pub excludes: Vec<String>,
}

impl ArchiveFacts {
    /// Whether it has volumes in it of which nobody knows the names: they cannot be restored.
    pub fn has_nameless_volumes(&self) -> bool {
        self.volumes_bytes > 0 && self.captured_volumes.is_empty()
    }
}

/// A copy of an archive on a further host.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Replica {
    /// The host.
    pub host: HostName,
    /// What it proved to be.
    pub host_identity: Option<HostIdentity>,
    /// The folder on it.
    pub path: String,
    /// How it is compressed there.
    pub format: ArchiveFormat,
    /// Its size there; bytes.
    pub bytes: u64,
    /// When it was verified on arrival.
    pub created_at: Time,
}

string_enum! {
    /// What is wrong with an archive.
    pub enum DamageKind {
        /// It is not what it was, or what lies beside it is not.
        Altered = "altered",
        /// It is not there.
        Missing = "missing",
    }
}

/// What somebody who read an archive, or looked for it, found wrong with it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Damage {
    /// The host of that archive.
    pub host: HostName,
    /// What is wrong.
    pub kind: DamageKind,
    /// The same in a sentence.
    pub message: String,
    /// When it was found.
    pub found_at: Time,
}

/// What is known of one snapshot (contract, section 3).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SnapshotRecord {
    /// `snap-` plus 8 hex digits.
    pub id: SnapshotId,
    /// Its name, unique among snapshots that have not failed.
    pub name: Option<String>,
    /// Who it is for.
    pub kind: SnapshotKind,
    /// The sandbox it was taken from.
    pub sandbox_id: SandboxId,
    /// That sandbox's name then.
    #[serde(default)]
    pub sandbox_name: Option<String>,
    /// The recipe of that sandbox; a restore uses it, whatever the catalogue says by then.
    pub profile: ProfileRef,
    /// The backend.
    pub extension: ExtensionId,
    /// The version of that backend that made its archive; null on one of an earlier sandboxer.
    #[serde(default)]
    pub extension_version: Option<String>,
    /// Where its archive was made.
    pub host: HostName,
    /// What that host proved to be.
    #[serde(default)]
    pub host_identity: Option<HostIdentity>,
    /// The archive's folder there, absolute.
    #[serde(default)]
    pub path: Option<String>,
    /// How far it has come.
    pub state: SnapshotState,
    /// A sentence for a person.
    #[serde(default)]
    pub message: Option<String>,
    /// The evidence of a failure.
    #[serde(default)]
    pub failure: Option<Failure>,
    /// Whether something of it may still be on a host: nobody could look. `recover` does.
    #[serde(default)]
    pub unremoved: bool,
    /// When it was written down.
    pub created_at: Time,
    /// When it came here from a file; null on one that was taken here. A profile's `keep` leaves those alone.
    #[serde(default)]
    pub imported_at: Option<Time>,
    /// When its record was made from what its host has; null where it was recorded as it was taken.
    #[serde(default)]
    pub adopted_at: Option<Time>,
    /// When it goes by itself (undo snapshots); null means never.
    pub expires_at: Option<Time>,
    /// What else an undo snapshot has of its sandbox.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub undo: Option<Box<UndoFacts>>,
    /// What is known of its archive.
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
    /// Copies on further hosts.
    #[serde(default)]
    pub replicas: Vec<Replica>,
    /// The host that a copy is on its way to.
    #[serde(default)]
    pub copying_to: Option<HostName>,
    /// When its archive was last read and found to be what it was.
    #[serde(default)]
    pub verified_at: Option<Time>,
    /// What was found wrong with its archives since, one for each host at most; a good verify takes it away again.
    #[serde(default)]
    pub damage: Vec<Damage>,
    /// What is being done with it now.
    #[serde(default)]
    pub operation: Option<Running>,
    /// Who asked for it.
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

    /// The archives that are to be there: the first, and the copies.
    pub fn hosts(&self) -> impl Iterator<Item = &HostName> {
        std::iter::once(&self.host).chain(self.replicas.iter().map(|replica| &replica.host))
    }

    /// Whether it failed, nobody works on it, and nothing of it is left on a host: a record and no more.
    pub fn came_to_nothing(&self) -> bool {
        let left = self.unremoved || self.copying_to.is_some() || !self.replicas.is_empty();
        self.state == SnapshotState::Failed && !left && self.operation.is_none()
    }

    /// What was found wrong with its archive on this host.
    pub fn damage_on(&self, host: &HostName) -> Option<&Damage> {
        self.damage.iter().find(|damage| damage.host.same(host.as_str()))
    }

    /// Whether none of its archives is known to be sound: nothing can be restored from it.
    pub fn is_lost(&self) -> bool {
        self.hosts().all(|host| self.damage_on(host).is_some())
    }

    /// What was found wrong with its archives, in a few words each: `altered`, or `missing on HOST` where another one is
    /// sound.
    pub fn damage_words(&self) -> Vec<String> {
        let lost = self.is_lost();
        let mut words: Vec<String> = Vec::new();
        for damage in &self.damage {
            let word = if lost {
                damage.kind.to_string()
            } else {
                format!("{} on {}", damage.kind, damage.host)
            };
            if !words.contains(&word) {
                words.push(word);
            }
        }
        words
    }
}

/// What lies beside an archive on a host: enough to list it again, and to restore it, with no other record of it.
/// `id` and `owner` come first and on lines of their own, so that a shell script can tell whose it is.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ArchiveManifest {
    /// 1.
    pub schema: u64,
    /// The snapshot.
    pub id: SnapshotId,
    /// The installation that made it.
    pub owner: OwnerId,
    /// The record as it was when the archive was sealed. On a copy, `archive.format` and `archive.bytes` are the copy's.
    pub snapshot: SnapshotRecord,
    /// The recipe.
    pub recipe: Profile,
}

#[cfg(test)]
mod tests;
