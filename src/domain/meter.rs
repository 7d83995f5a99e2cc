//! Meter: how long a metered sandbox has been there, and what that comes to by its quote (semantics 10). Time comes in.

use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::domain::clock::ClockReading;
use crate::domain::time::took_ms;
use crate::domain::{Time, Usd};

/// Seconds that a hold without a deadline is for.
pub(crate) const RENEWED_S: u64 = 3600;

/// Seconds that a sandbox stays whose hold could not be renewed.
pub(crate) const UNPAID_S: u64 = 600;

/// Meter of a sandbox, from its hold to the charge.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CostMeter {
    /// Seconds that the quote is for.
    pub quoted_s: u64,
    /// Clocks when it began to cost; null before its host is touched.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub began: Option<ClockReading>,
    /// Milliseconds after which its host said that nothing of it is there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stopped_ms: Option<u64>,
    /// Charge so far, of one that was forgotten.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub charged_usd: Usd,
    /// When the hold of one without a deadline is renewed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub renew_at: Option<Time>,
    /// Since when it could not be renewed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unpaid_since: Option<Time>,
    /// Amount held for the run that a recreate begins.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_usd: Option<Usd>,
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde asks so")]
fn is_zero(usd: &Usd) -> bool {
    *usd == Usd::ZERO
}

impl CostMeter {
    /// Meter of a sandbox with this time to live, which costs nothing yet.
    pub fn new(ttl_s: Option<u64>) -> Self {
        Self { quoted_s: ttl_s.unwrap_or(RENEWED_S), ..Self::default() }
    }

    /// Begins to count, or begins anew. One without a deadline is renewed from then on.
    pub fn begin(&mut self, now: ClockReading, has_deadline: bool) {
        self.renew_at = (!has_deadline).then(|| now.wall.plus_seconds(RENEWED_S));
        self.stopped_ms = None;
        self.began = Some(now);
    }

    /// Time that it has been there. The longer of both clocks: one stands still while the machine sleeps, the other may be set
    /// back.
    pub fn elapsed(&self, now: &ClockReading) -> Duration {
        if let Some(ms) = self.stopped_ms {
            return Duration::from_millis(ms);
        }
        let Some(began) = &self.began else { return Duration::ZERO };
        let wall = now.wall.since(began.wall);
        if began.monotonic.boot != now.monotonic.boot {
            return wall;
        }
        let ran = now.monotonic.elapsed_ms.saturating_sub(began.monotonic.elapsed_ms);
        wall.max(Duration::from_millis(ran))
    }

    /// Stops: its host said that nothing of it is there.
    pub fn stop(&mut self, now: &ClockReading) {
        if self.began.is_some() && self.stopped_ms.is_none() {
            self.stopped_ms = Some(took_ms(self.elapsed(now)));
        }
    }

    /// Amount for such a time by its quote, to the next micro-dollar.
    pub(crate) fn estimate(&self, quote: Usd, elapsed: Duration) -> Usd {
        quote.part(took_ms(elapsed), self.quoted_s.saturating_mul(1000))
    }

    /// Spending per hour by its quote, while it counts.
    pub(crate) fn burn(&self, quote: Usd) -> Usd {
        let counts = self.began.is_some() && self.stopped_ms.is_none();
        if counts { quote.part(3600, self.quoted_s) } else { Usd::ZERO }
    }

    /// Whether its hold is to be renewed; a clock that was set back puts that off by no more than an hour.
    pub(crate) fn is_renewal_due(&self, now: Time) -> bool {
        self.stopped_ms.is_none()
            && self.renew_at.is_some_and(|at| now >= at || at > now.plus_seconds(RENEWED_S))
    }

    /// When it ends for want of credits, if its hold is not renewed until then.
    pub(crate) fn ends_unpaid_at(&self) -> Option<Time> {
        self.unpaid_since.map(|since| since.plus_seconds(UNPAID_S))
    }
}

/// End of a hold: its parts, and what is beyond it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Split {
    /// Paid from the hold.
    pub(crate) charge: Usd,
    /// The rest of the hold.
    pub(crate) release: Usd,
    /// Amount beyond the hold, which nobody pays.
    pub(crate) shortfall: Usd,
}

impl Split {
    /// Split of a hold by what a sandbox cost. Nothing is below zero.
    pub(crate) fn of(hold: Usd, cost: Usd) -> Self {
        let (hold, cost) = (hold.max(Usd::ZERO), cost.max(Usd::ZERO));
        let charge = cost.min(hold);
        Self { charge, release: hold - charge, shortfall: cost - charge }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::clock::MonotonicTime;

    fn at(boot: &str, wall_s: i64, elapsed_s: u64) -> ClockReading {
        let monotonic = MonotonicTime { boot: boot.into(), elapsed_ms: elapsed_s * 1000 };
        ClockReading { wall: Time::from_unix(1_800_000_000 + wall_s), monotonic }
    }

    #[test]
    fn a_clock_that_is_set_back_or_stands_still_makes_no_time_go_away() {
        let mut meter = CostMeter::new(Some(60));
        assert_eq!(meter.elapsed(&at("a", 100, 100)), Duration::ZERO, "it has not begun");
        meter.begin(at("a", 0, 100), true);
        for (now, seconds) in [
            (at("a", 30, 130), 30),
            // Set back by an hour.
            (at("a", -3570, 130), 30),
            // The machine slept.
            (at("a", 3600, 130), 3600),
            // The machine was started again; and its clock was set back as well.
            (at("b", 50, 1), 50),
            (at("b", -50, 1), 0),
        ] {
            assert_eq!(meter.elapsed(&now), Duration::from_secs(seconds), "{now:?}");
        }
        // Set back again right before its host says that it is gone.
        meter.stop(&at("a", -3570, 120));
        meter.stop(&at("a", 40, 140));
        assert_eq!(meter.elapsed(&at("a", 90, 190)), Duration::from_secs(20), "gone since then");
    }

    #[test]
    fn a_renewal_is_due_after_an_hour_by_any_clock() {
        let mut meter = CostMeter::new(None);
        meter.begin(at("a", 0, 0), false);
        let due =
            |meter: &CostMeter, s: i64| meter.is_renewal_due(Time::from_unix(1_800_000_000 + s));
        assert!(!due(&meter, 3599) && due(&meter, 3600));
        assert!(!due(&meter, 0) && due(&meter, -1), "a clock that was set back puts nothing off");
        meter.begin(at("a", 0, 0), true);
        assert!(!due(&meter, 99_999), "it has a deadline");
    }

    #[test]
    fn a_hold_ends_as_charge_and_release_and_what_is_beyond_it_is_a_shortfall() {
        for (hold, cost, split) in [
            (100, 30, (30, 70, 0)),
            (100, 100, (100, 0, 0)),
            (100, 101, (100, 0, 1)),
            (0, 5, (0, 0, 5)),
            (100, -5, (0, 100, 0)),
        ] {
            let Split { charge, release, shortfall } =
                Split::of(Usd::from_micros(hold), Usd::from_micros(cost));
            assert_eq!((charge.micros(), release.micros(), shortfall.micros()), split);
        }
    }

    #[test]
    fn an_estimate_is_the_quotes_part_rounded_up() {
        let meter = CostMeter::new(Some(3600));
        let quote = Usd::from_micros(3600);
        assert_eq!(meter.estimate(quote, Duration::from_secs(1)).micros(), 1);
        assert_eq!(meter.estimate(quote, Duration::from_millis(1)).micros(), 1);
        assert_eq!(meter.estimate(quote, Duration::ZERO).micros(), 0);
        assert_eq!(meter.burn(quote).micros(), 0, "it does not cost yet");
    }
}
