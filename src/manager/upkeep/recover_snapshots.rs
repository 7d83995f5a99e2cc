//! Recovery of snapshots over which a process died: finished if their archive is whole, else taken away.

use std::sync::{Arc, Mutex, PoisonError};

use crate::domain::error::{Code, Error};
use crate::domain::event::EventKind;
use crate::domain::name::{HostName, SnapshotId};
use crate::domain::operation::OperationKind;
use crate::domain::request::Recovered;
use crate::domain::sandbox::Running;
use crate::domain::snapshot::{ReplicaState, SnapshotRecord, SnapshotState};
use crate::manager::deps::Deps;
use crate::manager::journal::{self, Guard, free_snapshot};
use crate::manager::operation::Op;
use crate::manager::operation::dead::{by, elsewhere_words, end_dead_operation, works_elsewhere};
use crate::manager::operation::progress::ProgressReporter;
use crate::manager::operation::record::operation_on_snapshot;
use crate::manager::snapshots::archives::{archive_on, sealed_archive};
use crate::manager::snapshots::delete::delete_locked;
use crate::manager::snapshots::remove::remove_archives;
use crate::manager::snapshots::replicate::{finish_or_remove_arriving, write_replica};

/// Message on a snapshot whose process died over it.
const DIED: &str = "the process that made it died";

/// Whether a dead process may have left something of it.
pub(crate) fn needs_recovery(record: &SnapshotRecord) -> bool {
    record.operation.is_some()
        || record.has_remains()
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
        None if record.state == SnapshotState::Ready => "a copy that died".to_owned(),
        None => format!("a {} snapshot", record.state),
    };
    if let Some(working) = works_elsewhere(deps, record.operation.as_ref()).await? {
        let error = copy_error(working, "recover in the original");
        return Ok(Some(recovered(id.as_str(), was, Err(error))));
    }
    let was_ready = record.state == SnapshotState::Ready;
    let ends = Arc::new(Mutex::new(Vec::new()));
    let told = Arc::clone(&ends);
    let operation = operation_on_snapshot(deps, OperationKind::Recover, &record);
    let op = Box::pin(Op::queue(deps, operation, record, Some(lock))).await?;
    let ended = op.run_to_end(move |op| async move {
        if let Some(dead) = &op.subject.operation {
            end_dead_operation(&op.deps, &dead.id).await?;
        }
        Box::pin(finish_or_remove(&op, &told)).await
    });
    let error = ended.await?.operation.error;
    let now = deps.snapshots.get(id).await?;
    let came_to = match (error, &now) {
        (Some(error), _) => Err(*error),
        (None, None) => Ok("removed".to_owned()),
        (None, Some(now)) if now.state == SnapshotState::Ready && was_ready => {
            Ok(ready_words(&ends.lock().unwrap_or_else(PoisonError::into_inner)))
        }
        (None, Some(now)) if now.state == SnapshotState::Ready => {
            Ok("ready: its archive is whole".to_owned())
        }
        (None, Some(_)) => Ok("failed; nothing of it is left".to_owned()),
    };
    Ok(Some(recovered(id.as_str(), was, came_to)))
}

/// Item of a recovery, by what that came to.
pub(crate) fn recovered(id: &str, was: String, came_to: Result<String, Error>) -> Recovered {
    let error = came_to.as_ref().err().cloned();
    let message = came_to.unwrap_or_else(|error| error.message);
    Recovered { id: id.to_owned(), ok: error.is_none(), was, state: None, message, error }
}

/// Error of what another process works on, which has the data directory that this one is a copy of.
pub(crate) fn copy_error(working: &Running, hint: &str) -> Error {
    Error::new(Code::Conflict, elsewhere_words(working)).hint(hint)
}

/// Hosts to which a copy was on its way.
fn arriving_on(record: &SnapshotRecord) -> Vec<HostName> {
    let arriving = record.replicas.iter().filter(|it| it.state == ReplicaState::Arriving);
    arriving.map(|replica| replica.host.clone()).collect()
}

/// End of a copy that was on its way when its process died.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum CopyEnd {
    Whole,
    Removed,
    /// Nobody could look, and nobody will.
    GivenUp,
}

impl CopyEnd {
    fn words(self, host: &HostName) -> String {
        match self {
            Self::Whole => format!("its copy on {host} is whole"),
            Self::Removed => format!("nothing of the copy is left on {host}"),
            Self::GivenUp => format!(
                "{host} is not configured any more: what was to be copied there may still be there in part"
            ),
        }
    }
}

/// Words for a snapshot that was ready all the time, and for what became of its copies.
fn ready_words(ends: &[(HostName, CopyEnd)]) -> String {
    let copies = ends.iter().map(|(host, end)| end.words(host));
    std::iter::once("ready as before".to_owned()).chain(copies).collect::<Vec<_>>().join("; ")
}

async fn finish_or_remove(
    op: &Op<SnapshotRecord>,
    ends: &Mutex<Vec<(HostName, CopyEnd)>>,
) -> Result<(), Error> {
    let (deps, record) = (&op.deps, &op.subject);
    let dead = record.operation.clone();
    let guard = Guard::Revision(Some(record.revision));
    let attached = op.attach(guard, |_| Ok(())).await?;
    let result = match record.state {
        SnapshotState::Deleting => return delete_locked(op, false).await,
        SnapshotState::Creating => finish_creating(deps, &attached, &op.progress).await,
        SnapshotState::Failed => remove_archives(deps, &record.id, &op.progress).await,
        _ => finish_or_remove_copies(deps, &attached, &op.progress, ends).await,
    };
    let failed = result.is_err();
    free_snapshot(deps, &record.id, move |record| {
        // Nobody could look: it stays as the dead process left it, for the next time.
        record.operation = dead.filter(|_| failed);
        if !failed && record.state == SnapshotState::Failed {
            record.replicas.clear();
        }
    })
    .await?;
    result
}

/// The archive may have been sealed before its process died: then it is whole.
async fn finish_creating(
    deps: &Deps,
    record: &SnapshotRecord,
    progress: &ProgressReporter,
) -> Result<(), Error> {
    let there = archive_on(deps, record, &record.host).await?;
    let sealed = sealed_archive(record, there.archives.look(&there.place).await?);
    let event = if let Some(whole) = &sealed {
        let data = serde_json::json!({"bytes": whole.archive.bytes, "reason": "crash_recovered"});
        (EventKind::SnapshotReady, data)
    } else {
        remove_archives(deps, &record.id, progress).await?;
        let data = serde_json::json!({"code": Code::OperationFailed, "message": DIED});
        (EventKind::SnapshotFailed, data)
    };
    let now = deps.now();
    let finish = move |record: &mut SnapshotRecord| {
        if let Some(whole) = sealed {
            record.state = SnapshotState::Ready;
            record.archive = whole.archive.clone();
            record.list_replica(whole.replica(&record.host, now));
            record.message = Some(format!("{DIED}; its archive is whole"));
        } else {
            record.state = SnapshotState::Failed;
            record.message = Some(DIED.to_owned());
        }
        Ok(())
    };
    journal::update(deps, &record.id, Guard::Any, vec![event], finish).await.map(|_| ())
}

/// Copies that were on their way are listed where they are whole, else taken away again. What is on a host that nothing
/// configures any more, and that does not answer, is given up: nobody says that it will be back.
async fn finish_or_remove_copies(
    deps: &Deps,
    record: &SnapshotRecord,
    progress: &ProgressReporter,
    ends: &Mutex<Vec<(HostName, CopyEnd)>>,
) -> Result<(), Error> {
    let mut result = Ok(());
    for host in arriving_on(record) {
        let end = match finish_or_remove_arriving(deps, record, &host, progress).await {
            Ok(Some(arrived)) => {
                write_replica(deps, &record.id, &host, arrived).await?;
                CopyEnd::Whole
            }
            Ok(None) => CopyEnd::Removed,
            Err(error) if is_vanished(deps, &host, &error) => CopyEnd::GivenUp,
            Err(error) => {
                result = Err(error);
                continue;
            }
        };
        journal::change(deps, &record.id, |record: &mut SnapshotRecord| {
            if end != CopyEnd::Whole {
                record.drop_replica(&host);
            }
            if end == CopyEnd::GivenUp {
                let before = record.message.take().into_iter();
                record.message =
                    Some(before.chain([end.words(&host)]).collect::<Vec<_>>().join("; "));
            }
        })
        .await?;
        ends.lock().unwrap_or_else(PoisonError::into_inner).push((host, end));
    }
    result
}

/// Whether a host does not answer and is in no configuration: then nobody says that it will be back.
fn is_vanished(deps: &Deps, host: &HostName, error: &Error) -> bool {
    matches!(error.code, Code::HostUnreachable | Code::Timeout)
        && deps.transports.spec(host).is_none()
}

#[cfg(test)]
mod tests {
    use super::CopyEnd::{GivenUp, Removed, Whole};
    use super::*;

    #[test]
    fn of_each_host_is_said_what_became_of_its_copy_and_nothing_else() {
        let gone = "gone is not configured any more: what was to be copied there may still be there in part";
        let old = gone.replace("gone", "old");
        for (ends, words) in [
            (&[][..], "ready as before".to_owned()),
            (&[("a", Whole)], "ready as before; its copy on a is whole".to_owned()),
            (&[("a", Removed)], "ready as before; nothing of the copy is left on a".to_owned()),
            (&[("gone", GivenUp)], format!("ready as before; {gone}")),
            (&[("gone", GivenUp), ("old", GivenUp)], format!("ready as before; {gone}; {old}")),
            (
                &[("a", Whole), ("gone", GivenUp), ("b", Removed)],
                format!(
                    "ready as before; its copy on a is whole; {gone}; nothing of the copy is left on b"
                ),
            ),
        ] {
            let ends: Vec<_> =
                ends.iter().map(|(host, end)| (HostName::new(*host), *end)).collect();
            assert_eq!(ready_words(&ends), words);
        }
    }
}
