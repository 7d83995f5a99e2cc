//! Search in the overlay on top, and the rows where it matches.

use super::{Model, Overlay};
use crate::tui::model::job::Job;
use crate::tui::model::search::Search;

impl Model {
    /// The search in the overlay on top.
    pub fn search(&self) -> Option<&Search<Overlay>> {
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
