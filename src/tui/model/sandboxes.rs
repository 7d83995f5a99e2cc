//! The list: records, their order, what of them is shown, cursor and marks. Cursor and marks are ids: they follow
//! their sandbox through every sort, filter and refresh.

use std::collections::HashMap;
use std::sync::Arc;

use super::Load;
use super::counts::Counts;
use super::filter::Filter;
use super::marks::Marks;
use super::rows::{Conditions, Entry, Order, Sort};
use super::window::Window;
use crate::domain::Time;
use crate::domain::name::SandboxId;
use crate::domain::telemetry::SandboxUse;
use crate::present::credit::has_price;

/// The list.
#[derive(Debug, Clone, Default)]
pub struct Sandboxes {
    /// Whether the records are there.
    pub load: Load,
    records: HashMap<SandboxId, Arc<Entry>>,
    /// All of them, in order.
    sorted: Vec<Arc<Entry>>,
    /// Rows that pass the filter, in the same order.
    shown: Vec<Arc<Entry>>,
    order: Order,
    /// The next deadline that is not near yet.
    next_deadline: Option<Time>,
    /// Cells of the longest name.
    longest_name: u16,
    /// Whether one has a price.
    has_prices: bool,
    /// Destroyed ones, where the filter asks for them: shown in place of the others, never counted, marked or acted on.
    destroyed: Vec<Arc<Entry>>,
    filter: Filter,
    /// The sandbox the operator pointed at, shown or not.
    wanted: Option<SandboxId>,
    /// The cursor, which stays where `wanted` was shown last, and the rows around it.
    pub window: Window,
    /// The marked ones.
    pub marks: Marks<SandboxId>,
    counts: Counts,
}

impl Sandboxes {
    /// Takes a full list in place of everything known, which is handed back: freeing ten thousand records takes longer
    /// than a frame, so somebody else should.
    #[must_use]
    pub fn replace(&mut self, entries: Vec<Arc<Entry>>) -> Vec<Arc<Entry>> {
        self.records =
            entries.iter().map(|entry| (entry.record.id.clone(), Arc::clone(entry))).collect();
        let old = std::mem::replace(&mut self.sorted, entries);
        self.load = Load::Ready;
        self.marks.retain(|id| self.records.contains_key(id));
        self.reorder();
        old
    }

    /// Takes one record's newer version; an older one is ignored. One that is over leaves the list.
    pub fn upsert(&mut self, entry: Entry) {
        let id = entry.record.id.clone();
        if let Some(old) = self.records.get(&id) {
            if old.record.revision > entry.record.revision || **old == entry {
                return;
            }
            self.take_out(&id);
        }
        if entry.record.state.is_over() {
            self.marks.remove(&id);
        } else {
            let entry = Arc::new(entry);
            self.records.insert(id, Arc::clone(&entry));
            self.counts.take(&entry, &self.order.conditions, |count| *count += 1);
            self.look_ahead(&entry);
            let order = &self.order;
            let place = |list: &[Arc<Entry>]| {
                list.partition_point(|other| order.compare(other, &entry).is_lt())
            };
            let at = place(&self.sorted);
            self.sorted.insert(at, Arc::clone(&entry));
            if self.filter.passes(&entry, &mut Filter::matcher()) {
                let at = place(&self.shown);
                self.shown.insert(at, entry);
            }
        }
        self.settle();
    }

    /// Forgets one that is no longer there.
    pub fn remove(&mut self, id: &SandboxId) {
        self.take_out(id);
        self.marks.remove(id);
        self.settle();
    }

    fn take_out(&mut self, id: &SandboxId) {
        let Some(old) = self.records.remove(id) else { return };
        self.counts.take(&old, &self.order.conditions, |count| *count = count.saturating_sub(1));
        let shown = (!self.shows_destroyed()).then_some(&mut self.shown);
        for list in std::iter::once(&mut self.sorted).chain(shown) {
            if let Ok(at) = list.binary_search_by(|other| self.order.compare(other, &old)) {
                list.remove(at);
            }
        }
    }

    /// Sorts by another key.
    pub fn set_sort(&mut self, sort: Sort) {
        self.order.sort = sort;
        self.reorder();
    }

    /// How it is sorted.
    pub fn sort(&self) -> Sort {
        self.order.sort
    }

    /// Time, hosts and what is stale, as the order and the rows go by them.
    pub fn conditions(&self) -> &Conditions {
        &self.order.conditions
    }

    /// Takes newer conditions. Rows are sorted again only where these make another one's trouble begin or end.
    pub fn set_conditions(&mut self, conditions: Conditions) {
        let old = &self.order.conditions;
        let passed = self.next_deadline.is_some_and(|end| conditions.soon >= Some(end));
        // A clock that was set back makes what was near far again.
        let moved = passed || conditions.soon < old.soon || old.soon.is_none();
        let others = conditions.hosts != old.hosts || conditions.stale != old.stale;
        self.order.conditions = conditions;
        if moved || others {
            self.reorder();
        }
    }

    /// Takes what sandboxes use, for a sort that asks for it.
    pub fn set_uses(&mut self, uses: HashMap<SandboxId, SandboxUse>) {
        self.order.uses = uses;
        self.reorder();
    }

    /// Cells of the longest name.
    pub fn longest_name(&self) -> u16 {
        self.longest_name
    }

    /// Whether one has a price.
    pub fn has_prices(&self) -> bool {
        self.has_prices
    }

    /// Remembers what of a row changes the list by itself later.
    fn look_ahead(&mut self, entry: &Entry) {
        self.longest_name = self.longest_name.max(entry.name_columns);
        self.has_prices |= has_price(&entry.record);
        let soon = self.order.conditions.soon;
        let later = entry.record.expires_at.filter(|end| Some(*end) > soon);
        self.next_deadline = self.next_deadline.into_iter().chain(later).min();
    }

    /// Shows only what passes.
    pub fn set_filter(&mut self, filter: Filter) {
        let mut matcher = Filter::matcher();
        if filter.narrows(&self.filter) {
            self.shown.retain(|entry| filter.passes(entry, &mut matcher));
            self.filter = filter;
        } else {
            self.filter = filter;
            self.refilter();
        }
        self.settle();
    }

    /// The filter: only rows that pass it are shown.
    pub fn filter(&self) -> &Filter {
        &self.filter
    }

    fn reorder(&mut self) {
        let order = &self.order;
        self.sorted.sort_by(|a, b| order.compare(a, b));
        self.refilter();
        self.count();
        self.settle();
    }

    /// Whether those are shown that are over.
    pub fn shows_destroyed(&self) -> bool {
        self.filter.wants_destroyed()
    }

    /// Takes those that are over, which the filter asks for.
    pub fn set_destroyed(&mut self, destroyed: Vec<Arc<Entry>>) {
        self.destroyed = destroyed;
        if self.shows_destroyed() {
            self.refilter();
            self.settle();
        }
    }

    fn refilter(&mut self) {
        if self.filter.is_empty() {
            self.shown.clone_from(&self.sorted);
            return;
        }
        let mut matcher = Filter::matcher();
        let from = if self.shows_destroyed() { &self.destroyed } else { &self.sorted };
        self.shown = from
            .iter()
            .filter(|entry| self.filter.passes(entry, &mut matcher))
            .map(Arc::clone)
            .collect();
    }

    /// Finds the cursor again after a change: on its sandbox if that is shown, else where it was.
    fn settle(&mut self) {
        let wanted = self.wanted.as_ref();
        let at = wanted.and_then(|id| self.place_of(id));
        self.window.index = at.unwrap_or(self.window.index);
        self.window.fit(self.shown.len());
        // A filter may bring the wanted one back; one that is gone will not come back.
        if at.is_none() && wanted.is_none_or(|id| !self.records.contains_key(id)) {
            self.wanted = self.selected().map(|entry| entry.record.id.clone());
        }
    }

    /// Where a sandbox is among those shown.
    fn place_of(&self, id: &SandboxId) -> Option<usize> {
        let same = |entry: &Arc<Entry>| entry.record.id == *id;
        if self.shown.get(self.window.index).is_some_and(same) {
            return Some(self.window.index);
        }
        let entry = self.records.get(id)?;
        self.shown.binary_search_by(|other| self.order.compare(other, entry)).ok()
    }

    fn count(&mut self) {
        (self.counts, self.longest_name, self.next_deadline) = (Counts::default(), 0, None);
        self.has_prices = false;
        let sorted = std::mem::take(&mut self.sorted);
        for entry in &sorted {
            self.counts.take(entry, &self.order.conditions, |count| *count += 1);
            self.look_ahead(entry);
        }
        self.sorted = sorted;
    }

    /// How many there are of each kind.
    pub fn counts(&self) -> Counts {
        self.counts
    }

    /// The rows on the screen.
    pub fn window(&self) -> &[Arc<Entry>] {
        &self.shown[self.window.rows(self.shown.len())]
    }

    /// Rows that pass the filter.
    pub fn shown(&self) -> &[Arc<Entry>] {
        &self.shown
    }

    /// All of them, shown or not.
    pub fn all(&self) -> impl Iterator<Item = &Arc<Entry>> {
        self.sorted.iter()
    }

    pub fn len(&self) -> usize {
        self.sorted.len()
    }

    pub fn is_empty(&self) -> bool {
        self.sorted.is_empty()
    }

    /// The row under the cursor.
    pub fn selected(&self) -> Option<&Arc<Entry>> {
        self.shown.get(self.window.index)
    }

    /// The row of an id.
    pub fn get(&self, id: &SandboxId) -> Option<&Arc<Entry>> {
        self.records.get(id)
    }

    /// Moves the cursor to a place among those shown.
    pub fn go(&mut self, index: usize) {
        self.window.go(index, self.shown.len());
        self.wanted = self.selected().map(|entry| entry.record.id.clone());
    }

    /// Moves the cursor to the next one that needs a look, round the end; says whether there is one.
    pub fn go_to_trouble(&mut self) -> bool {
        let count = self.shown.len();
        let mut places = (1..=count).map(|step| (self.window.index + step) % count);
        let next = places.find(|at| self.order.conditions.needs_a_look(&self.shown[*at]));
        next.map(|at| self.go(at)).is_some()
    }

    /// How many rows that need a look the filter hides.
    pub fn hidden_troubles(&self) -> usize {
        let needs = |entry: &&Arc<Entry>| self.order.conditions.needs_a_look(entry);
        self.sorted.iter().filter(needs).count() - self.shown.iter().filter(needs).count()
    }

    /// Moves the cursor to a sandbox, shown or not.
    pub fn point_at(&mut self, id: SandboxId) {
        self.wanted = Some(id);
        self.settle();
    }

    /// How many marked ones the filter hides.
    pub fn hidden_marks(&self) -> usize {
        if self.marks.is_empty() || self.filter.is_empty() {
            return 0;
        }
        let visible = self.shown.iter().filter(|entry| self.marks.holds(&entry.record.id)).count();
        self.marks.ids().len() - visible
    }

    /// Marks or unmarks the row under the cursor and goes down.
    pub fn toggle_mark(&mut self) {
        if self.shows_destroyed() {
            return;
        }
        let Some(id) = self.selected().map(|entry| entry.record.id.clone()) else { return };
        self.marks.toggle(id);
        self.go(self.window.index + 1);
    }

    /// Marks from the last marked row to the cursor.
    pub fn mark_range(&mut self) {
        if self.shows_destroyed() {
            return;
        }
        let rows = self.shown.iter().map(|entry| Some(entry.record.id.clone()));
        self.marks.mark_to(&rows.collect::<Vec<_>>(), self.window.index);
    }

    /// Marks all that are shown; if all are, unmarks them.
    pub fn mark_all(&mut self) {
        if self.shows_destroyed() {
            return;
        }
        self.marks.toggle_all(&self.shown.iter().map(|entry| entry.record.id.clone()).collect());
    }

    /// Targets of a verb: the marked rows in the list's order, or the one under the cursor.
    pub fn targets(&self) -> Vec<Arc<Entry>> {
        if self.marks.is_empty() {
            let selected = self.selected().filter(|_| !self.shows_destroyed());
            return selected.cloned().into_iter().collect();
        }
        self.sorted.iter().filter(|entry| self.marks.holds(&entry.record.id)).cloned().collect()
    }
}
