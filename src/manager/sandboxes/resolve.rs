//! Target of an extension's call: a sandbox's record with its pinned profile, owners and roots.

use crate::domain::error::Error;
use crate::domain::extension::Target;
use crate::domain::profile::Profile;
use crate::domain::sandbox::SandboxRecord;
use crate::manager::deps::Deps;
use crate::manager::hosts::roots::known_roots;
use crate::manager::snapshots::pinned_profile::{pinned_profile, pinned_profile_as_known};

/// Target with the pinned profile: for whatever goes by that.
///
/// Errors: those of [`pinned_profile`].
pub(crate) async fn resolve(deps: &Deps, record: &SandboxRecord) -> Result<Target, Error> {
    let profile = pinned_profile(deps, record).await?;
    resolve_with(deps, record, profile).await
}

/// Target with as much of the pinned profile as is known: for inspecting, entering and removing a sandbox, which a lost
/// profile keeps nobody from.
pub(crate) async fn resolve_as_known(deps: &Deps, record: &SandboxRecord) -> Result<Target, Error> {
    let profile = pinned_profile_as_known(deps, record).await;
    resolve_with(deps, record, profile).await
}

async fn resolve_with(
    deps: &Deps,
    record: &SandboxRecord,
    profile: Profile,
) -> Result<Target, Error> {
    let mut owners = deps.installation.owners().await?;
    owners.retain(|owner| *owner != record.owner);
    owners.push(record.owner.clone());
    Ok(Target {
        id: record.id.clone(),
        owners,
        host: record.host.clone(),
        profile,
        inputs: record.inputs.clone(),
        handle: record.handle.clone(),
        workdir: record.workdir.clone(),
        host_identity: record.host_identity.clone(),
        stamp: None,
        roots: known_roots(deps, &record.host).await,
        start_output: None,
    })
}
