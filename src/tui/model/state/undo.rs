//! Undo: which removed sandbox is meant, and what of it comes back.

use super::{Model, Overlay};
use crate::domain::error::Kind;
use crate::domain::lineage::SnapshotView;
use crate::domain::name::{SandboxId, SnapshotId};
use crate::domain::sandbox::SandboxRecord;
use crate::domain::snapshot::{SnapshotRecord, SnapshotState};
use crate::domain::undo::names_for;
use crate::domain::{OperationKind, State};
use crate::tui::keymap::Action;
use crate::tui::model::fetch::Load;
use crate::tui::model::job::Job;
use crate::tui::model::pane::Pane;
use crate::tui::model::snapshots::is_undo;
use crate::tui::model::undo::UndoTarget;

impl Model {
    /// Snapshots from which something can be brought back, the newest first.
    fn undo_snapshots(&self) -> impl Iterator<Item = &SnapshotRecord> {
        let all = self.snapshots.all().iter().filter(|view| is_undo(view)).rev();
        all.map(|view| &view.record).filter(|record| {
            let over = record.expires_at.is_some_and(|end| end <= self.now);
            record.state == SnapshotState::Ready && !record.is_lost() && !over
        })
    }

    /// Whether what a snapshot was taken of was removed since, or made again.
    fn was_removed(&self, snapshot: &SnapshotRecord) -> bool {
        let Some(entry) = self.sandboxes.get(&snapshot.sandbox_id) else { return true };
        let made_again = entry.record.ready_at.is_some_and(|at| at > snapshot.created_at);
        made_again || !matches!(entry.record.state, State::Ready | State::Sleeping)
    }

    /// Sandbox that came back of a snapshot already.
    fn came_back(&self, snapshot: &SnapshotRecord) -> Option<&SandboxRecord> {
        let came = |record: &SandboxRecord| {
            record.undo_of.as_ref() == Some(&snapshot.sandbox_id)
                && record.created_at >= snapshot.created_at
                && record.state != State::Failed
        };
        self.sandboxes.all().map(|entry| &*entry.record).find(|record| came(record))
    }

    /// The key that goes on without an undo snapshot, after a removal that could not take one.
    pub fn way_without_undo(&self, job: &Job) -> Option<(Action, &'static str)> {
        let entry = self.sandboxes.get(job.sandbox.as_ref()?)?;
        let is_why =
            job.state.problem().is_some_and(|problem| problem.kind == Kind::NoUndoSnapshot);
        if !is_why || self.read_only || !self.undo_profiles.contains(&entry.record.profile.id) {
            return None;
        }
        let removals = [
            (OperationKind::Destroy, Action::Destroy),
            (OperationKind::Recreate, Action::Recreate),
        ];
        let (_, action) = removals.into_iter().find(|(kind, _)| *kind == job.kind)?;
        Some((action, "again, or without undo"))
    }

    /// Removals to be undone: of the overlay, or under the cursor; else what was removed last and did not come back: by
    /// the last reap, all of it.
    ///
    /// Errors: why there is nothing, a sentence.
    pub fn undo_meant(&self) -> Result<Vec<UndoTarget>, String> {
        match &self.snapshots.load {
            Load::Loading => return Err("the snapshots are not read yet".to_owned()),
            Load::Failed(error) => return Err(format!("nothing can be undone: {}", error.message)),
            Load::Ready => {}
        }
        let newest = |id: &SandboxId| {
            let mut of_it = self.undo_snapshots().filter(|kept| kept.sandbox_id == *id);
            of_it.find(|kept| self.was_removed(kept))
        };
        let found = match self.undo_pointed() {
            Some(Pointed::Snapshot(id)) => {
                let kept = self.undo_snapshots().find(|kept| kept.id == id);
                let kept = kept.filter(|kept| self.was_removed(kept));
                vec![kept.ok_or_else(|| format!("{id} brings nothing back now"))?]
            }
            Some(Pointed::Sandbox(id)) => {
                let why = match self.sandboxes.get(&id) {
                    Some(_) => format!("{id} is there as it was: there is nothing to undo"),
                    None => format!("{id} was removed, and nothing of it is kept"),
                };
                vec![newest(&id).ok_or(why)?]
            }
            None => {
                let open = |kept: &&SnapshotRecord| {
                    self.was_removed(kept) && self.came_back(kept).is_none()
                };
                let nothing = "nothing to undo: nothing is kept of any removed sandbox";
                let last = self.undo_snapshots().find(open).ok_or(nothing)?;
                let reaped = self.reap.removed();
                if reaped.iter().any(|id| *id == last.sandbox_id.as_str()) {
                    let ids = reaped.iter().map(|id| SandboxId::new(id.as_str()));
                    ids.filter_map(|id| newest(&id)).filter(open).collect()
                } else {
                    vec![last]
                }
            }
        };
        Ok(found.into_iter().map(|snapshot| self.undo_target(snapshot)).collect())
    }

    /// Thing that is pointed at; none where what was removed last is meant.
    fn undo_pointed(&self) -> Option<Pointed> {
        let undo =
            |view: &SnapshotView| is_undo(view).then(|| Pointed::Snapshot(view.record.id.clone()));
        let over =
            |id: SandboxId| self.sandboxes.get(&id).is_none().then_some(Pointed::Sandbox(id));
        match self.overlays.last() {
            Some(Overlay::Details(details)) => Some(Pointed::Sandbox(details.id.clone())),
            Some(Overlay::Snapshot(details)) => undo(&details.view),
            Some(_) => None,
            None => match self.focus {
                Pane::Sandboxes if self.sandboxes.shows_destroyed() => {
                    let selected = self.sandboxes.selected();
                    selected.map(|entry| Pointed::Sandbox(entry.record.id.clone()))
                }
                Pane::Snapshots => self.snapshots.pointed().and_then(|view| undo(view)),
                Pane::Credits => self.credit_sandbox_id().and_then(over),
                Pane::Activity => self.activity_sandbox().and_then(over),
                Pane::Sandboxes | Pane::Hosts => None,
            },
        }
    }

    fn undo_target(&self, snapshot: &SnapshotRecord) -> UndoTarget {
        let name = snapshot.sandbox_name.as_deref();
        let taken = |name: &str| {
            let mut all = self.sandboxes.all().map(|entry| &entry.record);
            all.any(|record| record.name_in_use() == Some(name) || record.id.as_str() == name)
        };
        let mut names = names_for(name).into_iter();
        let free = names.find(|name| name.as_ref().is_none_or(|name| !taken(name)));
        UndoTarget {
            id: snapshot.sandbox_id.clone(),
            title: name.unwrap_or(snapshot.sandbox_id.as_str()).to_owned(),
            name: free.flatten(),
            snapshot: snapshot.id.clone(),
            taken: snapshot.created_at,
            bytes: snapshot.archive.bytes,
            host: snapshot.host.to_string(),
            ttl: snapshot.undo.as_ref().map(|facts| facts.ttl_s),
            before: self.came_back(snapshot).map(|record| record.title().to_owned()),
        }
    }
}

/// Thing that is pointed at.
enum Pointed {
    /// A sandbox, by its id.
    Sandbox(SandboxId),
    /// An undo snapshot.
    Snapshot(SnapshotId),
}
