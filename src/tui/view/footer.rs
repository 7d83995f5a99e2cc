//! The last row: the filter's field, a toast, or the keys that matter now.

use ratatui::layout::Position;
use tui_input::Input;

use super::paint::{Paint, cells};
use crate::tui::model::{Area, Model, Role};

/// Draws the footer; answers where the text cursor is.
pub(super) fn draw(model: &Model, paint: &mut Paint<'_>, area: Area) -> Option<Position> {
    if let Some(input) = &model.filter_field {
        let about = "host: state: profile: label: by:  ! negates  enter keeps, esc clears ";
        return Some(filter(paint, area, input, about, model.filter().problem()));
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

/// Draws a filter's text field; beside it what is wrong with it, or what it may say. Answers where the text cursor is.
pub(super) fn filter(
    paint: &mut Paint<'_>,
    area: Area,
    input: &Input,
    about: &str,
    problem: Option<&str>,
) -> Position {
    let x = paint.spans(area.x, area.y, area.width, &[(Role::Accent, " /")]);
    let room = Area { x, width: (area.x + area.width).saturating_sub(x), ..area };
    let used = cells(input.value()).saturating_add(2).min(room.width);
    let cursor = paint.field(room, input, Role::Plain);
    if let Some(problem) = problem {
        let told = Area { x: x + used, width: room.width - used, ..area };
        paint.put_right(told, area.y, &format!("⚠ {problem} "), Role::Warn);
    } else if used.saturating_add(cells(about)) <= room.width {
        paint.put_right(area, area.y, about, Role::Dim);
    }
    cursor
}
