//! Stale sandboxes in words, as rows and details say them.

use super::Model;
use crate::present::Role;
use crate::present::stale::{reap_words, stale_sentence};
use crate::tui::model::rows::Entry;

impl Model {
    /// Why a row is stale, and what a reap would do: a sentence; none where it is not.
    pub fn stale_words(&self, entry: &Entry) -> Option<(Role, String)> {
        let item = self.stale.of(&entry.record.id)?;
        Some((Role::Warn, stale_sentence(item)))
    }

    /// The same in a few words.
    pub(in crate::tui::model) fn stale_word(&self, entry: &Entry) -> Option<(Role, String)> {
        let item = self.stale.of(&entry.record.id)?;
        let reap = reap_words(&item.action).unwrap_or("kept");
        Some((Role::Warn, format!("{}: {reap}", item.class)))
    }
}
