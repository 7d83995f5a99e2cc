//! A form: its fields with what is said of each, and below them what it would do.

use ratatui::layout::Position;

use super::paint::{Paint, cells};
use crate::tui::keymap::{Action, Mode};
use crate::tui::model::{Area, Field, FieldKind, Form, FormLayout, Model, Role};

/// Draws the form; answers where the text cursor is.
pub(super) fn draw(model: &Model, paint: &mut Paint<'_>, form: &Form) -> Option<Position> {
    let screen = model.screen();
    let (outer, area) = (screen.overlay(), screen.overlay_text());
    let key = |action| model.keymap.first(Mode::Form, action).unwrap_or_default();
    let (verb, leave, looks_again) = form.verbs();
    let mut hints = vec![(key(Action::Submit), verb), (key(Action::NextField), "next field")];
    hints.extend(looks_again.map(|words| (key(Action::Preview), words)));
    hints.push((key(Action::Leave), leave));
    let layout = form.layout(area, model.now);
    paint.overlay(outer, &form.title(), &hints);
    let mut cursor = None;
    for row in &layout.rows {
        let Some(field) = form.fields.list.get(row.at) else { continue };
        let focused = row.at == form.fields.focus;
        paint.put(area.x, row.y, 1, if focused { "▌" } else { " " }, Role::Accent);
        let place = one(paint, &layout, row.y, field, focused);
        cursor = cursor.or(place.filter(|_| focused));
        said(paint, &layout, row.y, field, &row.help);
    }
    paint.put(area.x, layout.rule, area.width, &"─".repeat(usize::from(area.width)), Role::Border);
    if layout.hidden > 0 {
        let fields = if layout.hidden == 1 { "field" } else { "fields" };
        let text = format!(" {} more {fields} ", layout.hidden);
        paint.put_right(area, layout.rule, &text, Role::Warn);
    }
    for (y, (role, text)) in (layout.below.y..).zip(&layout.notes) {
        paint.put(area.x, y, area.width, text, *role);
    }
    if layout.more > 0 || form.offset > 0 {
        let text = format!(" {} more lines, PgDn PgUp ", layout.more);
        paint.put_right(area, outer.y + outer.height.saturating_sub(1), &text, Role::Warn);
    }
    if form.is_asked() { None } else { cursor }
}

/// Draws a field's label and its value; answers where the text cursor is in it.
fn one(
    paint: &mut Paint<'_>,
    layout: &FormLayout,
    y: u16,
    field: &Field,
    focused: bool,
) -> Option<Position> {
    let (x, room) = (layout.value.x, layout.value.width);
    let label = format!("{}{}", field.label(), if field.required { " *" } else { "" });
    let role = match (&field.error, focused) {
        (Some(_), _) => Role::Bad,
        (None, true) => Role::Accent,
        (None, false) => Role::Plain,
    };
    paint.put(layout.below.x + 2, y, layout.label.saturating_sub(2), &label, role);
    let value = field.input.value();
    let is_choice = matches!(field.kind, FieldKind::Choice(_));
    let (shown, role) = match (value, field.default.as_str()) {
        ("", "") => ("…", Role::Dim),
        ("", default) => (default, Role::Dim),
        (value, _) if focused && !is_choice => (value, Role::Title),
        (value, _) => (value, Role::Plain),
    };
    if focused && !is_choice {
        let place = Area { x, y, width: room, height: 1 };
        let cursor = paint.field(place, &field.input, role);
        if value.is_empty() {
            paint.put(x, y, room, shown, role);
        }
        return Some(cursor);
    }
    let chosen = format!("‹ {shown} ›");
    paint.put(x, y, room, if focused { &chosen } else { shown }, role);
    None
}

/// Draws what is said of a field: below its value, or an error beside it where only one row is there.
fn said(paint: &mut Paint<'_>, layout: &FormLayout, y: u16, field: &Field, help: &[String]) {
    let (x, room) = (layout.value.x, layout.value.width);
    let role = if field.error.is_some() { Role::Bad } else { Role::Dim };
    for (y, text) in (y + 1..).zip(help) {
        paint.put(x, y, room, text, role);
    }
    if let Some(error) = field.error.as_ref().filter(|_| help.is_empty()) {
        let value = field.input.value();
        let shown = if value.is_empty() { field.default.as_str() } else { value };
        let used = cells(shown).min(room) + 2;
        paint.put(x + used, y, room.saturating_sub(used), &format!("✗ {error}"), role);
    }
}
