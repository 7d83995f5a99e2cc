//! Search in an overlay: what is searched for, and what was found last. A search belongs to the overlay that it was begun in.

use std::mem::{Discriminant, discriminant};

use tui_input::Input;

use super::search_pattern::SearchPattern;

/// Search in one overlay; `O` is what overlays are.
#[derive(Debug, Clone)]
pub struct Search<O> {
    depth: usize,
    overlay: Discriminant<O>,
    pub pattern: SearchPattern,
    /// Match that was found last: its place among the matches, which stays when rows are wrapped anew.
    pub found: Option<usize>,
    /// The text field, while one types.
    pub field: Option<Input>,
    /// The first row on the screen, or the row under the cursor, when it began.
    pub before: usize,
}

/// Searches of the open overlays.
#[derive(Debug, Clone)]
pub struct Searches<O>(Vec<Search<O>>);

impl<O> Default for Searches<O> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

impl<O> Searches<O> {
    /// Begins a search in the overlay on top, in place of the one that was there.
    pub fn begin(&mut self, overlays: &[O], before: usize) {
        let Some(top) = overlays.last() else { return };
        self.end(overlays.len());
        self.0.push(Search {
            depth: overlays.len(),
            overlay: discriminant(top),
            pattern: SearchPattern::default(),
            found: None,
            field: Some(Input::default()),
            before,
        });
    }

    /// Ends the search at this depth; it comes back.
    pub fn end(&mut self, depth: usize) -> Option<Search<O>> {
        let at = self.0.iter().position(|search| search.depth == depth)?;
        Some(self.0.remove(at))
    }

    /// Ends those whose overlay is closed.
    pub fn keep_open(&mut self, overlays: &[O]) {
        let is_open = |search: &Search<O>| {
            let overlay = search.depth.checked_sub(1).and_then(|at| overlays.get(at));
            overlay.is_some_and(|overlay| discriminant(overlay) == search.overlay)
        };
        self.0.retain(is_open);
    }

    /// Closes the text fields: nobody sees them.
    pub fn close_fields(&mut self) {
        for search in &mut self.0 {
            search.field = None;
        }
    }

    /// The same, to be read.
    pub(super) fn at(&self, depth: usize) -> Option<&Search<O>> {
        self.0.iter().find(|search| search.depth == depth)
    }

    pub fn at_mut(&mut self, depth: usize) -> Option<&mut Search<O>> {
        self.0.iter_mut().find(|search| search.depth == depth)
    }
}
