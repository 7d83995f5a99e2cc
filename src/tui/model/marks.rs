//! Marks: the rows of a pane that a verb acts on together, by their ids.

use std::collections::BTreeSet;

/// Marked rows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Marks<Id> {
    ids: BTreeSet<Id>,
    /// The row that was marked or unmarked last, from which a range goes.
    last: Option<Id>,
}

impl<Id> Default for Marks<Id> {
    fn default() -> Self {
        Self { ids: BTreeSet::new(), last: None }
    }
}

impl<Id: Ord + Clone> Marks<Id> {
    pub fn ids(&self) -> &BTreeSet<Id> {
        &self.ids
    }

    /// Whether nothing is marked.
    pub fn is_empty(&self) -> bool {
        self.ids.is_empty()
    }

    /// Whether a row is marked.
    pub fn holds(&self, id: &Id) -> bool {
        self.ids.contains(id)
    }

    /// Marks a row, or unmarks it.
    pub fn toggle(&mut self, id: Id) {
        if !self.ids.remove(&id) {
            self.ids.insert(id.clone());
        }
        self.last = Some(id);
    }

    /// Marks from the row that was marked last to the one under the cursor; rows without an id are passed over.
    pub fn mark_to(&mut self, rows: &[Option<Id>], cursor: usize) {
        let last = self.last.as_ref();
        let from = last.and_then(|id| rows.iter().position(|row| row.as_ref() == Some(id)));
        let from = from.unwrap_or(cursor);
        let (low, high) = (from.min(cursor), from.max(cursor));
        self.ids.extend(rows.iter().take(high + 1).skip(low).flatten().cloned());
        self.last = rows.get(cursor).cloned().flatten().or(self.last.take());
    }

    /// Marks all of these; if all are marked, unmarks them.
    pub fn toggle_all(&mut self, shown: &BTreeSet<Id>) {
        if shown.is_subset(&self.ids) {
            self.ids.retain(|id| !shown.contains(id));
        } else {
            self.ids.extend(shown.iter().cloned());
        }
    }

    /// Unmarks a row that is gone.
    pub fn remove(&mut self, id: &Id) {
        self.ids.remove(id);
    }

    /// Unmarks what does not pass.
    pub fn retain(&mut self, keep: impl FnMut(&Id) -> bool) {
        self.ids.retain(keep);
    }

    /// Unmarks everything.
    pub fn clear(&mut self) {
        *self = Self::default();
    }
}
