//! Create: refuse what can be refused, write ahead, then let a job establish the sandbox (semantics 2).

use std::collections::BTreeSet;

use crate::domain::error::{Error, Kind, Unique};
use crate::domain::event::EventKind;
use crate::domain::extension::MeterQuote;
use crate::domain::name::{SandboxId, SnapshotId};
use crate::domain::operation::{OperationKind, Subject};
use crate::domain::patch::Patch;
use crate::domain::pending_patches::settled_state;
use crate::domain::request::{CreateRequest, Decision, Started};
use crate::domain::route::Attempt;
use crate::domain::sandbox::{ProfileRef, RecordStart, Route, SandboxRecord};
use crate::domain::snapshot::SnapshotRecord;
use crate::failpoint;
use crate::manager::credits::hold::{give_back, hold_for};
use crate::manager::credits::quote::missing_usd;
use crate::manager::deps::{Deps, Random32};
use crate::manager::hosts::capacity::{fullness, host_full};
use crate::manager::journal::{JournalRecord as _, publish_pending};
use crate::manager::operation::Op;
use crate::manager::operation::locks::sandbox_busy_error;
use crate::manager::operation::record::new_operation;
use crate::manager::patches::find::patches_of;
use crate::manager::sandboxes::candidate::Found;
use crate::manager::sandboxes::establish::run_establishment;
use crate::manager::sandboxes::establishment::Establishment;
use crate::manager::sandboxes::idempotency::{find_repeated, repeated_error, request_hash};
use crate::manager::sandboxes::resolved::{Resolved, resolve_request};
use crate::manager::sandboxes::route::{Choice, Overview, Router};
use crate::manager::upkeep::flush::archive_old;
use crate::manager::upkeep::unswept::remark_unswept;

/// Tries to find a random id that nothing has.
const ID_TRIES: u32 = 16;

/// Record of a new sandbox, as far as it is known before the first remote command.
pub(crate) struct NewSandbox<'a> {
    pub(crate) request: &'a CreateRequest,
    pub(crate) resolved: &'a Resolved,
    pub(crate) route: Route,
    pub(crate) quote: Option<MeterQuote>,
    pub(crate) request_hash: Option<String>,
    pub(crate) origin: Origin<'a>,
}

/// Origin of a new sandbox: what it is made from.
#[derive(Clone, Copy)]
pub(crate) enum Origin<'a> {
    Inputs,
    /// A snapshot, which it is based on.
    Snapshot(&'a SnapshotRecord),
    /// An undo snapshot: it is what the removed sandbox was, with its base and its patches.
    Removed(&'a SnapshotRecord),
}

impl<'a> Origin<'a> {
    /// The snapshot whose archive it is made from.
    fn archive(self) -> Option<&'a SnapshotRecord> {
        match self {
            Self::Inputs => None,
            Self::Snapshot(snapshot) | Self::Removed(snapshot) => Some(snapshot),
        }
    }

    fn base(self) -> Option<&'a SnapshotId> {
        match self {
            Self::Inputs => None,
            Self::Snapshot(snapshot) => Some(&snapshot.id),
            Self::Removed(snapshot) => snapshot.parent_snapshot.as_ref(),
        }
    }

    /// Puts on a new record what it has from there.
    fn note_on(self, record: &mut SandboxRecord, patches: &[Patch]) {
        record.based_on_snapshot = self.base().cloned();
        if let Self::Removed(snapshot) = self {
            record.undo_of = Some(snapshot.sandbox_id.clone());
            record.last_patch_sequence = snapshot.patch_level;
            let facts = snapshot.undo.as_deref();
            record.applied_patches =
                facts.map(|facts| facts.applied_patches.clone()).unwrap_or_default();
        }
        record.patch_state = settled_state(record, patches);
    }
}

/// Plan of a create; touches nothing.
pub(crate) async fn plan_create(deps: &Deps, request: &CreateRequest) -> Result<Decision, Error> {
    let resolved = resolve_request(deps, request).await?;
    // In the order in which a create comes to them: what is wrong with the request and its candidates, then what is taken.
    let Overview { found, mut route, error, candidates } =
        Box::pin(Router::new(request.clone(), resolved.clone()).judge_all(deps)).await?;
    let error = match error {
        None => check_taken(deps, request).await.err(),
        error => error,
    };
    if let Some(route) = &mut route {
        route.remarks.extend(remark_unswept(deps, resolved.ttl_s).await);
    }
    let of_candidates = || candidates.iter().flat_map(|one| one.verdicts.clone()).collect();
    let verdicts = match (&route, &found) {
        (None, _) if !candidates.is_empty() => of_candidates(),
        (_, found) => found.as_ref().map(|found| found.verdicts.clone()).unwrap_or_default(),
    };
    let profile = found.as_ref().map_or(&resolved.profile, |found| &found.resolved.profile);
    let quote = found.as_ref().and_then(|found| found.quote.as_ref());
    let missing_usd = match missing_usd(deps, quote).await {
        // What it is refused for comes before a ledger that cannot be read, or is that.
        Err(_) if error.is_some() => None,
        missing => missing?,
    };
    Ok(Decision {
        ok: error.is_none(),
        error,
        profile: profile.id.to_string(),
        version: profile.version.to_string(),
        extension: profile.extension.to_string(),
        inputs: resolved.inputs.clone(),
        route,
        verdicts,
        candidates,
        quote_usd: quote.map(|quote| quote.usd),
        missing_usd,
        ttl_s: resolved.ttl_s,
        preview: found.map(|found| found.preview).unwrap_or_default(),
    })
}

/// Writes the record, starts the work, and returns at once.
pub(crate) async fn create(deps: &Deps, request: CreateRequest) -> Result<Started, Error> {
    create_labelled(deps, request, None).await
}

/// Create with a label of sandboxer's own, which nobody else can give.
pub(crate) async fn create_labelled(
    deps: &Deps,
    mut request: CreateRequest,
    label: Option<(&str, String)>,
) -> Result<Started, Error> {
    let hash = request_hash(deps, &request);
    if let Some(found) = find_repeated(deps, &request, &hash).await? {
        return Ok(found);
    }
    let resolved = resolve_request(deps, &request).await?;
    let mut router = Router::new(request.clone(), resolved);
    request.labels.extend(label.map(|(key, value)| (key.to_owned(), value)));
    let (op, found) = match Box::pin(write_first(deps, &mut router, &request, &hash)).await {
        // The same request came in twice at once: the other one was first.
        Err(error) if error.kind == Kind::Taken(Unique::IdempotencyKey) => {
            return find_repeated(deps, &request, &hash).await?.ok_or(error);
        }
        written => written?,
    };
    let (resolved, draft) = (found.resolved, found.draft);
    failpoint::reached("create.requested");
    let record = op.subject.clone();
    let is_routed = router.is_routed() && !request.keep_failed;
    let establishment = Establishment {
        keep_failed: request.keep_failed,
        router: is_routed.then(|| Box::new(router)),
        ..Establishment::of(draft.of_record(&record), resolved.ttl_s)
    };
    let operation = run_establishment(op, establishment);
    Ok(Started { operation: Some(operation), sandbox: record })
}

/// Writes the record of the first candidate that can take it. Others may have been faster to its room or its credits: then nothing
/// is written, and the next one is looked at.
async fn write_first(
    deps: &Deps,
    router: &mut Router,
    request: &CreateRequest,
    hash: &str,
) -> Result<(Op<SandboxRecord>, Found), Error> {
    loop {
        let Choice { found, route } = Box::pin(router.choose(deps)).await?;
        // Whoever only ever uses one-shot commands must not keep every sandbox that ever was in the live file.
        if let Err(error) = archive_old(deps).await {
            tracing::warn!(%error, "the history could not be written");
        }
        deps.pinned_profiles.put(&found.resolved.profile).await?;
        let host = route.host.clone();
        let new_sandbox = NewSandbox {
            request,
            resolved: &found.resolved,
            route,
            quote: found.quote.clone(),
            request_hash: Some(hash.to_owned()),
            origin: Origin::Inputs,
        };
        match Box::pin(write_ahead(deps, new_sandbox)).await {
            Ok(op) => return Ok((op, found)),
            Err(error) => router.note_lost(error, &host)?,
        }
    }
}

/// Refuses an id, name or key that is used already. In a create the store does.
async fn check_taken(deps: &Deps, request: &CreateRequest) -> Result<(), Error> {
    if let Some(first) = find_repeated(deps, request, &request_hash(deps, request)).await? {
        return repeated_error(deps, &first).await?.map_or(Ok(()), Err);
    }
    let used = |what: Unique, word: &str| {
        Err(Error::taken(what, format!("the {} {word} is taken", what.field())))
    };
    let mut records = deps.sandboxes.list().await?;
    let mut names: BTreeSet<String> =
        records.iter().filter_map(|record| record.name_in_use().map(str::to_owned)).collect();
    records.extend(deps.sandboxes.history().await?);
    let is_id = |word: &str| records.iter().any(|record| record.id.as_str() == word);
    if let Some(name) = request.name.as_ref().filter(|name| names.contains(*name) || is_id(name)) {
        return used(Unique::Name, name);
    }
    for snapshot in deps.snapshots.list().await? {
        names.extend(snapshot.name_in_use().map(str::to_owned));
        names.insert(snapshot.id.to_string());
    }
    let id = request.id.as_ref().or_else(|| request.inputs.get("sandbox_id"));
    match id.filter(|id| names.contains(*id) || is_id(id)) {
        Some(id) => used(Unique::Id, id),
        None => Ok(()),
    }
}

/// Writes the record before the first remote command, under the sandbox's lock.
pub(crate) async fn write_ahead(
    deps: &Deps,
    new_sandbox: NewSandbox<'_>,
) -> Result<Op<SandboxRecord>, Error> {
    let NewSandbox { request, resolved, mut route, quote, request_hash, origin } = new_sandbox;
    route.remarks.extend(remark_unswept(deps, resolved.ttl_s).await);
    let archive = origin.archive().map(|snapshot| &snapshot.id);
    let kind = if archive.is_some() { OperationKind::Restore } else { OperationKind::Create };
    // The host is told whose it is, which snapshots have a say in: nothing is begun that would end there.
    deps.snapshots.list().await?;
    let owners = deps.installation.owners().await?;
    let owner = owners
        .into_iter()
        .next()
        .ok_or_else(|| Error::internal("this installation has no owner id"))?;
    let patches = match origin.base() {
        Some(base) => patches_of(deps, base).await?,
        None => Vec::new(),
    };
    for _ in 0..ID_TRIES {
        let id = resolved.id.clone().unwrap_or_else(|| random_id(&deps.random_u32));
        let Some(lock) = deps.locks.try_lock(&id).await? else {
            if resolved.id.is_some() {
                return Err(sandbox_busy_error(deps, &id).await);
            }
            continue;
        };
        let subject = match archive {
            Some(archive) => Subject::SandboxAndSnapshot(id.clone(), archive.clone()),
            None => Subject::Sandbox(id.clone()),
        };
        let operation = new_operation(deps, kind.clone(), subject, request.name.as_deref());
        let mut record = new_record(deps, &id, request, resolved, &route, owner.clone());
        let hold = hold_for(deps, &id, quote.as_ref()).await?;
        record.quote_usd = quote.as_ref().map(|quote| quote.usd);
        record.request_hash.clone_from(&request_hash);
        origin.note_on(&mut record, &patches);
        let requested = serde_json::json!({
            "profile": resolved.profile.id,
            "host": route.host,
            "name": request.name,
            "snapshot_id": operation.subject.snapshot(),
        });
        let requested = (EventKind::SandboxRequested, requested);
        let requested = record.event(requested, &deps.actor(), record.created_at);
        record.pending.push(requested);
        if let Some(hold) = &hold {
            hold.note_on(&mut record);
        }
        let spec = deps.transports.spec(&record.host);
        // Others may have been placed there since the host was chosen.
        let admit = |live: &[&SandboxRecord]| {
            let full =
                spec.as_ref().and_then(|spec| Some((spec, fullness(spec, live.iter().copied())?)));
            full.map_or(Ok(()), |(spec, full)| Err(host_full(spec, &full)))
        };
        let insert = async |record| deps.sandboxes.insert_if(record, &admit).await;
        match Box::pin(Op::start_new(deps, operation, (record, lock), insert)).await {
            Ok(op) => {
                drop(hold);
                publish_pending(deps, &op.subject.pending).await;
                return Ok(op);
            }
            Err(error) => {
                let error = give_back(deps, hold, error).await;
                if resolved.id.is_some() || error.kind != Kind::Taken(Unique::Id) {
                    return Err(error);
                }
            }
        }
    }
    Err(Error::internal("no free sandbox id was found"))
}

fn new_record(
    deps: &Deps,
    id: &SandboxId,
    request: &CreateRequest,
    resolved: &Resolved,
    route: &Route,
    owner: crate::domain::name::OwnerId,
) -> SandboxRecord {
    let now = deps.now();
    let wait = resolved.profile.ready_timeout.get();
    SandboxRecord {
        name: request.name.clone(),
        labels: request.labels.clone(),
        inputs: resolved.inputs.clone(),
        expires_at: resolved.ttl_s.map(|ttl| now.plus_seconds(wait.saturating_add(ttl))),
        ttl_s: resolved.ttl_s,
        route: Some(route.clone()),
        attempts: route.verdicts.iter().cloned().map(Attempt::from).collect(),
        idempotency_key: request.idempotency_key.clone(),
        ..SandboxRecord::new(RecordStart {
            id: id.clone(),
            profile: ProfileRef {
                id: resolved.profile.id.clone(),
                version: resolved.profile.version.to_string(),
                hash: resolved.hash.clone(),
            },
            extension: resolved.profile.extension.clone(),
            host: route.host.clone(),
            owner,
            actor: deps.actor(),
            created_at: now,
        })
    }
}

/// The id of a sandbox whose record an operation is about to write.
fn random_id(dice: &Random32) -> SandboxId {
    SandboxId::from_random(dice())
}
