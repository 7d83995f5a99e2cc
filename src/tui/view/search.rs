//! Search in the overlay on top: its text field or its count on the lower edge, and what it matches.

use ratatui::layout::Position;

use super::paint::{Paint, cells};
use crate::tui::model::{Area, Model, Overlay, Role, Search, SearchPattern, line_text};

/// Draws the search, if there is one; answers where the text cursor is.
pub(super) fn draw(model: &Model, paint: &mut Paint<'_>) -> Option<Position> {
    let search = model.search()?;
    let screen = model.screen();
    let (outer, area) = (screen.overlay(), screen.overlay_text());
    let found = model.found().len();
    match model.block() {
        Some(block) => {
            let last = block.last_offset(usize::from(area.height));
            let top = model.overlays.last().map(|overlay| overlay.offset(last)).unwrap_or_default();
            for (at, one) in block.matches(&search.pattern).into_iter().enumerate() {
                let role = if search.found == Some(at) { Role::Found } else { Role::Match };
                for (row, part) in &one.parts {
                    let Some(y) = row.checked_sub(top).and_then(|row| u16::try_from(row).ok())
                    else {
                        continue;
                    };
                    let Some(line) = block.lines.get(*row).filter(|_| y < area.height) else {
                        continue;
                    };
                    let text = line_text(line);
                    let (before, inside) = (&text[..part.start], &text[part.clone()]);
                    let x = cells(before).min(area.width);
                    paint.put(area.x + x, area.y + y, area.width - x, inside, role);
                }
            }
        }
        None => mark_rows(paint, area, &search.pattern),
    }
    let edge = Area {
        x: outer.x + 2,
        y: outer.y + outer.height.saturating_sub(1),
        height: 1,
        width: outer.width.saturating_sub(4),
    };
    let count = count(search, found);
    let taken = cells(&count).min(edge.width);
    let role = if found == 0 && !search.pattern.is_empty() { Role::Warn } else { Role::Dim };
    let Some(field) = &search.field else {
        let text = format!(" /{}  {count} ", search.pattern.text());
        paint.put_right(edge, edge.y, &text, role);
        return None;
    };
    paint.clear(edge);
    let x = paint.spans(edge.x, edge.y, edge.width, &[(Role::Accent, " /")]);
    let width = (edge.x + edge.width).saturating_sub(x + taken + 2);
    let cursor = paint.field(Area { x, width, ..edge }, field, Role::Title);
    paint.put_right(edge, edge.y, &format!("{count} "), role);
    Some(cursor)
}

/// `3 of 17`, `17` where none was found last, `none`.
pub(super) fn place_among(at: Option<usize>, of: usize) -> String {
    match at {
        Some(at) => format!("{} of {of}", at + 1),
        None if of == 0 => "none".to_owned(),
        None => of.to_string(),
    }
}

/// How many matches there are, and which was found last; nothing where nothing is searched for.
fn count(search: &Search<Overlay>, of: usize) -> String {
    if search.pattern.is_empty() {
        return String::new();
    }
    place_among(search.found.filter(|at| *at < of), of)
}

/// Marks what the rows of a list show of a pattern.
fn mark_rows(paint: &mut Paint<'_>, area: Area, pattern: &SearchPattern) {
    let style = paint.style(Role::Match);
    for y in area.y..area.y + area.height {
        let mut text = String::new();
        let mut cells = Vec::new();
        for x in area.x..area.x + area.width {
            let Some(cell) = paint.buf.cell((x, y)) else { continue };
            cells.push((text.len(), x));
            text.push_str(cell.symbol());
        }
        let mut from = 0;
        while let Some(place) = pattern.next_in(&text, from) {
            from = place.end;
            let inside = cells.iter().filter(|(at, _)| place.contains(at));
            for (_, x) in inside {
                paint.tint(Area { x: *x, y, width: 1, height: 1 }, style);
            }
        }
    }
}
