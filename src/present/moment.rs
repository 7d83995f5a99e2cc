//! Moments as they are written: in the one time zone of a face.

use jiff::tz::TimeZone;

use crate::domain::Time;
use crate::domain::figures::age_of;

/// `14:03:22` in a time zone.
pub(crate) fn clock(time: Time, zone: &TimeZone) -> String {
    written(time, zone, "%H:%M:%S")
}

/// `11-27 14:03:22` in a time zone.
pub(crate) fn day_and_time(time: Time, zone: &TimeZone) -> String {
    written(time, zone, "%m-%d %H:%M:%S")
}

/// `2026-11-27 14:03:22` in a time zone.
pub(crate) fn date(time: Time, zone: &TimeZone) -> String {
    written(time, zone, "%Y-%m-%d %H:%M:%S")
}

fn written(time: Time, zone: &TimeZone, form: &str) -> String {
    time.timestamp().to_zoned_datetime(zone.clone()).strftime(form).to_string()
}

/// Present moment, and how a face writes others.
#[derive(Debug, Clone, Copy)]
pub struct Present<'a> {
    /// The moment.
    pub now: Time,
    /// The zone that the face names; none: as records have it, in UTC.
    pub zone: Option<&'a TimeZone>,
}

impl Present<'_> {
    /// `2026-11-27 14:03:22`.
    pub fn date(self, time: Time) -> String {
        self.zone.map_or_else(|| time.to_string(), |zone| date(time, zone))
    }

    /// `11-27 14:03:22`.
    pub fn short(self, time: Time) -> String {
        self.zone.map_or_else(|| time.to_string(), |zone| day_and_time(time, zone))
    }

    /// `5m ago (2026-11-27 14:03:22)`.
    pub fn ago(self, time: Time) -> String {
        format!("{} ago ({})", age_of(time, self.now), self.date(time))
    }

    /// `1h57 left (2026-11-27 16:00:00)`, `over 5m (…)`, `no deadline`.
    pub fn deadline(self, end: Option<Time>) -> String {
        let left = crate::domain::figures::left(end, self.now);
        match end {
            None => left,
            Some(end) if end > self.now => format!("{left} left ({})", self.date(end)),
            Some(end) => format!("{left} ({})", self.date(end)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_deadline_says_what_is_left_and_when_it_is() {
        let now: Time = "2026-11-27T12:00:00Z".parse().unwrap();
        let end = Some(now.plus_seconds(7_020));
        let berlin = TimeZone::fixed(jiff::tz::offset(1));
        let here = Present { now, zone: Some(&berlin) };
        assert_eq!(here.deadline(end), "1h57 left (2026-11-27 14:57:00)");
        let utc = Present { now: now.plus_seconds(7_200), zone: None };
        assert_eq!(utc.deadline(end), "over 3m (2026-11-27T13:57:00.000Z)");
        assert_eq!(utc.deadline(None), "no deadline");
    }
}
