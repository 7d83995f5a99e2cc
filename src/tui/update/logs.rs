//! A log's keys, its lines, its end.

use std::sync::Arc;

use tui_input::Input;

use super::toast::say;
use super::{Effect, activity, forms, hosts};
use crate::client::{Error, LogsRequest};
use crate::tui::keymap::Action;
use crate::tui::message::LogBatch;
use crate::tui::model::{
    Entry, LogSearch, LogState, LogText, Logs, Model, Overlay, Pane, Role, SearchPattern,
    TextOverlay,
};

/// Columns per step to the side.
const STEP: isize = 16;

/// Opens the log of the sandbox under the cursor, or of the one whose details are open; of one that failed, what its step wrote.
pub(super) fn open(model: &mut Model) -> Vec<Effect> {
    // A job's own output, where it has no sandbox, or one of which the record says nothing more.
    let job = match model.overlays.last() {
        Some(Overlay::Error(problem, _)) => model.jobs.of_problem(problem).map(|job| job.id),
        None if model.focus == Pane::Activity => activity::output(model),
        _ => None,
    };
    activity::look(model);
    let output = |entry: &Arc<Entry>| TextOverlay::of_failed(&entry.record);
    if let Some(page) = model.pointed_sandbox().and_then(output) {
        model.overlays.push(Overlay::Text(page));
        return Vec::new();
    }
    if let Some(job) = job {
        model.overlays.push(Overlay::Output(job, None));
        return Vec::new();
    }
    let Some(entry) = model.subject() else { return Vec::new() };
    let record = &entry.record;
    let services = record.services.iter().map(|service| service.name.clone()).collect();
    model.last_log += 1;
    let mut logs = Logs::new(
        record.id.clone(),
        record.title().to_owned(),
        services,
        model.last_log,
        model.now,
    );
    if logs.services.len() == 1 {
        logs.service = logs.services.first().cloned();
    }
    let effects = follow(model, &logs);
    model.overlays.push(Overlay::Logs(Box::new(logs)));
    effects
}

fn follow(model: &mut Model, logs: &Logs) -> Vec<Effect> {
    model.followed = Some(logs.generation);
    let request = LogsRequest {
        id: logs.id.to_string(),
        service: logs.service.clone(),
        tail: Some(logs.lines),
        follow: true,
    };
    vec![Effect::Follow(logs.generation, request)]
}

fn top(model: &mut Model) -> Option<&mut Logs> {
    match model.overlays.last_mut() {
        Some(Overlay::Logs(logs)) => Some(logs),
        _ => None,
    }
}

/// The log of a stream, wherever it lies.
fn of(model: &mut Model, generation: u64) -> Option<&mut Logs> {
    model.overlays.iter_mut().find_map(|overlay| match overlay {
        Overlay::Logs(logs) if logs.generation == generation => Some(logs.as_mut()),
        _ => None,
    })
}

/// A log that nobody looks at any more is not followed any more.
pub(super) fn end_when_closed(model: &mut Model) -> Option<Effect> {
    let followed = model.followed?;
    if of(model, followed).is_some() {
        return None;
    }
    model.followed = None;
    Some(Effect::Unfollow)
}

/// Ends the search in the log on top; whether there was one.
pub(super) fn end_search(model: &mut Model) -> bool {
    let Some(logs) = top(model).filter(|logs| !logs.pattern().is_empty()) else { return false };
    logs.search_for(SearchPattern::default());
    true
}

/// Columns and rows of a log on the screen.
pub(super) fn size(model: &Model) -> (usize, usize) {
    let area = model.screen().log_text();
    (usize::from(area.width), usize::from(area.height))
}

/// A key of the table.
pub(super) fn act(model: &mut Model, action: Action) -> Vec<Effect> {
    let size = size(model);
    let page = isize::try_from(size.1.max(2) - 1).unwrap_or(1);
    let Some(logs) = top(model) else { return Vec::new() };
    match action {
        Action::Down => logs.scroll(1, size),
        Action::Up => logs.scroll(-1, size),
        Action::PageDown => logs.scroll(page, size),
        Action::PageUp => logs.scroll(-page, size),
        Action::Top => logs.scroll(isize::MIN + 1, size),
        Action::Follow if logs.top.is_none() => logs.hold(size),
        Action::Bottom | Action::Follow => logs.go(None),
        Action::Wrap => {
            logs.wrap = !logs.wrap;
            // A row within a line means nothing at another width.
            if let Some(top) = &mut logs.top {
                top.row = 0;
            }
        }
        Action::ScrollRight if !logs.wrap => logs.shift(STEP, size.0),
        Action::ScrollLeft => logs.shift(-STEP, size.0),
        Action::ScrollRight => model.say(Role::Dim, "long lines are wrapped: w cuts them"),
        Action::NextService | Action::PreviousService => {
            logs.turn(if action == Action::NextService { 1 } else { -1 });
            return again(model);
        }
        Action::Retry => return again(model),
        Action::Search => {
            logs.search = Some(LogSearch { field: Input::default(), before: logs.top });
        }
        Action::NextFound => return next(model, true),
        Action::PreviousFound => return next(model, false),
        Action::Save => return forms::save_log(model),
        Action::Options => return forms::log_options(model),
        Action::Redraw => return hosts::redraw(model),
        _ => {}
    }
    Vec::new()
}

/// Asks for the stream anew.
fn again(model: &mut Model) -> Vec<Effect> {
    model.last_log += 1;
    let (generation, now) = (model.last_log, model.now);
    let Some(logs) = top(model) else { return Vec::new() };
    logs.restart(generation, now);
    let logs = logs.clone();
    follow(model, &logs)
}

/// Goes to the next line that matches, or the one before.
fn next(model: &mut Model, down: bool) -> Vec<Effect> {
    let size = size(model);
    let Some(logs) = top(model) else { return Vec::new() };
    if logs.pattern().is_empty() {
        return say(model, Role::Dim, "nothing is searched for: / searches");
    }
    let from = match (logs.found(), down) {
        (Some(found), true) => found + 1,
        (Some(found), false) => found,
        (None, true) => logs.top.map_or(0, |top| top.line),
        (None, false) => u64::MAX,
    };
    match logs.find(from, down, size) {
        None => say_none(model),
        Some(true) => {
            let first = if down { "first" } else { "last" };
            model.say(Role::Dim, format!("from the {first} line again"));
        }
        Some(false) => {}
    }
    Vec::new()
}

fn say_none(model: &mut Model) {
    let Some(logs) = top(model) else { return };
    let text = format!("'{}' is not in what is kept", logs.pattern().text());
    model.say(Role::Warn, text);
}

/// Reads the log of a service, or of all, with so many lines of each.
pub(super) fn read(model: &mut Model, service: Option<String>, lines: u64) -> Vec<Effect> {
    let Some(logs) = top(model) else { return Vec::new() };
    (logs.service, logs.lines) = (service, lines);
    again(model)
}

/// Lines that are kept of the log that lies on top but for a form.
pub(super) fn kept(model: &Model) -> Vec<Arc<LogText>> {
    let logs = model.overlays.iter().rev().find_map(|overlay| match overlay {
        Overlay::Logs(logs) => Some(logs),
        _ => None,
    });
    logs.map(|logs| logs.tail.lines().cloned().collect()).unwrap_or_default()
}

/// A key of the table in the search's text field.
pub(super) fn field_act(model: &mut Model, action: Action) -> Vec<Effect> {
    let Some(logs) = top(model) else { return Vec::new() };
    match action {
        Action::Leave => {
            logs.search_for(SearchPattern::default());
            // Where the eye was before it searched.
            if let Some(search) = logs.search.take() {
                logs.go(search.before);
            }
        }
        Action::Submit => {
            logs.search = None;
            if logs.found().is_none() && !logs.pattern().is_empty() {
                say_none(model);
            }
        }
        _ => {}
    }
    Vec::new()
}

/// Searches for what is typed so far, from where the eye was: upwards from the end where it follows, else downwards.
pub(super) fn typed(model: &mut Model) {
    let size = size(model);
    let Some(logs) = top(model) else { return };
    let Some(search) = &logs.search else { return };
    let (pattern, before) = (SearchPattern::new(search.field.value()), search.before);
    if pattern == *logs.pattern() {
        return;
    }
    logs.search_for(pattern);
    logs.go(before);
    match before {
        Some(top) => logs.find(top.line, true, size),
        None => logs.find(u64::MAX, false, size),
    };
}

/// A stream is open.
pub(super) fn opened(model: &mut Model, generation: u64) -> Vec<Effect> {
    if let Some(logs) = of(model, generation) {
        logs.state = LogState::Open;
    }
    Vec::new()
}

/// Lines came.
pub(super) fn lines(model: &mut Model, generation: u64, batch: LogBatch) -> Vec<Effect> {
    if let Some(logs) = of(model, generation) {
        logs.extend(batch.missed, batch.lines);
    }
    Vec::new()
}

/// A stream ended.
pub(super) fn ended(model: &mut Model, generation: u64, answer: Result<(), Error>) -> Vec<Effect> {
    if let Some(logs) = of(model, generation) {
        logs.state = answer.map_or_else(LogState::Failed, |()| LogState::Ended);
    }
    Vec::new()
}
