//! Search in an overlay: what is searched for, and what was found last. A search belongs to the overlay that it was begun in.

use std::mem::{Discriminant, discriminant};

use tui_input::Input;

use super::search_pattern::SearchPattern;
use super::{Job, Model, Overlay};

/// Search in one overlay.
#[derive(Debug, Clone)]
pub struct Search {
    depth: usize,
    overlay: Discriminant<Overlay>,
    /// Pattern that is searched for.
    pub pattern: SearchPattern,
    /// Match that was found last: its place among the matches, which stays when rows are wrapped anew.
    pub found: Option<usize>,
    /// The text field, while one types.
    pub field: Option<Input>,
    /// The first row on the screen, or the row under the cursor, when it began.
    pub before: usize,
}

/// Searches of the open overlays.
#[derive(Debug, Clone, Default)]
pub struct Searches(Vec<Search>);

impl Searches {
    /// Begins a search in the overlay on top, in place of the one that was there.
    pub fn begin(&mut self, overlays: &[Overlay], before: usize) {
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
    pub fn end(&mut self, depth: usize) -> Option<Search> {
        let at = self.0.iter().position(|search| search.depth == depth)?;
        Some(self.0.remove(at))
    }

    /// Ends those whose overlay is closed.
    pub fn keep_open(&mut self, overlays: &[Overlay]) {
        let is_open = |search: &Search| {
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

    fn at(&self, depth: usize) -> Option<&Search> {
        self.0.iter().find(|search| search.depth == depth)
    }

    /// The search at this depth.
    pub fn at_mut(&mut self, depth: usize) -> Option<&mut Search> {
        self.0.iter_mut().find(|search| search.depth == depth)
    }
}

impl Model {
    /// The search in the overlay on top.
    pub fn search(&self) -> Option<&Search> {
        self.searches.at(self.overlays.len())
    }

    /// The rows where the pattern of that search matches in the overlay on top, from above, one for each match: in its text, or
    /// in what its rows are about.
    pub fn found(&self) -> Vec<usize> {
        let (Some(search), Some(overlay)) = (self.search(), self.overlays.last()) else {
            return Vec::new();
        };
        if let Some(block) = self.block_of(overlay) {
            let matches = block.matches(&search.pattern).into_iter();
            return matches.filter_map(|found| found.parts.first().map(|(row, _)| *row)).collect();
        }
        let rows = self.rows_of(overlay).into_iter().enumerate();
        rows.filter(|(_, text)| search.pattern.is_in(text)).map(|(row, _)| row).collect()
    }

    /// Texts of the rows of an overlay that is a list.
    fn rows_of(&self, overlay: &Overlay) -> Vec<String> {
        match overlay {
            Overlay::Jobs(_) => self.jobs.list().map(job_words).collect(),
            Overlay::Patches(patches) => patches.words(),
            Overlay::Reap => self.reap_texts(),
            _ => Vec::new(),
        }
    }
}

/// Text of a job's row.
fn job_words(job: &Job) -> String {
    let said = job.state.problem().map(|problem| problem.message.as_str()).or(job.last_line());
    let who = job.external.as_ref().map(|external| external.actor.to_string()).unwrap_or_default();
    let (kind, title, state) = (&job.kind, &job.title, job.state.word());
    format!("{kind} {title} {state} {who} {}", said.unwrap_or_default())
}
