//! Keys in the fields of a form.

use crossterm::event::{Event, KeyCode, KeyEvent};
use tui_input::Input;
use tui_input::backend::crossterm::to_input_request;

use crate::tui::keymap::Action;
use crate::tui::model::{Choice, Fields};

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

/// A key that edits the focused field. Whether its value changed.
pub(super) fn text(fields: &mut Fields, key: &KeyEvent) -> bool {
    let Some(field) = fields.focused() else { return false };
    let changed = match &field.choice {
        // A choice is typed by its first letter, or turned with the space bar.
        Choice::OneOf(choices) => {
            let KeyCode::Char(c) = key.code else { return false };
            match choices.iter().find(|choice| choice.starts_with(c)).cloned() {
                Some(choice) => field.input = Input::new(choice),
                None => field.turn(1),
            }
            true
        }
        Choice::Text => {
            let request = to_input_request(&Event::Key(*key));
            request.and_then(|request| field.input.handle(request)).is_some_and(|change| change.value)
        }
    };
    if changed {
        fields.check();
    }
    changed
}

/// Pasted text goes into the focused field, its line breaks as spaces. Whether there was one to take it.
pub(super) fn paste(fields: &mut Fields, pasted: &str) -> bool {
    let Some(field) = fields.focused().filter(|field| field.choice == Choice::Text) else { return false };
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
