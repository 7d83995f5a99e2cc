//! Telemetry of a host: what a light probe reads of it every two seconds, and the last hour of that.

use std::collections::{BTreeMap, VecDeque};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::domain::Time;
use crate::domain::name::SandboxId;

/// Span of a host's history, in seconds.
pub(crate) const HISTORY_S: u64 = 3600;

/// File system below a workspace root, as a light probe sees it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct DiskUse {
    /// The path that was asked about.
    pub path: String,
    /// Size in bytes.
    pub total_bytes: u64,
    /// Bytes that are written; what is kept for root is neither used nor available.
    pub used_bytes: u64,
    /// Bytes that the account can still write.
    pub available_bytes: u64,
    /// Inodes; null where the file system has no fixed number.
    pub inodes: Option<u64>,
    /// Inodes that are free.
    pub inodes_free: Option<u64>,
}

/// Use of the processor and of memory by a sandbox's containers together.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SandboxUse {
    /// Percent of one processor since the sample before; null in the first one.
    pub cpu_pct: Option<f64>,
    /// Bytes, without what the kernel can drop at once.
    pub memory_bytes: u64,
    /// Containers that were read.
    pub containers: u32,
}

/// A host at one moment. Sizes are bytes.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct HostSample {
    /// When.
    pub at: Time,
    /// Round trip of the probe, in milliseconds.
    pub latency_ms: Option<u64>,
    /// Processors.
    pub cpus: u32,
    /// Load of the last minute.
    pub load1: f64,
    /// Memory.
    pub mem_total_bytes: u64,
    /// Memory that programs can still have.
    pub mem_available_bytes: u64,
    /// Swap.
    pub swap_total_bytes: u64,
    /// Swap that is free.
    pub swap_free_bytes: u64,
    /// The workspace root's file system; null where it did not answer.
    pub disk: Option<DiskUse>,
    /// Seconds since the host started.
    pub uptime_s: Option<u64>,
    /// Seconds that the host's clock is ahead of ours (negative: behind).
    pub clock_offset_s: Option<f64>,
    /// Sandboxes whose containers could be read.
    #[serde(default)]
    pub sandboxes: BTreeMap<SandboxId, SandboxUse>,
    /// Figures that did not come, and why; a sentence each.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub findings: Vec<String>,
}

impl HostSample {
    /// Load of the last minute for each processor.
    pub(crate) fn load_per_core(&self) -> f64 {
        self.load1 / f64::from(self.cpus.max(1))
    }

    /// Memory in use, in percent; none where its size is not known.
    pub(crate) fn mem_used_pct(&self) -> Option<f64> {
        used_pct(self.mem_total_bytes, self.mem_available_bytes)
    }

    pub(crate) fn swap_used_pct(&self) -> Option<f64> {
        used_pct(self.swap_total_bytes, self.swap_free_bytes)
    }

    /// Disk in use, in percent of what the account can have, as `df` says it.
    pub(crate) fn disk_used_pct(&self) -> Option<f64> {
        let disk = self.disk.as_ref()?;
        used_pct(disk.used_bytes.saturating_add(disk.available_bytes), disk.available_bytes)
    }

    pub(crate) fn inodes_used_pct(&self) -> Option<f64> {
        let disk = self.disk.as_ref()?;
        used_pct(disk.inodes?, disk.inodes_free?)
    }
}

fn used_pct(total: u64, free: u64) -> Option<f64> {
    (total > 0).then(|| total.saturating_sub(free) as f64 * 100.0 / total as f64)
}

/// Samples of a host in the last hour, the oldest first.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct HostHistory {
    samples: VecDeque<HostSample>,
}

impl HostHistory {
    /// Takes a sample in and drops those that are too old. One that is not younger than the last is ignored.
    pub fn push(&mut self, sample: HostSample) {
        if self.samples.back().is_some_and(|last| last.at >= sample.at) {
            return;
        }
        let oldest = sample.at.minus_seconds(HISTORY_S);
        self.samples.push_back(sample);
        while self.samples.front().is_some_and(|first| first.at < oldest) {
            self.samples.pop_front();
        }
    }

    pub fn last(&self) -> Option<&HostSample> {
        self.samples.back()
    }

    /// All of them, the oldest first.
    pub(crate) fn samples(&self) -> impl DoubleEndedIterator<Item = &HostSample> {
        self.samples.iter()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample(unix: i64) -> HostSample {
        HostSample {
            at: Time::from_unix(unix),
            latency_ms: None,
            cpus: 4,
            load1: 2.0,
            mem_total_bytes: 100,
            mem_available_bytes: 25,
            swap_total_bytes: 0,
            swap_free_bytes: 0,
            disk: None,
            uptime_s: None,
            clock_offset_s: None,
            sandboxes: BTreeMap::new(),
            findings: Vec::new(),
        }
    }

    #[test]
    fn a_history_holds_an_hour() {
        let mut history = HostHistory::default();
        for second in [0, 2, 3600, 3601, 3601, 5] {
            history.push(sample(second));
        }
        let kept: Vec<i64> = history.samples().map(|sample| sample.at.unix()).collect();
        assert_eq!(kept, [2, 3600, 3601]);
    }

    #[test]
    fn what_is_not_known_has_no_percentage() {
        let sample = sample(0);
        assert_eq!(sample.mem_used_pct(), Some(75.0));
        assert_eq!((sample.disk_used_pct(), sample.inodes_used_pct()), (None, None));
        assert!((sample.load_per_core() - 0.5).abs() < f64::EPSILON);
    }
}
