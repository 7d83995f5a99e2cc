//! The pane of what happens and happened: running jobs, then lines.

use super::{Effect, keys};
use crate::tui::keymap::Action;
use crate::tui::model::{JobId, Model, Overlay, Role};

/// Moves the cursor.
pub(super) fn step(model: &mut Model, action: Action) {
    let count = rows(model);
    let page = usize::from(model.screen().activity.height).max(2) - 1;
    let activity = &mut model.activity;
    activity.index = match action {
        Action::Down => activity.index + 1,
        Action::Up => activity.index.saturating_sub(1),
        Action::Top => 0,
        Action::Bottom => count,
        Action::PageDown => activity.index + page,
        Action::PageUp => activity.index.saturating_sub(page),
        _ => activity.index,
    }
    .min(count.saturating_sub(1));
}

/// Rows of the activity pane: running jobs, then lines.
fn rows(model: &Model) -> usize {
    model.jobs.running().count() + model.activity.lines().len()
}

/// Keeps the activity's cursor and window within its rows.
pub(super) fn settle(model: &mut Model, height: usize) {
    let count = rows(model);
    let height = height.max(1);
    let activity = &mut model.activity;
    activity.index = activity.index.min(count.saturating_sub(1));
    if activity.index < activity.offset {
        activity.offset = activity.index;
    } else if activity.index >= activity.offset + height {
        activity.offset = activity.index + 1 - height;
    }
    activity.offset = activity.offset.min(count.saturating_sub(height));
}

/// The running job under the activity's cursor.
pub(super) fn job(model: &Model) -> Option<JobId> {
    model.jobs.running().nth(model.activity.index).map(|job| job.id)
}

/// Opens what the row under the cursor is about: an output, an error, a sandbox.
pub(super) fn open_row(model: &mut Model) -> Vec<Effect> {
    if let Some(id) = job(model) {
        model.overlays.push(Overlay::Output(id, None));
        return Vec::new();
    }
    let running = model.jobs.running().count();
    let Some(line) = model.activity.line(model.activity.index - running).cloned() else {
        return Vec::new();
    };
    match (line.problem, line.job, line.sandbox) {
        (Some(problem), ..) => model.overlays.push(Overlay::Error(problem, 0)),
        (None, Some(job), _) => model.overlays.push(Overlay::Output(job, None)),
        (None, None, Some(id)) if model.sandboxes.get(&id).is_some() => {
            return keys::open_details(model, &id);
        }
        // A sandbox that is over is in no list; its record is there all the same.
        (None, None, Some(id)) => {
            model.wanted = Some(id.clone());
            return vec![Effect::Get(id)];
        }
        (None, None, None) => model.say(Role::Dim, line.text),
    }
    Vec::new()
}
