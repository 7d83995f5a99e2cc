//! Keys in the fields of a form.

use std::path::Path;

use crossterm::event::{Event, KeyCode, KeyEvent};
use tui_input::Input;
use tui_input::backend::crossterm::to_input_request;

use super::{Effect, form, keys};
use crate::tui::keymap::Action;
use crate::tui::message::Completion;
use crate::tui::model::{Choice, Fields, LogField, Model, Overlay, Role};

/// A key of the table. Whether a value changed.
pub(super) fn act(fields: &mut Fields, action: Action, key: &KeyEvent) -> bool {
    match action {
        Action::NextField => fields.step(1),
        Action::PreviousField => fields.step(-1),
        Action::NextChoice | Action::PreviousChoice => {
            let by = if action == Action::NextChoice { 1 } else { -1 };
            match fields.focused() {
                Some(field) if matches!(field.choice, Choice::OneOf(_)) => field.turn(by),
                _ => return text(fields, key),
            }
            fields.check();
            return true;
        }
        _ => {}
    }
    false
}

/// Keys that are held back at most.
const HELD: usize = 256;

/// The tab key in a path, where something is typed: asks for its completion. Anywhere else it goes on.
pub(super) fn complete(fields: &Fields, home: Option<&Path>, key: &KeyEvent) -> Option<Effect> {
    let field = fields
        .list
        .get(fields.focus)
        .filter(|field| key.code == KeyCode::Tab && field.is_path())?;
    let typed = field.input.value();
    (!typed.is_empty())
        .then(|| Effect::Complete(typed.to_owned(), home.map(Path::to_owned), field.takes_folder()))
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
/// Then come the keys that were typed meanwhile.
pub(super) fn completed(model: &mut Model, typed: &str, completion: Completion) -> Vec<Effect> {
    let held = model.held.take();
    if let Completion::Choices(names) = &completion {
        model.say(Role::Dim, names.join("  "));
    }
    let mut effects = match model.overlays.last_mut() {
        Some(Overlay::Create(form)) if !form.submitting => {
            if take(&mut form.fields, typed, completion) { form::changed(form) } else { Vec::new() }
        }
        Some(Overlay::ActionForm(action_form)) if !action_form.submitting => {
            take(&mut action_form.fields, typed, completion);
            Vec::new()
        }
        Some(Overlay::Logs(logs)) => {
            if let (Some(LogField::Save(input, error)), Completion::To(text)) =
                (&mut logs.field, completion)
                && input.value() == typed
            {
                (*input, *error) = (Input::new(text), None);
            }
            Vec::new()
        }
        _ => Vec::new(),
    };
    for key in held.into_iter().flatten() {
        effects.extend(keys::key(model, key));
    }
    effects
}

/// Takes a completion into the focused field. Whether its value changed.
fn take(fields: &mut Fields, typed: &str, completion: Completion) -> bool {
    let Some(field) =
        fields.focused().filter(|field| field.is_path() && field.input.value() == typed)
    else {
        return false;
    };
    match completion {
        Completion::To(text) => field.input = Input::new(text),
        Completion::Nothing => {
            fields.step(1);
            return false;
        }
        Completion::Choices(_) => return false,
    }
    fields.check();
    true
}

/// A key that edits the focused field. Whether its value changed.
pub(super) fn text(fields: &mut Fields, key: &KeyEvent) -> bool {
    let Some(field) = fields.focused() else { return false };
    let changed = match &field.choice {
        // A choice is typed by its first letter, again for the next of that letter, or turned with the space bar.
        Choice::OneOf(choices) => {
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
        Choice::Text => {
            let request = to_input_request(&Event::Key(*key));
            request
                .and_then(|request| field.input.handle(request))
                .is_some_and(|change| change.value)
        }
    };
    if changed {
        fields.check();
    }
    changed
}

/// Pasted text goes into the focused field, its line breaks as spaces. Whether there was one to take it.
pub(super) fn paste(fields: &mut Fields, pasted: &str) -> bool {
    let Some(field) = fields.focused().filter(|field| field.choice == Choice::Text) else {
        return false;
    };
    insert(&mut field.input, pasted);
    fields.check();
    true
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
