//! Sweep: what is due by a record's deadline, and what a sweep did and did not do (semantics 4). Records and time come in.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::domain::clock::ClockJump;
use crate::domain::error::{Code, Error};
use crate::domain::name::{HostName, SandboxId};
use crate::domain::sandbox::{Reason, SandboxRecord, State};
use crate::domain::time::Time;
use crate::domain::words::string_enum;

/// Seconds before a deadline at which it is told; of a shorter life, at once.
pub(crate) const WARNING_S: u64 = 600;

/// Task that a sweep has with a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SweepTask {
    /// Tell that its deadline is near; of a protected one, that it passed.
    Warn,
    /// End it: its deadline passed.
    Destroy,
    /// Finish its removal, on which nobody works any more.
    Finish,
    /// Remove what is left of it on its host: it was forgotten.
    Collect,
    /// Leave it: it is protected.
    Protected,
    /// Renew its hold: it has no deadline.
    Renew,
    /// End it: its hold could not be renewed for a while.
    Unpaid,
}

/// Task that is due with a record at a moment. Whether somebody works on it is seen under its lock.
pub(crate) fn task_of(record: &SandboxRecord, now: Time) -> Option<SweepTask> {
    let task = match &record.state {
        State::Forgotten => SweepTask::Collect,
        State::Destroying => SweepTask::Finish,
        State::Destroyed | State::Other(_) => return None,
        State::Failed if !record.kept_failed => return None,
        State::Requested
        | State::Provisioning
        | State::Ready
        | State::Sleeping
        | State::Lost
        | State::Failed => return task_by_deadline(record, now),
    };
    Some(if record.is_protected() { SweepTask::Protected } else { task })
}

fn task_by_deadline(record: &SandboxRecord, now: Time) -> Option<SweepTask> {
    let Some(deadline) = record.expires_at else {
        return task_by_hold(record, now).filter(|_| is_renewed(&record.state));
    };
    let untold = is_told_of(&record.state) && record.expiring_told != Some(deadline);
    if now >= deadline {
        return Some(match record.is_protected() {
            true if untold => SweepTask::Warn,
            true => SweepTask::Protected,
            false => SweepTask::Destroy,
        });
    }
    (untold && now >= deadline.minus_seconds(WARNING_S)).then_some(SweepTask::Warn)
}

fn task_by_hold(record: &SandboxRecord, now: Time) -> Option<SweepTask> {
    let meter = record.meter.as_ref().filter(|meter| meter.is_renewal_due(now))?;
    let is_over = meter.ends_unpaid_at().is_some_and(|end| now >= end);
    Some(if is_over && !record.is_protected() { SweepTask::Unpaid } else { SweepTask::Renew })
}

/// Whether a hold without a deadline is renewed: of what is there, and goes on.
fn is_renewed(state: &State) -> bool {
    matches!(state, State::Ready | State::Sleeping)
}

/// Whether a deadline is told: before `ready` it is only a limit of the establishment.
fn is_told_of(state: &State) -> bool {
    matches!(state, State::Ready | State::Sleeping | State::Lost | State::Failed)
}

/// Moment from which on something may be due with a record, if it stays as it is; `None`: never.
pub(crate) fn due_at(record: &SandboxRecord) -> Option<Time> {
    let renewal = record.meter.as_ref().and_then(|meter| meter.renew_at);
    let Some(deadline) = record.expires_at else {
        return renewal.filter(|_| is_renewed(&record.state));
    };
    match &record.state {
        State::Forgotten | State::Destroying | State::Destroyed | State::Other(_) => None,
        State::Failed if !record.kept_failed => None,
        state if is_told_of(state) && record.expiring_told != Some(deadline) => {
            Some(deadline.minus_seconds(WARNING_S))
        }
        _ => Some(deadline).filter(|_| !record.is_protected()),
    }
}

/// Reason of a removal that somebody else began and that is finished now: the one it had, which an unreachable host hid.
pub(crate) fn reason_to_finish(record: &SandboxRecord) -> Reason {
    match &record.reason {
        Some(Reason::HostLost) | None => match record.expires_at {
            Some(deadline) if deadline <= record.since => Reason::TtlExpired,
            Some(_) | None => Reason::User,
        },
        Some(reason) => reason.clone(),
    }
}

/// Request for a sweep.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct SweepRequest {
    /// Whether it does nothing while another sweep that asks the same is at work.
    pub alone: bool,
}

string_enum! {
    /// Why a sweep did nothing at all.
    pub enum HoldReason {
        /// Wall clock and monotonic clock disagree: the next sweep judges.
        ClockJumped = "clock_jumped",
        /// Data directory may not act.
        NotOwn = "not_own",
        /// Another sweep is at work.
        Another = "another",
    }
}

/// Why a sweep held back, for a program and for a person.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct HeldBack {
    /// Why.
    pub reason: HoldReason,
    /// Sentence.
    pub message: String,
    /// Next step for the user.
    pub hint: Option<String>,
}

impl HeldBack {
    /// Hold of a sweep over a jump of the wall clock.
    pub fn over_jump(jump: ClockJump) -> Self {
        let message = match jump {
            ClockJump::Forward(by) => format!(
                "this machine's clock went on {} s further than the machine ran: it was suspended, or its clock was set",
                by.as_secs()
            ),
            ClockJump::Back(by) => {
                format!("this machine's clock was set back by {} s", by.as_secs())
            }
        };
        let hint = "nothing was ended; the next sweep judges by the clock as it is now".to_owned();
        Self { reason: HoldReason::ClockJumped, message, hint: Some(hint) }
    }

    /// Error of whoever wanted what is held back.
    pub(crate) fn error(self) -> Error {
        Error { hint: self.hint, ..Error::new(Code::Conflict, self.message) }
    }
}

string_enum! {
    /// Outcome of a sweep for a sandbox.
    pub enum SweepOutcome {
        /// Told that its deadline is near, or its credits ran out.
        Warned = "warned",
        /// Credits are held for another hour of it.
        Renewed = "renewed",
        /// Time was over, or its credits ran out: destroyed.
        Destroyed = "destroyed",
        /// Removal had been begun, and is finished.
        Finished = "finished",
        /// Forgotten sandbox of which nothing is left.
        Collected = "collected",
        /// Nothing, for the reason said.
        Skipped = "skipped",
        /// Work could not be done; a later sweep tries again.
        Failed = "failed",
    }
}

string_enum! {
    /// Why a sweep passed over a sandbox that is due.
    pub enum SkipReason {
        /// Labelled `protect=true`.
        Protected = "protected",
        /// Somebody works on it.
        Busy = "busy",
        /// Somebody changed it after it was judged.
        Changed = "changed",
        /// Host is forbidden by the configuration.
        Forbidden = "forbidden",
        /// Sandbox or its host failed a moment ago, and is tried again later.
        Waits = "waits",
        /// Hold cannot be renewed: credits are missing.
        Credits = "credits",
    }
}

/// Item of a sweep: a sandbox and its outcome.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SweepItem {
    /// The sandbox.
    pub id: SandboxId,
    /// Name.
    pub name: Option<String>,
    /// Host.
    pub host: HostName,
    /// Outcome.
    pub outcome: SweepOutcome,
    /// Why nothing was.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub skipped: Option<SkipReason>,
    /// Sentence.
    pub message: String,
    /// Why it could not be done.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<Error>,
}

/// Report of a sweep: the same for each face.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SweepReport {
    /// When it judged.
    pub at: Time,
    /// Why it did nothing at all, if so.
    pub held_back: Option<HeldBack>,
    /// Sandboxes with which something was due.
    pub items: Vec<SweepItem>,
}

impl SweepReport {
    pub fn with(&self, outcome: &SweepOutcome) -> impl Iterator<Item = &SweepItem> {
        self.items.iter().filter(move |item| item.outcome == *outcome)
    }
}

#[cfg(test)]
mod tests;
