//! Facts of an archive: what is known of it on a host, and whether what is seen there is it.

use std::sync::Arc;

use crate::domain::archive::{ArchiveLook, SnapshotArchives};
use crate::domain::error::{Code, Error, Kind};
use crate::domain::extension::SandboxExtension;
use crate::domain::name::HostName;
use crate::domain::snapshot::{ArchiveFacts, SnapshotRecord};
use crate::manager::deps::Deps;
use crate::manager::hosts::places::check_works_at;

/// Facts of a snapshot's archive on one of its hosts, as recorded.
pub(crate) fn facts_on(record: &SnapshotRecord, host: &HostName) -> ArchiveFacts {
    match record.replicas.iter().find(|replica| replica.host.same(host.as_str())) {
        Some(replica) => ArchiveFacts {
            format: Some(replica.format.clone()),
            bytes: Some(replica.bytes),
            ..record.archive.clone()
        },
        None => record.archive.clone(),
    }
}

/// Whether an archive is there as it is known, as far as that is known without reading it.
pub(crate) fn is_sealed(seen: &ArchiveLook, facts: &ArchiveFacts) -> bool {
    let is_recorded =
        seen.manifest.as_ref().is_some_and(|manifest| manifest.snapshot.archive == *facts);
    is_recorded && seen.bytes.is_some() && seen.bytes == facts.bytes
}

/// An archive that is not where, or not what, the record says.
pub(crate) fn not_whole(record: &SnapshotRecord, host: &HostName, bytes: Option<u64>) -> Error {
    let id = &record.id;
    match bytes {
        None => {
            Error::new(Code::NotFound, format!("the archive of snapshot {id} is not on {host}"))
                .of_kind(Kind::ArchiveMissing)
                .detail("differs", "missing")
        }
        Some(_) => Error::new(
            Code::OperationFailed,
            format!("the archive of snapshot {id} on {host} is not what it was"),
        )
        .of_kind(Kind::ArchiveAltered)
        .detail("kind", "altered"),
    }
    .hint(format!("`sandboxer snapshots verify {id}` says what is wrong"))
}

/// Extension that keeps the archives which a host or a place has, whichever made them.
pub(crate) fn archive_keeper(
    deps: &Deps,
    host: &HostName,
) -> Result<Arc<dyn SandboxExtension>, Error> {
    let keeps = |extension: &&Arc<dyn SandboxExtension>| {
        let works_there = check_works_at(deps, extension.as_ref(), host).is_ok();
        extension.archives().is_some() && works_there
    };
    let keeper = deps.extensions.values().find(keeps).cloned();
    keeper.ok_or_else(|| Error::new(Code::Unsupported, "this build keeps no snapshots"))
}

/// An extension's archives.
pub(crate) fn archives_of(
    extension: &dyn SandboxExtension,
) -> Result<&dyn SnapshotArchives, Error> {
    extension.archives().ok_or_else(|| extension.unsupported("keep snapshots"))
}
