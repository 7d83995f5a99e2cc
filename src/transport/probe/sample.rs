//! Light probe: a host's load, memory, disk and clock, and what the containers of its sandboxes use, in one round trip.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use super::clock::clock_offset;
use super::containers::{CgroupVersion, Container, ControlGroup};
use super::lines::{ScriptEntry, entries};
use crate::domain::Time;
use crate::domain::error::{Code, Error};
use crate::domain::name::SandboxId;
use crate::domain::telemetry::{DiskUse, HostSample, SandboxUse};
use crate::domain::text::{clean_block, last_lines};
use crate::transport::{Command, Output, Transport};

const SAMPLE_SH: &str =
    concat!(include_str!("../scripts/resolve.sh"), include_str!("../scripts/sample.sh"));

/// Time that a light probe may take. Calls that may hang have a limit of their own, well below.
const DEADLINE: Duration = Duration::from_secs(10);
/// Time for which an engine's word of a container counts.
const SAID_KEPT: Duration = Duration::from_secs(90);

/// Sample that is wanted.
#[derive(Debug, Clone)]
pub(crate) struct SampleRequest<'a> {
    /// Whether the workspace root's file system is asked.
    pub disk: bool,
    /// The containers of sandboxes, as the inventory found them.
    pub containers: &'a [Container],
    /// Counters of the sample before.
    pub previous: Option<&'a Counters>,
    /// The moment of the call, by the clock that judges.
    pub now: Time,
}

/// Counters of one sample, with which the next one is compared.
#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct Counters {
    /// The host's uptime, in seconds.
    uptime_s: f64,
    /// Processor time of each container since it was started, in nanoseconds, by its id.
    processor_ns: BTreeMap<String, u64>,
}

/// A sample, and what the next one needs of it.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Sampled {
    /// The figures.
    pub sample: HostSample,
    /// Counters for the next one.
    pub counters: Counters,
    /// Whether the disk was asked and did not answer in time.
    pub disk_is_late: bool,
}

/// Reads one host.
///
/// Errors: the transport's; `operation_failed` where what the host says is no sample.
pub(crate) async fn sample(
    transport: &dyn Transport,
    want: &SampleRequest<'_>,
) -> Result<Sampled, Error> {
    let root = if want.disk { transport.spec().workspace_root.as_str() } else { "" };
    let (order, words) = groups(want.containers);
    let command = Command::script(SAMPLE_SH).arg(root).args(words);
    let began = Instant::now();
    let output = transport.run(&command, DEADLINE).await?;
    let elapsed = began.elapsed();
    let way = transport.latency().unwrap_or(elapsed).min(elapsed);
    read(&output, want, &order, elapsed.saturating_sub(way / 2))
        .map(|sampled| Sampled {
            sample: HostSample {
                latency_ms: u64::try_from(way.as_millis()).ok(),
                ..sampled.sample
            },
            ..sampled
        })
        .map_err(|error| error.detail("host", transport.spec().name.to_string()))
}

/// The containers that have figures in the order in which the script numbers them, and its words for them: paths that are
/// alike but for the id are said once.
fn groups(containers: &[Container]) -> (Vec<&Container>, Vec<String>) {
    let mut grouped: BTreeMap<&ControlGroup, Vec<&Container>> = BTreeMap::new();
    for container in containers {
        if let Some(group) = &container.group {
            grouped.entry(group).or_default().push(container);
        }
    }
    let (mut order, mut words) = (Vec::new(), Vec::new());
    for (group, members) in grouped {
        let version = match group.version {
            CgroupVersion::V1 => "1",
            CgroupVersion::V2 => "2",
        };
        words.extend([version, &group.processor, &group.memory, &group.ending].map(str::to_owned));
        words.push(members.len().to_string());
        words.extend(members.iter().map(|container| container.id.clone()));
        order.extend(members);
    }
    (order, words)
}

/// Reads the script's output. `elapsed`: how long after `want.now` its last line was written.
fn read(
    output: &Output,
    want: &SampleRequest<'_>,
    order: &[&Container],
    elapsed: Duration,
) -> Result<Sampled, Error> {
    let text = output.text();
    let entries = entries(&text);
    let value = |key: &str| entries.iter().find(|entry| entry.key == key).map(|entry| entry.value);
    let seconds = |key: &str| value(key).and_then(number::<f64>);
    // The last line: what has none did not come to its end.
    let Some(ended) = seconds("ended").filter(|_| output.ok() && !output.truncated) else {
        return Err(no_sample(output));
    };
    let looked = seconds("looked").unwrap_or(ended);
    let worked = Duration::try_from_secs_f64((ended - looked).max(0.0)).unwrap_or_default();
    let memory = |name: &str| memory(&entries, name);
    let disk_is_late = value("disk.late").is_some();
    let disk = entries.iter().find_map(|entry| (entry.key == "disk").then(|| disk(entry))?);
    let mut findings = Vec::new();
    if disk_is_late {
        findings.push("the workspace root's file system did not answer in 2 s".to_owned());
    } else if want.disk && disk.is_none() {
        findings.push("the size of the workspace root's file system cannot be read".to_owned());
    }
    if value("use.failed").is_some() {
        findings.push("what containers use cannot be read: awk is missing or failed".to_owned());
    }
    let uptime_s = seconds("uptime").unwrap_or(ended);
    let (sandboxes, processor_ns) = uses(&entries, order, want, uptime_s);
    let sample = HostSample {
        at: want.now,
        latency_ms: None,
        cpus: value("cpus").map_or(0, count_cpus),
        load1: value("load").and_then(first_word).and_then(number).unwrap_or(0.0),
        mem_total_bytes: memory("MemTotal").unwrap_or(0),
        // Kernels before 3.14 have no such figure.
        mem_available_bytes: memory("MemAvailable").unwrap_or_else(|| {
            ["MemFree", "Buffers", "Cached"].iter().filter_map(|name| memory(name)).sum()
        }),
        swap_total_bytes: memory("SwapTotal").unwrap_or(0),
        swap_free_bytes: memory("SwapFree").unwrap_or(0),
        disk,
        uptime_s: Some(uptime_s as u64),
        clock_offset_s: value("now")
            .and_then(|said| clock_offset(said, want.now, elapsed.saturating_sub(worked))),
        sandboxes,
        findings,
    };
    Ok(Sampled { sample, counters: Counters { uptime_s, processor_ns }, disk_is_late })
}

fn no_sample(output: &Output) -> Error {
    let error = Error::new(Code::OperationFailed, "the host's figures could not be read")
        .step("sample")
        .hint("see what the account's shell says there: `ssh HOST sh -c 'cat /proc/uptime'`")
        .detail("exit_status", output.status)
        .detail("output", clean_block(&last_lines(&output.error_text(), 20)));
    if output.truncated { error.because("it said more than a sample has") } else { error }
}

/// A finite number that is not negative.
fn number<N: std::str::FromStr + PartialOrd + Default>(text: &str) -> Option<N> {
    let digits = text.bytes().all(|b| b.is_ascii_digit() || b == b'.');
    text.parse().ok().filter(|number: &N| digits && *number >= N::default())
}

fn first_word(text: &str) -> Option<&str> {
    text.split_whitespace().next()
}

/// A figure of `/proc/meminfo`, in bytes.
pub(super) fn memory(entries: &[ScriptEntry<'_>], name: &str) -> Option<u64> {
    entries.iter().filter(|entry| entry.key == "mem").find_map(|entry| {
        let kibibytes = first_word(entry.value.strip_prefix(name)?.strip_prefix(':')?)?;
        kibibytes.parse::<u64>().ok()?.checked_mul(1024)
    })
}

/// Count of the kernel's list of ranges, such as `0-3,6`.
fn count_cpus(list: &str) -> u32 {
    let ranges = list.trim().split(',').filter_map(|range| {
        let (lowest, highest) = range.split_once('-').unwrap_or((range, range));
        let (lowest, highest): (u32, u32) = (lowest.parse().ok()?, highest.parse().ok()?);
        highest.checked_sub(lowest)?.checked_add(1)
    });
    ranges.fold(0, u32::saturating_add)
}

/// A file system from `stat -f`'s numbers: block size, blocks, free ones, available ones, inodes, free ones, path.
pub(super) fn disk(entry: &ScriptEntry<'_>) -> Option<DiskUse> {
    let mut words = entry.value.splitn(7, ' ');
    let mut figure = || words.next()?.parse::<u64>().ok();
    let (size, total, free, available) = (figure()?, figure()?, figure()?, figure()?);
    let (inodes, inodes_free) = (figure(), figure());
    let path = words.next()?.to_owned();
    // A file system that makes inodes as it needs them has none to count.
    let inodes = inodes.filter(|count| *count > 0);
    (total > 0).then(|| DiskUse {
        path,
        total_bytes: size.saturating_mul(total),
        used_bytes: size.saturating_mul(total.saturating_sub(free)),
        available_bytes: size.saturating_mul(available),
        inodes,
        inodes_free: inodes.and(inodes_free),
    })
}

/// Figures of the containers of one sandbox.
#[derive(Default)]
struct Sum {
    memory_bytes: u64,
    containers: u32,
    /// Processor time since the sample before, of the containers that were in it.
    spent_ns: Option<u64>,
    /// From the engine's own figures.
    said_pct: Option<f64>,
}

/// Use by each sandbox, and the counters behind it.
fn uses(
    entries: &[ScriptEntry<'_>],
    order: &[&Container],
    want: &SampleRequest<'_>,
    uptime_s: f64,
) -> (BTreeMap<SandboxId, SandboxUse>, BTreeMap<String, u64>) {
    let previous = want.previous;
    let span = previous.map(|before| uptime_s - before.uptime_s).filter(|span| *span > 0.05);
    let mut sums: BTreeMap<&SandboxId, Sum> = BTreeMap::new();
    let mut counters = BTreeMap::new();
    for entry in entries.iter().filter(|entry| entry.key == "use") {
        let mut words = entry.value.split(' ');
        let Some(container) =
            words.next().and_then(|at| order.get(at.parse::<usize>().ok()?).copied())
        else {
            continue;
        };
        // Empty: it ended. Its group is gone, or was made anew since.
        let (Some(time), Some(used)) =
            (words.next().and_then(number), words.next().and_then(number))
        else {
            continue;
        };
        let scale = match container.group.as_ref().map(|group| group.version) {
            Some(CgroupVersion::V2) => 1000,
            Some(CgroupVersion::V1) | None => 1,
        };
        let time = u64::saturating_mul(time, scale);
        let droppable = words.next().and_then(number).unwrap_or(0);
        let sum = sums.entry(&container.sandbox).or_default();
        sum.memory_bytes = sum.memory_bytes.saturating_add(u64::saturating_sub(used, droppable));
        sum.containers += 1;
        let before = previous.and_then(|before| before.processor_ns.get(&container.id).copied());
        if let Some(spent) = before.and_then(|before| time.checked_sub(before)) {
            sum.spent_ns = Some(sum.spent_ns.unwrap_or(0).saturating_add(spent));
        }
        counters.insert(container.id.clone(), time);
    }
    for container in want.containers {
        // Said with an inventory: it is as old as that.
        let said = container.said.filter(|said| want.now.since(said.at) <= SAID_KEPT);
        let Some(said) = said.filter(|_| container.group.is_none()) else { continue };
        let sum = sums.entry(&container.sandbox).or_default();
        sum.memory_bytes = sum.memory_bytes.saturating_add(said.memory_bytes);
        sum.containers += 1;
        if let Some(pct) = said.cpu_pct {
            sum.said_pct = Some(sum.said_pct.unwrap_or(0.0) + pct);
        }
    }
    let uses = sums.into_iter().map(|(id, sum)| {
        let spent = sum.spent_ns.zip(span).map(|(spent, span)| spent as f64 / 1e7 / span);
        let cpu_pct = match (spent, sum.said_pct) {
            (None, None) => None,
            (spent, said) => Some(spent.unwrap_or(0.0) + said.unwrap_or(0.0)),
        };
        let cpu_pct = cpu_pct.map(|pct| (pct * 10.0).round() / 10.0);
        let figures =
            SandboxUse { cpu_pct, memory_bytes: sum.memory_bytes, containers: sum.containers };
        (id.clone(), figures)
    });
    (uses.collect(), counters)
}

#[cfg(test)]
mod tests;
