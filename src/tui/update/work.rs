//! Jobs: begun, under way, ended; and leaving while they run.

use super::{Effect, data, elsewhere, open_form};
use crate::client::{Problem, Started};
use crate::domain::fault::Code;
use crate::domain::sandbox::SandboxRecord;
use crate::tui::model::{ActivityLine, Entry, Job, JobId, JobState, Leaving, Model, Overlay, Role, age};

/// A job's verb was answered.
pub(super) fn started(model: &mut Model, job: JobId, answer: Result<Box<Started>, Problem>) -> Vec<Effect> {
    let created = model.jobs.get(job).is_some_and(|job| job.sandbox.is_none());
    match answer {
        Ok(started) => {
            let Started { operation, sandbox } = *started;
            if let Some(job) = model.jobs.get_mut(job) {
                job.sandbox = Some(sandbox.id.clone());
                if created {
                    job.title = title(&sandbox);
                }
            }
            let id = sandbox.id.clone();
            data::take(model, Entry::new(sandbox));
            if created {
                close_form(model);
                model.sandboxes.point_at(id);
            }
            let Some(operation) = operation else { return ended_well(model, job) };
            model.jobs.set_operation(job, operation.clone());
            let mut effects = vec![Effect::Finish(job, operation.clone())];
            // Somebody asked for the roll-back before the operation had an id.
            if model.jobs.get(job).is_some_and(|job| job.state == JobState::Cancelling) {
                effects.push(Effect::Cancel(job, operation));
            }
            effects
        }
        Err(problem) if created && open_form(model).is_some_and(|form| form.submitting) => {
            if let Some(form) = open_form(model) {
                form.submitting = false;
                form.refuse(problem.clone());
            }
            refused(model, job, problem);
            Vec::new()
        }
        Err(problem) => ended_badly(model, job, problem),
    }
}

/// The form shows the error; the job only keeps it.
fn refused(model: &mut Model, job: JobId, problem: Problem) {
    let now = model.now;
    if let Some(job) = model.jobs.get_mut(job) {
        job.write(problem.message.clone());
        job.state = JobState::Failed(problem);
        job.ended = Some(now);
    }
}

/// What a sandbox is called in a job's title.
pub(super) fn title(record: &SandboxRecord) -> String {
    match &record.name {
        Some(name) => format!("{} {name}", record.id),
        None => record.id.to_string(),
    }
}

fn close_form(model: &mut Model) {
    model.overlays.retain(|overlay| !matches!(overlay, Overlay::Create(_)));
}

/// A target was not what the operator saw: nothing was done, and that is said.
pub(super) fn skipped(model: &mut Model, job: JobId, reason: String) -> Vec<Effect> {
    finish(model, job, JobState::Skipped(reason));
    Vec::new()
}

/// A job's operation ended.
pub(super) fn ended(model: &mut Model, job: JobId, answer: Result<Box<SandboxRecord>, Problem>) -> Vec<Effect> {
    match answer {
        Ok(record) => {
            let host = record.host.clone();
            if model.frozen.is_none() {
                data::take(model, Entry::new(*record));
            }
            let mut effects = ended_well(model, job);
            effects.extend(elsewhere::refresh_services(model, &host));
            effects
        }
        Err(problem) => ended_badly(model, job, problem),
    }
}

/// A job is done.
pub(super) fn ended_well(model: &mut Model, job: JobId) -> Vec<Effect> {
    finish(model, job, JobState::Succeeded);
    Vec::new()
}

/// A job ended with an error.
pub(super) fn ended_badly(model: &mut Model, job: JobId, problem: Problem) -> Vec<Effect> {
    let mut effects = Vec::new();
    if let Some(id) = model.jobs.get(job).and_then(|job| job.sandbox.clone()) {
        effects.push(Effect::Get(id));
    }
    if problem.code == Code::Cancelled {
        finish(model, job, JobState::Cancelled);
        return effects;
    }
    if problem.code == Code::Conflict && model.jobs.get(job).is_some_and(|job| job.operation.is_none()) {
        // The revision moved between the look and the act: the store refused, as it should.
        finish(model, job, JobState::Skipped(problem.message));
        return effects;
    }
    effects.push(Effect::Notify(format!("{} failed: {}", what(model, job), problem.message)));
    finish(model, job, JobState::Failed(problem));
    effects
}

fn what(model: &Model, job: JobId) -> String {
    model.jobs.get(job).map(|job| format!("{} {}", job.kind, job.title)).unwrap_or_default()
}

/// Writes a job's end down: on the job, as a line of activity, as a toast.
fn finish(model: &mut Model, id: JobId, state: JobState) {
    let now = model.now;
    let what = what(model, id);
    let Some(job) = model.jobs.get_mut(id) else { return };
    if !job.is_running() {
        return;
    }
    let took = age(job.seconds(now));
    let (role, glyph, text, problem) = match &state {
        JobState::Succeeded => (Role::Good, '✓', format!("{what}  done in {took}"), None),
        JobState::Cancelled => (Role::Warn, '○', format!("{what}  rolled back after {took}"), None),
        JobState::Skipped(reason) => (Role::Warn, '⚠', format!("{what}  skipped: {reason}"), None),
        JobState::Failed(problem) => {
            (Role::Bad, '✗', format!("{what}  failed: {}", problem.message), Some(problem.clone()))
        }
        _ => return,
    };
    if let Some(problem) = &problem {
        for text in std::iter::once(&problem.message).chain(&problem.causes) {
            job.write(text.clone());
        }
    }
    job.state = state;
    job.ended = Some(now);
    let sandbox = job.sandbox.clone();
    model.say(role, text.clone());
    model.activity.add(ActivityLine { time: now, role, glyph, text, seq: None, sandbox, job: Some(id), problem });
}

/// Asks a job to roll back.
pub(super) fn cancel(model: &mut Model, id: JobId) -> Vec<Effect> {
    let Some(job) = model.jobs.get_mut(id).filter(|job| job.is_running()) else { return Vec::new() };
    if job.state == JobState::Cancelling {
        return Vec::new();
    }
    job.state = JobState::Cancelling;
    job.write("a roll-back was asked for");
    job.operation.clone().map(|operation| Effect::Cancel(id, operation)).into_iter().collect()
}

/// The client answered a request to roll back.
pub(super) fn cancel_asked(model: &mut Model, id: JobId, answer: Result<(), Problem>) -> Vec<Effect> {
    if let Err(problem) = answer
        && let Some(job) = model.jobs.get_mut(id).filter(|job| job.state == JobState::Cancelling)
    {
        job.state = JobState::Running;
        job.write(format!("cannot be rolled back: {}", problem.message));
        model.say(Role::Bad, format!("cannot be rolled back: {}", problem.message));
    }
    Vec::new()
}

/// Leaves at once, or opens the question what becomes of the running jobs.
pub(super) fn leave(model: &mut Model) -> Vec<Effect> {
    if model.jobs.running_here().next().is_none() {
        return vec![Effect::Quit];
    }
    model.leaving = None;
    model.overlays.push(Overlay::Confirm(crate::tui::model::Confirm::quit()));
    Vec::new()
}

/// Waits for the running jobs, or rolls them back, and leaves then.
pub(super) fn leave_after(model: &mut Model, leaving: Leaving) -> Vec<Effect> {
    model.leaving = Some(leaving);
    if leaving == Leaving::Waiting {
        return Vec::new();
    }
    let running: Vec<JobId> = model.jobs.running_here().map(|job: &Job| job.id).collect();
    running.into_iter().flat_map(|id| cancel(model, id)).collect()
}

/// Whether the operator wanted to leave and nothing runs any more.
pub(in crate::tui) fn may_leave(model: &Model) -> bool {
    model.leaving.is_some() && model.jobs.running_here().next().is_none()
}
