//! Choices in a reap plan: what is done about each item, as far as it may be chosen.

use super::reap::{Reap, ReapRow};
use super::stale::may_be;
use crate::domain::stale::ReapAction;
use crate::present::stale::is_never;

impl Reap {
    /// Whether more is asked for an item than the plan does by itself: it is taken away although it need not be.
    pub fn is_forced(&self, at: usize) -> bool {
        let takes =
            |action: &ReapAction| matches!(action, ReapAction::Remove | ReapAction::Destroy);
        let planned = self.items().get(at).is_some_and(|item| takes(&item.action));
        takes(self.choice(at)) && !planned
    }

    /// Ticks the item under the cursor, or unticks it; why that cannot be.
    pub fn toggle(&mut self) -> Result<(), String> {
        let at = self.changeable()?;
        let next = if *self.choice(at) == ReapAction::Keep { self.default_of(at) } else { None };
        self.chosen[at] = next.unwrap_or(ReapAction::Keep);
        Ok(())
    }

    /// Ticks all that are shown; if all are, unticks them.
    pub fn toggle_all(&mut self) {
        let shown: Vec<usize> = self
            .rows()
            .iter()
            .filter_map(|row| match row {
                ReapRow::Item(at) => Some(*at),
                ReapRow::Host(_) => None,
            })
            // What the plan leaves is taken one by one only.
            .filter(|at| self.items()[*at].action != ReapAction::Keep)
            .filter(|at| is_never(&self.items()[*at]).is_none())
            .collect();
        let ticks = shown.iter().any(|at| *self.choice(*at) == ReapAction::Keep);
        for at in shown {
            match (ticks, self.choice(at)) {
                (false, _) => self.chosen[at] = ReapAction::Keep,
                (true, ReapAction::Keep) => {
                    self.chosen[at] = self.default_of(at).unwrap_or(ReapAction::Keep);
                }
                (true, _) => {}
            }
        }
    }

    /// Chooses an action for the item under the cursor, or takes that back; why it cannot be.
    pub fn choose(&mut self, action: &ReapAction) -> Result<(), String> {
        let at = self.changeable()?;
        let item = self.items()[at].clone();
        if !may_be(&item, action) {
            return Err(format!("{} cannot be chosen for it: {}", action, item.why));
        }
        let back = self.choice(at) == action;
        self.chosen[at] =
            if back && item.action != *action { item.action.clone() } else { action.clone() };
        Ok(())
    }

    /// Meaning of a tick: as planned, else what takes nothing away.
    fn default_of(&self, at: usize) -> Option<ReapAction> {
        let item = self.items().get(at)?;
        let planned = Some(&item.action).filter(|action| **action != ReapAction::Keep);
        let adopt = item.possible.iter().find(|action| **action == ReapAction::Adopt);
        planned.or(adopt).or(item.possible.first()).cloned()
    }

    /// The item under the cursor, if something can be chosen for it.
    fn changeable(&self) -> Result<usize, String> {
        let at = match self.selected() {
            Some(ReapRow::Item(at)) => at,
            Some(ReapRow::Host(_)) => return Err("nothing on this host was judged".to_owned()),
            None => return Err("there is nothing to choose".to_owned()),
        };
        match self.items().get(at).and_then(is_never) {
            Some(why) => Err(why.to_owned()),
            None => Ok(at),
        }
    }
}
