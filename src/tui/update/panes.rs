//! Movement and marks in the list, among the hosts, and among the entries of the ledger.

use crate::tui::keymap::Action;
use crate::tui::model::{Filter, Model, Window};

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
    if let Some(to) = moved(&hosts.window, action) {
        hosts.go(to);
    }
}

/// Actions on the credits.
pub(super) fn in_credits(model: &mut Model, action: Action) {
    let credits = &mut model.credits;
    if let Some(to) = moved(&credits.window, action) {
        credits.go(to);
    }
}

/// Where a movement leads to, the list's end or beyond it; none where it is no movement.
pub(super) fn moved(window: &Window, action: Action) -> Option<usize> {
    let (at, page) = (window.index, window.page().unsigned_abs());
    match action {
        Action::Down => Some(at + 1),
        Action::Up => Some(at.saturating_sub(1)),
        Action::Top => Some(0),
        Action::Bottom => Some(usize::MAX),
        Action::PageDown => Some(at + page),
        Action::PageUp => Some(at.saturating_sub(page)),
        _ => None,
    }
}
