//! Targets of a question: frozen when it opens, as the operator saw them.

use std::sync::Arc;

use super::rows::Entry;
use crate::client::ReapPlan;
use crate::domain::lineage::SnapshotView;
use crate::domain::name::{PatchId, SandboxId, SnapshotId};
use crate::domain::{State, Time};
use crate::present::sandbox::short_profile;

/// Frozen sandbox.
#[derive(Debug, Clone, PartialEq)]
pub struct Target {
    pub id: SandboxId,
    /// The revision that the operator saw.
    pub revision: u64,
    pub name: Option<String>,
    pub host: String,
    /// Its profile, short.
    pub profile: String,
    pub state: State,
    pub created_at: Time,
    /// Labelled `protect=true`.
    pub protected: bool,
    /// Warning to be known before: its host has not answered since then.
    pub silent: Option<String>,
    /// Acts on it beyond the verb, a sentence each.
    pub notes: Vec<String>,
    /// Whether an undo snapshot is taken of it first.
    pub undo: bool,
    /// The patches on the snapshot that it is based on, where the verb applies them.
    pub patches: Option<Vec<PatchId>>,
    /// Why it is left out, if it is.
    pub left_out: Option<String>,
}

impl Target {
    /// Freezes a row.
    pub fn of(entry: &Entry, silent: Option<String>) -> Self {
        let record = &entry.record;
        Self {
            id: record.id.clone(),
            revision: record.revision,
            name: record.name.clone(),
            host: record.host.to_string(),
            profile: short_profile(record.profile.id.as_str()).to_owned(),
            state: record.state.clone(),
            created_at: record.created_at,
            protected: record.is_protected(),
            silent,
            notes: Vec::new(),
            undo: false,
            patches: None,
            left_out: None,
        }
    }

    /// Its name, or its id where it has none.
    pub fn called(&self) -> String {
        self.name.clone().unwrap_or_else(|| self.id.to_string())
    }

    /// `a1b2c3d4 e2e-core`, or the id alone.
    pub fn title(&self) -> String {
        named(self.id.as_str(), self.name.as_deref())
    }
}

/// Frozen snapshot.
#[derive(Debug, Clone, PartialEq)]
pub struct SnapshotTarget {
    /// Snapshot as the operator saw it.
    pub view: Arc<SnapshotView>,
    /// Dependents, a line each.
    pub dependants: Vec<String>,
    /// Warning to be known before: its host has not answered since then.
    pub silent: Option<String>,
    /// Why it is left out, if it is.
    pub left_out: Option<String>,
}

impl SnapshotTarget {
    /// Freezes a snapshot.
    pub fn of(view: &Arc<SnapshotView>, silent: Option<String>) -> Self {
        Self { dependants: view.dependants(), view: Arc::clone(view), silent, left_out: None }
    }

    pub fn id(&self) -> &SnapshotId {
        &self.view.record.id
    }

    /// `snap-1a2b3c4d my-env`, or the id alone.
    pub fn title(&self) -> String {
        named(self.id().as_str(), self.view.record.name.as_deref())
    }

    pub(super) fn is_protected(&self) -> bool {
        self.view.record.is_protected()
    }
}

/// A reap plan that is to be applied.
#[derive(Debug, Clone, PartialEq)]
pub struct PlanTarget {
    /// The plan as it was chosen; what changed since is kept.
    pub plan: ReapPlan,
    /// How many items are left out: they changed since.
    pub left_out: usize,
    /// How many are taken away although the plan would not by itself.
    pub forced: usize,
}

/// A patch that is to be taken away.
#[derive(Debug, Clone, PartialEq)]
pub struct PatchTarget {
    pub snapshot: SnapshotId,
    pub title: String,
    pub id: PatchId,
    /// Its place in the order.
    pub sequence: u64,
    pub description: Option<String>,
    /// How many sandboxes have it, and how many would have got it.
    pub counts: (usize, usize),
}

fn named(id: &str, name: Option<&str>) -> String {
    name.map_or_else(|| id.to_owned(), |name| format!("{id} {name}"))
}
