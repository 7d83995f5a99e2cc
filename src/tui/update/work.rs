//! Jobs: begun, under way, ended; and leaving while they run.

use std::time::Duration;

use super::{Effect, action_form, activity, data, external_operations, open_form, reap, snapshots};
use crate::client::{Error, Record, Started};
use crate::domain::OperationKind;
use crate::domain::error::{Code, Kind};
use crate::domain::name::{OperationId, SandboxId};
use crate::domain::patch::{AppliedPatch, PatchState};
use crate::domain::sandbox::{Reason, SandboxRecord};
use crate::domain::snapshot::SnapshotRecord;
use crate::tui::model::{
    Confirm, Entry, Job, JobId, JobResult, JobState, Leaving, Model, NodeId, Overlay, Pane, Role,
    ToldIn, bytes, many,
};

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
    data::take(model, Entry::new(record));
    if made {
        close_form(model, id);
        model.sandboxes.point_at(sandbox);
    }
}

fn started_on_snapshot(model: &mut Model, id: JobId, record: SnapshotRecord) -> Vec<Effect> {
    action_form::begun(model, id);
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
        action_form::begun(model, job);
    }
    if action_form::refused(model, job, &problem) {
        return refused_in_form(model, job, problem);
    }
    if kind == Some(OperationKind::Create)
        && let Some(form) = open_form(model).filter(|form| form.submitting)
    {
        form.submitting = false;
        form.refuse(problem.clone());
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

/// Whether nothing was begun because the target is not what the operator saw.
fn is_stale(problem: &Error) -> bool {
    problem.kind == Kind::Stale || matches!(problem.code, Code::NotFound | Code::InUse)
}

/// Whether an operation changes a snapshot.
fn is_on_snapshot(kind: &OperationKind) -> bool {
    match kind {
        OperationKind::Snapshot
        | OperationKind::Copy
        | OperationKind::Verify
        | OperationKind::Import
        | OperationKind::Delete => true,
        OperationKind::Create
        | OperationKind::Destroy
        | OperationKind::Recreate
        | OperationKind::Restore
        | OperationKind::Sleep
        | OperationKind::Wake
        | OperationKind::Patch
        | OperationKind::Check
        | OperationKind::Recover
        | OperationKind::Reap
        | OperationKind::Other(_) => false,
    }
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
        data::take(model, Entry::new(record));
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

fn close_form(model: &mut Model, job: JobId) {
    let create = model.jobs.get(job).is_some_and(|job| job.kind == OperationKind::Create);
    model.overlays.retain(|overlay| !(create && matches!(overlay, Overlay::Create(_))));
    action_form::begun(model, job);
}

/// A job was not begun any more, and that is said.
pub(super) fn skipped(model: &mut Model, job: JobId, reason: String) -> Vec<Effect> {
    action_form::begun(model, job);
    finish(model, job, JobState::Skipped(reason), JobResult::Done);
    Vec::new()
}

/// What became of a sandbox's patches in a job that applies them: a patch that failed is no failure of the job.
fn patched(model: &Model, job: JobId, record: &SandboxRecord) -> JobResult {
    let applies = |kind: &OperationKind| {
        matches!(
            kind,
            OperationKind::Restore
                | OperationKind::Wake
                | OperationKind::Recreate
                | OperationKind::Patch
        )
    };
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

/// A job is done.
pub(super) fn ended_well(model: &mut Model, job: JobId) -> Vec<Effect> {
    ended_as(model, job, JobResult::Done)
}

/// A job is done, with this result.
pub(super) fn ended_as(model: &mut Model, job: JobId, result: JobResult) -> Vec<Effect> {
    finish(model, job, JobState::Succeeded, result);
    Vec::new()
}

/// A job ended with an error.
pub(super) fn ended_badly(model: &mut Model, job: JobId, problem: Error) -> Vec<Effect> {
    let mut effects = Vec::new();
    if let Some(id) = model.jobs.get(job).and_then(|job| job.sandbox.clone()) {
        effects.push(Effect::Get(id));
    }
    if problem.code == Code::Cancelled {
        finish(model, job, JobState::of_problem(problem), JobResult::Done);
        return effects;
    }
    let refused = problem.code == Code::Conflict || is_stale(&problem);
    if refused && model.jobs.get(job).is_some_and(|job| job.operation.is_none()) {
        finish(model, job, JobState::Skipped(problem.message), JobResult::Done);
        return effects;
    }
    finish(model, job, JobState::Failed(problem), JobResult::Done);
    effects.extend(activity::notify(model, job));
    effects
}

/// Writes a job's end down: on the job, which is a row of Activity, and as a toast.
fn finish(model: &mut Model, id: JobId, state: JobState, result: JobResult) {
    let now = model.now;
    let Some(job) = model.jobs.get_mut(id).filter(|job| job.is_running()) else { return };
    job.state = match state {
        JobState::Succeeded if job.state == JobState::Cancelling => JobState::DoneAnyway,
        state => state,
    };
    job.result = result;
    job.ended = Some(now);
    if let Some(problem) = job.state.problem().cloned() {
        for text in std::iter::once(&problem.message).chain(&problem.causes).chain(&problem.hint) {
            job.write(text.clone());
        }
    }
    activity::tell(model, id);
}

/// Opens the question whether to cancel what is done under the cursor, by this process or by another.
pub(super) fn ask_cancel(model: &mut Model) -> Vec<Effect> {
    let id = match model.overlays.last() {
        Some(Overlay::Jobs(at)) => model.jobs.list().nth(*at).map(|job| job.id),
        Some(Overlay::Output(id, _)) => Some(*id),
        Some(Overlay::Reap) => model.reap.job,
        Some(Overlay::Details(details)) => job_on(model, &details.id.clone()),
        None if model.focus == Pane::Activity => activity::job(model),
        _ => match model.pointed_sandbox().map(|entry| entry.record.id.clone()) {
            Some(id) => job_on(model, &id),
            None => snapshots::job_on(model),
        },
    };
    match id.and_then(|id| model.jobs.get(id)).filter(|job| job.is_running()).map(|job| job.id) {
        Some(id) => model.overlays.push(Overlay::Confirm(Confirm::cancel_job(id))),
        None => model.say(Role::Dim, "nothing is being done there"),
    }
    Vec::new()
}

/// What is being done to a sandbox.
fn job_on(model: &mut Model, id: &SandboxId) -> Option<JobId> {
    if let Some(job) = model.jobs.of_sandbox(id) {
        return Some(job.id);
    }
    let entry = model.sandboxes.get(id).cloned()?;
    let running = entry.record.operation.as_ref()?;
    Some(model.jobs.of_running(id, entry.record.title(), running))
}

/// Asks for a job's end.
pub(super) fn cancel(model: &mut Model, id: JobId) -> Vec<Effect> {
    let Some(job) = model.jobs.get_mut(id).filter(|job| job.is_running()) else {
        return Vec::new();
    };
    if job.state == JobState::Cancelling {
        return Vec::new();
    }
    job.state = JobState::Cancelling;
    job.write(format!("its end was asked for: {}", job.cancel_leaves()));
    if job.is_rollout() {
        return vec![Effect::StopRollout(id)];
    }
    job.operation.clone().map(|operation| Effect::Cancel(id, operation)).into_iter().collect()
}

/// The client answered a request for a job's end.
pub(super) fn cancel_asked(model: &mut Model, id: JobId, answer: Result<(), Error>) -> Vec<Effect> {
    if let Err(problem) = answer
        && let Some(job) = model.jobs.get_mut(id).filter(|job| job.state == JobState::Cancelling)
    {
        job.state = JobState::Running;
        job.write(format!("cannot be cancelled: {}", problem.message));
        model.say(Role::Bad, format!("cannot be cancelled: {}", problem.message));
    }
    Vec::new()
}

/// Leaves at once, or opens the question what becomes of the running jobs.
pub(super) fn leave(model: &mut Model) -> Vec<Effect> {
    if model.jobs.running_here().next().is_none() {
        return vec![Effect::Quit];
    }
    model.leaving = None;
    model.overlays.push(Overlay::Confirm(Confirm::quit()));
    Vec::new()
}

/// Waits for the running jobs, or cancels them, and leaves then.
pub(super) fn leave_after(model: &mut Model, leaving: Leaving) -> Vec<Effect> {
    model.leaving = Some(leaving);
    if leaving == Leaving::Waiting {
        return Vec::new();
    }
    let running: Vec<JobId> = model.jobs.running_here().map(|job: &Job| job.id).collect();
    running.into_iter().flat_map(|id| cancel(model, id)).collect()
}

/// Nobody sees the screen any more: what was only watched is not followed, and a rollout begins no further sandbox.
pub(in crate::tui) fn go_unseen(model: &mut Model) -> Vec<Effect> {
    model.overlays.clear();
    model.followed = None;
    let rollouts: Vec<JobId> =
        model.jobs.running_here().filter(|job| job.is_rollout()).map(|job| job.id).collect();
    let mut effects = vec![Effect::Unfollow];
    effects.extend(rollouts.into_iter().flat_map(|id| cancel(model, id)));
    effects
}

/// Whether the operator wanted to leave and nothing runs any more.
pub(in crate::tui) fn may_leave(model: &Model) -> bool {
    model.leaving.is_some() && model.jobs.running_here().next().is_none()
}
