//! The screen's map. Drawing takes a model and changes nothing.
//!
//! ```text
//! header      hosts, counts, clock
//! ╭ Sandboxes ───────────────╮
//! │ column titles            │   (from 100 columns on, the panes to come stand to the right)
//! │ rows                     │
//! ├ Activity ────────────────┤
//! │ jobs, then what happened │
//! ╰──────────────────────────╯
//! footer      keys, a toast, or the filter
//! ```

mod activity;
mod confirm;
mod footer;
mod form;
mod header;
mod jobs;
mod labels;
mod logs;
mod paint;
mod palette;
mod paper;
mod sandboxes;
mod shell;
mod theme;

use ratatui::buffer::Buffer;
use ratatui::layout::Position;

use crate::tui::model::{Model, Overlay, Pane, Role};
use paint::Paint;
use theme::Theme;

/// Draws the model; answers where the text cursor is, if there is one.
pub fn draw(model: &Model, buf: &mut Buffer) -> Option<Position> {
    let theme = Theme::of(model.look);
    let mut paint = Paint { buf, theme };
    let cursor = if model.screen().header.height == 0 {
        too_small(model, &mut paint);
        None
    } else {
        screen(model, &mut paint)
    };
    theme.fold(buf);
    let area = buf.area;
    cursor.filter(|at| area.contains(*at))
}

fn too_small(model: &Model, paint: &mut Paint<'_>) {
    let (width, height) = model.size;
    let text = format!("sandboxer needs 60x15, this is {width}x{height}");
    paint.put(0, height / 2, width, &text, Role::Warn);
}

fn screen(model: &Model, paint: &mut Paint<'_>) -> Option<Position> {
    let screen = model.screen();
    header::draw(model, paint, screen.header);
    paint.frame(screen.frame, Role::Border);
    if screen.list.height > 0 || screen.titles.height > 0 {
        sandboxes::draw(model, paint, &screen);
    }
    if screen.activity.height > 0 {
        let title = screen.activity.y - 1;
        if title > screen.frame.y {
            paint.rule(screen.frame, title, ('├', '┤'), Role::Border);
        }
        activity::draw(model, paint, &screen, title);
    }
    if model.overlays.is_empty() {
        focus_edge(model, paint);
    } else {
        // What lies below an overlay steps back.
        let step_back = paint.style(Role::Dim);
        paint.tint(screen.frame, step_back);
    }
    let mut cursor = footer::draw(model, paint, screen.footer);
    for overlay in &model.overlays {
        cursor = overlay_of(model, paint, overlay);
    }
    cursor
}

/// The focused pane's frame has another colour, its left edge at least.
fn focus_edge(model: &Model, paint: &mut Paint<'_>) {
    let screen = model.screen();
    let pane = if model.focus == Pane::Sandboxes { screen.list } else { screen.activity };
    if pane.height == 0 {
        return;
    }
    let top = if model.focus == Pane::Sandboxes { screen.titles.y } else { pane.y };
    for y in top..pane.y + pane.height {
        paint.put(screen.frame.x, y, 1, "│", Role::Focus);
        paint.put(screen.frame.x + screen.frame.width - 1, y, 1, "│", Role::Focus);
    }
}

fn overlay_of(model: &Model, paint: &mut Paint<'_>, overlay: &Overlay) -> Option<Position> {
    match overlay {
        Overlay::Details(_) | Overlay::Output(..) | Overlay::Help(_) | Overlay::Error(..) => {
            paper::draw(model, paint, overlay);
            None
        }
        Overlay::Create(form) => form::draw(model, paint, form),
        Overlay::Confirm(confirm) => confirm::draw(model, paint, confirm),
        Overlay::Jobs(at) => {
            jobs::draw(model, paint, *at);
            None
        }
        Overlay::Logs(logs) => logs::draw(model, paint, logs),
        Overlay::Shell(choice) => {
            shell::draw(model, paint, choice);
            None
        }
        Overlay::Labels(labels) => labels::draw(model, paint, labels),
        Overlay::Palette(input, at) => Some(palette::draw(model, paint, input, *at)),
    }
}
