//! Rows of the hosts: load of the last hour and what is used of memory and disk, or why a host does not answer.

use super::hosts::{Host, Standing};
use super::spark::sparkline;
use super::{Model, Role, age_of};
use crate::domain::host::Limits;
use crate::domain::telemetry::{HISTORY_S, HostSample};
use crate::domain::text::columns;
use crate::present::Spans;
use crate::present::host::{self, CLOCK_OFF_S, FEW_NETWORKS, HIGH_PCT};

/// Cells of the hour's load, and where there is little room.
const SPARK: [usize; 3] = [8, 4, 0];

/// The two rows of a host.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HostRows {
    /// How the host's name is meant.
    pub name: Role,
    /// Beside the name: load, and sandboxes of how many; or why it does not answer.
    pub first: Spans,
    /// Below it: what is used of memory and disk, or when it is tried next.
    pub second: Spans,
}

impl Model {
    /// The rows of a host, the first with as much of the hour's load as `room` cells beside its name hold.
    pub fn host_rows(&self, host: &Host, room: usize) -> HostRows {
        let standing = host.standing(self.now);
        let name = match standing {
            Standing::Down => Role::Bad,
            Standing::Forbidden => Role::Dim,
            Standing::Up | Standing::Slow | Standing::Connecting => Role::Plain,
        };
        let width = |spans: &Spans| spans.iter().map(|(_, text)| columns(text)).sum::<usize>();
        let mut variants = SPARK.map(|cells| first_row(self, host, standing, cells)).into_iter();
        let last = variants.next_back().unwrap_or_default();
        let first = variants.find(|spans| width(spans) <= room).unwrap_or(last);
        HostRows { name, first, second: second_row(self, host, standing) }
    }
}

/// `▁▂▂▃ 0.4  12/30`, or why it does not answer.
fn first_row(model: &Model, host: &Host, standing: Standing, cells: usize) -> Spans {
    let view = &host.view;
    let full = view.max_sandboxes.is_some_and(|most| view.sandboxes >= most);
    let held = (if full { Role::Warn } else { Role::Plain }, host::held(view));
    match standing {
        Standing::Down => {
            let since = host.down_since.map(|since| age_of(since, model.now));
            let since = since.map(|since| format!(" {since}")).unwrap_or_default();
            let why = host.reason().map(|why| format!(": {why}")).unwrap_or_default();
            vec![(Role::Bad, format!("down{since}{why}"))]
        }
        Standing::Forbidden => vec![(Role::Dim, "forbidden".to_owned())],
        Standing::Connecting => vec![(Role::Busy, "connecting  ".to_owned()), held],
        Standing::Up | Standing::Slow => {
            let mut spans = Vec::new();
            if standing == Standing::Slow {
                let ms = view.latency_ms.map(|ms| format!(" {ms}ms")).unwrap_or_default();
                spans.push((Role::Warn, format!("slow{ms}  ")));
            }
            if let Some(sample) = host.sample() {
                let load = sample.load_per_core();
                let role = limited(load, view.limits.as_ref().map(|limits| limits.load_per_core));
                let over = role.1.map(|limit| format!(" of {limit}")).unwrap_or_default();
                spans.push((Role::Dim, spark(host, model.now.unix(), cells)));
                spans.push((role.0, format!(" {load:.1}{over}  ")));
            }
            spans.push(held);
            spans
        }
    }
}

/// `mem 68%  disk 41%` and what else is high, or when it is tried next.
fn second_row(model: &Model, host: &Host, standing: Standing) -> Spans {
    let message = host.view.message.as_deref();
    match standing {
        Standing::Down => {
            let mut spans = Vec::new();
            if let Some(next) = host.next.filter(|next| *next > model.now) {
                let wait = age_of(model.now, next);
                spans.push((Role::Plain, format!("next try in {wait}  ")));
            } else if host.asked.is_some() {
                spans.push((Role::Busy, "trying  ".to_owned()));
            }
            // Why stands above.
            let words = host.view.hint.as_deref().or(message).unwrap_or_default();
            spans.push((Role::Dim, words.to_owned()));
            spans
        }
        Standing::Forbidden => vec![(Role::Dim, message.unwrap_or_default().to_owned())],
        Standing::Up | Standing::Slow | Standing::Connecting => match host.sample() {
            Some(sample) => {
                let mut spans = gauges(sample, host.view.limits.as_ref());
                spans.extend(few_networks(host));
                spans
            }
            None => vec![(Role::Dim, message.unwrap_or("not measured yet").to_owned())],
        },
    }
}

fn gauges(sample: &HostSample, limits: Option<&Limits>) -> Spans {
    let mut spans = Vec::new();
    let mut gauge = |name: &str, used: Option<f64>, limit: Option<f64>, from: f64| {
        let Some(used) = used.filter(|used| *used >= from) else { return };
        let (role, over) = limited(used, limit);
        let over = over.map(|limit| format!(" of {limit:.0}")).unwrap_or_default();
        spans.extend([(Role::Dim, format!("{name} ")), (role, format!("{used:.0}%{over}  "))]);
    };
    gauge("mem", sample.mem_used_pct(), limits.map(|limits| limits.mem_used_pct), 0.0);
    gauge("disk", sample.disk_used_pct(), limits.map(|limits| limits.disk_used_pct), 0.0);
    gauge("inodes", sample.inodes_used_pct(), limits.map(|limits| limits.disk_used_pct), HIGH_PCT);
    gauge("swap", sample.swap_used_pct(), Some(100.0), HIGH_PCT);
    if let Some(offset) = sample.clock_offset_s.filter(|offset| offset.abs() > CLOCK_OFF_S) {
        spans.push((Role::Warn, format!("clock {offset:+.0}s  ")));
    }
    spans
}

/// Networks that a host's engines have room for, where they are few.
fn few_networks(host: &Host) -> Option<(Role, String)> {
    let inventory = host.view.facts.as_ref()?.inventory.as_ref()?;
    let left = inventory.networks.iter().filter_map(|networks| networks.left).min()?;
    let role = if left == 0 { Role::Bad } else { Role::Warn };
    (left < FEW_NETWORKS).then(|| (role, format!("nets {left}")))
}

/// How a figure is meant beside its limit, and the limit where it is reached.
fn limited(value: f64, limit: Option<f64>) -> (Role, Option<f64>) {
    match limit {
        Some(limit) if value >= limit => (Role::Bad, Some(limit)),
        Some(limit) if value >= limit * 0.9 => (Role::Warn, None),
        Some(_) | None => (Role::Plain, None),
    }
}

/// Load per core of the last hour, the highest of each part; nothing where nothing was measured.
fn spark(host: &Host, now: i64, cells: usize) -> String {
    if cells == 0 {
        return String::new();
    }
    let mut highest = vec![None::<f64>; cells];
    let hour = i64::try_from(HISTORY_S).unwrap_or(i64::MAX);
    for sample in host.history.samples() {
        let since = hour - (now - sample.at.unix());
        let at = usize::try_from(since).unwrap_or(0) * cells / usize::try_from(hour).unwrap_or(1);
        let cell = &mut highest[at.min(cells - 1)];
        *cell = Some(cell.unwrap_or(0.0).max(sample.load_per_core()));
    }
    // A core at work is the middle of the scale, unless there was more.
    let top = highest.iter().flatten().fold(2.0_f64, |top, load| top.max(*load));
    sparkline(&highest, top)
}
