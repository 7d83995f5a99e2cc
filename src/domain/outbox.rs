//! Outbox: how far the event log was delivered to the State Hub. A cursor into the log, what is held back behind it, and the
//! letters that cannot be delivered.
//!
//! Order rule. The hub gets the events of one sandbox in their order. An event that fails holds back its own sandbox's, and the
//! cursor goes on with the others'; a hub that does not work holds back all.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::domain::Time;
use crate::domain::event::Event;
use crate::domain::hub::{FailureScope, HubFailure};
use crate::domain::name::SandboxId;

/// Longest wait between two tries, in seconds (contract 8).
pub(crate) const LONGEST_WAIT_S: u64 = 300;

/// Sandboxes that are held back at once; with one more, all is held back.
const MOST_HELD: usize = 256;

/// Failures of different sandboxes in a row after which the hub itself counts as not working.
pub(crate) const FAILURES_OF_A_HUB: u32 = 3;

/// Owner of an order: a sandbox, or what belongs to none, which has one order of its own.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum EventsOf {
    /// Events of this sandbox.
    Sandbox(SandboxId),
    /// Events without a sandbox: of hosts, reaps, credits.
    NoSandbox,
}

impl EventsOf {
    /// Owner of an event's order.
    pub fn event(event: &Event) -> Self {
        Self::of(event.sandbox_id.as_ref())
    }

    /// Owner by an event's sandbox.
    pub fn of(sandbox: Option<&SandboxId>) -> Self {
        sandbox.map_or(Self::NoSandbox, |id| Self::Sandbox(id.clone()))
    }
}

impl fmt::Display for EventsOf {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Sandbox(id) => write!(f, "{id}"),
            Self::NoSandbox => f.write_str("no sandbox"),
        }
    }
}

/// Wait after a failed try.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Backoff {
    /// Failed tries in a row.
    pub tries: u32,
    /// When it is tried again.
    pub next_try_at: Time,
    /// Error of the last try.
    pub error: String,
}

impl Backoff {
    /// Wait after one more failed try. Half of it is fixed and half by chance (`random`), so that several consoles do not come
    /// at once; a wait that the hub asks for counts instead, as far as the longest.
    fn after(earlier: Option<&Self>, failure: &HubFailure, now: Time, random: u32) -> Self {
        let tries = earlier.map_or(0, |backoff| backoff.tries).saturating_add(1);
        let whole = 2_u64.saturating_pow(tries).min(LONGEST_WAIT_S);
        let half = whole / 2;
        let wait = match failure.retry_after {
            Some(asked) => asked.as_secs().clamp(1, LONGEST_WAIT_S),
            None => half + u64::from(random) % (whole - half + 1),
        };
        Self { tries, next_try_at: now.plus_seconds(wait), error: failure.error.sentence() }
    }

    /// Whether the wait is not over. One longer than any wait is a clock that went back.
    pub fn runs(&self, now: Time) -> bool {
        now < self.next_try_at && self.next_try_at <= now.plus_seconds(LONGEST_WAIT_S)
    }
}

/// Events that are held back behind the cursor, all of one order.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct HeldEvents {
    /// Their sandbox; null for those without one.
    pub sandbox_id: Option<SandboxId>,
    /// Number of the one that failed, which is the first of them.
    pub from: u64,
    /// When that happened.
    pub since: Time,
    /// Events up to the cursor that wait.
    pub waiting: u64,
    /// Wait until the next try; none where it may be tried at once.
    pub backoff: Option<Backoff>,
}

impl HeldEvents {
    /// Owner of their order.
    pub fn of(&self) -> EventsOf {
        EventsOf::of(self.sandbox_id.as_ref())
    }
}

/// Cursor into the event log.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Cursor {
    /// Number up to which the hub has every event, or refused it for good, but for those that are held back.
    pub after: u64,
    /// Events that are held back.
    #[serde(default)]
    pub held: Vec<HeldEvents>,
    /// Wait of all, where the hub itself does not work.
    #[serde(default)]
    pub backoff: Option<Backoff>,
}

impl Cursor {
    /// Number of the first event that may be needed still.
    pub(crate) fn first_needed(&self) -> u64 {
        self.held.iter().map(|held| held.from).fold(self.after.saturating_add(1), u64::min)
    }

    /// Events that wait, where the log goes up to `last`.
    pub fn waiting(&self, last: u64) -> u64 {
        let held = self.held.iter().map(|held| held.waiting).fold(0, u64::saturating_add);
        last.saturating_sub(self.after).saturating_add(held)
    }

    /// When the oldest of what is held back happened.
    pub(crate) fn held_since(&self) -> Option<Time> {
        self.held.iter().map(|held| held.since).min()
    }

    /// Wait that counts: that of all while it runs, else the shortest of what is held back.
    pub(crate) fn next_backoff(&self, now: Time) -> Option<&Backoff> {
        let of_all = self.backoff.as_ref();
        let of_held = self.held.iter().filter_map(|held| held.backoff.as_ref());
        of_all
            .filter(|backoff| backoff.runs(now))
            .or_else(|| of_held.min_by_key(|backoff| backoff.next_try_at))
            .or(of_all)
    }

    /// Oldest of what is held back and may be tried now. With `now` of `None` no wait counts; `tried` was tried already.
    pub(crate) fn next_held(&self, now: Option<Time>, tried: &[u64]) -> Option<&HeldEvents> {
        let runs = |backoff: &Backoff| now.is_some_and(|now| backoff.runs(now));
        self.held
            .iter()
            .filter(|held| !tried.contains(&held.from) && !held.backoff.as_ref().is_some_and(runs))
            .min_by_key(|held| held.from)
    }

    /// Passes over an event behind the cursor if its order is held back; whether it is.
    pub(crate) fn pass_over(&mut self, event: &Event) -> bool {
        let of = EventsOf::event(event);
        let Some(held) = self.held.iter_mut().find(|held| held.of() == of) else { return false };
        held.waiting = held.waiting.saturating_add(1);
        self.after = event.seq;
        true
    }

    /// Notes that an event is done: the hub has it, or will never have it. `next` is the one that is held back behind it.
    pub fn done(&mut self, event: &Event, next: Option<&Event>) {
        self.backoff = None;
        let Some(at) = self.held.iter().position(|held| held.from == event.seq) else {
            self.after = self.after.max(event.seq);
            return;
        };
        match next {
            Some(next) => {
                let held = &mut self.held[at];
                (held.from, held.since, held.backoff) = (next.seq, next.time, None);
                held.waiting = held.waiting.saturating_sub(1).max(1);
            }
            None => drop(self.held.remove(at)),
        }
    }

    /// Notes that an event failed; whom that holds back.
    pub fn failed(
        &mut self,
        event: &Event,
        failure: &HubFailure,
        now: Time,
        random: u32,
    ) -> FailureScope {
        let known = self.held.iter().position(|held| held.from == event.seq);
        let scope = match failure.scope {
            FailureScope::Sandbox if known.is_none() && self.held.len() >= MOST_HELD => {
                FailureScope::Hub
            }
            scope => scope,
        };
        match (scope, known) {
            (FailureScope::Hub, _) => {
                self.backoff = Some(Backoff::after(self.backoff.as_ref(), failure, now, random));
            }
            (FailureScope::Sandbox, Some(at)) => {
                let held = &mut self.held[at];
                held.backoff = Some(Backoff::after(held.backoff.as_ref(), failure, now, random));
            }
            (FailureScope::Sandbox, None) => {
                self.held.push(HeldEvents {
                    sandbox_id: event.sandbox_id.clone(),
                    from: event.seq,
                    since: event.time,
                    waiting: 1,
                    backoff: Some(Backoff::after(None, failure, now, random)),
                });
                self.after = event.seq;
            }
        }
        scope
    }

    /// Gives up what left the log before `oldest`, its first event that is kept: the letter of it. What is held back is
    /// [`Self::give_up_held`].
    pub(crate) fn give_up_behind(&mut self, oldest: u64, now: Time) -> Option<DeadLetter> {
        self.give_up_before(oldest, Loss::LeftTheLog, now)
    }

    /// Gives up the lines of the log before number `next` that cannot be read: the letter of them.
    pub(crate) fn give_up_unreadable(&mut self, next: u64, now: Time) -> Option<DeadLetter> {
        self.give_up_before(next, Loss::Unreadable, now)
    }

    fn give_up_before(&mut self, next: u64, loss: Loss, now: Time) -> Option<DeadLetter> {
        let from = self.after.saturating_add(1);
        (next > from).then(|| {
            self.after = next - 1;
            let missed = Missed { from, to: next - 1, count: next - from, sandbox_id: None };
            DeadLetter::missed(missed, loss, now)
        })
    }

    /// Gives up what was held back with an event and became unreadable meanwhile: the letter of it. It is asked for with the last
    /// one that is left, before that is [`Self::done`]; `oldest` is the first event that is kept.
    pub(crate) fn give_up_with(&self, last: &Event, oldest: u64, now: Time) -> Option<DeadLetter> {
        let held = self.held.iter().find(|held| held.from == last.seq)?;
        (held.waiting > 1).then(|| {
            let missed = Missed {
                from: oldest,
                to: self.after,
                count: held.waiting - 1,
                sandbox_id: held.sandbox_id.clone(),
            };
            DeadLetter::missed(missed, Loss::Unreadable, now)
        })
    }

    /// Gives up the part of what is held back that left the log before `oldest`, or cannot be read any more; `left` are those of it that are kept.
    pub(crate) fn give_up_held(
        &mut self,
        at: u64,
        left: &[Event],
        oldest: u64,
        now: Time,
    ) -> Option<DeadLetter> {
        let index = self.held.iter().position(|held| held.from == at)?;
        let held = &mut self.held[index];
        let loss = if held.from < oldest { Loss::LeftTheLog } else { Loss::Unreadable };
        let missed = Missed {
            from: held.from,
            to: oldest.saturating_sub(1).max(held.from),
            count: held.waiting.saturating_sub(left.len() as u64).max(1),
            sandbox_id: held.sandbox_id.clone(),
        };
        match left.first() {
            Some(first) => {
                (held.from, held.since, held.backoff) = (first.seq, first.time, None);
                held.waiting = left.len() as u64;
            }
            None => drop(self.held.remove(index)),
        }
        Some(DeadLetter::missed(missed, loss, now))
    }
}

/// Events that are not there any more.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Missed {
    /// Number of the first.
    pub from: u64,
    /// Number of the last.
    pub to: u64,
    /// Count: of one sandbox, not all numbers between.
    pub count: u64,
    /// Their sandbox, where all are of one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sandbox_id: Option<SandboxId>,
}

#[derive(Debug, Clone, Copy)]
enum Loss {
    /// Their file is not kept any more.
    LeftTheLog,
    Unreadable,
}

impl Loss {
    fn sentence(self) -> &'static str {
        match self {
            Self::LeftTheLog => {
                "these left the event log, which keeps only so many files, before the State Hub took them"
            }
            Self::Unreadable => {
                "the lines of these in the event log cannot be read: `sandboxer doctor` names them"
            }
        }
    }
}

/// Letter that will never be delivered: a line of the dead letter.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct DeadLetter {
    /// When it was given up.
    pub at: Time,
    /// Why.
    pub reason: String,
    /// Status with which the hub refused it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<u16>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub event: Option<Event>,
    /// Events that are not kept any more.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub missed: Option<Missed>,
}

impl DeadLetter {
    /// Letter that a hub refused.
    pub fn refused(event: Event, status: u16, reason: String, at: Time) -> Self {
        Self { at, reason, status: Some(status), event: Some(event), missed: None }
    }

    fn missed(missed: Missed, loss: Loss, at: Time) -> Self {
        let reason = loss.sentence().to_owned();
        Self { at, reason, status: None, event: None, missed: Some(missed) }
    }

    /// Events that it stands for.
    pub fn count(&self) -> u64 {
        self.missed.as_ref().map_or(1, |missed| missed.count)
    }
}

#[cfg(test)]
mod tests;
