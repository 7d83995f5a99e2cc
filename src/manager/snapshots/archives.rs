//! Archives of a snapshot: where they are, which is whole, and what is known of each.

use std::sync::Arc;
use std::time::Duration;

use crate::domain::archive::{ArchiveLook, ArchivePlace, Arrived, SnapshotArchives};
use crate::domain::error::{Code, Error, Kind};
use crate::domain::extension::SandboxExtension;
use crate::domain::name::{ExtensionId, HostName};
use crate::domain::profile::Profile;
use crate::domain::reporter::Reporter;
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

/// Hint at a snapshot that is not ready, for whoever reads its archives.
pub(crate) const READABLE: &str = "it takes a snapshot that is ready";

/// The snapshot with exactly this id, at this revision, if it is ready; `hint`: what takes one that is.
pub(crate) async fn ready_snapshot(
    deps: &Deps,
    id: &str,
    revision: Option<u64>,
    hint: &str,
) -> Result<SnapshotRecord, Error> {
    let record = get_snapshot_at_revision(deps, id, revision).await?;
    match ensure_ready(&record, hint) {
        Ok(()) => Ok(record),
        Err(error) => Err(busy_or_refusal(deps, &record.id, error).await),
    }
}

/// Archive of a snapshot on one of its hosts, or where one is to be.
pub(crate) struct ArchiveOnHost {
    pub(crate) archives: Arc<dyn SnapshotArchives>,
    pub(crate) place: ArchivePlace,
    /// Facts of it there, as recorded.
    pub(crate) facts: ArchiveFacts,
}

impl ArchiveOnHost {
    /// Refuses one that is not there as it is known, as far as that is known without reading it.
    async fn ensure_sealed(&self) -> Result<(), Error> {
        let seen = self.archives.look(&self.place).await?;
        if is_sealed(&seen, &self.facts) {
            return Ok(());
        }
        let ArchivePlace { id, host, .. } = &self.place;
        Err(match seen.bytes {
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
        .hint(format!("`sandboxer snapshots verify {id}` says what is wrong")))
    }
}

/// The archive of a snapshot on one host, listed there or not. The profile is needed only where the folder is not known.
pub(crate) async fn archive_on(
    deps: &Deps,
    record: &SnapshotRecord,
    host: &HostName,
) -> Result<ArchiveOnHost, Error> {
    let archives = archives_of(deps, &record.extension)?;
    let mut place = place_without_profile(deps, record, host).await?;
    if !place.is_recorded {
        let profile = profile_of_snapshot(deps, record).await;
        place.profile = if place.path.is_some() { profile.ok() } else { Some(profile?) };
    }
    Ok(ArchiveOnHost { archives, place, facts: facts_on(record, host) })
}

/// The first of a snapshot's archives, of those that are wanted, that is there whole: as far as that is known without reading
/// it, or read to its end where somebody is told of that. Damaged ones come last.
///
/// Errors: what was wrong with the first one.
pub(crate) async fn find_archive(
    deps: &Deps,
    record: &SnapshotRecord,
    is_wanted: impl Fn(&Replica) -> bool,
    read: Option<&dyn Reporter>,
) -> Result<ArchiveOnHost, Error> {
    let mut wanted: Vec<&Replica> =
        record.archives().filter(|replica| is_wanted(replica)).collect();
    wanted.sort_by_key(|replica| replica.state == ReplicaState::Damaged);
    let mut first = None;
    for Replica { host, .. } in wanted {
        let found = archive_on(deps, record, host).await?;
        let checked = match read {
            Some(progress) => found.archives.verify(&found.place, &found.facts, progress).await,
            None => found.ensure_sealed().await,
        };
        match checked {
            Ok(()) => return Ok(found),
            Err(error) => drop(first.get_or_insert(error)),
        }
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

/// Refuses a snapshot that is not ready; `hint`: what takes one that is.
pub(crate) fn ensure_ready(record: &SnapshotRecord, hint: &str) -> Result<(), Error> {
    if record.state == SnapshotState::Ready {
        return Ok(());
    }
    Err(Error::new(Code::Conflict, format!("snapshot {} is {}", record.title(), record.state))
        .hint(hint)
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

/// Archive that was seen, if it is sealed as this snapshot's.
pub(crate) fn sealed_archive(record: &SnapshotRecord, seen: ArchiveLook) -> Option<Arrived> {
    let manifest = seen
        .manifest
        .filter(|manifest| manifest.id == record.id && manifest.owner == record.owner)?;
    let archive = manifest.snapshot.archive;
    if archive.bytes.is_none() || archive.bytes != seen.bytes {
        return None;
    }
    Some(Arrived { path: seen.path?, identity: seen.identity?, archive })
}

/// Whether an error proves that an archive was altered, or is not there. Of a host that does not answer it proves nothing.
pub(crate) fn proves_damage(error: &Error) -> bool {
    matches!(error.kind, Kind::ArchiveAltered | Kind::ArchiveMissing)
}

/// Archives which a host or a place has, whichever extension made them.
pub(crate) fn archive_store(
    deps: &Deps,
    host: &HostName,
) -> Result<Arc<dyn SnapshotArchives>, Error> {
    let works_there =
        |it: &&Arc<dyn SandboxExtension>| check_works_at(deps, it.as_ref(), host).is_ok();
    let mut stores = deps.extensions.values().filter(works_there).filter_map(|it| it.archives());
    stores.next().ok_or_else(|| Error::new(Code::Unsupported, "this build keeps no snapshots"))
}

pub(crate) fn archives_of(
    deps: &Deps,
    extension: &ExtensionId,
) -> Result<Arc<dyn SnapshotArchives>, Error> {
    let extension = deps.extension(extension)?;
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
    let archives = archives_of(deps, &record.extension)?;
    let seen = archives.look(&place).await.map_err(Error::of_a_part)?;
    let profile = seen.manifest.map(|manifest| manifest.profile);
    Ok(profile.filter(|profile| profile.hash() == record.profile.hash))
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
    // Nobody knows whether anything was made of what never was whole.
    let was_whole = !matches!(record.state, SnapshotState::Creating | SnapshotState::Failed)
        && replica.is_some_and(|replica| replica.state != ReplicaState::Arriving);
    let host_identity = replica.and_then(|replica| replica.host_identity.clone());
    let roots = known_roots(deps, host).await;
    Ok(ArchivePlace {
        id: record.id.clone(),
        owners,
        host: host.clone(),
        profile: None,
        is_recorded: was_whole && path.is_some(),
        path,
        host_identity,
        roots,
    })
}
