//! The system's clocks and time zone: everybody else is handed the time.

use std::sync::LazyLock;
use std::time::Duration;

use jiff::tz::TimeZone;
use rustix::time::{ClockId, clock_gettime};

use crate::config::Environment;
use crate::domain::Time;
use crate::domain::clock::MonotonicTime;
use crate::failpoint;

/// Id of this boot. A machine that does not tell has one boot for each process: readings of two cannot be compared.
static BOOT: LazyLock<String> = LazyLock::new(|| {
    std::fs::read_to_string("/proc/sys/kernel/random/boot_id")
        .map_or_else(|_| uuid::Uuid::new_v4().simple().to_string(), |text| text.trim().to_owned())
});

const LOCALTIME: &str = "/etc/localtime";

/// The time by the system's clock; in a test that moves it, so many seconds later.
pub fn now() -> Time {
    let ahead = failpoint::limit("clock.ahead", Duration::ZERO);
    Time::new(jiff::Timestamp::now()).plus_seconds(ahead.as_secs())
}

/// The monotonic clock. `CLOCK_MONOTONIC` and not `CLOCK_BOOTTIME`: it stands still while the machine is suspended, when the wall
/// clock goes on, and so shows a suspend as the jump that it is. It is the same for every process of a boot.
pub(super) fn monotonic() -> MonotonicTime {
    let read = clock_gettime(ClockId::Monotonic);
    let seconds = u64::try_from(read.tv_sec).unwrap_or(0);
    let elapsed_ms = seconds * 1000 + u64::try_from(read.tv_nsec).unwrap_or(0) / 1_000_000;
    MonotonicTime { boot: BOOT.clone(), elapsed_ms }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_monotonic_clock_is_one_of_this_boot_and_goes_on() {
        let first = monotonic();
        std::thread::sleep(std::time::Duration::from_millis(3));
        let second = monotonic();
        assert!(second.elapsed_ms > first.elapsed_ms && first.elapsed_ms > 0);
        assert_eq!(first.boot, second.boot);
    }
}
