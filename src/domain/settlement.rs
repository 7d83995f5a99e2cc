//! Settlement: how the hold of a sandbox ends on its record, with the events that say so. The ledger's entries are made of these.

use serde_json::{Value, json};

use crate::domain::Usd;
use crate::domain::event::EventKind;
use crate::domain::meter::{CostMeter, Split};
use crate::domain::sandbox::SandboxRecord;

/// Sequel of a run that is settled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum After {
    /// Nothing of it is there.
    Over,
    /// Nobody has looked: it may cost more, which nobody pays.
    Forgotten,
    /// The run for which a recreate holds credits.
    Next,
}

/// Event that a settlement causes.
pub type CreditEvent = (EventKind, Value);

/// Holds credits on a record: for its run, or more for the one that goes on.
pub fn note_hold(record: &mut SandboxRecord, usd: Usd) -> Vec<CreditEvent> {
    let ttl_s = record.ttl_s;
    record.meter.get_or_insert_with(|| CostMeter::new(ttl_s));
    record.hold_usd = Some(record.hold_usd.unwrap_or_default() + usd);
    event(EventKind::CreditsHeld, usd, record).into_iter().collect()
}

/// Holds credits on a record for the run that a recreate begins; what a dead one held for it is given back.
pub fn note_next_hold(record: &mut SandboxRecord, usd: Usd) -> Vec<CreditEvent> {
    let ttl_s = record.ttl_s;
    let meter = record.meter.get_or_insert_with(|| CostMeter::new(ttl_s));
    let before = meter.next_usd.replace(usd).unwrap_or_default();
    let held = event(EventKind::CreditsHeld, usd, record);
    held.into_iter().chain(event(EventKind::CreditsReleased, before, record)).collect()
}

/// Releases what is held for a run that a recreate was to begin, and did not.
pub fn release_next(record: &mut SandboxRecord) -> Vec<CreditEvent> {
    let Some(meter) = &mut record.meter else { return Vec::new() };
    let Some(next) = meter.next_usd.take() else { return Vec::new() };
    if meter.began.is_none() && record.hold_usd.is_none() {
        record.meter = None;
    }
    event(EventKind::CreditsReleased, next, record).into_iter().collect()
}

/// Ends the hold of a record's run by what that cost in all: a charge, a release of the rest, a shortfall of what is beyond it.
pub fn settle(record: &mut SandboxRecord, cost: Usd, after: After) -> Vec<CreditEvent> {
    let Some(mut meter) = record.meter.take() else { return Vec::new() };
    let hold = record.hold_usd.take().unwrap_or_default();
    let mut split = Split::of(hold, cost - meter.charged_usd);
    let next = meter.next_usd.take();
    record.cost_usd = Some(record.cost_usd.unwrap_or_default() + split.charge);
    match (after, next) {
        (After::Next, Some(next)) => {
            record.meter = Some(CostMeter::new(record.ttl_s));
            (record.hold_usd, record.quote_usd) = (Some(next), Some(next));
        }
        (After::Forgotten, next) => {
            split.release += next.unwrap_or_default();
            let charged_usd = meter.charged_usd + split.charge + split.shortfall;
            record.meter = Some(CostMeter { charged_usd, renew_at: None, ..meter });
        }
        (After::Over | After::Next, next) => split.release += next.unwrap_or_default(),
    }
    [
        event(EventKind::CreditsCharged, split.charge, record),
        event(EventKind::CreditsReleased, split.release, record),
        event(EventKind::CreditsShortfall, split.shortfall, record),
    ]
    .into_iter()
    .flatten()
    .collect()
}

/// Sum of a record's holds.
pub fn held_by(record: &SandboxRecord) -> Usd {
    let next = record.meter.as_ref().and_then(|meter| meter.next_usd);
    record.hold_usd.unwrap_or_default() + next.unwrap_or_default()
}

fn event(kind: EventKind, usd: Usd, record: &SandboxRecord) -> Option<CreditEvent> {
    (usd > Usd::ZERO).then(|| (kind, json!({"usd": usd, "host": record.host})))
}

#[cfg(test)]
mod tests;
