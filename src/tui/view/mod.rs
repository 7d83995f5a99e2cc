//! The screen's map. Drawing takes a model and changes nothing.
//!
//! ```text
//! header      hosts, counts, the sweep, clock
//! ╭ Sandboxes ───────────────────────────────────────────────╮
//! │ column titles                                            │
//! │ rows                                                     │
//! ├ the row under the cursor ────────────────────────────────┤   (from 200 columns on: details beside the list)
//! │ what is wrong with it, or how it is reached; keys        │
//! ├ Activity ───────────────╮╭ Snapshots ────╮╭ Hosts ───────┤   (from 160 on: hosts, snapshots, credits on the right,
//! │ jobs, then what happened││ lineage       │├ Credits ─────┤    below 100: one of them, the others as tabs)
//! ╰─────────────────────────╯╰───────────────╯╰──────────────╯
//! footer      keys, a toast, or the filter
//! ```

mod activity;
mod confirm;
mod credits;
mod events;
mod focus_strip;
mod footer;
mod form;
mod header;
mod hosts;
mod job_row;
mod jobs;
mod logs;
mod paint;
mod palette;
mod pane;
mod patches;
mod picker;
mod reap;
mod sandboxes;
mod search;
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
    let theme = Theme::of(model.appearance);
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
    pane::frames(model, paint, &screen);
    for shown in Pane::ALL.iter().filter(|pane| screen.rows(**pane).height > 0) {
        match shown {
            Pane::Sandboxes => sandboxes::draw(model, paint, &screen),
            Pane::Snapshots => snapshots::draw(model, paint, &screen),
            Pane::Hosts => hosts::draw(model, paint, &screen),
            Pane::Credits => credits::draw(model, paint, &screen),
            Pane::Activity => activity::draw(model, paint, &screen),
        }
    }
    focus_strip::draw(model, paint, &screen);
    if !model.overlays.is_empty() {
        // What lies below an overlay steps back.
        let step_back = paint.style(Role::Dim);
        paint.tint(screen.panes, step_back);
    }
    let mut cursor = footer::draw(model, paint, screen.footer);
    for overlay in &model.overlays {
        cursor = overlay_of(model, paint, overlay);
    }
    search::draw(model, paint).or(cursor)
}

fn overlay_of(model: &Model, paint: &mut Paint<'_>, overlay: &Overlay) -> Option<Position> {
    match overlay {
        Overlay::Details(_)
        | Overlay::Snapshot(_)
        | Overlay::Text(_)
        | Overlay::Host(_)
        | Overlay::Output(..)
        | Overlay::Help(_)
        | Overlay::Error(..) => {
            text_block::draw(model, paint, overlay);
            None
        }
        Overlay::Picker(picker) => picker::draw(model, paint, picker),
        Overlay::Form(form) => form::draw(model, paint, form),
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
        Overlay::Patches(patches) => {
            patches::draw(model, paint, patches);
            None
        }
        Overlay::Reap => {
            reap::draw(model, paint);
            None
        }
        Overlay::Events(log) => events::draw(model, paint, log),
        Overlay::Palette(input, at) => Some(palette::draw(model, paint, input, *at)),
    }
}
