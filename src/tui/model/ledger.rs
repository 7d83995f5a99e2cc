//! Ledger as it was read: sums, the last entries, and what was spent in the last day.

use std::collections::{BTreeMap, HashMap};

use crate::domain::credit::{Credits, EntryKind, HistoryEntry};
use crate::domain::name::SandboxId;
use crate::domain::{Time, Usd};
use crate::present::{age, usd};

/// Entries that are kept to be read; sums and spending go by all of them.
const KEPT: usize = 1000;
/// Hours of the sparkline.
pub(super) const HOURS: u8 = 24;
const HOUR_S: i64 = 3600;
/// Credits that last for less are told, in seconds.
pub(super) const LOW_S: u64 = 86_400;

/// Ledger as it was read, with all that is shown of it.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Ledger {
    pub sums: Credits,
    /// The last entries, the newest first.
    pub entries: Vec<HistoryEntry>,
    /// How many there are, kept or not.
    pub count: usize,
    /// Charges by the hour in which they were spent, since the epoch.
    charged: BTreeMap<i64, Usd>,
    /// Sandboxes whose hold is open.
    open: HashMap<SandboxId, Open>,
    /// Cost of the last day's sandboxes above their holds.
    shortfall: Usd,
}

/// Holds of a sandbox that are open: since when nothing was charged, what was charged before, and what is held still.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Open {
    since: Time,
    charged: Usd,
    held: Usd,
}

impl Ledger {
    /// Takes the history, oldest first. A charge was spent between the hold, or the charge before, and itself.
    pub fn of(sums: Credits, mut history: Vec<HistoryEntry>, now: Time) -> Self {
        let mut ledger = Self { sums, count: history.len(), ..Self::default() };
        let first = now.unix().div_euclid(HOUR_S) - i64::from(HOURS);
        for HistoryEntry { entry, .. } in &history {
            let Some(id) = &entry.sandbox_id else { continue };
            match entry.kind {
                EntryKind::Hold => {
                    let open = Open { since: entry.time, charged: Usd::ZERO, held: Usd::ZERO };
                    ledger.open.entry(id.clone()).or_insert(open).held += entry.usd;
                }
                EntryKind::Charge => {
                    let open = ledger.open.entry(id.clone());
                    let unknown = Open { since: entry.time, charged: Usd::ZERO, held: Usd::ZERO };
                    let open = open.or_insert(unknown);
                    spread(&mut ledger.charged, entry.usd, open.since, entry.time, first);
                    let (charged, held) = (open.charged + entry.usd, open.held - entry.usd);
                    *open = Open { since: entry.time, charged, held };
                }
                // What a refused recreate or an extend gives back leaves the run its own.
                EntryKind::Release => {
                    if let Some(open) = ledger.open.get_mut(id) {
                        open.held = open.held - entry.usd;
                    }
                    ledger.open.retain(|_, open| open.held > Usd::ZERO);
                }
                EntryKind::Shortfall if now.since(entry.time).as_secs() < LOW_S => {
                    ledger.shortfall += entry.usd;
                }
                EntryKind::Shortfall | EntryKind::Grant | EntryKind::Other(_) => {}
            }
        }
        history.drain(..history.len().saturating_sub(KEPT));
        history.reverse();
        ledger.entries = history;
        ledger
    }

    /// Whether nothing was ever granted or spent.
    pub fn is_empty(&self) -> bool {
        self.count == 0 && self.sums == Credits::default()
    }

    /// Trouble that is seen without a key: credits that are gone or end within a day, and what nobody paid.
    pub fn warning(&self) -> Option<String> {
        if self.is_empty() {
            return None;
        }
        let gone = self.sums.balance_usd <= Usd::ZERO;
        let lasts = match self.sums.lasts().filter(|time| time.as_secs() < LOW_S) {
            _ if gone && self.sums.held_usd > Usd::ZERO => Some("all held".to_owned()),
            _ if gone => Some("used up".to_owned()),
            Some(time) => Some(format!("lasts {}", age(time.as_secs()))),
            None => None,
        };
        let short = self.shortfall().map(|amount| format!("short {}", usd(amount)));
        let words: Vec<String> = lasts.into_iter().chain(short).collect();
        (!words.is_empty()).then(|| words.join(", "))
    }

    /// Cost of the last day's sandboxes above their holds, if there was any.
    pub fn shortfall(&self) -> Option<Usd> {
        Some(self.shortfall).filter(|amount| *amount > Usd::ZERO)
    }

    /// Spending of the last hours, the oldest first: charges, and what runs costs so far as `cost_of` says.
    pub fn spent(&self, now: Time, cost_of: impl Fn(&SandboxId) -> Option<Usd>) -> Vec<Usd> {
        let last = now.unix().div_euclid(HOUR_S);
        let first = last + 1 - i64::from(HOURS);
        let mut hours = self.charged.clone();
        for (id, open) in &self.open {
            let Some(cost) = cost_of(id) else { continue };
            spread(&mut hours, cost - open.charged, open.since, now, first);
        }
        (first..=last).map(|hour| hours.get(&hour).copied().unwrap_or_default()).collect()
    }
}

/// Spreads an amount evenly over the hours in which it was spent; those before `first` are passed over.
fn spread(hours: &mut BTreeMap<i64, Usd>, amount: Usd, from: Time, to: Time, first: i64) {
    if amount <= Usd::ZERO {
        return;
    }
    // A clock that went back spent it all in one moment.
    let (from, to) = (from.unix().min(to.unix()), to.unix());
    let whole = (to - from).max(1);
    for hour in
        from.div_euclid(HOUR_S).max(first)..=to.div_euclid(HOUR_S).min(first + i64::from(HOURS))
    {
        let begin = (hour * HOUR_S).max(from);
        let within = ((hour + 1) * HOUR_S).min(to) - begin;
        let within = if from == to { 1 } else { within };
        let part = i128::from(amount.micros()) * i128::from(within) / i128::from(whole);
        *hours.entry(hour).or_default() +=
            Usd::from_micros(i64::try_from(part).unwrap_or(i64::MAX));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::actor::{Actor, ActorType};
    use crate::domain::credit::LedgerEntry;
    use crate::domain::name::EventId;

    fn at(hours: u64) -> Time {
        Time::from_unix(1_795_788_600).plus_seconds(hours * 3600)
    }

    fn entry(kind: EntryKind, id: Option<&str>, micros: i64, time: Time) -> HistoryEntry {
        HistoryEntry {
            entry: LedgerEntry {
                id: EventId::new(format!("{kind}-{}", time.unix())),
                time,
                kind,
                sandbox_id: id.map(SandboxId::new),
                usd: Usd::from_micros(micros),
                actor: Actor { kind: ActorType::Adm, name: "kim".to_owned() },
                note: None,
            },
            balance_usd: Usd::ZERO,
        }
    }

    fn sums(balance: i64, burn: i64) -> Credits {
        Credits {
            balance_usd: Usd::from_micros(balance),
            held_usd: Usd::ZERO,
            burn_usd_per_h: Usd::from_micros(burn),
        }
    }

    #[test]
    fn a_charge_is_spent_between_its_hold_and_itself_and_what_runs_until_now() {
        let history = vec![
            entry(EntryKind::Grant, None, 10_000_000, at(0)),
            entry(EntryKind::Hold, Some("a1b2c3d4"), 500, at(1)),
            entry(EntryKind::Hold, Some("b1b2c3d4"), 900, at(2)),
            entry(EntryKind::Charge, Some("a1b2c3d4"), 400, at(3)),
            entry(EntryKind::Release, Some("a1b2c3d4"), 100, at(3)),
        ];
        let ledger = Ledger::of(sums(1, 0), history, at(4));
        let spent =
            ledger.spent(at(4), |id| (id.as_str() == "b1b2c3d4").then(|| Usd::from_micros(600)));
        assert_eq!(spent.len(), usize::from(HOURS));
        let spent: Vec<i64> = spent.iter().map(|hour| hour.micros()).collect();
        // Both from ten minutes past on: 200 an hour of the first, 300 of the second.
        assert_eq!(spent[usize::from(HOURS) - 4..], [166, 450, 333, 50]);
        assert_eq!(spent.iter().sum::<i64>(), 999, "cut, never more");
    }

    #[test]
    fn a_clock_that_went_back_and_a_charge_without_a_hold_are_spent_where_they_stand() {
        let history = vec![
            entry(EntryKind::Hold, Some("a1b2c3d4"), 500, at(3)),
            entry(EntryKind::Charge, Some("a1b2c3d4"), 400, at(1)),
            entry(EntryKind::Charge, Some("c1b2c3d4"), 7, at(2)),
        ];
        let ledger = Ledger::of(Credits::default(), history, at(4));
        let spent = ledger.spent(at(4), |_| None);
        assert_eq!(spent.iter().map(|hour| hour.micros()).sum::<i64>(), 407);
    }

    #[test]
    fn credits_that_end_within_a_day_and_a_shortfall_are_told() {
        let told = |balance, burn, history: Vec<HistoryEntry>| {
            Ledger::of(sums(balance, burn), history, at(30)).warning()
        };
        assert_eq!(told(5_000_000, 0, Vec::new()), None);
        assert_eq!(told(5_000_000, 200_000, Vec::new()), None, "25 hours");
        assert_eq!(told(4_000_000, 200_000, Vec::new()).as_deref(), Some("lasts 20h"));
        assert_eq!(told(-1, 0, Vec::new()).as_deref(), Some("used up"));
        let held = Credits { held_usd: Usd::from_micros(5), ..sums(0, 1) };
        assert_eq!(Ledger::of(held, Vec::new(), at(30)).warning().as_deref(), Some("all held"));
        assert_eq!(Ledger::default().warning(), None, "nothing was ever granted");
        let short = |time| vec![entry(EntryKind::Shortfall, Some("a1b2c3d4"), 120_000, time)];
        assert_eq!(told(5_000_000, 0, short(at(7))).as_deref(), Some("short $0.12"));
        assert_eq!(told(5_000_000, 0, short(at(5))), None, "more than a day ago");
    }
}
