//! Keys: looked up in the table for the mode, then done.

use std::sync::Arc;

use crossterm::event::{KeyEvent, KeyEventKind};
use tui_input::Input;
use tui_input::backend::crossterm::to_input_request;

use super::{Effect, confirm, data, elsewhere, form, labels, logs, overlay, shell, work};
use crate::domain::name::SandboxId;
use crate::domain::sandbox::SandboxRecord;
use crate::domain::text::clean_line;
use crate::tui::keymap::{Action, Key, Mode};
use crate::tui::model::{Confirm, Details, Entry, Filter, Job, JobId, Model, Overlay, Pane, Purpose, Role, Sort};

/// A key was pressed.
pub(super) fn key(model: &mut Model, key: KeyEvent) -> Vec<Effect> {
    if key.kind == KeyEventKind::Release {
        return Vec::new();
    }
    let mode = model.mode();
    let action = model.keymap.action(mode, Key::from_event(&key));
    match (mode, action) {
        (_, Some(Action::Suspend)) => vec![Effect::Suspend],
        (Mode::Form, Some(action)) => form::act(model, action, &key),
        (Mode::Form, None) => form::text(model, &key),
        (Mode::Picker, Some(Action::Close)) => close(model),
        (Mode::Filter, Some(action)) => filter_act(model, action),
        (Mode::Filter, None) => filter_text(model, &key),
        (Mode::Confirm, Some(action)) => confirm::act(model, action),
        (Mode::Confirm, None) => confirm::text(model, &key),
        (Mode::LogField, Some(action)) => logs::field_act(model, action),
        (Mode::LogField, None) => logs::field_text(model, &key),
        (Mode::LabelField, Some(action)) => labels::field_act(model, action),
        (Mode::LabelField, None) => labels::field_text(model, &key),
        (Mode::Palette, Some(action)) => overlay::palette_act(model, action),
        (Mode::Palette, None) => overlay::palette_text(model, &key),
        (_, Some(action)) => act(model, action),
        (_, None) => Vec::new(),
    }
}

/// Text was pasted: only text fields take it; anywhere else it would be a hundred keys.
pub(super) fn paste(model: &mut Model, text: &str) -> Vec<Effect> {
    match model.mode() {
        Mode::Form => form::paste(model, text),
        Mode::Filter => {
            if let Some(field) = &mut model.filter_field {
                insert(field, text);
            }
            apply_filter(model);
            Vec::new()
        }
        Mode::Palette => overlay::palette_paste(model, text),
        Mode::LogField => logs::field_paste(model, text),
        Mode::LabelField => labels::field_paste(model, text),
        // What has to be typed before something destructive is typed, not pasted.
        _ => Vec::new(),
    }
}

/// Puts text at the cursor of a field: one line, no control characters.
pub(super) fn insert(field: &mut Input, text: &str) {
    let text = text.trim_end_matches(['\r', '\n']);
    for c in text.chars().take(8192) {
        let c = if matches!(c, '\n' | '\r' | '\t') { ' ' } else { c };
        if !c.is_control() {
            field.handle(tui_input::InputRequest::InsertChar(c));
        }
    }
}

/// Does an action in the panes or on an overlay that is read.
pub(super) fn act(model: &mut Model, action: Action) -> Vec<Effect> {
    if action.is_later() {
        model.say(Role::Dim, format!("{}: not in this version", action.help()));
        return Vec::new();
    }
    if action.is_mutating() && model.read_only {
        model.say(Role::Warn, format!("{}: this console is read-only", action.name().replace('_', " ")));
        return Vec::new();
    }
    if model.mode() == Mode::Picker {
        return form::pick(model, action);
    }
    match action {
        Action::Quit => work::leave(model),
        Action::Help => {
            model.overlays.push(Overlay::Help(0));
            Vec::new()
        }
        Action::Jobs => {
            if !model.overlays.iter().any(|overlay| matches!(overlay, Overlay::Jobs(_))) {
                model.overlays.push(Overlay::Jobs(0));
            }
            elsewhere::read(model)
        }
        Action::Palette => {
            model.overlays.push(Overlay::Palette(Input::default(), 0));
            Vec::new()
        }
        Action::Create => form::open(model),
        Action::Destroy => ask(model, Purpose::Destroy),
        Action::Recreate => ask(model, Purpose::Recreate),
        Action::CancelJob => ask_cancel(model),
        Action::Logs => logs::open(model),
        Action::Shell => shell::open(model),
        Action::Labels => labels::open(model),
        Action::Redraw => {
            let mut effects = data::read_again(model);
            effects.push(Effect::Redraw);
            effects
        }
        Action::Freeze => freeze(model),
        Action::Mouse => {
            model.mouse = !model.mouse;
            let text = if model.mouse {
                "the mouse selects rows"
            } else {
                "the mouse is the terminal's: select text, M takes it back"
            };
            model.say(Role::Dim, text);
            vec![Effect::Mouse(model.mouse)]
        }
        Action::CopyId | Action::CopySsh => copy(model, action),
        Action::Close => close(model),
        Action::Open => open(model),
        _ if model.overlays.is_empty() => pane(model, action),
        _ => match model.mode() {
            Mode::Logs => logs::act(model, action),
            Mode::Shell => shell::act(model, action),
            Mode::Labels => labels::act(model, action),
            _ => {
                overlay::scroll(model, action);
                Vec::new()
            }
        },
    }
}

fn close(model: &mut Model) -> Vec<Effect> {
    model.overlays.pop();
    Vec::new()
}

/// Actions on the focused pane.
fn pane(model: &mut Model, action: Action) -> Vec<Effect> {
    match action {
        Action::NextPane | Action::PreviousPane => {
            model.focus = if model.focus == Pane::Sandboxes { Pane::Activity } else { Pane::Sandboxes };
        }
        Action::PaneSandboxes => model.focus = Pane::Sandboxes,
        Action::PaneActivity => model.focus = Pane::Activity,
        Action::Filter => {
            model.focus = Pane::Sandboxes;
            model.filter_field = Some(Input::new(model.sandboxes.filter().text().to_owned()));
        }
        Action::Sort | Action::SortDirection => {
            let sort = model.sandboxes.sort();
            let sort = match action {
                Action::Sort => Sort { key: sort.key.next(), descending: false },
                _ => Sort { descending: !sort.descending, ..sort },
            };
            return set_sort(model, sort);
        }
        _ if model.focus == Pane::Activity => move_activity(model, action),
        Action::Down => model.sandboxes.step(1),
        Action::Up => model.sandboxes.step(-1),
        Action::Top => model.sandboxes.go(0),
        Action::Bottom => model.sandboxes.go(usize::MAX),
        Action::PageDown => model.sandboxes.page(1),
        Action::PageUp => model.sandboxes.page(-1),
        Action::Mark => model.sandboxes.toggle_mark(),
        Action::MarkRange => model.sandboxes.mark_range(),
        Action::MarkAll => model.sandboxes.mark_all(),
        Action::Clear if !model.sandboxes.marks().is_empty() => model.sandboxes.clear_marks(),
        Action::Clear if !model.sandboxes.filter().is_empty() => {
            model.sandboxes.set_filter(Filter::default());
            return vec![Effect::Remember(model.remembered())];
        }
        _ => {}
    }
    Vec::new()
}

/// Sorts the list, from a key or a click.
pub(super) fn set_sort(model: &mut Model, sort: Sort) -> Vec<Effect> {
    model.sandboxes.set_sort(sort);
    vec![Effect::Remember(model.remembered())]
}

fn move_activity(model: &mut Model, action: Action) {
    let count = activity_rows(model);
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
fn activity_rows(model: &Model) -> usize {
    model.jobs.running().count() + model.activity.lines().len()
}

/// Keeps the activity's cursor and window within its rows.
pub(super) fn settle_activity(model: &mut Model, height: usize) {
    let count = activity_rows(model);
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
fn activity_job(model: &Model) -> Option<JobId> {
    model.jobs.running().nth(model.activity.index).map(|job: &Job| job.id)
}

fn open(model: &mut Model) -> Vec<Effect> {
    if let Some(Overlay::Jobs(at)) = model.overlays.last() {
        let job = model.jobs.list().nth(*at).map(|job| job.id);
        model.overlays.extend(job.map(|id| Overlay::Output(id, None)));
        return Vec::new();
    }
    if model.focus == Pane::Sandboxes {
        return open_details(model);
    }
    if let Some(id) = activity_job(model) {
        model.overlays.push(Overlay::Output(id, None));
        return Vec::new();
    }
    let running = model.jobs.running().count();
    let Some(line) = model.activity.line(model.activity.index - running).cloned() else { return Vec::new() };
    if let Some(problem) = line.problem {
        model.overlays.push(Overlay::Error(problem, 0));
    } else if let Some(job) = line.job {
        model.overlays.push(Overlay::Output(job, None));
    } else if let Some(entry) = line.sandbox.as_ref().and_then(|id| model.sandboxes.get(id)) {
        let record = SandboxRecord::clone(&entry.record);
        return details(model, Details::new(record));
    } else {
        model.say(Role::Dim, line.text);
    }
    Vec::new()
}

fn open_details(model: &mut Model) -> Vec<Effect> {
    let Some(entry) = model.sandboxes.selected() else { return Vec::new() };
    let record = SandboxRecord::clone(&entry.record);
    details(model, Details::new(record))
}

fn details(model: &mut Model, details: Details) -> Vec<Effect> {
    let id = details.id.clone();
    model.overlays.push(Overlay::Details(details));
    vec![Effect::Get(id.clone()), Effect::Events(Some(id), None)]
}

/// The sandbox that a key means which acts on one alone: that of the overlay on top, of the line of activity, or the
/// one under the cursor. Says so if there is none.
pub(super) fn subject(model: &mut Model) -> Option<Arc<Entry>> {
    let of_job = |job: Option<&Job>| job.and_then(|job| job.sandbox.clone());
    let id = match model.overlays.last() {
        Some(Overlay::Details(details)) => Some(details.id.clone()),
        Some(Overlay::Output(job, _)) => of_job(model.jobs.get(*job)),
        Some(_) => None,
        None if model.focus == Pane::Activity => {
            let running = model.jobs.running().count();
            let line = model.activity.index.checked_sub(running).and_then(|at| model.activity.line(at));
            of_job(model.jobs.running().nth(model.activity.index))
                .or_else(|| line.and_then(|line| line.sandbox.clone()))
        }
        None => model.sandboxes.selected().map(|entry| entry.record.id.clone()),
    };
    let entry = id.and_then(|id| model.sandboxes.get(&id).cloned());
    if entry.is_none() {
        model.say(Role::Dim, "there is no sandbox to act on");
    }
    entry
}

/// Opens the question about the marked ones, or the one under the cursor, or the one whose details are open.
fn ask(model: &mut Model, purpose: Purpose) -> Vec<Effect> {
    let entries = match model.overlays.last() {
        Some(Overlay::Details(details)) => model.sandboxes.get(&details.id).cloned().into_iter().collect(),
        Some(_) => return Vec::new(),
        None if model.focus == Pane::Activity => {
            model.say(Role::Dim, "this acts on the sandboxes' pane: tab goes there");
            return Vec::new();
        }
        None => model.sandboxes.targets(),
    };
    if entries.is_empty() {
        model.say(Role::Dim, "there is no sandbox to act on");
        return Vec::new();
    }
    let targets = entries.iter().map(|entry| confirm::freeze(model, entry)).collect();
    model.overlays.push(Overlay::Confirm(Confirm::about(purpose, targets)));
    Vec::new()
}

/// Opens the question whether to roll back what is done under the cursor, by this process or by another.
fn ask_cancel(model: &mut Model) -> Vec<Effect> {
    let id = match model.overlays.last() {
        Some(Overlay::Jobs(at)) => model.jobs.list().nth(*at).map(|job| job.id),
        Some(Overlay::Output(id, _)) => Some(*id),
        Some(Overlay::Details(details)) => job_on(model, &details.id.clone()),
        Some(_) => None,
        None if model.focus == Pane::Activity => activity_job(model),
        None => model.sandboxes.selected().map(|entry| entry.record.id.clone()).and_then(|id| job_on(model, &id)),
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
    Some(model.jobs.of_running(id, &work::title(&entry.record), running))
}

fn freeze(model: &mut Model) -> Vec<Effect> {
    if model.frozen.take().is_none() {
        model.frozen = Some(0);
        return Vec::new();
    }
    // What was held back is read, not replayed.
    let mut effects = data::list(model);
    effects.push(Effect::Events(None, Some(model.now.minus_seconds(3600))));
    effects
}

/// Puts an id or a command into the clipboard.
fn copy(model: &mut Model, action: Action) -> Vec<Effect> {
    let record = match model.overlays.last() {
        Some(Overlay::Details(details)) => Some(details.record.as_ref()),
        Some(Overlay::Error(problem, _)) => {
            let text = std::iter::once(&problem.message).chain(&problem.causes).cloned().collect::<Vec<_>>().join("\n");
            model.say(Role::Good, "copied the error");
            return vec![Effect::Copy(text)];
        }
        _ => model.sandboxes.selected().map(|entry| &*entry.record),
    };
    let Some(record) = record else { return Vec::new() };
    let text = match action {
        Action::CopyId => Some(record.id.to_string()),
        _ => record.reachability.as_ref().map(|reach| reach.ssh.clone()),
    };
    let Some(text) = text else {
        model.say(Role::Warn, "it is not reachable: there is no ssh command");
        return Vec::new();
    };
    // What a host wrote must not bring an escape sequence or a line break into a shell by way of a paste.
    let text = clean_line(&text, 4096);
    model.say(Role::Good, format!("copied: {text}"));
    vec![Effect::Copy(text)]
}

fn filter_act(model: &mut Model, action: Action) -> Vec<Effect> {
    match action {
        Action::Submit => model.filter_field = None,
        Action::Leave => {
            model.filter_field = None;
            model.sandboxes.set_filter(Filter::default());
        }
        _ => return Vec::new(),
    }
    vec![Effect::Remember(model.remembered())]
}

fn filter_text(model: &mut Model, key: &KeyEvent) -> Vec<Effect> {
    // The list can be walked while one types.
    match key.code {
        crossterm::event::KeyCode::Down => model.sandboxes.step(1),
        crossterm::event::KeyCode::Up => model.sandboxes.step(-1),
        _ => {
            let request = to_input_request(&crossterm::event::Event::Key(*key));
            if let (Some(field), Some(request)) = (&mut model.filter_field, request) {
                field.handle(request);
            }
            apply_filter(model);
        }
    }
    Vec::new()
}

fn apply_filter(model: &mut Model) {
    let Some(field) = &model.filter_field else { return };
    if field.value() != model.sandboxes.filter().text() {
        let filter = Filter::parse(field.value());
        model.sandboxes.set_filter(filter);
    }
}
