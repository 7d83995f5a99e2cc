//! Filter of the pane that has the focus.

use super::Model;
use crate::tui::model::filter::Filter;
use crate::tui::model::pane::Pane;

impl Model {
    /// The filter of the focused pane, or of the list where that has none.
    pub fn filter(&self) -> &Filter {
        match self.focus {
            Pane::Snapshots => self.snapshots.filter(),
            Pane::Sandboxes | Pane::Hosts | Pane::Credits | Pane::Activity => {
                self.sandboxes.filter()
            }
        }
    }
}
