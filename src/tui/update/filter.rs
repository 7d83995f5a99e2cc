//! The filter of the focused pane: of the sandboxes, or of the snapshots.

use crossterm::event::{Event, KeyCode, KeyEvent};
use tui_input::Input;
use tui_input::backend::crossterm::to_input_request;

use super::{Effect, fields};
use crate::tui::keymap::Action;
use crate::tui::model::{Filter, Model, Pane, Role};

/// Opens the text field.
pub(super) fn open(model: &mut Model) {
    if matches!(model.focus, Pane::Activity | Pane::Hosts | Pane::Credits) {
        model.focus_on(Pane::Sandboxes);
    }
    model.filter_field = Some(Input::new(model.filter().text().to_owned()));
}

fn set(model: &mut Model, filter: Filter) {
    if model.focus == Pane::Snapshots {
        model.snapshots.set_filter(filter);
    } else {
        model.sandboxes.set_filter(filter);
    }
}

/// A key of the table.
pub(super) fn act(model: &mut Model, action: Action) -> Vec<Effect> {
    match action {
        Action::Submit => {
            model.filter_field = None;
            if let Some(problem) = model.filter().problem().map(str::to_owned) {
                model.say(Role::Warn, problem);
            }
        }
        Action::Leave => {
            model.filter_field = None;
            set(model, Filter::default());
        }
        _ => {}
    }
    Vec::new()
}

/// A key that is typed.
pub(super) fn text(model: &mut Model, key: &KeyEvent) -> Vec<Effect> {
    // The rows can be walked while one types.
    let by = match key.code {
        KeyCode::Down => 1,
        KeyCode::Up => -1,
        _ => {
            let request = to_input_request(&Event::Key(*key));
            if let (Some(field), Some(request)) = (&mut model.filter_field, request) {
                field.handle(request);
            }
            apply(model);
            return Vec::new();
        }
    };
    if model.focus == Pane::Snapshots {
        model.snapshots.step(by);
    } else {
        model.sandboxes.step(by);
    }
    Vec::new()
}

/// Pasted text goes into the field.
pub(super) fn paste(model: &mut Model, text: &str) -> Vec<Effect> {
    if let Some(field) = &mut model.filter_field {
        fields::insert(field, text);
    }
    apply(model);
    Vec::new()
}

fn apply(model: &mut Model) {
    let Some(field) = &model.filter_field else { return };
    if field.value() != model.filter().text() {
        let filter = Filter::parse(field.value());
        set(model, filter);
    }
}
