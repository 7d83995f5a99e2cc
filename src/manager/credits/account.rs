//! Account: grants, the sums of the ledger, its entries.

use crate::domain::Usd;
use crate::domain::credit::{Credits, EntryKind, GrantRequest, LedgerEntry};
use crate::domain::error::Error;
use crate::domain::event::{EventKind, PendingEvent};
use crate::domain::request::{Check, CheckState};
use crate::failpoint;
use crate::manager::credits::entries::random_entry_id;
use crate::manager::deps::Deps;
use crate::manager::journal::append;

/// The longest note, in characters.
const NOTE_LENGTH: usize = 200;

/// Seconds in which a grant whose process died is told still.
const TOLD_WITHIN_S: u64 = 24 * 3600;

/// Sums of the ledger, and what is spent per hour now.
pub(crate) async fn credits(deps: &Deps) -> Result<Credits, Error> {
    let ledger = deps.credits.sums().await?;
    let mut burn_usd_per_h = Usd::ZERO;
    if ledger.held() > Usd::ZERO {
        for record in deps.sandboxes.list().await?.iter().filter(|one| one.hold_usd.is_some()) {
            let quote = record.quote_usd.unwrap_or_default();
            burn_usd_per_h +=
                record.meter.as_ref().map(|meter| meter.burn(quote)).unwrap_or_default();
        }
    }
    Ok(Credits { balance_usd: ledger.balance(), held_usd: ledger.held(), burn_usd_per_h })
}

/// Adds credits; the sums as they are then.
///
/// Errors: `invalid_input` for an amount that is not above zero, or above all that can be counted.
pub(crate) async fn grant(deps: &Deps, request: GrantRequest) -> Result<Credits, Error> {
    let GrantRequest { usd, note } = request;
    if usd <= Usd::ZERO {
        return Err(Error::invalid_input("usd", "a grant is above zero")
            .hint("the ledger is only ever added to: nothing is taken out of it by hand"));
    }
    let is_long =
        |note: &String| note.chars().count() > NOTE_LENGTH || note.contains(char::is_control);
    if note.as_ref().is_some_and(is_long) {
        let message =
            format!("a note is at most {NOTE_LENGTH} characters, without control characters");
        return Err(Error::invalid_input("note", message));
    }
    let entry = LedgerEntry {
        id: random_entry_id(deps),
        time: deps.now(),
        kind: EntryKind::Grant,
        sandbox_id: None,
        usd,
        actor: deps.actor(),
        note,
    };
    deps.credits.append(vec![entry.clone()]).await?;
    failpoint::reached("credits.granted");
    if let Err(error) = append(deps, &[granted(&entry)]).await {
        tracing::warn!(%error, "a grant is told by whoever starts or recovers next");
    }
    credits(deps).await
}

/// Check of the ledger; none where nothing was ever granted.
pub(crate) async fn check_ledger(deps: &Deps) -> Option<Check> {
    let check = |state, message, hint| Check { name: "credits".to_owned(), state, message, hint };
    match credits(deps).await {
        Ok(sums) if sums == Credits::default() => None,
        Ok(sums) => {
            let message = format!("{} of balance, {} held", sums.balance_usd, sums.held_usd);
            Some(check(CheckState::Ok, message, None))
        }
        Err(error) => Some(check(CheckState::Failed, error.message, error.hint)),
    }
}

/// Tells of grants whose process died before it did.
pub(crate) async fn tell_grants(deps: &Deps) -> Result<(), Error> {
    let since = deps.now().minus_seconds(TOLD_WITHIN_S);
    let history = deps.credits.history().await?;
    let grants = history
        .iter()
        .map(|one| &one.entry)
        .filter(|entry| entry.kind == EntryKind::Grant && entry.time >= since);
    append(deps, &grants.map(granted).collect::<Vec<_>>()).await.map(drop)
}

/// Event of a grant, whose id is the entry's: it is told once.
fn granted(entry: &LedgerEntry) -> PendingEvent {
    PendingEvent {
        id: entry.id.clone(),
        time: entry.time,
        kind: EventKind::CreditsGranted,
        sandbox_id: None,
        actor: entry.actor.clone(),
        data: serde_json::json!({"usd": entry.usd, "note": entry.note}),
    }
}
