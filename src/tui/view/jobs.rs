//! All operations: those of this console, and those of other processes.

use super::job_row;
use super::paint::Paint;
use super::pane::{cursor, lines};
use crate::tui::keymap::{Action, Mode};
use crate::tui::model::{Model, Role};

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
    let jobs: Vec<_> = model.jobs.list().collect();
    paint.overlay(outer, &format!("Jobs  {running} running of {}", jobs.len()), &hints);
    if jobs.is_empty() {
        let (room, words) = (area.width.saturating_sub(2), "nothing was done in the last day");
        paint.put(area.x + 1, area.y + 1, room, words, Role::Dim);
    }
    for (row, line) in lines(area, at) {
        let Some(job) = jobs.get(row) else { break };
        job_row::draw(model, paint, line, job);
        if row == at {
            cursor(paint, line, 1);
        }
    }
}
