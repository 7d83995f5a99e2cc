//! The command palette.

use ratatui::layout::Position;
use tui_input::Input;

use super::paint::Paint;
use super::pane::{cursor, lines};
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
    let x = paint.spans(area.x, area.y, area.width, &[(Role::Accent, " :")]);
    let place = Area { x, width: (area.x + area.width).saturating_sub(x), ..area };
    let position = paint.field(place, input, Role::Plain);
    let found = model.palette(input.value());
    let below = Area { y: area.y + 1, height: area.height.saturating_sub(1), ..area };
    for (row, line) in lines(below, at) {
        let Some(offer) = found.get(row) else { break };
        let y = line.y;
        let refused = model.unavailable(offer.action()).is_some();
        let role = if refused { Role::Dim } else { Role::Plain };
        paint.put(area.x + 2, y, NAME, &offer.name(), role);
        let help = area.x + 3 + NAME;
        let room = (area.x + area.width).saturating_sub(help + 14);
        paint.put(help, y, room, &offer.help(), Role::Dim);
        let keys = match offer {
            Offer::Action(action) => model.keymap.spelled(Mode::Main, *action),
            _ => String::new(),
        };
        paint.put_right(Area { width: area.width.saturating_sub(1), ..area }, y, &keys, Role::Key);
        if row == at {
            cursor(paint, line, 1);
        }
    }
    if found.is_empty() {
        let problem = model.palette_problem(input.value());
        let (role, text) = match &problem {
            Some(problem) => (Role::Warn, problem.as_str()),
            None => (Role::Dim, "no command and no sandbox is called so"),
        };
        paint.put(area.x + 2, area.y + 1, area.width.saturating_sub(3), text, role);
    }
    position
}
