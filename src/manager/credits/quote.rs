//! Quote: the price of a run before it begins, and what is missing for it.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::domain::Usd;
use crate::domain::credit::insufficient_credits;
use crate::domain::error::{Code, Error};
use crate::domain::extension::MeterQuote;
use crate::domain::meter::RENEWED_S;
use crate::domain::name::ExtensionId;
use crate::domain::profile::Profile;
use crate::manager::credits::unclaimed::find_unclaimed;
use crate::manager::deps::Deps;

/// Price of a run: for its time to live, and without one for an hour. `None`: it costs nothing.
pub(crate) async fn quote_run(
    deps: &Deps,
    extension: &ExtensionId,
    profile: &Profile,
    inputs: &BTreeMap<String, String>,
    ttl_s: Option<u64>,
) -> Result<Option<MeterQuote>, Error> {
    let time = Duration::from_secs(ttl_s.unwrap_or(RENEWED_S));
    let quote = deps.extension(extension)?.estimate_cost(profile, inputs, time).await?;
    match quote {
        Some(quote) if quote.usd < Usd::ZERO => {
            let message = format!("{extension} asks for {}: less than nothing", quote.usd);
            Err(Error::new(Code::OperationFailed, message))
        }
        quote => Ok(quote),
    }
}

/// Credits that are missing for a run. What dead processes hold counts as free: the run's own hold would free it.
pub(crate) async fn missing_usd(
    deps: &Deps,
    quote: Option<&MeterQuote>,
) -> Result<Option<Usd>, Error> {
    let Some(quote) = quote else { return Ok(None) };
    let balance = free_balance(deps).await?;
    Ok((quote.usd > balance).then(|| quote.usd - balance))
}

/// The error that a create would end with for want of credits.
pub(crate) async fn missing(
    deps: &Deps,
    quote: Option<&MeterQuote>,
) -> Result<Option<Error>, Error> {
    let Some(quote) = quote else { return Ok(None) };
    let balance = free_balance(deps).await?;
    Ok((quote.usd > balance).then(|| insufficient_credits(quote.usd, balance)))
}

/// Balance, with what no record has: that is released as soon as somebody holds who lacks it.
async fn free_balance(deps: &Deps) -> Result<Usd, Error> {
    let sums = deps.credits.sums().await?;
    let unclaimed = find_unclaimed(deps, &sums).await?;
    Ok(unclaimed.into_iter().fold(sums.balance(), |free, (_, usd)| free + usd))
}
