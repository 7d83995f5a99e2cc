//! Adding a patch to a snapshot; runs nothing (semantics 7).

use std::collections::BTreeSet;

use crate::domain::error::{Code, Error, Kind, Unique};
use crate::domain::event::{EventKind, PendingEvent, derived_event_id};
use crate::domain::extension::{Capability, SandboxExtension};
use crate::domain::name::PatchId;
use crate::domain::patch::{MAX_SEQUENCE, Patch, PatchStrategy, RUN_IN_WORKSPACE, check};
use crate::domain::request::PatchRequest;
use crate::domain::snapshot::SnapshotRecord;
use crate::domain::text::nearest;
use crate::domain::update::Update;
use crate::failpoint;
use crate::manager::deps::Deps;
use crate::manager::journal::{self, Guard, flush_pending};
use crate::manager::operation::locks::{busy_or_refusal, wait_to_lock_snapshot};
use crate::manager::patches::find::based_on;
use crate::manager::patches::pending::refresh_patch_states;
use crate::manager::snapshots::archives::ensure_ready;
use crate::manager::snapshots::find::get_snapshot_at_revision;
use crate::manager::snapshots::pinned_profile::pinned_profile_here;

/// Tries to find a random id that no patch has.
const ID_TRIES: u32 = 16;

/// Adds a patch to a snapshot; runs nothing.
///
/// Errors: `invalid_input` with the field, `conflict` for a snapshot that is not ready or an undo snapshot.
pub(crate) async fn add_patch(deps: &Deps, request: &PatchRequest) -> Result<Patch, Error> {
    let run_in = request.run_in.as_deref().unwrap_or(RUN_IN_WORKSPACE);
    check(&request.script, run_in, request.description.as_deref())?;
    let snapshot = get_snapshot_at_revision(deps, &request.snapshot, None).await?;
    let extension = deps.extension(&snapshot.extension)?;
    extension.ensure(&Capability::Patches, "apply patches")?;
    if let Err(error) = check_patchable(&snapshot) {
        return Err(busy_or_refusal(deps, &snapshot.id, error).await);
    }
    if run_in != RUN_IN_WORKSPACE {
        ensure_service(deps, extension.as_ref(), &snapshot, run_in).await?;
    }
    let _lock = wait_to_lock_snapshot(deps, &snapshot.id).await?;
    // The number first: a process that dies before the patch is written has used it up, and nobody gets it again.
    let snapshot = journal::update(deps, &snapshot.id, Guard::Any, Vec::new(), |record| {
        check_patchable(record)?;
        record.next_patch_sequence = number_after(record)?;
        Ok(())
    })
    .await?;
    failpoint::reached("patch.numbered");
    let patch = insert_patch(deps, &snapshot, request, run_in).await?;
    let flushed = flush_pending(deps, patch.pending.clone()).await.into_iter().collect();
    if let Err(error) = deps.patches.clear_pending(&flushed).await {
        tracing::warn!(patch = %patch.id, %error, "its event stays pending");
    }
    refresh_patch_states(deps, &snapshot.id).await;
    deps.jobs.publish(Update::Snapshots);
    Ok(Patch { pending: Vec::new(), ..patch })
}

/// Refuses a service that no sandbox of this snapshot can have, where it is known which it has.
async fn ensure_service(
    deps: &Deps,
    extension: &dyn SandboxExtension,
    snapshot: &SnapshotRecord,
    service: &str,
) -> Result<(), Error> {
    if snapshot.archive.images.is_empty() {
        // No host is asked for a profile that is not here: then it is not known.
        let profile = pinned_profile_here(deps, &snapshot.profile).await?;
        let profile = profile.map(|profile| profile.for_extension(&snapshot.extension));
        if profile.is_none_or(|profile| extension.may_have_services(&profile)) {
            return Ok(());
        }
        let profile = &snapshot.profile.id;
        let message = format!(
            "snapshot {} has no services: {profile} is a workspace and nothing else",
            snapshot.title()
        );
        return Err(Error::invalid_input("run_in", message)
            .hint("without --run-in a patch runs in the workspace"));
    }
    let mut known: BTreeSet<String> = snapshot.archive.images.keys().cloned().collect();
    // A service may have had no container when the snapshot was taken.
    let source = deps.sandboxes.get(&snapshot.sandbox_id).await?;
    let based = based_on(deps, &snapshot.id).await?;
    let seen = source.iter().chain(&based).flat_map(|record| &record.services);
    known.extend(seen.map(|service| service.name.clone()));
    if known.contains(service) {
        return Ok(());
    }
    let names: Vec<&str> = known.iter().map(String::as_str).collect();
    let message = format!("snapshot {} has no service {service}", snapshot.title());
    let hint = match nearest(service, names.iter().copied()) {
        Some(near) => format!("did you mean {near}? it has {}", names.join(", ")),
        None => {
            format!("it has {}; without --run-in a patch runs in the workspace", names.join(", "))
        }
    };
    Err(Error::invalid_input("run_in", message).hint(hint))
}

async fn insert_patch(
    deps: &Deps,
    snapshot: &SnapshotRecord,
    request: &PatchRequest,
    run_in: &str,
) -> Result<Patch, Error> {
    let (now, actor) = (deps.now(), deps.actor());
    let sequence = snapshot.next_patch_sequence - 1;
    for _ in 0..ID_TRIES {
        let id = PatchId::from_random((deps.random_u32)());
        let data = serde_json::json!({
            "patch_id": id, "snapshot_id": snapshot.id, "snapshot_name": snapshot.name, "sequence": sequence,
            "run_in": run_in, "description": request.description,
        });
        let added = PendingEvent {
            id: derived_event_id(id.as_str(), 1, &EventKind::PatchAdded),
            time: now,
            kind: EventKind::PatchAdded,
            sandbox_id: Some(snapshot.sandbox_id.clone()),
            actor: actor.clone(),
            data,
        };
        let patch = Patch {
            id,
            snapshot_id: snapshot.id.clone(),
            sequence,
            script: request.script.clone(),
            description: request.description.clone(),
            run_in: run_in.to_owned(),
            strategy: PatchStrategy::OnWake,
            created_at: now,
            actor: actor.clone(),
            revision: 0,
            pending: vec![added],
        };
        match deps.patches.insert(patch).await {
            Err(error) if error.kind == Kind::Taken(Unique::Id) => {}
            outcome => return outcome,
        }
    }
    Err(Error::internal("no free patch id was found"))
}

/// Refuses what gets no patches: nothing is restored from it, or it is only there to take a removal back.
fn check_patchable(snapshot: &SnapshotRecord) -> Result<(), Error> {
    if snapshot.kind == crate::domain::snapshot::SnapshotKind::Undo {
        return Err(Error::new(Code::Conflict, format!("snapshot {} is an undo snapshot", snapshot.title()))
            .hint("patches go on snapshots that somebody took; `sandboxer undo` brings its sandbox back as it was"));
    }
    ensure_ready(snapshot, "only a snapshot that is ready can get patches")
}

/// The number of the patch after the next one.
fn number_after(snapshot: &SnapshotRecord) -> Result<u64, Error> {
    match snapshot.next_patch_sequence.checked_add(1).filter(|after| *after <= MAX_SEQUENCE + 1) {
        Some(after) => Ok(after),
        None => Err(Error::new(
            Code::Conflict,
            format!(
                "snapshot {} has no number left for a patch; {MAX_SEQUENCE} is the last one",
                snapshot.title()
            ),
        )
        .hint("restore it and take a new snapshot, which begins with 1")),
    }
}
