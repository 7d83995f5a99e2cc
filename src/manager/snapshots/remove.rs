//! Removal of a snapshot's archives: from each host that answers; what the others have stays listed as `removing`.

use crate::domain::error::Error;
use crate::domain::name::{HostName, SnapshotId};
use crate::domain::reporter::Reporter;
use crate::domain::snapshot::{Replica, ReplicaState, SnapshotRecord};
use crate::domain::teardown::TeardownReport;
use crate::manager::deps::Deps;
use crate::manager::journal;
use crate::manager::operation::progress::ProgressReporter;
use crate::manager::snapshots::archives::{archive_on, archives_of};
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
    archives_of(deps, &record.extension)?;
    let mut left = Vec::new();
    for replica in record.replicas.iter().rev() {
        if let Err(error) = remove_archive(deps, &record, &replica.host, progress).await {
            left.push((replica.clone(), error));
        }
    }
    let is_refused =
        left.len() == record.replicas.len() && left.iter().all(|(_, error)| error.is_refusal());
    if !left.is_empty() {
        journal::change(deps, id, |record: &mut SnapshotRecord| {
            record.replicas.retain(|known| left.iter().any(|(it, _)| it.host == known.host));
            for (Replica { host, .. }, error) in &left {
                record.mark_replica(host, ReplicaState::Removing, Some(error.message.clone()));
            }
        })
        .await?;
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
    progress: &dyn Reporter,
) -> Result<(), Error> {
    let there = archive_on(deps, record, host).await?;
    let report = there.archives.remove(&there.place, progress).await?;
    if report.is_clean() {
        return Ok(());
    }
    Err(Error { untouched: report.untouched, ..left_over(&record.id, host, &report) })
}

fn left_over(id: &SnapshotId, host: &HostName, report: &TeardownReport) -> Error {
    let how_much =
        if report.untouched { "nothing was removed" } else { "not everything could be removed" };
    report.leftovers_error(&format!("snapshot {id}: {how_much} on {host}")).hint(
        "look at it there: what is not known to be this snapshot's is never removed. Once it is out of the way, try again",
    )
}
