//! Reap plan: what is done about each stale thing, as the operator changes it before it is applied, and what came of it. The
//! plan is frozen: choices, results and cursor are by its items, never by rows of the screen.

use std::collections::HashMap;

use super::Load;
use super::job::JobId;
use super::stale::may_be;
use super::window::Window;
use crate::client::{ReapItem, ReapPlan, ReapReport, StaleItem, StaleReport};
use crate::domain::actor::Actor;
use crate::domain::name::PlanId;
use crate::domain::stale::{HostPass, PassState, ReapAction, ReapOutcome, StaleClass};
use crate::domain::sweep::HeldBack;
use crate::domain::time::Time;

/// Answer to the question what is stale.
#[derive(Debug, Clone, PartialEq)]
pub enum Judged {
    /// A plan, which can be applied.
    Plan(Box<ReapPlan>),
    /// A look at what is stale, without a plan.
    Report(Box<StaleReport>),
}

/// Row of the plan.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReapRow {
    /// An item, by its place in the plan.
    Item(usize),
    /// A host that was not judged, by its place among those that were asked.
    Host(usize),
}

/// Number and terms of a plan that can be applied.
#[derive(Debug, Clone, PartialEq)]
struct Issued {
    id: PlanId,
    valid_until: Time,
    actor: Actor,
}

/// The plan, open or not.
#[derive(Debug, Clone, Default)]
pub struct Reap {
    /// The number of the question that is waited for, or was answered.
    pub number: u64,
    /// Whether it is answered.
    pub load: Load,
    /// Whether it was on the screen as it is.
    pub drawn: bool,
    /// When it was judged.
    pub at: Option<Time>,
    /// Hosts that were asked.
    pub hosts: Vec<HostPass>,
    /// Why nothing may be reaped from here.
    pub held_back: Option<HeldBack>,
    /// Only items of this class are shown.
    pub class: Option<StaleClass>,
    /// The job that applies it, or did.
    pub job: Option<JobId>,
    issued: Option<Issued>,
    items: Vec<StaleItem>,
    /// Disposal of each item.
    pub(super) chosen: Vec<ReapAction>,
    results: HashMap<usize, ReapItem>,
    /// Ids of what the last reap destroyed or removed.
    removed: Vec<String>,
    rows: Vec<ReapRow>,
    /// The cursor, and the rows around it.
    pub window: Window,
}

/// Whether a host was not judged although it should have been.
pub(super) fn is_unjudged(pass: &HostPass) -> bool {
    matches!(pass.state, PassState::Unread | PassState::Changed)
}

impl Reap {
    /// Asks anew: choices stay, by what each item is. What was done is over.
    pub fn ask(&mut self) -> u64 {
        self.number += 1;
        (self.load, self.drawn, self.job) = (Load::Loading, false, None);
        self.number
    }

    /// Whether it is asked for, and not answered.
    pub fn is_asked(&self) -> bool {
        self.number > 0 && self.load == Load::Loading
    }

    /// Takes the answer.
    pub fn take(&mut self, judged: Judged) {
        let (changed, pointed) = (self.changed_choices(), self.pointed().cloned());
        self.results.clear();
        match judged {
            Judged::Plan(plan) => {
                let ReapPlan { id, at, valid_until, actor, hosts, held_back, items } = *plan;
                self.issued = Some(Issued { id, valid_until, actor });
                (self.at, self.hosts, self.held_back, self.items) =
                    (Some(at), hosts, held_back, items);
            }
            Judged::Report(report) => {
                let StaleReport { at, hosts, held_back, items } = *report;
                self.issued = None;
                (self.at, self.hosts, self.held_back, self.items) =
                    (Some(at), hosts, held_back, items);
            }
        }
        let choice = |item: &StaleItem| {
            // What is taken is taken as it was seen; what is left may be another one by now.
            let kept = changed.iter().find(|(old, action)| {
                let as_seen = *action == ReapAction::Keep || old.identity == item.identity;
                old.is_same(item) && as_seen && may_be(item, action)
            });
            let kept = kept.map(|(_, action)| action);
            kept.cloned().unwrap_or_else(|| item.action.clone())
        };
        self.chosen = self.items.iter().map(choice).collect();
        (self.load, self.drawn) = (Load::Ready, false);
        if self.class.as_ref().is_some_and(|class| !self.classes().contains(class)) {
            self.class = None;
        }
        self.arrange();
        let same = |row: &ReapRow| {
            self.item(*row)
                .is_some_and(|item| pointed.as_ref().is_some_and(|old| old.is_same(item)))
        };
        let at = self.rows.iter().position(same).unwrap_or_default();
        self.go(at);
    }

    /// Items of which the operator chose something else than the plan.
    fn changed_choices(&self) -> Vec<(StaleItem, ReapAction)> {
        let all = self.items.iter().zip(&self.chosen);
        let changed = all.filter(|(item, chosen)| item.action != **chosen);
        changed.map(|(item, chosen)| (item.clone(), chosen.clone())).collect()
    }

    fn arrange(&mut self) {
        let shown = |item: &StaleItem| self.class.as_ref().is_none_or(|class| item.class == *class);
        let items = self.items.iter().enumerate().filter(|(_, item)| shown(item));
        let hosts = self.hosts.iter().enumerate().filter(|(_, pass)| is_unjudged(pass));
        let hosts = hosts.filter(|_| self.class.is_none());
        self.rows = items
            .map(|(at, _)| ReapRow::Item(at))
            .chain(hosts.map(|(at, _)| ReapRow::Host(at)))
            .collect();
        self.window.fit(self.rows.len());
    }

    /// Whether it can be applied at all: it is a plan, and not only looked at.
    pub fn is_plan(&self) -> bool {
        self.issued.is_some()
    }

    pub fn id(&self) -> Option<&PlanId> {
        self.issued.as_ref().map(|issued| &issued.id)
    }

    /// Whether it is too old to be applied.
    pub fn is_over(&self, now: Time) -> bool {
        self.issued.as_ref().is_some_and(|issued| now >= issued.valid_until)
    }

    pub fn items(&self) -> &[StaleItem] {
        &self.items
    }

    pub fn item(&self, row: ReapRow) -> Option<&StaleItem> {
        match row {
            ReapRow::Item(at) => self.items.get(at),
            ReapRow::Host(_) => None,
        }
    }

    /// Disposal of an item.
    pub fn choice(&self, at: usize) -> &ReapAction {
        self.chosen.get(at).unwrap_or(&ReapAction::Keep)
    }

    pub fn result(&self, at: usize) -> Option<&ReapItem> {
        self.results.get(&at)
    }

    /// Items with something to do, by their places.
    pub fn to_do(&self) -> impl Iterator<Item = (usize, &StaleItem)> {
        let to_do = |(at, _): &(usize, &StaleItem)| *self.choice(*at) != ReapAction::Keep;
        self.items.iter().enumerate().filter(to_do)
    }

    /// The plan as it was chosen, without the items of these places.
    pub fn plan(&self, left_out: &[usize]) -> Option<ReapPlan> {
        let issued = self.issued.clone()?;
        let item = |(at, item): (usize, &StaleItem)| {
            let action = if left_out.contains(&at) { &ReapAction::Keep } else { self.choice(at) };
            StaleItem { action: action.clone(), ..item.clone() }
        };
        Some(ReapPlan {
            id: issued.id,
            at: self.at?,
            valid_until: issued.valid_until,
            actor: issued.actor,
            hosts: self.hosts.clone(),
            held_back: self.held_back.clone(),
            items: self.items.iter().enumerate().map(item).collect(),
        })
    }

    /// Takes what was done about an item.
    pub fn done(&mut self, done: ReapItem) {
        let of = |item: &StaleItem| {
            item.id() == done.id && item.class == done.class && item.host.same(done.host.as_str())
        };
        if let Some(at) = self.items.iter().position(of) {
            if done.outcome == ReapOutcome::Removed && !self.removed.contains(&done.id) {
                self.removed.push(done.id.clone());
            }
            self.results.insert(at, done);
        }
    }

    /// Takes all that was done.
    pub fn done_all(&mut self, report: &ReapReport) {
        if self.id() == Some(&report.plan) {
            report.items.iter().cloned().for_each(|item| self.done(item));
        }
    }

    /// How many items have this outcome.
    pub fn count(&self, outcome: &ReapOutcome) -> usize {
        self.results.values().filter(|result| result.outcome == *outcome).count()
    }

    /// How many items are done with.
    pub fn done_count(&self) -> usize {
        self.results.len()
    }

    /// Begins to be applied, by this job.
    pub fn begin(&mut self, job: JobId) {
        self.job = Some(job);
        self.results.clear();
        self.removed.clear();
    }

    /// Ids of what the last reap destroyed or removed.
    pub fn removed(&self) -> &[String] {
        &self.removed
    }

    /// Classes that there are, in their order.
    pub fn classes(&self) -> Vec<StaleClass> {
        let mut classes: Vec<StaleClass> = StaleClass::ALL.to_vec();
        classes.extend(self.items.iter().map(|item| item.class.clone()));
        let mut seen: Vec<StaleClass> = Vec::new();
        for class in classes {
            if !seen.contains(&class) && self.items.iter().any(|item| item.class == class) {
                seen.push(class);
            }
        }
        seen
    }

    /// Shows the next class only, or the one before; all after the last.
    pub fn step_class(&mut self, down: bool) {
        let pointed = self.selected();
        let classes = self.classes();
        let at = self.class.as_ref().and_then(|class| classes.iter().position(|c| c == class));
        let next = match (at, down) {
            (None, true) => Some(0),
            (None, false) => classes.len().checked_sub(1),
            (Some(at), true) => Some(at + 1),
            (Some(at), false) => at.checked_sub(1),
        };
        self.class = next.and_then(|at| classes.get(at)).cloned();
        self.arrange();
        let at = self.rows.iter().position(|row| Some(*row) == pointed);
        self.go(at.unwrap_or_default());
    }

    /// How many items with something to do the filter hides.
    pub fn hidden(&self) -> usize {
        let hidden = |item: &StaleItem| self.class.as_ref().is_some_and(|c| item.class != *c);
        self.to_do().filter(|(_, item)| hidden(item)).count()
    }

    pub fn rows(&self) -> &[ReapRow] {
        &self.rows
    }

    /// The row under the cursor.
    pub fn selected(&self) -> Option<ReapRow> {
        self.rows.get(self.window.index).copied()
    }

    /// The item under the cursor.
    pub fn pointed(&self) -> Option<&StaleItem> {
        self.selected().and_then(|row| self.item(row))
    }

    /// Moves the cursor.
    pub fn go(&mut self, index: usize) {
        self.window.go(index, self.rows.len());
    }
}
