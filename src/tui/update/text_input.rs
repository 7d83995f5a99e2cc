//! Text fields: a key that is typed into one, and text that is pasted.

use crossterm::event::{Event, KeyEvent};
use tui_input::Input;
use tui_input::backend::crossterm::to_input_request;

/// A key that edits a field. Whether its text changed.
pub(super) fn typed(field: &mut Input, key: &KeyEvent) -> bool {
    let request = to_input_request(&Event::Key(*key));
    request.and_then(|request| field.handle(request)).is_some_and(|change| change.value)
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
