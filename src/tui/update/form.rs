//! Forms: the keys, the mouse and pasted text in one, the completion of a path, and what is begun when one is filled in.

use crossterm::event::{KeyCode, KeyEvent};
use tui_input::Input;

use super::{Effect, logs, plan, records, text_input};
use crate::client::SnapshotDiffRequest;
use crate::domain::OperationKind;
use crate::domain::name::SandboxId;
use crate::domain::text::expand_home;
use crate::tui::keymap::Action;
use crate::tui::message::Completion;
use crate::tui::model::{
    Asked, Comparison, Field, FieldKind, Fields, FormKind, FormState, JobId, Model, NewJob,
    Overlay, Role,
};

/// How far a page key scrolls what stands below the fields.
const PAGE: isize = 5;
/// Keys that are held back at most.
const HELD: usize = 256;

/// A key of the table.
pub(super) fn act(model: &mut Model, action: Action, key: &KeyEvent) -> Vec<Effect> {
    if let Some(effect) = complete(model, key) {
        model.held = Some(Vec::new());
        return vec![effect];
    }
    let Some(form) = model.form() else { return Vec::new() };
    match action {
        // While it is asked for, leaving would hide the answer; of labels a toast tells.
        Action::Leave if !form.is_asked() || matches!(form.kind, FormKind::Labels(_)) => {
            leave(model);
        }
        Action::PageDown => scroll(model, PAGE),
        Action::PageUp => scroll(model, -PAGE),
        _ if form.is_asked() => {}
        Action::Submit if !form.drawn => model.say_undrawn(),
        Action::Submit => return submit(model),
        Action::Preview => return look_again(model),
        Action::NextField => form.fields.step(1),
        Action::PreviousField => form.fields.step(-1),
        Action::NextChoice | Action::PreviousChoice => {
            let by = if action == Action::NextChoice { 1 } else { -1 };
            return turn(model, by).unwrap_or_else(|| text(model, key));
        }
        _ => {}
    }
    Vec::new()
}

/// Closes the form on top; what was typed for a create is there again when another profile is chosen.
fn leave(model: &mut Model) {
    let left = model.overlays.pop();
    if let (Some(Overlay::Form(form)), Some(Overlay::Picker(picker))) =
        (left, model.overlays.last_mut())
    {
        picker.typed = form.fields.list;
    }
}

/// Goes to the next or the previous choice of the focused field; none where it is no choice.
fn turn(model: &mut Model, by: isize) -> Option<Vec<Effect>> {
    let field = model.form()?.fields.focused()?;
    if !matches!(field.kind, FieldKind::Choice(_)) {
        return None;
    }
    field.turn(by);
    Some(changed(model))
}

/// The value of the focused field is another one.
fn changed(model: &mut Model) -> Vec<Effect> {
    let Some(form) = model.form() else { return Vec::new() };
    form.fields.check();
    form.changed();
    if matches!(form.kind, FormKind::Create(_)) {
        plan::ask(model, plan::PAUSE)
    } else {
        Vec::new()
    }
}

/// A key that edits the focused field.
pub(super) fn text(model: &mut Model, key: &KeyEvent) -> Vec<Effect> {
    let form = model.form().filter(|form| !form.is_asked());
    if form.is_some_and(|form| typed(&mut form.fields, key)) { changed(model) } else { Vec::new() }
}

/// A key that edits the focused field. Whether its value changed.
fn typed(fields: &mut Fields, key: &KeyEvent) -> bool {
    let Some(field) = fields.focused() else { return false };
    let FieldKind::Choice(choices) = &field.kind else {
        return text_input::typed(&mut field.input, key);
    };
    // A choice is typed by its first letter, again for the next of that letter, or turned with the space bar.
    let KeyCode::Char(c) = key.code else { return false };
    let at = choices.iter().position(|choice| choice == field.input.value());
    let (before, behind) = choices.split_at(at.map_or(0, |at| at + 1));
    let mut begun = behind.iter().chain(before).filter(|choice| choice.starts_with(c));
    match (c, begun.next().cloned()) {
        (' ', _) => field.turn(1),
        (_, Some(choice)) => field.input = Input::new(choice),
        (_, None) => return false,
    }
    true
}

/// Pasted text goes into the focused field, its line breaks as spaces.
pub(super) fn paste(model: &mut Model, text: &str) -> Vec<Effect> {
    let field = model.form().filter(|form| !form.is_asked()).and_then(|form| form.fields.focused());
    match field.filter(|field| !matches!(field.kind, FieldKind::Choice(_))) {
        Some(field) => text_input::insert(&mut field.input, text),
        None => return Vec::new(),
    }
    changed(model)
}

/// A click gives a field the focus; on the choice that has it, goes to the next one.
pub(super) fn click(model: &mut Model, row: u16) -> Vec<Effect> {
    let (area, now) = (model.screen().overlay_text(), model.now);
    let Some(form) = model.form().filter(|form| !form.is_asked()) else { return Vec::new() };
    let Some(at) = form.layout(area, now).field_at(row) else { return Vec::new() };
    if form.fields.focus == at {
        return turn(model, 1).unwrap_or_default();
    }
    form.fields.focus = at;
    Vec::new()
}

/// Scrolls what stands below the fields.
pub(super) fn scroll(model: &mut Model, by: isize) {
    let (area, now) = (model.screen().overlay_text(), model.now);
    if let Some(form) = model.form() {
        let last = form.layout(area, now).last_offset;
        form.offset = form.offset.min(last).saturating_add_signed(by).min(last);
    }
}

// ---- paths ---------------------------------------------------------------------------------------------------------

/// The tab key in a path, where something is typed: asks for its completion. Anywhere else it goes on.
fn complete(model: &mut Model, key: &KeyEvent) -> Option<Effect> {
    let home = model.home.clone();
    let form = model.form().filter(|form| key.code == KeyCode::Tab && !form.is_asked())?;
    let field = form.fields.focused().filter(|field| field.is_path())?;
    let typed = field.input.value().to_owned();
    let is_folder = field.kind == FieldKind::Folder;
    (!typed.is_empty()).then_some(Effect::Complete(typed, home, is_folder))
}

/// Whether a key is held back until a path is completed: into which field it goes is not known before. Leaving is.
pub(super) fn holds(model: &mut Model, action: Option<Action>, key: &KeyEvent) -> bool {
    if matches!(action, Some(Action::Leave)) {
        model.held = None;
    }
    let Some(held) = model.held.as_mut().filter(|_| action != Some(Action::Suspend)) else {
        return false;
    };
    if held.len() < HELD {
        held.push(*key);
    }
    true
}

/// Takes the completion of a path, if that still stands there. Where there is nothing to complete, the focus goes on.
pub(super) fn completed(model: &mut Model, typed: &str, completion: Completion) -> Vec<Effect> {
    let Some(form) = model.form().filter(|form| !form.is_asked()) else { return Vec::new() };
    let is_there = |field: &&mut Field| field.is_path() && field.input.value() == typed;
    let Some(field) = form.fields.focused().filter(is_there) else { return Vec::new() };
    match completion {
        Completion::To(text) => {
            field.input = Input::new(text);
            return changed(model);
        }
        Completion::Nothing => form.fields.step(1),
        Completion::Choices(names) => model.say(Role::Dim, names.join("  ")),
    }
    Vec::new()
}

// ---- what is asked for ---------------------------------------------------------------------------------------------

/// Looks once more at what it would do, where that can have changed.
fn look_again(model: &mut Model) -> Vec<Effect> {
    let Some(form) = model.form() else { return Vec::new() };
    match &mut form.kind {
        FormKind::Create(_) => plan::ask(model, plan::AT_ONCE),
        FormKind::Restore(restore) => {
            restore.comparison = Comparison::Asking;
            let a = restore.target.id().to_string();
            vec![Effect::Compare(form.number, SnapshotDiffRequest { a, b: None })]
        }
        FormKind::Labels(labels) => {
            let refused: Vec<SandboxId> =
                labels.refused().map(|target| target.id.clone()).collect();
            records::look_again(model, refused)
        }
        _ => Vec::new(),
    }
}

/// Asks for it, if every field is well.
fn submit(model: &mut Model) -> Vec<Effect> {
    let Some(form) = model.form() else { return Vec::new() };
    if !form.fields.are_ready() {
        return Vec::new();
    }
    form.error = None;
    let number = form.number;
    match form.asked() {
        Err(why) => model.say(Role::Warn, why),
        Ok(Asked::Jobs(jobs)) => return begin(model, jobs),
        Ok(Asked::RollOut(request, snapshot, title)) => {
            let job = model.jobs.start_on(OperationKind::Patch, snapshot, title, model.now);
            model.overlays.pop();
            return vec![Effect::RollOut(job, request)];
        }
        Ok(Asked::AddPatch(request, path)) => {
            form.state = FormState::Asked(None);
            let path = path.map(|path| expand_home(&path, model.home.as_deref()));
            return vec![Effect::AddPatch(number, request, path)];
        }
        Ok(Asked::Extend(request)) => {
            form.state = FormState::Asked(None);
            return vec![Effect::Extend(number, request)];
        }
        Ok(Asked::Grant(request)) => {
            form.state = FormState::Asked(None);
            return vec![Effect::Grant(number, request)];
        }
        Ok(Asked::Labels(requests)) => {
            form.state = FormState::Asked(None);
            if let FormKind::Labels(labels) = &mut form.kind {
                labels.begin();
            }
            return requests.into_iter().map(Effect::Label).collect();
        }
        Ok(Asked::Log(service, lines)) => {
            model.overlays.pop();
            return logs::read(model, service, lines);
        }
        Ok(Asked::SaveLog(path)) => {
            form.state = FormState::Asked(None);
            let path = expand_home(&path, model.home.as_deref());
            return vec![Effect::SaveLog(number, path, logs::kept(model))];
        }
    }
    Vec::new()
}

/// Begins jobs. One alone keeps its form until the client answered, so that a name that is taken stands beside its field.
fn begin(model: &mut Model, new: Vec<NewJob>) -> Vec<Effect> {
    let alone = new.len() == 1;
    let mut begun: Vec<JobId> = Vec::new();
    let mut effects = Vec::new();
    for NewJob { kind, sandbox, title, request } in new {
        let job = model.jobs.start(kind, sandbox, title, model.now);
        effects.push(Effect::Start(job, request));
        begun.push(job);
    }
    if alone {
        if let Some(form) = model.form() {
            form.state = FormState::Asked(begun.pop());
        }
    } else {
        model.overlays.pop();
        model.sandboxes.marks.clear();
    }
    effects
}
