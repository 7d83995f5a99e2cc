//! Price of an attempt: what a candidate would cost, whether the credits are there, and the credits between two attempts.

use crate::domain::Usd;
use crate::domain::error::{Code, Error, Kind};
use crate::domain::extension::MeterQuote;
use crate::domain::profile::Profile;
use crate::manager::credits::quote::{missing, quote_run};
use crate::manager::deps::Deps;
use crate::manager::sandboxes::resolved::Resolved;

/// Price of a run; none where it costs nothing.
pub(crate) async fn quote_price(
    deps: &Deps,
    resolved: &Resolved,
) -> Result<Option<MeterQuote>, Error> {
    let Resolved { profile, inputs, ttl_s, .. } = resolved;
    quote_run(deps, &profile.extension, profile, inputs, *ttl_s).await
}

/// Refusal of a price that is too high: for the profile, or for the credits.
pub(crate) async fn over_budget(
    deps: &Deps,
    profile: &Profile,
    quote: Option<&MeterQuote>,
) -> Result<Option<Error>, Error> {
    match check_max_cost(profile, quote) {
        Ok(()) => missing(deps, quote).await,
        Err(error) => Ok(Some(error)),
    }
}

/// Refuses a price above the profile's `max_cost_usd`.
fn check_max_cost(profile: &Profile, quote: Option<&MeterQuote>) -> Result<(), Error> {
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

fn json(usd: Usd) -> serde_json::Value {
    serde_json::to_value(usd).unwrap_or_default()
}
