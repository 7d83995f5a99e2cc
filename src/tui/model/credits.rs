//! Credits pane: the sums, the spending of the last day, the last entries of the ledger.

use super::ledger::Ledger;
use super::window::Window;
use super::{Area, Fetch, Load, Role};
use crate::domain::Usd;
use crate::domain::credit::HistoryEntry;
use crate::present::Spans as Line;

/// From this width on an entry has all its columns.
pub(crate) const WIDE: u16 = 76;

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
    pub sums: Area,
    pub spent: Area,
    /// The titles of the entries' columns.
    pub titles: Area,
    /// The entries.
    pub list: Area,
}

impl CreditsLayout {
    /// The rows of an area: sums alone where it is low, with titles where it is high and wide.
    pub(super) fn of(area: Area) -> Self {
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

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EntryRow {
    /// How long ago.
    pub age: String,
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
