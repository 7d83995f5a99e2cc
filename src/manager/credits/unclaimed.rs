//! Unclaimed holds: credits that the ledger holds beyond what records know of, since their process died in between.

use std::collections::BTreeMap;

use crate::domain::Usd;
use crate::domain::credit::{EntryKind, LedgerEntry, LedgerSums};
use crate::domain::error::Error;
use crate::domain::event::{EventKind, PendingEvent};
use crate::domain::name::SandboxId;
use crate::domain::sandbox::SandboxRecord;
use crate::domain::settlement::{held_by, release_next};
use crate::failpoint;
use crate::manager::credits::entries::{add_events, random_entry_id};
use crate::manager::credits::pending::append_to_ledger;
use crate::manager::deps::Deps;
use crate::manager::journal::{self, Guard, append};

/// Note on the entry of a hold that no record has.
const NOTE: &str = "no record has this hold: the process that held it died";

/// Note on the entry of a hold that the ledger had lost.
const LOST_NOTE: &str = "its record has this hold, and the ledger had lost it";

/// Hold that a record has and the ledger lacks.
pub(crate) struct LostHold {
    pub(crate) sandbox: SandboxId,
    pub(crate) usd: Usd,
    /// Whether it is held again.
    pub(crate) held: Result<(), Error>,
}

/// Releases what no record has, and what dead recreates hold; what was released. Waits for whoever is about to write a record.
pub(crate) async fn release_unclaimed(deps: &Deps) -> Result<Vec<(SandboxId, Usd)>, Error> {
    let sums = deps.credits.sums().await?;
    if find_unclaimed(deps, &sums).await?.is_empty() {
        return Ok(Vec::new());
    }
    let _lock = deps.credits.lock_holders().await?;
    release_unclaimed_locked(deps).await
}

/// [`release_unclaimed`], for whoever has the holders' lock.
pub(crate) async fn release_unclaimed_locked(deps: &Deps) -> Result<Vec<(SandboxId, Usd)>, Error> {
    let mut released = release_abandoned(deps).await?;
    // Records before the ledger: whatever ends a hold meanwhile is in both or only there, and nobody holds more.
    let records = deps.sandboxes.list().await?;
    for record in records.iter().filter(|record| !record.pending.is_empty()) {
        // Entries that wait for the ledger are no dead process's: without them nobody knows what is.
        append_to_ledger(deps, &record.pending).await?;
        append(deps, &record.pending).await?;
    }
    let known = records.iter().map(|record| (&record.id, held_by(record))).collect();
    let unclaimed = deps.credits.sums().await?.unclaimed(&known);
    for (sandbox, usd) in &unclaimed {
        tracing::warn!(%sandbox, %usd, NOTE);
        release(deps, sandbox, *usd).await?;
    }
    released.extend(unclaimed);
    Ok(released)
}

/// Holds what records have and the ledger lacks: a line was lost or taken out of it. What was held anew, and why some was not.
pub(crate) async fn hold_lost(deps: &Deps) -> Result<Vec<LostHold>, Error> {
    let _lock = deps.credits.lock_holders().await?;
    let mut found = Vec::new();
    // The ledger before the records: whatever ends a hold meanwhile is in both or only in the record, and nobody holds more.
    let sums = deps.credits.sums().await?;
    for record in &deps.sandboxes.list().await? {
        let lacking = held_by(record) - sums.held_for(&record.id);
        if lacking <= Usd::ZERO {
            continue;
        }
        let entry = LedgerEntry {
            id: random_entry_id(deps),
            time: deps.now(),
            kind: EntryKind::Hold,
            sandbox_id: Some(record.id.clone()),
            usd: lacking,
            actor: deps.actor(),
            note: Some(LOST_NOTE.to_owned()),
        };
        let held = deps.credits.append(vec![entry]).await.map(drop);
        found.push(LostHold { sandbox: record.id.clone(), usd: lacking, held });
    }
    Ok(found)
}

/// Releases what recreates hold that died between two operations: nobody has the lock of such a sandbox.
async fn release_abandoned(deps: &Deps) -> Result<Vec<(SandboxId, Usd)>, Error> {
    let mut released = Vec::new();
    for record in deps.sandboxes.list().await?.iter().filter(|record| may_be_abandoned(record)) {
        if let Some(_lock) = deps.locks.try_lock(&record.id).await?
            && let Some(usd) = release_next_run(deps, &record.id).await?
        {
            released.push((record.id.clone(), usd));
        }
    }
    Ok(released)
}

/// Releases what is held for a run that a recreate did not begin, for whoever has the sandbox's lock; how much.
pub(crate) async fn release_next_run(deps: &Deps, id: &SandboxId) -> Result<Option<Usd>, Error> {
    let next = |record: &SandboxRecord| record.meter.as_ref().and_then(|meter| meter.next_usd);
    let Some(usd) = deps.sandboxes.get(id).await?.as_ref().and_then(next) else {
        return Ok(None);
    };
    let (actor, now) = (deps.actor(), deps.now());
    let let_go = |record: &mut SandboxRecord| {
        let events = release_next(record);
        add_events(record, events, &actor, now);
        Ok(())
    };
    journal::update(deps, id, Guard::Any, Vec::new(), let_go).await?;
    Ok(Some(usd))
}

/// Whether a record has a hold for another run, and no operation that may begin it. A recreate that takes an undo snapshot looks
/// like that for a moment.
fn may_be_abandoned(record: &SandboxRecord) -> bool {
    record.operation.is_none()
        && record.meter.as_ref().is_some_and(|meter| meter.next_usd.is_some())
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
    append(deps, &[event]).await.map(drop)
}

/// Holds that no record has, or a dead recreate. Somebody may be about to write a record.
pub(crate) async fn find_unclaimed(
    deps: &Deps,
    sums: &LedgerSums,
) -> Result<Vec<(SandboxId, Usd)>, Error> {
    if sums.held() == Usd::ZERO {
        return Ok(Vec::new());
    }
    let records = deps.sandboxes.list().await?;
    let claimed = |record: &SandboxRecord| {
        if may_be_abandoned(record) { record.hold_usd.unwrap_or_default() } else { held_by(record) }
    };
    let known: BTreeMap<_, _> =
        records.iter().map(|record| (&record.id, claimed(record))).collect();
    Ok(sums.unclaimed(&known))
}
