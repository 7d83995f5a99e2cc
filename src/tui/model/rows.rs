//! One row of the list, and the orders it can be sorted in.

use std::cmp::Ordering;
use std::sync::Arc;

use super::words::short_profile;
use crate::domain::State;
use crate::domain::sandbox::SandboxRecord;
use crate::domain::text::clean_line;

/// A record with the lowercase texts that the filter looks at, made once (and off the UI's thread).
#[derive(Debug, Clone, PartialEq)]
pub struct Entry {
    /// The record.
    pub record: Arc<SandboxRecord>,
    /// Its fields for fuzzy words: id, name, profile, host, each clean and lowercase.
    pub words: [String; 4],
    /// Its state, lowercase.
    pub state: String,
    /// Services that should run and do not.
    pub degraded: usize,
}

impl Entry {
    /// The row of a record.
    pub fn new(record: impl Into<Arc<SandboxRecord>>) -> Self {
        let record = record.into();
        let lower = |text: &str| clean_line(text, 80).to_lowercase();
        let words = [
            lower(record.id.as_str()),
            lower(record.name.as_deref().unwrap_or_default()),
            lower(short_profile(&record.profile.id)),
            lower(record.host.as_str()),
        ];
        let state = lower(record.state.as_str());
        let degraded = record.degraded().count();
        Self { record, words, state, degraded }
    }
}

/// What the list is sorted by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SortKey {
    /// When it was created.
    Age,
    /// Its deadline.
    Left,
    /// Its state, what needs a look first.
    State,
    /// Its name, those without one last.
    Name,
    /// Its host.
    Host,
    /// Its profile.
    Profile,
    /// Its id.
    Id,
}

impl SortKey {
    /// Every key, in the order in which `o` goes through them.
    pub const ALL: &'static [Self] =
        &[Self::Age, Self::Left, Self::State, Self::Name, Self::Host, Self::Profile, Self::Id];

    /// Its name.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Age => "age",
            Self::Left => "left",
            Self::State => "state",
            Self::Name => "name",
            Self::Host => "host",
            Self::Profile => "profile",
            Self::Id => "id",
        }
    }

    /// The next one.
    #[must_use]
    pub fn next(self) -> Self {
        let at = Self::ALL.iter().position(|key| *key == self).unwrap_or_default();
        Self::ALL[(at + 1) % Self::ALL.len()]
    }
}

/// An order of the list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sort {
    /// By what.
    pub key: SortKey,
    /// Whether turned round.
    pub descending: bool,
}

impl Default for Sort {
    /// The youngest first.
    fn default() -> Self {
        Self { key: SortKey::Age, descending: false }
    }
}

impl Sort {
    /// A total order: equal keys are ordered by id, so that no row ever jumps without a reason.
    pub fn compare(self, a: &Entry, b: &Entry) -> Ordering {
        let by_key = match self.key {
            SortKey::Age => b.record.created_at.cmp(&a.record.created_at),
            SortKey::Left => deadline(a).cmp(&deadline(b)),
            SortKey::State => rank(a).cmp(&rank(b)),
            SortKey::Name => {
                (a.words[1].is_empty(), &a.words[1]).cmp(&(b.words[1].is_empty(), &b.words[1]))
            }
            SortKey::Profile => a.words[2].cmp(&b.words[2]),
            SortKey::Host => a.words[3].cmp(&b.words[3]),
            SortKey::Id => Ordering::Equal,
        };
        let by_key = if self.descending { by_key.reverse() } else { by_key };
        let by_id = a.record.id.cmp(&b.record.id);
        by_key.then(if self.key == SortKey::Id && self.descending {
            by_id.reverse()
        } else {
            by_id
        })
    }
}

fn deadline(entry: &Entry) -> (bool, i64) {
    entry.record.expires_at.map_or((true, 0), |end| (false, end.unix()))
}

/// What needs a look first.
fn rank(entry: &Entry) -> u8 {
    match entry.record.state {
        State::Failed => 0,
        State::Lost => 1,
        State::Destroying => 2,
        State::Requested => 3,
        State::Provisioning => 4,
        State::Ready if entry.degraded > 0 => 5,
        State::Ready => 6,
        State::Sleeping => 7,
        State::Destroyed | State::Forgotten | State::Other(_) => 8,
    }
}
