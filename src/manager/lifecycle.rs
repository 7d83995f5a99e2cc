//! Destroy and recreate (semantics 1 and 3).

use std::time::Duration;

use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::domain::event::EventKind;
use crate::domain::extension::{ProvisionRequest, Report, Reporter, TeardownReport};
use crate::domain::fault::{Code, Fault};
use crate::domain::name::SandboxId;
use crate::domain::operation::{Operation, OperationKind};
use crate::domain::request::{DestroyRequest, RecreateRequest, Started};
use crate::domain::sandbox::{Reason, SandboxRecord, State};
use crate::failpoint;
use crate::manager::SandboxManager;
use crate::manager::establish::Establishment;
use crate::manager::record::{Guard, JobReporter, running};
use crate::store::Held;

/// How long a destroy waits for another operation to roll back.
const LOCK_WAIT: Duration = Duration::from_secs(30);

/// How often it looks.
const LOCK_LOOK: Duration = Duration::from_millis(200);

/// Pauses between tries to reach the host; then the record waits for the host to be back.
const TRIES: [Duration; 3] = [Duration::ZERO, Duration::from_millis(500), Duration::from_secs(2)];

impl SandboxManager {
    /// Starts a removal and returns at once. One that is destroyed already is nothing to do.
    pub async fn destroy(&self, request: &DestroyRequest) -> Result<Started, Fault> {
        let record = self.exactly(&request.id, request.revision).await?;
        if record.state.is_over() {
            return Ok(Started { operation: None, sandbox: record });
        }
        if request.forget {
            return Err(Fault::new(
                Code::Unsupported,
                "this version cannot forget a sandbox without looking at its host",
            ));
        }
        check_protection(&record, request.force_protected)?;
        let operation = self.new_operation(OperationKind::Destroy, &record.id);
        self.parts.operations.put(operation.clone()).await?;
        let manager = self.clone();
        let fallback = (self.clone(), operation.clone());
        let (id, sandbox) = (operation.id.clone(), record.id.clone());
        let body = operation.clone();
        self.jobs.start(
            &id,
            move |cancel| async move {
                let result = manager.remove(&body, &sandbox, &cancel).await;
                manager.end_operation(body, result).await
            },
            move |fault| async move { fallback.0.abandon(fallback.1, fault).await },
        );
        Ok(Started { operation: Some(operation.id), sandbox: record })
    }

    /// Starts a recreate and returns at once: the same id, recipe and inputs.
    pub async fn recreate(&self, request: &RecreateRequest) -> Result<Started, Fault> {
        let record = self.exactly(&request.id, request.revision).await?;
        let Some(held) = self.parts.locks.try_lock(&record.id).await? else {
            return Err(busy(&record));
        };
        if !record.state.may_be_recreated() {
            return Err(Fault::new(Code::Conflict, format!("a {} sandbox cannot be recreated", record.state))
                .hint("recreate works on ready, sleeping, failed and lost ones; destroy works on every other")
                .detail("state", record.state.as_str()));
        }
        check_protection(&record, request.force_protected)?;
        let extension = self.extension(&record.extension)?;
        let target = self.target(&record).await?;
        let draft = ProvisionRequest {
            id: record.id.clone(),
            owner: crate::domain::extension::OwnerStamp {
                owner: record.owner.clone(),
                machine_id: String::new(),
                counter: 0,
            },
            host: record.host.clone(),
            profile: target.profile.clone(),
            inputs: record.inputs.clone(),
            created_at: record.created_at,
            expires_at: None,
            allow_large: true,
        };
        // Nothing is removed for a recreate that would be refused.
        let preview = extension.preview(&draft).await.map_err(|error| error.fault)?;
        if let Some(refusal) = preview.refusals.first() {
            return Err(Fault::invalid_input(&refusal.path, format!("{}: {}", refusal.path, refusal.message)));
        }
        let operation = self.new_operation(OperationKind::Recreate, &record.id);
        self.parts.operations.put(operation.clone()).await?;
        let mark = running(&operation);
        let begun = self
            .transition(&record.id, Guard::Revision(Some(record.revision)), Vec::new(), move |record| {
                record.operation = Some(mark);
            })
            .await;
        let record = match begun {
            Ok(record) => record,
            Err(fault) => {
                let told = Fault::new(fault.code.clone(), fault.message.clone());
                self.end_operation(operation, Err(told)).await;
                return Err(fault);
            }
        };
        self.start_recreate(operation.clone(), &record, draft, held);
        Ok(Started { operation: Some(operation.id), sandbox: record })
    }

    fn start_recreate(
        &self,
        operation: Operation,
        record: &SandboxRecord,
        draft: ProvisionRequest,
        held: Box<dyn Held>,
    ) {
        let work = Establishment {
            ready_timeout: draft.profile.ready_timeout.duration(),
            ttl_s: record.ttl_s,
            keep_failed: false,
            recreate: true,
            provision: draft,
        };
        let manager = self.clone();
        let fallback = (self.clone(), operation.clone());
        let (id, sandbox) = (operation.id.clone(), record.id.clone());
        self.jobs.start(
            &id,
            move |cancel| async move {
                let result = Box::pin(manager.make_again(&operation, &sandbox, work, &cancel)).await;
                let ended = manager.end_operation(operation, result).await;
                drop(held);
                ended
            },
            move |fault| async move { fallback.0.abandon(fallback.1, fault).await },
        );
    }

    async fn make_again(
        &self,
        operation: &Operation,
        id: &SandboxId,
        work: Establishment,
        cancel: &CancellationToken,
    ) -> Result<(), Fault> {
        let mine = Guard::Operation(operation.id.clone());
        let reporter = JobReporter::new(&self.jobs, operation);
        let before = self.get(id.as_str()).await?;
        // Written first: whoever dies in the middle must not leave `ready` behind where nothing is.
        let news = vec![(EventKind::SandboxDestroying, serde_json::json!({"host": before.host, "recreate": true}))];
        let record = self
            .transition(id, mine.clone(), news, |record| {
                record.state = State::Provisioning;
                record.reason = Some(Reason::User);
            })
            .await?;
        failpoint::reached("recreate.begin");
        let report = match self.tear_down(&record, &reporter).await {
            Ok(report) => report,
            // Nobody looked, so nothing is known to have changed: the state stays what was observed.
            Err(fault) => {
                let message = fault.message.clone();
                let news = vec![(EventKind::HostDown, serde_json::json!({"host": before.host, "message": message}))];
                self.transition(id, mine, news, move |record| {
                    record.state = before.state;
                    record.reason = before.reason;
                    record.since = before.since;
                    record.operation = None;
                    record.message = Some(message);
                })
                .await?;
                return Err(fault);
            }
        };
        failpoint::reached("recreate.torn_down");
        if !report.is_clean() {
            let fault = not_clean(id, &report);
            let message = fault.message.clone();
            let data = serde_json::json!({"code": fault.code, "step": "teardown", "message": message});
            self.transition(id, mine, vec![(EventKind::SandboxFailed, data)], move |record| {
                record.state = State::Failed;
                record.reason = Some(Reason::ProvisionFailed);
                record.message = Some(message);
                record.operation = None;
                note_teardown(record, Some(report));
            })
            .await?;
            return Err(fault);
        }
        self.transition(id, mine, Vec::new(), |record| {
            record.handle = None;
            record.reachability = None;
            record.services.clear();
            record.ready_at = None;
            record.kept_failed = false;
            note_teardown(record, Some(report));
        })
        .await?;
        self.establish(operation, work, cancel).await.map(|_| ())
    }

    async fn remove(&self, operation: &Operation, id: &SandboxId, cancel: &CancellationToken) -> Result<(), Fault> {
        let _held = tokio::select! {
            biased;
            () = cancel.cancelled() => return Err(Fault::new(Code::Cancelled, format!("sandbox {id}: nothing was removed"))),
            held = self.take_over(id, operation) => held?,
        };
        let reporter = JobReporter::new(&self.jobs, operation);
        let mark = running(operation);
        let before = self.get(id.as_str()).await?;
        if before.state.is_over() {
            return Ok(());
        }
        let record = self
            .transition(
                id,
                Guard::Any,
                vec![(EventKind::SandboxDestroying, serde_json::json!({"host": before.host, "was": before.state}))],
                move |record| {
                    record.state = State::Destroying;
                    record.reason = Some(Reason::User);
                    record.message = None;
                    record.operation = Some(mark);
                },
            )
            .await?;
        failpoint::reached("destroy.destroying");
        let outcome = if rolled_back_clean(&before) {
            Ok(TeardownReport { lines: before.teardown.clone(), leftovers: Vec::new() })
        } else {
            tokio::select! {
                biased;
                () = cancel.cancelled() => Err(cut_off(id)),
                outcome = self.tear_down(&record, &reporter) => outcome,
            }
        };
        failpoint::reached("destroy.torn_down");
        self.write_removed(operation, &record, outcome).await
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
                    if lost {
                        record.reason = Some(Reason::HostLost);
                    }
                })
                .await?;
                Err(if fault.hint.is_some() {
                    fault
                } else {
                    fault.hint("it stays `destroying`; `sandboxer destroy` again when the host is back")
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
        let extension = self.extension(&record.extension)?;
        let target = self.target(record).await?;
        let mut last = None;
        for pause in TRIES {
            tokio::time::sleep(pause).await;
            match extension.teardown(&target, reporter).await {
                Ok(report) => return Ok(report),
                Err(error) if error.fault.code == Code::HostUnreachable && error.fault.retryable => {
                    reporter.report(Report {
                        stage: "teardown",
                        message: Some(format!("{}; trying again", error.fault)),
                        ..Report::default()
                    });
                    last = Some(error.fault);
                }
                Err(error) => return Err(error.fault),
            }
        }
        Err(last.unwrap_or_else(|| Fault::internal("no teardown was tried")))
    }

    /// The sandbox's lock: at once, or after whoever holds it rolled back.
    async fn take_over(&self, id: &SandboxId, operation: &Operation) -> Result<Box<dyn Held>, Fault> {
        if let Some(held) = self.parts.locks.try_lock(id).await? {
            return Ok(held);
        }
        let record = self.request_cancel(id).await?;
        let reporter = JobReporter::new(&self.jobs, operation);
        let what = record.operation.as_ref().map_or("another operation".to_owned(), |running| running.kind.to_string());
        reporter.report(Report {
            stage: "wait",
            message: Some(format!("asked {what} to roll back")),
            ..Report::default()
        });
        let until = Instant::now() + LOCK_WAIT;
        while Instant::now() < until {
            if let Some(held) = self.parts.locks.try_lock(id).await? {
                return Ok(held);
            }
            tokio::time::sleep(LOCK_LOOK).await;
        }
        Err(busy(&self.get(id.as_str()).await?))
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

/// A removal that was cancelled: what is removed stays removed, and the record says that it is not over.
fn cut_off(id: &SandboxId) -> Fault {
    Fault::new(Code::Cancelled, format!("the removal of sandbox {id} was cut off; it stays `destroying`"))
        .hint(format!("`sandboxer destroy {id}` finishes it"))
}

fn check_protection(record: &SandboxRecord, forced: bool) -> Result<(), Fault> {
    if record.is_protected() && !forced {
        return Err(Fault::new(Code::Conflict, format!("sandbox {} is labelled protect=true", record.id))
            .hint("--force-protected does it all the same"));
    }
    Ok(())
}

fn note_teardown(record: &mut SandboxRecord, report: Option<TeardownReport>) {
    if let Some(report) = report {
        record.teardown = report.lines;
        record.leftovers = report.leftovers;
    }
}

/// Whether a failed establishment's rollback looked at the host and found nothing left.
fn rolled_back_clean(record: &SandboxRecord) -> bool {
    record.state == State::Failed && !record.kept_failed && record.leftovers.is_empty() && !record.teardown.is_empty()
}

fn not_clean(id: &SandboxId, report: &TeardownReport) -> Fault {
    let left: Vec<String> = report.leftovers.iter().map(|r| format!("{} {}", r.kind, r.id)).collect();
    let why: Vec<String> = report.lines.iter().filter_map(|line| line.reason.clone()).collect();
    let message = format!("sandbox {id}: not everything could be removed: {}", left.join(", "));
    let fault = Fault::new(Code::OperationFailed, message).detail("leftovers", left);
    if why.is_empty() { fault } else { fault.because(why.join("; ")) }
}

fn busy(record: &SandboxRecord) -> Fault {
    let message = match &record.operation {
        Some(running) => format!(
            "sandbox {} is busy: {} by process {} on {} since {}",
            record.id, running.kind, running.pid, running.host, running.started_at
        ),
        None => format!("sandbox {} is busy", record.id),
    };
    let fault = Fault::new(Code::Busy, message).hint("try again when it has ended, or cancel it");
    match &record.operation {
        Some(running) => fault
            .detail("operation", running.id.as_str())
            .detail("pid", running.pid)
            .detail("host", running.host.as_str()),
        None => fault,
    }
}
