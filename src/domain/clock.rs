//! Clocks of the control plane: the wall clock, which judges deadlines, and the monotonic one, by which it is seen that the wall
//! clock jumped or that the machine slept.

use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::domain::time::Time;

/// Difference of both clocks above which a sweep reaps nothing (semantics 4).
pub(crate) const CLOCK_TOLERANCE: Duration = Duration::from_secs(5);

/// Reading of the monotonic clock. It stands still while the machine is suspended, and begins anew with each boot.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct MonotonicTime {
    /// Boot since which it counts.
    pub boot: String,
    /// Milliseconds since then.
    pub elapsed_ms: u64,
}

/// Reading of both clocks at one moment.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ClockReading {
    /// Wall clock.
    pub wall: Time,
    /// Monotonic clock.
    pub monotonic: MonotonicTime,
}

/// Jump of the wall clock between two readings.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ClockJump {
    /// Set forward, or the machine was suspended: the clock went on further than the machine ran.
    Forward(Duration),
    /// Set back: the clock went on less than the machine ran.
    Back(Duration),
}

impl ClockReading {
    /// Jump since an earlier reading, if the clocks disagree by more than [`CLOCK_TOLERANCE`]. Readings of two boots cannot be
    /// compared, and show none.
    pub(crate) fn jump_since(&self, earlier: &Self) -> Option<ClockJump> {
        if self.monotonic.boot != earlier.monotonic.boot {
            return None;
        }
        let wall = i128::from(self.wall.timestamp().as_millisecond())
            - i128::from(earlier.wall.timestamp().as_millisecond());
        let ran = i128::from(self.monotonic.elapsed_ms) - i128::from(earlier.monotonic.elapsed_ms);
        let ahead = wall - ran;
        let by = Duration::from_millis(u64::try_from(ahead.unsigned_abs()).unwrap_or(u64::MAX));
        match by > CLOCK_TOLERANCE {
            true if ahead > 0 => Some(ClockJump::Forward(by)),
            true => Some(ClockJump::Back(by)),
            false => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reading(boot: &str, wall_s: i64, elapsed_s: u64) -> ClockReading {
        let monotonic = MonotonicTime { boot: boot.into(), elapsed_ms: elapsed_s * 1000 };
        ClockReading { wall: Time::from_unix(1_800_000_000 + wall_s), monotonic }
    }

    #[test]
    fn a_jump_is_a_disagreement_of_more_than_five_seconds() {
        let before = reading("a", 0, 1000);
        let hour = Duration::from_hours(1);
        for (wall, elapsed, jump) in [
            (5, 1005, None),
            // A sweep that came late: both clocks went on.
            (900, 1900, None),
            (10, 1005, None),
            (11, 1005, Some(ClockJump::Forward(Duration::from_secs(6)))),
            (3605, 1005, Some(ClockJump::Forward(hour))),
            (-3595, 1005, Some(ClockJump::Back(hour))),
            (0, 1005, None),
            (-1, 1005, Some(ClockJump::Back(Duration::from_secs(6)))),
        ] {
            assert_eq!(reading("a", wall, elapsed).jump_since(&before), jump, "{wall} {elapsed}");
        }
        assert_eq!(reading("b", 7200, 3).jump_since(&before), None, "another boot");
    }
}
