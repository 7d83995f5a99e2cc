//! Rows of the list, what may be wrong with them, and the orders they can be sorted in.

use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use crate::domain::name::SandboxId;
use crate::domain::sandbox::SandboxRecord;
use crate::domain::stale::StaleClass;
use crate::domain::telemetry::SandboxUse;
use crate::domain::text::{clean_line, columns};
use crate::domain::{State, Time, Usd};
use crate::present::sandbox::short_profile;

/// A record with the lowercase texts that the filter looks at, made once (and off the UI's thread).
#[derive(Debug, Clone, PartialEq)]
pub struct Entry {
    pub record: Arc<SandboxRecord>,
    /// Its fields for fuzzy words: id, name, profile, host, each clean and lowercase.
    pub words: [String; 4],
    /// Its state, lowercase.
    pub state: String,
    /// Services that should run and do not.
    pub degraded: usize,
    /// Cells of its name.
    pub name_columns: u16,
}

impl Entry {
    /// The row of a record.
    pub fn new(record: impl Into<Arc<SandboxRecord>>) -> Self {
        let record = record.into();
        let lower = |text: &str| clean_line(text, 80).to_lowercase();
        let words = [
            lower(record.id.as_str()),
            lower(record.name.as_deref().unwrap_or_default()),
            lower(short_profile(record.profile.id.as_str())),
            lower(record.host.as_str()),
        ];
        let state = lower(record.state.as_str());
        let degraded = record.degraded().count();
        let name_columns = u16::try_from(columns(&words[1])).unwrap_or(u16::MAX);
        Self { record, words, state, degraded, name_columns }
    }
}

/// Reason why a row needs a look, the most urgent first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Trouble {
    Failed,
    /// Its host says that it is gone.
    Lost,
    /// Stale in another way: its time is over, or nobody finishes what was begun.
    Stale,
    /// Something is being done to it.
    Running,
    /// A service that should run does not.
    Degraded,
    /// Its deadline is near, or past.
    Expiring,
    /// Its host does not answer.
    Silent,
    /// Nothing.
    None,
}

/// Hosts that do not answer, by their names in small letters.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SilentHosts {
    /// Configured ones that do not answer.
    pub silent: BTreeSet<String>,
    /// All that are configured.
    pub known: BTreeSet<String>,
    /// Whether any other host counts as silent.
    pub strangers: bool,
}

impl SilentHosts {
    /// Whether a host is one of them; its name is in small letters.
    pub fn holds(&self, host: &str) -> bool {
        self.silent.contains(host) || (self.strangers && !self.known.contains(host))
    }
}

/// Conditions of trouble that are not in the record: time, hosts, what is stale.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Conditions {
    /// Deadlines up to here are near.
    pub soon: Option<Time>,
    /// Hosts that do not answer.
    pub hosts: SilentHosts,
    /// Recorded ones that are stale.
    pub stale: Arc<BTreeMap<SandboxId, StaleClass>>,
}

impl Conditions {
    /// Whether a row's deadline is near or past.
    pub fn is_expiring(&self, entry: &Entry) -> bool {
        let running = matches!(entry.record.state, State::Ready | State::Sleeping | State::Lost);
        running
            && entry.record.expires_at.is_some_and(|end| self.soon.is_some_and(|soon| end <= soon))
    }

    /// Whether somebody should look at a row: what is being done takes care of itself.
    pub fn needs_a_look(&self, entry: &Entry) -> bool {
        !matches!(self.trouble(entry), Trouble::Running | Trouble::None)
    }

    /// Whether a row is stale, in another way than its state says, and nobody is at work on it: of what is stuck, whoever was is
    /// dead.
    pub fn is_left_behind(&self, entry: &Entry) -> bool {
        if matches!(entry.record.state, State::Failed | State::Lost) {
            return false;
        }
        let class = self.stale.get(&entry.record.id);
        class.is_some_and(|class| *class == StaleClass::Stuck || entry.record.operation.is_none())
    }

    /// Reason why a row needs a look.
    pub fn trouble(&self, entry: &Entry) -> Trouble {
        let record = &entry.record;
        match record.state {
            State::Failed => Trouble::Failed,
            State::Lost => Trouble::Lost,
            _ if self.is_left_behind(entry) => Trouble::Stale,
            State::Requested | State::Provisioning | State::Destroying => Trouble::Running,
            _ if record.operation.is_some() => Trouble::Running,
            _ if entry.degraded > 0 => Trouble::Degraded,
            _ if self.is_expiring(entry) => Trouble::Expiring,
            _ if self.hosts.holds(&entry.words[3]) => Trouble::Silent,
            _ => Trouble::None,
        }
    }
}

/// Order of the list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SortKey {
    /// Rows that need a look first, then the youngest.
    Trouble,
    /// When it was created.
    Age,
    /// Its deadline.
    Left,
    /// Its state, what needs a look first.
    State,
    /// Its name, those without one last.
    Name,
    Host,
    Profile,
    Id,
    /// Processor time it uses, the most first.
    Cpu,
    /// Memory it uses, the most first.
    Memory,
    /// Cost so far, the most first.
    Cost,
}

impl SortKey {
    /// Every key, in the order in which `o` goes through them.
    pub const ALL: &'static [Self] = &[
        Self::Trouble,
        Self::Age,
        Self::Left,
        Self::State,
        Self::Name,
        Self::Host,
        Self::Profile,
        Self::Id,
        Self::Cpu,
        Self::Memory,
        Self::Cost,
    ];

    /// Its name.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Trouble => "trouble",
            Self::Age => "age",
            Self::Left => "ttl",
            Self::State => "state",
            Self::Name => "name",
            Self::Host => "host",
            Self::Profile => "profile",
            Self::Id => "id",
            Self::Cpu => "cpu",
            Self::Memory => "mem",
            Self::Cost => "cost",
        }
    }

    /// The key of this name, or of the name that it had in an earlier version.
    pub fn from_word(word: &str) -> Option<Self> {
        let word = if word == "left" { "ttl" } else { word };
        Self::ALL.iter().copied().find(|key| key.as_str() == word)
    }

    /// The next one.
    #[must_use]
    pub fn next(self) -> Self {
        let at = Self::ALL.iter().position(|key| *key == self).unwrap_or_default();
        Self::ALL[(at + 1) % Self::ALL.len()]
    }

    /// Whether it is about figures that hosts send every few seconds.
    pub fn is_measured(self) -> bool {
        matches!(self, Self::Cpu | Self::Memory)
    }
}

/// An order of the list, as one asks for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sort {
    /// By what.
    pub key: SortKey,
    /// Whether turned round.
    pub descending: bool,
}

impl Default for Sort {
    /// Trouble first.
    fn default() -> Self {
        Self { key: SortKey::Trouble, descending: false }
    }
}

/// A sort with all that it depends on. While none of that changes, no row moves that did not change itself.
#[derive(Debug, Clone, Default)]
pub(crate) struct Order {
    pub sort: Sort,
    /// Time and hosts.
    pub conditions: Conditions,
    /// Usage of sandboxes, where the sort asks for it.
    pub uses: HashMap<SandboxId, SandboxUse>,
}

impl Order {
    /// A total order: equal keys are ordered by id, so that no row ever jumps without a reason.
    pub(crate) fn compare(&self, a: &Entry, b: &Entry) -> Ordering {
        let youngest = || b.record.created_at.cmp(&a.record.created_at);
        let by_key = match self.sort.key {
            SortKey::Trouble => {
                let trouble = |entry| self.conditions.trouble(entry);
                trouble(a).cmp(&trouble(b)).then_with(youngest)
            }
            SortKey::Age => youngest(),
            SortKey::Left => deadline(a).cmp(&deadline(b)),
            SortKey::State => rank(a).cmp(&rank(b)),
            SortKey::Name => {
                (a.words[1].is_empty(), &a.words[1]).cmp(&(b.words[1].is_empty(), &b.words[1]))
            }
            SortKey::Profile => a.words[2].cmp(&b.words[2]),
            SortKey::Host => a.words[3].cmp(&b.words[3]),
            SortKey::Id => a.record.id.cmp(&b.record.id),
            SortKey::Cpu => self.cpu(b).total_cmp(&self.cpu(a)),
            SortKey::Memory => self.memory(b).cmp(&self.memory(a)),
            SortKey::Cost => spent(b).cmp(&spent(a)),
        };
        let by_key = if self.sort.descending { by_key.reverse() } else { by_key };
        by_key.then_with(|| a.record.id.cmp(&b.record.id))
    }

    fn cpu(&self, entry: &Entry) -> f64 {
        self.uses.get(&entry.record.id).and_then(|used| used.cpu_pct).unwrap_or(-1.0)
    }

    fn memory(&self, entry: &Entry) -> Option<u64> {
        self.uses.get(&entry.record.id).map(|used| used.memory_bytes)
    }
}

/// Spent, or priced where nothing was metered yet; less than nothing without a price.
fn spent(entry: &Entry) -> (Option<Usd>, Option<Usd>) {
    (entry.record.cost_usd, entry.record.quote_usd)
}

fn deadline(entry: &Entry) -> (bool, i64) {
    entry.record.expires_at.map_or((true, 0), |end| (false, end.unix()))
}

/// Rows that need a look first.
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
