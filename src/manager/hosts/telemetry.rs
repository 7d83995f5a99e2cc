//! Telemetry of hosts between two questions: what a light probe needs to know, and sizes that are measured seldom.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crate::domain::Time;
use crate::domain::facts::{HostFacts, Inventory};
use crate::domain::name::HostName;
use crate::transport::probe::{Container, Counters, Sizes};

/// Age of directories' sizes at which they are measured again.
const SIZES_KEPT: Duration = Duration::from_mins(10);
/// Time for which a disk that did not answer is left alone; twice as long after each further time, up to the longest.
const DISK_PAUSE_S: u64 = 60;
const LONGEST_PAUSE: u32 = 4;

/// Telemetry of all hosts, by name in lower case.
#[derive(Default)]
pub(crate) struct Telemetry {
    hosts: Mutex<BTreeMap<String, HostTelemetry>>,
}

#[derive(Default)]
pub(crate) struct HostTelemetry {
    /// Running containers of sandboxes.
    pub(crate) containers: Arc<[Container]>,
    pub(crate) counters: Option<Counters>,
    /// Processors that programs may use.
    pub(crate) cpus: Option<u32>,
    disk: DiskPause,
    sizes: Sizes,
    sizes_at: Option<Time>,
    measuring: bool,
}

/// Disk that did not answer: not asked again for a while, so that what hangs on it does not pile up.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct DiskPause {
    times: u32,
    until: Option<Time>,
}

impl Telemetry {
    /// Looks at, or changes, what is known of a host.
    pub(crate) fn with<T>(&self, host: &HostName, act: impl FnOnce(&mut HostTelemetry) -> T) -> T {
        let mut hosts: MutexGuard<'_, _> =
            self.hosts.lock().unwrap_or_else(PoisonError::into_inner);
        act(hosts.entry(host.as_str().to_ascii_lowercase()).or_default())
    }
}

impl HostTelemetry {
    /// Until when the disk is left alone; none where it is asked.
    pub(crate) fn disk_pause(&self, now: Time) -> Option<Time> {
        self.disk.until.filter(|until| *until > now)
    }

    /// Notes whether the disk, which was asked, answered.
    pub(crate) fn note_disk(&mut self, is_late: bool, now: Time) {
        if !is_late {
            self.disk = DiskPause::default();
            return;
        }
        let pause = DISK_PAUSE_S << self.disk.times.min(LONGEST_PAUSE);
        self.disk = DiskPause { times: self.disk.times + 1, until: Some(now.plus_seconds(pause)) };
    }

    pub(crate) fn learn(&mut self, facts: &HostFacts, containers: Vec<Container>) {
        self.containers = containers.into();
        self.cpus = Some(facts.cpus).filter(|count| *count > 0);
    }

    /// Whether the directories should be measured now; then they are, by whoever asked.
    pub(crate) fn begin_measuring(&mut self, now: Time) -> bool {
        let fresh = self.sizes_at.is_some_and(|at| now.since(at) < SIZES_KEPT);
        let begins = !fresh && !self.measuring;
        self.measuring |= begins;
        begins
    }

    /// Takes sizes in, or notes that there are none: then the next inventory tries again.
    pub(crate) fn end_measuring(&mut self, sizes: Option<Sizes>, now: Time) {
        self.measuring = false;
        if let Some(sizes) = sizes {
            (self.sizes, self.sizes_at) = (sizes, Some(now));
        }
    }

    pub(crate) fn is_measuring(&self) -> bool {
        self.measuring
    }

    /// Puts the sizes that are known into an inventory.
    pub(crate) fn fill_sizes(&self, inventory: &mut Inventory) {
        inventory.sizes_at = self.sizes_at;
        for item in &mut inventory.sandboxes {
            item.bytes = item.directory.as_ref().and_then(|path| self.sizes.get(path).copied());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_disk_that_hangs_is_asked_ever_more_seldom_until_it_answers() {
        let mut host = HostTelemetry::default();
        let at = Time::from_unix;
        assert_eq!(host.disk_pause(at(0)), None);
        let mut pauses = Vec::new();
        for _ in 0..7 {
            host.note_disk(true, at(0));
            pauses.push(host.disk_pause(at(0)).unwrap().unix());
        }
        assert_eq!(pauses, [60, 120, 240, 480, 960, 960, 960]);
        assert_eq!((host.disk_pause(at(959)), host.disk_pause(at(960))), (Some(at(960)), None));
        host.note_disk(false, at(960));
        host.note_disk(true, at(970));
        assert_eq!(host.disk_pause(at(970)), Some(at(1030)));
    }

    #[test]
    fn directories_are_measured_by_one_at_a_time_and_every_ten_minutes() {
        let mut host = HostTelemetry::default();
        let at = Time::from_unix;
        assert!(host.begin_measuring(at(0)) && !host.begin_measuring(at(1)));
        host.end_measuring(None, at(2));
        assert!(host.begin_measuring(at(3)));
        host.end_measuring(Some(Sizes::from([("/r/sbx-a".to_owned(), 7)])), at(4));
        assert!(!host.begin_measuring(at(603)) && host.begin_measuring(at(604)));
    }
}
