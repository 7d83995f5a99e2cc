//! Pinned profiles: the exact profile that a sandbox was made from, which its snapshots have too; and the places of archives,
//! which follow from it.

use crate::domain::archive::ArchivePlace;
use crate::domain::error::{Code, Error, Kind};
use crate::domain::name::HostName;
use crate::domain::profile::Profile;
use crate::domain::sandbox::{ProfileRef, SandboxRecord};
use crate::domain::snapshot::SnapshotRecord;
use crate::manager::deps::Deps;
use crate::manager::hosts::roots::known_roots;
use crate::manager::snapshots::archive_facts::archives_of;

/// The pinned profile of a sandbox, as its extension uses it, by its hash: found as [`profile_of_snapshot`] finds it, beside the
/// archive of any snapshot that has the same. Never another one.
///
/// Errors: `not_found` when it is lost; why a host that may have it could not be asked.
pub(crate) async fn pinned_profile(deps: &Deps, record: &SandboxRecord) -> Result<Profile, Error> {
    if let Some(here) = pinned_profile_here(deps, &record.profile).await? {
        return Ok(here.for_extension(&record.extension));
    }
    let mut unasked = None;
    let snapshots = deps.snapshots.list().await?;
    for snapshot in snapshots.iter().filter(|snapshot| snapshot.profile.hash == record.profile.hash)
    {
        match profile_of_snapshot(deps, snapshot).await {
            Ok(profile) => return Ok(profile.for_extension(&record.extension)),
            Err(error) if is_profile_lost(&error) => {}
            Err(error) => {
                unasked.get_or_insert(error);
            }
        }
    }
    let error = unasked
        .unwrap_or_else(|| profile_lost_error(&format!("sandbox {}", record.id), &record.profile));
    Err(error.detail("id", record.id.as_str()))
}

/// Known part of a sandbox's pinned profile: if it is lost, today's profile of its id has its root and its grace at
/// least, as far as anybody can tell.
pub(crate) async fn pinned_profile_as_known(deps: &Deps, record: &SandboxRecord) -> Profile {
    let ProfileRef { id, version, .. } = &record.profile;
    match pinned_profile_here(deps, &record.profile).await {
        Ok(Some(profile)) => return profile.for_extension(&record.extension),
        Ok(None) => {
            tracing::warn!(sandbox = %record.id, %id, version, "its pinned profile is lost");
        }
        Err(error) => {
            tracing::warn!(sandbox = %record.id, %error, "its pinned profile cannot be read");
        }
    }
    match deps.catalogue.profile(id.as_str()).and_then(|entry| entry.definition()) {
        Ok(today) => today.clone().for_extension(&record.extension),
        Err(_) => Profile::unknown(id.clone(), version, record.extension.clone()),
    }
}

/// The pinned profile from `recipes/`, or the catalogue's where that is the same.
pub(crate) async fn pinned_profile_here(
    deps: &Deps,
    recorded: &ProfileRef,
) -> Result<Option<Profile>, Error> {
    if let Some(kept) = deps.pinned_profiles.get(&recorded.hash).await? {
        return Ok(Some(kept));
    }
    let today = deps.catalogue.profile(recorded.id.as_str()).and_then(|entry| entry.definition());
    Ok(today.ok().filter(|today| today.hash() == recorded.hash).cloned())
}

/// The pinned profile of a snapshot, as its extension uses it, by its hash: from `recipes/`, else the catalogue's where that is the same, else from what
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
            error.hint(format!("the recipe of snapshot {} is beside its archive only", record.id))
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
    let profile = seen.manifest.map(|manifest| manifest.recipe);
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
    let replica = record.replicas.iter().find(|replica| replica.host.same(host.as_str()));
    let own = record.host.same(host.as_str());
    let (path, host_identity) = match replica {
        Some(replica) => (Some(replica.path.clone()), replica.host_identity.clone()),
        None if own => (record.path.clone(), record.host_identity.clone()),
        None => (None, None),
    };
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

/// What a profile from outside asks for beyond the catalogue's of its name, in a phrase each.
pub(crate) fn beyond_catalogue(deps: &Deps, profile: &Profile) -> Vec<String> {
    let known = deps.catalogue.recipe(profile.id.as_str()).ok();
    if known.is_some_and(|known| known.hash() == profile.hash()) {
        return Vec::new();
    }
    profile.widens(known)
}

/// Whether an error says that a pinned profile is lost.
pub(crate) fn is_profile_lost(error: &Error) -> bool {
    error.kind == Kind::ProfileLost
}

fn profile_lost_error(whose: &str, profile: &ProfileRef) -> Error {
    let message = format!("the recipe of {whose}, {} {}, is lost", profile.id, profile.version);
    let why = "it is neither in the data directory nor beside an archive, and the catalogue has it no more";
    Error::new(Code::NotFound, message)
        .because(why)
        .hint(format!("put recipes/{}.json back into the data directory", profile.hash))
        .of_kind(Kind::ProfileLost)
        .detail("kind", "recipe_lost")
        .detail("hash", profile.hash.as_str())
}
