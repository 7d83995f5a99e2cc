//! Credits pane of the whole model: its rows, its texts and what is pressed there.

use super::Model;
use crate::domain::Usd;
use crate::domain::credit::HistoryEntry;
use crate::domain::extension::Capability;
use crate::domain::name::SandboxId;
use crate::domain::text::columns;
use crate::present::credit::{AGE, AMOUNT, BALANCE, KIND, entry_role};
use crate::present::{Role, Spans as Line, age, usd};
use crate::tui::keymap::{Action, Mode};
use crate::tui::model::credits::{CreditsLayout, EntryRow};
use crate::tui::model::fetch::Load;
use crate::tui::model::ledger::{HOURS, LOW_S};
use crate::tui::model::spark::sparkline;

impl Model {
    /// The rows of the pane.
    pub fn credits_layout(&self) -> CreditsLayout {
        CreditsLayout::of(self.screen().credits)
    }

    /// Text in place of credits, in so many lines: that they are read, cannot be, or are not there, and what to do.
    pub fn instead_of_credits(&self, height: usize) -> Option<Vec<Line>> {
        if !self.credits.ledger.is_empty() {
            return None;
        }
        let key = |action| (Role::Key, self.keymap.first(Mode::Main, action).unwrap_or_default());
        let dim = |text: &str| (Role::Dim, text.to_owned());
        let problem = match &self.credits.load {
            Load::Loading => return Some(vec![vec![dim("reading…")]]),
            Load::Ready if self.costs_something() => {
                let none = vec![(Role::Warn, "no credits were granted".to_owned())];
                let grant = vec![key(Action::Grant), dim(" grants some; what costs is refused")];
                return Some(vec![none, grant]);
            }
            Load::Ready => {
                let none = "no extension that is metered is in the catalogue";
                return Some(vec![vec![dim("nothing here costs credits")], vec![dim(none)]]);
            }
            Load::Failed(problem) => problem,
        };
        let mut lines = vec![vec![(Role::Bad, format!("✗ {}", problem.message))]];
        lines.extend(problem.hint.iter().map(|hint| vec![(Role::Key, hint.clone())]));
        lines.extend(problem.causes.iter().map(|cause| vec![(Role::Plain, cause.clone())]));
        // The keys have a row even where there are but two.
        lines.truncate(height.saturating_sub(1).max(1));
        let (open, again) = (key(Action::Open), key(Action::Redraw));
        lines.push(vec![open, dim(" shows all  "), again, dim(" tries again")]);
        Some(lines)
    }

    /// Whether an extension takes money.
    fn costs_something(&self) -> bool {
        let mut manifests = self.extensions.iter().filter_map(|view| view.manifest.as_ref());
        manifests.any(|manifest| manifest.has(&Capability::Metered))
    }

    /// Cost of the last day: in words, and as a sparkline that fills so many cells with them.
    pub fn spending(&self, cells: usize) -> (String, String) {
        let spent = &self.credits.spent;
        let total = spent.iter().fold(Usd::ZERO, |sum, hour| sum + *hour);
        let words = format!("{HOURS}h {} ", usd(total));
        let cells = cells.saturating_sub(columns(&words)).min(spent.len());
        let hour = |hour: &Usd| Some(hour.micros() as f64).filter(|micros| *micros > 0.0);
        let hours: Vec<Option<f64>> = spent[spent.len() - cells..].iter().map(hour).collect();
        let top = hours.iter().flatten().fold(1.0_f64, |top, hour| top.max(*hour));
        (words, sparkline(&hours, top))
    }

    pub fn entry_row(&self, entry: &HistoryEntry) -> EntryRow {
        let record = &entry.entry;
        let mut about = Line::new();
        if let Some(id) = &record.sandbox_id {
            let name = self.name_of(id).unwrap_or_else(|| id.to_string());
            about.push((Role::Plain, format!("{name} ")));
        }
        let by = record.actor.to_string();
        if by != self.actor {
            about.push((Role::Dim, format!("by {by} ")));
        }
        about.extend(record.note.clone().map(|note| (Role::Dim, note)));
        let gone = entry.balance_usd <= Usd::ZERO;
        EntryRow {
            age: (AGE.cell)(entry, self.now),
            kind: (KIND.cell)(entry, self.now),
            amount: (entry_role(entry), (AMOUNT.cell)(entry, self.now)),
            balance: (if gone { Role::Warn } else { Role::Plain }, (BALANCE.cell)(entry, self.now)),
            about,
        }
    }

    /// The sandbox of the entry under the cursor, in the list or not.
    pub fn credit_sandbox_id(&self) -> Option<SandboxId> {
        self.credits.selected()?.entry.sandbox_id.clone()
    }

    /// Measures what was spent, by the ledger and by what runs.
    pub fn measure_spending(&mut self) {
        let cost_of = |id: &SandboxId| self.sandboxes.get(id)?.record.cost_usd;
        self.credits.spent = self.credits.ledger.spent(self.now, cost_of);
    }

    /// The sums in words, the most important first: balance, held, burn, how long it lasts.
    pub fn credit_sums(&self) -> Vec<(Role, String)> {
        let ledger = &self.credits.ledger;
        let sums = &ledger.sums;
        let balance = if ledger.warning().is_some() { Role::Warn } else { Role::Title };
        let mut parts = vec![(balance, usd(sums.balance_usd))];
        if sums.held_usd != Usd::ZERO {
            parts.push((Role::Dim, format!("held {}", usd(sums.held_usd))));
        }
        if let Some(seconds) = ledger.sums.lasts().map(|time| time.as_secs()) {
            let soon = if seconds < LOW_S { Role::Warn } else { Role::Plain };
            parts.push((Role::Plain, format!("{}/h", usd(sums.burn_usd_per_h))));
            parts.push((soon, age(seconds)));
        }
        parts
    }
}
