//! Facts of an archive: what is known of it once it is whole, the same beside it on the host and in the record.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::domain::profile::SnapshotMode;
use crate::domain::words::string_enum;

string_enum! {
    /// Worth of the archive.
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

/// Facts of an archive once it is whole. The same beside it on the host and in the record.
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
    /// Treatment of the containers meanwhile.
    pub mode: Option<SnapshotMode>,
    /// Worth.
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
    /// Things that the host could not put into it, counted by kind (`xattrs`, `sparse`).
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
