//! Copies of a snapshot on further hosts. What is in the folder there already is looked at first: it may be the archive, and only
//! what is none is replaced, once there is a better one. A replica is written as `arriving` before anything is brought: what is
//! there later was brought by that copy.

use crate::domain::archive::{ArchiveLook, ArchivePlace, Arrived};
use crate::domain::error::{Code, Error, Kind};
use crate::domain::event::EventKind;
use crate::domain::name::{HostName, SnapshotId};
use crate::domain::operation::{CancelOutcome, OperationKind};
use crate::domain::reporter::Reporter;
use crate::domain::request::{SnapshotCopyRequest, SnapshotStarted};
use crate::domain::snapshot::{ArchiveFacts, Replica, ReplicaState, SnapshotRecord};
use crate::manager::deps::Deps;
use crate::manager::hosts::places::check_works_at;
use crate::manager::hosts::roots::{learn_roots_during, roots_for_new};
use crate::manager::journal::{self, Guard, free_snapshot};
use crate::manager::operation::Op;
use crate::manager::operation::progress::ProgressReporter;
use crate::manager::operation::start::start_on_ready;
use crate::manager::operation::subject::OperationRecord;
use crate::manager::sandboxes::place::open_host;
use crate::manager::snapshots::archives::{
    ArchiveOnHost, CLEANUP_LIMIT, READABLE, archive_on, archives_of, facts_on, find_archive,
    is_sealed, manifest_of, proves_damage, ready_snapshot, sealed_archive,
};
use crate::manager::snapshots::find::get_snapshot_at_revision;
use crate::manager::snapshots::remove::remove_archive;
use crate::manager::upkeep::ownership::ensure_own;

/// Steps of a transfer of an archive to a host: prepare, and copy.
pub(crate) const TRANSFER_STEPS: u32 = 2;

/// Starts to copy a snapshot to another host. A copy that is there already is nothing to do.
///
/// Errors: `invalid_input` for another name of a host that has it, and whatever placement says of a host.
pub(crate) async fn copy_snapshot(
    deps: &Deps,
    request: &SnapshotCopyRequest,
) -> Result<SnapshotStarted, Error> {
    let record = ready_snapshot(deps, &request.id, None, READABLE).await?;
    let extension = deps.extension(&record.extension)?;
    archives_of(deps, extension.id())?;
    check_works_at(deps, extension.as_ref(), &HostName::new(request.host.as_str()))?;
    let host = open_host(deps, &request.host).await?;
    let there = archive_on(deps, &record, &host).await?;
    let seen = there.archives.look(&there.place).await?;
    let is_ready = record.replica_on(&host).is_some_and(|it| it.state == ReplicaState::Ready);
    if is_ready && is_sealed(&seen, &there.facts) {
        return Ok(SnapshotStarted { operation: None, snapshot: record });
    }
    if let Some(other) = other_name(&record, &host, &seen) {
        let message = format!(
            "{host} is another name of {}, where snapshot {} is",
            other.host,
            record.title()
        );
        let hint = format!("`sandboxer restore {} --host {host}` uses it where it is", record.id);
        return Err(Error::invalid_input("host", message).hint(hint));
    }
    let op = start_on_ready(deps, OperationKind::Copy, record).await?;
    let snapshot = op.subject.clone();
    let operation = op.run(Some(host.clone()), move |op| async move {
        op.progress.announce(TRANSFER_STEPS, 0);
        replicate(&op, &op.subject, &host).await.map(|_| ())
    });
    Ok(SnapshotStarted { operation: Some(operation), snapshot })
}

/// The archive that a host has under another name: what was seen there is in the place of one that is listed.
fn other_name<'a>(
    record: &'a SnapshotRecord,
    host: &HostName,
    seen: &ArchiveLook,
) -> Option<&'a Replica> {
    let is_it = |listed: &&Replica| {
        !listed.host.same(host.as_str())
            && listed.is_at(seen.identity.as_ref(), seen.path.as_deref())
    };
    record.archives().find(is_it)
}

/// Archive that is listed on another host, which this one is by another name.
pub(crate) async fn find_under_other_name(
    deps: &Deps,
    record: &SnapshotRecord,
    host: &HostName,
) -> Result<Option<ArchiveOnHost>, Error> {
    let ArchiveOnHost { archives, place, .. } = archive_on(deps, record, host).await?;
    let seen = archives.look(&place).await?;
    Ok(other_name(record, host, &seen).map(|other| {
        let place = ArchivePlace { path: other.path.clone(), is_recorded: true, ..place };
        ArchiveOnHost { archives, place, facts: facts_on(record, &other.host) }
    }))
}

/// Copies a ready snapshot's archive to a host that it is not on, and writes that down: the record with the copy on it.
/// The snapshot's lock is the caller's; a restore onto another host is one.
///
/// Errors: nothing of the copy is left, or it stays listed as `arriving`.
pub(crate) async fn replicate<S: OperationRecord>(
    op: &Op<S>,
    record: &SnapshotRecord,
    to: &HostName,
) -> Result<SnapshotRecord, Error> {
    let deps = &op.deps;
    let running = op.running();
    let begin = |record: &mut SnapshotRecord| record.operation = Some(running);
    let record = journal::change(deps, &record.id, begin).await?;
    // Boxed: it is large, and waits for long.
    let work = transfer_archive(deps, &record, to, &op.progress);
    let work = Box::pin(learn_roots_during(deps, to, &op.progress, work));
    match op.or_cancelled(work).await {
        Ok(arrived) => write_replica(deps, &record.id, to, arrived).await,
        Err(error) => cleanup_copy(deps, &record.id, to, &op.progress, error).await,
    }
}

/// Brings a snapshot's archive to a host from wherever it is whole. One that is there already, sealed and sound, is taken
/// as it is.
async fn transfer_archive(
    deps: &Deps,
    record: &SnapshotRecord,
    host: &HostName,
    progress: &dyn Reporter,
) -> Result<Arrived, Error> {
    let ArchiveOnHost { archives, place, .. } = archive_on(deps, record, host).await?;
    let to = ArchivePlace { roots: roots_for_new(deps, host).await?, ..place };
    let seen = archives.look(&to).await?;
    let is_elsewhere = |listed: &Replica| {
        !listed.host.same(host.as_str())
            && !listed.is_at(seen.identity.as_ref(), seen.path.as_deref())
    };
    // What is there may be the last good bytes: it goes only where another one was read to its end.
    let is_there = seen.path.is_some();
    let read = is_there.then_some(progress);
    if let Some(arrived) = sealed_replica(record, seen.clone()) {
        match archives.verify(&to, &arrived.archive, progress).await {
            Ok(()) => return Ok(arrived),
            Err(error) if proves_damage(&error) => {}
            // That nobody could read it proves nothing.
            Err(error) => return Err(error),
        }
    }
    let from = find_archive(deps, record, is_elsewhere, read).await?.place;
    if is_there {
        remove_replaced(deps, record, host, progress).await?;
    }
    let record = list_arriving(deps, &record.id, host, seen).await?;
    let manifest = manifest_of(deps, &record, &from.host).await?;
    archives.copy(&from, &to, &manifest, progress).await.map_err(|error| {
        if error.kind != Kind::ArrivedOtherwise {
            return error;
        }
        error.hint(format!(
            "it was sent by {}: `sandboxer snapshots verify {}` says whether it is whole there; if it is, try again",
            from.host, record.id
        ))
    })
}

/// Lists an archive that is about to be brought to where its host was looked at.
pub(crate) async fn list_arriving(
    deps: &Deps,
    id: &SnapshotId,
    host: &HostName,
    seen: ArchiveLook,
) -> Result<SnapshotRecord, Error> {
    let arriving = Replica::arriving(host.clone(), seen.identity, deps.now());
    let arriving = Replica { path: seen.folder, ..arriving };
    journal::change(deps, id, |record: &mut SnapshotRecord| record.list_replica(arriving)).await
}

/// Removes what is where an archive is to come and is not what it should be.
async fn remove_replaced(
    deps: &Deps,
    record: &SnapshotRecord,
    host: &HostName,
    progress: &dyn Reporter,
) -> Result<(), Error> {
    ensure_own(deps).await?;
    remove_archive(deps, record, host, progress).await.map_err(|error| {
        if error.code != Code::OperationFailed || !error.untouched {
            return error;
        }
        let message =
            format!("{host} has something of snapshot {} that is not known to be ours", record.id);
        Error::new(Code::Conflict, message)
            .hint("it is never removed; look at it there, and move it away")
            .because(error)
    })
}

/// Lists an archive that is whole on a host.
pub(crate) async fn write_replica(
    deps: &Deps,
    id: &SnapshotId,
    host: &HostName,
    arrived: Arrived,
) -> Result<SnapshotRecord, Error> {
    let replica = arrived.replica(host, deps.now());
    let data = serde_json::json!({"host": host, "bytes": replica.bytes, "format": replica.format});
    let events = vec![(EventKind::SnapshotCopied, data)];
    journal::update(deps, id, Guard::Any, events, move |record: &mut SnapshotRecord| {
        record.list_replica(replica);
        record.operation = None;
        Ok(())
    })
    .await
}

/// After a copy that failed, nothing of it stays on the host; or it stays listed. One that was whole before it was cancelled
/// is a copy: the record as it is then.
async fn cleanup_copy(
    deps: &Deps,
    id: &SnapshotId,
    host: &HostName,
    progress: &ProgressReporter,
    error: Error,
) -> Result<SnapshotRecord, Error> {
    let record = get_snapshot_at_revision(deps, id.as_str(), None).await?;
    let is_begun = record.replica_on(host).is_some_and(|it| it.state == ReplicaState::Arriving);
    if !is_begun {
        free_snapshot(deps, id, |_| {}).await?;
        return Err(CancelOutcome::Undone.noted_on(error));
    }
    let cleanup = finish_or_remove_arriving(deps, &record, host, progress);
    let error = match tokio::time::timeout(CLEANUP_LIMIT, cleanup).await {
        Ok(Ok(Some(arrived))) => return write_replica(deps, id, host, arrived).await,
        Ok(Ok(None)) => {
            let at = host.clone();
            free_snapshot(deps, id, move |record| record.drop_replica(&at)).await?;
            let error = CancelOutcome::Undone.noted_on(error);
            match error.hint {
                Some(_) => error,
                None => error.hint(format!("nothing of the copy is left on {host}")),
            }
        }
        Ok(Err(_)) | Err(_) => {
            free_snapshot(deps, id, |_| {}).await?;
            let hint = format!(
                "something of it may still be on {host}; `sandboxer recover` removes it when that host is back"
            );
            error.hint(hint).detail("unremoved", true)
        }
    };
    Err(error)
}

/// Archive of a copy that somebody left, if it was sealed; else it is removed.
///
/// Errors: something of it may be left.
pub(crate) async fn finish_or_remove_arriving(
    deps: &Deps,
    record: &SnapshotRecord,
    host: &HostName,
    progress: &dyn Reporter,
) -> Result<Option<Arrived>, Error> {
    let there = archive_on(deps, record, host).await?;
    let arrived = sealed_replica(record, there.archives.look(&there.place).await?);
    if arrived.is_none() {
        remove_archive(deps, record, host, progress).await?;
    }
    Ok(arrived)
}

/// [`sealed_archive`] that is what is known of the snapshot's archive. It may be compressed in another way.
fn sealed_replica(record: &SnapshotRecord, seen: ArchiveLook) -> Option<Arrived> {
    sealed_archive(record, seen).filter(|arrived| {
        let ArchiveFacts { bytes, format, .. } = arrived.archive.clone();
        arrived.archive == ArchiveFacts { bytes, format, ..record.archive.clone() }
    })
}
