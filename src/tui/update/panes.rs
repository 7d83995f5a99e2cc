//! Movement and marks in the list, among the hosts, and among the entries of the ledger.

use crate::tui::keymap::Action;
use crate::tui::model::{Filter, Model};

/// Actions on the list.
pub(super) fn in_list(model: &mut Model, action: Action) {
    let list = &mut model.sandboxes;
    match action {
        Action::Mark => list.toggle_mark(),
        Action::MarkRange => list.mark_range(),
        Action::MarkAll => list.mark_all(),
        Action::Clear if !list.marks().is_empty() => list.clear_marks(),
        Action::Clear if !list.filter().is_empty() => list.set_filter(Filter::default()),
        _ => {
            if let Some(to) = list.window.moved(action) {
                list.go(to);
            }
        }
    }
}

/// Actions on the hosts.
pub(super) fn in_hosts(model: &mut Model, action: Action) {
    let hosts = &mut model.hosts;
    if let Some(to) = hosts.window.moved(action) {
        hosts.go(to);
    }
}

/// Actions on the credits.
pub(super) fn in_credits(model: &mut Model, action: Action) {
    let credits = &mut model.credits;
    if let Some(to) = credits.window.moved(action) {
        credits.go(to);
    }
}
