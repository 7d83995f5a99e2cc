//! The system's clock: everybody else is handed the time.

use crate::domain::Time;

/// The time by the system's clock.
pub fn now() -> Time {
    Time::new(jiff::Timestamp::now())
}
