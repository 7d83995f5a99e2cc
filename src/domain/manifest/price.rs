//! Price of a metered sandbox by the rates of its extension's manifest: integers alone, and what is left of a micro-dollar counts
//! as a whole one.

use std::time::Duration;

use crate::domain::error::{Code, Error};
use crate::domain::manifest::Rates;
use crate::domain::usd::Usd;

const NANOS: u128 = 1_000_000_000;

impl Rates {
    /// Price of a sandbox that lives for so long and has so many GB, rounded up to the next micro-dollar once, at the end; the
    /// minimum at least.
    ///
    /// Errors: `invalid_input` for one that is higher than any amount can be, and a rate below nothing.
    pub fn price(&self, duration: Duration, gigabytes: u64) -> Result<Usd, Error> {
        let out_of_range = || {
            let message = format!(
                "the price of {} s with {gigabytes} GB is higher than any amount in USD can be",
                duration.as_secs()
            );
            Error::invalid_input("ttl", message).hint("choose a shorter time to live, or fewer GB")
        };
        let by_time = micros(self.per_second_usd)?
            .checked_mul(duration.as_nanos())
            .ok_or_else(out_of_range)?
            .div_ceil(NANOS);
        // Whole micro-dollars for whole GB: nothing is left to be rounded.
        let by_size =
            micros(self.per_gb_usd)?.checked_mul(gigabytes.into()).ok_or_else(out_of_range)?;
        let price = by_time.checked_add(by_size).ok_or_else(out_of_range)?;
        let price = price.max(micros(self.minimum_usd)?);
        let price = i64::try_from(price).ok().map(Usd::from_micros);
        price.filter(|usd| *usd <= Usd::MAX).ok_or_else(out_of_range)
    }
}

/// Micro-dollars of a rate; what is not set costs nothing.
fn micros(rate: Option<Usd>) -> Result<u128, Error> {
    u128::try_from(rate.unwrap_or(Usd::ZERO).micros())
        .map_err(|_| Error::new(Code::InvalidProfile, "a rate of an extension is below nothing"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rates(second: i64, gigabyte: i64, minimum: i64) -> Rates {
        let usd = |micros| Some(Usd::from_micros(micros));
        Rates { per_second_usd: usd(second), per_gb_usd: usd(gigabyte), minimum_usd: usd(minimum) }
    }

    #[test]
    fn a_price_is_exact_and_rounded_up_once() {
        let seconds = Duration::from_secs;
        for (rates, duration, gigabytes, micros) in [
            (rates(100, 20_000, 10_000), seconds(3600), 1, 380_000),
            (rates(100, 20_000, 10_000), seconds(3600), 0, 360_000),
            // The minimum, and exactly it.
            (rates(100, 0, 10_000), seconds(0), 0, 10_000),
            (rates(100, 0, 10_000), seconds(100), 0, 10_000),
            (rates(100, 0, 10_000), seconds(101), 0, 10_100),
            // A part of a micro-dollar is a whole one, and none is none.
            (rates(100, 0, 0), Duration::from_nanos(1), 0, 1),
            (rates(100, 0, 0), Duration::from_millis(10), 0, 1),
            (rates(100, 0, 0), Duration::from_nanos(10_000_001), 0, 2),
            (rates(1, 1, 0), Duration::from_millis(1500), 3, 5),
            (rates(0, 0, 0), seconds(u64::MAX), u64::MAX, 0),
            (rates(1, 0, 0), seconds(9_000_000_000_000_000), 0, 9_000_000_000_000_000),
        ] {
            let price = rates.price(duration, gigabytes).unwrap();
            assert_eq!(price.micros(), micros, "{rates:?} {duration:?} {gigabytes}");
        }
        assert_eq!(Rates::default().price(seconds(99), 7).unwrap(), Usd::ZERO);
    }

    #[test]
    fn an_amount_that_cannot_be_is_an_error_and_never_a_small_one() {
        for (rates, seconds, gigabytes) in [
            (rates(1, 0, 0), 9_000_000_000_000_001, 0),
            (rates(i64::MAX, 0, 0), u64::MAX, 0),
            (rates(0, i64::MAX, 0), 0, u64::MAX),
            (rates(i64::MAX, i64::MAX, 0), u64::MAX, u64::MAX),
            (rates(0, 0, i64::MAX), 0, 0),
        ] {
            let error = rates.price(Duration::from_secs(seconds), gigabytes).unwrap_err();
            assert_eq!(error.code, Code::InvalidInput, "{rates:?} {seconds} {gigabytes}");
        }
        assert!(rates(-1, 0, 0).price(Duration::from_secs(1), 0).is_err());
    }
}
