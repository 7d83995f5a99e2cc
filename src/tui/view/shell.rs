//! Where in a sandbox a shell is opened.

use super::paint::Paint;
use super::pane::{cursor, lines};
use crate::tui::keymap::{Action, Mode};
use crate::tui::model::{Model, Role, ShellChoice};

/// Draws the overlay.
pub(super) fn draw(model: &Model, paint: &mut Paint<'_>, choice: &ShellChoice) {
    let whole = model.screen().whole;
    let rows = u16::try_from(choice.services.len() + 1).unwrap_or(u16::MAX);
    let outer = whole.centred(72, rows.saturating_add(2).min(whole.height.saturating_sub(4)));
    let key = |action| model.keymap.first(Mode::Shell, action).unwrap_or_default();
    let hints = [(key(Action::Choose), "open the shell"), (key(Action::Close), "leave")];
    paint.overlay(outer, &format!("A shell in {}: where?", choice.title), &hints);
    let area = outer.inner(1);
    for (row, line) in lines(area, choice.at).take_while(|(row, _)| *row <= choice.services.len()) {
        let (name, role, about) = match row.checked_sub(1).and_then(|at| choice.services.get(at)) {
            None => ("workspace", Role::Title, choice.workdir.clone()),
            Some(service) if service.state == "running" => {
                (service.name.as_str(), Role::Plain, "running".to_owned())
            }
            Some(service) => {
                let code =
                    service.exit_code.map(|code| format!(", exit {code}")).unwrap_or_default();
                (service.name.as_str(), Role::Dim, format!("{}{code}", service.state))
            }
        };
        paint.put(line.x + 2, line.y, 20, name, role);
        paint.put(line.x + 23, line.y, line.width.saturating_sub(24), &about, Role::Dim);
        if row == choice.at {
            cursor(paint, line, 1);
        }
    }
}
