//! Movement and marks in the list and among the hosts.

use crate::tui::keymap::Action;
use crate::tui::model::{Filter, Model};

/// Actions on the list.
pub(super) fn in_list(model: &mut Model, action: Action) {
    let list = &mut model.sandboxes;
    match action {
        Action::Down => list.step(1),
        Action::Up => list.step(-1),
        Action::Top => list.go(0),
        Action::Bottom => list.go(usize::MAX),
        Action::PageDown => list.page(1),
        Action::PageUp => list.page(-1),
        Action::Mark => list.toggle_mark(),
        Action::MarkRange => list.mark_range(),
        Action::MarkAll => list.mark_all(),
        Action::Clear if !list.marks().is_empty() => list.clear_marks(),
        Action::Clear if !list.filter().is_empty() => list.set_filter(Filter::default()),
        _ => {}
    }
}

/// Actions on the hosts.
pub(super) fn in_hosts(model: &mut Model, action: Action) {
    let hosts = &mut model.hosts;
    let (at, page) = (hosts.window.index, hosts.window.page().unsigned_abs());
    match action {
        Action::Down => hosts.go(at + 1),
        Action::Up => hosts.go(at.saturating_sub(1)),
        Action::Top => hosts.go(0),
        Action::Bottom => hosts.go(usize::MAX),
        Action::PageDown => hosts.go(at + page),
        Action::PageUp => hosts.go(at.saturating_sub(page)),
        _ => {}
    }
}
