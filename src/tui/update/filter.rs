//! The filter of the focused pane: of the sandboxes, or of the snapshots.

use tui_input::Input;

use super::{Effect, panes};
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

/// Walks the rows while one types.
pub(super) fn walk(model: &mut Model, action: Action) {
    if model.focus == Pane::Snapshots {
        if let Some(to) = model.snapshots.window.moved(action) {
            model.snapshots.go(to);
        }
    } else {
        panes::in_list(model, action);
    }
}

/// The text field's text becomes the filter.
pub(super) fn typed(model: &mut Model) {
    let Some(field) = &model.filter_field else { return };
    if field.value() != model.filter().text() {
        let filter = Filter::parse(field.value());
        set(model, filter);
    }
}
