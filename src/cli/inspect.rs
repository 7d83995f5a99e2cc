//! `inspect host`: what hosts are, what they have left, and what of sandboxes is on them.

use futures_util::stream::{self, StreamExt as _};

use super::hosts::{self, AT_ONCE};
use super::interrupt::until_interrupted;
use super::output::{CliError, Context, Outcome, Tone};
use super::table::Line;
use super::{record, table};
use crate::client::Error;
use crate::domain::Time;
use crate::domain::facts::{HostFacts, InventoryArchive, InventoryItem, NetworkUse};
use crate::domain::figures::{age, age_of, bytes};
use crate::domain::host::Limits;
use crate::domain::host_view::HostView;
use crate::domain::name::SandboxId;
use crate::domain::telemetry::{HostSample, SandboxUse};
use crate::domain::text::plural;

/// An offset of a host's clock above this is marked: seconds.
const CLOCK_OFF_S: f64 = 2.0;
/// Fewer networks left than these are marked.
const FEW_NETWORKS: u32 = 4;
/// More of a file system's inodes used than this is marked: percent.
const INODES_PCT: f64 = 90.0;

/// Inspects hosts. Each is shown when it has answered: who is late holds nobody up. The status is that of `hosts check`.
pub(super) async fn host(context: &mut Context<'_>, names: &[String]) -> Outcome {
    let client = context.client;
    let names = until_interrupted(context, hosts::wanted(client, names)).await??;
    let inspected = stream::iter(names).map(async |name| {
        let view = client.inspect_host(&name).await;
        (name, view)
    });
    let mut inspected = std::pin::pin!(inspected.buffer_unordered(AT_ONCE));
    let mut all: Vec<(String, Result<HostView, Error>)> = Vec::new();
    while let Some(one) = until_interrupted(context, inspected.next()).await? {
        if let (Ok(view), false) = (&one.1, context.options.json) {
            if all.iter().any(|(_, shown)| shown.is_ok()) {
                context.line("")?;
            }
            show(context, view)?;
        }
        all.push(one);
    }
    if context.options.json {
        // By name, whoever answered first.
        all.sort_by_key(|(name, _)| name.to_ascii_lowercase());
    }
    hosts::conclude(context, all, |context, views| {
        if context.options.json { context.document(views) } else { Ok(()) }
    })
}

fn show(context: &mut Context<'_>, view: &HostView) -> Result<(), CliError> {
    let now = context.now();
    record::block(context, &fields(view, now))?;
    let Some(inventory) = view.facts.as_ref().and_then(|facts| facts.inventory.as_ref()) else {
        return Ok(());
    };
    if !inventory.sandboxes.is_empty() {
        let uses = view.sample.as_ref().map(|sample| &sample.sandboxes);
        let rows: Vec<Line> = inventory
            .sandboxes
            .iter()
            .map(|item| {
                let id = SandboxId::new(item.sandbox_id.as_str());
                sandbox_row(item, uses.and_then(|uses| uses.get(&id)), now)
            })
            .collect();
        table::print(
            context,
            &["SANDBOX", "OWNER", "PROFILE", "AGE", "DEADLINE", "SIZE", "MEM", "HAS"],
            &rows,
        )?;
    }
    if !inventory.archives.is_empty() {
        let rows: Vec<Line> =
            inventory.archives.iter().map(|archive| archive_row(archive, now)).collect();
        table::print(context, &["SNAPSHOT", "OWNER", "OF", "AGE", "SIZE"], &rows)?;
    }
    Ok(())
}

/// The host itself, a line for each thing that is known.
fn fields(view: &HostView, now: Time) -> Vec<(&'static str, String)> {
    let seen = view.checked_at.map(|at| format!(", seen {} ago", age_of(at, now)));
    let way = view.latency_ms.map(|ms| format!(", {ms}ms"));
    let state = format!("{}{}{}", view.state, way.unwrap_or_default(), seen.unwrap_or_default());
    let mut fields = vec![("host", view.name.to_string()), ("state", state)];
    let mut add =
        |key: &'static str, value: Option<String>| fields.extend(value.map(|value| (key, value)));
    add("message", view.message.clone());
    add("hint", view.hint.clone());
    if let Some(facts) = &view.facts {
        add("system", Some(system(facts)));
        for engine in &facts.engines {
            let version = engine.version.as_deref().unwrap_or("of an unknown version");
            let root = if engine.rootless { "rootless" } else { "as root" };
            let behind = if engine.podman_behind { ", podman behind it" } else { "" };
            add("engine", Some(format!("{} {version}, {root}{behind}", engine.program)));
        }
        for runtime in &facts.runtimes {
            add("compose", Some(runtime.to_string()));
        }
        for networks in facts.inventory.iter().flat_map(|inventory| &inventory.networks) {
            add("networks", Some(network_use(networks)));
        }
    }
    let limits = view.limits.clone().unwrap_or_default();
    if let Some(sample) = &view.sample {
        for (key, value) in gauges(sample, &limits) {
            add(key, Some(value));
        }
    }
    let most = view.max_sandboxes.map(|most| format!(" of at most {most}")).unwrap_or_default();
    add(
        "recorded",
        Some(format!("{}{most}", plural(view.sandboxes.into(), "sandbox", "sandboxes"))),
    );
    if let Some(inventory) = view.facts.as_ref().and_then(|facts| facts.inventory.as_ref()) {
        let sizes = inventory.sizes_at.map_or_else(
            || "; sizes are still being measured".to_owned(),
            |at| format!("; sizes as of {} ago", age_of(at, now)),
        );
        let found = plural(inventory.sandboxes.len() as u64, "sandbox", "sandboxes");
        let archives = plural(inventory.archives.len() as u64, "archive", "archives");
        add("found", Some(format!("{found}, {archives}{sizes}")));
    }
    let facts = view.facts.iter().flat_map(|facts| &facts.findings);
    let sample = view.sample.iter().flat_map(|sample| &sample.findings);
    for finding in facts.chain(sample) {
        add("finding", Some(finding.clone()));
    }
    fields
}

fn system(facts: &HostFacts) -> String {
    let os = facts.os.as_ref().map(|os| format!("{os}, ")).unwrap_or_default();
    format!("{os}{}; account {}; root {}", facts.kernel, facts.user, facts.workspace_root)
}

fn network_use(networks: &NetworkUse) -> String {
    let NetworkUse { engine, used, left } = networks;
    match left {
        None => format!("{engine}: {used} used, it does not say how many are left"),
        Some(0) => {
            format!("{engine}: {used} used, none left: no stack with a network can start")
        }
        Some(left) if *left < FEW_NETWORKS => format!("{engine}: {used} used, only {left} left"),
        Some(left) => format!("{engine}: {used} used, {left} left"),
    }
}

/// Gauges in words; one above its limit says so.
fn gauges(sample: &HostSample, limits: &Limits) -> Vec<(&'static str, String)> {
    let mark = |value: f64, limit: f64| {
        if value > limit { format!(" (above the limit of {limit})") } else { String::new() }
    };
    let used = |pct: f64, limit: f64, free: u64, total: u64| {
        let mark = mark(pct, limit).replace(')', "%)");
        format!("{pct:.0}% used{mark}, {} of {} free", bytes(free), bytes(total))
    };
    let mut gauges = Vec::new();
    if let Some(uptime) = sample.uptime_s {
        gauges.push(("up for", age(uptime)));
    }
    let per_core = sample.load_per_core();
    let cores = plural(sample.cpus.into(), "core", "cores");
    let mark_load = mark(per_core, limits.load_per_core);
    gauges
        .push(("load", format!("{:.2} on {cores}, {per_core:.2} a core{mark_load}", sample.load1)));
    if let Some(pct) = sample.mem_used_pct() {
        let (free, total) = (sample.mem_available_bytes, sample.mem_total_bytes);
        gauges.push(("memory", used(pct, limits.mem_used_pct, free, total)));
    }
    gauges.push((
        "swap",
        sample.swap_used_pct().map_or_else(
            || "none".to_owned(),
            |pct| used(pct, f64::INFINITY, sample.swap_free_bytes, sample.swap_total_bytes),
        ),
    ));
    if let (Some(pct), Some(disk)) = (sample.disk_used_pct(), &sample.disk) {
        let text = used(pct, limits.disk_used_pct, disk.available_bytes, disk.total_bytes);
        gauges.push(("disk", format!("{text} at {}", disk.path)));
    }
    if let Some(pct) = sample.inodes_used_pct() {
        let mark = if pct > INODES_PCT { ", few are left" } else { "" };
        gauges.push(("inodes", format!("{pct:.0}% used{mark}")));
    }
    if let Some(offset) = sample.clock_offset_s {
        let side = if offset < 0.0 { "behind" } else { "ahead" };
        let mark = if offset.abs() > CLOCK_OFF_S {
            "; deadlines are judged by the clock here, correct the host's"
        } else {
            ""
        };
        gauges.push(("clock", format!("{:.1}s {side}{mark}", offset.abs())));
    }
    gauges
}

fn sandbox_row(item: &InventoryItem, used: Option<&SandboxUse>, now: Time) -> Line {
    let dash = |value: Option<String>| value.unwrap_or_else(|| "-".to_owned());
    let over = item.expires_at.is_some_and(|at| at <= now);
    let deadline = item.expires_at.map(|at| {
        if over {
            format!("over {}", age_of(at, now))
        } else {
            format!("in {}", age(at.since(now).as_secs()))
        }
    });
    let has = [
        (usize::from(item.directory.is_some()), "directory", "directories"),
        (item.containers.len(), "container", "containers"),
        (item.networks.len(), "network", "networks"),
        (item.volumes.len(), "volume", "volumes"),
    ];
    let has = has.into_iter().filter(|(count, ..)| *count > 0);
    let has: Vec<String> = has.map(|(count, one, many)| plural(count as u64, one, many)).collect();
    let cells = vec![
        item.sandbox_id.clone(),
        dash(item.owner.clone()),
        dash(item.profile.clone()),
        dash(item.created_at.map(|at| age_of(at, now))),
        dash(deadline),
        dash(item.bytes.map(bytes)),
        dash(used.map(|used| bytes(used.memory_bytes))),
        has.join(", "),
    ];
    Line { tone: if over { Tone::Bad } else { Tone::Plain }, cells }
}

fn archive_row(archive: &InventoryArchive, now: Time) -> Line {
    let dash = |value: Option<String>| value.unwrap_or_else(|| "-".to_owned());
    let cells = vec![
        archive.snapshot_id.clone(),
        dash(archive.owner.clone()),
        dash(archive.sandbox_id.clone()),
        dash(archive.created_at.map(|at| age_of(at, now))),
        dash(archive.bytes.map(bytes)),
    ];
    Line { tone: Tone::Plain, cells }
}
