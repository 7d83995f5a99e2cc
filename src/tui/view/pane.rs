//! Panes' frames, titles and tabs.

use super::paint::Paint;
use crate::tui::model::{Area, Model, Pane, Role, Screen};

/// Whether keys act on a pane now.
pub(super) fn is_focused(model: &Model, pane: Pane) -> bool {
    model.focus == pane && model.overlays.is_empty()
}

/// Draws every frame. The focused pane's is bright.
pub(super) fn frames(model: &Model, paint: &mut Paint<'_>, screen: &Screen) {
    // From above to below: a frame takes over the edge that it shares with the one above.
    let panes = [Pane::Sandboxes, Pane::Hosts, Pane::Activity, Pane::Snapshots, Pane::Credits];
    let [list, rest @ ..] = panes.map(|pane| screen.frame(pane));
    for frame in [list, screen.strip.outer(), screen.details.outer()].into_iter().chain(rest) {
        paint.joined_frame(frame, Role::Border);
    }
    if model.overlays.is_empty() {
        paint.edge(screen.frame(model.focus), Role::Focus);
    }
}

/// Draws a pane's title: its name, then what else is to be said.
pub(super) fn title(
    model: &Model,
    paint: &mut Paint<'_>,
    screen: &Screen,
    pane: Pane,
    rest: &[(Role, String)],
) {
    let room = screen.title(pane);
    let role = if is_focused(model, pane) { Role::Accent } else { Role::Plain };
    let name = [(role, format!(" {} ", pane.title()))];
    paint.row(room, &[&name[..], rest].concat());
    for (other, area) in screen.tabs(pane) {
        let name = format!(" {} ", other.title());
        paint.put(area.x, area.y, area.width, &name, Role::Dim);
    }
}

/// Lines of a list from the first row that is shown, so that one is in sight.
pub(super) fn lines(area: Area, shown: usize) -> impl Iterator<Item = (usize, Area)> {
    let first = shown.saturating_sub(usize::from(area.height).saturating_sub(1));
    let lines = (area.y..area.y + area.height).map(move |y| Area { y, height: 1, ..area });
    (first..).zip(lines)
}

/// Draws the cursor of a focused pane over a row; its first cells keep their colours.
pub(super) fn cursor(paint: &mut Paint<'_>, row: Area, keep: u16) {
    paint.put(row.x, row.y, 1, "▌", Role::Accent);
    let style = paint.style(Role::Selected);
    let keep = keep.min(row.width);
    paint.tint(Area { x: row.x + keep, width: row.width - keep, ..row }, style);
}
