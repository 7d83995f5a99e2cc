//! Hints: the keys that matter now, as the footer shows them and a click finds them.

use super::{Area, Model, Pane};
use crate::domain::text::columns;
use crate::tui::keymap::{Action, Mode};

/// A key of the footer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hint {
    pub action: Action,
    /// The key, as printed.
    pub key: String,
    /// Word or two for the action.
    pub what: &'static str,
    pub area: Area,
}

/// Keys of the list, the most important first.
const LIST: &[(Action, &str)] = &[
    (Action::Create, "new"),
    (Action::Snapshot, "snapshot"),
    (Action::Restore, "restore"),
    (Action::Destroy, "destroy"),
    (Action::Reap, "reap"),
    (Action::Extend, "extend"),
    (Action::Logs, "logs"),
    (Action::Open, "details"),
    (Action::Filter, "filter"),
    (Action::Palette, "palette"),
    (Action::Help, "help"),
    (Action::NextTrouble, "next trouble"),
    (Action::Shell, "shell"),
    (Action::Mark, "mark"),
    (Action::Sleep, "sleep"),
    (Action::Wake, "wake"),
    (Action::Patches, "patches"),
    (Action::Recreate, "rebuild"),
    (Action::Labels, "labels"),
    (Action::Undo, "undo"),
    (Action::Sort, "sort"),
    (Action::CopySsh, "copy ssh"),
    (Action::Jobs, "jobs"),
    (Action::Events, "events"),
    (Action::Zoom, "zoom"),
    (Action::Quit, "quit"),
];

/// Keys of a row of the list that is over.
const OVER: &[(Action, &str)] = &[
    (Action::Open, "details"),
    (Action::Undo, "undo"),
    (Action::Filter, "filter"),
    (Action::Events, "events"),
    (Action::CopyId, "copy id"),
    (Action::Palette, "palette"),
    (Action::Help, "help"),
    (Action::Zoom, "zoom"),
    (Action::Quit, "quit"),
];

/// Keys of a snapshot's row.
const SNAPSHOTS: &[(Action, &str)] = &[
    (Action::Restore, "restore"),
    (Action::Open, "details"),
    (Action::Patches, "patches"),
    (Action::Destroy, "delete"),
    (Action::Filter, "filter"),
    (Action::Palette, "palette"),
    (Action::Help, "help"),
    (Action::Mark, "mark"),
    (Action::CopyId, "copy id"),
    (Action::CancelJob, "cancel"),
    (Action::Jobs, "jobs"),
    (Action::Zoom, "zoom"),
    (Action::Quit, "quit"),
];

/// Keys of a sandbox's row among the snapshots.
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
    (Action::Zoom, "zoom"),
    (Action::Quit, "quit"),
];

/// Keys of the hosts.
const HOSTS: &[(Action, &str)] = &[
    (Action::Open, "details"),
    (Action::Redraw, "ask again"),
    (Action::NextTrouble, "next trouble"),
    (Action::Palette, "palette"),
    (Action::Help, "help"),
    (Action::Zoom, "zoom"),
    (Action::Quit, "quit"),
];

/// Keys of the credits.
const CREDITS: &[(Action, &str)] = &[
    (Action::Grant, "grant"),
    (Action::Open, "its sandbox"),
    (Action::Redraw, "ask again"),
    (Action::Palette, "palette"),
    (Action::Help, "help"),
    (Action::Zoom, "zoom"),
    (Action::Quit, "quit"),
];

/// Keys of the activity.
const ACTIVITY: &[(Action, &str)] = &[
    (Action::Open, "why, or what it made"),
    (Action::Logs, "output"),
    (Action::CancelJob, "cancel"),
    (Action::Jobs, "jobs"),
    (Action::Recreate, "rebuild"),
    (Action::Destroy, "destroy"),
    (Action::NextPane, "sandboxes"),
    (Action::Palette, "palette"),
    (Action::Help, "help"),
    (Action::Zoom, "zoom"),
    (Action::Quit, "quit"),
];

impl Model {
    /// The footer's keys: those of the focused pane that there is room for. None while something else has the footer.
    pub fn hints(&self) -> Vec<Hint> {
        if !self.overlays.is_empty() || self.filter_field.is_some() || self.toast.is_some() {
            return Vec::new();
        }
        let table = match self.focus {
            Pane::Sandboxes
                if self.sandboxes.selected().is_some_and(|entry| entry.record.state.is_over()) =>
            {
                OVER
            }
            Pane::Sandboxes => LIST,
            Pane::Snapshots if self.snapshots.selected().is_some_and(|row| row.at.is_some()) => {
                BASED
            }
            Pane::Snapshots => SNAPSHOTS,
            Pane::Hosts => HOSTS,
            Pane::Credits => CREDITS,
            Pane::Activity => ACTIVITY,
        };
        let footer = self.screen().footer;
        let end = footer.x + footer.width;
        let mut x = footer.x + 1;
        let mut hints = Vec::with_capacity(table.len());
        for (action, what) in table {
            let Some(key) = self.keymap.first(Mode::Main, *action) else { continue };
            let width = u16::try_from(columns(&key) + columns(what) + 1).unwrap_or(u16::MAX);
            if x.saturating_add(width) > end {
                continue;
            }
            hints.push(Hint { action: *action, key, what, area: Area { x, width, ..footer } });
            x += width + 2;
        }
        hints
    }
}
