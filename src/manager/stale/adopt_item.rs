//! Items of an adoption, and what is said in them.

use crate::domain::adoption::{Adopted, AdoptedKind};
use crate::domain::error::Error;
use crate::domain::facts::{InventoryArchive, InventoryItem};
use crate::domain::name::HostName;
use crate::domain::sandbox::SandboxRecord;
use crate::manager::stale::scan::HostScan;

/// Remark on a record without its name, which is another's.
pub(crate) fn no_name(name: Option<String>, error: &Error) -> String {
    format!("it has no name: {} is taken ({})", name.unwrap_or_default(), error.message)
}

/// Remark on a directory of this machine that a manifest from a host names.
pub(crate) fn sent_again(record: &SandboxRecord) -> Option<String> {
    let repo = record.inputs.get("repo").filter(|_| record.based_on_snapshot.is_none())?;
    Some(format!("it says that it was made from {repo}, which no recreate sends there"))
}

pub(crate) fn lives(record: &SandboxRecord) -> String {
    match record.expires_at {
        Some(deadline) => format!("lives until {deadline}"),
        None => "lives until it is destroyed".to_owned(),
    }
}

pub(crate) fn foreign_words(owner: &str) -> String {
    format!("of another owner: `sandboxer adopt --owner {owner}` takes that over")
}

pub(crate) fn unreadable_words(directory: Option<&str>) -> String {
    format!(
        "nobody can tell whose it is: what {} has for a manifest cannot be read, or says another thing than its labels",
        directory.unwrap_or("it")
    )
}

pub(crate) fn sandbox_item(scan: &HostScan, found: &InventoryItem) -> AdoptItem {
    let item = AdoptItem::new(AdoptedKind::Sandbox, &found.sandbox_id, &scan.host);
    AdoptItem { owner: found.owner.clone(), ..item }
}

pub(crate) fn archive_item(scan: &HostScan, found: &InventoryArchive) -> AdoptItem {
    let item = AdoptItem::new(AdoptedKind::Snapshot, &found.snapshot_id, &scan.host);
    AdoptItem { owner: found.owner.clone(), ..item }
}

/// Item of a host that could not be read.
pub(crate) fn unread_item((host, why): (HostName, Option<Error>)) -> Adopted {
    let silent = || Error::internal(format!("{host} was not looked at"));
    AdoptItem::new(AdoptedKind::Host, host.as_str(), &host).not_done(
        "it could not be judged by: nothing on it was looked for",
        why.unwrap_or_else(silent),
    )
}

/// Item of an adoption before it is known how that ended.
pub(crate) struct AdoptItem {
    pub(crate) id: String,
    pub(crate) kind: AdoptedKind,
    pub(crate) host: HostName,
    pub(crate) name: Option<String>,
    pub(crate) owner: Option<String>,
}

impl AdoptItem {
    pub(crate) fn new(kind: AdoptedKind, id: &str, host: &HostName) -> Self {
        Self { id: id.to_owned(), kind, host: host.clone(), name: None, owner: None }
    }

    pub(crate) fn of(self, owner: &str) -> Self {
        Self { owner: Some(owner.to_owned()), ..self }
    }

    fn with(self, adopted: bool, message: String, error: Option<Error>) -> Adopted {
        let Self { id, kind, host, name, owner } = self;
        Adopted { id, kind, ok: error.is_none(), adopted, host, name, owner, message, error }
    }

    pub(crate) fn done(self, message: impl Into<String>) -> Adopted {
        self.with(true, message.into(), None)
    }

    pub(crate) fn left(self, why: &str) -> Adopted {
        self.with(false, format!("left: {why}"), None)
    }

    pub(crate) fn failed(self, error: Error) -> Adopted {
        self.not_done("it is not adopted", error)
    }

    pub(crate) fn not_done(self, message: impl Into<String>, error: Error) -> Adopted {
        self.with(false, message.into(), Some(error))
    }
}
