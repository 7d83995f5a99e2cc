//! Host: the columns of its tables, its latest figures, and what it says of itself.

use std::time::Duration;

use super::count::many;
use super::document::Document;
use super::role::Role;
use super::table::{Column, or_nothing};
use crate::domain::canary::CanaryTelemetry;
use crate::domain::deep_check::{DeepOutcome, DeepStep};
use crate::domain::facts::{Certificate, Disk, HostFacts, Inventory, InventoryItem, Runtime};
use crate::domain::figures::{age, age_of, bytes, left, took};
use crate::domain::host::Limits;
use crate::domain::host_view::{HostState, HostView};
use crate::domain::telemetry::HostSample;
use crate::domain::text::plural;
use crate::domain::{HostName, Time};

/// A clock that is off by more is told, in seconds: deadlines are judged by ours.
pub(crate) const CLOCK_OFF_S: f64 = 2.0;
/// Fewer networks left than these are told.
pub(crate) const FEW_NETWORKS: u32 = 5;
/// Of swap and inodes, more used than this is told: percent.
pub(crate) const HIGH_PCT: f64 = 80.0;

/// Columns of the list of hosts.
pub(crate) const COLUMNS: &[Column<HostView>] = &[
    Column::new("HOST", |view, _| view.name.to_string()),
    Column::whole("STATE", |view, _| view.state.to_string()),
    Column::new("SANDBOXES", |view, _| held(view)),
    Column::new("LATENCY", |view, _| or_nothing(view.latency_ms.map(|ms| format!("{ms}ms")))),
    Column::new("SEEN", |view, now| {
        or_nothing(view.checked_at.map(|at| format!("{} ago", age_of(at, now))))
    }),
    Column::new("LOAD", |view, _| {
        or_nothing(view.facts.as_ref().map(|facts| format!("{:.2}", facts.load1)))
    }),
    Column::new("MEM FREE", |view, _| {
        or_nothing(view.facts.as_ref().map(|facts| bytes(facts.mem_available_bytes)))
    }),
    Column::new("DISK FREE", |view, _| {
        let disk = view.facts.as_ref().and_then(|facts| facts.disk.as_ref());
        or_nothing(disk.map(|disk| bytes(disk.available_bytes)))
    }),
    Column::new("WHAT", |view, _| match (&view.message, &view.facts) {
        (Some(message), _) => message.clone(),
        (None, Some(facts)) => known_for(facts),
        (None, None) => String::new(),
    }),
];

/// How a host's row is meant.
pub(crate) fn role(view: &HostView) -> Role {
    match view.state {
        HostState::Down => Role::Bad,
        HostState::Slow | HostState::Connecting => Role::Busy,
        HostState::Forbidden | HostState::Unknown => Role::Dim,
        HostState::Up | HostState::Other(_) => Role::Plain,
    }
}

/// `12/30`: sandboxes on it by our records, of how many it may hold.
pub(crate) fn held(view: &HostView) -> String {
    match view.max_sandboxes {
        Some(most) => format!("{}/{most}", view.sandboxes),
        None => view.sandboxes.to_string(),
    }
}

/// Facts of a host that answers, with what its engine is known for.
fn known_for(facts: &HostFacts) -> String {
    let escape = facts.runtimes.first().and_then(Runtime::builds_escape);
    facts.os.clone().into_iter().chain(escape).collect::<Vec<_>>().join("; ")
}

/// Step of a deep check, with its host.
pub(crate) type StepRow = (HostName, DeepStep);

/// Columns of a deep check.
pub(crate) const STEPS: &[Column<StepRow>] = &[
    Column::new("HOST", |(host, _), _| host.to_string()),
    Column::whole("STEP", |(_, step), _| step.stage.to_string()),
    Column::whole("OUTCOME", |(_, step), _| step.outcome.to_string()),
    Column::new("TOOK", |(_, step), _| match step.outcome {
        DeepOutcome::Skipped => String::new(),
        DeepOutcome::Ok | DeepOutcome::Failed | DeepOutcome::Other(_) => {
            took(Duration::from_millis(step.took_ms))
        }
    }),
    Column::new("WHAT", |(_, step), _| {
        let why = step.error.as_ref().map(|error| format!("{}: {}", error.code, error.message));
        or_nothing(why.or_else(|| step.message.clone()))
    }),
];

/// How a step's row is meant.
pub(crate) fn step_role((_, step): &StepRow) -> Role {
    match step.outcome {
        DeepOutcome::Failed => Role::Bad,
        DeepOutcome::Skipped => Role::Dim,
        DeepOutcome::Ok | DeepOutcome::Other(_) => Role::Plain,
    }
}

/// State of a sandbox as found on a host, and the memory that it uses.
pub(crate) type FoundRow = (InventoryItem, Option<u64>);

/// Columns of what of sandboxes was found on a host.
pub(crate) const FOUND: &[Column<FoundRow>] = &[
    Column::new("SANDBOX", |(item, _), _| item.sandbox_id.clone()),
    Column::new("OWNER", |(item, _), _| or_nothing(item.owner.as_ref())),
    Column::new("PROFILE", |(item, _), _| or_nothing(item.profile.as_ref())),
    Column::new("AGE", |(item, _), now| or_nothing(item.created_at.map(|at| age_of(at, now)))),
    Column::new("TTL", |(item, _), now| {
        or_nothing(item.expires_at.map(|end| left(Some(end), now)))
    }),
    Column::new("SIZE", |(item, _), _| or_nothing(item.bytes.map(bytes))),
    Column::new("MEM", |(_, memory), _| or_nothing(memory.map(bytes))),
    Column::new("WHAT", |(item, _), _| things(item)),
];

/// `2 containers, 1 network, a directory of 1.2G`: what of a sandbox is on a host, counted.
pub(crate) fn things(item: &InventoryItem) -> String {
    let count = |names: &[String], one: &str, more: &str| {
        (!names.is_empty()).then(|| many(names.len(), one, more))
    };
    let mut words: Vec<String> = Vec::new();
    words.extend(count(&item.containers, "container", "containers"));
    words.extend(count(&item.networks, "network", "networks"));
    words.extend(count(&item.volumes, "volume", "volumes"));
    words.extend(item.directory.as_ref().map(|_| match item.bytes {
        Some(size) => format!("a directory of {}", bytes(size)),
        None => "a directory".to_owned(),
    }));
    words.join(", ")
}

/// Adds what our records have on it, what it may hold, and its labels.
pub(crate) fn placement(document: &mut Document, view: &HostView) {
    let most = view.max_sandboxes.map(|most| format!(" of {most} at most")).unwrap_or_default();
    document.plain("sandboxes", format!("{}{most}, by our records", view.sandboxes));
    if let Some(limits) = &view.limits {
        let (disk, memory, load) =
            (limits.disk_used_pct, limits.mem_used_pct, limits.load_per_core);
        let text = format!("disk {disk:.0}%, memory {memory:.0}%, load {load:.2} each");
        document.plain("limits", format!("{text}: above, nothing is placed here"));
    }
    for (key, value) in &view.labels {
        document.plain("label", format!("{key}={value}"));
    }
}

/// Adds the latest figures of a host, with their age: of its last sample, or of its last check where that is younger.
pub(crate) fn figures(
    document: &mut Document,
    view: &HostView,
    sample: Option<&HostSample>,
    now: Time,
) {
    let (sample, facts) = (sample.or(view.sample.as_ref()), view.facts.as_ref());
    let limits = view.limits.clone().unwrap_or_default();
    match (sample, facts) {
        (Some(sample), facts) if facts.is_none_or(|facts| sample.at >= facts.at) => {
            sampled(document, sample, &limits, now);
        }
        (_, Some(facts)) => {
            document.heading(format!("Figures, {} ago", age_of(facts.at, now)));
            let (free, total) = (facts.mem_available_bytes, facts.mem_total_bytes);
            measured(document, facts.load1, facts.cpus, (free, total), facts.disk.as_ref());
            document.maybe("clock", clock_role(facts.clock_offset_s), clock(facts.clock_offset_s));
        }
        (Some(sample), None) => sampled(document, sample, &limits, now),
        (None, None) => {
            document.heading("Figures");
            document.text(Role::Dim, 2, "none yet: it was not asked, or has not answered");
        }
    }
}

/// A part that is used, in percent, with the limit where it is above it; and how that is meant.
fn used(part: Option<f64>, limit: f64) -> (Role, String) {
    match part {
        None => (Role::Plain, String::new()),
        Some(pct) if pct > limit => {
            (Role::Warn, format!("{pct:.0}% used (above the limit of {limit:.0}%), "))
        }
        Some(pct) => (Role::Plain, format!("{pct:.0}% used, ")),
    }
}

fn free_of(free: u64, total: u64) -> String {
    format!("{} free of {}", bytes(free), bytes(total))
}

fn sampled(document: &mut Document, sample: &HostSample, limits: &Limits, now: Time) {
    document.heading(format!("Figures, {} ago", age_of(sample.at, now)));
    let (each, limit) = (sample.load_per_core(), limits.load_per_core);
    let over = if each > limit { format!(" (above the limit of {limit})") } else { String::new() };
    let role = if over.is_empty() { Role::Plain } else { Role::Warn };
    let load = load(sample.load1, sample.cpus);
    document.pair("load", role, format!("{load}, {each:.2} each{over}"));
    let (role, share) = used(sample.mem_used_pct(), limits.mem_used_pct);
    let free = free_of(sample.mem_available_bytes, sample.mem_total_bytes);
    document.pair("memory", role, format!("{share}{free}"));
    if sample.swap_total_bytes > 0 {
        document.plain("swap", free_of(sample.swap_free_bytes, sample.swap_total_bytes));
    }
    match &sample.disk {
        Some(disk) => {
            let (role, share) = used(sample.disk_used_pct(), limits.disk_used_pct);
            let free = free_of(disk.available_bytes, disk.total_bytes);
            document.pair("disk", role, format!("{share}{free} ({})", disk.path));
        }
        None => document.pair("disk", Role::Warn, "its file system did not answer"),
    }
    if let Some(pct) = sample.inodes_used_pct() {
        let (role, few) =
            if pct > HIGH_PCT { (Role::Warn, ", few are left") } else { (Role::Plain, "") };
        document.pair("inodes", role, format!("{pct:.0}% used{few}"));
    }
    document.maybe("uptime", Role::Plain, sample.uptime_s.map(age));
    document.maybe("clock", clock_role(sample.clock_offset_s), clock(sample.clock_offset_s));
    for finding in &sample.findings {
        document.pair("finding", Role::Warn, finding);
    }
}

fn load(load1: f64, cpus: u32) -> String {
    format!("{load1:.2} on {}", plural(u64::from(cpus), "processor", "processors"))
}

fn measured(
    document: &mut Document,
    load1: f64,
    cpus: u32,
    (free, total): (u64, u64),
    disk: Option<&Disk>,
) {
    document.plain("load", load(load1, cpus));
    document.plain("memory", free_of(free, total));
    if let Some(disk) = disk {
        let free = free_of(disk.available_bytes, disk.total_bytes);
        document.plain("disk", format!("{free} ({})", disk.path));
    }
}

fn is_off(offset: Option<f64>) -> bool {
    offset.is_some_and(|offset| offset.abs() > CLOCK_OFF_S)
}

fn clock_role(offset: Option<f64>) -> Role {
    if is_off(offset) { Role::Warn } else { Role::Plain }
}

fn clock(offset: Option<f64>) -> Option<String> {
    let correct =
        if is_off(offset) { ": deadlines are judged by ours, correct the host's" } else { "" };
    offset.map(|offset| format!("{offset:+.1} s from ours{correct}"))
}

/// Adds what a host says of itself.
pub(crate) fn said(document: &mut Document, facts: &HostFacts, now: Time) {
    document.heading(format!("It says of itself, {} ago", age_of(facts.at, now)));
    document.plain("name", &facts.hostname);
    document.plain("system", system(facts.os.as_deref(), &facts.kernel));
    document.plain("account", format!("{} ({})", facts.user, facts.uid));
    document.plain("workspaces", &facts.workspace_root);
    if facts.runtimes.is_empty() {
        document.pair("runtime", Role::Warn, "none: no stack can be started here");
    }
    for runtime in &facts.runtimes {
        document.plain("runtime", runtime);
        document.maybe("builds", Role::Warn, runtime.builds_escape());
    }
    for engine in &facts.engines {
        let version = engine.version.as_deref().unwrap_or("of an unknown version");
        let behind = if engine.podman_behind { ", which is podman" } else { "" };
        let root = if engine.rootless { "rootless" } else { "as root" };
        document.plain("engine", format!("{} {version}{behind}, {root}", engine.program));
    }
    for finding in &facts.findings {
        document.pair("finding", Role::Warn, finding);
    }
    if !facts.tools.is_empty() {
        let tools = facts.tools.keys().map(String::as_str).collect::<Vec<_>>().join(", ");
        document.plain("tools", tools);
    }
}

fn system(os: Option<&str>, kernel: &str) -> String {
    format!("{}, {kernel}", os.unwrap_or("unknown system"))
}

/// Adds what was found on a host: how much of sandboxes, the archives of snapshots whoever made them, and how many networks its
/// engines have left; each sandbox with services takes one, and the pools end.
pub(crate) fn inventory(document: &mut Document, found: &Inventory, now: Time) {
    document.heading("Found on it");
    let sizes = found.sizes_at.map(|at| format!("sizes as of {} ago", age_of(at, now)));
    let sizes = sizes.unwrap_or_else(|| "sizes are still being measured".to_owned());
    let sandboxes = many(found.sandboxes.len(), "sandbox", "sandboxes");
    let archives = many(found.archives.len(), "archive", "archives");
    document.plain("found", format!("{sandboxes}, {archives}; {sizes}"));
    for pool in &found.networks {
        let (role, left) = match pool.left {
            Some(0) => (Role::Bad, "none left: no stack can be started".to_owned()),
            Some(left) if left < FEW_NETWORKS => (Role::Warn, format!("only {left} left")),
            Some(left) => (Role::Plain, format!("{left} left")),
            None => (Role::Plain, "it does not say how many are left".to_owned()),
        };
        document.pair("networks", role, format!("{}: {} used, {left}", pool.engine, pool.used));
    }
    for archive in &found.archives {
        let mut words = vec![archive.snapshot_id.clone()];
        words.extend(archive.bytes.map(bytes));
        words.extend(archive.created_at.map(|at| format!("{} old", age_of(at, now))));
        words.extend(archive.sandbox_id.as_ref().map(|id| format!("of {id}")));
        words.push(format!("by {}", owner(archive.owner.as_deref())));
        let folder = (Role::Dim, format!("  {}", archive.directory));
        document.line(('◆', Role::Dim), [(Role::Plain, words.join("  ")), folder]);
    }
}

/// An owner on a host, whom nobody may know.
pub(crate) fn owner(id: Option<&str>) -> &str {
    id.unwrap_or("nobody that is known")
}

/// Adds what a compose runtime was found to be worth, and when.
pub(crate) fn certified(document: &mut Document, certificate: &Certificate, now: Time) {
    let old = age_of(certificate.at, now);
    document.heading(format!("Certificate of the compose runtime, {old} old"));
    match &certificate.runtime {
        Some(runtime) => {
            let engine = runtime.engine_version.as_deref().unwrap_or("of unknown version");
            let root = if runtime.rootless { "rootless" } else { "as root" };
            let text = format!(
                "{} {} on {} {engine}, {root}, {}",
                runtime.flavour, runtime.version, runtime.engine, runtime.chosen
            );
            document.plain("runtime", text);
        }
        None => document.pair("runtime", Role::Dim, "none on this host"),
    }
    let trusted = certificate.exit_codes_trusted.map(|yes| {
        if yes { "tell failure from success" } else { "do not tell failure from success" }
    });
    document.maybe("exit codes", Role::Plain, trusted);
    document.maybe("ps format", Role::Plain, certificate.ps_format.as_deref());
    for finding in &certificate.findings {
        document.text(Role::Plain, 2, finding);
    }
}

/// Adds facts of a host as a canary's record has them.
pub(crate) fn of_canary(document: &mut Document, facts: &CanaryTelemetry, now: Time) {
    let old = age_of(facts.at, now);
    document.heading(format!("Inventory of {}, {old} ago", facts.hostname));
    document.plain("system", system(facts.os.as_deref(), &facts.kernel));
    document.plain("account", &facts.user);
    let (free, total) = (facts.mem_available_bytes, facts.mem_total_bytes);
    measured(document, facts.load1, facts.cpus, (free, total), facts.disk.as_ref());
    let off = facts.clock_offset_s.filter(|offset| is_off(Some(*offset)));
    document.maybe("clock", Role::Warn, clock(off));
    if let Some(found) = &facts.inventory {
        let things = [
            (found.containers, "containers"),
            (found.networks, "networks"),
            (found.volumes, "volumes"),
            (found.directories, "directories"),
        ];
        let things = things.map(|(count, word)| format!("{count} {word}")).join(", ");
        document.plain("sandboxes", format!("{}: {things}", found.sandboxes));
    }
}
