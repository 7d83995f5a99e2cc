//! Teardown of a sandbox on its host, tried again while the host does not answer, and what a record keeps of it.

use std::time::Duration;

use crate::domain::error::{Code, Error, Kind};
use crate::domain::extension::{
    Report, Reporter, Resource, Target, TeardownLine, TeardownOutcome, TeardownReport,
};
use crate::domain::name::SandboxId;
use crate::domain::sandbox::SandboxRecord;
use crate::manager::deps::Deps;
use crate::manager::hosts::roots::learning_roots;
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
    reporter: &ProgressReporter,
) -> Result<TeardownReport, Error> {
    let target = resolve_as_known(deps, record).await.map_err(untouched_error)?;
    tear_down_target(deps, record, target, reporter).await
}

/// As [`tear_down`], but not on a host that has seen a later state of this data directory.
pub(crate) async fn tear_down_checked(
    deps: &Deps,
    record: &SandboxRecord,
    reporter: &ProgressReporter,
) -> Result<TeardownReport, Error> {
    let mut target = resolve_as_known(deps, record).await.map_err(untouched_error)?;
    target.stamp = Some(deps.installation.stamp().await.map_err(untouched_error)?);
    match tear_down_target(deps, record, target.clone(), reporter).await {
        Err(Error { kind: Kind::Behind(counter), .. }) => {
            deps.installation.seen_on(&record.host, counter).await.map_err(untouched_error)?;
            ensure_own(deps).await.map_err(untouched_error)?;
            // Another process of ours told the host a moment ago.
            target.stamp = Some(deps.installation.stamp().await.map_err(untouched_error)?);
            tear_down_target(deps, record, target, reporter).await
        }
        outcome => outcome,
    }
}

async fn tear_down_target(
    deps: &Deps,
    record: &SandboxRecord,
    target: Target,
    reporter: &ProgressReporter,
) -> Result<TeardownReport, Error> {
    let extension = deps.extension(&record.extension).map_err(untouched_error)?;
    let (mut last, mut touched) = (None, false);
    for pause in TRIES {
        tokio::time::sleep(pause).await;
        match learning_roots(deps, &target.host, reporter, extension.teardown(&target, reporter))
            .await
        {
            Ok(report) => return Ok(report),
            Err(error) => {
                touched |= !error.untouched;
                let error = Error { untouched: !touched, ..error };
                if error.code != Code::HostUnreachable || !error.retryable {
                    return Err(error);
                }
                reporter.report(Report {
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

/// A fault before anything was asked of a host.
pub(crate) fn untouched_error(error: Error) -> Error {
    error.untouched()
}

pub(crate) fn note_teardown(record: &mut SandboxRecord, report: Option<TeardownReport>) {
    if let Some(report) = report {
        record.teardown = report.lines;
        record.leftovers = report.leftovers;
    }
}

pub(crate) fn not_clean(id: &SandboxId, report: &TeardownReport) -> Error {
    let left: Vec<String> =
        report.leftovers.iter().map(|r| format!("{} {}", r.kind, r.id)).collect();
    let why: Vec<String> = report.lines.iter().filter_map(|line| line.reason.clone()).collect();
    let message = format!("sandbox {id}: not everything could be removed: {}", left.join(", "));
    let error = Error::new(Code::OperationFailed, message).detail("leftovers", left);
    if why.is_empty() { error } else { error.because(why.join("; ")) }
}

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
