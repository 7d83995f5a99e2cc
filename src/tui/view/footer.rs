//! The last row: the filter's field, a toast, or the keys that matter now.

use ratatui::layout::Position;

use super::paint::Paint;
use crate::domain::text::columns;
use crate::tui::keymap::{Action, Mode};
use crate::tui::model::{Area, Model, Pane, Role};

/// The footer's keys in the list, the most important first.
const LIST: &[(Action, &str)] = &[
    (Action::Create, "new"),
    (Action::Open, "details"),
    (Action::Destroy, "destroy"),
    (Action::Logs, "logs"),
    (Action::Shell, "shell"),
    (Action::Filter, "filter"),
    (Action::Help, "help"),
    (Action::Snapshot, "snapshot"),
    (Action::Sleep, "sleep"),
    (Action::Wake, "wake"),
    (Action::Mark, "mark"),
    (Action::Labels, "labels"),
    (Action::Patches, "patches"),
    (Action::Recreate, "rebuild"),
    (Action::Sort, "sort"),
    (Action::CopySsh, "copy ssh"),
    (Action::Jobs, "jobs"),
    (Action::Palette, "commands"),
    (Action::Quit, "quit"),
];

/// The footer's keys in the snapshots.
const SNAPSHOTS: &[(Action, &str)] = &[
    (Action::Restore, "restore"),
    (Action::Open, "details"),
    (Action::Patches, "patches"),
    (Action::Destroy, "delete"),
    (Action::Filter, "filter"),
    (Action::Help, "help"),
    (Action::Mark, "mark"),
    (Action::CopyId, "copy id"),
    (Action::CancelJob, "cancel"),
    (Action::Jobs, "jobs"),
    (Action::Palette, "commands"),
    (Action::Quit, "quit"),
];

/// The footer's keys on a sandbox's row of the snapshots.
const BASED: &[(Action, &str)] = &[
    (Action::Snapshot, "snapshot"),
    (Action::Open, "details"),
    (Action::Patches, "patches"),
    (Action::Sleep, "sleep"),
    (Action::Wake, "wake"),
    (Action::Destroy, "destroy"),
    (Action::Logs, "logs"),
    (Action::Shell, "shell"),
    (Action::Help, "help"),
    (Action::Recreate, "rebuild"),
    (Action::Filter, "filter"),
    (Action::Quit, "quit"),
];

/// The footer's keys in the activity.
const ACTIVITY: &[(Action, &str)] = &[
    (Action::Open, "why, or what it made"),
    (Action::Logs, "output"),
    (Action::CancelJob, "cancel"),
    (Action::Jobs, "jobs"),
    (Action::Recreate, "rebuild"),
    (Action::Destroy, "destroy"),
    (Action::NextPane, "sandboxes"),
    (Action::Help, "help"),
    (Action::Quit, "quit"),
];

/// Draws the footer; answers where the text cursor is.
pub(super) fn draw(model: &Model, paint: &mut Paint<'_>, area: Area) -> Option<Position> {
    if let Some(field) = &model.filter_field {
        let x = paint.spans(area.x, area.y, area.width, &[(Role::Accent, " /")]);
        let room = area.width.saturating_sub(3);
        let scroll = field.visual_scroll(usize::from(room));
        let text: String = skip_columns(field.value(), scroll);
        paint.put(x, area.y, room, &text, Role::Plain);
        let used = u16::try_from(columns(field.value())).unwrap_or(u16::MAX);
        if used + 48 < room {
            paint.put_right(
                area,
                area.y,
                "host: state: profile: label:  enter keeps, esc clears ",
                Role::Dim,
            );
        }
        let at = u16::try_from(field.visual_cursor().saturating_sub(scroll)).unwrap_or(0);
        return Some(Position::new(x + at, area.y));
    }
    if let Some(toast) = &model.toast {
        paint.put(area.x + 1, area.y, area.width.saturating_sub(2), &toast.text, toast.role);
        return None;
    }
    if model.overlays.is_empty() {
        keys(model, paint, area);
    }
    None
}

fn keys(model: &Model, paint: &mut Paint<'_>, area: Area) {
    let table = match model.focus {
        Pane::Sandboxes => LIST,
        Pane::Snapshots if model.snapshots.selected().is_some_and(|row| row.at.is_some()) => BASED,
        Pane::Snapshots => SNAPSHOTS,
        Pane::Activity => ACTIVITY,
    };
    let end = area.x + area.width;
    let mut x = area.x + 1;
    for (action, what) in table {
        let Some(key) = model.keymap.first(Mode::Main, *action) else { continue };
        let needed = u16::try_from(columns(&key) + columns(what) + 1).unwrap_or(u16::MAX);
        if x.saturating_add(needed) > end {
            continue;
        }
        let refused = model.unavailable(*action).is_some();
        let role = if refused { Role::Dim } else { Role::Key };
        x = paint.spans(
            x,
            area.y,
            end.saturating_sub(x),
            &[(role, &key), (Role::Plain, " "), (Role::Dim, what)],
        ) + 2;
    }
}

/// A text without its first columns.
pub(super) fn skip_columns(text: &str, skip: usize) -> String {
    let mut left = skip;
    text.chars()
        .skip_while(|c| {
            let wide = columns(&c.to_string());
            let skipped = left > 0;
            left = left.saturating_sub(wide);
            skipped
        })
        .collect()
}
