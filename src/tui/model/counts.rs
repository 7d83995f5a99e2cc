//! Counts of the list, as the header shows them.

use super::rows::{Conditions, Entry};
use crate::domain::State;

/// How many sandboxes there are of each kind.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counts {
    /// Ready.
    pub live: usize,
    /// Ready, with a service that should run and does not.
    pub degraded: usize,
    pub failed: usize,
    pub lost: usize,
    /// Being made or removed.
    pub moving: usize,
    /// Asleep.
    pub sleeping: usize,
    /// With a deadline that is near or past.
    pub expiring: usize,
}

impl Counts {
    /// Counts a row in, or out again.
    pub(super) fn take(&mut self, entry: &Entry, conditions: &Conditions, change: fn(&mut usize)) {
        match entry.record.state {
            State::Ready => change(&mut self.live),
            State::Failed => change(&mut self.failed),
            State::Lost => change(&mut self.lost),
            State::Requested | State::Provisioning | State::Destroying => change(&mut self.moving),
            State::Sleeping => change(&mut self.sleeping),
            State::Destroyed | State::Forgotten | State::Other(_) => {}
        }
        if entry.degraded > 0 {
            change(&mut self.degraded);
        }
        if conditions.is_expiring(entry) {
            change(&mut self.expiring);
        }
    }
}
