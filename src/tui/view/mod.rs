//! The screen's map. Drawing takes a model and changes nothing.
//!
//! ```text
//! header      hosts, counts, clock
//! ╭ Sandboxes ───────────────╮╭ Snapshots ───────────╮
//! │ column titles            ││ the tree of lineage  │   (below 100 columns the snapshots share
//! │ rows                     ││                      │    the place of the activity)
//! ├ Activity ────────────────┤│                      │
//! │ jobs, then what happened ││                      │
//! ╰──────────────────────────╯╰──────────────────────╯
//! footer      keys, a toast, or the filter
//! ```

mod action_form;
mod activity;
mod confirm;
mod fields;
mod footer;
mod form;
mod header;
mod job_row;
mod jobs;
mod labels;
mod logs;
mod paint;
mod palette;
mod patches;
mod sandboxes;
mod shell;
mod snapshots;
mod text_block;
mod theme;

use ratatui::buffer::Buffer;
use ratatui::layout::Position;

use crate::domain::text::columns;
use crate::tui::model::{Model, Overlay, Pane, Role, SMALLEST};
use paint::Paint;
use theme::Theme;

/// Draws the model; answers where the text cursor is, if there is one.
pub fn draw(model: &Model, buf: &mut Buffer) -> Option<Position> {
    let theme = Theme::of(model.look);
    let mut paint = Paint { buf, theme };
    let cursor = if model.is_blind() {
        too_small(model, &mut paint);
        None
    } else {
        screen(model, &mut paint)
    };
    theme.fold(buf);
    let area = buf.area;
    cursor.filter(|at| area.contains(*at))
}

/// The size that is needed, in as many words as fit; and that it leaves, if it does.
fn too_small(model: &Model, paint: &mut Paint<'_>) {
    let (width, height) = model.size;
    let needed = format!("{}x{}", SMALLEST.0, SMALLEST.1);
    let texts = [
        format!("sandboxer needs {needed}, this is {width}x{height}"),
        format!("needs {needed}"),
        needed,
    ];
    let fits = texts.iter().find(|text| columns(text) <= usize::from(width)).or(texts.last());
    paint.put(0, height / 2, width, fits.map(String::as_str).unwrap_or_default(), Role::Warn);
    if let Some(words) = header::leaving(model) {
        paint.put(0, height / 2 + 1, width, &words, Role::Warn);
    }
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
    if screen.snapshots.height > 0 {
        if screen.is_folded() {
            let title = screen.snapshots.y - 1;
            if title > screen.frame.y {
                paint.rule(screen.frame, title, ('├', '┤'), Role::Border);
            }
        } else {
            paint.frame(screen.column, Role::Border);
        }
        snapshots::draw(model, paint, &screen);
    }
    if model.overlays.is_empty() {
        focus_edge(model, paint);
    } else {
        // What lies below an overlay steps back.
        let step_back = paint.style(Role::Dim);
        paint.tint(screen.panes, step_back);
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
    let pane = screen.rows(model.focus);
    if pane.height == 0 {
        return;
    }
    let top = if model.focus == Pane::Sandboxes { screen.titles.y } else { pane.y };
    for y in top..pane.y + pane.height {
        paint.put(pane.x.saturating_sub(1), y, 1, "│", Role::Focus);
        paint.put(pane.x + pane.width, y, 1, "│", Role::Focus);
    }
}

fn overlay_of(model: &Model, paint: &mut Paint<'_>, overlay: &Overlay) -> Option<Position> {
    match overlay {
        Overlay::Details(_)
        | Overlay::Snapshot(_)
        | Overlay::Text(_)
        | Overlay::Output(..)
        | Overlay::Help(_)
        | Overlay::Error(..) => {
            text_block::draw(model, paint, overlay);
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
        Overlay::ActionForm(action_form) => action_form::draw(model, paint, action_form),
        Overlay::Patches(patches) => {
            patches::draw(model, paint, patches);
            None
        }
        Overlay::Palette(input, at) => Some(palette::draw(model, paint, input, *at)),
    }
}
