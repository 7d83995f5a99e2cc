//! The patches of one snapshot, and how each stands on each sandbox that is based on it.

use super::Load;
use super::fetch::Fetch;
use super::window::Window;
use crate::client::{PatchStanding, PatchStatus};
use crate::domain::name::{PatchId, SandboxId, SnapshotId};
use crate::domain::patch::PatchState;

/// The overlay: below each patch its sandboxes.
#[derive(Debug, Clone)]
pub struct Patches {
    pub snapshot: SnapshotId,
    /// Name of its snapshot.
    pub title: String,
    /// Whether they were read.
    pub load: Load,
    /// The read of how they stand.
    pub reading: Fetch,
    status: Vec<PatchStatus>,
    wanted: Option<(PatchId, Option<SandboxId>)>,
    /// The cursor, and the rows around it.
    pub window: Window,
}

/// Row of the list.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct PatchRow<'a> {
    pub status: &'a PatchStatus,
    /// The sandbox, where it is a sandbox's row.
    pub standing: Option<&'a PatchStanding>,
}

impl PatchRow<'_> {
    /// How many sandboxes have the patch.
    pub fn applied(&self) -> usize {
        let sandboxes = self.status.sandboxes.iter();
        sandboxes.filter(|standing| standing.state == PatchState::Applied).count()
    }
}

impl Patches {
    /// An overlay that waits for them.
    pub fn new(snapshot: SnapshotId, title: String) -> Self {
        let reading = Fetch::Running;
        let window = Window::default();
        Self {
            snapshot,
            title,
            load: Load::Loading,
            reading,
            status: Vec::new(),
            wanted: None,
            window,
        }
    }

    /// Takes what was read; the cursor stays on its row.
    pub fn replace(&mut self, status: Vec<PatchStatus>) {
        self.status = status;
        self.load = Load::Ready;
        let at = self.wanted.as_ref().and_then(|(patch, sandbox)| {
            let place = |row: &PatchRow<'_>| {
                row.status.patch.id == *patch
                    && row.standing.map(|standing| &standing.id) == sandbox.as_ref()
            };
            (0..self.len()).find(|at| self.row(*at).is_some_and(|row| place(&row)))
        });
        self.go(at.unwrap_or(self.window.index));
    }

    /// How many rows there are.
    pub fn len(&self) -> usize {
        self.status.iter().map(|status| 1 + status.sandboxes.len()).sum()
    }

    pub fn status(&self) -> &[PatchStatus] {
        &self.status
    }

    pub fn is_empty(&self) -> bool {
        self.status.is_empty()
    }

    pub fn row(&self, at: usize) -> Option<PatchRow<'_>> {
        let mut at = at;
        for status in &self.status {
            match at.checked_sub(1) {
                None => return Some(PatchRow { status, standing: None }),
                Some(place) if place < status.sandboxes.len() => {
                    return Some(PatchRow { status, standing: status.sandboxes.get(place) });
                }
                Some(place) => at = place - status.sandboxes.len(),
            }
        }
        None
    }

    /// Text of each row.
    pub fn words(&self) -> Vec<String> {
        let words = |row: PatchRow<'_>| match row.standing {
            None => {
                let patch = &row.status.patch;
                let about = patch.description.as_deref().unwrap_or_default();
                format!("{} {about} {} {}", patch.sequence, patch.id, patch.run_in)
            }
            Some(standing) => {
                let name = standing.name.as_deref().unwrap_or_default();
                format!("{} {name} {} {}", standing.id, standing.host, standing.state)
            }
        };
        (0..self.len()).filter_map(|at| self.row(at)).map(words).collect()
    }

    /// The row under the cursor.
    pub fn selected(&self) -> Option<PatchRow<'_>> {
        self.row(self.window.index)
    }

    /// Moves the cursor.
    pub fn go(&mut self, index: usize) {
        self.window.go(index, self.len());
        self.wanted = self.selected().map(|row| {
            (row.status.patch.id.clone(), row.standing.map(|standing| standing.id.clone()))
        });
    }
}
