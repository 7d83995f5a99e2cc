//! Credits pane: the sums, the spending of the last day, the last entries of the ledger.

use super::ledger::{HOURS, LOW_S, Ledger};
use super::spark::sparkline;
use super::window::Window;
use super::{Area, Fetch, Load, Model, Role};
use crate::domain::Usd;
use crate::domain::credit::HistoryEntry;
use crate::domain::extension::Capability;
use crate::domain::figures::{age, usd};
use crate::domain::name::SandboxId;
use crate::domain::text::columns;
use crate::present::Spans as Line;
use crate::present::credit::{AGE, AMOUNT, BALANCE, KIND, entry_role};
use crate::tui::keymap::{Action, Mode};

/// From this width on an entry has all its columns.
pub const WIDE: u16 = 76;

/// The pane.
#[derive(Debug, Clone, Default)]
pub struct CreditsPane {
    /// Whether the ledger is there. One that is there stays when it cannot be read again.
    pub load: Load,
    /// The read of the ledger, which begins with a pause.
    pub reading: Fetch,
    /// The ledger as it was read last.
    pub ledger: Ledger,
    /// Spending of the last hours, the oldest first.
    pub spent: Vec<Usd>,
    /// The entry under the cursor, and those on the screen.
    pub window: Window,
}

/// Rows of the pane: sums, spending, entries.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct CreditsLayout {
    /// The sums.
    pub sums: Area,
    /// Credits that were spent.
    pub spent: Area,
    /// The titles of the entries' columns.
    pub titles: Area,
    /// The entries.
    pub list: Area,
}

impl CreditsLayout {
    /// The rows of an area: sums alone where it is low, with titles where it is high and wide.
    fn of(area: Area) -> Self {
        let mut rest = area;
        let mut take = |rows: u16| {
            let rows = rows.min(rest.height);
            let taken = Area { height: rows, ..rest };
            rest = Area { y: rest.y + rows, height: rest.height - rows, ..rest };
            taken
        };
        let titles = u16::from(area.height >= 8 && area.width >= WIDE);
        Self { sums: take(1), spent: take(1), titles: take(titles), list: take(u16::MAX) }
    }
}

/// Row of an entry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EntryRow {
    /// How long ago.
    pub age: String,
    /// Kind of the entry.
    pub kind: String,
    /// The amount, with what it does to the balance.
    pub amount: (Role, String),
    /// The balance after it.
    pub balance: (Role, String),
    /// The sandbox, who caused it where that is not this operator, and the note.
    pub about: Line,
}

impl CreditsPane {
    /// Takes the ledger; the cursor stays on its entry, or with the newest.
    pub fn take(&mut self, ledger: Ledger) {
        let followed = self.window.index > 0;
        let at = self.selected().filter(|_| followed).map(|entry| entry.entry.id.clone());
        self.ledger = ledger;
        self.load = Load::Ready;
        let entries = &self.ledger.entries;
        let found = at.and_then(|id| entries.iter().position(|entry| entry.entry.id == id));
        self.go(found.unwrap_or(self.window.index));
    }

    /// The entry under the cursor.
    pub fn selected(&self) -> Option<&HistoryEntry> {
        self.ledger.entries.get(self.window.index)
    }

    /// Moves the cursor.
    pub fn go(&mut self, to: usize) {
        self.window.go(to, self.ledger.entries.len());
    }
}

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

    /// The row of an entry.
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::Time;
    use crate::domain::actor::{Actor, ActorType};
    use crate::domain::credit::{Credits, EntryKind, LedgerEntry};
    use crate::domain::name::EventId;

    fn ledger(count: u64) -> Ledger {
        let granted = |number| HistoryEntry {
            entry: LedgerEntry {
                id: EventId::new(format!("grant-{number}")),
                time: Time::from_unix(1_795_788_202),
                kind: EntryKind::Grant,
                sandbox_id: None,
                usd: Usd::from_micros(1),
                actor: Actor { kind: ActorType::Adm, name: "kim".to_owned() },
                note: None,
            },
            balance_usd: Usd::ZERO,
        };
        let now = Time::from_unix(1_795_788_202);
        Ledger::of(Credits::default(), (0..count).map(granted).collect(), now)
    }

    #[test]
    fn of_many_entries_the_last_are_kept_and_the_cursor_stays_on_its_own() {
        let mut pane = CreditsPane::default();
        pane.take(ledger(1500));
        assert_eq!((pane.ledger.entries.len(), pane.ledger.count), (1000, 1500));
        assert_eq!(pane.selected().unwrap().entry.id.as_str(), "grant-1499");
        pane.take(ledger(1501));
        assert_eq!(pane.selected().unwrap().entry.id.as_str(), "grant-1500", "the newest");
        pane.go(3);
        let before = pane.selected().unwrap().entry.id.clone();
        pane.take(ledger(1503));
        assert_eq!((pane.window.index, &pane.selected().unwrap().entry.id), (5, &before));
        pane.take(Ledger::default());
        assert_eq!(pane.window.index, 0);
    }

    #[test]
    fn rows_go_to_the_sums_first_and_titles_need_room() {
        let rows = |width, height| {
            let layout = CreditsLayout::of(Area::new(0, 3, width, height));
            [layout.sums, layout.spent, layout.titles, layout.list].map(|area| area.height)
        };
        assert_eq!(rows(40, 0), [0, 0, 0, 0]);
        assert_eq!(rows(40, 1), [1, 0, 0, 0]);
        assert_eq!(rows(40, 3), [1, 1, 0, 1]);
        assert_eq!(rows(40, 20), [1, 1, 0, 18]);
        assert_eq!(rows(100, 20), [1, 1, 1, 17]);
    }
}
