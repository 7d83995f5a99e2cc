//! Import of a snapshot from a file, of this installation or another.

use std::sync::atomic::{AtomicBool, Ordering};

use crate::domain::archive::{ArchivePlace, Arrived, ByteStream, SnapshotArchives};
use crate::domain::error::{Code, Error, Kind, Unique};
use crate::domain::event::EventKind;
use crate::domain::name::{HostName, SnapshotId, check_name};
use crate::domain::operation::{CancelOutcome, OperationKind};
use crate::domain::profile::Profile;
use crate::domain::request::{SnapshotImportRequest, SnapshotStarted};
use crate::domain::snapshot::{ArchiveManifest, SnapshotKind, SnapshotRecord, SnapshotState};
use crate::domain::update::Update;
use crate::manager::deps::Deps;
use crate::manager::hosts::roots::{learn_roots_during, roots_for_new};
use crate::manager::journal::{self, Guard, JournalRecord as _, append};
use crate::manager::operation::Op;
use crate::manager::operation::progress::ProgressReporter;
use crate::manager::operation::record::operation_on_snapshot;
use crate::manager::sandboxes::place::open_host;
use crate::manager::snapshots::archive_facts::{archive_keeper, archives_of};
use crate::manager::snapshots::archives::{CLEANUP_LIMIT, manifest_of};
use crate::manager::snapshots::import_identity::decide_identity;
use crate::manager::snapshots::pinned_profile::{archive_place, beyond_catalogue};
use crate::manager::snapshots::replicate::TRANSFER_STEPS;
use crate::manager::snapshots::transfer::{cleanup_partial_copy, verify_found_archive};

/// Tries to find a random id that nothing has.
const ID_TRIES: u32 = 16;

/// Starts to take a snapshot from a file's bytes.
///
/// Errors: `invalid_input` for what is no export, or has a profile that asks for more than the catalogue's; `conflict`
/// for a name that is taken.
pub(crate) async fn import_snapshot(
    deps: &Deps,
    request: &SnapshotImportRequest,
    source: ByteStream,
) -> Result<SnapshotStarted, Error> {
    if let Some(name) = &request.name {
        check_name(name)?;
    }
    let host = open_host(deps, &request.host).await?;
    let reader = archive_keeper(deps, &host)?;
    let opened = archives_of(reader.as_ref())?.open_export(source).await;
    let (manifest, archive) = opened?;
    archives_of(deps.extension(&manifest.snapshot.extension)?.as_ref())?;
    ensure_trusted_profile(deps, &manifest.recipe)?;
    deps.pinned_profiles.put(&manifest.recipe).await?;
    let draft = draft_import(deps, request, &manifest, &host).await?;
    let op = write_ahead(deps, draft).await?;
    let snapshot = op.subject.clone();
    let manifest = ArchiveManifest {
        id: snapshot.id.clone(),
        owner: snapshot.owner.clone(),
        ..manifest_of(deps, &snapshot, &host).await?
    };
    let operation =
        op.run(Some(host), move |op| async move { run_import(&op, &manifest, archive).await });
    Ok(SnapshotStarted { operation: Some(operation), snapshot })
}

/// Refuses a profile from outside that asks for more than the catalogue's of its name: what it allows and where it puts
/// things is the operator's to say.
fn ensure_trusted_profile(deps: &Deps, profile: &Profile) -> Result<(), Error> {
    let more = beyond_catalogue(deps, profile);
    if more.is_empty() {
        return Ok(());
    }
    let message = format!(
        "the snapshot's recipe, {} {}, {}, and the catalogue's does not",
        profile.id,
        profile.version,
        more.join(", ")
    );
    Err(Error::invalid_input("file", message)
        .hint("look at the recipe in the file's manifest.json; if you want it, make it a profile of yours first")
        .detail("kind", "recipe"))
}

/// The record, as far as no host has been asked.
async fn draft_import(
    deps: &Deps,
    request: &SnapshotImportRequest,
    manifest: &ArchiveManifest,
    host: &HostName,
) -> Result<SnapshotRecord, Error> {
    let owners = deps.installation.owners().await?;
    let ours = owners.contains(&manifest.owner);
    let owner = match owners.into_iter().next() {
        Some(first) if !ours => first,
        Some(_) => manifest.owner.clone(),
        None => return Err(Error::internal("the installation has no id")),
    };
    let now = deps.now();
    let from = &manifest.snapshot;
    let identity = decide_identity(deps, manifest, ours).await?;
    let fresh = identity.refused.is_some();
    Ok(SnapshotRecord {
        id: if fresh { SnapshotId::from_random((deps.random_u32)()) } else { manifest.id.clone() },
        name: request.name.clone().or_else(|| from.name.clone()),
        kind: SnapshotKind::User,
        host: host.clone(),
        host_identity: None,
        path: None,
        state: SnapshotState::Creating,
        message: identity
            .refused
            .map(|why| format!("it has an id of its own here: {} is not kept, {why}", from.id)),
        failure: None,
        unremoved: false,
        created_at: from.created_at.min(now),
        imported_at: Some(now),
        adopted_at: None,
        expires_at: None,
        undo: None,
        // Another installation's ids mean nothing here.
        parent_snapshot: from.parent_snapshot.clone().filter(|_| ours),
        patch_level: if ours { from.patch_level } else { 0 },
        next_patch_sequence: identity.next_patch_sequence,
        replicas: Vec::new(),
        copying_to: None,
        verified_at: None,
        damage: Vec::new(),
        operation: None,
        actor: deps.actor(),
        owner,
        revision: identity.revision,
        pending: Vec::new(),
        ..from.clone()
    })
}

/// Writes the record before anything is done on the host, under its lock.
async fn write_ahead(deps: &Deps, mut draft: SnapshotRecord) -> Result<Op<SnapshotRecord>, Error> {
    for _ in 0..ID_TRIES {
        if let Some(lock) = deps.locks.try_lock_snapshot(&draft.id).await? {
            let operation = operation_on_snapshot(deps, OperationKind::Import, &draft);
            let insert = async |draft| deps.snapshots.insert(draft).await;
            match Box::pin(Op::start_new(deps, operation, (draft.clone(), lock), insert)).await {
                Ok(op) => {
                    SnapshotRecord::announce(deps);
                    return Ok(op);
                }
                Err(error) => match error.kind {
                    Kind::Taken(Unique::Id) => {}
                    Kind::Taken(Unique::Name) => {
                        return Err(error.hint("give it another one with --name"));
                    }
                    _ => return Err(error),
                },
            }
        }
        assign_new_id(&mut draft, SnapshotId::from_random((deps.random_u32)()));
    }
    Err(Error::internal("no free snapshot id was found"))
}

async fn run_import(
    op: &Op<SnapshotRecord>,
    manifest: &ArchiveManifest,
    archive: ByteStream,
) -> Result<(), Error> {
    let deps = &op.deps;
    op.progress.announce(TRANSFER_STEPS, 0);
    let record = &manifest.snapshot;
    let begun = AtomicBool::new(false);
    let work = async {
        let extension = deps.extension(&record.extension)?;
        let archives = archives_of(extension.as_ref())?;
        let roots = roots_for_new(deps, &record.host).await?;
        let place = ArchivePlace { roots, ..archive_place(deps, record, &record.host).await? };
        if let Some(arrived) =
            find_imported_archive(deps, manifest, archives, &place, &op.progress).await?
        {
            return Ok(arrived);
        }
        begun.store(true, Ordering::Relaxed);
        archives.import(&place, manifest, archive, &op.progress).await
    };
    // Boxed: it is large, and waits for long.
    let work = Box::pin(learn_roots_during(deps, &record.host, &op.progress, Box::pin(work)));
    match op.or_cancelled(work).await {
        Ok(arrived) => write_imported(deps, record, arrived).await,
        // What is there was there before.
        Err(error) if error.untouched || !begun.into_inner() => {
            write_import_failed(deps, record, &op.progress, &error, true).await?;
            Err(CancelOutcome::Undone.noted_on(error))
        }
        Err(error) => cleanup_import(deps, record, &op.progress, error).await,
    }
}

/// The archive that an import is to bring, where the host has it already, sealed and sound: whoever lost his records lists
/// it again.
///
/// Errors: `conflict` for anything else that is there.
async fn find_imported_archive(
    deps: &Deps,
    manifest: &ArchiveManifest,
    archives: &dyn SnapshotArchives,
    place: &ArchivePlace,
    progress: &ProgressReporter,
) -> Result<Option<Arrived>, Error> {
    let record = &manifest.snapshot;
    let seen = archives.look(place).await?;
    let Some(path) = &seen.path else { return Ok(None) };
    let beside = seen.manifest.as_ref();
    if beside.is_some_and(|beside| {
        beside.owner == manifest.owner && beside.recipe.hash() == manifest.recipe.hash()
    }) && let Some(arrived) =
        verify_found_archive(deps, record, archives, place, &seen, progress).await?
    {
        return Ok(Some(arrived));
    }
    let message = format!(
        "{} has something of snapshot {} already, and not what is in the file",
        place.host, record.id
    );
    Err(Error::new(Code::Conflict, message).hint(format!(
        "nothing was touched; look at {path} there, and move it away, or import to another host"
    )))
}

async fn write_imported(
    deps: &Deps,
    record: &SnapshotRecord,
    arrived: Arrived,
) -> Result<(), Error> {
    let data = serde_json::json!({"bytes": arrived.archive.bytes, "host": record.host, "reason": "imported"});
    let now = deps.now();
    journal::update(
        deps,
        &record.id,
        Guard::Any,
        vec![(EventKind::SnapshotReady, data)],
        move |record: &mut SnapshotRecord| {
            record.state = SnapshotState::Ready;
            record.path = Some(arrived.path);
            record.host_identity = Some(arrived.identity);
            record.archive = arrived.archive;
            record.verified_at = Some(now);
            record.operation = None;
            Ok(())
        },
    )
    .await
    .map(|_| ())
}

/// After an import that failed, nothing is left: no archive and no record. Where the host cannot say so, the
/// record stays, as failed. One that was whole before it was cancelled is listed.
async fn cleanup_import(
    deps: &Deps,
    record: &SnapshotRecord,
    progress: &ProgressReporter,
    error: Error,
) -> Result<(), Error> {
    let clearing = tokio::time::timeout(
        CLEANUP_LIMIT,
        cleanup_partial_copy(deps, record, &record.host, progress),
    )
    .await;
    let clean = match clearing {
        Ok(Ok(Some(arrived))) => return write_imported(deps, record, arrived).await,
        Ok(Ok(None)) => true,
        Ok(Err(_)) | Err(_) => false,
    };
    write_import_failed(deps, record, progress, &error, clean).await?;
    if clean {
        return Err(CancelOutcome::Undone.noted_on(error));
    }
    let host = &record.host;
    let hint = format!(
        "something of it may still be on {host}; `sandboxer recover` removes it when that host is back"
    );
    Err(error.hint(hint).detail("unremoved", true))
}

/// Writes down why an import failed, and takes its record out if it left nothing on the host.
async fn write_import_failed(
    deps: &Deps,
    record: &SnapshotRecord,
    progress: &ProgressReporter,
    error: &Error,
    clean: bool,
) -> Result<(), Error> {
    let message = error.message.clone();
    let data =
        serde_json::json!({"code": error.code, "step": progress.stage(), "message": message});
    let events = vec![(EventKind::SnapshotFailed, data)];
    let failed = journal::update(
        deps,
        &record.id,
        Guard::Any,
        events,
        move |record: &mut SnapshotRecord| {
            record.state = SnapshotState::Failed;
            record.message = Some(message);
            record.operation = None;
            record.unremoved = !clean;
            Ok(())
        },
    )
    .await?;
    // A record keeps events that could not be appended to the log, for a while.
    if clean && append(deps, &failed.pending).await.is_ok() {
        deps.snapshots.remove(&record.id, None).await?;
        deps.jobs.publish(Update::Snapshots);
    }
    Ok(())
}

/// Gives it another id: somebody has this one by now. Patches and their numbers are that one's.
fn assign_new_id(draft: &mut SnapshotRecord, id: SnapshotId) {
    (draft.next_patch_sequence, draft.revision) = (1, 0);
    draft.message.get_or_insert_with(|| {
        format!("it has an id of its own here: {} was taken meanwhile", draft.id)
    });
    draft.id = id;
}
