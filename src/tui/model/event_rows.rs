//! Rows of the events overlay: made of the newest events, off the UI's thread where there are many.

use std::collections::vec_deque::Iter;
use std::collections::{HashMap, VecDeque};

use super::Role;
use super::event_filter::{EventFacets, EventField};
use crate::domain::Time;
use crate::domain::event::{Event, EventKind};
use crate::domain::name::SandboxId;
use crate::domain::text::clean_line;
use crate::present::{event_glyph, event_particulars, verb};

/// Cells that a text has at most.
const WIDEST: usize = 400;

/// Row of an event: its texts are clean.
#[derive(Debug, Clone, PartialEq)]
pub struct EventRow {
    /// Its number.
    pub seq: u64,
    pub time: Time,
    /// Its glyph and how that is meant.
    pub glyph: (char, Role),
    /// Name of the event, in a word or two.
    pub what: String,
    /// To which sandbox.
    pub id: Option<SandboxId>,
    /// Name of that, or of the snapshot.
    pub name: String,
    /// Actor that caused it.
    pub by: String,
    /// Why, and what else is told of it.
    pub why: String,
    pub(super) kind: EventKind,
    /// Texts that the filter looks at, in small letters: kind, sandbox, who, host, reason, the rest.
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

/// Rows of the newest events, the oldest first.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct EventRows {
    rows: VecDeque<EventRow>,
    /// Whether older events are left out.
    is_cut: bool,
    /// Names of sandboxes when something was told of them.
    names: HashMap<SandboxId, String>,
    /// Why the removal of each began.
    reasons: HashMap<SandboxId, String>,
}

impl EventRows {
    /// Events that are kept to be read.
    pub const KEPT: usize = 10_000;

    /// Rows of events, which come in order; of more than are kept, the newest.
    pub fn of(events: &[Event]) -> Self {
        let mut rows = Self::default();
        let skip = events.len().saturating_sub(Self::KEPT);
        rows.is_cut = skip > 0;
        for event in &events[skip..] {
            rows.push(event);
        }
        rows
    }

    /// Adds an event behind the others; the number of the one that is not kept any more for it.
    pub(super) fn push(&mut self, event: &Event) -> Option<u64> {
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
        self.cut()
    }

    /// Adds what was heard while these were read, as far as it is not among them.
    pub(super) fn follow_with(&mut self, heard: Self) {
        let last = self.last_seq().unwrap_or(0);
        self.rows.extend(heard.rows.into_iter().filter(|row| row.seq > last));
        self.names.extend(heard.names);
        self.reasons.extend(heard.reasons);
        while self.cut().is_some() {}
    }

    fn cut(&mut self) -> Option<u64> {
        let gone = if self.rows.len() > Self::KEPT { self.rows.pop_front() } else { None };
        self.is_cut |= gone.is_some();
        gone.map(|row| row.seq)
    }

    /// Whether older events are left out.
    pub(super) fn is_cut(&self) -> bool {
        self.is_cut
    }

    /// How many they are.
    pub(super) fn len(&self) -> usize {
        self.rows.len()
    }

    /// Rows, the oldest first.
    pub(super) fn each(&self) -> Iter<'_, EventRow> {
        self.rows.iter()
    }

    /// Number of the newest.
    pub(super) fn last_seq(&self) -> Option<u64> {
        self.rows.back().map(|row| row.seq)
    }

    /// The one with a number.
    pub(super) fn get(&self, seq: u64) -> Option<&EventRow> {
        let at = self.rows.binary_search_by_key(&seq, |row| row.seq).ok()?;
        self.rows.get(at)
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
        let (by, name) = (clean(&event.actor.to_string()), clean(&name.unwrap_or_default()));
        let sandbox = format!("{} {name}", id_text.unwrap_or_default());
        let why = clean(&event_particulars(event, &reason));
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
}
