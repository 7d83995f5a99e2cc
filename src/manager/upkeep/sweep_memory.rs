//! Memory of this process's sweeps: the clocks as they were, what is under way, and pauses before what failed is tried again.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::Semaphore;

use crate::domain::clock::ClockReading;
use crate::domain::name::{HostName, SandboxId};
use crate::domain::time::Time;

/// Removals that one host does at a time.
const AT_ONCE: usize = 6;

/// Pause after the first failure, in milliseconds; each further one doubles it.
const FIRST_PAUSE_MS: u64 = 15_000;

const LONGEST_PAUSE_MS: u64 = 15 * 60_000;

#[derive(Default)]
pub(crate) struct SweepMemory(Mutex<Memory>);

#[derive(Default)]
struct Memory {
    last: Option<ClockReading>,
    noted: Option<ClockReading>,
    quiet: Option<Quiet>,
    under_way: BTreeSet<SandboxId>,
    rooms: BTreeMap<String, Arc<Semaphore>>,
    pauses: BTreeMap<Paused, Pause>,
}

/// Scan of the records in which nothing was due.
struct Quiet {
    version: u64,
    /// Moment from which on something may be due.
    until: Option<Time>,
}

/// Subject of a pause.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Paused {
    /// A host that did not answer, in lower case.
    Host(String),
    /// A sandbox that could not be removed.
    Sandbox(SandboxId),
    /// Warnings, which the store did not take.
    Warnings,
}

#[derive(Debug, Clone)]
struct Pause {
    failures: u32,
    until_ms: u64,
    why: String,
}

/// Removal that is under way; no other sweep of this process begins it meanwhile.
pub(crate) struct UnderWay<'a> {
    memory: &'a SweepMemory,
    id: SandboxId,
}

impl Drop for UnderWay<'_> {
    fn drop(&mut self) {
        self.memory.lock().under_way.remove(&self.id);
    }
}

impl Paused {
    pub(crate) fn host(host: &HostName) -> Self {
        Self::Host(host.as_str().to_ascii_lowercase())
    }
}

impl SweepMemory {
    /// A poisoned lock only means that another thread panicked while it held plain data.
    fn lock(&self) -> MutexGuard<'_, Memory> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Remembers the clocks; as they were at the sweep before, if this process has swept.
    pub(crate) fn replace_reading(&self, reading: &ClockReading) -> Option<ClockReading> {
        self.lock().last.replace(reading.clone())
    }

    /// Whether the last note of a sweep is so old, in milliseconds; then this one is noted.
    pub(crate) fn is_note_due(&self, reading: &ClockReading, after_ms: u64) -> bool {
        let memory = self.lock();
        memory.noted.as_ref().is_none_or(|noted| {
            let (then, now) = (&noted.monotonic, &reading.monotonic);
            now.boot != then.boot || now.elapsed_ms.abs_diff(then.elapsed_ms) >= after_ms
        })
    }

    pub(crate) fn set_noted(&self, reading: &ClockReading) {
        self.lock().noted = Some(reading.clone());
    }

    /// Whether nothing can be due yet, in a store of this version.
    pub(crate) fn is_quiet(&self, version: u64, now: Time) -> bool {
        self.lock().quiet.as_ref().is_some_and(|quiet| {
            quiet.version == version && quiet.until.is_none_or(|until| now < until)
        })
    }

    /// Remembers a scan in which nothing was due until then; `None`: something was.
    pub(crate) fn set_quiet(&self, quiet: Option<(u64, Option<Time>)>) {
        self.lock().quiet = quiet.map(|(version, until)| Quiet { version, until });
    }

    /// Marks a removal as under way; `None` if it is already.
    pub(crate) fn begin(&self, id: &SandboxId) -> Option<UnderWay<'_>> {
        let is_new = self.lock().under_way.insert(id.clone());
        is_new.then(|| UnderWay { memory: self, id: id.clone() })
    }

    /// Room for the removals that a host does at a time.
    pub(crate) fn room(&self, host: &HostName) -> Arc<Semaphore> {
        let key = host.as_str().to_ascii_lowercase();
        let room = || Arc::new(Semaphore::new(AT_ONCE));
        Arc::clone(self.lock().rooms.entry(key).or_insert_with(room))
    }

    /// Pause that a subject is in: the milliseconds that are left, and why it failed.
    pub(crate) fn pause_of(
        &self,
        paused: &Paused,
        reading: &ClockReading,
    ) -> Option<(u64, String)> {
        let memory = self.lock();
        let pause = memory.pauses.get(paused)?;
        let left = pause.until_ms.checked_sub(reading.monotonic.elapsed_ms).filter(|ms| *ms > 0)?;
        Some((left, pause.why.clone()))
    }

    /// Notes a failure: the pause grows with each.
    pub(crate) fn failed(&self, paused: Paused, reading: &ClockReading, why: &str) {
        let now = reading.monotonic.elapsed_ms;
        let mut memory = self.lock();
        let pause = memory.pauses.entry(paused).or_insert_with(|| Pause {
            failures: 0,
            until_ms: 0,
            why: String::new(),
        });
        // Several at once on one host are one failure of it.
        if pause.until_ms <= now {
            let doubled = FIRST_PAUSE_MS.saturating_mul(1 << pause.failures.min(10));
            pause.until_ms = now.saturating_add(doubled.min(LONGEST_PAUSE_MS));
            pause.failures = pause.failures.saturating_add(1);
        }
        why.clone_into(&mut pause.why);
    }

    pub(crate) fn went_well(&self, paused: &Paused) {
        self.lock().pauses.remove(paused);
    }

    /// Forgets failures of sandboxes that are not among these any more.
    pub(crate) fn retain_sandboxes(&self, ids: &BTreeSet<&SandboxId>) {
        self.lock().pauses.retain(|paused, _| match paused {
            Paused::Sandbox(id) => ids.contains(id),
            Paused::Host(_) | Paused::Warnings => true,
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::clock::MonotonicTime;

    fn at(seconds: u64) -> ClockReading {
        let monotonic = MonotonicTime { boot: "b".into(), elapsed_ms: seconds * 1000 };
        ClockReading { wall: Time::from_unix(0), monotonic }
    }

    #[test]
    fn pauses_grow_to_a_limit_and_end_with_success() {
        let memory = SweepMemory::default();
        let host = Paused::host(&HostName::new("Far"));
        let mut now = 100;
        for pause in [15, 30, 60, 120, 240, 480, 900, 900] {
            assert!(memory.pause_of(&host, &at(now)).is_none());
            memory.failed(host.clone(), &at(now), "down");
            // Whatever else fails there at once makes it no longer.
            memory.failed(host.clone(), &at(now), "down");
            let (left, why) = memory.pause_of(&host, &at(now)).unwrap();
            assert_eq!((left, why.as_str()), (pause * 1000, "down"));
            now += pause;
        }
        memory.went_well(&host);
        memory.failed(host.clone(), &at(now), "down");
        assert_eq!(memory.pause_of(&host, &at(now)).unwrap().0, 15_000);
        let other = Paused::host(&HostName::new("far"));
        assert!(memory.pause_of(&other, &at(now)).is_some(), "names are compared without case");
    }

    #[test]
    fn what_is_under_way_is_begun_once() {
        let memory = SweepMemory::default();
        let id = SandboxId::new("a1b2c3d4");
        let first = memory.begin(&id);
        assert!(first.is_some() && memory.begin(&id).is_none());
        drop(first);
        assert!(memory.begin(&id).is_some());
    }

    #[test]
    fn nothing_is_looked_at_until_something_may_be_due_or_changed() {
        let memory = SweepMemory::default();
        let at = Time::from_unix;
        assert!(!memory.is_quiet(1, at(0)));
        memory.set_quiet(Some((1, Some(at(10)))));
        assert!(memory.is_quiet(1, at(9)) && !memory.is_quiet(1, at(10)));
        assert!(!memory.is_quiet(2, at(9)));
        memory.set_quiet(Some((1, None)));
        assert!(memory.is_quiet(1, at(9_999)));
        memory.set_quiet(None);
        assert!(!memory.is_quiet(1, at(0)));
    }
}
