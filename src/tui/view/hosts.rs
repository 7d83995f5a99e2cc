//! The hosts: two rows each. Load of the last hour and what is used of memory and disk, or why it does not answer.

use super::paint::{Paint, cells};
use super::pane;
use crate::domain::text::columns;
use crate::tui::keymap::{Action, Mode};
use crate::tui::model::{
    Area, Host, Load, Model, Pane, ROWS_EACH, Role, Screen, Standing, standing_glyph,
};

/// Draws the pane.
pub(super) fn draw(model: &Model, paint: &mut Paint<'_>, screen: &Screen) {
    let area = screen.hosts;
    title(model, paint, screen);
    if model.hosts.list.is_empty() {
        nothing(model, paint, area);
        return;
    }
    let window = &model.hosts.window;
    for (row, at) in window.rows(model.hosts.list.len()).enumerate() {
        let y = area.y + u16::try_from(row * ROWS_EACH).unwrap_or(u16::MAX);
        let rows = Area { y, height: (area.y + area.height).saturating_sub(y).min(2), ..area };
        host(model, paint, rows, &model.hosts.list[at]);
        if at == window.index && pane::is_focused(model, Pane::Hosts) {
            pane::cursor(paint, Area { height: 1, ..rows }, 3);
        }
    }
}

fn title(model: &Model, paint: &mut Paint<'_>, screen: &Screen) {
    let hosts = &model.hosts;
    let mut rest = Vec::new();
    if hosts.load == Load::Ready {
        rest.push((Role::Plain, format!("{} ", hosts.list.len())));
    }
    let down = hosts.list.iter().filter(|host| host.standing(model.now) == Standing::Down).count();
    if down > 0 {
        rest.extend([(Role::Border, "─ ".to_owned()), (Role::Bad, format!("{down} down "))]);
    }
    pane::title(model, paint, screen, Pane::Hosts, &rest);
}

/// Loading, none, and error: told apart.
fn nothing(model: &Model, paint: &mut Paint<'_>, area: Area) {
    let (x, room) = (area.x + 2, area.width.saturating_sub(3));
    match &model.hosts.load {
        Load::Loading => drop(paint.put(x, area.y, room, "reading the hosts…", Role::Dim)),
        Load::Failed(problem) => {
            let again = model.keymap.first(Mode::Main, Action::Redraw).unwrap_or_default();
            let place = Area { x, width: room, ..area };
            paint.error(place, problem, 1, Some((&again, "tries again")));
        }
        Load::Ready => drop(paint.put(x, area.y, room, "no hosts are configured", Role::Plain)),
    }
}

fn host(model: &Model, paint: &mut Paint<'_>, rows: Area, host: &Host) {
    let (glyph, role) = standing_glyph(host.standing(model.now));
    paint.put(rows.x + 1, rows.y, 1, &glyph.to_string(), role);
    let (name, x, end) =
        (host.view.name.as_str(), rows.x + 3, (rows.x + rows.width).saturating_sub(1));
    // Name first: what stands on its right is cut, not the name.
    let named = cells(name).min(end.saturating_sub(x));
    let room = end.saturating_sub(x + named + 1);
    let said = model.host_rows(host, usize::from(room));
    paint.put(x, rows.y, named, name, said.name);
    let needed: usize = said.first.iter().map(|(_, text)| columns(text)).sum();
    let needed = u16::try_from(needed).unwrap_or(u16::MAX).min(room);
    paint.row(Area { x: end - needed, width: needed, ..rows }, &said.first);
    if rows.height > 1 {
        let (y, width) = (rows.y + 1, end.saturating_sub(x));
        paint.row(Area { x, y, width, ..rows }, &said.second);
    }
}
