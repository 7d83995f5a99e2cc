//! The work behind create, restore and recreate: provision, wait, write `ready`, or compensate (semantics 2).

use std::time::Duration;

use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::domain::error::{Code, Error};
use crate::domain::event::EventKind;
use crate::domain::extension::{
    ExtensionError, Learnt, ProvisionRequest, Provisioned, Readiness, Report, Reporter, Resource,
    Target, TeardownLine, TeardownOutcome, TeardownReport,
};
use crate::domain::name::{SandboxId, SnapshotId};
use crate::domain::operation::{CancelOutcome, Operation};
use crate::domain::profile::Seconds;
use crate::domain::sandbox::{Failure, Reachability, Reason, SandboxRecord, State};
use crate::domain::text::last_lines;
use crate::domain::time::took_ms;
use crate::domain::verbatim::Kept;
use crate::failpoint;
use crate::manager::SandboxManager;
use crate::manager::copy::CARRY_STEPS;
use crate::manager::record::Guard;
use crate::manager::reporter::{EVIDENCE_LINES, JobReporter};
use crate::manager::settling::Settling;
use crate::manager::unwritten::{end_unwritten, left_words, unwritten};
use crate::store::{Held, ending};

/// How long a rollback may take before what is left is written down as leftovers.
const ROLLBACK_LIMIT: Duration = Duration::from_mins(2);

/// How long a kept failed sandbox stays, in seconds.
const KEPT_FAILED_S: u64 = 3600;

/// How often another process's wish to cancel is looked for.
const CANCEL_LOOK: Duration = Duration::from_millis(400);

/// One establishment: what the extension is asked for, and what the record is to say.
pub(super) struct Establishment {
    pub(super) provision: ProvisionRequest,
    pub(super) ready_timeout: Duration,
    pub(super) ttl_s: Option<u64>,
    pub(super) keep_failed: bool,
    pub(super) recreate: bool,
    /// The snapshot that it is made from, instead of what the inputs name.
    pub(super) from: Option<FromSnapshot>,
}

/// A snapshot that a sandbox is made from.
pub(super) struct FromSnapshot {
    pub(super) id: SnapshotId,
    /// It is an error when the host cannot set all that the archive has.
    pub(super) strict: bool,
    /// It is an error when a patch fails.
    pub(super) require_patches: bool,
    /// What the record is to say once it is ready.
    pub(super) note: Option<String>,
}

impl SandboxManager {
    /// Starts the job. `held` is the sandbox's lock: it is freed when the job ends.
    pub(super) fn start_establishment(
        &self,
        operation: Operation,
        work: Establishment,
        held: Box<dyn Held>,
    ) {
        let host = work.provision.host.clone();
        self.run_held(operation, held, Some(host), move |manager, operation, cancel| async move {
            let reporter = JobReporter::new(&manager.jobs, &operation);
            manager.announce_steps(&work, 0, &reporter).await;
            Box::pin(manager.establish(&operation, work, &cancel, &reporter)).await.map(|_| ())
        });
    }

    /// Says how many steps an establishment has, after `before` others of its operation. What cannot be told counts when it
    /// comes.
    pub(super) async fn announce_steps(
        &self,
        work: &Establishment,
        before: u32,
        reporter: &JobReporter,
    ) {
        let Ok(extension) = self.extension(&work.provision.profile.extension) else { return };
        let (mut carried, mut patched) = (0, 0);
        if let Some(from) = &work.from {
            let host = work.provision.host.as_str();
            if let Ok(Some(snapshot)) = self.parts.snapshots.get(&from.id).await
                && !snapshot.hosts().any(|known| known.same(host))
            {
                carried = CARRY_STEPS;
            }
            patched =
                u32::from(self.patches_of(&from.id).await.is_ok_and(|patches| !patches.is_empty()));
        }
        let total = match extension.steps(&work.provision, work.from.is_some()) {
            0 => 0,
            own => before + carried + own + patched,
        };
        reporter.announce(total, patched);
    }

    /// Provisions and waits; at the end the record is `ready`, or `failed` with nothing left on the host.
    pub(super) async fn establish(
        &self,
        operation: &Operation,
        mut work: Establishment,
        cancel: &CancellationToken,
        reporter: &JobReporter,
    ) -> Result<SandboxRecord, Error> {
        let id = work.provision.id.clone();
        let mine = Guard::Operation(operation.id.clone());
        let host = work.provision.host.clone();
        let deadline = work
            .ttl_s
            .map(|ttl| self.now().plus_seconds(work.ready_timeout.as_secs().saturating_add(ttl)));
        work.provision.expires_at = deadline;
        let provisioning = self.transition(
            &id,
            mine.clone(),
            vec![(
                EventKind::SandboxProvisioning,
                serde_json::json!({"host": host, "operation": operation.id}),
            )],
            move |record| {
                record.state = State::Provisioning;
                record.reason = Some(Reason::User);
                record.message = None;
                record.expires_at = deadline;
                // An earlier teardown says nothing about what is made from here on.
                record.failure = None;
                record.kept_failed = false;
                record.teardown.clear();
                record.leftovers.clear();
            },
        );
        let begun = async {
            // Two files, and each waits for the disk.
            let (owner, _) = tokio::try_join!(self.parts.installation.next_stamp(), provisioning)?;
            Ok::<_, Error>((owner, self.roots_for_new(&host).await?))
        };
        let made = match begun.await {
            Ok((owner, roots)) => {
                (work.provision.owner, work.provision.roots) = (owner, roots);
                failpoint::reached("create.provisioning");
                Box::pin(self.attempt(operation, &work, cancel, reporter)).await
            }
            Err(fault) => Err(ExtensionError { untouched: true, ..unwritten(&id, fault).into() }),
        };
        match made {
            Ok(record) => Ok(record),
            Err(error) => ending(self.compensate(operation, &work, error, reporter)).await,
        }
    }

    async fn attempt(
        &self,
        operation: &Operation,
        work: &Establishment,
        cancel: &CancellationToken,
        reporter: &JobReporter,
    ) -> Result<SandboxRecord, ExtensionError> {
        let id = &work.provision.id;
        let mine = Guard::Operation(operation.id.clone());
        let extension = self.extension(&work.provision.profile.extension)?;
        let (made, not_preserved) = match &work.from {
            None => {
                let work = self.learning_roots(
                    &work.provision.host,
                    reporter,
                    extension.provision(&work.provision, reporter),
                );
                (self.or_cancelled(id, cancel, work).await?, None)
            }
            Some(from) => {
                let restored =
                    self.bring_back(operation, &work.provision, from, cancel, reporter).await?;
                (restored.provisioned, Some(restored.not_preserved))
            }
        };
        failpoint::reached("create.provisioned");
        if let Some(counter) = made.counter_ahead {
            self.parts.installation.seen_on(&work.provision.host, counter).await?;
        }
        let record = self
            .transition(id, mine, Vec::new(), |record| {
                note_provisioned(record, made);
                record.not_preserved = not_preserved.unwrap_or_default();
            })
            .await
            .map_err(|fault| unwritten(id, fault))?;
        let target = self.target(&record).await?;
        let until = Instant::now() + work.ready_timeout;
        let ready = self
            .or_cancelled(id, cancel, extension.wait_ready(&target, work.ready_timeout, reporter))
            .await?;
        let patch = async {
            failpoint::reached("create.started");
            let patched = self.patch_new(operation, work, cancel, reporter).await?;
            failpoint::reached("create.patched");
            Ok(patched)
        };
        let settling = Settling { extension: extension.as_ref(), target: &target, until };
        let (ready, message) =
            Box::pin(self.patch_and_settle(settling, ready, cancel, patch)).await?;
        failpoint::reached("create.settled");
        let ready_at = self.now();
        let expires_at = work.ttl_s.map(|ttl| ready_at.plus_seconds(ttl));
        // Raised once more: a copy of our records in which this one is half-made is an old copy from here on, and must
        // not recover it.
        let stamp =
            self.parts.installation.next_stamp().await.map_err(|fault| unwritten(id, fault))?;
        let target = Target { stamp: Some(stamp), ..target };
        let notes: Vec<String> = work
            .from
            .as_ref()
            .and_then(|from| from.note.clone())
            .into_iter()
            .chain(message)
            .collect();
        let message = (!notes.is_empty()).then(|| notes.join("; "));
        self.or_cancelled(id, cancel, extension.set_deadline(&target, expires_at)).await?;
        failpoint::reached("create.dated");
        Ok(self
            .write_ready(operation, work, ready, message, ready_at)
            .await
            .map_err(|fault| unwritten(id, fault))?)
    }

    /// Applies the patches that a sandbox made from a snapshot owes, before it is ready; whether any ran.
    async fn patch_new(
        &self,
        operation: &Operation,
        work: &Establishment,
        cancel: &CancellationToken,
        reporter: &JobReporter,
    ) -> Result<bool, ExtensionError> {
        let Some(from) = &work.from else { return Ok(false) };
        let before = self.get(work.provision.id.as_str()).await?;
        let passed = self.patch_pass(operation, &before, false, cancel, reporter).await?;
        match passed.stopped {
            Some(why) if from.require_patches => {
                let error = not_patched(&passed.record, &from.id, &why);
                // Nothing of the sandbox stays: there is nothing to apply it to again.
                self.transition(
                    &before.id,
                    Guard::Operation(operation.id.clone()),
                    Vec::new(),
                    move |record| {
                        record.patch_error = Some(why);
                    },
                )
                .await?;
                Err(error)
            }
            _ => Ok(passed.record.applied_patches != before.applied_patches),
        }
    }

    /// Adds the tunnels that the host's `reach` command knows. Without an answer there are none, and the record's
    /// message says why: a tunnel that is missing takes nothing from the sandbox.
    pub(super) async fn attach(&self, id: &SandboxId, there: &mut Reachability) -> Option<String> {
        match self.parts.transports.attachments(id, there).await {
            Ok(attachments) => {
                there.attachments = attachments;
                None
            }
            Err(fault) => {
                let causes = fault.causes.join("; ");
                let why = if causes.is_empty() { String::new() } else { format!(": {causes}") };
                Some(format!("no attachments: {}{why}", fault.message))
            }
        }
    }

    async fn write_ready(
        &self,
        operation: &Operation,
        work: &Establishment,
        ready: Readiness,
        message: Option<String>,
        ready_at: crate::domain::Time,
    ) -> Result<SandboxRecord, Error> {
        let took_ms = took_ms(ready_at.since(operation.started_at));
        let data = serde_json::json!({"host": work.provision.host, "took_ms": took_ms});
        let mut news = vec![(EventKind::SandboxReady, data.clone())];
        if work.recreate {
            news.insert(0, (EventKind::SandboxRecreated, data));
        } else if let Some(from) = &work.from {
            let mut data = data;
            data["snapshot_id"] = from.id.as_str().into();
            news.insert(0, (EventKind::SandboxRestored, data));
        }
        let ttl_s = work.ttl_s;
        let max_s = work.provision.profile.max_ttl.map(Seconds::get);
        let record = self
            .transition(
                &work.provision.id,
                Guard::Operation(operation.id.clone()),
                news,
                move |record| {
                    record.state = State::Ready;
                    record.reason = Some(Reason::User);
                    record.message = message;
                    record.observed_at = Some(ready_at);
                    record.ready_at = Some(ready_at);
                    record.expires_at = ttl_s.map(|ttl| ready_at.plus_seconds(ttl));
                    record.max_expires_at = max_s.map(|max| ready_at.plus_seconds(max));
                    record.reachability = Some(ready.reachability);
                    record.services = ready.services;
                    record.failure = None;
                    record.operation = None;
                },
            )
            .await?;
        failpoint::reached("create.ready");
        Ok(record)
    }

    /// Runs teardown to its end, keeps the evidence, and leaves `failed`.
    async fn compensate(
        &self,
        operation: &Operation,
        work: &Establishment,
        error: ExtensionError,
        reporter: &JobReporter,
    ) -> Result<SandboxRecord, Error> {
        let ExtensionError { fault, failure, untouched } = error;
        let id = &work.provision.id;
        let cancelled = fault.code == Code::Cancelled;
        let failure = failure.unwrap_or_else(|| reporter.failure_of(&fault));
        let learnt = reporter.take_learnt();
        if let Some(learnt) = learnt.clone() {
            let noted =
                self.transition(id, Guard::Operation(operation.id.clone()), Vec::new(), |record| {
                    note_learnt(record, learnt);
                });
            if let Err(fault) = noted.await {
                tracing::warn!(sandbox = %id, %fault, "where it was made could not be written down");
            }
        }
        failpoint::reached("rollback.begin");
        let keep = work.keep_failed && !cancelled;
        let report = match (keep, untouched) {
            (_, true) => Some(nothing_made(id)),
            (true, false) => None,
            (false, false) => Some(self.roll_back(id, learnt, reporter).await),
        };
        let keep = report.is_none();
        failpoint::reached("rollback.torn_down");
        let fault = if cancelled { called_off(work, report.as_ref()) } else { fault };
        let fault = explain(fault, &failure, report.as_ref(), keep);
        let kept_until = self.now().plus_seconds(KEPT_FAILED_S);
        let message = fault.message.clone();
        let data =
            serde_json::json!({"code": fault.code, "step": failure.step, "message": message});
        let reason = if cancelled { Reason::Cancelled } else { Reason::ProvisionFailed };
        let left = left_words(report.as_ref(), keep);
        let ended = self.transition(
            id,
            Guard::Operation(operation.id.clone()),
            vec![(EventKind::SandboxFailed, data)],
            move |record| {
                record.state = State::Failed;
                record.reason = Some(reason);
                record.message = Some(message);
                record.failure = Some(failure);
                record.operation = None;
                record.kept_failed = keep;
                // What is not there cannot expire.
                record.expires_at = keep.then_some(kept_until);
                if let Some(report) = report {
                    record.teardown = report.lines;
                    record.leftovers = report.leftovers;
                }
            },
        );
        if let Err(unwritten) = ended.await {
            return Err(end_unwritten(id, fault, &left, &unwritten));
        }
        self.parts.ledger.release(id).await?;
        Err(fault)
    }

    /// A teardown under its own deadline. What could not be looked at counts as left over.
    async fn roll_back(
        &self,
        id: &SandboxId,
        learnt: Option<Learnt>,
        reporter: &JobReporter,
    ) -> TeardownReport {
        reporter.report(Report { stage: "rollback", ..Report::default() });
        let work = async {
            let mut record = self.get(id.as_str()).await?;
            if let Some(learnt) = learnt {
                note_learnt(&mut record, learnt);
            }
            self.tear_down(&record, reporter).await.map_err(|error| error.fault)
        };
        match tokio::time::timeout(ROLLBACK_LIMIT, work).await {
            Ok(Ok(report)) => report,
            Ok(Err(fault)) => unseen(id, &fault.to_string()),
            Err(_) => unseen(id, "the rollback took too long"),
        }
    }

    /// Runs extension work until it ends or somebody, here or in another process, cancels the operation. The work
    /// is dropped then: the extension's contract says that this is safe. How that leaves things is the caller's to say.
    pub(super) async fn or_cancelled<T>(
        &self,
        id: &SandboxId,
        cancel: &CancellationToken,
        work: impl Future<Output = Result<T, ExtensionError>>,
    ) -> Result<T, ExtensionError> {
        let cancelled = || Error::new(Code::Cancelled, format!("sandbox {id}: cancelled")).into();
        tokio::select! {
            biased;
            () = cancel.cancelled() => Err(cancelled()),
            result = work => result,
            () = self.cancel_requested(id) => Err(cancelled()),
        }
    }

    /// Returns when another process asked for the operation on this sandbox to be rolled back.
    pub(super) async fn cancel_requested(&self, id: &SandboxId) {
        let mut version = None;
        loop {
            tokio::time::sleep(CANCEL_LOOK).await;
            let now = self.parts.sandboxes.version().await.ok();
            if now.is_some() && now == version {
                continue;
            }
            version = now;
            if let Ok(Some(record)) = self.parts.sandboxes.get(id).await
                && record.operation.is_some_and(|running| running.cancel_requested)
            {
                return;
            }
        }
    }
}

/// The failure of a restore that wants all patches, with what the script wrote.
fn not_patched(record: &SandboxRecord, snapshot: &SnapshotId, why: &str) -> ExtensionError {
    let fault = Error::new(Code::OperationFailed, why).detail("step", "patch");
    let Some(run) = record.applied_patches.iter().find(|run| run.stopped()) else {
        // None ran to a bad end: one was not begun, or the pass took too long.
        let hint = "restore again when that is mended, or without --require-patches: then `patches apply` goes on";
        return fault.hint(hint).into();
    };
    let hint = format!(
        "`sandboxer patches remove {snapshot} {}` takes it away; add a better one and restore again, or restore without \
         --require-patches",
        run.sequence
    );
    let failure = Failure {
        step: format!("patch {}", run.sequence),
        exit_status: run.exit_status,
        output: last_lines(run.output.as_deref().unwrap_or_default(), EVIDENCE_LINES),
    };
    ExtensionError { fault: fault.hint(hint), failure: Some(failure), untouched: false }
}

fn note_provisioned(record: &mut SandboxRecord, made: Provisioned) {
    record.handle = Some(made.handle);
    record.workdir = Some(made.workdir);
    record.host_identity = Some(made.identity);
    record.rewrites = made.rewrites;
    // Plain data with strings for keys: it is always JSON.
    record.telemetry = made.facts.and_then(|facts| Kept::new(&facts).ok());
    record.certificate = made.certificate.and_then(|certificate| Kept::new(&certificate).ok());
}

fn note_learnt(record: &mut SandboxRecord, learnt: Learnt) {
    record.workdir = Some(learnt.workdir);
    record.host_identity = Some(learnt.identity);
    if !learnt.rewrites.is_empty() {
        record.rewrites = learnt.rewrites;
    }
}

/// The error of an establishment that was cancelled, by what its rollback came to.
fn called_off(work: &Establishment, report: Option<&TeardownReport>) -> Error {
    let (id, host) = (&work.provision.id, &work.provision.host);
    if !report.is_some_and(TeardownReport::is_clean) {
        let message = format!(
            "sandbox {id}: cancelled, and not all that was made on {host} could be taken back"
        );
        return CancelOutcome::Stopped.fault(message);
    }
    if work.recreate {
        let message = format!(
            "sandbox {id}: cancelled after the old one was removed; nothing of the new one is left"
        );
        return CancelOutcome::Stopped
            .fault(message)
            .hint(format!("`sandboxer recreate {id}` makes it again"));
    }
    CancelOutcome::Undone.fault(format!("sandbox {id}: cancelled; nothing of it is left on {host}"))
}

fn nothing_made(id: &SandboxId) -> TeardownReport {
    let resource = Resource { kind: "sandbox".to_owned(), id: id.project() };
    let line = TeardownLine { resource, outcome: TeardownOutcome::Absent, reason: None };
    TeardownReport { lines: vec![line], leftovers: Vec::new(), untouched: false }
}

pub(super) fn unseen(id: &SandboxId, why: &str) -> TeardownReport {
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

/// Adds to the fault what the operator has to know of the rollback.
fn explain(fault: Error, failure: &Failure, report: Option<&TeardownReport>, kept: bool) -> Error {
    let left: Vec<String> = report
        .map(|report| report.leftovers.iter().map(|r| format!("{} {}", r.kind, r.id)).collect())
        .unwrap_or_default();
    let mut fault = fault
        .detail("step", failure.step.as_str())
        .detail("exit_status", failure.exit_status)
        .detail("leftovers", left.clone());
    if kept {
        fault = fault.hint("it was kept for an hour to look at; `sandboxer destroy` removes it");
    } else if !left.is_empty() {
        fault = fault.hint(format!(
            "still on the host: {}; `sandboxer destroy` tries again",
            left.join(", ")
        ));
    }
    fault
}
