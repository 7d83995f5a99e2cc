//! Activity: a row for each operation, and one for each event that belongs to none.

use super::job_row;
use super::paint::Paint;
use crate::tui::model::{ActivityRow, Area, Job, Model, Pane, Role, Screen};

/// Draws the pane; `title` is the row of its title.
pub(super) fn draw(model: &Model, paint: &mut Paint<'_>, screen: &Screen, title: u16) {
    let area = screen.activity;
    let running: Vec<&Job> = model.jobs.running().collect();
    let focused = model.focus == Pane::Activity && model.overlays.is_empty();
    let mut spans =
        vec![(if focused { Role::Accent } else { Role::Title }, " Activity ".to_owned())];
    if !running.is_empty() {
        spans.push((Role::Busy, format!("{} running ", running.len())));
    }
    for other in others(screen, Pane::Activity) {
        spans.push((Role::Border, "─ ".to_owned()));
        spans.push((Role::Dim, format!("{other} (tab) ")));
    }
    let spans: Vec<(Role, &str)> =
        spans.iter().map(|(role, text)| (*role, text.as_str())).collect();
    paint.spans(screen.frame.x + 2, title, screen.frame.width.saturating_sub(4), &spans);

    rows(model, paint, area);
}

/// Draws the rows, or why there are none.
fn rows(model: &Model, paint: &mut Paint<'_>, area: Area) {
    let focused = model.focus == Pane::Activity && model.overlays.is_empty();
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
        if focused && at == model.activity.index {
            paint.put(area.x, y, 1, "▌", Role::Accent);
            let style = paint.style(Role::Selected);
            paint.tint(Area { x: area.x + 1, width: area.width - 1, ..line }, style);
        }
    }
}

/// The panes that have no place on the screen beside this one: they are tabs of it.
pub(super) fn others(screen: &Screen, pane: Pane) -> Vec<&'static str> {
    let all = [
        (Pane::Sandboxes, "Sandboxes"),
        (Pane::Snapshots, "Snapshots"),
        (Pane::Activity, "Activity"),
    ];
    let hidden =
        all.into_iter().filter(|(other, _)| *other != pane && screen.rows(*other).height == 0);
    hidden.map(|(_, name)| name).collect()
}
