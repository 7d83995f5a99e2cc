//! Credits: prepaid money in micro-USD, as an append-only ledger and the sums of it.

use std::collections::BTreeMap;
use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::domain::actor::Actor;
use crate::domain::error::{Code, Error};
use crate::domain::event::{EventKind, PendingEvent};
use crate::domain::name::{EventId, SandboxId};
use crate::domain::words::string_enum;
use crate::domain::{Time, Usd};

string_enum! {
    /// Kind of a ledger entry.
    pub enum EntryKind {
        /// Credits were added.
        Grant = "grant",
        /// Credits were set aside for a sandbox.
        Hold = "hold",
        /// Credits of a hold were spent.
        Charge = "charge",
        /// Credits of a hold were given back.
        Release = "release",
        /// Cost of a sandbox above its hold: nobody pays it.
        Shortfall = "shortfall",
    }
}

/// Entry of the ledger. Amounts are never negative; the kind says what they do to the balance.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct LedgerEntry {
    /// Key, derived from the record's write that caused it; random for a grant. An entry is appended once.
    pub id: EventId,
    /// When it was caused.
    pub time: Time,
    /// Kind of the entry.
    pub kind: EntryKind,
    /// The sandbox that it is about; null for a grant.
    pub sandbox_id: Option<SandboxId>,
    /// The amount.
    pub usd: Usd,
    /// Actor that caused it.
    pub actor: Actor,
    /// Note of whoever granted it, or the reason.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
}

impl LedgerEntry {
    /// Entry that an event of a record tells of; the event's id is its key. None for a hold, which is in the ledger before it is on a
    /// record.
    pub fn of_event(event: &PendingEvent) -> Option<Self> {
        let kind = match event.kind {
            EventKind::CreditsCharged => EntryKind::Charge,
            EventKind::CreditsReleased => EntryKind::Release,
            EventKind::CreditsShortfall => EntryKind::Shortfall,
            _ => return None,
        };
        Some(Self {
            id: event.id.clone(),
            time: event.time,
            kind,
            sandbox_id: event.sandbox_id.clone(),
            usd: event.usd()?,
            actor: event.actor.clone(),
            note: None,
        })
    }
}

/// Sums of the ledger.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Credits {
    /// Grants, less charges, less what is held.
    pub balance_usd: Usd,
    /// Set aside for sandboxes that run.
    pub held_usd: Usd,
    /// Spending of the sandboxes that run now, per hour.
    pub burn_usd_per_h: Usd,
}

impl Credits {
    /// Time that the balance lasts at the spending of now, to the second; `None` where nothing is spent.
    pub(crate) fn lasts(&self) -> Option<Duration> {
        let (balance, burn) = (self.balance_usd.micros().max(0), self.burn_usd_per_h.micros());
        let seconds = (burn > 0).then(|| i128::from(balance) * 3600 / i128::from(burn))?;
        Some(Duration::from_secs(u64::try_from(seconds).unwrap_or(u64::MAX)))
    }
}

/// Entry of the ledger with the balance behind it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct HistoryEntry {
    /// The entry.
    #[serde(flatten)]
    pub entry: LedgerEntry,
    /// Balance after it.
    pub balance_usd: Usd,
}

/// Grant of credits.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct GrantRequest {
    /// The amount; above zero.
    pub usd: Usd,
    /// For the history.
    #[serde(default)]
    pub note: Option<String>,
}

/// Sums of a ledger. What is held is known per sandbox; balance = grants − charges − held, and never below zero: a hold
/// takes no more than the balance, a charge or release no more than what is held.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LedgerSums {
    granted: Usd,
    charged: Usd,
    held: Usd,
    held_for: BTreeMap<SandboxId, Usd>,
}

impl LedgerSums {
    /// Grants, less charges, less what is held.
    pub fn balance(&self) -> Usd {
        self.granted - self.charged - self.held
    }

    pub fn granted(&self) -> Usd {
        self.granted
    }

    /// Sum of what is held.
    pub fn held(&self) -> Usd {
        self.held
    }

    /// Amount held for a sandbox.
    pub fn held_for(&self, sandbox: &SandboxId) -> Usd {
        self.held_for.get(sandbox).copied().unwrap_or_default()
    }

    /// Amount held beyond what records know of: its holder died before the record was written.
    pub fn unclaimed(&self, known: &BTreeMap<&SandboxId, Usd>) -> Vec<(SandboxId, Usd)> {
        let beyond = |(id, held): (&SandboxId, &Usd)| {
            let beyond = *held - known.get(id).copied().unwrap_or_default();
            (beyond > Usd::ZERO).then(|| (id.clone(), beyond))
        };
        self.held_for.iter().filter_map(beyond).collect()
    }

    /// Entry as it may be appended: a charge or release is cut to what is held.
    ///
    /// Errors: `insufficient_credits` for a hold above the balance, `invalid_input` for a grant above all that can be counted.
    pub(crate) fn admit(&self, entry: LedgerEntry) -> Result<LedgerEntry, Error> {
        let usd = match (&entry.kind, &entry.sandbox_id) {
            (EntryKind::Hold, _) if entry.usd > self.balance() => {
                return Err(insufficient_credits(entry.usd, self.balance()));
            }
            (EntryKind::Grant, _) if self.granted.plus(entry.usd).is_none() => {
                let message = format!(
                    "all grants together are at most {}, and {} were granted by now",
                    Usd::MAX,
                    self.granted
                );
                return Err(Error::invalid_input("usd", message));
            }
            (EntryKind::Charge | EntryKind::Release, Some(sandbox)) => {
                entry.usd.min(self.held_for(sandbox))
            }
            _ => entry.usd,
        };
        Ok(LedgerEntry { usd, ..entry })
    }

    /// Counts an entry.
    ///
    /// Errors: why no ledger has it, in a sentence; then it is not counted.
    pub fn count(&mut self, entry: &LedgerEntry) -> Result<(), String> {
        let LedgerEntry { kind, sandbox_id, usd, .. } = entry;
        let usd = *usd;
        if usd < Usd::ZERO {
            return Err("an amount is below zero".to_owned());
        }
        match (kind, sandbox_id) {
            (EntryKind::Grant, _) => {
                let Some(granted) = self.granted.plus(usd) else {
                    return Err(format!("all grants together are above {}", Usd::MAX));
                };
                self.granted = granted;
            }
            (EntryKind::Hold, Some(sandbox)) => {
                if usd > self.balance() {
                    return Err(format!("it holds {usd} of a balance of {}", self.balance()));
                }
                self.held += usd;
                *self.held_for.entry(sandbox.clone()).or_default() += usd;
            }
            (EntryKind::Charge, Some(sandbox)) => {
                self.take_held(sandbox, usd)?;
                self.charged += usd;
            }
            (EntryKind::Release, Some(sandbox)) => self.take_held(sandbox, usd)?,
            (EntryKind::Shortfall, Some(_)) => {}
            (EntryKind::Other(word), _) => {
                return Err(format!("this version knows no entry of the kind {word}"));
            }
            (_, None) => return Err("it names no sandbox".to_owned()),
        }
        Ok(())
    }

    fn take_held(&mut self, sandbox: &SandboxId, usd: Usd) -> Result<(), String> {
        let held = self.held_for(sandbox);
        if usd > held {
            return Err(format!("it takes {usd} of {held} that is held for sandbox {sandbox}"));
        }
        self.held = self.held - usd;
        if usd == held {
            self.held_for.remove(sandbox);
        } else {
            self.held_for.insert(sandbox.clone(), held - usd);
        }
        Ok(())
    }
}

/// `insufficient_credits`: so much is asked for, and this is the balance.
pub fn insufficient_credits(usd: Usd, balance: Usd) -> Error {
    let missing = usd - balance;
    let number = |usd: Usd| serde_json::to_value(usd).unwrap_or_default();
    Error::new(
        Code::InsufficientCredits,
        format!("{usd} would have to be held, and the balance is {balance}: {missing} is missing"),
    )
    .hint(format!(
        "`sandboxer credits grant {}` adds what is missing; a shorter time to live costs less",
        missing.plain()
    ))
    .detail("needed_usd", number(usd))
    .detail("balance_usd", number(balance))
    .detail("missing_usd", number(missing))
}

#[cfg(test)]
mod tests;
