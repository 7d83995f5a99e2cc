//! Destroy (semantics 1 and 3).

use std::pin::pin;
use std::time::Duration;

use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::domain::error::{Code, Error, Kind};
use crate::domain::event::EventKind;
use crate::domain::extension::{ExtensionError, Report, Reporter, Target, TeardownReport};
use crate::domain::host_sight::HostSight;
use crate::domain::name::SandboxId;
use crate::domain::operation::{CancelOutcome, Operation, OperationKind};
use crate::domain::request::{DestroyRequest, Started};
use crate::domain::sandbox::{Reason, SandboxRecord, State};
use crate::failpoint;
use crate::manager::SandboxManager;
use crate::manager::record::{Guard, running};
use crate::manager::reporter::JobReporter;
use crate::store::{Held, ending};

/// How long a destroy waits for another operation to roll back.
const LOCK_WAIT: Duration = Duration::from_secs(30);

/// How often it looks.
const LOCK_LOOK: Duration = Duration::from_millis(200);

/// Pauses between tries to reach the host; then the record waits for the host to be back.
const TRIES: [Duration; 3] = [Duration::ZERO, Duration::from_millis(500), Duration::from_secs(2)];

impl SandboxManager {
    /// Starts a removal and returns at once. One that is destroyed already is nothing to do.
    pub async fn destroy(&self, request: &DestroyRequest) -> Result<Started, Error> {
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
        ending(self.parts.operations.put(operation.clone())).await?;
        let manager = self.clone();
        let fallback = (self.clone(), operation.clone());
        let (id, sandbox) = (operation.id.clone(), record.id.clone());
        let body = operation.clone();
        self.jobs.start(
            &id,
            move |cancel| async move {
                let result = if forget {
                    ending(manager.give_up(&body, &sandbox, &cancel)).await
                } else {
                    ending(manager.remove(&body, &sandbox, forced, &cancel)).await
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
    ) -> Result<(), Error> {
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
    ///
    /// The operation is written down first, which is what `recover` goes by. The record is `destroying` as soon as its host
    /// begins to remove; where that refuses to, the record is what it was.
    pub(super) async fn remove_held(
        &self,
        operation: &Operation,
        before: &SandboxRecord,
        reason: Reason,
        cancel: &CancellationToken,
    ) -> Result<(), Error> {
        let mark = running(operation);
        let marked = self
            .transition(&before.id, Guard::Any, Vec::new(), |record| record.operation = Some(mark))
            .await?;
        let known = before.state == State::Failed && before.left_nothing();
        let outcome = if known {
            self.note_removal(operation, before, &reason).await?;
            Ok(TeardownReport {
                lines: before.teardown.clone(),
                leftovers: Vec::new(),
                untouched: false,
            })
        } else {
            let reporter = JobReporter::new(&self.jobs, operation);
            let begun = || self.note_removal(operation, before, &reason);
            self.tear_down_noting(&marked, &reporter, cancel, begun).await
        };
        failpoint::reached("destroy.torn_down");
        match outcome {
            Err(error) if error.is_refusal() => {
                Err(self.put_back(operation, before, error.fault).await?)
            }
            outcome => {
                self.end_followed(before).await;
                let answered = !known && outcome.is_ok();
                let removed = self
                    .write_removed(operation, before, outcome.map_err(|error| error.fault))
                    .await;
                if answered {
                    self.saw_host(&before.host, HostSight::Answers(None), None).await;
                }
                removed
            }
        }
    }

    /// Writes down that a host removes a sandbox. Of a forgotten one that is said already.
    async fn note_removal(
        &self,
        operation: &Operation,
        before: &SandboxRecord,
        reason: &Reason,
    ) -> Result<(), Error> {
        if before.state == State::Forgotten {
            return Ok(());
        }
        let data = serde_json::json!({"host": before.host, "was": before.state, "reason": reason});
        let (mine, news) =
            (Guard::Operation(operation.id.clone()), vec![(EventKind::SandboxDestroying, data)]);
        self.transition(&before.id, mine, news, move |record| {
            record.state = State::Destroying;
            record.reason = Some(reason.clone());
            record.message = None;
        })
        .await?;
        failpoint::reached("destroy.destroying");
        Ok(())
    }

    /// Tears down, unless that is cancelled. That it began is written down (`begun`) beside it, as soon as the host removes the
    /// first thing, and in any case but a refusal's.
    pub(super) async fn tear_down_noting<Written: Future<Output = Result<(), Error>>>(
        &self,
        record: &SandboxRecord,
        reporter: &JobReporter,
        cancel: &CancellationToken,
        begun: impl Fn() -> Written,
    ) -> Result<TeardownReport, ExtensionError> {
        let id = &record.id;
        let removal = async {
            tokio::select! {
                biased;
                () = cancel.cancelled() => Err(cut_off(id).into()),
                outcome = self.tear_down_checked(record, reporter) => outcome,
                () = self.cancel_requested(id) => Err(cut_off(id).into()),
            }
        };
        let mut removal = pin!(removal);
        let ended = tokio::select! {
            biased;
            outcome = &mut removal => Some(outcome),
            () = reporter.begun() => None,
        };
        // The host is at it: what cannot be written now is tried again behind it.
        let mut written = ended.is_none() && begun().await.is_ok();
        let outcome = match ended {
            Some(outcome) => outcome,
            None => removal.await,
        };
        written |= matches!(&outcome, Err(error) if error.is_refusal());
        if !written && let Err(fault) = begun().await {
            tracing::warn!(sandbox = %id, %fault, "the beginning of a removal could not be written");
        }
        outcome
    }

    /// A removal that was refused, and why: the record is what it was, with whatever a dead operation left on it.
    async fn put_back(
        &self,
        operation: &Operation,
        before: &SandboxRecord,
        fault: Error,
    ) -> Result<Error, Error> {
        let (mine, was) = (Guard::Operation(operation.id.clone()), before.operation.clone());
        self.transition(&before.id, mine, Vec::new(), move |record| record.operation = was).await?;
        self.saw_fault_of(&before.host, &fault).await;
        Ok(fault)
    }

    async fn write_removed(
        &self,
        operation: &Operation,
        before: &SandboxRecord,
        outcome: Result<TeardownReport, Error>,
    ) -> Result<(), Error> {
        let id = &before.id;
        let mine = Guard::Operation(operation.id.clone());
        let now = self.now();
        match outcome {
            Ok(report) if report.is_clean() => {
                self.parts.ledger.charge(id, None).await?;
                let news =
                    vec![(EventKind::SandboxDestroyed, serde_json::json!({"host": before.host}))];
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
                let message = std::iter::once(fault.message.clone())
                    .chain(fault.causes.clone())
                    .collect::<Vec<_>>()
                    .join(": ");
                let record = self
                    .transition(id, mine, Vec::new(), move |record| {
                        record.message = Some(message);
                        record.operation = None;
                        if lost && record.state == State::Destroying {
                            record.reason = Some(Reason::HostLost);
                        }
                    })
                    .await?;
                self.saw_fault_of(&record.host, &fault).await;
                Err(stays(&record, fault))
            }
        }
    }

    /// Removes all of it, trying again a few times when the host does not answer.
    ///
    /// Errors: why it could not be removed, and whether it is certain that nothing was.
    pub(super) async fn tear_down(
        &self,
        record: &SandboxRecord,
        reporter: &JobReporter,
    ) -> Result<TeardownReport, ExtensionError> {
        let target = self.target_as_known(record).await.map_err(before_anything)?;
        self.tear_down_target(record, target, reporter).await
    }

    /// As [`Self::tear_down`], but not on a host that has seen a later state of this data directory.
    pub(super) async fn tear_down_checked(
        &self,
        record: &SandboxRecord,
        reporter: &JobReporter,
    ) -> Result<TeardownReport, ExtensionError> {
        let mut target = self.target_as_known(record).await.map_err(before_anything)?;
        target.stamp = Some(self.parts.installation.stamp().await.map_err(before_anything)?);
        match self.tear_down_target(record, target.clone(), reporter).await {
            Err(ExtensionError { fault, .. }) if fault.details["kind"] == "behind" => {
                let counter = fault.details["counter"].as_u64().unwrap_or(u64::MAX);
                self.parts
                    .installation
                    .seen_on(&record.host, counter)
                    .await
                    .map_err(before_anything)?;
                self.ensure_own().await.map_err(before_anything)?;
                // Another process of ours told the host a moment ago.
                target.stamp =
                    Some(self.parts.installation.stamp().await.map_err(before_anything)?);
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
    ) -> Result<TeardownReport, ExtensionError> {
        let extension = self.extension(&record.extension).map_err(before_anything)?;
        let (mut last, mut touched) = (None, false);
        for pause in TRIES {
            tokio::time::sleep(pause).await;
            match self
                .learning_roots(&target.host, reporter, extension.teardown(&target, reporter))
                .await
            {
                Ok(report) => return Ok(report),
                Err(error) => {
                    touched |= !error.untouched;
                    let error = ExtensionError { untouched: !touched, ..error };
                    if error.fault.code != Code::HostUnreachable || !error.fault.retryable {
                        return Err(error);
                    }
                    reporter.report(Report {
                        stage: "teardown",
                        message: Some(format!("{}; trying again", error.fault)),
                        ..Report::default()
                    });
                    last = Some(error);
                }
            }
        }
        Err(last.unwrap_or_else(|| Error::internal("no teardown was tried").into()))
    }

    /// The sandbox's lock: at once, or after whoever holds it was cancelled; unless somebody cancels the removal before it has
    /// begun.
    pub(super) async fn take_over(
        &self,
        id: &SandboxId,
        operation: &Operation,
        forget: bool,
        cancel: &CancellationToken,
    ) -> Result<Box<dyn Held>, Error> {
        if cancel.is_cancelled() {
            return Err(not_begun(id, None));
        }
        if let Some(held) = self.parts.locks.try_lock(id).await? {
            return Ok(held);
        }
        let before = self.get(id.as_str()).await?;
        let kind = before.operation.as_ref().map(|running| running.kind.clone());
        // Somebody removes it already: that is what is wanted. Only a `forget` does not wait for a host.
        let removing =
            matches!(kind, Some(OperationKind::Destroy | OperationKind::Recover)) && !forget;
        if !removing {
            self.request_cancel(id, None).await?;
        }
        let what = kind.map_or("another operation".to_owned(), |kind| kind.to_string());
        let doing = if removing {
            format!("{what} removes it already")
        } else {
            format!("asked {what} to end")
        };
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

    pub(super) async fn exactly(
        &self,
        id: &str,
        revision: Option<u64>,
    ) -> Result<SandboxRecord, Error> {
        let record = self.get(id).await?;
        if record.id.as_str() != id {
            return Err(Error::new(
                Code::NotFound,
                format!("there is no sandbox with the id {id}"),
            ));
        }
        match revision {
            Some(seen) if seen != record.revision => Err(Error::new(
                Code::Conflict,
                format!("sandbox {id} changed since it was looked at; it is {} now", record.state),
            )
            .of_kind(Kind::Stale)
            .hint("look again, then decide")
            .detail("expected", seen)
            .detail("current", serde_json::to_value(&record).unwrap_or_default())),
            _ => Ok(record),
        }
    }
}

/// A removal that was cancelled before it began; `asked`: whose end it had asked for by then.
fn not_begun(id: &SandboxId, asked: Option<&String>) -> Error {
    match asked {
        None => CancelOutcome::Undone.fault(format!("sandbox {id}: nothing was removed")),
        Some(what) => CancelOutcome::Stopped
            .fault(format!(
                "sandbox {id}: nothing was removed, but {what} was asked to end before that"
            ))
            .hint(format!("`sandboxer get {id}` shows what became of it")),
    }
}

/// A removal that was cancelled: what is removed stays removed.
fn cut_off(id: &SandboxId) -> Error {
    CancelOutcome::Stopped.fault(format!("the removal of sandbox {id} was cut off"))
}

/// A fault before anything was asked of a host.
pub(super) fn before_anything(fault: Error) -> ExtensionError {
    ExtensionError { untouched: true, ..fault.into() }
}

/// Why a removal is not over, with what ends it.
fn stays(record: &SandboxRecord, fault: Error) -> Error {
    let (id, state) = (&record.id, &record.state);
    match fault.code {
        _ if fault.hint.is_some() => fault,
        Code::Cancelled => fault.hint(format!("it stays `{state}`; `sandboxer destroy {id}` finishes it")),
        _ => fault.hint(format!(
            "it stays `{state}`; `sandboxer destroy` again when the host is back, or `destroy --forget`"
        )),
    }
}

pub(super) fn check_protection(record: &SandboxRecord, forced: bool) -> Result<(), Error> {
    if record.is_protected() && !forced {
        return Err(Error::new(
            Code::Conflict,
            format!("sandbox {} is labelled protect=true", record.id),
        )
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

pub(super) fn not_clean(id: &SandboxId, report: &TeardownReport) -> Error {
    let left: Vec<String> =
        report.leftovers.iter().map(|r| format!("{} {}", r.kind, r.id)).collect();
    let why: Vec<String> = report.lines.iter().filter_map(|line| line.reason.clone()).collect();
    let message = format!("sandbox {id}: not everything could be removed: {}", left.join(", "));
    let fault = Error::new(Code::OperationFailed, message).detail("leftovers", left);
    if why.is_empty() { fault } else { fault.because(why.join("; ")) }
}
