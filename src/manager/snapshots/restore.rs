//! Restore: a new sandbox from a snapshot, under the rules of a create (semantics 2 and 6).

use std::collections::BTreeMap;

use crate::domain::error::Error;
use crate::domain::extension::{Capability, ProvisionRequest};
use crate::domain::name::check_name;
use crate::domain::profile::Seconds;
use crate::domain::request::{CreateRequest, RestoreRequest, Started};
use crate::failpoint;
use crate::manager::deps::Deps;
use crate::manager::operation::locks::busy_or_refusal;
use crate::manager::sandboxes::create::{
    NewSandbox, Resolved, draft_provision, quote_price, write_ahead,
};
use crate::manager::sandboxes::establish::run_establishment;
use crate::manager::sandboxes::establishment::Establishment;
use crate::manager::sandboxes::place::{Purpose, choose_host};
use crate::manager::snapshots::find::get_snapshot_at_revision;
use crate::manager::snapshots::pinned_profile::profile_of_snapshot;
use crate::manager::snapshots::restore_archive::{BaseSnapshot, check_ready, profile_note};
use crate::manager::upkeep::flush::archive_old;

/// Starts a new sandbox from a snapshot and returns at once.
///
/// Errors: `conflict` for a snapshot that is not ready, and whatever a create refuses.
pub(crate) async fn restore(deps: &Deps, request: &RestoreRequest) -> Result<Started, Error> {
    let snapshot = get_snapshot_at_revision(deps, &request.snapshot, request.revision).await?;
    if let Err(error) = check_ready(&snapshot) {
        return Err(busy_or_refusal(deps, &snapshot.id, error).await);
    }
    let extension = deps.extension(&snapshot.extension)?;
    extension.ensure(&Capability::Snapshots, "restore snapshots")?;
    if let Some(name) = &request.name {
        check_name(name)?;
    }
    let profile = profile_of_snapshot(deps, &snapshot).await?;
    let resolved = Resolved {
        hash: profile.hash(),
        inputs: snapshot.inputs.clone(),
        id: None,
        ttl_s: profile.parse_ttl(request.ttl.as_deref())?.map(Seconds::get),
        profile,
    };
    let quote = quote_price(deps, &resolved).await?;
    let host = request.host.as_deref().unwrap_or(snapshot.host.as_str());
    let (route, compose_host) =
        Box::pin(choose_host(deps, &resolved.profile, Some(host), Purpose::Restore)).await?.on?;
    if !snapshot.hosts().any(|known| known.same(route.host.as_str())) {
        // Before it is brought there for nothing.
        extension.suits(&resolved.profile, &snapshot.archive, &route.host).await?;
    }
    if let Err(error) = archive_old(deps).await {
        tracing::warn!(%error, "the history could not be written");
    }
    deps.recipes.put(&resolved.profile).await?;
    // What the source was protected from, its copy need not be.
    let labels = snapshot.labels.iter().filter(|(key, _)| key.as_str() != "protect");
    let asked = CreateRequest {
        name: request.name.clone(),
        labels: labels.map(|(key, value)| (key.clone(), value.clone())).collect::<BTreeMap<_, _>>(),
        ..CreateRequest::default()
    };
    let new_sandbox = NewSandbox {
        request: &asked,
        resolved: &resolved,
        route,
        quote,
        request_hash: None,
        base: Some(&snapshot),
    };
    let op = Box::pin(write_ahead(deps, new_sandbox)).await?;
    let record = op.subject.clone();
    failpoint::reached("restore.requested");
    let note = profile_note(deps, &snapshot, &resolved.profile);
    let draft = draft_provision(deps, &resolved, &asked, record.host.clone());
    let establishment = Establishment {
        provision: ProvisionRequest {
            id: record.id.clone(),
            created_at: record.created_at,
            allow_large: true,
            compose_host,
            ..draft
        },
        ready_timeout: resolved.profile.ready_timeout.duration(),
        ttl_s: resolved.ttl_s,
        keep_failed: false,
        recreate: false,
        from: Some(BaseSnapshot {
            id: snapshot.id,
            strict: request.strict,
            require_patches: request.require_patches,
            note,
        }),
    };
    let operation = run_establishment(op, establishment);
    Ok(Started { operation: Some(operation), sandbox: record })
}
