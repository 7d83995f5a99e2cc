//! A form of a verb on snapshots: its fields, and below them what it would do.

use ratatui::layout::Position;

use super::fields;
use super::paint::Paint;
use crate::tui::keymap::{Action, Mode};
use crate::tui::model::{ActionForm, ActionFormKind, Model, Role};

/// Draws the form; answers where the text cursor is.
pub(super) fn draw(
    model: &Model,
    paint: &mut Paint<'_>,
    action_form: &ActionForm,
) -> Option<Position> {
    let screen = model.screen();
    let (outer, area) = (screen.overlay(), screen.overlay_text());
    let key = |action| model.keymap.first(Mode::Form, action).unwrap_or_default();
    let mut hints = vec![
        (key(Action::Submit), action_form.verb()),
        (key(Action::NextField), "next field"),
        (key(Action::Leave), "leave"),
    ];
    if matches!(action_form.about, ActionFormKind::Restore(..)) {
        hints.push((key(Action::Preview), "compare again"));
    }
    paint.overlay(outer, &action_form.title(), &hints);
    let (cursor, below) = fields::draw(paint, area, &action_form.fields, 8);
    let count = fields::lines(paint, below, &action_form.lines(model.now), action_form.offset);
    let hidden = count.saturating_sub(action_form.offset + usize::from(below.height));
    if hidden > 0 || action_form.offset > 0 {
        let text = format!(" {hidden} more lines, PgDn PgUp ");
        paint.put_right(area, outer.y + outer.height.saturating_sub(1), &text, Role::Warn);
    }
    if action_form.submitting { None } else { cursor }
}
