//! The command palette.

use ratatui::layout::Position;
use tui_input::Input;

use super::footer::skip_columns;
use super::paint::Paint;
use super::pane::cursor;
use crate::tui::keymap::Mode;
use crate::tui::model::{Area, Model, Offer, Role};

/// Cells for the names.
const NAME: u16 = 20;

/// Draws it; answers where the text cursor is.
pub(super) fn draw(model: &Model, paint: &mut Paint<'_>, input: &Input, at: usize) -> Position {
    let whole = model.screen().whole;
    let outer = Area { y: whole.height / 6, ..whole.centred(76, (whole.height * 2 / 3).min(20)) };
    paint.overlay(outer, "Commands", &[("enter".to_owned(), "do it"), ("esc".to_owned(), "leave")]);
    let area = outer.inner(1);
    let room = area.width.saturating_sub(3);
    let scroll = input.visual_scroll(usize::from(room));
    let x = paint.spans(area.x, area.y, area.width, &[(Role::Accent, " :")]);
    paint.put(x, area.y, room, &skip_columns(input.value(), scroll), Role::Plain);
    let found = model.palette(input.value());
    let height = usize::from(area.height.saturating_sub(1));
    let offset = at.saturating_sub(height.saturating_sub(1));
    for (row, offer) in found.iter().skip(offset).take(height).enumerate() {
        let y = area.y + 1 + u16::try_from(row).unwrap_or(u16::MAX);
        let refused = model.unavailable(offer.action()).is_some();
        let role = if refused { Role::Dim } else { Role::Plain };
        paint.put(area.x + 2, y, NAME, &offer.name(), role);
        let help = area.x + 3 + NAME;
        paint.put(
            help,
            y,
            (area.x + area.width).saturating_sub(help + 14),
            &offer.help(),
            Role::Dim,
        );
        let keys = match offer {
            Offer::Action(action) => model.keymap.spelled(Mode::Main, *action),
            Offer::Host(_)
            | Offer::Filter(_)
            | Offer::Sort(_)
            | Offer::Restore(..)
            | Offer::Jump(..) => String::new(),
        };
        paint.put_right(Area { width: area.width.saturating_sub(1), ..area }, y, &keys, Role::Key);
        if offset + row == at {
            cursor(paint, Area { y, height: 1, ..area }, 1);
        }
    }
    if found.is_empty() {
        let problem = model.palette_problem(input.value());
        let (role, text) = match &problem {
            Some(problem) => (Role::Warn, problem.as_str()),
            None => (Role::Dim, "no command and no sandbox is called so"),
        };
        paint.put(area.x + 2, area.y + 1, room, text, role);
    }
    let cursor = u16::try_from(input.visual_cursor().saturating_sub(scroll)).unwrap_or(0);
    Position::new(x + cursor, area.y)
}
