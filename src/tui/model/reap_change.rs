//! Changes since a reap plan was made: what of it is not done any more, and whether it can be applied at all.

use super::{Load, Model};
use crate::client::StaleItem;
use crate::domain::State;
use crate::domain::stale::PassState;
use crate::tui::keymap::{Action, Mode};

impl Model {
    /// Why the plan cannot be applied now, if it cannot.
    pub fn reap_refusal(&self) -> Option<String> {
        let reap = &self.reap;
        let new = self.keymap.first(Mode::Reap, Action::Retry).unwrap_or_default();
        let changed = self.reap_changes();
        let nothing = || reap.to_do().all(|(at, _)| changed.contains(&at));
        if reap.load != Load::Ready {
            Some("there is no plan yet".to_owned())
        } else if self.read_only || !reap.is_plan() {
            Some("this console is read-only".to_owned())
        } else if let Some(held) = &reap.held_back {
            Some(format!("nothing is reaped from here: {}", held.message))
        } else if reap.job.is_some() {
            Some(format!("this plan was applied: {new} makes a new one"))
        } else if reap.is_over(self.now) {
            Some(format!("this plan is too old to be applied: {new} makes a new one"))
        } else if nothing() {
            Some("there is nothing to do in it".to_owned())
        } else {
            None
        }
    }

    /// Places of items that changed since the plan, and are to be done.
    pub fn reap_changes(&self) -> Vec<usize> {
        let to_do = self.reap.to_do().map(|(at, _)| at);
        to_do.filter(|at| self.reap_change(*at).is_some()).collect()
    }

    /// Change of an item since the plan, by its record and by what was judged since.
    pub fn reap_change(&self, at: usize) -> Option<String> {
        let reap = &self.reap;
        let item = reap.items().get(at).filter(|_| reap.job.is_none())?;
        if let Some(change) = self.record_change(item) {
            return Some(change);
        }
        // Of a record its revision tells; what was last seen of its host may not say what a look at it said.
        let item = Some(item).filter(|item| item.state.is_none())?;
        let newer = self.stale.report().filter(|report| Some(report.at) > reap.at)?;
        let pass = newer.hosts.iter().find(|pass| pass.host.same(item.host.as_str()))?;
        if pass.state != PassState::Read {
            return None;
        }
        match self.stale.same(item) {
            None => Some("it is not stale any more".to_owned()),
            Some(now) if now.class != item.class => Some(format!("it is {} now", now.class)),
            Some(now) if now.identity != item.identity => Some("it is not what it was".to_owned()),
            Some(_) => None,
        }
    }

    fn record_change(&self, item: &StaleItem) -> Option<String> {
        let (planned, id) = (item.revision()?, item.sandbox_id.as_deref()?);
        let is_over = item.state.as_ref().is_some_and(State::is_over);
        match self.sandboxes.get(&id.into()) {
            Some(entry) if entry.record.revision > planned => {
                Some(format!("its record is another one, {} now", entry.record.state))
            }
            Some(_) => None,
            None if is_over || self.sandboxes.load != Load::Ready => None,
            None => Some("it is in the list no more".to_owned()),
        }
    }
}
