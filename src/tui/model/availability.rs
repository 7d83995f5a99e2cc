//! Why an action cannot be done here: the console is read-only, or the backend of what is under the cursor cannot.

use std::sync::Arc;

use super::{ActivityRow, Entry, Model, Overlay, Pane, Role, SnapshotTarget, Target, TextOverlay};
use crate::domain::extension::Capability;
use crate::domain::lineage::SnapshotView;
use crate::domain::name::{ExtensionId, SandboxId};
use crate::tui::keymap::Action;

impl Model {
    /// The sandbox that is pointed at: that of the overlay on top, of the line of activity, or the one under the cursor.
    pub fn pointed_sandbox(&self) -> Option<&Arc<Entry>> {
        self.pointed_sandbox_id().and_then(|id| self.sandboxes.get(&id))
    }

    fn pointed_sandbox_id(&self) -> Option<SandboxId> {
        match self.overlays.iter().rev().find(|overlay| !matches!(overlay, Overlay::Palette(..))) {
            Some(Overlay::Details(details)) => Some(details.id.clone()),
            Some(Overlay::Output(job, _)) => {
                self.jobs.get(*job).and_then(|job| job.sandbox.clone())
            }
            Some(Overlay::Error(problem, _)) => {
                self.jobs.of_problem(problem).and_then(|job| job.sandbox.clone())
            }
            Some(Overlay::Patches(patches)) => {
                patches.selected().and_then(|row| row.standing).map(|standing| standing.id.clone())
            }
            Some(_) => None,
            None => match self.focus {
                Pane::Sandboxes => self.sandboxes.selected().map(|entry| entry.record.id.clone()),
                Pane::Snapshots => {
                    self.snapshots.selected().and_then(|row| row.sandbox()).map(|s| s.id.clone())
                }
                Pane::Hosts => None,
                Pane::Credits => self.credit_sandbox_id(),
                Pane::Activity => self.activity_sandbox(),
            },
        }
    }

    /// The sandbox of the row of activity under the cursor, in the list or not.
    pub fn activity_sandbox(&self) -> Option<SandboxId> {
        match self.activity.selected()? {
            ActivityRow::SinceLastLook => None,
            ActivityRow::Job(id) => self.jobs.get(id)?.sandbox.clone(),
            ActivityRow::Line(number) => self.activity.line(number)?.sandbox().cloned(),
        }
    }

    /// The snapshot that is pointed at: that of the overlay on top, or the one under the cursor.
    pub fn pointed_snapshot(&self) -> Option<&Arc<SnapshotView>> {
        match self.overlays.iter().rev().find(|overlay| !matches!(overlay, Overlay::Palette(..))) {
            Some(Overlay::Snapshot(details)) => self.snapshots.get(&details.view.record.id),
            None if self.focus == Pane::Snapshots => self.snapshots.pointed(),
            _ => None,
        }
    }

    /// The sandbox that a key means which acts on one alone. Says so if there is none.
    pub fn subject(&mut self) -> Option<Arc<Entry>> {
        let entry = self.pointed_sandbox().cloned();
        if entry.is_none() {
            self.say_no_subject();
        }
        entry
    }

    /// Says that there is no sandbox to act on, or that it is one that is over.
    pub fn say_no_subject(&mut self) {
        let shown = self.sandboxes.selected().map(|entry| &entry.record);
        let over = if !self.overlays.is_empty() {
            None
        } else if self.focus == Pane::Activity {
            self.activity_sandbox()
        } else if self.focus == Pane::Credits {
            self.credit_sandbox_id()
        } else {
            let is_list = self.focus == Pane::Sandboxes && self.sandboxes.shows_destroyed();
            shown.filter(|_| is_list).map(|record| record.id.clone())
        };
        let title = |id: &SandboxId| {
            let shown = shown.filter(|record| record.id == *id);
            let title = shown.map(|record| record.title().to_owned());
            title.or_else(|| self.name_of(id)).unwrap_or_else(|| id.to_string())
        };
        let text = match over {
            Some(id) => format!("{} is destroyed: enter shows its record", title(&id)),
            None => "there is no sandbox to act on".to_owned(),
        };
        self.say(Role::Dim, text);
    }

    /// Freezes a row as a target.
    pub fn freeze(&self, entry: &Entry) -> Target {
        Target::of(entry, self.silence(entry.record.host.as_str(), entry.record.observed_at))
    }

    pub fn freeze_snapshot(&self, view: &Arc<SnapshotView>) -> SnapshotTarget {
        SnapshotTarget::of(view, self.silence(view.record.host.as_str(), None))
    }

    /// Why an extension cannot do something, if that is known.
    pub fn cannot(&self, extension: &ExtensionId, capability: &Capability) -> Option<String> {
        let view = self.extensions.iter().find(|view| view.id == extension.as_str())?;
        if !view.available {
            return Some(
                view.unavailable
                    .clone()
                    .unwrap_or_else(|| format!("this version does not have {extension}")),
            );
        }
        let has = view
            .manifest
            .as_ref()
            .is_none_or(|manifest| manifest.capabilities.contains(capability));
        let verb = match capability {
            Capability::Snapshots => "take or restore snapshots",
            Capability::Patches => "apply patches",
            Capability::Sleep => "sleep",
            Capability::Exec => "run commands",
            Capability::Logs => "show logs",
            Capability::Adopt | Capability::Metered | Capability::Other(_) => "do that",
        };
        (!has).then(|| format!("{extension} cannot {verb}"))
    }

    /// Whether the key of logs asks the host: of what failed, and of a job, the output is here.
    fn has_logs_to_ask_for(&self) -> bool {
        let is_kept = |entry: &Entry| TextOverlay::of_failed(&entry.record).is_some();
        self.focus == Pane::Sandboxes
            && self.overlays.is_empty()
            && !self.pointed_sandbox().is_some_and(|entry| is_kept(entry))
    }

    /// Why an action cannot be done here, if that is known before it is tried.
    pub fn unavailable(&self, action: Action) -> Option<String> {
        if self.read_only && action.is_mutating() {
            return Some("this console is read-only".to_owned());
        }
        let capability = match action {
            Action::Snapshot | Action::Restore => Capability::Snapshots,
            Action::Sleep | Action::Wake => Capability::Sleep,
            Action::AddPatch | Action::WritePatch | Action::RollOut => Capability::Patches,
            Action::Shell => Capability::Exec,
            Action::Logs if self.has_logs_to_ask_for() => Capability::Logs,
            _ => return None,
        };
        let top = match self.overlays.last() {
            Some(Overlay::Patches(patches)) => self.snapshots.get(&patches.snapshot),
            _ => self.pointed_snapshot(),
        };
        let extension = match action {
            Action::Restore | Action::AddPatch | Action::WritePatch | Action::RollOut => {
                top.map(|view| &view.record.extension)
            }
            // Marked ones are looked at one by one, when the question is asked.
            _ if self.overlays.is_empty()
                && self.focus == Pane::Sandboxes
                && !self.sandboxes.marks.is_empty() =>
            {
                return None;
            }
            _ => self.pointed_sandbox().map(|entry| &entry.record.extension),
        };
        extension.and_then(|extension| self.cannot(extension, &capability))
    }
}
