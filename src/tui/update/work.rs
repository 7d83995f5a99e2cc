//! Operations that were asked for here: accepted or refused, and what came of them.

use std::time::Duration;

use super::jobs::{ended_as, ended_badly, ended_well, finish, is_stale};
use super::{Effect, external_operations, form_answers, reap, records, snapshots};
use crate::client::{Error, Record, Started};
use crate::domain::OperationKind;
use crate::domain::name::OperationId;
use crate::domain::patch::{AppliedPatch, PatchState};
use crate::domain::sandbox::{Reason, SandboxRecord};
use crate::domain::snapshot::SnapshotRecord;
use crate::tui::model::{Entry, JobId, JobResult, JobState, Model, NodeId, ToldIn, bytes, many};

/// A job's request was accepted, or refused.
pub(super) fn started(
    model: &mut Model,
    job: JobId,
    answer: Result<Box<Started>, Error>,
) -> Vec<Effect> {
    let Started { operation, record } = match answer {
        Ok(started) => *started,
        Err(problem) => return refused(model, job, problem),
    };
    let mut effects = match record {
        Record::Sandbox(record) => {
            started_on_sandbox(model, job, *record);
            Vec::new()
        }
        Record::Snapshot(record) => started_on_snapshot(model, job, *record),
        Record::Reap(report) => {
            model.reap.done_all(&report);
            Vec::new()
        }
        Record::Host(_) => Vec::new(),
    };
    effects.extend(match operation {
        Some(operation) => began(model, job, operation),
        None => ended_well(model, job),
    });
    effects
}

fn started_on_sandbox(model: &mut Model, id: JobId, record: SandboxRecord) {
    let mut made = false;
    if let Some(job) = model.jobs.get_mut(id) {
        // A create's or a restore's: it has no sandbox before.
        made = job.sandbox.is_none();
        job.sandbox = Some(record.id.clone());
        if made {
            record.title().clone_into(&mut job.title);
        }
    }
    let sandbox = record.id.clone();
    records::take(model, Entry::new(record));
    if made {
        form_answers::begun(model, id);
        model.sandboxes.point_at(sandbox);
    }
}

fn started_on_snapshot(model: &mut Model, id: JobId, record: SnapshotRecord) -> Vec<Effect> {
    form_answers::begun(model, id);
    let mut made = false;
    if let Some(job) = model.jobs.get_mut(id) {
        job.snapshot = Some(record.id.clone());
        made = job.kind == OperationKind::Snapshot;
    }
    if made && model.frozen.is_none() {
        let node = NodeId::Snapshot(record.id.clone());
        model.snapshots.add(record);
        model.snapshots.point_at(node);
    }
    snapshots::read(model)
}

/// A job's operation has an id now.
fn began(model: &mut Model, job: JobId, operation: OperationId) -> Vec<Effect> {
    model.jobs.set_operation(job, operation.clone());
    // Somebody asked for its end before the operation had an id.
    let cancelling = model.jobs.get(job).is_some_and(|job| job.state == JobState::Cancelling);
    cancelling.then_some(Effect::Cancel(job, operation)).into_iter().collect()
}

/// A job's request was refused: its form says so where it is open, and its activity where not.
fn refused(model: &mut Model, job: JobId, problem: Error) -> Vec<Effect> {
    let kind = model.jobs.get(job).map(|job| job.kind.clone());
    if kind == Some(OperationKind::Snapshot) && is_stale(&problem) {
        // The form has its targets as they were: asked again, it would be refused again.
        form_answers::begun(model, job);
    }
    if form_answers::refused(model, job, &problem) {
        return refused_in_form(model, job, problem);
    }
    let mut effects = ended_badly(model, job, problem);
    if kind.is_some_and(|kind| is_on_snapshot(&kind)) {
        effects.extend(snapshots::read(model));
    }
    effects
}

/// The form shows the error; the job only keeps it.
fn refused_in_form(model: &mut Model, job: JobId, problem: Error) -> Vec<Effect> {
    let now = model.now;
    if let Some(job) = model.jobs.get_mut(job) {
        job.write(problem.message.clone());
        job.state = JobState::Failed(problem);
        job.told_in = ToldIn::Form;
        job.ended = Some(now);
    }
    Vec::new()
}

/// Whether an operation changes a snapshot.
fn is_on_snapshot(kind: &OperationKind) -> bool {
    use OperationKind::{Copy, Delete, Import, Snapshot, Verify};
    matches!(kind, Snapshot | Copy | Verify | Import | Delete)
}

/// A job's operation ended.
pub(super) fn ended(
    model: &mut Model,
    job: JobId,
    outcome: Result<Record, Error>,
    took: Option<Duration>,
) -> Vec<Effect> {
    let record = match outcome {
        Ok(record) => record,
        Err(problem) => {
            let kind = model.jobs.get(job).map(|job| job.kind.clone());
            let mut effects = ended_badly(model, job, problem);
            if kind == Some(OperationKind::Reap) {
                effects.extend(reap::ended_badly(model));
            } else if kind.is_some_and(|kind| is_on_snapshot(&kind)) {
                effects.extend(snapshots::read(model));
            }
            return effects;
        }
    };
    if let Some(job) = model.jobs.get_mut(job) {
        job.took = took.or(job.took);
    }
    match record {
        Record::Sandbox(record) => ended_on_sandbox(model, job, *record),
        Record::Snapshot(record) => ended_on_snapshot(model, job, &record),
        Record::Reap(report) => reap::ended(model, job, &report),
        Record::Host(_) => ended_well(model, job),
    }
}

fn ended_on_sandbox(model: &mut Model, job: JobId, record: SandboxRecord) -> Vec<Effect> {
    let host = record.host.clone();
    let result = match &record.reason {
        Some(Reason::TtlExpired) if record.state.is_over() => {
            JobResult::Told("its time was over".to_owned())
        }
        _ => patched(model, job, &record),
    };
    if model.frozen.is_none() {
        records::take(model, Entry::new(record));
    }
    let mut effects = ended_as(model, job, result);
    effects.extend(external_operations::refresh_services(model, &host));
    effects.extend(snapshots::read(model));
    effects
}

fn ended_on_snapshot(model: &mut Model, job: JobId, record: &SnapshotRecord) -> Vec<Effect> {
    let mut effects = snapshots::read(model);
    let made = model.jobs.get(job).is_some_and(|job| job.kind == OperationKind::Snapshot);
    let size = record.archive.bytes.map(|size| format!(" {}", bytes(size))).unwrap_or_default();
    let told =
        if made { JobResult::Told(format!("{}{size}", record.title())) } else { JobResult::Done };
    effects.extend(ended_as(model, job, told));
    effects
}

/// A job was not begun any more, and that is said.
pub(super) fn skipped(model: &mut Model, job: JobId, reason: String) -> Vec<Effect> {
    form_answers::begun(model, job);
    finish(model, job, JobState::Skipped(reason), JobResult::Done);
    Vec::new()
}

/// Result of a sandbox's patches in a job that applies them: a patch that failed is no failure of the job.
fn patched(model: &Model, job: JobId, record: &SandboxRecord) -> JobResult {
    use OperationKind::{Patch, Recreate, Restore, Wake};
    let applies = |kind: &OperationKind| matches!(kind, Restore | Wake | Recreate | Patch);
    let Some(job) = model.jobs.get(job).filter(|job| applies(&job.kind)) else {
        return JobResult::Done;
    };
    if let Some(error) = &record.patch_error {
        return JobResult::Warned(error.clone());
    }
    // Its events may have been heard before its end: a run since its begin is its own, known or not.
    let known = |now: &AppliedPatch| {
        let before = model.sandboxes.get(&record.id).map(|entry| &entry.record.applied_patches);
        let is_it = |run: &AppliedPatch| run.id == now.id && run.state == PatchState::Applied;
        now.started_at.is_none_or(|at| at < job.started)
            && before.is_some_and(|before| before.iter().any(is_it))
    };
    let has = record.applied_patches.iter().filter(|run| run.state == PatchState::Applied);
    match has.filter(|run| !known(run)).count() {
        0 => JobResult::Done,
        count => JobResult::Told(format!("{} applied", many(count, "patch", "patches"))),
    }
}
