//! All operations: those of this console, and those of other processes.

use super::job_row;
use super::paint::Paint;
use super::pane::cursor;
use crate::tui::keymap::{Action, Mode};
use crate::tui::model::{Area, Model, Role};

/// Draws the overlay; `at` is the row under the cursor.
pub(super) fn draw(model: &Model, paint: &mut Paint<'_>, at: usize) {
    let screen = model.screen();
    let (outer, area) = (screen.overlay(), screen.overlay_text());
    let key = |action| model.keymap.first(Mode::Jobs, action).unwrap_or_default();
    let hints = [
        (key(Action::Close), "close"),
        (key(Action::Open), "output"),
        (key(Action::CancelJob), "cancel"),
    ];
    let running = model.jobs.running().count();
    paint.overlay(
        outer,
        &format!("Jobs  {running} running of {}", model.jobs.list().len()),
        &hints,
    );
    if model.jobs.list().len() == 0 {
        paint.put(
            area.x + 1,
            area.y + 1,
            area.width.saturating_sub(2),
            "nothing was done in the last day",
            Role::Dim,
        );
        return;
    }
    let height = usize::from(area.height);
    let offset = at.saturating_sub(height.saturating_sub(1));
    for (row, job) in model.jobs.list().skip(offset).take(height).enumerate() {
        let y = area.y + u16::try_from(row).unwrap_or(u16::MAX);
        job_row::draw(model, paint, Area { y, height: 1, ..area }, job);
        if offset + row == at {
            cursor(paint, Area { y, height: 1, ..area }, 1);
        }
    }
}
