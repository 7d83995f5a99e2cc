//! Removal of a sandbox whose lock is taken (semantics 3): what it was is put back where its host refuses to begin.

use std::future::Future;
use std::pin::pin;
use std::time::Duration;

use tokio::time::Instant;

use crate::domain::error::{Code, Error, Kind};
use crate::domain::event::EventKind;
use crate::domain::host_sight::HostSight;
use crate::domain::name::SandboxId;
use crate::domain::operation::{CancelOutcome, OperationKind};
use crate::domain::reporter::{Report, Reporter};
use crate::domain::sandbox::{Reason, SandboxRecord, State};
use crate::domain::settlement::After;
use crate::domain::teardown::TeardownReport;
use crate::failpoint;
use crate::manager::credits::charge::settlement_of;
use crate::manager::hosts::status::{report_host_error, report_host_status};
use crate::manager::journal::Guard;
use crate::manager::operation::Op;
use crate::manager::operation::cancel::request_cancel;
use crate::manager::operation::dead::end_predecessor;
use crate::manager::operation::locks::sandbox_busy_error;
use crate::manager::operation::subject::OperationRecord as _;
use crate::manager::sandboxes::find::find_sandbox;
use crate::manager::sandboxes::teardown::{leftovers_error, note_teardown, tear_down_checked};
use crate::manager::snapshots::undo_snapshot::{UndoPolicy, is_taken_for_removal, take_undo};
use crate::store::Held;

/// Time that a destroy waits for another operation to roll back.
const LOCK_LIMIT: Duration = Duration::from_secs(30);

/// Pause between two tries to lock.
const LOCK_POLL: Duration = Duration::from_millis(200);

/// The sandbox's lock: at once, or after whoever holds it was cancelled; unless somebody cancels the removal before it has
/// begun.
pub(crate) async fn take_over_lock(
    op: &Op<SandboxRecord>,
    forget: bool,
) -> Result<Box<dyn Held>, Error> {
    let (deps, id) = (&op.deps, &op.subject.id);
    if op.is_cancelled() {
        return Err(not_begun(id, None));
    }
    if let Some(lock) = deps.locks.try_lock(id).await? {
        return Ok(lock);
    }
    let before = find_sandbox(deps, id.as_str()).await?;
    let kind = before.operation.as_ref().map(|running| running.kind.clone());
    // Somebody removes it already: that is what is wanted. Only a `forget` does not wait for a host.
    let removing = match &before.operation {
        Some(running) if !forget => {
            matches!(running.kind, OperationKind::Destroy | OperationKind::Recover)
                || is_taken_for_removal(deps, running).await
        }
        _ => false,
    };
    if !removing {
        request_cancel(deps, id, None).await?;
    }
    let what = kind.map_or("another operation".to_owned(), |kind| kind.to_string());
    let doing = if removing {
        format!("{what} removes it already")
    } else {
        format!("asked {what} to end")
    };
    op.progress.report(Report { stage: "wait", message: Some(doing), ..Report::default() });
    let until = Instant::now() + LOCK_LIMIT;
    while Instant::now() < until {
        if let Some(lock) = deps.locks.try_lock(id).await? {
            return Ok(lock);
        }
        if op.is_cancelled() || op.is_cancel_written().await? {
            return Err(not_begun(id, (!removing).then_some(&what)));
        }
        tokio::time::sleep(LOCK_POLL).await;
    }
    Err(sandbox_busy_error(deps, id).await)
}

/// Removal of a sandbox: why, and what its record says besides.
struct Removal {
    reason: Reason,
    note: Option<String>,
}

/// Removes a sandbox whose lock is held, without an undo snapshot: what was being removed, or was never ready. A forgotten one
/// stays forgotten until nothing of it is left.
///
/// The operation is written down first, which is what `recover` goes by. The record is `destroying` as soon as its host
/// begins to remove; where that refuses to, the record is what it was.
pub(crate) async fn destroy_locked(
    op: &Op<SandboxRecord>,
    before: &SandboxRecord,
    reason: Reason,
) -> Result<(), Error> {
    let attached = attach_removal(op, before, Guard::Any, |_| Ok(())).await?;
    remove_attached(op, before, &attached, Removal { reason, note: None }).await
}

/// [`destroy_locked`] behind an undo snapshot, for somebody who is there: unless the record is one by then that `allowed`
/// refuses to remove.
pub(crate) async fn destroy_keeping_undo(
    op: &Op<SandboxRecord>,
    before: &SandboxRecord,
    undo: UndoPolicy,
    allowed: impl Fn(&SandboxRecord) -> Result<(), Error> + Send + Sync,
) -> Result<(), Error> {
    let taken = take_undo(op, before, undo).await?;
    let removed = async {
        allowed(&taken.record)?;
        let attached = attach_removal(op, before, Guard::Any, &allowed).await?;
        let removal = Removal { reason: Reason::User, note: taken.note.clone() };
        remove_attached(op, before, &attached, removal).await
    };
    let removed = Box::pin(removed).await;
    taken.ended(&op.deps, before, removed).await
}

/// [`destroy_locked`] behind an undo snapshot, unless the record is another than was judged: labels and deadline change without
/// the lock. An undo snapshot that fails stops nothing.
///
/// Errors: one of the kind `Stale` for another record, and nothing was done.
pub(crate) async fn destroy_unchanged(
    op: &Op<SandboxRecord>,
    before: &SandboxRecord,
    reason: Reason,
    undo: UndoPolicy,
) -> Result<(), Error> {
    let taken = take_undo(op, before, undo).await?;
    let removed = async {
        refuse_changed(before, &taken.record)?;
        let guard = Guard::Revision(Some(taken.record.revision));
        let attached = attach_removal(op, before, guard, |_| Ok(())).await;
        let attached = attached.map_err(|error| match error.code {
            Code::Conflict => error.of_kind(Kind::Stale),
            _ => error,
        })?;
        let removal = Removal { reason, note: taken.note.clone() };
        remove_attached(op, before, &attached, removal).await
    };
    let removed = Box::pin(removed).await;
    taken.ended(&op.deps, before, removed).await
}

/// Refuses a sandbox that somebody changed while its undo snapshot was taken: protected it, say, or gave it more time.
fn refuse_changed(before: &SandboxRecord, now: &SandboxRecord) -> Result<(), Error> {
    let judged = |record: &SandboxRecord| {
        (record.state.clone(), record.labels.clone(), record.name.clone(), record.expires_at)
    };
    if judged(before) == judged(now) {
        return Ok(());
    }
    let message = format!("somebody changed sandbox {} while its undo snapshot was taken", now.id);
    Err(Error::new(Code::Conflict, message).of_kind(Kind::Stale).hint("look again, then decide"))
}

/// Puts the removal on the record, if that may be removed as it is now. Nobody protects it from then on.
async fn attach_removal(
    op: &Op<SandboxRecord>,
    before: &SandboxRecord,
    guard: Guard,
    allowed: impl Fn(&SandboxRecord) -> Result<(), Error> + Send + Sync,
) -> Result<SandboxRecord, Error> {
    let running = op.running();
    SandboxRecord::write(&op.deps, &before.id, guard, Vec::new(), |record| {
        allowed(record)?;
        record.operation = Some(running);
        Ok(())
    })
    .await
}

async fn remove_attached(
    op: &Op<SandboxRecord>,
    before: &SandboxRecord,
    attached: &SandboxRecord,
    removal: Removal,
) -> Result<(), Error> {
    let deps = &op.deps;
    let known = before.state == State::Failed && before.left_nothing();
    let outcome = if known {
        note_removal(op, before, &removal).await?;
        Ok(TeardownReport {
            lines: before.teardown.clone(),
            leftovers: Vec::new(),
            untouched: false,
        })
    } else {
        let begun = || note_removal(op, before, &removal);
        tear_down_noting(op, attached, begun).await
    };
    failpoint::reached("destroy.torn_down");
    match outcome {
        Err(error) if error.is_refusal() => Err(put_back(op, before, error).await?),
        outcome => {
            end_predecessor(deps, before.operation.as_ref()).await;
            let answered = !known && outcome.is_ok();
            let removed = write_removed(op, before, outcome, removal.note).await;
            if answered {
                report_host_status(deps, &before.host, HostSight::Answers(None), None).await;
            }
            removed
        }
    }
}

/// Writes down that a host removes a sandbox. Of a forgotten one that is said already.
async fn note_removal(
    op: &Op<SandboxRecord>,
    before: &SandboxRecord,
    removal: &Removal,
) -> Result<(), Error> {
    if before.state == State::Forgotten {
        return Ok(());
    }
    let Removal { reason, note } = removal;
    let data = serde_json::json!({"host": before.host, "was": before.state, "reason": reason});
    op.update(vec![(EventKind::SandboxDestroying, data)], move |record| {
        record.state = State::Destroying;
        record.reason = Some(reason.clone());
        record.message.clone_from(note);
    })
    .await?;
    failpoint::reached("destroy.destroying");
    Ok(())
}

/// Tears down, unless that is cancelled: one that has not begun is refused then. That it began is written down (`begun`) beside it, as soon as the host removes the
/// first thing, and in any case but a refusal's.
pub(crate) async fn tear_down_noting<Written: Future<Output = Result<(), Error>>>(
    op: &Op<SandboxRecord>,
    record: &SandboxRecord,
    begun: impl Fn() -> Written,
) -> Result<TeardownReport, Error> {
    let id = &record.id;
    let removal = tear_down_checked(&op.deps, record, &op.progress);
    let cancelled = || {
        if op.progress.has_removal_begun() { cut_off(id) } else { not_begun(id, None).untouched() }
    };
    let mut removal = pin!(op.or_cancelled_with(cancelled, removal));
    let ended = tokio::select! {
        biased;
        outcome = &mut removal => Some(outcome),
        () = op.progress.removal_began() => None,
    };
    // The host is at it: what cannot be written now is tried again behind it.
    let mut written = ended.is_none() && begun().await.is_ok();
    let outcome = match ended {
        Some(outcome) => outcome,
        None => removal.await,
    };
    written |= matches!(&outcome, Err(error) if error.is_refusal());
    if !written && let Err(error) = begun().await {
        tracing::warn!(sandbox = %id, %error, "the beginning of a removal could not be written");
    }
    outcome
}

/// A removal that was refused, and why: the record is what it was, with whatever a dead operation left on it.
async fn put_back(
    op: &Op<SandboxRecord>,
    before: &SandboxRecord,
    error: Error,
) -> Result<Error, Error> {
    let was = before.operation.clone();
    op.update(Vec::new(), move |record| record.operation = was).await?;
    report_host_error(&op.deps, &before.host, &error).await;
    Ok(error)
}

async fn write_removed(
    op: &Op<SandboxRecord>,
    before: &SandboxRecord,
    outcome: Result<TeardownReport, Error>,
    note: Option<String>,
) -> Result<(), Error> {
    let deps = &op.deps;
    let id = &before.id;
    let now = deps.now();
    match outcome {
        Ok(report) if report.is_clean() => {
            let events =
                vec![(EventKind::SandboxDestroyed, serde_json::json!({"host": before.host}))];
            let settlement = settlement_of(op, &report, After::Over).await;
            op.update(events, move |record| {
                if let Some(settlement) = settlement {
                    settlement.write_on(record);
                }
                record.state = State::Destroyed;
                record.message = note;
                record.observed_at = Some(now);
                record.operation = None;
                record.reachability = None;
                record.services.clear();
                note_teardown(record, Some(report));
            })
            .await?;
            failpoint::reached("destroy.destroyed");
            Ok(())
        }
        Ok(report) => {
            let error = leftovers_error(id, &report);
            let message = error.message.clone();
            op.update(Vec::new(), move |record| {
                record.message = Some(message);
                record.operation = None;
                note_teardown(record, Some(report));
            })
            .await?;
            Err(error)
        }
        Err(error) => {
            let lost = error.code == Code::HostUnreachable;
            let message = error.sentence();
            let record = op
                .update(Vec::new(), move |record| {
                    record.message = Some(message);
                    record.operation = None;
                    if lost && record.state == State::Destroying {
                        record.reason = Some(Reason::HostLost);
                    }
                })
                .await?;
            report_host_error(deps, &record.host, &error).await;
            Err(hint_at_retry(&record, error))
        }
    }
}

/// A removal that was cancelled before it began; `asked`: whose end it had asked for by then.
fn not_begun(id: &SandboxId, asked: Option<&String>) -> Error {
    match asked {
        None => CancelOutcome::Undone.error(format!("sandbox {id}: nothing was removed")),
        Some(what) => CancelOutcome::Stopped
            .error(format!(
                "sandbox {id}: nothing was removed, but {what} was asked to end before that"
            ))
            .hint(format!("`sandboxer get {id}` shows what became of it")),
    }
}

/// A removal that was cancelled: what is removed stays removed.
fn cut_off(id: &SandboxId) -> Error {
    CancelOutcome::Stopped.error(format!("the removal of sandbox {id} was cut off"))
}

/// Error of a removal that is not over, with what ends it.
fn hint_at_retry(record: &SandboxRecord, error: Error) -> Error {
    let (id, state) = (&record.id, &record.state);
    match error.code {
        _ if error.hint.is_some() => error,
        Code::Cancelled => error.hint(format!("it stays `{state}`; `sandboxer destroy {id}` finishes it")),
        _ => error.hint(format!(
            "it stays `{state}`; `sandboxer destroy` again when the host is back, or `destroy --forget`"
        )),
    }
}
