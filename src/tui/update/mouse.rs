//! The mouse: click to select, wheel to scroll, click a column's title to sort. Never required.

use crossterm::event::{MouseButton, MouseEvent, MouseEventKind};

use super::{Effect, form, keys, picker, trouble};
use crate::tui::keymap::{Action, Mode};
use crate::tui::model::{Model, Pane, ROWS_EACH, Sort};

/// Rows per notch of the wheel.
const NOTCH: usize = 3;

/// The mouse did something.
pub(super) fn mouse(model: &mut Model, event: MouseEvent) -> Vec<Effect> {
    if model.is_blind() {
        return Vec::new();
    }
    match event.kind {
        MouseEventKind::ScrollDown => wheel(model, event, Action::Down),
        MouseEventKind::ScrollUp => wheel(model, event, Action::Up),
        MouseEventKind::Down(MouseButton::Left) if model.mode() == Mode::Main => {
            click(model, event.column, event.row)
        }
        MouseEventKind::Down(MouseButton::Left) if model.mode() == Mode::Form => {
            form::click(model, event.row)
        }
        _ => Vec::new(),
    }
}

fn wheel(model: &mut Model, event: MouseEvent, action: Action) -> Vec<Effect> {
    let mode = model.mode();
    let screen = model.screen();
    if mode == Mode::Form {
        form::scroll(model, if action == Action::Down { 1 } else { -1 });
    } else if mode == Mode::Picker {
        let down = action == Action::Down;
        picker::act(model, if down { Action::NextMatch } else { Action::PreviousMatch });
    } else if mode == Mode::Main {
        // The wheel moves what is under it, the focus stays.
        let focus = model.focus;
        let Some(over) = screen.pane_at(event.column, event.row) else { return Vec::new() };
        model.focus = over;
        for _ in 0..NOTCH {
            keys::act(model, action);
        }
        model.focus = focus;
    } else if matches!(
        mode,
        Mode::TextBlock
            | Mode::Jobs
            | Mode::Logs
            | Mode::Shell
            | Mode::Patches
            | Mode::Reap
            | Mode::Events
    ) {
        for _ in 0..NOTCH {
            keys::act(model, action);
        }
    }
    Vec::new()
}

fn click(model: &mut Model, column: u16, row: u16) -> Vec<Effect> {
    let screen = model.screen();
    let tabs = Pane::ALL.iter().flat_map(|pane| screen.tabs(*pane));
    let hint = model.hints().into_iter().find(|hint| hint.area.holds(column, row));
    if let Some(hint) = hint {
        return keys::act(model, hint.action);
    }
    if let Some((pane, _)) = tabs.into_iter().find(|(_, area)| area.holds(column, row)) {
        model.focus_on(pane);
    } else if screen.titles.holds(column, row) {
        let at = column - screen.titles.x;
        let title = screen
            .columns(model.sandboxes.longest_name(), model.sandboxes.has_prices())
            .into_iter()
            .find(|placed| at >= placed.x && at < placed.x + placed.width);
        if let Some(key) = title.and_then(|placed| placed.column.sort_key()) {
            let sort = model.sandboxes.sort();
            let descending = sort.key == key && !sort.descending;
            return trouble::set_sort(model, Sort { key, descending });
        }
    } else if screen.list.holds(column, row) {
        model.focus_on(Pane::Sandboxes);
        let at = model.sandboxes.window.offset + usize::from(row - screen.list.y);
        if at < model.sandboxes.shown().len() {
            model.sandboxes.go(at);
        }
    } else if screen.snapshots.holds(column, row) {
        model.focus_on(Pane::Snapshots);
        model.snapshots.go(model.snapshots.window.offset + usize::from(row - screen.snapshots.y));
    } else if screen.hosts.holds(column, row) {
        model.focus_on(Pane::Hosts);
        let row = usize::from(row - screen.hosts.y) / ROWS_EACH;
        model.hosts.go(model.hosts.window.offset + row);
    } else if screen.credits.holds(column, row) {
        model.focus_on(Pane::Credits);
        let list = model.credits_layout().list;
        if list.holds(column, row) {
            model.credits.go(model.credits.window.offset + usize::from(row - list.y));
        }
    } else if screen.activity.holds(column, row) {
        model.focus_on(Pane::Activity);
        model.activity.index = model.activity.offset + usize::from(row - screen.activity.y);
    } else if let Some(pane) = screen.pane_at(column, row) {
        model.focus_on(pane);
    }
    Vec::new()
}
