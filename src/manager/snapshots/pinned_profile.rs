//! Pinned profiles: the exact profile that a sandbox was made from, which its snapshots have too.

use crate::domain::error::{Code, Error, Kind};
use crate::domain::profile::Profile;
use crate::domain::sandbox::{ProfileRef, SandboxRecord};
use crate::manager::deps::Deps;

/// The pinned profile of a sandbox, as its extension uses it, by its hash: from `pinned/`, else the catalogue's where that is
/// the same. Never another one.
///
/// Errors: `not_found` when it is lost.
pub(crate) async fn pinned_profile(deps: &Deps, record: &SandboxRecord) -> Result<Profile, Error> {
    match pinned_profile_here(deps, &record.profile).await? {
        Some(here) => Ok(here.for_extension(&record.extension)),
        None => Err(profile_lost_error(&format!("sandbox {}", record.id), &record.profile)
            .detail("id", record.id.as_str())),
    }
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

/// The pinned profile from `pinned/`, or the catalogue's where that is the same.
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

/// Wishes of a profile from outside beyond the catalogue's of its name, in a phrase each.
pub(crate) fn beyond_catalogue(deps: &Deps, profile: &Profile) -> Vec<String> {
    let known = deps.catalogue.usable_profile(profile.id.as_str()).ok();
    if known.is_some_and(|known| known.hash() == profile.hash()) {
        return Vec::new();
    }
    profile.widens(known)
}

/// Error for a pinned profile that is nowhere any more.
pub(crate) fn profile_lost_error(whose: &str, profile: &ProfileRef) -> Error {
    let message = format!("the profile of {whose}, {} {}, is lost", profile.id, profile.version);
    let why = "it is neither in the data directory nor beside an archive of its own, and the catalogue has it no more";
    Error::new(Code::NotFound, message)
        .because(why)
        .hint(format!("put pinned/{}.json back into the data directory", profile.hash))
        .of_kind(Kind::ProfileLost)
        .detail("kind", "profile_lost")
        .detail("hash", profile.hash.as_str())
}
