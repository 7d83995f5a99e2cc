//! The system's clock and time zone: everybody else is handed the time.

use jiff::tz::TimeZone;

use crate::config::Environment;
use crate::domain::Time;

/// The system's zone.
const LOCALTIME: &str = "/etc/localtime";

/// The time by the system's clock.
pub fn now() -> Time {
    Time::new(jiff::Timestamp::now())
}

/// The zone of this process. The system's file is read as it is: to find a zone by its name all files of all zones are listed
/// first, which takes a good part of a dashboard's start.
pub(super) fn zone(environment: &Environment) -> TimeZone {
    let named = environment.text("TZ").is_some();
    let system = || {
        let name = std::fs::read_link(LOCALTIME).ok()?;
        let (_, name) = name.to_str()?.split_once("zoneinfo/")?;
        TimeZone::tzif(name, &std::fs::read(LOCALTIME).ok()?).ok()
    };
    if named { TimeZone::system() } else { system().unwrap_or_else(TimeZone::system) }
}
