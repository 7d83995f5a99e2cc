//! Recovery of snapshots over which a process died: finished if their archive is whole, else taken away.

use crate::domain::archive::{ArchiveLook, Arrived};
use crate::domain::error::{Code, Error};
use crate::domain::event::EventKind;
use crate::domain::name::SnapshotId;
use crate::domain::operation::OperationKind;
use crate::domain::request::Recovered;
use crate::domain::snapshot::{SnapshotRecord, SnapshotState};
use crate::manager::deps::Deps;
use crate::manager::journal::{self, Guard};
use crate::manager::operation::Op;
use crate::manager::operation::dead::{by, end_dead_operation, runs_here};
use crate::manager::operation::progress::ProgressReporter;
use crate::manager::operation::record::operation_on_snapshot;
use crate::manager::snapshots::archive_facts::archives_of;
use crate::manager::snapshots::delete::{delete_locked, remove_archives};
use crate::manager::snapshots::inspect::is_vanished;
use crate::manager::snapshots::pinned_profile::archive_place;
use crate::manager::snapshots::replicate::write_replica;
use crate::manager::snapshots::transfer::cleanup_partial_copy;

/// Whether a dead process may have left something of it.
pub(crate) fn needs_recovery(record: &SnapshotRecord) -> bool {
    record.operation.is_some()
        || record.unremoved
        || record.copying_to.is_some()
        || matches!(record.state, SnapshotState::Creating | SnapshotState::Deleting)
}

/// Ends what dead processes began with snapshots: an item for each.
pub(crate) async fn recover_snapshots(deps: &Deps) -> Result<Vec<Recovered>, Error> {
    let mut items = Vec::new();
    for record in deps.snapshots.list().await? {
        if needs_recovery(&record) {
            items.extend(recover_snapshot(deps, &record.id).await?);
        }
    }
    Ok(items)
}

/// `None`: somebody works on it after all, or it is in order by now.
pub(crate) async fn recover_snapshot(
    deps: &Deps,
    id: &SnapshotId,
) -> Result<Option<Recovered>, Error> {
    let Some(lock) = deps.locks.try_lock_snapshot(id).await? else { return Ok(None) };
    let Some(record) = deps.snapshots.get(id).await?.filter(needs_recovery) else {
        return Ok(None);
    };
    let was = match &record.operation {
        Some(dead) => by(&dead.kind, dead.pid, &dead.host),
        None if record.copying_to.is_some() => "a copy that died".to_owned(),
        None => format!("a {} snapshot", record.state),
    };
    if let Some(working) = record.operation.as_ref().filter(|dead| runs_here(deps, dead)) {
        let message = format!(
            "process {} still works on it, and not on this data directory: this is a copy",
            working.pid
        );
        let error = Error::new(Code::Conflict, message.clone()).hint("recover in the original");
        return Ok(Some(Recovered {
            id: id.to_string(),
            ok: false,
            was,
            state: None,
            message,
            error: Some(error),
        }));
    }
    let (copying, was_ready) = (record.copying_to.clone(), record.state == SnapshotState::Ready);
    let operation = operation_on_snapshot(deps, OperationKind::Recover, &record);
    let op = Box::pin(Op::queue(deps, operation, record, Some(lock))).await?;
    let operation = op.run(None, move |op| async move {
        if let Some(dead) = &op.subject.operation {
            end_dead_operation(&op.deps, &dead.id).await?;
        }
        Box::pin(finish_or_remove(&op)).await
    });
    let error = deps
        .jobs
        .ended(&operation)
        .await
        .and_then(|ended| ended.operation.error)
        .map(|error| *error);
    let now = deps.snapshots.get(id).await?;
    let message = match (&error, &now) {
        (Some(error), _) => error.message.clone(),
        (None, None) => "removed".to_owned(),
        (None, Some(now)) if now.state == SnapshotState::Ready => match copying {
            Some(host)
                if now.hosts().any(|known| known.same(host.as_str()))
                    && now.damage_on(&host).is_none() =>
            {
                format!("ready; its copy on {host} is whole")
            }
            Some(host) => format!("ready as before; nothing of the copy is left on {host}"),
            None if was_ready => "ready as before".to_owned(),
            None => "ready: its archive is whole".to_owned(),
        },
        (None, Some(_)) => "failed; nothing of it is left".to_owned(),
    };
    Ok(Some(Recovered {
        id: id.to_string(),
        ok: error.is_none(),
        was,
        state: None,
        message,
        error,
    }))
}

async fn finish_or_remove(op: &Op<SnapshotRecord>) -> Result<(), Error> {
    let (deps, record) = (&op.deps, &op.subject);
    let dead = record.operation.clone();
    let guard = Guard::Revision(Some(record.revision));
    let attached = op.attach(guard, |_| Ok(())).await?;
    let result = match record.state {
        SnapshotState::Deleting => return delete_locked(op, false).await,
        SnapshotState::Creating => finish_creating(deps, &attached, &op.progress).await,
        SnapshotState::Failed => remove_archives(deps, &record.id, &op.progress).await,
        _ => finish_or_remove_copy(deps, &attached, &op.progress).await,
    };
    let failed = result.is_err();
    journal::update(
        deps,
        &record.id,
        Guard::Any,
        Vec::new(),
        move |record: &mut SnapshotRecord| {
            // Nobody could look: it stays as the dead process left it, for the next time.
            record.operation = dead.filter(|_| failed);
            record.unremoved &= failed;
            if !failed {
                record.copying_to = None;
            }
            Ok(())
        },
    )
    .await?;
    result
}

/// The archive may have been sealed before its process died: then it is whole.
async fn finish_creating(
    deps: &Deps,
    record: &SnapshotRecord,
    progress: &ProgressReporter,
) -> Result<(), Error> {
    let imported = record.imported_at.is_some();
    let whole = if imported {
        // Its id is not new: what is sealed there, and is not what was to come, is somebody's.
        let arrived = cleanup_partial_copy(deps, record, &record.host, progress).await?;
        arrived.map(|Arrived { path, identity, archive }| SnapshotRecord {
            path: Some(path),
            host_identity: Some(identity),
            archive,
            ..record.clone()
        })
    } else {
        let extension = deps.extension(&record.extension)?;
        let archives = archives_of(extension.as_ref())?;
        let place = archive_place(deps, record, &record.host).await?;
        with_sealed_archive(record, archives.look(&place).await?)
    };
    if let Some(whole) = whole {
        let data = serde_json::json!({"bytes": whole.archive.bytes, "reason": "crash_recovered"});
        journal::update(
            deps,
            &record.id,
            Guard::Any,
            vec![(EventKind::SnapshotReady, data)],
            move |record: &mut SnapshotRecord| {
                record.state = SnapshotState::Ready;
                record.path = whole.path;
                record.host_identity = whole.host_identity;
                record.archive = whole.archive;
                record.message =
                    Some("the process that made it died; its archive is whole".to_owned());
                Ok(())
            },
        )
        .await?;
        return Ok(());
    }
    if !imported {
        remove_archives(deps, &record.id, progress).await?;
    }
    let message = "the process that made it died".to_owned();
    let data = serde_json::json!({"code": Code::OperationFailed, "message": message});
    journal::update(
        deps,
        &record.id,
        Guard::Any,
        vec![(EventKind::SnapshotFailed, data)],
        move |record: &mut SnapshotRecord| {
            record.state = SnapshotState::Failed;
            record.message = Some(message);
            Ok(())
        },
    )
    .await
    .map(|_| ())
}

/// A copy that was on its way and that nobody wrote down is listed if it is whole, else taken away again.
async fn finish_or_remove_copy(
    deps: &Deps,
    record: &SnapshotRecord,
    progress: &ProgressReporter,
) -> Result<(), Error> {
    let Some(host) = &record.copying_to else { return Ok(()) };
    match cleanup_partial_copy(deps, record, host, progress).await {
        Ok(Some(arrived)) => write_replica(deps, &record.id, host, arrived).await.map(|_| ()),
        Ok(None) => Ok(()),
        Err(error) if is_vanished(deps, host, &error) => {
            let hint = format!(
                "{host} is not configured: if it never will be back, a copy to another host leaves behind what is there \
                 of {0}, or `sandboxer snapshots delete {0} --force`",
                record.id
            );
            Err(error.hint(hint))
        }
        Err(error) => Err(error),
    }
}

/// Record with the facts of an archive that is there whole.
fn with_sealed_archive(record: &SnapshotRecord, seen: ArchiveLook) -> Option<SnapshotRecord> {
    let manifest = seen
        .manifest
        .filter(|manifest| manifest.id == record.id && manifest.owner == record.owner)?;
    let archive = manifest.snapshot.archive;
    if seen.path.is_none() || seen.bytes.is_none() || archive.bytes != seen.bytes {
        return None;
    }
    Some(SnapshotRecord {
        path: seen.path,
        host_identity: seen.identity,
        archive,
        ..record.clone()
    })
}
