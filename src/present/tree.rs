//! Lineage as a tree (semantics 7): below a snapshot the sandboxes that are based on it, below each of those the snapshots
//! that were taken of it.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::domain::lineage::{BasedOn, SnapshotView};
use crate::domain::name::{SandboxId, SnapshotId};

/// Which row.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum NodeId {
    Snapshot(SnapshotId),
    /// A sandbox's; it is based on at most one snapshot, so it has at most one row.
    Sandbox(SandboxId),
}

/// Row of the tree.
#[derive(Debug, Clone, PartialEq)]
pub struct Node {
    /// Which.
    pub id: NodeId,
    /// The snapshot, or the one that the sandbox is based on.
    pub view: Arc<SnapshotView>,
    /// The sandbox's place among the view's, for a sandbox.
    pub at: Option<usize>,
    /// The branches in front of it, two columns for each level.
    pub branch: String,
}

impl Node {
    /// The sandbox of a sandbox's row.
    pub fn sandbox(&self) -> Option<&BasedOn> {
        self.at.and_then(|at| self.view.sandboxes.get(at))
    }
}

/// A node with what hangs on it.
struct Branch {
    node: Node,
    below: Vec<Branch>,
}

/// Facts while a tree is built.
struct Growing<'a> {
    views: &'a [Arc<SnapshotView>],
    /// Places of snapshots by their parent's id.
    children: BTreeMap<&'a SnapshotId, Vec<usize>>,
    seen: BTreeSet<usize>,
    passes: &'a mut dyn FnMut(&SnapshotView, Option<&BasedOn>) -> bool,
}

/// The rows of `views` (oldest first) that pass, and what leads to them. The newest root comes first, everything below the
/// other way round: in the order in which it came to be.
pub(crate) fn rows(
    views: &[Arc<SnapshotView>],
    passes: &mut dyn FnMut(&SnapshotView, Option<&BasedOn>) -> bool,
) -> Vec<Node> {
    let (roots, children) = hanging(views);
    let mut growing = Growing { views, children, seen: BTreeSet::new(), passes };
    let mut grown: Vec<Branch> =
        roots.into_iter().rev().filter_map(|at| growing.snapshot(at)).collect();
    // Records that name each other as parents hang on no root: they are shown all the same.
    for at in 0..views.len() {
        if !growing.seen.contains(&at) {
            grown.extend(growing.snapshot(at));
        }
    }
    let mut rows = Vec::new();
    for branch in grown {
        lay(branch, &[], &mut rows);
    }
    rows
}

/// The rows below one snapshot, itself left out.
pub(crate) fn below(views: &[Arc<SnapshotView>], id: &SnapshotId) -> Vec<Node> {
    let (_, children) = hanging(views);
    let passes = &mut |_: &SnapshotView, _: Option<&BasedOn>| true;
    let mut growing = Growing { views, children, seen: BTreeSet::new(), passes };
    let root = views.iter().position(|view| view.record.id == *id);
    let branch = root.and_then(|at| growing.snapshot(at));
    let below = branch.map(|branch| branch.below).unwrap_or_default();
    let mut rows = Vec::new();
    lay_all(below, &[], &mut rows);
    rows
}

/// Snapshots that hang on none, and those that hang on each.
fn hanging(views: &[Arc<SnapshotView>]) -> (Vec<usize>, BTreeMap<&SnapshotId, Vec<usize>>) {
    let mut children: BTreeMap<&SnapshotId, Vec<usize>> = BTreeMap::new();
    let known: BTreeSet<&SnapshotId> = views.iter().map(|view| &view.record.id).collect();
    let mut roots = Vec::new();
    for (at, view) in views.iter().enumerate() {
        match view.record.parent_snapshot.as_ref().filter(|parent| known.contains(parent)) {
            Some(parent) => children.entry(parent).or_default().push(at),
            None => roots.push(at),
        }
    }
    (roots, children)
}

impl Growing<'_> {
    /// A snapshot with everything below it; none where nothing of it passes.
    fn snapshot(&mut self, at: usize) -> Option<Branch> {
        let view = Arc::clone(self.views.get(at).filter(|_| self.seen.insert(at))?);
        let mut children = self.children.remove(&view.record.id).unwrap_or_default();
        let hit = (self.passes)(&view, None);
        let mut below = Vec::new();
        for (place, sandbox) in view.sandboxes.iter().enumerate() {
            let of_it = |at: &usize| {
                self.views.get(*at).is_some_and(|child| child.record.sandbox_id == sandbox.id)
            };
            let (mine, others) = children.into_iter().partition::<Vec<_>, _>(of_it);
            children = others;
            let taken: Vec<Branch> = mine.into_iter().filter_map(|at| self.snapshot(at)).collect();
            // What hangs on a snapshot that passes is what one looks for there.
            if hit || !taken.is_empty() || (self.passes)(&view, Some(sandbox)) {
                let id = NodeId::Sandbox(sandbox.id.clone());
                let node =
                    Node { id, view: Arc::clone(&view), at: Some(place), branch: String::new() };
                below.push(Branch { node, below: taken });
            }
        }
        // Taken of sandboxes that are over, or are based on another snapshot by now.
        below.extend(children.into_iter().filter_map(|at| self.snapshot(at)));
        (hit || !below.is_empty()).then(|| {
            let id = NodeId::Snapshot(view.record.id.clone());
            Branch { node: Node { id, view, at: None, branch: String::new() }, below }
        })
    }
}

/// Lays a branch out as rows. `last`: of each level above, whether it was the last of its siblings.
fn lay(branch: Branch, last: &[bool], rows: &mut Vec<Node>) {
    let Branch { mut node, below } = branch;
    node.branch = match last.split_last() {
        None => String::new(),
        Some((own, above)) => {
            let above = above.iter().map(|last| if *last { "  " } else { "│ " });
            above.chain([if *own { "└ " } else { "├ " }]).collect()
        }
    };
    rows.push(node);
    lay_all(below, last, rows);
}

/// Lays branches of one parent out as rows.
fn lay_all(branches: Vec<Branch>, above: &[bool], rows: &mut Vec<Node>) {
    let count = branches.len();
    for (at, branch) in branches.into_iter().enumerate() {
        let mut last = above.to_vec();
        last.push(at + 1 == count);
        lay(branch, &last, rows);
    }
}
