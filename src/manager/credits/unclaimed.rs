//! Unclaimed holds: credits that the ledger holds beyond what records know of, since their process died in between.

use std::collections::BTreeMap;

use crate::domain::Usd;
use crate::domain::credit::{EntryKind, LedgerEntry, LedgerSums};
use crate::domain::error::Error;
use crate::domain::event::{EventKind, PendingEvent};
use crate::domain::name::SandboxId;
use crate::domain::settlement::held_by;
use crate::failpoint;
use crate::manager::credits::entries::random_entry_id;
use crate::manager::deps::Deps;
use crate::manager::journal::append;

/// Note on the entry of a hold that no record has.
const NOTE: &str = "no record has this hold: the process that held it died";

/// Releases what no record has; what was released. Waits for whoever is about to write one.
pub(crate) async fn release_unclaimed(deps: &Deps) -> Result<Vec<(SandboxId, Usd)>, Error> {
    let sums = deps.credits.sums().await?;
    if find_unclaimed(deps, &sums).await?.is_empty() {
        return Ok(Vec::new());
    }
    let _turn = deps.credits.turn().await?;
    release_unclaimed_in_turn(deps).await
}

/// [`release_unclaimed`], for whoever has the turn.
pub(crate) async fn release_unclaimed_in_turn(deps: &Deps) -> Result<Vec<(SandboxId, Usd)>, Error> {
    // Records before the ledger: whatever ends a hold meanwhile is in both or only there, and nobody holds more.
    let records = deps.sandboxes.list().await?;
    for record in records.iter().filter(|record| !record.pending.is_empty()) {
        append(deps, &record.pending).await?;
    }
    let known = records.iter().map(|record| (&record.id, held_by(record))).collect();
    let unclaimed = deps.credits.sums().await?.unclaimed(&known);
    for (sandbox, usd) in &unclaimed {
        tracing::warn!(%sandbox, %usd, NOTE);
        release(deps, sandbox, *usd).await?;
    }
    Ok(unclaimed)
}

async fn release(deps: &Deps, sandbox: &SandboxId, usd: Usd) -> Result<(), Error> {
    let event = PendingEvent {
        id: random_entry_id(deps),
        time: deps.now(),
        kind: EventKind::CreditsReleased,
        sandbox_id: Some(sandbox.clone()),
        actor: deps.actor(),
        data: serde_json::json!({"usd": usd, "reason": NOTE}),
    };
    let entry = LedgerEntry {
        id: event.id.clone(),
        time: event.time,
        kind: EntryKind::Release,
        sandbox_id: event.sandbox_id.clone(),
        usd,
        actor: event.actor.clone(),
        note: Some(NOTE.to_owned()),
    };
    deps.credits.append(vec![entry]).await?;
    failpoint::reached("credits.released");
    append(deps, &[event]).await
}

/// What no record has. Somebody may be about to write one.
pub(crate) async fn find_unclaimed(
    deps: &Deps,
    sums: &LedgerSums,
) -> Result<Vec<(SandboxId, Usd)>, Error> {
    if sums.held() == Usd::ZERO {
        return Ok(Vec::new());
    }
    let records = deps.sandboxes.list().await?;
    let known: BTreeMap<_, _> =
        records.iter().map(|record| (&record.id, held_by(record))).collect();
    Ok(sums.unclaimed(&known))
}
