//! Import of a snapshot from a file, of this installation or another: under a new id always, so that nothing here that names
//! the old one is made again from what somebody wrote into a file.

use crate::domain::archive::{ArchivePlace, Arrived, ByteStream};
use crate::domain::error::{Error, Kind, Unique};
use crate::domain::event::EventKind;
use crate::domain::name::{HostName, SnapshotId, check_name};
use crate::domain::operation::{CancelOutcome, OperationKind};
use crate::domain::profile::Profile;
use crate::domain::request::{SnapshotImportRequest, SnapshotStarted};
use crate::domain::snapshot::{
    ArchiveManifest, Replica, ReplicaState, SnapshotKind, SnapshotRecord, SnapshotState,
};
use crate::domain::update::Update;
use crate::manager::deps::Deps;
use crate::manager::hosts::roots::{learn_roots_during, roots_for_new};
use crate::manager::journal::append;
use crate::manager::operation::Op;
use crate::manager::operation::record::operation_on_snapshot;
use crate::manager::sandboxes::place::open_host;
use crate::manager::snapshots::archives::{
    CLEANUP_LIMIT, archive_on, archive_store, archives_of, manifest_of,
};
use crate::manager::snapshots::create::write_ahead;
use crate::manager::snapshots::pinned_profile::beyond_catalogue;
use crate::manager::snapshots::remove::remove_archives;
use crate::manager::snapshots::replicate::{TRANSFER_STEPS, list_arriving};

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
    let (manifest, archive) = archive_store(deps, &host)?.open_export(source).await?;
    archives_of(deps, &manifest.snapshot.extension)?;
    ensure_trusted_profile(deps, &manifest.profile)?;
    deps.pinned_profiles.put(&manifest.profile).await?;
    let draft = draft_import(deps, request, &manifest, &host).await?;
    let begin =
        |draft: &mut SnapshotRecord| operation_on_snapshot(deps, OperationKind::Import, draft);
    let op = write_ahead(deps, draft, begin).await.map_err(|error| match error.kind {
        Kind::Taken(Unique::Name) => error.hint("give it another one with --name"),
        _ => error,
    })?;
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
        "the snapshot's profile, {} {}, {}, and the catalogue's does not",
        profile.id,
        profile.version,
        more.join(", ")
    );
    Err(Error::invalid_input("file", message)
        .hint("look at the profile in the file's manifest.json; if you want it, make it a profile of yours first")
        .detail("kind", "profile"))
}

/// The record, as far as no host has been asked. What belongs to its host, or to its past elsewhere, is not taken from the file;
/// ids of another installation's snapshots mean nothing here.
async fn draft_import(
    deps: &Deps,
    request: &SnapshotImportRequest,
    manifest: &ArchiveManifest,
    host: &HostName,
) -> Result<SnapshotRecord, Error> {
    let owners = deps.installation.owners().await?;
    let ours = owners.contains(&manifest.owner);
    let owner = owners.into_iter().next();
    let owner = owner.ok_or_else(|| Error::internal("the installation has no id"))?;
    let now = deps.now();
    let from = &manifest.snapshot;
    let whose = if ours { String::new() } else { format!(" of installation {}", manifest.owner) };
    Ok(SnapshotRecord {
        id: SnapshotId::from_random((deps.random_u32)()),
        name: request.name.clone().or_else(|| from.name.clone()),
        kind: SnapshotKind::User,
        host: host.clone(),
        state: SnapshotState::Creating,
        message: Some(format!("imported from {}{whose}, taken on {}", from.id, from.host)),
        failure: None,
        created_at: from.created_at.min(now),
        imported_at: Some(now),
        imported_from: Some(from.id.clone()),
        adopted_at: None,
        expires_at: None,
        undo: None,
        parent_snapshot: from.parent_snapshot.clone().filter(|_| ours),
        patch_level: if ours { from.patch_level } else { 0 },
        next_patch_sequence: 1,
        replicas: vec![Replica::arriving(host.clone(), None, now)],
        verified_at: None,
        unread: None,
        operation: None,
        actor: deps.actor(),
        owner,
        revision: 0,
        imported: None,
        pending: Vec::new(),
        ..from.clone()
    })
}

async fn run_import(
    op: &Op<SnapshotRecord>,
    manifest: &ArchiveManifest,
    archive: ByteStream,
) -> Result<(), Error> {
    let (deps, record) = (&op.deps, &op.subject);
    op.progress.announce(TRANSFER_STEPS, 0);
    let work = async {
        let there = archive_on(deps, record, &record.host).await?;
        let to = ArchivePlace { roots: roots_for_new(deps, &record.host).await?, ..there.place };
        let seen = there.archives.look(&to).await?;
        list_arriving(deps, &record.id, &to.host, seen).await?;
        there.archives.import(&to, manifest, archive, &op.progress).await
    };
    // Boxed: it is large, and waits for long.
    let work = Box::pin(learn_roots_during(deps, &record.host, &op.progress, Box::pin(work)));
    match op.or_cancelled(work).await {
        Ok(arrived) => write_imported(op, arrived).await,
        Err(error) => Err(cleanup_import(op, error).await?),
    }
}

async fn write_imported(op: &Op<SnapshotRecord>, arrived: Arrived) -> Result<(), Error> {
    let data = serde_json::json!({"bytes": arrived.archive.bytes, "host": op.subject.host, "reason": "imported"});
    let now = op.deps.now();
    op.update(vec![(EventKind::SnapshotReady, data)], move |record| {
        record.state = SnapshotState::Ready;
        record.archive = arrived.archive.clone();
        record.list_replica(arrived.replica(&record.host, now));
        record.verified_at = Some(now);
        record.operation = None;
    })
    .await
    .map(|_| ())
}

/// After an import that failed, nothing is left: no archive and no record. Where the host cannot say so, the record stays, as
/// failed.
async fn cleanup_import(op: &Op<SnapshotRecord>, error: Error) -> Result<Error, Error> {
    let (deps, id, host) = (&op.deps, &op.subject.id, &op.subject.host);
    let stage = op.progress.stage();
    let clean = error.untouched || {
        let removal = remove_archives(deps, id, &op.progress);
        matches!(tokio::time::timeout(CLEANUP_LIMIT, removal).await, Ok(Ok(())))
    };
    let message = error.message.clone();
    let data = serde_json::json!({"code": error.code, "step": stage, "message": message});
    let failed = op.update(vec![(EventKind::SnapshotFailed, data)], move |record| {
        record.state = SnapshotState::Failed;
        record.message = Some(message);
        record.operation = None;
        if clean {
            record.replicas.clear();
        } else {
            record.mark_all(&ReplicaState::Removing);
        }
    });
    let failed = failed.await?;
    if !clean {
        let hint = format!(
            "something of it may still be on {host}; `sandboxer recover` removes it when that host is back"
        );
        return Ok(error.hint(hint).detail("unremoved", true));
    }
    // A record keeps events that could not be appended to the log, for a while.
    if append(deps, &failed.pending).await.is_ok() {
        deps.snapshots.remove(id, None).await?;
        deps.jobs.publish(Update::Snapshots);
    }
    Ok(CancelOutcome::Undone.noted_on(error))
}
