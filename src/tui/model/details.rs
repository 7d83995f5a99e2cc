//! One sandbox's whole record, as text to be read.

use jiff::tz::TimeZone;

use super::event_words::{event_glyph, event_words};
use super::hosts::{Host, Standing};
use super::snapshots::Snapshots;
use super::text_block::{Role, TextBlock};
use super::words::{Present, age, bytes, clock, date, left, state_glyph, state_role};
use super::{Load, failure, lineage};
use crate::domain::event::Event;
use crate::domain::extension::TeardownOutcome;
use crate::domain::facts::{Certificate, HostFacts};
use crate::domain::name::SandboxId;
use crate::domain::sandbox::{SandboxRecord, Service};
use crate::domain::verbatim::Kept;
use crate::domain::{State, Time};

/// The overlay.
#[derive(Debug, Clone)]
pub struct Details {
    /// Which sandbox.
    pub id: SandboxId,
    /// The record as it was read last; it stays when the sandbox leaves the list.
    pub record: Box<SandboxRecord>,
    /// Whether its events are there.
    pub load: Load,
    /// Its events, in order.
    pub events: Vec<Event>,
    /// The first line on the screen.
    pub offset: usize,
}

impl Details {
    /// Opens a record.
    pub fn new(record: SandboxRecord) -> Self {
        Self {
            id: record.id.clone(),
            record: Box::new(record),
            load: Load::Loading,
            events: Vec::new(),
            offset: 0,
        }
    }

    /// The record as lines of a width.
    pub fn block(
        &self,
        width: usize,
        present: Present<'_>,
        host: Option<&Host>,
        snapshots: &Snapshots,
    ) -> TextBlock {
        let mut block = TextBlock::new(width);
        let (record, now) = (&self.record, present.now);
        overview(&mut block, record, present);
        if let Some(failed) = &record.failure {
            failure::section(&mut block, failed);
        }
        reach(&mut block, record);
        services(&mut block, record);
        lineage::of_sandbox(&mut block, record, snapshots, now);
        host_section(&mut block, record, host, now);
        settings(&mut block, record);
        teardown(&mut block, record);
        self.timeline(&mut block, present.zone);
        if let Some(certificate) = record.certificate.as_ref().and_then(Kept::read) {
            certified(&mut block, &certificate);
        }
        let at_creation = record.telemetry.as_ref().and_then(Kept::read);
        let latest = host.and_then(|host| host.view.facts.as_ref());
        if let Some(facts) =
            latest.into_iter().chain(at_creation.as_ref()).max_by_key(|facts| facts.at)
        {
            inventory(&mut block, facts, now);
        }
        block
    }

    fn timeline(&self, block: &mut TextBlock, zone: &TimeZone) {
        block.heading("Timeline");
        match &self.load {
            Load::Loading => block.text(Role::Dim, 2, "reading the events…"),
            Load::Failed(problem) => {
                block.text(
                    Role::Bad,
                    2,
                    &format!("the events cannot be read: {}", problem.message),
                );
            }
            Load::Ready if self.events.is_empty() => {
                block.text(Role::Dim, 2, "no events are kept of it");
            }
            Load::Ready => {}
        }
        for event in &self.events {
            let (glyph, role) = event_glyph(&event.kind);
            let day = event
                .time
                .timestamp()
                .to_zoned_datetime(zone.clone())
                .strftime("%m-%d")
                .to_string();
            block.spans([
                (Role::Dim, format!("  {day} {} ", clock(event.time, zone))),
                (role, format!("{glyph} ")),
                (Role::Plain, event_words(event)),
            ]);
        }
    }
}

fn overview(block: &mut TextBlock, record: &SandboxRecord, present: Present<'_>) {
    let now = present.now;
    let ago = |time: Time| present.ago(time);
    block.pair(
        "state",
        state_role(&record.state),
        &format!("{} {}", state_glyph(&record.state), record.state),
    );
    block.maybe("reason", Role::Plain, record.reason.as_ref().map(ToString::to_string));
    block.maybe("message", Role::Plain, record.message.as_deref());
    block.maybe("patches", Role::Bad, record.patch_error.as_deref());
    if let Some(running) = &record.operation {
        let since = age(now.since(running.started_at).as_secs());
        let who = format!(
            "{} for {since}, by {} in process {} on {}",
            running.kind, running.actor, running.pid, running.host
        );
        block.pair("operation", Role::Busy, &who);
        if running.cancel_requested {
            block.pair("", Role::Warn, "its end was asked for");
        }
    }
    block.pair("id", Role::Plain, record.id.as_str());
    block.maybe("name", Role::Plain, record.name.as_deref());
    block.pair(
        "profile",
        Role::Plain,
        &format!("{} {}", record.profile.id, record.profile.version),
    );
    block.pair("extension", Role::Plain, record.extension.as_str());
    block.pair("host", Role::Plain, record.host.as_str());
    block.maybe("workdir", Role::Plain, record.workdir.as_deref());
    block.pair("since", Role::Plain, &ago(record.since));
    block.maybe("observed", Role::Plain, record.observed_at.map(ago));
    block.pair("created", Role::Plain, &format!("{} by {}", ago(record.created_at), record.actor));
    block.maybe("ready", Role::Plain, record.ready_at.map(ago));
    let deadline =
        record.expires_at.map(|end| format!(" ({})", date(end, present.zone))).unwrap_or_default();
    let role =
        if record.expires_at.is_some_and(|end| end <= now) { Role::Warn } else { Role::Plain };
    block.pair("deadline", role, &format!("{}{deadline}", left(record.expires_at, now)));
    block.maybe("at most", Role::Dim, record.max_expires_at.map(|end| date(end, present.zone)));
    for (key, value) in &record.labels {
        let role = if key == "protect" { Role::Warn } else { Role::Plain };
        block.pair("label", role, &format!("{key}={value}"));
    }
}

fn reach(block: &mut TextBlock, record: &SandboxRecord) {
    let Some(reach) = &record.reachability else { return };
    block.heading("Reach it");
    block.pair("ssh", Role::Code, &reach.ssh);
    for endpoint in &reach.endpoints {
        block.gap();
        let ports = format!(
            "{} {} -> {}/{}",
            endpoint.service, endpoint.container_port, endpoint.host_port, endpoint.protocol
        );
        block.pair("endpoint", Role::Plain, &ports);
        block.pair("url", Role::Code, &endpoint.url);
        block.maybe("tunnel", Role::Code, endpoint.tunnel.as_deref());
    }
    for attachment in &reach.attachments {
        let text = format!(
            "{} ({}, {}, {})",
            attachment.local, attachment.provider, attachment.id, attachment.state
        );
        block.pair("attachment", Role::Plain, &text);
    }
}

fn services(block: &mut TextBlock, record: &SandboxRecord) {
    if record.services.is_empty() {
        return;
    }
    block.heading("Services");
    for service in &record.services {
        let degraded = record.state == State::Ready && service.is_degraded();
        let (role, mark) = if degraded { (Role::Bad, "✗ ") } else { (Role::Good, "● ") };
        let role = if record.state == State::Ready { role } else { Role::Dim };
        block.pair(&service.name, role, &format!("{mark}{}", service_words(service)));
    }
}

fn service_words(service: &Service) -> String {
    let mut words = vec![service.state.clone()];
    words.extend(service.exit_code.map(|code| format!("exit {code}")));
    let restarts = service.restarts.filter(|count| *count > 0);
    let times = |count| if count == 1 { "once".to_owned() } else { format!("{count} times") };
    words.extend(restarts.map(|count| format!("restarted {}", times(count))));
    words.extend(service.health.as_ref().map(|health| format!("health {health}")));
    words.join(", ")
}

fn host_section(block: &mut TextBlock, record: &SandboxRecord, host: Option<&Host>, now: Time) {
    let Some(host) = host else { return };
    block.heading(&format!("Host {}", record.host));
    let since = |time: Option<Time>| {
        time.map(|time| format!(" for {}", age(now.since(time).as_secs()))).unwrap_or_default()
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
    block.maybe("ssh", Role::Code, host.view.ssh.as_deref().map(|target| format!("ssh {target}")));
    block.maybe("says", Role::Plain, host.view.message.as_deref());
    block.maybe("hint", Role::Key, host.view.hint.as_deref());
    let error = host
        .services_error
        .as_ref()
        .map(|problem| format!("cannot be asked for: {}", problem.message));
    block.maybe("services", Role::Warn, error);
    let next = host.next.filter(|next| *next > now && host.standing(now) == Standing::Down);
    block.maybe(
        "next try",
        Role::Dim,
        next.map(|next| format!("in {}", age(next.since(now).as_secs()))),
    );
}

fn settings(block: &mut TextBlock, record: &SandboxRecord) {
    if !record.inputs.is_empty() {
        block.heading("Inputs");
        for (name, value) in &record.inputs {
            block.pair(name, Role::Plain, value);
        }
    }
    if let Some(route) = &record.route {
        block.heading("Placement");
        block.pair(route.host.as_str(), Role::Good, &route.reason);
        for verdict in route.verdicts.iter().filter(|verdict| verdict.host != route.host) {
            block.pair(
                verdict.host.as_str(),
                if verdict.ok { Role::Plain } else { Role::Warn },
                &verdict.reason,
            );
        }
    }
    if !record.rewrites.is_empty() {
        block.heading("Changed in the compose file");
        for rewrite in &record.rewrites {
            block.text(Role::Plain, 2, &format!("{}: {}", rewrite.path, rewrite.what));
        }
    }
    let money = [("quote", record.quote_usd), ("held", record.hold_usd), ("cost", record.cost_usd)];
    if money.iter().any(|(_, amount)| amount.is_some()) {
        block.heading("Credits");
        for (key, amount) in money {
            block.maybe(key, Role::Plain, amount.map(|amount| amount.to_string()));
        }
    }
}

fn teardown(block: &mut TextBlock, record: &SandboxRecord) {
    if !record.teardown.is_empty() {
        block.heading("Teardown");
        for line in &record.teardown {
            let role = match line.outcome {
                TeardownOutcome::Removed => Role::Good,
                TeardownOutcome::Failed => Role::Bad,
                TeardownOutcome::Absent | TeardownOutcome::Foreign | TeardownOutcome::Other(_) => {
                    Role::Dim
                }
            };
            let reason =
                line.reason.as_ref().map(|reason| format!(": {reason}")).unwrap_or_default();
            block.pair(
                line.outcome.as_str(),
                role,
                &format!("{} {}{reason}", line.resource.kind, line.resource.id),
            );
        }
    }
    if !record.leftovers.is_empty() {
        block.heading("Left on the host");
        for resource in &record.leftovers {
            block.pair(&resource.kind, Role::Warn, &resource.id);
        }
    }
    for (kind, count) in &record.not_preserved {
        block.pair("not preserved", Role::Warn, &format!("{count} {kind}"));
    }
}

fn certified(block: &mut TextBlock, certificate: &Certificate) {
    block.heading("Certificate of the compose runtime");
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

fn inventory(block: &mut TextBlock, facts: &HostFacts, now: Time) {
    block.heading(&format!(
        "Inventory of {}, {} ago",
        facts.hostname,
        age(now.since(facts.at).as_secs())
    ));
    let os = facts.os.as_deref().unwrap_or("unknown system");
    block.pair("system", Role::Plain, &format!("{os}, {}", facts.kernel));
    block.pair("account", Role::Plain, &format!("{} ({})", facts.user, facts.uid));
    block.pair("load", Role::Plain, &format!("{:.2} on {} processors", facts.load1, facts.cpus));
    let memory =
        format!("{} free of {}", bytes(facts.mem_available_bytes), bytes(facts.mem_total_bytes));
    block.pair("memory", Role::Plain, &memory);
    if let Some(disk) = &facts.disk {
        block.pair(
            "disk",
            Role::Plain,
            &format!(
                "{} free of {} ({})",
                bytes(disk.available_bytes),
                bytes(disk.total_bytes),
                disk.path
            ),
        );
    }
    if let Some(offset) = facts.clock_offset_s.filter(|offset| offset.abs() > 2.0) {
        block.pair("clock", Role::Warn, &format!("{offset:+.1} s from ours"));
    }
    for runtime in &facts.runtimes {
        block.pair(
            "runtime",
            Role::Plain,
            &format!("{} {} ({})", runtime.flavour, runtime.version, runtime.engine),
        );
        if let Some(escape) = runtime.builds_escape() {
            block.pair("builds", Role::Warn, &escape);
        }
    }
    if !facts.tools.is_empty() {
        block.pair(
            "tools",
            Role::Plain,
            &facts.tools.keys().cloned().collect::<Vec<_>>().join(", "),
        );
    }
    if let Some(found) = &facts.inventory {
        block.pair("sandboxes", Role::Plain, &found.sandboxes.len().to_string());
        for item in &found.sandboxes {
            let owner = item.owner.as_deref().unwrap_or("no owner");
            let text = format!(
                "{owner}: {} containers, {} networks, {} volumes, {}",
                item.containers.len(),
                item.networks.len(),
                item.volumes.len(),
                item.directory.as_deref().unwrap_or("no directory"),
            );
            block.pair(&item.sandbox_id, Role::Dim, &text);
        }
    }
}
