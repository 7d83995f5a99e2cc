//! Destroy (semantics 1 and 3).

use std::time::Duration;

use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::domain::event::EventKind;
use crate::domain::extension::{Report, Reporter, Target, TeardownReport};
use crate::domain::fault::{Code, Fault};
use crate::domain::host_sight::HostSight;
use crate::domain::name::SandboxId;
use crate::domain::operation::{CancelOutcome, Operation, OperationKind};
use crate::domain::request::{DestroyRequest, Started};
use crate::domain::sandbox::{Reason, SandboxRecord, State};
use crate::failpoint;
use crate::manager::SandboxManager;
use crate::manager::record::{Guard, JobReporter, running};
use crate::store::Held;

/// How long a destroy waits for another operation to roll back.
const LOCK_WAIT: Duration = Duration::from_secs(30);

/// How often it looks.
const LOCK_LOOK: Duration = Duration::from_millis(200);

/// Pauses between tries to reach the host; then the record waits for the host to be back.
const TRIES: [Duration; 3] = [Duration::ZERO, Duration::from_millis(500), Duration::from_secs(2)];

/// The detail of a failed removal's fault that says that nothing was removed.
pub(super) const UNTOUCHED: &str = "untouched";

impl SandboxManager {
    /// Starts a removal and returns at once. One that is destroyed already is nothing to do.
    pub async fn destroy(&self, request: &DestroyRequest) -> Result<Started, Fault> {
        let record = self.exactly(&request.id, request.revision).await?;
        if record.state == State::Destroyed || request.forget && record.state == State::Forgotten {
            return Ok(Started { operation: None, sandbox: record });
        }
        check_protection(&record, request.force_protected)?;
        let (forget, forced) = (request.forget, request.force_protected);
        if !forget {
            self.ensure_own().await?;
        }
        let operation = self.new_operation(OperationKind::Destroy, &record.id);
        self.parts.operations.put(operation.clone()).await?;
        let manager = self.clone();
        let fallback = (self.clone(), operation.clone());
        let (id, sandbox) = (operation.id.clone(), record.id.clone());
        let body = operation.clone();
        self.jobs.start(
            &id,
            move |cancel| async move {
                let result = if forget {
                    manager.give_up(&body, &sandbox, &cancel).await
                } else {
                    manager.remove(&body, &sandbox, forced, &cancel).await
                };
                manager.end_operation(body, result).await
            },
            move |fault| async move { fallback.0.abandon(fallback.1, fault).await },
        );
        Ok(Started { operation: Some(operation.id), sandbox: record })
    }

    async fn remove(
        &self,
        operation: &Operation,
        id: &SandboxId,
        forced: bool,
        cancel: &CancellationToken,
    ) -> Result<(), Fault> {
        let held = self.take_over(id, operation, false, cancel).await?;
        let before = self.get(id.as_str()).await?;
        if before.state == State::Destroyed {
            return Ok(());
        }
        // Somebody may have protected it while the lock was waited for.
        check_protection(&before, forced)?;
        self.remove_held(operation, &before, Reason::User, cancel).await?;
        drop(held);
        self.collect_tombstones(&before.host).await;
        Ok(())
    }

    /// Removes a sandbox whose lock is held. A forgotten one stays forgotten until nothing of it is left.
    pub(super) async fn remove_held(
        &self,
        operation: &Operation,
        before: &SandboxRecord,
        reason: Reason,
        cancel: &CancellationToken,
    ) -> Result<(), Fault> {
        let id = &before.id;
        let reporter = JobReporter::new(&self.jobs, operation);
        let mark = running(operation);
        let forgotten = before.state == State::Forgotten;
        let data = serde_json::json!({"host": before.host, "was": before.state, "reason": reason});
        let news = if forgotten { Vec::new() } else { vec![(EventKind::SandboxDestroying, data)] };
        let record = self
            .transition(id, Guard::Any, news, move |record| {
                if !forgotten {
                    record.state = State::Destroying;
                    record.reason = Some(reason);
                    record.message = None;
                }
                record.operation = Some(mark);
            })
            .await?;
        self.end_followed(before).await;
        failpoint::reached("destroy.destroying");
        let known = rolled_back_clean(before);
        let outcome = if known {
            Ok(TeardownReport { lines: before.teardown.clone(), leftovers: Vec::new() })
        } else {
            tokio::select! {
                biased;
                () = cancel.cancelled() => Err(cut_off(id)),
                outcome = self.tear_down_checked(&record, &reporter) => outcome,
                () = self.cancel_requested(id) => Err(cut_off(id)),
            }
        };
        failpoint::reached("destroy.torn_down");
        let answered = !known && outcome.is_ok();
        let removed = self.write_removed(operation, &record, outcome).await;
        if answered {
            self.saw_host(&record.host, HostSight::Answers(None), None).await;
        }
        removed
    }

    async fn write_removed(
        &self,
        operation: &Operation,
        record: &SandboxRecord,
        outcome: Result<TeardownReport, Fault>,
    ) -> Result<(), Fault> {
        let id = &record.id;
        let mine = Guard::Operation(operation.id.clone());
        let now = self.now();
        match outcome {
            Ok(report) if report.is_clean() => {
                self.parts.ledger.charge(id, None).await?;
                let news = vec![(EventKind::SandboxDestroyed, serde_json::json!({"host": record.host}))];
                self.transition(id, mine, news, move |record| {
                    record.state = State::Destroyed;
                    record.message = None;
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
                let fault = not_clean(id, &report);
                let message = fault.message.clone();
                self.transition(id, mine, Vec::new(), move |record| {
                    record.message = Some(message);
                    record.operation = None;
                    note_teardown(record, Some(report));
                })
                .await?;
                Err(fault)
            }
            Err(fault) => {
                let lost = fault.code == Code::HostUnreachable;
                let message =
                    std::iter::once(fault.message.clone()).chain(fault.causes()).collect::<Vec<_>>().join(": ");
                self.transition(id, mine, Vec::new(), move |record| {
                    record.message = Some(message);
                    record.operation = None;
                    if lost && record.state == State::Destroying {
                        record.reason = Some(Reason::HostLost);
                    }
                })
                .await?;
                self.saw_fault_of(&record.host, &fault).await;
                Err(if fault.hint.is_some() {
                    fault
                } else {
                    fault.hint(format!(
                        "it stays `{}`; `sandboxer destroy` again when the host is back, or `destroy --forget`",
                        record.state
                    ))
                })
            }
        }
    }

    /// Removes all of it, trying again a few times when the host does not answer.
    pub(super) async fn tear_down(
        &self,
        record: &SandboxRecord,
        reporter: &JobReporter,
    ) -> Result<TeardownReport, Fault> {
        self.tear_down_target(record, self.target_as_known(record).await?, reporter).await
    }

    /// As [`Self::tear_down`], but not on a host that has seen a later state of this data directory.
    pub(super) async fn tear_down_checked(
        &self,
        record: &SandboxRecord,
        reporter: &JobReporter,
    ) -> Result<TeardownReport, Fault> {
        let mut target = self.target_as_known(record).await?;
        target.stamp = Some(self.parts.installation.stamp().await?);
        match self.tear_down_target(record, target.clone(), reporter).await {
            Err(fault) if fault.details["kind"] == "behind" => {
                let counter = fault.details["counter"].as_u64().unwrap_or(u64::MAX);
                self.parts.installation.seen_on(&record.host, counter).await?;
                self.ensure_own().await?;
                // Another process of ours told the host a moment ago.
                target.stamp = Some(self.parts.installation.stamp().await?);
                self.tear_down_target(record, target, reporter).await
            }
            outcome => outcome,
        }
    }

    async fn tear_down_target(
        &self,
        record: &SandboxRecord,
        target: Target,
        reporter: &JobReporter,
    ) -> Result<TeardownReport, Fault> {
        let extension = self.extension(&record.extension)?;
        let (mut last, mut touched) = (None, false);
        let told = |fault: Fault, touched: bool| if touched { fault } else { fault.detail(UNTOUCHED, true) };
        for pause in TRIES {
            tokio::time::sleep(pause).await;
            match extension.teardown(&target, reporter).await {
                Ok(report) => return Ok(report),
                Err(error) if error.fault.code == Code::HostUnreachable && error.fault.retryable => {
                    touched |= !error.untouched;
                    reporter.report(Report {
                        stage: "teardown",
                        message: Some(format!("{}; trying again", error.fault)),
                        ..Report::default()
                    });
                    last = Some(error.fault);
                }
                Err(error) => return Err(told(error.fault, touched || !error.untouched)),
            }
        }
        Err(told(last.unwrap_or_else(|| Fault::internal("no teardown was tried")), touched))
    }

    /// The sandbox's lock: at once, or after whoever holds it was cancelled; unless somebody cancels the removal before it has
    /// begun.
    pub(super) async fn take_over(
        &self,
        id: &SandboxId,
        operation: &Operation,
        forget: bool,
        cancel: &CancellationToken,
    ) -> Result<Box<dyn Held>, Fault> {
        if cancel.is_cancelled() {
            return Err(not_begun(id, None));
        }
        if let Some(held) = self.parts.locks.try_lock(id).await? {
            return Ok(held);
        }
        let before = self.get(id.as_str()).await?;
        let kind = before.operation.as_ref().map(|running| running.kind.clone());
        // Somebody removes it already: that is what is wanted. Only a `forget` does not wait for a host.
        let removing = matches!(kind, Some(OperationKind::Destroy | OperationKind::Recover)) && !forget;
        if !removing {
            self.request_cancel(id, None).await?;
        }
        let what = kind.map_or("another operation".to_owned(), |kind| kind.to_string());
        let doing = if removing { format!("{what} removes it already") } else { format!("asked {what} to end") };
        let reporter = JobReporter::new(&self.jobs, operation);
        reporter.report(Report { stage: "wait", message: Some(doing), ..Report::default() });
        let until = Instant::now() + LOCK_WAIT;
        while Instant::now() < until {
            if let Some(held) = self.parts.locks.try_lock(id).await? {
                return Ok(held);
            }
            let written = self.parts.operations.get(&operation.id).await?;
            if cancel.is_cancelled() || written.is_some_and(|written| written.cancel_requested) {
                return Err(not_begun(id, (!removing).then_some(&what)));
            }
            tokio::time::sleep(LOCK_LOOK).await;
        }
        Err(self.busy(id).await)
    }

    pub(super) async fn exactly(&self, id: &str, revision: Option<u64>) -> Result<SandboxRecord, Fault> {
        let record = self.get(id).await?;
        if record.id.as_str() != id {
            return Err(Fault::new(Code::NotFound, format!("there is no sandbox with the id {id}")));
        }
        match revision {
            Some(seen) if seen != record.revision => {
                Err(Fault::new(Code::Conflict, format!("sandbox {id} changed since it was looked at"))
                    .hint("look again, then decide")
                    .detail("expected", seen)
                    .detail("current", serde_json::to_value(&record).unwrap_or_default()))
            }
            _ => Ok(record),
        }
    }
}

/// A removal that was cancelled before it began; `asked`: whose end it had asked for by then.
fn not_begun(id: &SandboxId, asked: Option<&String>) -> Fault {
    match asked {
        None => CancelOutcome::Undone.fault(format!("sandbox {id}: nothing was removed")),
        Some(what) => CancelOutcome::Stopped
            .fault(format!("sandbox {id}: nothing was removed, but {what} was asked to end before that"))
            .hint(format!("`sandboxer get {id}` shows what became of it")),
    }
}

/// A removal that was cancelled: what is removed stays removed, and the record says that it is not over.
fn cut_off(id: &SandboxId) -> Fault {
    CancelOutcome::Stopped
        .fault(format!("the removal of sandbox {id} was cut off; it stays `destroying`"))
        .hint(format!("`sandboxer destroy {id}` finishes it"))
}

pub(super) fn check_protection(record: &SandboxRecord, forced: bool) -> Result<(), Fault> {
    if record.is_protected() && !forced {
        return Err(Fault::new(Code::Conflict, format!("sandbox {} is labelled protect=true", record.id))
            .hint("--force-protected does it all the same"));
    }
    Ok(())
}

pub(super) fn note_teardown(record: &mut SandboxRecord, report: Option<TeardownReport>) {
    if let Some(report) = report {
        record.teardown = report.lines;
        record.leftovers = report.leftovers;
    }
}

/// Whether a failed establishment's rollback looked at the host and found nothing left.
fn rolled_back_clean(record: &SandboxRecord) -> bool {
    record.state == State::Failed && !record.kept_failed && record.leftovers.is_empty() && !record.teardown.is_empty()
}

pub(super) fn not_clean(id: &SandboxId, report: &TeardownReport) -> Fault {
    let left: Vec<String> = report.leftovers.iter().map(|r| format!("{} {}", r.kind, r.id)).collect();
    let why: Vec<String> = report.lines.iter().filter_map(|line| line.reason.clone()).collect();
    let message = format!("sandbox {id}: not everything could be removed: {}", left.join(", "));
    let fault = Fault::new(Code::OperationFailed, message).detail("leftovers", left);
    if why.is_empty() { fault } else { fault.because(why.join("; ")) }
}
