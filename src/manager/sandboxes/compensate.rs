//! Compensation of a failed establishment: teardown to its end, evidence on the record, `failed` (semantics 2).

use std::time::Duration;

use crate::domain::error::{Code, Error};
use crate::domain::event::EventKind;
use crate::domain::name::SandboxId;
use crate::domain::operation::CancelOutcome;
use crate::domain::reporter::{Learnt, Report, Reporter};
use crate::domain::sandbox::{Failure, Reason, SandboxRecord, State};
use crate::domain::settlement::After;
use crate::domain::teardown::{Resource, TeardownLine, TeardownOutcome, TeardownReport};
use crate::failpoint;
use crate::manager::credits::charge::settlement_of;
use crate::manager::deps::Deps;
use crate::manager::operation::Op;
use crate::manager::operation::progress::ProgressReporter;
use crate::manager::sandboxes::establishment::Establishment;
use crate::manager::sandboxes::find::find_sandbox;
use crate::manager::sandboxes::teardown::{note_teardown, tear_down, unseen};
use crate::manager::sandboxes::write_errors::{end_not_written_error, leftover_words};

/// Limit of a rollback; what is left then is written down as leftovers.
const ROLLBACK_LIMIT: Duration = Duration::from_mins(2);

/// Time that a kept failed sandbox stays, in seconds.
const KEPT_FAILED_S: u64 = 3600;

/// Failed establishment, after its teardown.
pub(crate) struct RolledBack {
    pub(crate) error: Error,
    pub(crate) failure: Failure,
    /// Report of the teardown; none where it was kept to be looked at.
    pub(crate) report: Option<TeardownReport>,
}

/// Runs teardown to its end, and keeps the evidence.
pub(crate) async fn roll_back(
    op: &Op<SandboxRecord>,
    establishment: &Establishment,
    error: Error,
) -> RolledBack {
    let deps = &op.deps;
    let (failure, untouched) = (error.evidence.as_deref().cloned(), error.untouched);
    let error = error.of_a_part();
    let id = &establishment.provision.id;
    let failure = failure.unwrap_or_else(|| op.progress.failure_of(&error));
    let learnt = op.progress.take_learnt();
    if let Some(learnt) = learnt.clone() {
        let noted = op.update(Vec::new(), |record| {
            note_learnt(record, learnt);
        });
        if let Err(error) = noted.await {
            tracing::warn!(sandbox = %id, %error, "where it was made could not be written down");
        }
    }
    failpoint::reached("rollback.begin");
    let keep = establishment.keep_failed && error.code != Code::Cancelled;
    let report = match (keep, untouched) {
        (_, true) => Some(nothing_made(id)),
        (true, false) => None,
        (false, false) => Some(remove(deps, id, learnt, &op.progress).await),
    };
    failpoint::reached("rollback.torn_down");
    RolledBack { error, failure, report }
}

/// Leaves `failed`, with the evidence and what is left.
pub(crate) async fn end_failed(
    op: &Op<SandboxRecord>,
    establishment: &Establishment,
    rolled_back: RolledBack,
) -> Result<SandboxRecord, Error> {
    let deps = &op.deps;
    let RolledBack { error, failure, report } = rolled_back;
    let id = &establishment.provision.id;
    let (keep, cancelled) = (report.is_none(), error.code == Code::Cancelled);
    let error = if cancelled { cancelled_error(establishment, report.as_ref()) } else { error };
    let error = explain(error, id, &failure, report.as_ref());
    let kept_until = deps.now().plus_seconds(KEPT_FAILED_S);
    let message = error.message.clone();
    let data = serde_json::json!({"code": error.code, "step": failure.step, "message": message});
    let reason = if cancelled { Reason::Cancelled } else { Reason::ProvisionFailed };
    let left = leftover_words(report.as_ref(), keep);
    let settlement = match &report {
        Some(report) => settlement_of(op, report, After::Over).await,
        None => None,
    };
    let ended = op.update(vec![(EventKind::SandboxFailed, data)], move |record| {
        if let Some(settlement) = settlement {
            settlement.write_on(record);
        }
        record.state = State::Failed;
        record.reason = Some(reason);
        record.message = Some(message);
        record.failure = Some(failure);
        record.operation = None;
        record.kept_failed = keep;
        record.manifest_pending = keep;
        // What is not there cannot expire.
        record.expires_at = keep.then_some(kept_until);
        note_teardown(record, report);
    });
    if let Err(not_written_error) = ended.await {
        return Err(end_not_written_error(id, error, &left, &not_written_error));
    }
    Err(error)
}

/// A teardown under its own deadline. What could not be looked at counts as left over.
async fn remove(
    deps: &Deps,
    id: &SandboxId,
    learnt: Option<Learnt>,
    progress: &ProgressReporter,
) -> TeardownReport {
    progress.report(Report { stage: "rollback", ..Report::default() });
    let rollback = async {
        let mut record = find_sandbox(deps, id.as_str()).await?;
        if let Some(learnt) = learnt {
            note_learnt(&mut record, learnt);
        }
        tear_down(deps, &record, progress).await
    };
    match tokio::time::timeout(ROLLBACK_LIMIT, rollback).await {
        Ok(Ok(report)) => report,
        Ok(Err(error)) => unseen(id, &error.to_string()),
        Err(_) => unseen(id, "the rollback took too long"),
    }
}

/// The error of an establishment that was cancelled, by what its rollback came to.
fn cancelled_error(establishment: &Establishment, report: Option<&TeardownReport>) -> Error {
    let (id, host) = (&establishment.provision.id, &establishment.provision.host);
    if !report.is_some_and(TeardownReport::is_clean) {
        let message = format!(
            "sandbox {id}: cancelled, and not all that was made on {host} could be taken back"
        );
        return CancelOutcome::Stopped.error(message);
    }
    if establishment.recreate {
        let message = format!(
            "sandbox {id}: cancelled after the old one was removed; nothing of the new one is left"
        );
        return CancelOutcome::Stopped
            .error(message)
            .hint(format!("`sandboxer recreate {id}` makes it again"));
    }
    CancelOutcome::Undone.error(format!("sandbox {id}: cancelled; nothing of it is left on {host}"))
}

fn nothing_made(id: &SandboxId) -> TeardownReport {
    let resource = Resource { kind: "sandbox".to_owned(), id: id.project() };
    let line = TeardownLine { resource, outcome: TeardownOutcome::Absent, reason: None };
    TeardownReport { lines: vec![line], leftovers: Vec::new(), untouched: false }
}

/// Adds to the error of a sandbox what the operator has to know of the rollback; none: it was kept.
fn explain(
    error: Error,
    id: &SandboxId,
    failure: &Failure,
    report: Option<&TeardownReport>,
) -> Error {
    let left = report.map(TeardownReport::left_words).unwrap_or_default();
    let error = error
        .step(failure.step.as_str())
        .detail("exit_status", failure.exit_status)
        .detail("leftovers", left.clone());
    if report.is_none() {
        let hint =
            format!("it was kept for an hour to look at; `sandboxer destroy {id}` removes it");
        return error.hint(hint);
    }
    if left.is_empty() {
        return error;
    }
    let left = left.join(", ");
    error.hint(format!("still on the host: {left}; `sandboxer destroy {id}` tries again"))
}

fn note_learnt(record: &mut SandboxRecord, learnt: Learnt) {
    record.workdir = Some(learnt.workdir);
    record.host_identity = Some(learnt.identity);
    if !learnt.rewrites.is_empty() {
        record.rewrites = learnt.rewrites;
    }
}
