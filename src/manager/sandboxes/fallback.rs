//! Fallback: the next candidate of a route takes over where an establishment failed before it was ready and left nothing (semantics 2).

use crate::domain::Time;
use crate::domain::error::{Code, Error};
use crate::domain::route::{Attempt, CandidateVerdict, may_fall_back};
use crate::domain::sandbox::{Route, SandboxRecord};
use crate::domain::teardown::TeardownReport;
use crate::failpoint;
use crate::manager::credits::charge::{Ran, settle_with};
use crate::manager::credits::hold::{Hold, give_back, hold_for};
use crate::manager::operation::Op;
use crate::manager::sandboxes::compensate::RolledBack;
use crate::manager::sandboxes::establishment::Establishment;
use crate::manager::sandboxes::route::{Choice, Router};
use crate::manager::upkeep::unswept::remark_unswept;

/// Makes an establishment that of the next candidate; the failure where there is none, or none may be tried.
pub(crate) async fn fall_back(
    op: &Op<SandboxRecord>,
    establishment: &mut Establishment,
    mut failed: RolledBack,
    began: Time,
) -> Option<RolledBack> {
    let Some(mut router) = establishment.router.take() else { return Some(failed) };
    let provision = &establishment.provision;
    let (extension, host) = (&provision.profile.extension, &provision.host);
    let attempt = Attempt {
        reason: failed.error.sentence(),
        failure: Some(failed.failure.clone()),
        ..Attempt::of(extension, host, began)
    };
    if let Err(error) = op.update(Vec::new(), |record| record.attempts.push(attempt)).await {
        tracing::warn!(sandbox = %provision.id, %error, "an attempt could not be written down");
        return Some(failed);
    }
    failpoint::reached("fallback.noted");
    if !may_fall_back(&failed.error) {
        return Some(failed);
    }
    let Some(report) = failed.report.as_ref().filter(|report| report.is_clean()) else {
        let why = format!("no other candidate was tried: something of it may be left on {host}");
        failed.error.causes.push(why);
        return Some(failed);
    };
    match next_attempt(op, establishment, &mut router, (&failed.error, report)).await {
        Ok(next) => {
            *establishment = Establishment { router: Some(router), ..next };
            None
        }
        Err(error) => {
            failed.error = error;
            Some(failed)
        }
    }
}

/// Establishment with the next candidate that can take it, on the record before anything of it is made.
///
/// Errors: the failure of the last attempt, with the verdict on each candidate; `cancelled`.
async fn next_attempt(
    op: &Op<SandboxRecord>,
    failed: &Establishment,
    router: &mut Router,
    (error, report): (&Error, &TeardownReport),
) -> Result<Establishment, Error> {
    let deps = &op.deps;
    router.note_failed(error);
    if op.is_cancelled() || op.is_cancel_written().await? {
        return Err(Error::new(Code::Cancelled, error.message.clone()));
    }
    settle_attempt(op, report).await.map_err(|why| untried_error(error, &why))?;
    let (Choice { found, mut route }, hold) = Box::pin(choose_held(op, router, error)).await?;
    let quote = found.quote.as_ref();
    failpoint::reached("fallback.held");
    route.remarks.insert(0, fallback_remark(failed, error));
    route.remarks.extend(remark_unswept(deps, failed.ttl_s).await);
    let quote_usd = quote.map(|quote| quote.usd);
    let extension = found.resolved.profile.extension.clone();
    let moved = op.update(Vec::new(), |record| {
        record.extension = extension;
        record.quote_usd = quote_usd;
        move_to(record, route);
        if let Some(hold) = &hold {
            hold.note_on(record);
        }
    });
    let record = match moved.await {
        Ok(record) => record,
        Err(why) => return Err(untried_error(error, &give_back(deps, hold, why).await)),
    };
    failpoint::reached("fallback.moved");
    let provision = found.draft.of_record(&record);
    Ok(Establishment::of(provision, failed.ttl_s))
}

/// The next candidate that can take it, with its price held. One whose credits went to others meanwhile is refused, and the one
/// after it is looked at.
///
/// Errors: `cancelled`; `failed`, which the last attempt ended with, where none can take it.
async fn choose_held(
    op: &Op<SandboxRecord>,
    router: &mut Router,
    failed: &Error,
) -> Result<(Choice, Option<Hold>), Error> {
    let deps = &op.deps;
    loop {
        let choice = match op.or_cancelled(Box::pin(router.choose(deps))).await {
            Ok(choice) => choice,
            Err(cancelled) if cancelled.code == Code::Cancelled => return Err(cancelled),
            Err(_) => return Err(exhausted_error(failed, &router.candidates("not asked"))),
        };
        match hold_for(deps, &op.subject.id, choice.found.quote.as_ref()).await {
            Ok(hold) => return Ok((choice, hold)),
            Err(why) => router
                .note_lost(why, &choice.route.host)
                .map_err(|why| untried_error(failed, &why))?,
        }
    }
}

/// Charges an attempt that failed and left nothing for what it cost, and gives the rest of its hold back.
async fn settle_attempt(op: &Op<SandboxRecord>, report: &TeardownReport) -> Result<(), Error> {
    let Some(before) = op.deps.sandboxes.get(&op.subject.id).await? else { return Ok(()) };
    if before.hold_usd.is_none() {
        return Ok(());
    }
    let ran = Ran::of(&before, report);
    let paid = before.cost_usd.unwrap_or_default();
    let settled = settle_with(op, ran, Vec::new(), |record| {
        let cost = record.cost_usd.unwrap_or_default() - paid;
        if let Some(last) = record.attempts.last_mut() {
            last.cost_usd = Some(cost);
        }
    });
    settled.await?;
    failpoint::reached("fallback.settled");
    Ok(())
}

/// Moves a record to another place: what it says of the one before is of no use any more.
fn move_to(record: &mut SandboxRecord, route: Route) {
    record.host = route.host.clone();
    record.route = Some(route);
    record.host_identity = None;
    record.workdir = None;
    record.handle = None;
    record.reachability = None;
    record.services.clear();
    record.rewrites.clear();
    record.telemetry = None;
    record.certificate = None;
}

fn fallback_remark(failed: &Establishment, error: &Error) -> String {
    let provision = &failed.provision;
    format!(
        "{} on {} was tried first and failed, and nothing of it is left: {}",
        provision.profile.extension, provision.host, error.message
    )
}

/// Error of a create that was tried, where no other candidate could be: the failure, and why.
fn untried_error(failed: &Error, why: &Error) -> Error {
    let mut error = failed.clone();
    error.causes.push(format!("no other candidate was tried: {}", why.sentence()));
    error
}

/// Error of a create that was tried, and that no other candidate can take: the failure, and the verdict on each candidate.
fn exhausted_error(failed: &Error, candidates: &[CandidateVerdict]) -> Error {
    let mut error = failed.clone();
    error.causes.extend(candidates.iter().map(CandidateVerdict::sentence));
    error.detail("candidates", serde_json::to_value(candidates).unwrap_or_default())
}
