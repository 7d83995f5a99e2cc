//! Copies of a snapshot on further hosts.

use crate::domain::archive::Arrived;
use crate::domain::error::{Code, Error};
use crate::domain::event::EventKind;
use crate::domain::name::{HostName, SnapshotId};
use crate::domain::operation::{CancelOutcome, OperationKind};
use crate::domain::request::{SnapshotCopyRequest, SnapshotStarted};
use crate::domain::snapshot::{ArchiveFormat, Replica, SnapshotRecord};
use crate::manager::deps::Deps;
use crate::manager::hosts::places::check_works_at;
use crate::manager::hosts::roots::learn_roots_during;
use crate::manager::journal::{self, Guard, free_snapshot};
use crate::manager::operation::Op;
use crate::manager::operation::locks::lock_snapshot;
use crate::manager::operation::progress::ProgressReporter;
use crate::manager::operation::start::start_on_snapshot;
use crate::manager::operation::subject::OperationRecord;
use crate::manager::sandboxes::place::open_host;
use crate::manager::snapshots::archive_facts::{archives_of, facts_on, is_sealed, not_whole};
use crate::manager::snapshots::archives::{CLEANUP_LIMIT, ensure_ready, ready_snapshot};
use crate::manager::snapshots::find::get_snapshot_at_revision;
use crate::manager::snapshots::integrity::{clear_damage, note_damage, note_missing};
use crate::manager::snapshots::pinned_profile::archive_place;
use crate::manager::snapshots::transfer::{cleanup_partial_copy, transfer_archive};

/// Steps of a transfer of an archive to a host: prepare, and copy.
pub(crate) const TRANSFER_STEPS: u32 = 2;

/// Starts to copy a snapshot to another host. A copy that is there already is nothing to do.
///
/// Errors: `invalid_input` for the host that it is on, and whatever placement says of a host.
pub(crate) async fn copy_snapshot(
    deps: &Deps,
    request: &SnapshotCopyRequest,
) -> Result<SnapshotStarted, Error> {
    let record = ready_snapshot(deps, &request.id).await?;
    let extension = deps.extension(&record.extension)?;
    let archives = archives_of(extension.as_ref())?;
    check_works_at(deps, extension.as_ref(), &HostName::new(request.host.as_str()))?;
    let host = open_host(deps, &request.host).await?;
    let place = archive_place(deps, &record, &host).await?;
    let seen = archives.look(&place).await?;
    if record.host.same(host.as_str()) {
        refuse_whole(deps, &record, seen.bytes, is_sealed(&seen, &facts_on(&record, &host)))
            .await?;
    }
    let known = record.replicas.iter().any(|replica| replica.host.same(host.as_str()));
    if known && is_sealed(&seen, &facts_on(&record, &host)) {
        return Ok(SnapshotStarted { operation: None, snapshot: record });
    }
    if refuse_unfinished_copy(deps, &record, &host).is_err() {
        // Whoever works on it is said by `busy`; only what nobody works on is left.
        let _lock = lock_snapshot(deps, &record.id).await?;
        refuse_unfinished_copy(deps, &ready_snapshot(deps, &request.id).await?, &host)?;
    }
    let op = start_on_snapshot(deps, OperationKind::Copy, record, |record| ensure_ready(record));
    let op = op.await?;
    let snapshot = op.subject.clone();
    let operation = op.run(Some(host.clone()), move |op| async move {
        op.progress.announce(TRANSFER_STEPS, 0);
        replicate(&op, &op.subject, &host).await.map(|_| ())
    });
    Ok(SnapshotStarted { operation: Some(operation), snapshot })
}

/// Refuses a copy to where the snapshot was made, unless its archive there is known, or seen now, not to be whole: then
/// it is brought back from another host.
async fn refuse_whole(
    deps: &Deps,
    record: &SnapshotRecord,
    bytes: Option<u64>,
    sealed: bool,
) -> Result<(), Error> {
    let host = &record.host;
    if !sealed {
        note_damage(deps, &record.id, host, &not_whole(record, host, bytes)).await;
    } else if record.damage_on(host).is_none() {
        let message =
            format!("snapshot {} is on {host}: that is where it was made", record.title());
        return Err(Error::invalid_input("host", message).hint(format!(
            "`sandboxer snapshots verify {}` says whether it is whole there",
            record.id
        )));
    }
    if record.replicas.is_empty() {
        let message = format!(
            "snapshot {} has no other archive than the one on {host}, which is not whole",
            record.title()
        );
        return Err(Error::new(Code::NotFound, message).hint("an export of it can be imported"));
    }
    Ok(())
}

/// Refuses a copy while another one to a configured host is unfinished: what that may have left is not forgotten.
fn refuse_unfinished_copy(
    deps: &Deps,
    record: &SnapshotRecord,
    to: &HostName,
) -> Result<(), Error> {
    match unfinished_copy(record, to).filter(|left| deps.transports.spec(left).is_some()) {
        Some(left) => {
            let hint = format!(
                "`sandboxer recover` removes it, when that host is back; if it never will be, take {left} out of the \
                 configuration"
            );
            Err(Error::new(
                Code::Conflict,
                format!("what was to be copied to {left} may still be there in part"),
            )
            .hint(hint))
        }
        None => Ok(()),
    }
}

/// Removes what an unfinished copy left on a host that is not configured any more, if that host answers; else it stays
/// there, and the record says so.
async fn cleanup_unfinished_copy(
    deps: &Deps,
    record: SnapshotRecord,
    to: &HostName,
    progress: &ProgressReporter,
) -> Result<SnapshotRecord, Error> {
    let Some(left) = unfinished_copy(&record, to).cloned() else { return Ok(record) };
    let clearing = tokio::time::timeout(
        CLEANUP_LIMIT,
        Box::pin(cleanup_partial_copy(deps, &record, &left, progress)),
    )
    .await;
    let arrived = match clearing {
        Ok(Ok(arrived)) => Ok(arrived.map(|arrived| replica(&left, arrived, deps.now()))),
        Ok(Err(_)) | Err(_) => Err(format!(
            "{left} is not configured any more: what was to be copied there may still be there in part"
        )),
    };
    journal::update(deps, &record.id, Guard::Any, Vec::new(), move |record: &mut SnapshotRecord| {
        record.copying_to = None;
        record.unremoved = false;
        match arrived {
            Ok(Some(arrived)) => list_archive(record, arrived),
            Ok(None) => {}
            Err(message) => record.message = Some(message),
        }
        Ok(())
    })
    .await
}

/// Copies a ready snapshot's archive to a host that it is not on, and writes that down: the record with the copy on it.
/// The snapshot's lock is the caller's; a restore onto another host is one.
///
/// Errors: `invalid_input` for another name of a host that has it; nothing of the copy is left, or the record says that
/// something may be (`unremoved`).
pub(crate) async fn replicate<S: OperationRecord>(
    op: &Op<S>,
    record: &SnapshotRecord,
    to: &HostName,
) -> Result<SnapshotRecord, Error> {
    let deps = &op.deps;
    refuse_unfinished_copy(deps, record, to)?;
    let running = op.running();
    let record = journal::update(
        deps,
        &record.id,
        Guard::Any,
        Vec::new(),
        move |record: &mut SnapshotRecord| {
            record.operation = Some(running);
            Ok(())
        },
    )
    .await?;
    let record = cleanup_unfinished_copy(deps, record, to, &op.progress).await?;
    // Boxed: it is large, and waits for long.
    let work = Box::pin(learn_roots_during(
        deps,
        to,
        &op.progress,
        transfer_archive(deps, &record, to, &op.progress),
    ));
    match op.or_cancelled(work).await {
        Ok(arrived) => write_replica(deps, &record.id, to, arrived).await,
        Err(error) => cleanup_copy(deps, &record.id, to, &op.progress, error).await,
    }
}

/// Lists an archive that is whole on a host. Nothing is on its way there any more.
pub(crate) async fn write_replica(
    deps: &Deps,
    id: &SnapshotId,
    host: &HostName,
    arrived: Arrived,
) -> Result<SnapshotRecord, Error> {
    let replica = replica(host, arrived, deps.now());
    let data = serde_json::json!({"host": host, "bytes": replica.bytes, "format": replica.format});
    let events = vec![(EventKind::SnapshotCopied, data)];
    journal::update(deps, id, Guard::Any, events, move |record: &mut SnapshotRecord| {
        list_archive(record, replica);
        record.copying_to = None;
        record.operation = None;
        record.unremoved = false;
        Ok(())
    })
    .await
}

/// After a copy that failed, nothing of it stays on the host; or the record says that it may. One that was whole
/// before it was cancelled is listed: the record as it is then.
async fn cleanup_copy(
    deps: &Deps,
    id: &SnapshotId,
    host: &HostName,
    progress: &ProgressReporter,
    error: Error,
) -> Result<SnapshotRecord, Error> {
    let record = get_snapshot_at_revision(deps, id.as_str(), None).await?;
    if !record.copying_to.as_ref().is_some_and(|to| to.same(host.as_str())) {
        free_snapshot(deps, id, |_| {}).await?;
        return Err(CancelOutcome::Undone.noted_on(error));
    }
    let clearing =
        tokio::time::timeout(CLEANUP_LIMIT, cleanup_partial_copy(deps, &record, host, progress))
            .await;
    let clean = match clearing {
        Ok(Ok(Some(arrived))) => return write_replica(deps, id, host, arrived).await,
        Ok(Ok(None)) => true,
        Ok(Err(_)) | Err(_) => false,
    };
    let (at, now) = (host.clone(), deps.now());
    free_snapshot(deps, id, move |record| {
        record.unremoved = !clean;
        if clean {
            record.copying_to = None;
            note_missing(record, &at, now);
        }
    })
    .await?;
    if clean {
        let error = CancelOutcome::Undone.noted_on(error);
        return Err(if error.hint.is_some() {
            error
        } else {
            error.hint(format!("nothing of the copy is left on {host}"))
        });
    }
    let hint = format!(
        "something of it may still be on {host}; `sandboxer recover` removes it when that host is back"
    );
    Err(error.hint(hint).detail("unremoved", true))
}

/// Another host that a copy was on its way to.
fn unfinished_copy<'a>(record: &'a SnapshotRecord, to: &HostName) -> Option<&'a HostName> {
    record.copying_to.as_ref().filter(|left| !left.same(to.as_str()))
}

/// Lists an archive that arrived: as a copy, or in place of the one that the snapshot was made with.
fn list_archive(record: &mut SnapshotRecord, arrived: Replica) {
    clear_damage(record, &arrived.host);
    if !record.host.same(arrived.host.as_str()) {
        record.replicas.retain(|replica| !replica.host.same(arrived.host.as_str()));
        record.replicas.push(arrived);
        return;
    }
    record.path = Some(arrived.path);
    record.host_identity = arrived.host_identity;
    record.archive.format = Some(arrived.format);
    record.archive.bytes = Some(arrived.bytes);
}

fn replica(host: &HostName, arrived: Arrived, now: crate::domain::Time) -> Replica {
    Replica {
        host: host.clone(),
        host_identity: Some(arrived.identity),
        path: arrived.path,
        format: arrived.archive.format.unwrap_or(ArchiveFormat::TarZst),
        bytes: arrived.archive.bytes.unwrap_or_default(),
        created_at: now,
    }
}
