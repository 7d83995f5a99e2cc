//! Archives of a snapshot: where they are, which is whole, and what is known of each.

use std::sync::Arc;
use std::time::Duration;

use crate::domain::archive::{ArchiveLook, ArchivePlace, SnapshotArchives};
use crate::domain::error::{Code, Error, Kind};
use crate::domain::extension::SandboxExtension;
use crate::domain::name::HostName;
use crate::domain::profile::Profile;
use crate::domain::snapshot::{
    ArchiveFacts, ArchiveManifest, Replica, ReplicaState, SnapshotRecord, SnapshotState,
};
use crate::manager::deps::Deps;
use crate::manager::hosts::places::check_works_at;
use crate::manager::hosts::roots::known_roots;
use crate::manager::operation::locks::busy_or_refusal;
use crate::manager::snapshots::find::get_snapshot_at_revision;
use crate::manager::snapshots::pinned_profile::{pinned_profile_here, profile_lost_error};

/// Limit of the cleanup after a cancelled operation.
pub(crate) const CLEANUP_LIMIT: Duration = Duration::from_mins(1);

/// The snapshot with exactly this id, if its archive is whole.
pub(crate) async fn ready_snapshot(deps: &Deps, id: &str) -> Result<SnapshotRecord, Error> {
    let record = get_snapshot_at_revision(deps, id, None).await?;
    match ensure_ready(&record) {
        Ok(()) => Ok(record),
        Err(error) => Err(busy_or_refusal(deps, &record.id, error).await),
    }
}

/// The first of a snapshot's archives that is there whole, as far as that is known without reading it, of those that are
/// wanted. Damaged ones come last.
///
/// Errors: what was wrong with the first one.
pub(crate) async fn whole_archive(
    deps: &Deps,
    record: &SnapshotRecord,
    archives: &dyn SnapshotArchives,
    is_wanted: impl Fn(&Replica) -> bool,
) -> Result<ArchivePlace, Error> {
    let mut first = None;
    let mut wanted: Vec<&Replica> =
        record.archives().filter(|replica| is_wanted(replica)).collect();
    wanted.sort_by_key(|replica| replica.state == ReplicaState::Damaged);
    for Replica { host, .. } in wanted {
        let place = archive_place(deps, record, host).await?;
        let why = match archives.look(&place).await {
            Ok(seen) if is_sealed(&seen, &facts_on(record, host)) => return Ok(place),
            Ok(seen) => not_whole(record, host, seen.bytes),
            Err(error) => error,
        };
        first.get_or_insert(why);
    }
    Err(first.unwrap_or_else(|| {
        let message = format!("snapshot {} has no other archive", record.title());
        Error::new(Code::NotFound, message).hint("an export of it can be imported")
    }))
}

/// Manifest beside a snapshot's archive on one of its hosts.
pub(crate) async fn manifest_of(
    deps: &Deps,
    record: &SnapshotRecord,
    host: &HostName,
) -> Result<ArchiveManifest, Error> {
    let snapshot = SnapshotRecord {
        archive: facts_on(record, host),
        message: None,
        replicas: Vec::new(),
        operation: None,
        pending: Vec::new(),
        ..record.clone()
    };
    let profile = profile_of_snapshot(deps, record).await?;
    Ok(ArchiveManifest {
        schema: 1,
        id: record.id.clone(),
        owner: record.owner.clone(),
        snapshot,
        profile: profile.as_written().clone(),
    })
}

/// Refuses a snapshot that is not ready.
pub(crate) fn ensure_ready(record: &SnapshotRecord) -> Result<(), Error> {
    if record.state == SnapshotState::Ready {
        return Ok(());
    }
    Err(Error::new(Code::Conflict, format!("snapshot {} is {}", record.title(), record.state))
        .hint("it takes a snapshot that is ready")
        .detail("state", record.state.as_str()))
}

/// Facts of a snapshot's archive on one of its hosts, as recorded.
pub(crate) fn facts_on(record: &SnapshotRecord, host: &HostName) -> ArchiveFacts {
    let ArchiveFacts { format, bytes, .. } = record.archive.clone();
    let replica = record.replica_on(host);
    ArchiveFacts {
        format: replica.and_then(|replica| replica.format.clone()).or(format),
        bytes: replica.and_then(|replica| replica.bytes).or(bytes),
        ..record.archive.clone()
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

/// Whether an error proves that an archive was altered, or is not there. Of a host that does not answer it proves nothing.
pub(crate) fn proves_damage(error: &Error) -> bool {
    matches!(error.kind, Kind::ArchiveAltered | Kind::ArchiveMissing)
}

/// Extension that keeps the archives which a host or a place has, whichever made them.
pub(crate) fn archive_store(
    deps: &Deps,
    host: &HostName,
) -> Result<Arc<dyn SandboxExtension>, Error> {
    let keeps = |extension: &&Arc<dyn SandboxExtension>| {
        let works_there = check_works_at(deps, extension.as_ref(), host).is_ok();
        extension.archives().is_some() && works_there
    };
    let store = deps.extensions.values().find(keeps).cloned();
    store.ok_or_else(|| Error::new(Code::Unsupported, "this build keeps no snapshots"))
}

/// An extension's archives.
pub(crate) fn archives_of(
    extension: &dyn SandboxExtension,
) -> Result<&dyn SnapshotArchives, Error> {
    extension.archives().ok_or_else(|| extension.unsupported("keep snapshots"))
}

/// The pinned profile of a snapshot, as its extension uses it, by its hash: from `pinned/`, else the catalogue's where that is the same, else from what
/// lies beside an archive. Never another one.
///
/// Errors: `not_found` when it is lost; why a host that may have it could not be asked.
pub(crate) async fn profile_of_snapshot(
    deps: &Deps,
    record: &SnapshotRecord,
) -> Result<Profile, Error> {
    if let Some(here) = pinned_profile_here(deps, &record.profile).await? {
        return Ok(here.for_extension(&record.extension));
    }
    let mut unasked = None;
    for host in record.hosts() {
        match profile_beside_archive(deps, record, host).await {
            Ok(None) => {}
            Ok(Some(profile)) => {
                if let Err(error) = deps.pinned_profiles.put(&profile).await {
                    tracing::warn!(snapshot = %record.id, %error, "its pinned profile could not be stored");
                }
                return Ok(profile.for_extension(&record.extension));
            }
            Err(error) => {
                unasked.get_or_insert(error);
            }
        }
    }
    Err(match unasked {
        Some(error) => {
            error.hint(format!("the profile of snapshot {} is beside its archive only", record.id))
        }
        None => profile_lost_error(&format!("snapshot {}", record.title()), &record.profile),
    })
}

/// The profile in the manifest of an archive, if it is the pinned one.
async fn profile_beside_archive(
    deps: &Deps,
    record: &SnapshotRecord,
    host: &HostName,
) -> Result<Option<Profile>, Error> {
    let place = place_without_profile(deps, record, host).await?;
    if place.path.is_none() {
        return Ok(None);
    }
    let extension = deps.extension(&record.extension)?;
    let seen = archives_of(extension.as_ref())?.look(&place).await.map_err(Error::of_a_part)?;
    let profile = seen.manifest.map(|manifest| manifest.profile);
    Ok(profile.filter(|profile| profile.hash() == record.profile.hash))
}

/// The place of a snapshot's archive: on its own host, or a replica's. It takes the profile only where the folder is not
/// known.
pub(crate) async fn archive_place(
    deps: &Deps,
    record: &SnapshotRecord,
    host: &HostName,
) -> Result<ArchivePlace, Error> {
    let mut place = place_without_profile(deps, record, host).await?;
    if place.path.is_none() {
        place.profile = Some(profile_of_snapshot(deps, record).await?);
    }
    Ok(place)
}

async fn place_without_profile(
    deps: &Deps,
    record: &SnapshotRecord,
    host: &HostName,
) -> Result<ArchivePlace, Error> {
    let mut owners = deps.installation.owners().await?;
    owners.retain(|owner| *owner != record.owner);
    owners.push(record.owner.clone());
    let replica = record.replica_on(host);
    let path = replica.and_then(|replica| replica.path.clone());
    let host_identity = replica.and_then(|replica| replica.host_identity.clone());
    let roots = known_roots(deps, host).await;
    Ok(ArchivePlace {
        id: record.id.clone(),
        owners,
        host: host.clone(),
        profile: None,
        path,
        host_identity,
        roots,
    })
}
