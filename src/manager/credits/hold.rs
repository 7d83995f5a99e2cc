//! Hold: credits that are set aside in the ledger, and then noted on the record of the sandbox that they are for.
//!
//! Whoever holds has the holders' lock until that record is written: what the ledger holds beyond the records is a dead process's
//! then, and nobody else's.

use crate::domain::Usd;
use crate::domain::credit::{EntryKind, LedgerEntry};
use crate::domain::error::{Code, Error};
use crate::domain::event::{EventKind, derived_event_id};
use crate::domain::extension::MeterQuote;
use crate::domain::name::SandboxId;
use crate::domain::sandbox::SandboxRecord;
use crate::domain::settlement::{note_hold, note_next_hold};
use crate::failpoint;
use crate::manager::credits::entries::{add_events, random_entry_id};
use crate::manager::credits::unclaimed::release_unclaimed_locked;
use crate::manager::deps::Deps;
use crate::store::Held;

/// Credits that are held, and not on a record yet.
pub(crate) struct Hold {
    entry: LedgerEntry,
    _lock: Box<dyn Held>,
}

/// Holds the price of a run for a sandbox. `None`: it costs nothing.
///
/// Errors: `insufficient_credits` where the balance is lower; nothing is held then.
pub(crate) async fn hold_for(
    deps: &Deps,
    id: &SandboxId,
    quote: Option<&MeterQuote>,
) -> Result<Option<Hold>, Error> {
    let Some(quote) = quote else { return Ok(None) };
    let lock = deps.credits.lock_holders().await?;
    hold_locked(deps, id, quote.usd, lock).await.map(Some)
}

/// Holds an amount for a sandbox, for whoever has the holders' lock.
pub(crate) async fn hold_locked(
    deps: &Deps,
    id: &SandboxId,
    usd: Usd,
    lock: Box<dyn Held>,
) -> Result<Hold, Error> {
    let entry = LedgerEntry {
        id: random_entry_id(deps),
        time: deps.now(),
        kind: EntryKind::Hold,
        sandbox_id: Some(id.clone()),
        usd,
        actor: deps.actor(),
        note: None,
    };
    let held = deps.credits.append(vec![entry.clone()]).await;
    if let Err(error) = held {
        if error.code != Code::InsufficientCredits
            || release_unclaimed_locked(deps).await?.is_empty()
        {
            return Err(error);
        }
        deps.credits.append(vec![entry.clone()]).await?;
    }
    failpoint::reached("credits.held");
    Ok(Hold { entry, _lock: lock })
}

impl Hold {
    /// Notes it on the record that it is for, which is to be written while this is there.
    pub(crate) fn note_on(&self, record: &mut SandboxRecord) {
        let events = note_hold(record, self.entry.usd);
        add_events(record, events, &self.entry.actor, self.entry.time);
    }

    /// Notes it on a record as held for the run that a recreate begins.
    pub(crate) fn note_next_on(&self, record: &mut SandboxRecord) {
        let events = note_next_hold(record, self.entry.usd);
        add_events(record, events, &self.entry.actor, self.entry.time);
    }

    /// Gives it back: no record has it. What cannot be given back now is found by whoever holds, sweeps or recovers next.
    pub(crate) async fn give_back(self, deps: &Deps) {
        failpoint::reached("credits.give_back");
        let entry = LedgerEntry {
            id: derived_event_id(self.entry.id.as_str(), 0, &EventKind::CreditsReleased),
            kind: EntryKind::Release,
            time: deps.now(),
            ..self.entry
        };
        if let Err(error) = deps.credits.append(vec![entry]).await {
            tracing::warn!(%error, "a hold could not be given back yet");
        }
    }
}

/// Gives a hold back, if there is one; the error that it was no use for.
pub(crate) async fn give_back(deps: &Deps, hold: Option<Hold>, error: Error) -> Error {
    if let Some(hold) = hold {
        hold.give_back(deps).await;
    }
    error
}
