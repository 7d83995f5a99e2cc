//! The fields of a form, and what stands below them.

use ratatui::layout::Position;

use super::footer::skip_columns;
use super::paint::Paint;
use crate::domain::text::{clean_line, columns};
use crate::tui::model::{Area, Choice, Field, Fields, Role, wrap};

/// Cells for the labels.
const LABEL: u16 = 18;
/// And where there is little room.
const SHORT_LABEL: u16 = 11;
/// Below this width there is.
const ROOMY: u16 = 56;

/// Draws fields and a line below them, with at least `below` rows left; answers where the text cursor is, and what is left.
/// A field takes a row and one for its help or error; where that does not fit, only the focused one has both.
pub(super) fn draw(
    paint: &mut Paint<'_>,
    area: Area,
    fields: &Fields,
    below: u16,
) -> (Option<Position>, Area) {
    let count = u16::try_from(fields.list.len()).unwrap_or(u16::MAX);
    let tall = area.height >= count.saturating_mul(2).saturating_add(below);
    let needed = if tall { count * 2 } else { count.saturating_add(1) };
    let room = needed.min(area.height.saturating_sub(3));
    let mut cursor = None;
    let mut y = area.y;
    let first = first_field(fields, room, tall);
    for (at, field) in fields.list.iter().enumerate().skip(first) {
        let both = tall || at == fields.focus;
        if y + u16::from(both) >= area.y + room {
            break;
        }
        let place = one(paint, area, y, field, at == fields.focus, both);
        cursor = if at == fields.focus { place } else { cursor };
        y += if both { 2 } else { 1 };
    }
    let below = Area { y: area.y + room, height: area.height - room, ..area };
    paint.put(below.x, below.y, below.width, &"─".repeat(usize::from(below.width)), Role::Border);
    (cursor, Area { y: below.y + 1, height: below.height.saturating_sub(1), ..below })
}

/// Draws lines from the one at `offset` on, wrapped; answers how many rows they take in all.
pub(super) fn lines(
    paint: &mut Paint<'_>,
    area: Area,
    lines: &[(Role, String)],
    offset: usize,
) -> usize {
    let mut row: usize = 0;
    for (role, text) in lines {
        let text = clean_line(text, 4000);
        let indent = " ".repeat(text.len() - text.trim_start().len());
        for part in wrap(text.trim_start(), usize::from(area.width).saturating_sub(indent.len())) {
            if let Some(shown) =
                row.checked_sub(offset).filter(|shown| *shown < usize::from(area.height))
            {
                let y = area.y + u16::try_from(shown).unwrap_or(0);
                paint.put(area.x, y, area.width, &format!("{indent}{part}"), *role);
            }
            row += 1;
        }
    }
    row
}

/// The first field on the screen, so that the focused one is on it.
fn first_field(fields: &Fields, room: u16, tall: bool) -> usize {
    let rows = usize::from(room);
    let fit = if tall { rows / 2 } else { rows.saturating_sub(1) };
    (fields.focus + 1).saturating_sub(fit.max(1))
}

fn one(
    paint: &mut Paint<'_>,
    area: Area,
    y: u16,
    field: &Field,
    focused: bool,
    both: bool,
) -> Option<Position> {
    let label = format!("{}{}", field.label(), if field.required { " *" } else { "" });
    let role = match (&field.error, focused) {
        (Some(_), _) => Role::Bad,
        (None, true) => Role::Accent,
        (None, false) => Role::Plain,
    };
    paint.put(area.x, y, 1, if focused { "▌" } else { " " }, Role::Accent);
    let labels = if area.width < ROOMY { SHORT_LABEL } else { LABEL };
    paint.put(area.x + 2, y, labels - 2, &label, role);
    let (x, room) = (area.x + labels + 1, area.width.saturating_sub(labels + 1));
    let value = field.input.value();
    let scroll = field.input.visual_scroll(usize::from(room.saturating_sub(1)));
    let choices = matches!(field.choice, Choice::OneOf(_));
    if value.is_empty() {
        let shown = if field.default.is_empty() { "…" } else { field.default.as_str() };
        let shown = if choices && focused { format!("‹ {shown} ›") } else { shown.to_owned() };
        paint.put(x, y, room, &shown, Role::Dim);
    } else if choices {
        let shown = if focused { format!("‹ {value} ›") } else { value.to_owned() };
        paint.put(x, y, room, &shown, Role::Plain);
    } else {
        let shown = if focused { skip_columns(value, scroll) } else { value.to_owned() };
        paint.put(x, y, room, &shown, if focused { Role::Title } else { Role::Plain });
    }
    // Where only one row is there, an error beside a short value still shows.
    match (&field.error, both) {
        (Some(error), true) => paint.put(x, y + 1, room, &format!("✗ {error}"), Role::Bad),
        (None, true) => paint.put(x, y + 1, room, &field.help, Role::Dim),
        (Some(error), false) => {
            let used = u16::try_from(columns(value)).unwrap_or(room).min(room) + 2;
            paint.put(x + used, y, room.saturating_sub(used), &format!("✗ {error}"), Role::Bad)
        }
        (None, false) => 0,
    };
    let at = u16::try_from(field.input.visual_cursor().saturating_sub(scroll)).unwrap_or(0);
    (focused && !choices).then(|| Position::new(x + at.min(room.saturating_sub(1)), y))
}
