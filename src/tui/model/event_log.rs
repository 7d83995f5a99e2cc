//! Events overlay: what happened, the newest first; who caused it and why; in groups and by a filter. It follows what comes.

use tui_input::Input;

use super::Load;
use super::event_filter::EventFilter;
use super::event_rows::{EventRow, EventRows};
use super::window::Window;
use crate::domain::Time;
use crate::domain::event::{Event, EventKind};
use crate::domain::profile::Seconds;

/// How far back is read, where the filter does not say more.
const READ: Seconds = Seconds::hours(7 * 24);

/// Group of kinds that answer a question.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum EventGroup {
    /// Everything.
    #[default]
    All,
    /// Removals, by whom and why.
    Removed,
    /// Failures and losses.
    Failed,
    /// Things that came to be.
    Made,
    /// Snapshots and patches.
    Snapshots,
    Credits,
    /// Hosts and reaps.
    Hosts,
}

impl EventGroup {
    const ALL: [Self; 7] = [
        Self::All,
        Self::Removed,
        Self::Failed,
        Self::Made,
        Self::Snapshots,
        Self::Credits,
        Self::Hosts,
    ];

    /// Name in the title.
    pub fn title(self) -> &'static str {
        match self {
            Self::All => "all",
            Self::Removed => "removed",
            Self::Failed => "failed",
            Self::Made => "made",
            Self::Snapshots => "snapshots and patches",
            Self::Credits => "credits",
            Self::Hosts => "hosts and reaps",
        }
    }

    fn beside(self, forward: bool) -> Self {
        let count = Self::ALL.len();
        let at = Self::ALL.iter().position(|group| *group == self).unwrap_or_default();
        Self::ALL[(at + if forward { 1 } else { count - 1 }) % count]
    }

    fn holds(self, kind: &EventKind) -> bool {
        match self {
            Self::All => true,
            Self::Removed => matches!(
                kind,
                EventKind::SandboxDestroyed
                    | EventKind::SandboxForgotten
                    | EventKind::SnapshotDeleted
                    | EventKind::PatchRemoved
            ),
            Self::Failed => matches!(
                kind,
                EventKind::SandboxFailed
                    | EventKind::SandboxLost
                    | EventKind::SnapshotFailed
                    | EventKind::PatchFailed
            ),
            Self::Made => matches!(
                kind,
                EventKind::SandboxRequested
                    | EventKind::SandboxReady
                    | EventKind::SandboxRestored
                    | EventKind::SandboxRecreated
                    | EventKind::SandboxAdopted
            ),
            Self::Snapshots => kind.is_of_snapshot() || kind.is_of_patch(),
            Self::Credits => kind.is_of_credits(),
            Self::Hosts => matches!(
                kind,
                EventKind::HostDown
                    | EventKind::HostUp
                    | EventKind::HostChanged
                    | EventKind::ReapPlanned
                    | EventKind::ReapApplied
            ),
        }
    }
}

/// The overlay.
#[derive(Debug, Clone, Default)]
pub struct EventLog {
    /// Whether the events are there.
    pub load: Load,
    /// The group that is shown.
    pub group: EventGroup,
    /// The filter's text field while it is open.
    pub field: Option<Input>,
    /// The cursor, and what is on the screen.
    pub window: Window,
    /// How far back was read.
    pub read: Option<Seconds>,
    rows: EventRows,
    /// Numbers of those that are shown, the newest first.
    shown: Vec<u64>,
    filter: EventFilter,
}

impl EventLog {
    /// How far back is to be read for the filter, if that was not read yet.
    pub fn is_to_be_read(&mut self) -> Option<Seconds> {
        let wanted = self.filter.since().unwrap_or(READ).max(READ);
        if self.read.is_some_and(|read| read >= wanted) {
            return None;
        }
        self.read = Some(wanted);
        Some(wanted)
    }

    /// Takes the rows that were read; those that were heard meanwhile stay behind them.
    pub fn replace(&mut self, read: EventRows, now: Time) {
        let at = self.selected().map(|row| row.seq).filter(|_| self.window.index > 0);
        let heard = std::mem::replace(&mut self.rows, read);
        self.rows.follow_with(heard);
        self.load = Load::Ready;
        self.refilter(now);
        self.point_at(at);
    }

    /// Takes an event that was heard. The cursor stays on its event, or with the newest.
    pub fn hear(&mut self, event: &Event, now: Time) {
        if self.rows.last_seq().is_some_and(|last| last >= event.seq) {
            return;
        }
        let at = self.selected().map(|row| row.seq).filter(|_| self.window.index > 0);
        let gone = self.rows.push(event);
        if gone.is_some() && self.shown.last().copied() == gone {
            self.shown.pop();
        }
        let passes = self.rows.each().next_back().is_some_and(|row| self.is_shown(row, now));
        if passes {
            self.shown.insert(0, event.seq);
        }
        self.point_at(at);
    }

    fn is_shown(&self, row: &EventRow, now: Time) -> bool {
        self.group.holds(&row.kind) && self.filter.passes(row, now)
    }

    fn refilter(&mut self, now: Time) {
        let rows = self.rows.each().rev().filter(|row| self.is_shown(row, now));
        self.shown = rows.map(|row| row.seq).collect();
        self.window.fit(self.shown.len());
    }

    /// Shows the next group, or the one before.
    pub fn turn(&mut self, forward: bool, now: Time) {
        self.group = self.group.beside(forward);
        self.refilter(now);
        self.go(0);
    }

    /// Shows only what passes.
    pub fn set_filter(&mut self, filter: EventFilter, now: Time) {
        self.filter = filter;
        self.refilter(now);
        self.go(0);
    }

    /// The filter: only events that pass it are shown.
    pub fn filter(&self) -> &EventFilter {
        &self.filter
    }

    /// How many are shown, and how many there are.
    pub fn count(&self) -> (usize, usize) {
        (self.shown.len(), self.rows.len())
    }

    /// Whether there were older ones in that time, which were not read or are not kept.
    pub fn is_cut(&self) -> bool {
        self.rows.is_cut()
    }

    /// The row at a place among those that are shown.
    pub fn at(&self, place: usize) -> Option<&EventRow> {
        let seq = *self.shown.get(place)?;
        self.rows.get(seq)
    }

    /// The row under the cursor.
    pub fn selected(&self) -> Option<&EventRow> {
        self.at(self.window.index)
    }

    /// Moves the cursor.
    pub fn go(&mut self, to: usize) {
        self.window.go(to, self.shown.len());
    }

    fn point_at(&mut self, seq: Option<u64>) {
        let at = seq.and_then(|seq| self.shown.iter().position(|shown| *shown == seq));
        self.go(at.unwrap_or(0));
    }
}
