//! Activity: a row for each operation, and one for each event that belongs to none.

use super::job_row;
use super::paint::Paint;
use super::pane;
use crate::tui::model::{ActivityRow, Area, Job, Model, Pane, Role, Screen};

/// Draws the pane.
pub(super) fn draw(model: &Model, paint: &mut Paint<'_>, screen: &Screen) {
    let area = screen.activity;
    let running: Vec<&Job> = model.jobs.running().collect();
    let count =
        (!running.is_empty()).then(|| (Role::Busy, format!("─ {} running ", running.len())));
    pane::title(model, paint, screen, Pane::Activity, &Vec::from_iter(count));

    rows(model, paint, area);
}

/// Draws the rows, or why there are none.
fn rows(model: &Model, paint: &mut Paint<'_>, area: Area) {
    let rows = model.activity.rows();
    if rows.is_empty() {
        let text = if model.activity.loaded {
            "nothing happened in the last day"
        } else {
            "reading what happened…"
        };
        paint.put(area.x + 3, area.y, area.width.saturating_sub(4), text, Role::Dim);
        return;
    }
    for (place, y) in (area.y..area.y + area.height).enumerate() {
        let at = model.activity.offset + place;
        let Some(row) = rows.get(at) else { break };
        let line = Area { y, height: 1, ..area };
        match row {
            ActivityRow::SinceLastLook => {
                let since = model.activity.since.as_ref();
                job_row::draw_since(paint, line, since.map_or("", |since| &since.text));
            }
            ActivityRow::Job(id) => {
                if let Some(job) = model.jobs.get(*id) {
                    job_row::draw(model, paint, line, job);
                }
            }
            ActivityRow::Line(number) => {
                if let Some(event) = model.activity.line(*number) {
                    job_row::draw_line(model, paint, line, event);
                }
            }
        }
        if at == model.activity.index && pane::is_focused(model, Pane::Activity) {
            pane::cursor(paint, line, 1);
        }
    }
}
