//! Cost: what a metered sandbox has come to so far, as its extension meters it, and records as they show it.

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::join_all;

use crate::domain::Usd;
use crate::domain::error::Error;
use crate::domain::meter::CostMeter;
use crate::domain::request::ListQuery;
use crate::domain::sandbox::SandboxRecord;
use crate::manager::deps::Deps;
use crate::manager::sandboxes::find::{find_sandbox, list_sandboxes};
use crate::manager::sandboxes::resolve::resolve_as_known;

/// Limit of a question for the cost; then the quote says.
const LIMIT: Duration = Duration::from_secs(5);

/// Cost of a record's run so far, all of it. An extension that cannot tell is no reason to hold credits for ever: then the quote
/// says.
pub(crate) async fn cost_of_run(deps: &Deps, record: &SandboxRecord) -> Usd {
    let Some(meter) = &record.meter else { return Usd::ZERO };
    if meter.began.is_none() {
        return Usd::ZERO;
    }
    let elapsed = meter.elapsed(&deps.read_clocks());
    let asked = async {
        let extension = deps.extension(&record.extension)?;
        extension.meter_actual(&resolve_as_known(deps, record).await?, elapsed).await
    };
    let estimate = || meter.estimate(record.quote_usd.unwrap_or_default(), elapsed);
    match tokio::time::timeout(LIMIT, asked).await {
        Ok(Ok(cost)) => cost.unwrap_or_default().max(Usd::ZERO),
        Ok(Err(error)) => {
            tracing::warn!(sandbox = %record.id, %error, "its cost is estimated: it could not be metered");
            estimate()
        }
        Err(_) => {
            tracing::warn!(sandbox = %record.id, "its cost is estimated: it was not metered in time");
            estimate()
        }
    }
}

/// Record with what it costs by now: what was charged, and of the run that goes on as much as its hold pays.
async fn with_cost(deps: &Deps, mut record: SandboxRecord) -> SandboxRecord {
    let Some(CostMeter { charged_usd, .. }) = record.meter else { return record };
    let run = cost_of_run(deps, &record).await - charged_usd;
    let run = run.max(Usd::ZERO).min(record.hold_usd.unwrap_or_default());
    record.cost_usd = Some(record.cost_usd.unwrap_or_default() + run);
    record
}

/// Sandbox that a reference means, with what it costs by now.
pub(crate) async fn get_with_cost(deps: &Deps, reference: &str) -> Result<SandboxRecord, Error> {
    Ok(with_cost(deps, find_sandbox(deps, reference).await?).await)
}

/// Sandboxes that pass, with what they cost by now.
pub(crate) async fn list_with_cost(
    deps: &Deps,
    query: &ListQuery,
) -> Result<Vec<Arc<SandboxRecord>>, Error> {
    let mut records = list_sandboxes(deps, query).await?;
    let metered = records.iter_mut().filter(|record| record.meter.is_some());
    join_all(metered.map(async |record| {
        *record = Arc::new(with_cost(deps, SandboxRecord::clone(record)).await);
    }))
    .await;
    Ok(records)
}
