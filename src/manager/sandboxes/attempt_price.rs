//! Price of an attempt: what a candidate would cost, whether the credits are there, and the credits between two attempts.

use crate::domain::Usd;
use crate::domain::error::{Code, Error, Kind};
use crate::domain::extension::MeterQuote;
use crate::domain::profile::Profile;
use crate::domain::sandbox::SandboxRecord;
use crate::manager::deps::Deps;
use crate::manager::operation::Op;
use crate::manager::sandboxes::resolved::Resolved;

/// Price of a run; none where it costs nothing.
pub(crate) async fn quote_price(
    deps: &Deps,
    resolved: &Resolved,
) -> Result<Option<MeterQuote>, Error> {
    let extension = deps.extension(&resolved.profile.extension)?;
    let seconds = resolved.ttl_s.unwrap_or(3600);
    extension
        .estimate_cost(&resolved.profile, &resolved.inputs, std::time::Duration::from_secs(seconds))
        .await
}

/// Why a price is too high: for the profile, or for the credits.
pub(crate) async fn over_budget(
    deps: &Deps,
    profile: &Profile,
    quote: Option<&MeterQuote>,
) -> Result<Option<Error>, Error> {
    match check_max_cost(profile, quote) {
        Ok(()) => missing_credits(deps, quote).await,
        Err(error) => Ok(Some(error)),
    }
}

/// Refuses a price above the profile's `max_cost_usd`.
pub(crate) fn check_max_cost(profile: &Profile, quote: Option<&MeterQuote>) -> Result<(), Error> {
    let (Some(most), Some(quote)) = (profile.routing.max_cost_usd, quote) else { return Ok(()) };
    if quote.usd <= most {
        return Ok(());
    }
    let message =
        format!("{} would cost {}, and {} allows {most}", profile.extension, quote.usd, profile.id);
    Err(Error::new(Code::Conflict, message)
        .hint("a shorter --ttl costs less; the limit is `routing.max_cost_usd` of the profile")
        .detail("quote_usd", json(quote.usd))
        .detail("max_cost_usd", json(most))
        .of_kind(Kind::OverBudget))
}

/// Error that a create at this price would get for want of credits; none where there are enough.
async fn missing_credits(
    _deps: &Deps,
    _quote: Option<&MeterQuote>,
) -> Result<Option<Error>, Error> {
    Ok(None)
}

/// Ends the money of an attempt that failed and left nothing: charges what it has cost, which this returns, and gives the rest back.
pub(crate) async fn settle_failed(op: &Op<SandboxRecord>) -> Result<Option<Usd>, Error> {
    op.deps.ledger.release(&op.subject.id).await?;
    Ok(None)
}

/// Holds the price of the next attempt.
pub(crate) async fn hold_next(
    op: &Op<SandboxRecord>,
    quote: Option<&MeterQuote>,
) -> Result<(), Error> {
    op.deps.ledger.hold(&op.subject.id, quote).await.map(|_| ())
}

fn json(usd: Usd) -> serde_json::Value {
    serde_json::to_value(usd).unwrap_or_default()
}
