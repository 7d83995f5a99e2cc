//! Jobs: how each ends, asking for its end, and leaving while they run.

use super::{Effect, activity, snapshots};
use crate::client::Error;
use crate::domain::error::{Code, Kind};
use crate::domain::name::SandboxId;
use crate::tui::model::{
    Confirm, Job, JobId, JobResult, JobState, Leaving, Model, Overlay, Pane, Role,
};

/// Whether nothing was begun because the target is not what the operator saw.
pub(super) fn is_stale(problem: &Error) -> bool {
    problem.kind == Kind::Stale || matches!(problem.code, Code::NotFound | Code::InUse)
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
pub(super) fn finish(model: &mut Model, id: JobId, state: JobState, result: JobResult) {
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
