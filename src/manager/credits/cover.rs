//! Cover: a hold that goes on is raised to what its run comes to until its deadline.

use std::time::Duration;

use crate::domain::error::Error;
use crate::domain::meter::RENEWED_S;
use crate::domain::sandbox::SandboxRecord;
use crate::domain::{Time, Usd};
use crate::manager::credits::hold::{Hold, hold_locked};
use crate::manager::deps::Deps;
use crate::manager::journal::{self, Guard};
use crate::manager::sandboxes::find::find_sandbox;
use crate::manager::sandboxes::resolve::resolve_as_known;
use crate::store::Held;

/// Price of a record's run until a deadline, and without one for another hour.
pub(crate) async fn price_until(
    deps: &Deps,
    record: &SandboxRecord,
    deadline: Option<Time>,
) -> Result<Usd, Error> {
    let Some(meter) = &record.meter else { return Ok(Usd::ZERO) };
    let now = deps.read_clocks();
    let left = deadline.map_or(Duration::from_secs(RENEWED_S), |end| end.since(now.wall));
    let target = resolve_as_known(deps, record).await?;
    let extension = deps.extension(&record.extension)?;
    let time = meter.elapsed(&now).saturating_add(left);
    let quote = extension.estimate_cost(&target.profile, &record.inputs, time).await?;
    Ok(quote.map_or(Usd::ZERO, |quote| quote.usd))
}

/// Holds for a record what its hold lacks until a deadline. `None`: nothing.
///
/// Errors: `insufficient_credits`.
pub(crate) async fn hold_until(
    deps: &Deps,
    record: &SandboxRecord,
    deadline: Option<Time>,
) -> Result<Option<Hold>, Error> {
    if record.meter.is_none() {
        return Ok(None);
    }
    let price = price_until(deps, record, deadline).await?;
    let lock = deps.credits.lock_holders().await?;
    // Read again: somebody may have raised it.
    let record = find_sandbox(deps, record.id.as_str()).await?;
    hold_lacking(deps, &record, price, lock).await
}

/// Holds for a record what its hold lacks of a price, for whoever has the holders' lock.
pub(crate) async fn hold_lacking(
    deps: &Deps,
    record: &SandboxRecord,
    price: Usd,
    lock: Box<dyn Held>,
) -> Result<Option<Hold>, Error> {
    let lacking = price - record.hold_usd.unwrap_or_default();
    if lacking <= Usd::ZERO {
        return Ok(None);
    }
    hold_locked(deps, &record.id, lacking, lock).await.map(Some)
}

/// Raises the hold of a record to what its run comes to until its deadline; the record as it is then.
///
/// Errors: `insufficient_credits`; then it is as it was.
pub(crate) async fn cover(deps: &Deps, record: SandboxRecord) -> Result<SandboxRecord, Error> {
    let Some(hold) = hold_until(deps, &record, record.expires_at).await? else {
        return Ok(record);
    };
    let noted = |record: &mut SandboxRecord| {
        hold.note_on(record);
        Ok(())
    };
    let guard = Guard::Revision(Some(record.revision));
    match journal::update(deps, &record.id, guard, Vec::new(), noted).await {
        Ok(record) => Ok(record),
        Err(error) => {
            hold.give_back(deps).await;
            Err(error)
        }
    }
}
