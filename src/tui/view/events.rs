//! The events: a row each, with who caused it and why; above them how far the State Hub has heard of them.

use ratatui::layout::Position;

use super::paint::Paint;
use super::{footer, pane};
use crate::tui::keymap::{Action, Mode};
use crate::tui::model::{Area, EventLog, EventRow, Load, Model, Role, day_and_time};

/// From this width on a row says when, to the second, and has a column for who.
const WIDE: u16 = 90;

/// Draws the overlay; answers where the text cursor is.
pub(super) fn draw(model: &Model, paint: &mut Paint<'_>, log: &EventLog) -> Option<Position> {
    let screen = model.screen();
    let (outer, area) = (screen.overlay(), screen.overlay_text());
    let key = |action| model.keymap.first(Mode::Events, action).unwrap_or_default();
    let hints = [
        (key(Action::NextClass), "removed, failed, …"),
        (key(Action::Filter), "filter"),
        (key(Action::Open), "its sandbox"),
        (key(Action::Close), "close"),
    ];
    paint.overlay(outer, &title(log), &hints);
    let hub = model.hub_lines();
    let below = model.event_rows();
    for (y, (role, text)) in (area.y..below.y).zip(&hub) {
        paint.put(area.x + 1, y, area.width.saturating_sub(1), text, *role);
    }
    rows(model, paint, below, log);
    let input = log.field.as_ref()?;
    let about = "kind: sandbox: by: host: reason: since:2h before:1d  ! negates ";
    paint.clear(screen.footer);
    Some(footer::filter(paint, screen.footer, input, about, log.filter().problem()))
}

fn title(log: &EventLog) -> String {
    let (shown, all) = log.count();
    let count = if shown == all { all.to_string() } else { format!("{shown} of {all}") };
    let count = if log.is_cut() { format!("{count}, older left out") } else { count };
    let filter = log.filter();
    let filter = if filter.is_empty() { String::new() } else { format!("  /{}", filter.text()) };
    let days = log.read.map_or(0, |read| read.get() / 86_400);
    format!("Events of {days} days  {count}  {}{filter}", log.group.title())
}

fn rows(model: &Model, paint: &mut Paint<'_>, area: Area, log: &EventLog) {
    let (shown, all) = log.count();
    let say = |paint: &mut Paint<'_>, role: Role, text: &str| {
        paint.put(area.x + 1, area.y, area.width.saturating_sub(2), text, role);
    };
    match &log.load {
        Load::Loading => return say(paint, Role::Dim, "reading what happened…"),
        Load::Failed(problem) => {
            let (x, width) = (area.x + 1, area.width.saturating_sub(2));
            paint.error(Area { x, width, ..area }, problem, 1, None);
            return;
        }
        Load::Ready if all == 0 => return say(paint, Role::Dim, "nothing happened"),
        Load::Ready if shown == 0 => {
            return say(paint, Role::Plain, "none of them is such an event");
        }
        Load::Ready => {}
    }
    for (y, at) in (area.y..area.y + area.height).zip(log.window.rows(shown)) {
        let Some(row) = log.at(at) else { continue };
        let line = Area { y, height: 1, ..area };
        line_of(model, paint, line, row);
        if at == log.window.index {
            pane::cursor(paint, line, 1);
        }
    }
}

fn line_of(model: &Model, paint: &mut Paint<'_>, area: Area, row: &EventRow) {
    let wide = area.width >= WIDE;
    let end = area.x + area.width;
    let mut x = area.x + 1;
    let mut put = |width: u16, text: &str, role: Role| {
        paint.put(x, area.y, width.min(end.saturating_sub(x)), text, role);
        x += width + 1;
    };
    let time = day_and_time(row.time, &model.zone);
    if wide {
        put(14, &time, Role::Dim);
    } else {
        put(5, time.get(6..11).unwrap_or(&time), Role::Dim);
    }
    put(1, &row.glyph.0.to_string(), row.glyph.1);
    put(if wide { 18 } else { 11 }, &row.what, Role::Plain);
    put(if wide { 18 } else { 10 }, &row.name, Role::Title);
    put(if wide { 16 } else { 11 }, &row.by, Role::Dim);
    put(end.saturating_sub(area.x), &row.why, Role::Plain);
}
