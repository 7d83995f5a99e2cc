//! Events overlay: what happened, the newest first; who caused it and why; in groups and by a filter. It follows what comes.

use std::collections::{HashMap, VecDeque};

use tui_input::Input;

use super::event_filter::{EventFacets, EventField, EventFilter};
use super::event_words::{event_glyph, verb};
use super::window::Window;
use super::{Load, Role};
use crate::domain::Time;
use crate::domain::event::{Event, EventKind};
use crate::domain::name::SandboxId;
use crate::domain::profile::Seconds;
use crate::domain::text::clean_line;

/// Events that are kept to be read.
const KEPT: usize = 10_000;
/// How far back is read, where the filter does not say more.
const READ: Seconds = Seconds::hours(7 * 24);
/// Cells that a text has at most.
const WIDEST: usize = 400;

/// Group of kinds that answer a question.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum EventGroup {
    /// Everything.
    #[default]
    All,
    /// Who destroyed what, and why.
    Removed,
    /// What failed or was lost.
    Failed,
    /// What came to be.
    Made,
    /// Snapshots and patches.
    Snapshots,
    /// Credits.
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

    /// As the title says.
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

/// Row of an event: its texts are clean.
#[derive(Debug, Clone, PartialEq)]
pub struct EventRow {
    /// Its number.
    pub seq: u64,
    /// When.
    pub time: Time,
    /// Its glyph and how that is meant.
    pub glyph: (char, Role),
    /// What happened, in a word or two.
    pub what: String,
    /// To which sandbox.
    pub id: Option<SandboxId>,
    /// What that, or the snapshot, is called.
    pub name: String,
    /// Who caused it.
    pub by: String,
    /// Why, and what else is told of it.
    pub why: String,
    kind: EventKind,
    /// What the filter looks at, in small letters: kind, sandbox, who, host, reason, the rest.
    facets: [String; 6],
}

impl EventFacets for EventRow {
    fn facet(&self, field: EventField) -> &str {
        let [kind, sandbox, by, host, reason, text] = &self.facets;
        match field {
            EventField::Kind => kind,
            EventField::Sandbox => sandbox,
            EventField::By => by,
            EventField::Host => host,
            EventField::Reason => reason,
            EventField::Text => text,
        }
    }

    fn time(&self) -> Time {
        self.time
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
    /// The rows, the oldest first.
    rows: VecDeque<EventRow>,
    /// Numbers of those that are shown, the newest first.
    shown: Vec<u64>,
    filter: EventFilter,
    /// What sandboxes were called when something was told of them.
    names: HashMap<SandboxId, String>,
    /// Why the removal of each began.
    reasons: HashMap<SandboxId, String>,
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

    /// Takes the events that were read, in order; those that were heard meanwhile stay behind them.
    pub fn replace(&mut self, events: &[Event], now: Time) {
        let at = self.selected().map(|row| row.seq).filter(|_| self.window.index > 0);
        let heard = std::mem::take(&mut self.rows);
        let skip = events.len().saturating_sub(KEPT);
        for event in &events[skip..] {
            self.push(event);
        }
        let last = self.rows.back().map_or(0, |row| row.seq);
        self.rows.extend(heard.into_iter().filter(|row| row.seq > last));
        self.load = Load::Ready;
        self.refilter(now);
        self.point_at(at);
    }

    /// Takes an event that was heard. The cursor stays on its event, or with the newest.
    pub fn hear(&mut self, event: &Event, now: Time) {
        if self.rows.back().is_some_and(|last| last.seq >= event.seq) {
            return;
        }
        let at = self.selected().map(|row| row.seq).filter(|_| self.window.index > 0);
        self.push(event);
        if self.rows.len() > KEPT {
            let gone = self.rows.pop_front().map(|row| row.seq);
            if self.shown.last().copied() == gone {
                self.shown.pop();
            }
        }
        let passes = self.rows.back().is_some_and(|row| self.is_shown(row, now));
        if passes {
            self.shown.insert(0, event.seq);
        }
        self.point_at(at);
    }

    fn push(&mut self, event: &Event) {
        if let Some(id) = &event.sandbox_id {
            if let Some(name) = event.sandbox_name().filter(|_| !event.kind.is_of_snapshot()) {
                self.names.insert(id.clone(), name.to_owned());
            }
            if let Some(reason) = event.text("reason") {
                self.reasons.insert(id.clone(), reason.to_owned());
            }
        }
        let row = self.row(event);
        self.rows.push_back(row);
    }

    fn row(&self, event: &Event) -> EventRow {
        let id = event.sandbox_id.as_ref();
        let clean = |text: &str| clean_line(text, WIDEST);
        // That a sandbox is gone comes without its reason: why, the begin of its removal told.
        let begun = || id.and_then(|id| self.reasons.get(id)).map(String::as_str);
        let is_end = event.kind == EventKind::SandboxDestroyed;
        let reason = event.text("reason").or_else(|| begun().filter(|_| is_end));
        let reason = clean(reason.unwrap_or_default());
        let named = id.and_then(|id| self.names.get(id)).cloned();
        let id_text = id.map(ToString::to_string);
        let snapshot = event.snapshot_name().or(event.snapshot_id()).map(str::to_owned);
        let host = clean(event.host().unwrap_or_default());
        let name = match &event.kind {
            kind if kind.is_of_snapshot() => snapshot.or(named).or(id_text.clone()),
            _ => named.or(id_text.clone()).or(snapshot),
        };
        let message = clean(event.text("message").unwrap_or_default());
        let labels = event.label_changes().join(" ");
        let amount = event.usd().map(|amount| amount.to_string()).unwrap_or_default();
        let on = if host.is_empty() { String::new() } else { format!("on {host}") };
        let note = clean(event.text("note").unwrap_or_default());
        let words = [amount.as_str(), &reason, &message, &labels, &note, &on];
        let words: Vec<&str> = words.into_iter().filter(|word| !word.is_empty()).collect();
        let (by, name) = (clean(&event.actor.to_string()), clean(&name.unwrap_or_default()));
        let sandbox = format!("{} {name}", id_text.unwrap_or_default());
        let why = words.join("  ");
        let facets = [event.kind.as_str(), &sandbox, &by, &host, &reason, &why];
        EventRow {
            seq: event.seq,
            time: event.time,
            glyph: event_glyph(&event.kind),
            what: verb(&event.kind),
            id: id.cloned(),
            kind: event.kind.clone(),
            facets: facets.map(str::to_lowercase),
            name,
            by,
            why,
        }
    }

    fn is_shown(&self, row: &EventRow, now: Time) -> bool {
        self.group.holds(&row.kind) && self.filter.passes(row, now)
    }

    fn refilter(&mut self, now: Time) {
        let rows = self.rows.iter().rev().filter(|row| self.is_shown(row, now));
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

    /// What is shown only.
    pub fn filter(&self) -> &EventFilter {
        &self.filter
    }

    /// How many are shown, and how many there are.
    pub fn count(&self) -> (usize, usize) {
        (self.shown.len(), self.rows.len())
    }

    /// The row at a place among those that are shown.
    pub fn at(&self, place: usize) -> Option<&EventRow> {
        let seq = *self.shown.get(place)?;
        let at = self.rows.binary_search_by_key(&seq, |row| row.seq).ok()?;
        self.rows.get(at)
    }

    /// The row under the cursor.
    pub fn selected(&self) -> Option<&EventRow> {
        self.at(self.window.index)
    }

    /// Moves the cursor.
    pub fn go(&mut self, to: usize) {
        self.window.index = to;
        self.window.fit(self.shown.len());
    }

    fn point_at(&mut self, seq: Option<u64>) {
        let at = seq.and_then(|seq| self.shown.iter().position(|shown| *shown == seq));
        self.go(at.unwrap_or(0));
    }

    /// Tells how many rows are on the screen.
    pub fn set_height(&mut self, height: usize) {
        self.window.height = height;
        self.window.fit(self.shown.len());
    }
}
