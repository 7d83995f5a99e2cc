//! Establishment, which create, restore and recreate share: provision, wait, write `ready`, or compensate (semantics 2).

use std::time::Duration;

use tokio::time::Instant;

use crate::domain::error::{Code, Error};
use crate::domain::event::EventKind;
use crate::domain::extension::{
    Learnt, ProvisionRequest, Provisioned, Readiness, Report, Reporter, Resource, Target,
    TeardownLine, TeardownOutcome, TeardownReport,
};
use crate::domain::name::{OperationId, SandboxId, SnapshotId};
use crate::domain::operation::CancelOutcome;
use crate::domain::profile::Seconds;
use crate::domain::sandbox::{Failure, Reason, SandboxRecord, State};
use crate::domain::text::last_lines;
use crate::domain::time::took_ms;
use crate::domain::verbatim::Kept;
use crate::failpoint;
use crate::manager::deps::Deps;
use crate::manager::hosts::roots::{learn_roots_during, roots_for_new};
use crate::manager::operation::Op;
use crate::manager::operation::progress::{EVIDENCE_LINES, ProgressReporter};
use crate::manager::patches::apply::apply_pending;
use crate::manager::patches::find::patches_of;
use crate::manager::sandboxes::find::find_sandbox;
use crate::manager::sandboxes::resolve::resolve;
use crate::manager::sandboxes::settle::{RunningServices, patch_and_settle};
use crate::manager::sandboxes::teardown::{tear_down, unseen};
use crate::manager::sandboxes::write_errors::{
    end_not_written_error, leftover_words, not_written_error,
};
use crate::manager::snapshots::replicate::TRANSFER_STEPS;
use crate::manager::snapshots::restore_archive::{BaseSnapshot, restore_archive};
use crate::store::ending;

/// Limit of a rollback; what is left then is written down as leftovers.
const ROLLBACK_LIMIT: Duration = Duration::from_mins(2);

/// Time that a kept failed sandbox stays, in seconds.
const KEPT_FAILED_S: u64 = 3600;

/// Request to an extension for a sandbox, and the facts for its record.
pub(crate) struct Establishment {
    pub(crate) provision: ProvisionRequest,
    pub(crate) ready_timeout: Duration,
    pub(crate) ttl_s: Option<u64>,
    pub(crate) keep_failed: bool,
    pub(crate) recreate: bool,
    /// The snapshot that it is made from, instead of what the inputs name.
    pub(crate) from: Option<BaseSnapshot>,
}

/// Runs an establishment as the operation's work.
pub(crate) fn run_establishment(
    op: Op<SandboxRecord>,
    establishment: Establishment,
) -> OperationId {
    let host = establishment.provision.host.clone();
    op.run(Some(host), move |op| async move {
        announce_steps(&op, &establishment, 0).await;
        Box::pin(establish(&op, establishment)).await.map(|_| ())
    })
}

/// Says how many steps an establishment has, after `before` others of its operation. What cannot be told counts when it
/// comes.
pub(crate) async fn announce_steps(
    op: &Op<SandboxRecord>,
    establishment: &Establishment,
    before: u32,
) {
    let deps = &op.deps;
    let Ok(extension) = deps.extension(&establishment.provision.profile.extension) else { return };
    let (mut carried, mut patched) = (0, 0);
    if let Some(from) = &establishment.from {
        let host = establishment.provision.host.as_str();
        if let Ok(Some(snapshot)) = deps.snapshots.get(&from.id).await
            && !snapshot.hosts().any(|known| known.same(host))
        {
            carried = TRANSFER_STEPS;
        }
        patched =
            u32::from(patches_of(deps, &from.id).await.is_ok_and(|patches| !patches.is_empty()));
    }
    let total = match extension.steps(&establishment.provision, establishment.from.is_some()) {
        0 => 0,
        own => before + carried + own + patched,
    };
    op.progress.announce(total, patched);
}

/// Provisions and waits; at the end the record is `ready`, or `failed` with nothing left on the host.
pub(crate) async fn establish(
    op: &Op<SandboxRecord>,
    mut establishment: Establishment,
) -> Result<SandboxRecord, Error> {
    let deps = &op.deps;
    let id = establishment.provision.id.clone();
    let host = establishment.provision.host.clone();
    let deadline = establishment.ttl_s.map(|ttl| {
        deps.now().plus_seconds(establishment.ready_timeout.as_secs().saturating_add(ttl))
    });
    establishment.provision.expires_at = deadline;
    let provisioning = op.update(
        vec![(
            EventKind::SandboxProvisioning,
            serde_json::json!({"host": host, "operation": op.operation.id}),
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
        let (owner, _) = tokio::try_join!(deps.installation.next_stamp(), provisioning)?;
        Ok::<_, Error>((owner, roots_for_new(deps, &host).await?))
    };
    let made = match begun.await {
        Ok((owner, roots)) => {
            (establishment.provision.owner, establishment.provision.roots) = (owner, roots);
            failpoint::reached("create.provisioning");
            Box::pin(provision_to_ready(op, &establishment)).await
        }
        Err(error) => Err(not_written_error(&id, error).untouched()),
    };
    match made {
        Ok(record) => Ok(record),
        Err(error) => ending(compensate(op, &establishment, error)).await,
    }
}

async fn provision_to_ready(
    op: &Op<SandboxRecord>,
    establishment: &Establishment,
) -> Result<SandboxRecord, Error> {
    let deps = &op.deps;
    let id = &establishment.provision.id;
    let extension = deps.extension(&establishment.provision.profile.extension)?;
    let (made, not_preserved) = match &establishment.from {
        None => {
            let provision = learn_roots_during(
                deps,
                &establishment.provision.host,
                &op.progress,
                extension.provision(&establishment.provision, &op.progress),
            );
            (op.or_cancelled(provision).await?, None)
        }
        Some(from) => {
            let restored = restore_archive(op, &establishment.provision, from).await?;
            (restored.provisioned, Some(restored.not_preserved))
        }
    };
    failpoint::reached("create.provisioned");
    if let Some(counter) = made.counter_ahead {
        deps.installation.seen_on(&establishment.provision.host, counter).await?;
    }
    let record = op
        .update(Vec::new(), |record| {
            note_provisioned(record, made);
            record.not_preserved = not_preserved.unwrap_or_default();
        })
        .await
        .map_err(|error| not_written_error(id, error))?;
    let target = resolve(deps, &record).await?;
    let until = Instant::now() + establishment.ready_timeout;
    let ready = op
        .or_cancelled(extension.wait_ready(&target, establishment.ready_timeout, &op.progress))
        .await?;
    let patch = async {
        failpoint::reached("create.started");
        let patched = patch_new(op, establishment).await?;
        failpoint::reached("create.patched");
        Ok(patched)
    };
    let services = RunningServices { extension: extension.as_ref(), target: &target, until };
    let (ready, message) = Box::pin(patch_and_settle(op, services, ready, patch)).await?;
    failpoint::reached("create.settled");
    let ready_at = deps.now();
    let expires_at = establishment.ttl_s.map(|ttl| ready_at.plus_seconds(ttl));
    // Raised once more: a copy of our records in which this one is half-made is an old copy from here on, and must
    // not recover it.
    let stamp =
        deps.installation.next_stamp().await.map_err(|error| not_written_error(id, error))?;
    let target = Target { stamp: Some(stamp), ..target };
    let notes: Vec<String> = establishment
        .from
        .as_ref()
        .and_then(|from| from.note.clone())
        .into_iter()
        .chain(message)
        .collect();
    let message = (!notes.is_empty()).then(|| notes.join("; "));
    op.or_cancelled(extension.set_deadline(&target, expires_at)).await?;
    failpoint::reached("create.dated");
    write_ready(op, establishment, ready, message, ready_at)
        .await
        .map_err(|error| not_written_error(id, error))
}

/// Applies the pending patches of a sandbox made from a snapshot, before it is ready; whether any ran.
async fn patch_new(op: &Op<SandboxRecord>, establishment: &Establishment) -> Result<bool, Error> {
    let Some(from) = &establishment.from else { return Ok(false) };
    let before = find_sandbox(&op.deps, establishment.provision.id.as_str()).await?;
    let pass = apply_pending(op, &before, false).await?;
    match pass.stopped {
        Some(why) if from.require_patches => {
            let error = not_patched(&pass.record, &from.id, &why);
            // Nothing of the sandbox stays: there is nothing to apply it to again.
            op.update(Vec::new(), move |record| {
                record.patch_error = Some(why);
            })
            .await?;
            Err(error)
        }
        _ => Ok(pass.record.applied_patches != before.applied_patches),
    }
}

async fn write_ready(
    op: &Op<SandboxRecord>,
    establishment: &Establishment,
    ready: Readiness,
    message: Option<String>,
    ready_at: crate::domain::Time,
) -> Result<SandboxRecord, Error> {
    let took_ms = took_ms(ready_at.since(op.operation.started_at));
    let data = serde_json::json!({"host": establishment.provision.host, "took_ms": took_ms});
    let mut events = vec![(EventKind::SandboxReady, data.clone())];
    if establishment.recreate {
        events.insert(0, (EventKind::SandboxRecreated, data));
    } else if let Some(from) = &establishment.from {
        let mut data = data;
        data["snapshot_id"] = from.id.as_str().into();
        events.insert(0, (EventKind::SandboxRestored, data));
    }
    let ttl_s = establishment.ttl_s;
    let max_s = establishment.provision.profile.max_ttl.map(Seconds::get);
    let record = op
        .update(events, move |record| {
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
        })
        .await?;
    failpoint::reached("create.ready");
    Ok(record)
}

/// Runs teardown to its end, keeps the evidence, and leaves `failed`.
async fn compensate(
    op: &Op<SandboxRecord>,
    establishment: &Establishment,
    error: Error,
) -> Result<SandboxRecord, Error> {
    let deps = &op.deps;
    let (failure, untouched) = (error.evidence.as_deref().cloned(), error.untouched);
    let error = error.of_a_part();
    let id = &establishment.provision.id;
    let cancelled = error.code == Code::Cancelled;
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
    let keep = establishment.keep_failed && !cancelled;
    let report = match (keep, untouched) {
        (_, true) => Some(nothing_made(id)),
        (true, false) => None,
        (false, false) => Some(roll_back(deps, id, learnt, &op.progress).await),
    };
    let keep = report.is_none();
    failpoint::reached("rollback.torn_down");
    let error = if cancelled { cancelled_error(establishment, report.as_ref()) } else { error };
    let error = explain(error, &failure, report.as_ref(), keep);
    let kept_until = deps.now().plus_seconds(KEPT_FAILED_S);
    let message = error.message.clone();
    let data = serde_json::json!({"code": error.code, "step": failure.step, "message": message});
    let reason = if cancelled { Reason::Cancelled } else { Reason::ProvisionFailed };
    let left = leftover_words(report.as_ref(), keep);
    let ended = op.update(vec![(EventKind::SandboxFailed, data)], move |record| {
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
    });
    if let Err(not_written_error) = ended.await {
        return Err(end_not_written_error(id, error, &left, &not_written_error));
    }
    deps.ledger.release(id).await?;
    Err(error)
}

/// A teardown under its own deadline. What could not be looked at counts as left over.
async fn roll_back(
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

/// The failure of a restore that wants all patches, with what the script wrote.
fn not_patched(record: &SandboxRecord, snapshot: &SnapshotId, why: &str) -> Error {
    let error = Error::new(Code::OperationFailed, why).step("patch");
    let Some(run) = record.applied_patches.iter().find(|run| run.stopped()) else {
        // None ran to a bad end: one was not begun, or the pass took too long.
        let hint = "restore again when that is mended, or without --require-patches: then `patches apply` goes on";
        return error.hint(hint);
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
    error.hint(hint).evidence(failure)
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
fn cancelled_error(establishment: &Establishment, report: Option<&TeardownReport>) -> Error {
    let (id, host) = (&establishment.provision.id, &establishment.provision.host);
    if !report.is_some_and(TeardownReport::is_clean) {
        let message = format!(
            "sandbox {id}: cancelled, and not all that was made on {host} could be taken back"
        );
        return CancelOutcome::Stopped.fault(message);
    }
    if establishment.recreate {
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

/// Adds to the error what the operator has to know of the rollback.
fn explain(error: Error, failure: &Failure, report: Option<&TeardownReport>, kept: bool) -> Error {
    let left: Vec<String> = report
        .map(|report| report.leftovers.iter().map(|r| format!("{} {}", r.kind, r.id)).collect())
        .unwrap_or_default();
    let mut error = error
        .step(failure.step.as_str())
        .detail("exit_status", failure.exit_status)
        .detail("leftovers", left.clone());
    if kept {
        error = error.hint("it was kept for an hour to look at; `sandboxer destroy` removes it");
    } else if !left.is_empty() {
        error = error.hint(format!(
            "still on the host: {}; `sandboxer destroy` tries again",
            left.join(", ")
        ));
    }
    error
}
