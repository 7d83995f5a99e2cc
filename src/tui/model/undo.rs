//! Undo: which removed sandbox is meant, and what of it comes back.

use std::sync::Arc;

use super::{Job, Load, Model, Overlay, Pane, is_undo};
use crate::domain::OperationKind;
use crate::domain::lineage::SnapshotView;
use crate::domain::name::{SandboxId, SnapshotId};
use crate::domain::sandbox::SandboxRecord;
use crate::domain::snapshot::SnapshotState;
use crate::domain::time::Time;
use crate::tui::keymap::Action;

/// A removed sandbox that is to be brought back.
#[derive(Debug, Clone, PartialEq)]
pub struct UndoTarget {
    /// Its id; what comes back has another one.
    pub id: SandboxId,
    /// What it was called.
    pub title: String,
    /// What it will be called, where it has a name.
    pub name: Option<String>,
    /// The snapshot that was taken of it.
    pub snapshot: SnapshotId,
    /// When that was.
    pub taken: Time,
    /// How large it is.
    pub bytes: Option<u64>,
    /// Where it is.
    pub host: String,
    /// Its time to live; none where its record is not known.
    pub ttl: Option<Option<u64>>,
    /// The sandbox that brought it back before.
    pub before: Option<String>,
}

impl Model {
    /// The snapshot that was taken of a sandbox before it was removed: the newest.
    fn undo_of(&self, id: &SandboxId) -> Option<&Arc<SnapshotView>> {
        self.undo_snapshots().filter(|view| view.record.sandbox_id == *id).last()
    }

    /// Snapshots from which something can be brought back, the oldest first.
    fn undo_snapshots(&self) -> impl Iterator<Item = &Arc<SnapshotView>> {
        let over = |view: &SnapshotView| view.record.expires_at.is_some_and(|end| end <= self.now);
        let all = self.snapshots.all().iter();
        all.filter(move |view| {
            is_undo(view) && view.record.state == SnapshotState::Ready && !over(view)
        })
    }

    /// What was brought back of a sandbox already.
    fn brought_back(&self, id: &SandboxId) -> Option<&SandboxRecord> {
        let back = self.sandboxes.all().find(|entry| entry.record.undo_of.as_ref() == Some(id));
        back.map(|entry| &*entry.record)
    }

    /// The key that goes on without an undo snapshot, after a removal that failed and takes one.
    pub fn way_without_undo(&self, job: &Job) -> Option<(Action, &'static str)> {
        let entry = self.sandboxes.get(job.sandbox.as_ref()?)?;
        if self.read_only || !self.undo_profiles.contains(&entry.record.profile.id) {
            return None;
        }
        match job.kind {
            OperationKind::Destroy => Some((Action::Destroy, "again, or without undo")),
            OperationKind::Recreate => Some((Action::Recreate, "again, or without undo")),
            OperationKind::Create
            | OperationKind::Restore
            | OperationKind::Snapshot
            | OperationKind::Sleep
            | OperationKind::Wake
            | OperationKind::Patch
            | OperationKind::Copy
            | OperationKind::Verify
            | OperationKind::Import
            | OperationKind::Delete
            | OperationKind::Check
            | OperationKind::Recover
            | OperationKind::Reap
            | OperationKind::Other(_) => None,
        }
    }

    /// The removed sandboxes that are meant: that of the overlay, that under the cursor, or what was removed last: by the last
    /// reap, all of it.
    ///
    /// Errors: why there is none, a sentence.
    pub fn undo_meant(&self) -> Result<Vec<SandboxId>, String> {
        match &self.snapshots.load {
            Load::Loading => return Err("the snapshots are not read yet".to_owned()),
            Load::Failed(error) => return Err(format!("nothing can be undone: {}", error.message)),
            Load::Ready => {}
        }
        if let Some(id) = self.undo_pointed()? {
            return match self.undo_of(&id) {
                Some(_) => Ok(vec![id]),
                None => Err(format!(
                    "{id} was removed without an undo snapshot, or that is gone by now: nothing brings it back"
                )),
            };
        }
        let removed = |id: &SandboxId| self.sandboxes.get(id).is_none();
        let open = |id: &SandboxId| removed(id) && self.brought_back(id).is_none();
        let last = self.undo_snapshots().map(|view| &view.record.sandbox_id).filter(|id| open(id));
        let Some(last) = last.last() else {
            return Err(
                "nothing to undo: no undo snapshot of a removed sandbox is there".to_owned()
            );
        };
        let reaped: Vec<SandboxId> =
            self.reap.removed().iter().map(|id| SandboxId::new(id.as_str())).collect();
        if !reaped.contains(last) {
            return Ok(vec![last.clone()]);
        }
        Ok(reaped.into_iter().filter(|id| open(id) && self.undo_of(id).is_some()).collect())
    }

    /// The removed sandbox that is pointed at; none where what was removed last is meant.
    fn undo_pointed(&self) -> Result<Option<SandboxId>, String> {
        let destroyed = |id: &SandboxId| self.sandboxes.get(id).is_none();
        Ok(match self.overlays.last() {
            Some(Overlay::Details(details)) if destroyed(&details.id) => Some(details.id.clone()),
            Some(Overlay::Details(details)) => {
                return Err(format!("{} is not destroyed", details.record.title()));
            }
            Some(Overlay::Snapshot(details)) if is_undo(&details.view) => {
                Some(details.view.record.sandbox_id.clone())
            }
            Some(_) => None,
            None => match self.focus {
                Pane::Sandboxes if self.sandboxes.shows_destroyed() => {
                    self.sandboxes.selected().map(|entry| entry.record.id.clone())
                }
                Pane::Snapshots => {
                    let pointed = self.snapshots.pointed().filter(|view| is_undo(view));
                    pointed.map(|view| view.record.sandbox_id.clone())
                }
                Pane::Activity => self.activity_sandbox().filter(destroyed),
                Pane::Sandboxes | Pane::Hosts => None,
            },
        })
    }

    /// What comes back of a sandbox, by its snapshot and, where that is known, by its last record.
    pub fn undo_target(&self, id: &SandboxId, last: Option<&SandboxRecord>) -> Option<UndoTarget> {
        let snapshot = &self.undo_of(id)?.record;
        let old = last.and_then(|record| record.name.clone()).or(snapshot.sandbox_name.clone());
        let taken =
            |name: &str| self.sandboxes.all().any(|entry| entry.record.name_in_use() == Some(name));
        let name = old.clone().map(|name| if taken(&name) { format!("{name}-undo") } else { name });
        let before = self.brought_back(id).map(|record| record.title().to_owned());
        Some(UndoTarget {
            id: id.clone(),
            title: old.unwrap_or_else(|| id.to_string()),
            name,
            snapshot: snapshot.id.clone(),
            taken: snapshot.created_at,
            bytes: snapshot.archive.bytes,
            host: snapshot.host.to_string(),
            ttl: last.map(|record| record.ttl_s),
            before,
        })
    }
}
