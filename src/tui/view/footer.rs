//! The last row: the filter's field, a toast, or the keys that matter now.

use ratatui::layout::Position;

use super::paint::Paint;
use crate::domain::text::columns;
use crate::tui::model::{Area, Model, Role};

/// Draws the footer; answers where the text cursor is.
pub(super) fn draw(model: &Model, paint: &mut Paint<'_>, area: Area) -> Option<Position> {
    if let Some(field) = &model.filter_field {
        let x = paint.spans(area.x, area.y, area.width, &[(Role::Accent, " /")]);
        let room = area.width.saturating_sub(3);
        let scroll = field.visual_scroll(usize::from(room));
        let text: String = skip_columns(field.value(), scroll);
        paint.put(x, area.y, room, &text, Role::Plain);
        let used = u16::try_from(columns(field.value())).unwrap_or(u16::MAX);
        let about = "host: state: profile: label: by:  ! negates  enter keeps, esc clears ";
        if let Some(problem) = model.filter().problem() {
            let told = Area { x: x + used + 2, width: room.saturating_sub(used + 2), ..area };
            paint.put_right(told, area.y, &format!("⚠ {problem} "), Role::Warn);
        } else if usize::from(used) + columns(about) < usize::from(room) {
            paint.put_right(area, area.y, about, Role::Dim);
        }
        let at = u16::try_from(field.visual_cursor().saturating_sub(scroll)).unwrap_or(0);
        return Some(Position::new(x + at, area.y));
    }
    if let Some(toast) = &model.toast {
        paint.put(area.x + 1, area.y, area.width.saturating_sub(2), &toast.text, toast.role);
        return None;
    }
    for hint in model.hints() {
        let refused = model.unavailable(hint.action).is_some();
        let role = if refused { Role::Dim } else { Role::Key };
        let Area { x, y, width, .. } = hint.area;
        let spans = [(role, hint.key.as_str()), (Role::Plain, " "), (Role::Dim, hint.what)];
        paint.spans(x, y, width, &spans);
    }
    None
}

/// A text without its first columns.
pub(super) fn skip_columns(text: &str, skip: usize) -> String {
    let mut left = skip;
    text.chars()
        .skip_while(|c| {
            let wide = columns(&c.to_string());
            let skipped = left > 0;
            left = left.saturating_sub(wide);
            skipped
        })
        .collect()
}
