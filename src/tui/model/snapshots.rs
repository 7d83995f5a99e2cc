//! Snapshots and what hangs on them: a tree with a cursor and marks, which are ids and follow their row through every
//! refresh and filter.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use nucleo_matcher::Matcher;

use super::Load;
use super::filter::{Facets, Filter};
use super::marks::Marks;
use super::window::Window;
use crate::domain::lineage::{BasedOn, SnapshotView};
use crate::domain::name::{SandboxId, SnapshotId};
use crate::domain::snapshot::{SnapshotKind, SnapshotRecord};
use crate::domain::text::clean_line;
use crate::present::sandbox::short_profile;
use crate::present::snapshot::caveats;
use crate::present::{Node, NodeId, tree_rows};

/// The pane.
#[derive(Debug, Clone, Default)]
pub struct Snapshots {
    /// Whether they were read.
    pub load: Load,
    views: Vec<Arc<SnapshotView>>,
    by_id: HashMap<SnapshotId, usize>,
    /// Where each based sandbox is: the snapshot's place, and its place there.
    based: HashMap<SandboxId, (usize, usize)>,
    rows: Vec<Node>,
    filter: Filter,
    wanted: Option<NodeId>,
    /// The cursor, and the rows around it.
    pub window: Window,
    /// The marked ones.
    pub marks: Marks<SnapshotId>,
}

impl Snapshots {
    /// Takes all snapshots, oldest first, in place of those that were known.
    pub fn replace(&mut self, views: Vec<Arc<SnapshotView>>) {
        self.by_id =
            views.iter().enumerate().map(|(at, view)| (view.record.id.clone(), at)).collect();
        self.based = HashMap::new();
        for (at, view) in views.iter().enumerate() {
            self.based.extend(
                view.sandboxes.iter().enumerate().map(|(place, s)| (s.id.clone(), (at, place))),
            );
        }
        self.views = views;
        self.load = Load::Ready;
        self.marks.retain(|id| self.by_id.contains_key(id));
        self.grow();
    }

    /// Adds one that was just begun, before it is read with the others.
    pub fn add(&mut self, record: SnapshotRecord) {
        if self.by_id.contains_key(&record.id) {
            return;
        }
        let view = SnapshotView {
            record,
            patches: Vec::new(),
            sandboxes: Vec::new(),
            children: Vec::new(),
        };
        let mut views = self.views.clone();
        views.push(Arc::new(view));
        let load = self.load.clone();
        self.replace(views);
        self.load = load;
    }

    /// Builds the tree again.
    fn grow(&mut self) {
        let mut matcher = Filter::matcher();
        let filter = &self.filter;
        self.rows = tree_rows(&self.views, &mut |view, sandbox| {
            // A record and no more: the list of a command leaves it out too.
            let is_over = sandbox.is_none() && view.record.came_to_nothing();
            !is_over && (filter.is_empty() || passes(filter, view, sandbox, &mut matcher))
        });
        self.settle();
    }

    /// Finds the cursor again: on its row if that is shown, else where it was.
    fn settle(&mut self) {
        let at = self.wanted.as_ref().and_then(|id| self.rows.iter().position(|row| row.id == *id));
        self.window.index = at.unwrap_or(self.window.index);
        self.window.fit(self.rows.len());
        let gone = |id: &NodeId| match id {
            NodeId::Snapshot(id) => !self.by_id.contains_key(id),
            NodeId::Sandbox(id) => !self.based.contains_key(id),
        };
        if at.is_none() && self.wanted.as_ref().is_none_or(gone) {
            self.wanted = self.selected().map(|row| row.id.clone());
        }
    }

    /// Shows only what passes, and what leads to it.
    pub fn set_filter(&mut self, filter: Filter) {
        self.filter = filter;
        self.grow();
    }

    /// The filter: only snapshots that pass it are shown.
    pub fn filter(&self) -> &Filter {
        &self.filter
    }

    /// All of them, oldest first.
    pub fn all(&self) -> &[Arc<SnapshotView>] {
        &self.views
    }

    /// How many there are, those that came to nothing left out.
    pub fn count(&self) -> usize {
        self.views.iter().filter(|view| !view.record.came_to_nothing()).count()
    }

    pub fn get(&self, id: &SnapshotId) -> Option<&Arc<SnapshotView>> {
        self.by_id.get(id).and_then(|at| self.views.get(*at))
    }

    /// The snapshot that a sandbox is based on, and how the sandbox stands to it.
    pub fn of_sandbox(&self, id: &SandboxId) -> Option<(&Arc<SnapshotView>, &BasedOn)> {
        let (at, place) = self.based.get(id)?;
        let view = self.views.get(*at)?;
        Some((view, view.sandboxes.get(*place)?))
    }

    /// The snapshots taken of a sandbox, oldest first.
    pub fn taken_of<'a>(
        &'a self,
        id: &'a SandboxId,
    ) -> impl Iterator<Item = &'a Arc<SnapshotView>> {
        self.views.iter().filter(move |view| view.record.sandbox_id == *id)
    }

    /// The rows of the tree.
    pub fn rows(&self) -> &[Node] {
        &self.rows
    }

    /// The rows on the screen.
    pub fn window(&self) -> &[Node] {
        &self.rows[self.window.rows(self.rows.len())]
    }

    /// The row under the cursor.
    pub fn selected(&self) -> Option<&Node> {
        self.rows.get(self.window.index)
    }

    /// The snapshot whose row is under the cursor.
    pub fn pointed(&self) -> Option<&Arc<SnapshotView>> {
        self.selected().filter(|row| row.at.is_none()).map(|row| &row.view)
    }

    /// Moves the cursor to a row.
    pub fn go(&mut self, index: usize) {
        self.window.go(index, self.rows.len());
        self.wanted = self.selected().map(|row| row.id.clone());
    }

    /// Moves the cursor to a row, shown or not.
    pub fn point_at(&mut self, id: NodeId) {
        self.wanted = Some(id);
        self.settle();
    }

    /// Marks or unmarks the snapshot under the cursor and goes down; `false` on a sandbox's row.
    pub fn toggle_mark(&mut self) -> bool {
        let Some(id) = self.pointed().map(|view| view.record.id.clone()) else { return false };
        self.marks.toggle(id);
        self.go(self.window.index + 1);
        true
    }

    /// Marks the snapshots from the last marked row to the cursor.
    pub fn mark_range(&mut self) {
        let rows = self.rows.iter().map(|row| row.at.is_none().then(|| row.view.record.id.clone()));
        self.marks.mark_to(&rows.collect::<Vec<_>>(), self.window.index);
    }

    /// Marks all snapshots that are shown; if all are, unmarks them.
    pub fn mark_all(&mut self) {
        let shown =
            self.rows.iter().filter(|row| row.at.is_none()).map(|row| row.view.record.id.clone());
        self.marks.toggle_all(&shown.collect());
    }

    /// Targets of a verb on snapshots: the marked ones, or the one under the cursor.
    pub fn targets(&self) -> Vec<Arc<SnapshotView>> {
        if self.marks.is_empty() {
            return self.pointed().cloned().into_iter().collect();
        }
        self.views.iter().filter(|view| self.marks.holds(&view.record.id)).cloned().collect()
    }
}

/// Whether a row passes the filter.
fn passes(
    filter: &Filter,
    view: &SnapshotView,
    sandbox: Option<&BasedOn>,
    matcher: &mut Matcher,
) -> bool {
    let lower = |text: &str| clean_line(text, 80).to_lowercase();
    let name = |name: &Option<String>| lower(name.as_deref().unwrap_or_default());
    let (record, no_labels) = (&view.record, BTreeMap::new());
    let (words, state, labels, actor) = if let Some(sandbox) = sandbox {
        let words = [lower(sandbox.id.as_str()), name(&sandbox.name), String::new(), String::new()];
        (words, lower(sandbox.state.as_str()), &no_labels, None)
    } else {
        let (profile, host) =
            (lower(short_profile(record.profile.id.as_str())), lower(record.host.as_str()));
        let words = [lower(record.id.as_str()), name(&record.name), profile, host];
        (words, lower(record.state.as_str()), &record.labels, Some(&record.actor))
    };
    let facets = Facets { words: &words, state: &state, degraded: false, labels, actor };
    filter.passes_facets(&facets, matcher)
}

/// Doubts on a snapshot, to be known before one trusts it, in a few words; none where all is well.
pub(crate) fn caveat(view: &SnapshotView) -> Option<String> {
    let words = caveats(&view.record).join("; ");
    (!words.is_empty()).then_some(words)
}

/// Whether it is kept for taking a removal back only.
pub(crate) fn is_undo(view: &SnapshotView) -> bool {
    view.record.kind == SnapshotKind::Undo
}

#[cfg(test)]
mod tests;
