//! Work with archives on hosts, whichever sandbox they come from. The contract between the manager and the
//! extensions that keep snapshots as archives (contract, section 6).

use async_trait::async_trait;
use futures_util::stream::BoxStream;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::domain::error::Error;
use crate::domain::facts::HostIdentity;
use crate::domain::name::{HostName, OwnerId, SnapshotId};
use crate::domain::profile::Profile;
use crate::domain::reporter::Reporter;
use crate::domain::root::{KnownRoots, MarkedRoot};
use crate::domain::snapshot::{ArchiveFacts, ArchiveManifest, Replica, ReplicaState};
use crate::domain::teardown::TeardownReport;
use crate::domain::time::Time;
use crate::domain::words::string_enum;

/// Bytes on their way; the first error ends it.
pub type ByteStream = BoxStream<'static, Result<Vec<u8>, Error>>;

/// Word for scripts of [`Kind::ArrivedOtherwise`](crate::domain::error::Kind::ArrivedOtherwise).
pub const ARRIVED_OTHERWISE: &str = "arrived_otherwise";

/// Which archive, on which host.
#[derive(Debug, Clone)]
pub struct ArchivePlace {
    pub id: SnapshotId,
    /// Owner ids that count as ours.
    pub owners: Vec<OwnerId>,
    pub host: HostName,
    /// The snapshot's profile, where the folder is not known: its `config.root` says where archives are, where it has one.
    pub profile: Option<Profile>,
    /// The folder, if it is known.
    pub path: Option<String>,
    /// Whether it is recorded that something is in that folder.
    pub is_recorded: bool,
    /// Identity that the host proved. A different one is `host_changed`.
    pub host_identity: Option<HostIdentity>,
    /// Workspace roots of the host, as far as they are known. An archive that is recorded and not there is `not_found` only in a root
    /// that is known to be the one, else `host_changed`.
    pub roots: KnownRoots,
}

/// Look at what a host has of a snapshot.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct ArchiveLook {
    /// The folder, there or not; none where nobody can tell yet.
    pub folder: Option<String>,
    /// The folder, if it is there.
    pub path: Option<String>,
    /// Identity that the host proved.
    pub identity: Option<HostIdentity>,
    /// Its manifest, if the archive was sealed: then it is whole.
    pub manifest: Option<ArchiveManifest>,
    /// The archive file's size, if it is there under its last name; bytes.
    pub bytes: Option<u64>,
    /// Workspace root that it is in, where its mark was not known.
    pub root: Option<MarkedRoot>,
}

/// An archive that came to a host and was verified there.
#[derive(Debug, Clone, PartialEq)]
pub struct Arrived {
    /// The folder.
    pub path: String,
    /// Identity that the host proved.
    pub identity: HostIdentity,
    /// Facts of it there: `format` and `bytes` may differ from where it came from.
    pub archive: ArchiveFacts,
}

impl Arrived {
    /// Replica that it is, whole, on this host.
    pub fn replica(self, host: &HostName, now: Time) -> Replica {
        Replica {
            path: Some(self.path),
            state: ReplicaState::Ready,
            format: self.archive.format,
            bytes: self.archive.bytes,
            ..Replica::arriving(host.clone(), Some(self.identity), now)
        }
    }
}

string_enum! {
    /// Kind of an entry.
    pub enum EntryKind {
        /// A regular file.
        File = "file",
        /// A folder.
        Directory = "directory",
        /// A symbolic link.
        Symlink = "symlink",
        /// A further name of a file that came before.
        HardLink = "hard_link",
        /// A named pipe.
        Fifo = "fifo",
    }
}

/// Entry of an archive or of a workspace, as `tar` lists it. Its content is not looked at.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TreeEntry {
    /// `workspace/…` or `volumes/<name>/…`, bytes that are no UTF-8 and control characters escaped as `\NNN`.
    pub path: String,
    /// Kind.
    pub kind: EntryKind,
    /// Its permissions, such as `rwxr-xr-x`.
    pub mode: String,
    /// `user/group`; the account that made the sandbox is `self`.
    pub owner: String,
    /// Its size; bytes.
    pub size: u64,
    /// When it was changed last, in whole seconds of UTC: `YYYY-MM-DDTHH:MM:SSZ`.
    pub modified: String,
    /// Where a link points.
    pub target: Option<String>,
}

/// Work with archives. Every call may be dropped at any await; what it was writing is then a partial file
/// beside which no manifest is, and `remove` takes it away.
#[async_trait]
pub trait SnapshotArchives: Send + Sync {
    /// Look at what the host has of it.
    async fn look(&self, place: &ArchivePlace) -> Result<ArchiveLook, Error>;

    /// Judges what lies beside an archive that no record knows as an import judges its file's head: whoever works on its host can
    /// have written it.
    ///
    /// Errors: `invalid_input` for what no snapshot of ours has beside it.
    fn check_manifest(&self, manifest: &ArchiveManifest) -> Result<(), Error>;

    /// Reads it whole. `operation_failed` with `details.kind` = `altered` when it is not what `facts` say, `not_found` when
    /// it is not there.
    async fn verify(
        &self,
        place: &ArchivePlace,
        facts: &ArchiveFacts,
        reporter: &dyn Reporter,
    ) -> Result<(), Error>;

    /// Removes it, whole or in part, and reads back. Idempotent. What bears its name and is not ours is left alone and
    /// reported as failed.
    async fn remove(
        &self,
        place: &ArchivePlace,
        reporter: &dyn Reporter,
    ) -> Result<TeardownReport, Error>;

    async fn entries(
        &self,
        place: &ArchivePlace,
        facts: &ArchiveFacts,
    ) -> Result<Vec<TreeEntry>, Error>;

    /// Streams it to another host through this process, verifies it there and seals it with `manifest`. Where the other
    /// host cannot read the format it is compressed anew on the way.
    ///
    /// Errors: `operation_failed` with `details.kind` = [`ARRIVED_OTHERWISE`] where what came is not what is recorded.
    async fn copy(
        &self,
        from: &ArchivePlace,
        to: &ArchivePlace,
        manifest: &ArchiveManifest,
        reporter: &dyn Reporter,
    ) -> Result<Arrived, Error>;

    /// A file that [`Self::import`] takes, on this or another installation: manifest and archive.
    ///
    /// Errors, in the stream too: `operation_failed` with `details.kind` = `altered` where the bytes that passed by are not
    /// those that are recorded.
    async fn export(
        &self,
        place: &ArchivePlace,
        manifest: &ArchiveManifest,
    ) -> Result<ByteStream, Error>;

    /// Reads the head of such a file: its manifest, checked as far as it goes, and what comes behind it.
    ///
    /// Errors: `invalid_input` for what is no export.
    async fn open_export(&self, source: ByteStream)
    -> Result<(ArchiveManifest, ByteStream), Error>;

    /// Checks what comes behind the head as hostile while it is sent to `to`, verifies it there and seals it with
    /// `manifest`.
    ///
    /// Errors: `invalid_input` for an archive that names what is outside of it, or is not what its manifest says.
    async fn import(
        &self,
        to: &ArchivePlace,
        manifest: &ArchiveManifest,
        source: ByteStream,
        reporter: &dyn Reporter,
    ) -> Result<Arrived, Error>;
}
