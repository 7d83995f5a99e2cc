//! The choice of a profile: searched by typing, two rows each.

use ratatui::layout::Position;

use super::paint::Paint;
use super::pane::cursor;
use crate::client::ProfileView;
use crate::tui::keymap::{Action, Mode};
use crate::tui::model::{Area, Load, Model, Picker, Role, is_usable};

/// Draws it; answers where the text cursor is.
pub(super) fn draw(model: &Model, paint: &mut Paint<'_>, picker: &Picker) -> Option<Position> {
    let screen = model.screen();
    let (outer, area) = (screen.overlay(), screen.overlay_text());
    let key = |action| model.keymap.first(Mode::Picker, action).unwrap_or_default();
    let hints = [(key(Action::Choose), "choose"), (key(Action::Leave), "leave")];
    paint.overlay(outer, "New sandbox: which profile?", &hints);
    let (x, y, room) = (area.x + 1, area.y + 1, area.width.saturating_sub(2));
    match &picker.load {
        Load::Loading => {
            paint.put(x, y, room, "reading the profiles…", Role::Dim);
            return None;
        }
        Load::Failed(problem) => {
            let height = area.height.saturating_sub(1);
            paint.error(Area { x, y, width: room, height }, problem, 0, None);
            return None;
        }
        Load::Ready if picker.profiles.is_empty() => {
            paint.put(x, y, room, "there are no profiles", Role::Dim);
            return None;
        }
        Load::Ready => {}
    }
    let x = paint.spans(area.x, area.y, area.width, &[(Role::Accent, " /")]);
    let place = Area { x, width: (area.x + area.width).saturating_sub(x), ..area };
    let cursor = paint.field(place, &picker.search, Role::Title);
    if picker.search.value().is_empty() {
        paint.put(x + 1, area.y, place.width.saturating_sub(1), "type to search", Role::Dim);
    }
    let shown = picker.shown();
    if shown.is_empty() {
        paint.put(area.x + 2, area.y + 1, area.width, "no profile matches", Role::Dim);
        return Some(cursor);
    }
    let rows = usize::from(area.height.saturating_sub(1) / 2).max(1);
    let at = shown.iter().position(|at| *at == picker.index).unwrap_or_default();
    let offset = at.saturating_sub(rows - 1);
    let views = shown.iter().filter_map(|at| picker.profiles.get(*at));
    for (row, view) in views.enumerate().skip(offset).take(rows) {
        let y = area.y + 1 + u16::try_from((row - offset) * 2).unwrap_or(0);
        profile_row(paint, area, y, view, row == at);
    }
    Some(cursor)
}

fn profile_row(paint: &mut Paint<'_>, area: Area, y: u16, view: &ProfileView, selected: bool) {
    let usable = is_usable(view);
    let name = view.id.strip_prefix("profile.").unwrap_or(&view.id);
    let version = view.version.as_deref().unwrap_or("");
    let own = if view.source == "builtin" { "" } else { "  yours" };
    let role = if usable { Role::Title } else { Role::Dim };
    let extension = view.extension.as_deref().unwrap_or("");
    if selected {
        paint.put(area.x, y + 1, 1, "▌", Role::Accent);
    }
    let about = format!("  {version}  {extension}{own}");
    paint.spans(area.x + 2, y, area.width.saturating_sub(2), &[(role, name), (Role::Dim, &about)]);
    let (second, role) = match (&view.error, usable) {
        (Some(error), _) => (format!("its file is broken: {error}"), Role::Warn),
        (None, true) => (view.summary.clone().unwrap_or_default(), Role::Plain),
        (None, false) => (view.unavailable.clone().unwrap_or_default(), Role::Dim),
    };
    paint.put(area.x + 4, y + 1, area.width.saturating_sub(4), &second, role);
    if selected {
        cursor(paint, Area { y, height: 1, ..area }, 1);
    }
}
