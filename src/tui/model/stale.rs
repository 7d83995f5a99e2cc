//! Stale: what should not be in records or on hosts any more, as it was judged last.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use super::fetch::Fetch;
use crate::client::{Error, StaleItem, StaleReport};
use crate::domain::name::SandboxId;
use crate::domain::stale::{ReapAction, StaleClass};
use crate::present::stale::{is_counted, is_never};

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

    /// Stale things on a host.
    pub fn on_host<'a>(&'a self, host: &'a str) -> impl Iterator<Item = &'a StaleItem> {
        self.items().iter().filter(move |item| item.host.same(host))
    }

    /// Classes of the recorded ones.
    pub fn classes(&self) -> Arc<BTreeMap<SandboxId, StaleClass>> {
        Arc::clone(&self.classes)
    }
}
