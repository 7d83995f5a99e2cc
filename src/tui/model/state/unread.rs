//! Records that could not be read.

use std::collections::BTreeSet;

use super::Model;
use crate::client::Error;
use crate::tui::model::fetch::Load;

impl Model {
    /// Errors of records that could not be read at the last try, each once.
    pub fn unread(&self) -> impl Iterator<Item = &Error> {
        let loads =
            [&self.sandboxes.load, &self.snapshots.load, &self.hosts.load, &self.credits.load];
        let failed = loads.into_iter().filter_map(|load| match load {
            Load::Failed(problem) => Some(problem),
            Load::Loading | Load::Ready => None,
        });
        let mut seen = BTreeSet::new();
        let all = failed.chain(&self.activity.operations_problem);
        all.filter(move |problem| seen.insert(problem.message.clone()))
    }
}
