//! Removal of a snapshot's archives: from each host that answers; what the others have stays listed as `removing`.

use crate::domain::archive::SnapshotArchives;
use crate::domain::error::{Code, Error};
use crate::domain::name::{HostName, SnapshotId};
use crate::domain::reporter::Reporter;
use crate::domain::snapshot::{Replica, ReplicaState, SnapshotRecord};
use crate::domain::teardown::TeardownReport;
use crate::manager::deps::Deps;
use crate::manager::journal::{self, Guard};
use crate::manager::operation::progress::ProgressReporter;
use crate::manager::snapshots::archives::{archive_place, archives_of};
use crate::manager::snapshots::find::get_snapshot_at_revision;

/// Archives that could not be removed, each with why.
#[derive(Default)]
pub(crate) struct LeftArchives {
    pub(crate) left: Vec<(Replica, Error)>,
    /// Whether nothing was removed, and each host refused to begin.
    pub(crate) is_refused: bool,
}

impl LeftArchives {
    /// Error that names all that is left; none where nothing is.
    pub(crate) fn error(&self) -> Option<Error> {
        let (_, first) = self.left.first()?;
        let others = self.left.iter().skip(1).map(|(_, error)| error.message.clone());
        let others: Vec<String> = others.collect();
        let first = first.clone();
        Some(if others.is_empty() { first } else { first.because(others.join("; ")) })
    }
}

/// Removes a snapshot's archive from every host that has or may have one: the one that it was made with last. What is gone is
/// taken off the record.
pub(crate) async fn remove_what_answers(
    deps: &Deps,
    id: &SnapshotId,
    progress: &ProgressReporter,
) -> Result<LeftArchives, Error> {
    let record = get_snapshot_at_revision(deps, id.as_str(), None).await?;
    // One of the earlier tool, too, has none that is sandboxer's.
    if record.replicas.is_empty() {
        return Ok(LeftArchives::default());
    }
    let extension = deps.extension(&record.extension)?;
    let archives = archives_of(extension.as_ref())?;
    let mut left = Vec::new();
    for replica in record.replicas.iter().rev() {
        if let Err(error) = remove_archive(deps, &record, &replica.host, archives, progress).await {
            left.push((replica.clone(), error));
        }
    }
    let is_refused =
        left.len() == record.replicas.len() && left.iter().all(|(_, error)| error.is_refusal());
    if !left.is_empty() {
        note_left(deps, id, &left).await?;
    }
    Ok(LeftArchives { left, is_refused })
}

/// [`remove_what_answers`], where all of it has to go.
///
/// Errors: what is left, and why.
pub(crate) async fn remove_archives(
    deps: &Deps,
    id: &SnapshotId,
    progress: &ProgressReporter,
) -> Result<(), Error> {
    remove_what_answers(deps, id, progress).await?.error().map_or(Ok(()), Err)
}

/// Removes the archive on one host.
pub(crate) async fn remove_archive(
    deps: &Deps,
    record: &SnapshotRecord,
    host: &HostName,
    archives: &dyn SnapshotArchives,
    progress: &dyn Reporter,
) -> Result<(), Error> {
    let place = archive_place(deps, record, host).await?;
    let report = archives.remove(&place, progress).await?;
    if report.is_clean() {
        return Ok(());
    }
    Err(Error { untouched: report.untouched, ..left_over(&record.id, host, &report) })
}

async fn note_left(
    deps: &Deps,
    id: &SnapshotId,
    left: &[(Replica, Error)],
) -> Result<SnapshotRecord, Error> {
    let left: Vec<(HostName, String)> =
        left.iter().map(|(replica, error)| (replica.host.clone(), error.message.clone())).collect();
    journal::update(deps, id, Guard::Any, Vec::new(), move |record: &mut SnapshotRecord| {
        record.replicas.retain(|known| left.iter().any(|(host, _)| known.host.same(host.as_str())));
        for (host, message) in left {
            record.mark_replica(&host, ReplicaState::Removing, Some(message));
        }
        Ok(())
    })
    .await
}

fn left_over(id: &SnapshotId, host: &HostName, report: &TeardownReport) -> Error {
    let left: Vec<String> =
        report.leftovers.iter().map(|r| format!("{} {}", r.kind, r.id)).collect();
    let why: Vec<String> = report.lines.iter().filter_map(|line| line.reason.clone()).collect();
    let how_much =
        if report.untouched { "nothing was removed" } else { "not everything could be removed" };
    let message = format!("snapshot {id}: {how_much} on {host}: {}", left.join(", "));
    let error = Error::new(Code::OperationFailed, message).detail("leftovers", left).hint(
        "look at it there: what is not known to be this snapshot's is never removed. Once it is out of the way, try again",
    );
    if why.is_empty() { error } else { error.because(why.join("; ")) }
}
