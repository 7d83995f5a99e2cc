//! Moments, to the millisecond, UTC.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// A moment, UTC, written as RFC 3339 with `Z` and milliseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Time(jiff::Timestamp);

impl Time {
    /// From a timestamp, cut to the millisecond so that what is written is read back equal.
    pub fn new(timestamp: jiff::Timestamp) -> Self {
        Self(jiff::Timestamp::from_millisecond(timestamp.as_millisecond()).unwrap_or(timestamp))
    }

    /// From seconds since 1970; out of range becomes 1970.
    pub fn from_unix(seconds: i64) -> Self {
        Self(jiff::Timestamp::from_second(seconds).unwrap_or_default())
    }

    /// Seconds since 1970.
    pub fn unix(self) -> i64 {
        self.0.as_second()
    }

    /// The moment `seconds` later; stays within what can be written.
    #[must_use]
    pub fn plus_seconds(self, seconds: u64) -> Self {
        let span = jiff::SignedDuration::from_secs(i64::try_from(seconds).unwrap_or(i64::MAX));
        Self(self.0.saturating_add(span).unwrap_or(jiff::Timestamp::MAX))
    }

    /// The moment `seconds` earlier.
    #[must_use]
    pub fn minus_seconds(self, seconds: u64) -> Self {
        let span = jiff::SignedDuration::from_secs(i64::try_from(seconds).unwrap_or(i64::MAX));
        Self(self.0.saturating_sub(span).unwrap_or(jiff::Timestamp::MIN))
    }

    /// Time since `earlier`; zero if that is not earlier.
    pub fn since(self, earlier: Self) -> Duration {
        Duration::try_from(self.0.duration_since(earlier.0)).unwrap_or_default()
    }

    pub fn timestamp(self) -> jiff::Timestamp {
        self.0
    }
}

/// A measured duration, as it is told: whole milliseconds.
pub fn took_ms(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

impl fmt::Display for Time {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:.3}", self.0)
    }
}

impl FromStr for Time {
    type Err = jiff::Error;
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        text.parse().map(Self::new)
    }
}

impl Serialize for Time {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Time {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        jiff::Timestamp::deserialize(deserializer).map(Self::new)
    }
}

impl schemars::JsonSchema for Time {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Time".into()
    }

    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({"type": "string", "format": "date-time", "description": "RFC 3339, UTC, with Z"})
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn written_with_z_and_read_back_equal() {
        let time: Time = "2026-11-27T14:03:22.123456789+01:00".parse().unwrap();
        assert_eq!(time.to_string(), "2026-11-27T13:03:22.123Z");
        assert_eq!(
            serde_json::from_str::<Time>(&serde_json::to_string(&time).unwrap()).unwrap(),
            time
        );
        assert_eq!(time.plus_seconds(60).since(time), Duration::from_mins(1));
        assert_eq!(time.since(time.plus_seconds(60)), Duration::ZERO);
        assert!(time.plus_seconds(u64::MAX) > time);
    }
}
