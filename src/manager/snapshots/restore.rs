//! Restore: a new sandbox from a snapshot, under the rules of a create (semantics 2 and 6).

use std::collections::BTreeMap;

use crate::domain::error::{Error, Kind, Unique};
use crate::domain::extension::{Capability, ProvisionRequest};
use crate::domain::name::check_name;
use crate::domain::profile::{Profile, Seconds};
use crate::domain::request::{CreateRequest, RestoreRequest, Started};
use crate::domain::sandbox::SandboxRecord;
use crate::domain::snapshot::{SnapshotRecord, SnapshotState};
use crate::failpoint;
use crate::manager::deps::Deps;
use crate::manager::sandboxes::attempt_price::{over_budget, quote_price};
use crate::manager::sandboxes::create::{NewSandbox, Origin, write_ahead};
use crate::manager::sandboxes::establish::run_establishment;
use crate::manager::sandboxes::establishment::Establishment;
use crate::manager::sandboxes::place::{Purpose, choose_host};
use crate::manager::sandboxes::resolved::{Resolved, draft_provision};
use crate::manager::snapshots::archives::{profile_of_snapshot, ready_snapshot};
use crate::manager::snapshots::restore_archive::{BaseSnapshot, RESTORABLE, profile_note};
use crate::manager::upkeep::flush::archive_old;

/// Starts a new sandbox from a snapshot and returns at once.
///
/// Errors: `conflict` for a snapshot that is not ready, and whatever a create refuses.
pub(crate) async fn restore(deps: &Deps, request: &RestoreRequest) -> Result<Started, Error> {
    let snapshot = ready_snapshot(deps, &request.snapshot, request.revision, RESTORABLE).await?;
    let extension = deps.extension(&snapshot.extension)?;
    extension.ensure(&Capability::Snapshots, "restore snapshots")?;
    if let Some(name) = &request.name {
        check_name(name)?;
    }
    let profile = profile_of_snapshot(deps, &snapshot).await?;
    // What the source was protected from, its copy need not be.
    let labels = snapshot.labels.iter().filter(|(key, _)| key.as_str() != "protect");
    let plan = RestorePlan {
        origin: Origin::Snapshot(&snapshot),
        host: request.host.as_deref().unwrap_or(snapshot.host.as_str()),
        names: vec![request.name.clone()],
        labels: labels.map(|(key, value)| (key.clone(), value.clone())).collect(),
        ttl_s: profile.parse_ttl(request.ttl.as_deref())?.map(Seconds::get),
        profile,
        strict: request.strict,
        require_patches: request.require_patches,
    };
    start_restore(deps, &snapshot, plan).await
}

/// Sandbox that is to be made from a snapshot.
pub(crate) struct RestorePlan<'a> {
    pub(crate) origin: Origin<'a>,
    pub(crate) host: &'a str,
    /// Names, of which it gets the first that nobody else has.
    pub(crate) names: Vec<Option<String>>,
    pub(crate) labels: BTreeMap<String, String>,
    pub(crate) ttl_s: Option<u64>,
    pub(crate) profile: Profile,
    /// Fail when the host cannot set all that the archive has.
    pub(crate) strict: bool,
    /// Fail when a patch fails.
    pub(crate) require_patches: bool,
}

/// Starts a new sandbox from a snapshot that is ready.
pub(crate) async fn start_restore(
    deps: &Deps,
    snapshot: &SnapshotRecord,
    plan: RestorePlan<'_>,
) -> Result<Started, Error> {
    let RestorePlan { origin, host, names, labels, ttl_s, profile, strict, require_patches } = plan;
    let extension = deps.extension(&snapshot.extension)?;
    let (hash, inputs) = (profile.hash(), snapshot.inputs.clone());
    let resolved = Resolved { hash, inputs, id: None, ttl_s, profile };
    let quote = quote_price(deps, &resolved).await?;
    if let Some(error) = over_budget(deps, &resolved.profile, quote.as_ref()).await? {
        return Err(error);
    }
    let (route, compose_host) =
        Box::pin(choose_host(deps, &resolved.profile, Some(host), Purpose::Restore)).await?.on?;
    if !snapshot.hosts().any(|known| known.same(route.host.as_str())) {
        // Before it is brought there for nothing.
        extension.suits(&resolved.profile, &snapshot.archive, &route.host).await?;
    }
    if let Err(error) = archive_old(deps).await {
        tracing::warn!(%error, "the history could not be written");
    }
    deps.pinned_profiles.put(&resolved.profile).await?;
    let asked = CreateRequest { labels, ..CreateRequest::default() };
    let mut names = names.into_iter().peekable();
    let op = loop {
        let new_sandbox = NewSandbox {
            request: &CreateRequest { name: names.next().flatten(), ..asked.clone() },
            resolved: &resolved,
            route: route.clone(),
            quote: quote.clone(),
            request_hash: None,
            origin,
        };
        match Box::pin(write_ahead(deps, new_sandbox)).await {
            // Somebody was faster.
            Err(error) if error.kind == Kind::Taken(Unique::Name) && names.peek().is_some() => {}
            written => break written?,
        }
    };
    let record = op.subject.clone();
    failpoint::reached("restore.requested");
    let notes =
        [profile_note(deps, snapshot, &resolved.profile), base_note(deps, snapshot, &record).await];
    let notes: Vec<String> = notes.into_iter().flatten().collect();
    let draft = draft_provision(deps, &resolved, &asked, record.host.clone());
    let provision = ProvisionRequest { allow_large: true, compose_host, ..draft };
    let establishment = Establishment {
        from: Some(BaseSnapshot {
            id: snapshot.id.clone(),
            strict,
            require_patches,
            note: (!notes.is_empty()).then(|| notes.join("; ")),
        }),
        ..Establishment::of(provision.of_record(&record), resolved.ttl_s)
    };
    let operation = run_establishment(op, establishment);
    Ok(Started { operation: Some(operation), sandbox: record })
}

/// Note on a sandbox that is based on another snapshot than it is made from, where that one is not there any more. Whoever
/// deletes it has not seen the record then.
async fn base_note(
    deps: &Deps,
    snapshot: &SnapshotRecord,
    record: &SandboxRecord,
) -> Option<String> {
    let base = record.based_on_snapshot.as_ref().filter(|base| **base != snapshot.id)?;
    let found = deps.snapshots.get(base).await.ok().flatten();
    let is_there = found.is_some_and(|found| found.state == SnapshotState::Ready);
    (!is_there).then(|| {
        format!(
            "the snapshot that it is based on, {base}, is not there any more: it gets no more patches, and cannot be recreated"
        )
    })
}
