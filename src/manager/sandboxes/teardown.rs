//! Teardown of a sandbox on its host, tried again while the host does not answer, and what a record keeps of it.

use std::time::Duration;

use crate::domain::error::{Code, Error, Kind};
use crate::domain::extension::{OwnerStamp, Target};
use crate::domain::name::{OwnerId, SandboxId};
use crate::domain::reporter::{Report, Reporter};
use crate::domain::sandbox::SandboxRecord;
use crate::domain::teardown::{Resource, TeardownLine, TeardownOutcome, TeardownReport};
use crate::manager::deps::Deps;
use crate::manager::hosts::roots::learn_roots_during;
use crate::manager::operation::progress::ProgressReporter;
use crate::manager::sandboxes::resolve::resolve_as_known;
use crate::manager::upkeep::ownership::ensure_own;

/// Pauses between tries to reach the host; then the record waits for the host to be back.
const TRIES: [Duration; 3] = [Duration::ZERO, Duration::from_millis(500), Duration::from_secs(2)];

/// Removes all of it, trying again a few times when the host does not answer.
///
/// Errors: why it could not be removed, and whether it is certain that nothing was.
pub(crate) async fn tear_down(
    deps: &Deps,
    record: &SandboxRecord,
    progress: &ProgressReporter,
) -> Result<TeardownReport, Error> {
    let target = resolve_as_known(deps, record).await.map_err(Error::untouched)?;
    tear_down_target(deps, record, target, progress).await
}

/// [`tear_down`], unless the host has seen a later state of this data directory.
pub(crate) async fn tear_down_checked(
    deps: &Deps,
    record: &SandboxRecord,
    progress: &ProgressReporter,
) -> Result<TeardownReport, Error> {
    let mut target = resolve_as_known(deps, record).await.map_err(Error::untouched)?;
    let stamp = stamp_of_owner(deps, &record.owner).await.map_err(Error::untouched)?;
    let is_adopted =
        stamp.owner != deps.installation.stamp().await.map_err(Error::untouched)?.owner;
    target.stamp = Some(stamp);
    match tear_down_target(deps, record, target.clone(), progress).await {
        Err(Error { kind: Kind::Behind(counter), .. }) if is_adopted => {
            Err(other_console_error(record, counter).untouched())
        }
        Err(Error { kind: Kind::Behind(counter), .. }) => {
            deps.installation.seen_on(&record.host, counter).await.map_err(Error::untouched)?;
            ensure_own(deps).await.map_err(Error::untouched)?;
            // Another process of ours raised the host's counter a moment ago.
            target.stamp = Some(deps.installation.stamp().await.map_err(Error::untouched)?);
            tear_down_target(deps, record, target, progress).await
        }
        outcome => outcome,
    }
}

/// Stamp of the owner that a sandbox bears: ours, or one that was adopted, with what is known here of its counter.
async fn stamp_of_owner(deps: &Deps, owner: &OwnerId) -> Result<OwnerStamp, Error> {
    let ours = deps.installation.stamp().await?;
    if ours.owner == *owner {
        return Ok(ours);
    }
    let known = deps.installation.owner_counters().await?.get(owner).copied();
    Ok(known.map_or(ours.clone(), |counter| OwnerStamp { owner: owner.clone(), counter, ..ours }))
}

/// Error of a removal on a host where another console works under the owner id that was adopted from it.
fn other_console_error(record: &SandboxRecord, counter: u64) -> Error {
    let (id, host, owner) = (&record.id, &record.host, &record.owner);
    let message = format!(
        "sandbox {id}: nothing was removed: {host} counts {counter} changes by the owner {owner}, more than are known here: another console works under it"
    );
    Error::new(Code::Conflict, message).hint(format!(
        "leave it to that console, or `sandboxer adopt --owner {owner}` takes it over again"
    ))
}

async fn tear_down_target(
    deps: &Deps,
    record: &SandboxRecord,
    target: Target,
    progress: &ProgressReporter,
) -> Result<TeardownReport, Error> {
    let extension = deps.extension(&record.extension).map_err(Error::untouched)?;
    let (mut last, mut touched) = (None, false);
    for pause in TRIES {
        tokio::time::sleep(pause).await;
        match learn_roots_during(
            deps,
            &target.host,
            progress,
            extension.teardown(&target, progress),
        )
        .await
        {
            Ok(report) => return Ok(report),
            Err(error) => {
                touched |= !error.untouched;
                if touched {
                    progress.began(); // for all that anybody knows
                }
                let error = Error { untouched: !touched, ..error };
                if error.code != Code::HostUnreachable || !error.retryable {
                    return Err(error);
                }
                progress.report(Report {
                    stage: "teardown",
                    message: Some(format!("{error}; trying again")),
                    ..Report::default()
                });
                last = Some(error);
            }
        }
    }
    Err(last.unwrap_or_else(|| Error::internal("no teardown was tried")))
}

/// Keeps a teardown's report on a record.
pub(crate) fn note_teardown(record: &mut SandboxRecord, report: Option<TeardownReport>) {
    if let Some(report) = report {
        record.teardown = report.lines;
        record.leftovers = report.leftovers;
    }
}

/// Error of a teardown that left something.
pub(crate) fn leftovers_error(id: &SandboxId, report: &TeardownReport) -> Error {
    report.leftovers_error(&format!("sandbox {id}: not everything could be removed"))
}

/// Report of a teardown whose result nobody could look at.
pub(crate) fn unseen(id: &SandboxId, why: &str) -> TeardownReport {
    let resource = Resource { kind: "sandbox".to_owned(), id: id.project() };
    TeardownReport {
        lines: vec![TeardownLine {
            resource: resource.clone(),
            outcome: TeardownOutcome::Failed,
            reason: Some(why.to_owned()),
        }],
        leftovers: vec![resource],
        untouched: false,
    }
}
