//! The pane of what happens and happened: operations, and events that belong to none.

use std::fmt::Write as _;

use super::toast::say;
use super::{Effect, details};
use crate::client::Error;
use crate::domain::event::{Event, EventKind};
use crate::domain::text::clean_line;
use crate::tui::keymap::Action;
use crate::tui::model::{
    ActivityRow, Job, JobId, JobState, LastLook, Load, Model, Overlay, Pane, Role, SinceLastLook,
    TextOverlay, date, event_sentence,
};

/// How many events of the time since the last look are kept to be read.
const KEPT_SINCE: usize = 1000;

/// Moves the cursor; what was told of the time since the last look is read then.
pub(super) fn step(model: &mut Model, action: Action) {
    let page = usize::from(model.screen().activity.height).max(2) - 1;
    let activity = &mut model.activity;
    if activity.index == 0 && activity.since.is_some() && matches!(action, Action::Top | Action::Up)
    {
        // It is on that line already, and stays there.
        return;
    }
    let first = usize::from(activity.since.take().is_some());
    let count = activity.rows().len() - first;
    // On the line itself, down goes to what comes next, which takes its place.
    let (was_on_it, at) = (first > activity.index, activity.index.saturating_sub(first));
    let index = match action {
        Action::Down if was_on_it => 0,
        Action::Down => at + 1,
        Action::Up => at.saturating_sub(1),
        Action::Top => 0,
        Action::Bottom => count,
        Action::PageDown => at + page,
        Action::PageUp => at.saturating_sub(page),
        _ => at,
    };
    let index = index.min(count.saturating_sub(1));
    arrange(model);
    model.activity.index = index;
}

/// Puts the rows in order.
fn arrange(model: &mut Model) {
    let focused = model.focus == Pane::Activity;
    model.activity.arrange(&model.jobs, focused);
}

/// Takes in what waited, puts the rows in order, and keeps cursor and window within them. Who is to be told of a failure that
/// no operation tells of comes back.
pub(super) fn settle(model: &mut Model, height: usize) -> Vec<Effect> {
    let mut effects = Vec::new();
    for event in model.activity.take_ownerless(&model.jobs, model.now) {
        let is_new = event.time >= model.started;
        // Of an operation that is not listed any more, or of none: nobody asks for it now.
        if !is_new && model.activity.operations == Load::Ready {
            continue;
        }
        if event.kind == EventKind::SandboxFailed && is_new {
            effects.push(Effect::Notify(format!("sandbox {} failed", name(model, &event))));
        }
        add(model, event);
    }
    arrange(model);
    let height = height.max(1);
    let focused = model.focus == Pane::Activity;
    let activity = &mut model.activity;
    if !focused {
        // What runs and what failed is seen without a key.
        activity.offset = 0;
        return effects;
    }
    if activity.index < activity.offset {
        activity.offset = activity.index;
    } else if activity.index >= activity.offset + height {
        activity.offset = activity.index + 1 - height;
    }
    activity.offset = activity.offset.min(activity.rows().len().saturating_sub(height));
    effects
}

/// Name of an event's sandbox; empty where it is about none.
pub(super) fn name(model: &Model, event: &Event) -> String {
    let listed = event.sandbox_id.as_ref().and_then(|id| model.name_of(id));
    let told = || event.sandbox_name().map(str::to_owned);
    let id = || event.sandbox_id.as_ref().map(ToString::to_string);
    listed.or_else(told).or_else(id).unwrap_or_default()
}

fn add(model: &mut Model, event: Event) {
    let name = name(model, &event);
    let name = (!name.is_empty()).then_some(name);
    model.activity.add_event(event, name.as_deref(), &model.actor);
}

/// An event was heard, or read: one of an operation is a part of its row.
pub(super) fn take(model: &mut Model, event: &Event) {
    if !model.activity.note(event) {
        return;
    }
    // A plan changes nothing, and that one was applied is told by the row of its operation.
    if matches!(event.kind, EventKind::ReapPlanned | EventKind::ReapApplied) {
        return;
    }
    if event.kind.is_of_operation() {
        model.activity.wait(event.clone(), model.now);
    } else {
        add(model, event.clone());
    }
}

/// The events since the operator looked last were read. That they could not be is told where events are read.
pub(super) fn since_last_look(
    model: &mut Model,
    answer: Result<Vec<Event>, Error>,
    look: LastLook,
) {
    let Ok(mut events) = answer else { return };
    events.retain(|event| event.seq > look.seq);
    model.activity.since =
        SinceLastLook::of(events, look, model.now, &model.actor).map(|mut since| {
            since.events.drain(..since.events.len().saturating_sub(KEPT_SINCE));
            since
        });
}

/// The running job under the activity's cursor, or what runs on the sandbox of its row.
pub(super) fn job(model: &Model) -> Option<JobId> {
    match model.activity.selected()? {
        ActivityRow::Job(id) if model.jobs.get(id).is_some_and(Job::is_running) => Some(id),
        ActivityRow::Job(_) | ActivityRow::Line(_) | ActivityRow::SinceLastLook => {
            let id = model.activity_sandbox()?;
            model.jobs.of_sandbox(&id).map(|job| job.id)
        }
    }
}

/// The job under the cursor whose own output is what there is to be read: it runs here, or failed here.
pub(super) fn output(model: &Model) -> Option<JobId> {
    let Some(ActivityRow::Job(id)) = model.activity.selected() else { return None };
    let job = model.jobs.get(id).filter(|job| job.external.is_none())?;
    (job.is_running() || job.state.problem().is_some()).then_some(id)
}

/// Says that somebody has looked at what the cursor is on.
pub(super) fn look(model: &mut Model) {
    if model.focus == Pane::Activity
        && model.overlays.is_empty()
        && let Some(ActivityRow::Job(id)) = model.activity.selected()
    {
        model.activity.look_at(id);
    }
}

/// Opens what the row under the cursor is about: an output, an error, a sandbox.
pub(super) fn open_row(model: &mut Model) -> Vec<Effect> {
    match model.activity.selected() {
        None => Vec::new(),
        Some(ActivityRow::SinceLastLook) => open_since(model),
        Some(ActivityRow::Job(id)) => {
            look(model);
            open_job(model, id)
        }
        Some(ActivityRow::Line(number)) => open_line(model, number),
    }
}

/// Opens a job: why it failed, the record of what it removed, else what it wrote.
fn open_job(model: &mut Model, id: JobId) -> Vec<Effect> {
    let Some(job) = model.jobs.get(id) else { return Vec::new() };
    if let Some(problem) = job.state.problem() {
        model.overlays.push(Overlay::Error(problem.clone(), 0));
        return Vec::new();
    }
    let done = matches!(job.state, JobState::Succeeded | JobState::DoneAnyway);
    let sandbox = job.sandbox.clone().filter(|_| done);
    let gone = sandbox.filter(|id| model.sandboxes.get(id).is_none());
    // Of what another process did there is no output here.
    let other = job.external.is_some() && done;
    match (gone, job.sandbox.clone().filter(|_| other)) {
        (Some(id), _) | (None, Some(id)) => details::open_sandbox(model, id),
        (None, None) => {
            model.overlays.push(Overlay::Output(id, None));
            Vec::new()
        }
    }
}

fn open_line(model: &mut Model, number: u64) -> Vec<Effect> {
    let Some(line) = model.activity.line(number).cloned() else { return Vec::new() };
    match (line.problem.clone(), line.sandbox().cloned()) {
        (Some(problem), _) => {
            model.overlays.push(Overlay::Error(problem, 0));
            Vec::new()
        }
        (None, Some(id)) => details::open_sandbox(model, id),
        (None, None) => say(model, Role::Dim, line.text),
    }
}

/// Opens the events since the operator looked last, which is read then.
fn open_since(model: &mut Model) -> Vec<Effect> {
    let Some(since) = model.activity.since.take() else { return Vec::new() };
    let mut text = since.text.clone();
    text.push('\n');
    for event in since.events.iter().rev() {
        let name = name(model, event);
        let name = (!name.is_empty()).then_some(name);
        let line = event_sentence(event, name.as_deref(), &model.actor);
        let _ = write!(text, "\n{}  {line}", date(event.time, &model.zone));
    }
    model.overlays.push(Overlay::Text(TextOverlay {
        title: "since you last looked".to_owned(),
        text,
        offset: 0,
    }));
    Vec::new()
}

/// Tells of the end of a job: as a toast, and where its row is.
pub(super) fn tell(model: &mut Model, id: JobId) {
    let Some(job) = model.jobs.get(id) else { return };
    let (_, role) = job.sign();
    if let Some(sentence) = model.job_sentence(job) {
        model.say(role, sentence);
    }
}

/// Operator who is to be told that a job failed: one who looks elsewhere, not the one who looks at its output.
pub(super) fn notify(model: &Model, id: JobId) -> Option<Effect> {
    let is_output = |overlay: &Overlay| matches!(overlay, Overlay::Output(of, _) if *of == id);
    let looks = model.overlays.iter().any(is_output);
    let job =
        model.jobs.get(id).filter(|job| matches!(job.state, JobState::Failed(_)) && !looks)?;
    model.job_sentence(job).map(|sentence| Effect::Notify(clean_line(&sentence, 300)))
}
