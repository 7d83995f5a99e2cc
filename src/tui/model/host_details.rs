//! One host, as text to be read: how it stands and why, what it says of itself, what is on it.

use std::collections::BTreeMap;

use super::Model;
use super::hosts::{Host, Standing};
use super::sandboxes::Sandboxes;
use super::stale::{is_counted, stale_sentence};
use super::text_block::{Role, TextBlock};
use super::words::{state_glyph, state_role};
use crate::client::StaleItem;
use crate::domain::Time;
use crate::domain::facts::{Certificate, HostFacts, Inventory, InventoryItem};
use crate::domain::figures::{age, age_of, bytes};
use crate::domain::host::Limits;
use crate::domain::name::HostName;
use crate::domain::raw_json::RawJson;
use crate::domain::telemetry::HostSample;
use crate::domain::text::plural;

/// The overlay.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HostDetails {
    /// Which host.
    pub name: HostName,
    /// The first line on the screen.
    pub offset: usize,
}

impl HostDetails {
    /// Opens a host.
    pub fn new(name: HostName) -> Self {
        Self { name, offset: 0 }
    }

    /// What is known of it as lines of a width.
    pub fn block(&self, width: usize, model: &Model) -> TextBlock {
        let mut block = TextBlock::new(width);
        let (now, sandboxes) = (model.now, &model.sandboxes);
        let Some(host) = model.hosts.get(self.name.as_str()) else {
            block.text(Role::Warn, 0, "it is not in the configuration: nobody asks it");
            recorded(&mut block, &self.name, sandboxes, None, now);
            stale(&mut block, model.stale.on_host(self.name.as_str()));
            return block;
        };
        standing(&mut block, host, now);
        let view = &host.view;
        let most = view.max_sandboxes.map(|most| format!(" of {most} at most")).unwrap_or_default();
        block.pair("sandboxes", Role::Plain, &format!("{}{most}, by our records", view.sandboxes));
        if let Some(limits) = &view.limits {
            let (disk, memory, load) =
                (limits.disk_used_pct, limits.mem_used_pct, limits.load_per_core);
            let text = format!("disk {disk:.0}%, memory {memory:.0}%, load {load:.2} each");
            block.pair("limits", Role::Plain, &format!("{text}: above, nothing is placed here"));
        }
        for (key, value) in &view.labels {
            block.pair("label", Role::Plain, &format!("{key}={value}"));
        }
        figures(&mut block, host, now);
        let inventory = view.facts.as_ref().and_then(|facts| facts.inventory.as_ref());
        recorded(&mut block, &self.name, sandboxes, inventory, now);
        stale(&mut block, model.stale.on_host(self.name.as_str()));
        if let Some(found) = inventory {
            archives(&mut block, found, now);
            networks(&mut block, found);
        }
        if let Some(facts) = &view.facts {
            said(&mut block, facts, now);
        }
        if let Some(certificate) = newest_certificate(&self.name, sandboxes) {
            certified(&mut block, &certificate, now);
        } else {
            block.heading("Certificate of the compose runtime");
            block.text(Role::Dim, 2, "none yet: a canary on this host makes one");
        }
        block
    }
}

/// How a host stands; of one that is down ssh's words, what to do, and when it is tried next.
pub(super) fn standing(block: &mut TextBlock, host: &Host, now: Time) {
    let since = |time: Option<Time>| {
        time.map(|time| format!(" for {}", age_of(time, now))).unwrap_or_default()
    };
    let latency = host.view.latency_ms.map(|ms| format!(", {ms} ms")).unwrap_or_default();
    match host.standing(now) {
        Standing::Up => block.pair("state", Role::Good, &format!("● up{latency}")),
        Standing::Slow => block.pair("state", Role::Warn, &format!("● slow{latency}")),
        Standing::Connecting => {
            block.pair("state", Role::Busy, &format!("◌ connecting{}", since(host.asked)));
        }
        Standing::Forbidden => block.pair("state", Role::Dim, "forbidden by the configuration"),
        Standing::Down => {
            block.pair("state", Role::Bad, &format!("✗ down{}", since(host.down_since)));
        }
    }
    block.maybe("says", Role::Plain, host.view.message.as_deref());
    block.maybe("hint", Role::Key, host.view.hint.as_deref());
    if host.standing(now) == Standing::Down {
        let next = match (host.asked, host.next) {
            (Some(_), _) => "being tried now".to_owned(),
            (None, Some(next)) if next > now => format!("in {}", age_of(now, next)),
            (None, _) => "in a moment".to_owned(),
        };
        block.pair("next try", Role::Dim, &next);
        let last = host.answered.map(|at| format!("{} ago", age_of(at, now)));
        let last = last.unwrap_or_else(|| "not since this console started".to_owned());
        block.pair("answered", Role::Dim, &last);
    }
    block.maybe("ssh", Role::Code, host.view.ssh.as_deref().map(|target| format!("ssh {target}")));
    let error = host
        .services_error
        .as_ref()
        .map(|problem| format!("cannot be asked for: {}", problem.message));
    block.maybe("services", Role::Warn, error);
}

/// The latest figures of a host, with their age: of its last sample, or of its last check where that is younger.
pub(super) fn figures(block: &mut TextBlock, host: &Host, now: Time) {
    let sample = host.history.last().or(host.view.sample.as_ref());
    let facts = host.view.facts.as_ref();
    let limits = host.view.limits.clone().unwrap_or_default();
    match (sample, facts) {
        (Some(sample), facts) if facts.is_none_or(|facts| sample.at >= facts.at) => {
            sampled(block, sample, &limits, now);
        }
        (_, Some(facts)) => measured(block, facts, now),
        (Some(sample), None) => {
            sampled(block, sample, &limits, now);
        }
        (None, None) => {
            block.heading("Figures");
            block.text(Role::Dim, 2, "none yet: it was not asked, or has not answered");
        }
    }
}

fn sampled(block: &mut TextBlock, sample: &HostSample, limits: &Limits, now: Time) {
    let role = |used: Option<f64>, limit: f64| {
        if used.is_some_and(|used| used > limit) { Role::Warn } else { Role::Plain }
    };
    block.heading(&format!("Figures, {} ago", age_of(sample.at, now)));
    let cpus = plural(u64::from(sample.cpus), "processor", "processors");
    block.pair(
        "load",
        role(Some(sample.load_per_core()), limits.load_per_core),
        &format!("{:.2} on {cpus}, {:.2} each", sample.load1, sample.load_per_core()),
    );
    let share = sample.mem_used_pct().map(|pct| format!("{pct:.0}% used, ")).unwrap_or_default();
    block.pair(
        "memory",
        role(sample.mem_used_pct(), limits.mem_used_pct),
        &format!(
            "{share}{} free of {}",
            bytes(sample.mem_available_bytes),
            bytes(sample.mem_total_bytes)
        ),
    );
    if sample.swap_total_bytes > 0 {
        let (free, total) = (bytes(sample.swap_free_bytes), bytes(sample.swap_total_bytes));
        block.pair("swap", Role::Plain, &format!("{free} free of {total}"));
    }
    match &sample.disk {
        Some(disk) => {
            let share =
                sample.disk_used_pct().map(|pct| format!("{pct:.0}% used, ")).unwrap_or_default();
            let (free, total) = (bytes(disk.available_bytes), bytes(disk.total_bytes));
            block.pair(
                "disk",
                role(sample.disk_used_pct(), limits.disk_used_pct),
                &format!("{share}{free} free of {total} ({})", disk.path),
            );
            let inodes = sample.inodes_used_pct().map(|pct| format!("{pct:.0}% used"));
            block.maybe("inodes", Role::Plain, inodes);
        }
        None => block.pair("disk", Role::Warn, "its file system did not answer"),
    }
    block.maybe("uptime", Role::Plain, sample.uptime_s.map(age));
    clock_offset(block, sample.clock_offset_s);
    for finding in &sample.findings {
        block.pair("finding", Role::Warn, finding);
    }
}

fn measured(block: &mut TextBlock, facts: &HostFacts, now: Time) {
    block.heading(&format!("Figures, {} ago", age_of(facts.at, now)));
    let cpus = plural(u64::from(facts.cpus), "processor", "processors");
    block.pair("load", Role::Plain, &format!("{:.2} on {cpus}", facts.load1));
    let memory =
        format!("{} free of {}", bytes(facts.mem_available_bytes), bytes(facts.mem_total_bytes));
    block.pair("memory", Role::Plain, &memory);
    if let Some(disk) = &facts.disk {
        let (free, total) = (bytes(disk.available_bytes), bytes(disk.total_bytes));
        block.pair("disk", Role::Plain, &format!("{free} free of {total} ({})", disk.path));
    }
    clock_offset(block, facts.clock_offset_s);
}

fn clock_offset(block: &mut TextBlock, offset: Option<f64>) {
    if let Some(offset) = offset {
        let role = if offset.abs() > 2.0 { Role::Warn } else { Role::Plain };
        block.pair("clock", role, &format!("{offset:+.1} s from ours"));
    }
}

fn said(block: &mut TextBlock, facts: &HostFacts, now: Time) {
    block.heading(&format!("It says of itself, {} ago", age_of(facts.at, now)));
    let os = facts.os.as_deref().unwrap_or("unknown system");
    block.pair("name", Role::Plain, &facts.hostname);
    block.pair("system", Role::Plain, &format!("{os}, {}", facts.kernel));
    block.pair("account", Role::Plain, &format!("{} ({})", facts.user, facts.uid));
    block.pair("workspaces", Role::Plain, &facts.workspace_root);
    if facts.runtimes.is_empty() {
        block.pair("runtime", Role::Warn, "none: no stack can be started here");
    }
    for runtime in &facts.runtimes {
        block.pair("runtime", Role::Plain, &runtime.to_string());
        block.maybe("builds", Role::Warn, runtime.builds_escape());
    }
    for engine in &facts.engines {
        let version = engine.version.as_deref().unwrap_or("of an unknown version");
        let behind = if engine.podman_behind { ", which is podman" } else { "" };
        let root = if engine.rootless { "rootless" } else { "as root" };
        block.pair("engine", Role::Plain, &format!("{} {version}{behind}, {root}", engine.program));
    }
    for finding in &facts.findings {
        block.pair("finding", Role::Warn, finding);
    }
    if !facts.tools.is_empty() {
        let tools = facts.tools.keys().map(String::as_str).collect::<Vec<_>>().join(", ");
        block.pair("tools", Role::Plain, &tools);
    }
}

/// Sandboxes of ours that the records place there, and what else the host has of sandboxes.
fn recorded(
    block: &mut TextBlock,
    host: &HostName,
    sandboxes: &Sandboxes,
    inventory: Option<&Inventory>,
    now: Time,
) {
    let ours = sandboxes.all().filter(|entry| entry.record.host.same(host.as_str()));
    let mut there: BTreeMap<&str, &InventoryItem> = inventory
        .into_iter()
        .flat_map(|found| &found.sandboxes)
        .map(|item| (item.sandbox_id.as_str(), item))
        .collect();
    block.heading("Sandboxes on it");
    let before = block.lines.len();
    for entry in ours {
        let record = &entry.record;
        let name = record.name.as_deref().map(|name| format!(" {name}")).unwrap_or_default();
        let old = age_of(record.created_at, now);
        let found = match (there.remove(record.id.as_str()), inventory) {
            (Some(item), _) => format!("  {}", things(item)),
            (None, Some(_)) => "  nothing of it seen there".to_owned(),
            (None, None) => String::new(),
        };
        block.spans([
            (state_role(&record.state), format!("  {} ", state_glyph(&record.state))),
            (Role::Plain, format!("{}{name}  {}  {old} old", record.id, record.state)),
            (Role::Dim, found),
        ]);
    }
    for (id, item) in there {
        let owner = item.owner.as_deref().unwrap_or("nobody that is known");
        let old = item.created_at.map(|at| format!("  {} old", age_of(at, now)));
        let old = old.unwrap_or_default();
        block.spans([
            (Role::Dim, "  · ".to_owned()),
            (Role::Plain, format!("{id}  of {owner}{old}")),
            (Role::Dim, format!("  {}", things(item))),
        ]);
    }
    if block.lines.len() == before {
        let text = if inventory.is_some() { "none" } else { "none by our records" };
        block.text(Role::Dim, 2, text);
    }
}

/// What of the host is stale, recorded or not, and what is never reaped, each with its reason.
fn stale<'a>(block: &mut TextBlock, items: impl Iterator<Item = &'a StaleItem>) {
    let mut items = items.peekable();
    if items.peek().is_none() {
        return;
    }
    block.heading("Stale on it");
    for item in items {
        let role = if is_counted(item) { Role::Warn } else { Role::Dim };
        let name = item.name.as_deref().map(|name| format!(" {name}")).unwrap_or_default();
        block.spans([
            (role, "  ◷ ".to_owned()),
            (Role::Plain, format!("{}{name}  {}", item.id(), item.class)),
        ]);
        block.text(Role::Dim, 4, &stale_sentence(item));
    }
}

/// Archives of snapshots on the host, whoever made them.
fn archives(block: &mut TextBlock, found: &Inventory, now: Time) {
    if found.archives.is_empty() {
        return;
    }
    block.heading("Archives on it");
    for archive in &found.archives {
        let mut words = vec![archive.snapshot_id.clone()];
        words.extend(archive.bytes.map(bytes));
        words.extend(archive.created_at.map(|at| format!("{} old", age_of(at, now))));
        words.extend(archive.sandbox_id.as_ref().map(|id| format!("of {id}")));
        let owner = archive.owner.as_deref().unwrap_or("nobody that is known");
        words.push(format!("by {owner}"));
        block.spans([
            (Role::Dim, "  ◆ ".to_owned()),
            (Role::Plain, words.join("  ")),
            (Role::Dim, format!("  {}", archive.directory)),
        ]);
    }
}

/// Networks of the host's engines: each sandbox with services takes one, and the pools end.
fn networks(block: &mut TextBlock, found: &Inventory) {
    if found.networks.is_empty() {
        return;
    }
    block.heading("Networks");
    for pool in &found.networks {
        let (role, left) = match pool.left {
            Some(0) => (Role::Bad, "none left: no stack can be started".to_owned()),
            Some(left @ 1..=3) => (Role::Warn, format!("{left} left")),
            Some(left) => (Role::Plain, format!("{left} left")),
            None => (Role::Plain, "it does not say how many are left".to_owned()),
        };
        block.pair(&pool.engine, role, &format!("{} used, {left}", pool.used));
    }
}

/// What of a sandbox is on a host, counted.
fn things(item: &InventoryItem) -> String {
    let count = |names: &[String], one: &str, more: &str| {
        (!names.is_empty()).then(|| plural(names.len() as u64, one, more))
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

/// The newest certificate that a canary on this host brought back.
fn newest_certificate(host: &HostName, sandboxes: &Sandboxes) -> Option<Certificate> {
    let there = sandboxes.all().filter(|entry| entry.record.host.same(host.as_str()));
    there
        .filter_map(|entry| entry.record.certificate.as_ref().and_then(RawJson::read))
        .max_by_key(|certificate| certificate.at)
}

/// What a compose runtime was found to be worth, and when.
pub(super) fn certified(block: &mut TextBlock, certificate: &Certificate, now: Time) {
    block.heading(&format!(
        "Certificate of the compose runtime, {} old",
        age_of(certificate.at, now)
    ));
    match &certificate.runtime {
        Some(runtime) => {
            let engine = runtime.engine_version.as_deref().unwrap_or("of unknown version");
            let root = if runtime.rootless { "rootless" } else { "as root" };
            let text = format!(
                "{} {} on {} {engine}, {root}, {}",
                runtime.flavour, runtime.version, runtime.engine, runtime.chosen
            );
            block.pair("runtime", Role::Plain, &text);
        }
        None => block.pair("runtime", Role::Dim, "none on this host"),
    }
    block.maybe(
        "exit codes",
        Role::Plain,
        certificate.exit_codes_trusted.map(|yes| {
            if yes { "tell failure from success" } else { "do not tell failure from success" }
        }),
    );
    block.maybe("ps format", Role::Plain, certificate.ps_format.as_deref());
    for finding in &certificate.findings {
        block.text(Role::Plain, 2, finding);
    }
}
