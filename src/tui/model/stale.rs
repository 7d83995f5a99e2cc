//! Stale: what should not be in records or on hosts any more, as it was judged last.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use super::fetch::Fetch;
use super::rows::Entry;
use super::{Model, Role};
use crate::client::{Error, StaleItem, StaleReport};
use crate::domain::name::SandboxId;
use crate::domain::stale::{ReapAction, StaleClass};

/// The newest judgement.
#[derive(Debug, Clone, Default)]
pub struct Stale {
    /// The question what is stale, which begins with a pause.
    pub reading: Fetch,
    /// Why it could not be judged again.
    pub error: Option<Error>,
    report: Option<Box<StaleReport>>,
    /// Places of the recorded ones that count.
    recorded: HashMap<SandboxId, usize>,
    classes: Arc<BTreeMap<SandboxId, StaleClass>>,
    /// Places by host, in small letters, and id.
    places: HashMap<(String, String), usize>,
}

/// Whether something stale is there to be reaped: what is somebody else's, or protected, is only shown.
pub fn is_counted(item: &StaleItem) -> bool {
    !item.class.is_never_reaped() && !item.protected
}

/// Why nothing can be done about an item, whatever is pressed.
pub(super) fn is_never(item: &StaleItem) -> Option<&'static str> {
    match item.class {
        StaleClass::Foreign => Some("another owner's: never reaped"),
        StaleClass::Unreadable => Some("nobody can tell whose it is: look at it on its host"),
        StaleClass::Other(_) => Some("of a class that this version does not know: left alone"),
        _ if item.possible.is_empty() && item.protected => Some("protected: it is kept"),
        _ if item.possible.is_empty() => Some("nothing can be done about it from here"),
        _ => None,
    }
}

/// Whether an action may be chosen for an item.
pub(super) fn may_be(item: &StaleItem, action: &ReapAction) -> bool {
    is_never(item).is_none()
        && (*action == ReapAction::Keep || *action == item.action || item.possible.contains(action))
}

fn place_of(item: &StaleItem) -> (String, String) {
    (item.host.as_str().to_lowercase(), item.id().to_owned())
}

impl Stale {
    /// Whether a judgement is another one, but for how old everything is by now.
    pub fn is_news(&self, report: &StaleReport) -> bool {
        let Some(old) = self.report.as_deref() else { return true };
        let pairs = || old.items.iter().zip(&report.items);
        let same = |(old, new): (&StaleItem, &StaleItem)| {
            let (was, is) = ((&old.class, &old.action), (&new.class, &new.action));
            old.is_same(new) && old.identity == new.identity && was == is
        };
        old.items.len() != report.items.len() || !pairs().all(same)
    }

    /// Takes a newer judgement.
    pub fn take(&mut self, report: Box<StaleReport>) {
        self.error = None;
        if self.is_news(&report) {
            let counted = report.items.iter().enumerate().filter(|(_, item)| is_counted(item));
            let recorded = counted.filter(|(_, item)| item.state.is_some());
            let recorded = recorded
                .filter_map(|(at, item)| Some((SandboxId::new(item.sandbox_id.as_deref()?), at)));
            self.recorded = recorded.collect();
            let places = report.items.iter().enumerate();
            self.places = places.map(|(at, item)| (place_of(item), at)).collect();
            let class = |at: &usize| report.items[*at].class.clone();
            let classes = self.recorded.iter().map(|(id, at)| (id.clone(), class(at)));
            self.classes = Arc::new(classes.collect());
        }
        self.report = Some(report);
    }

    /// The newest judgement; none before the first.
    pub fn report(&self) -> Option<&StaleReport> {
        self.report.as_deref()
    }

    /// Everything that is stale, what is never reaped too.
    pub fn items(&self) -> &[StaleItem] {
        self.report.as_ref().map(|report| report.items.as_slice()).unwrap_or_default()
    }

    /// How many are there to be reaped.
    pub fn count(&self) -> usize {
        self.items().iter().filter(|item| is_counted(item)).count()
    }

    /// Why a recorded sandbox is stale, if it is.
    pub fn of(&self, id: &SandboxId) -> Option<&StaleItem> {
        self.recorded.get(id).and_then(|at| self.items().get(*at))
    }

    /// The same thing as it was judged last; none where it is not stale any more.
    pub fn same(&self, item: &StaleItem) -> Option<&StaleItem> {
        let found = self.places.get(&place_of(item)).and_then(|at| self.items().get(*at));
        found.filter(|found| found.is_same(item))
    }

    /// What is stale on a host.
    pub fn on_host<'a>(&'a self, host: &'a str) -> impl Iterator<Item = &'a StaleItem> {
        self.items().iter().filter(move |item| item.host.same(host))
    }

    /// Classes of the recorded ones.
    pub fn classes(&self) -> Arc<BTreeMap<SandboxId, StaleClass>> {
        Arc::clone(&self.classes)
    }
}

/// What a reap does about something.
fn reap_words(action: &ReapAction) -> Option<&'static str> {
    match action {
        ReapAction::Destroy | ReapAction::Remove => Some("reap takes it"),
        ReapAction::Recover => Some("reap recovers it"),
        ReapAction::Close => Some("reap closes its record"),
        ReapAction::Adopt => Some("reap adopts it"),
        ReapAction::Keep | ReapAction::Other(_) => None,
    }
}

/// Why something is stale, and what a reap does about it; where it is left alone, the reason says so.
pub(super) fn stale_sentence(item: &StaleItem) -> String {
    match reap_words(&item.action) {
        Some(reap) => format!("{}: {reap}", item.why),
        None => item.why.clone(),
    }
}

impl Model {
    /// Why a row is stale, and what a reap would do: a sentence; none where it is not.
    pub fn stale_words(&self, entry: &Entry) -> Option<(Role, String)> {
        let item = self.stale.of(&entry.record.id)?;
        Some((Role::Warn, stale_sentence(item)))
    }

    /// The same in a few words.
    pub(super) fn stale_word(&self, entry: &Entry) -> Option<(Role, String)> {
        let item = self.stale.of(&entry.record.id)?;
        let reap = reap_words(&item.action).unwrap_or("kept");
        Some((Role::Warn, format!("{}: {reap}", item.class)))
    }
}
