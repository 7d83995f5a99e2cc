//! Movement and marks in the list.

use crate::tui::keymap::Action;
use crate::tui::model::{Filter, Model};

pub(super) fn in_list(model: &mut Model, action: Action) {
    let list = &mut model.sandboxes;
    match action {
        Action::Mark => list.toggle_mark(),
        Action::MarkRange => list.mark_range(),
        Action::MarkAll => list.mark_all(),
        Action::Clear if !list.marks.is_empty() => list.marks.clear(),
        Action::Clear if !list.filter().is_empty() => list.set_filter(Filter::default()),
        _ => {
            if let Some(to) = list.window.moved(action) {
                list.go(to);
            }
        }
    }
}
