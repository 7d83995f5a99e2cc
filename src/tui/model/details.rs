//! One sandbox's whole record, as text to be read.

use jiff::tz::TimeZone;

use super::cost::hourly;
use super::decision::{candidate_line, place_of_taker};
use super::event_words::{event_glyph, event_words};
use super::host_summary::host_summary;
use super::hosts::Host;
use super::snapshots::Snapshots;
use super::text_block::{Role, TextBlock};
use super::words::{Present, clock, date, state_glyph, state_role};
use super::{Load, failure, host_details, lineage};
use crate::domain::event::Event;
use crate::domain::figures::{age_of, left};
use crate::domain::host_view::HostState;
use crate::domain::name::SandboxId;
use crate::domain::raw_json::RawJson;
use crate::domain::route::Attempt;
use crate::domain::sandbox::{SandboxRecord, Service};
use crate::domain::teardown::TeardownOutcome;
use crate::domain::telling::last_telling_line;
use crate::domain::{State, Time};

/// Extent of what is told of a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Extent {
    /// All of it.
    Whole,
    /// What the record alone tells: nobody reads events for a row that the cursor only passes.
    Record,
}

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
    extent: Extent,
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
            extent: Extent::Whole,
        }
    }

    /// A record beside the list.
    pub fn beside_list(record: SandboxRecord) -> Self {
        Self { extent: Extent::Record, ..Self::new(record) }
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
        if host.is_some_and(|host| host.view.state == HostState::Down) {
            block.pair(
                "seen",
                Role::Warn,
                "its host does not answer: this is what was, not what is",
            );
        }
        if let Some(failed) = &record.failure {
            failure::section(&mut block, failed);
        }
        reach(&mut block, record);
        services(&mut block, record);
        match self.extent {
            Extent::Whole => self.timeline(&mut block, present.zone),
            Extent::Record => {}
        }
        lineage::of_sandbox(&mut block, record, snapshots, now);
        rewrites(&mut block, record);
        teardown(&mut block, record);
        identity(&mut block, record, present);
        settings(&mut block, record);
        routing(&mut block, record, present);
        block.heading(&format!("Host {}", record.host));
        match host {
            Some(host) => {
                host_details::standing(&mut block, host, now);
                host_details::figures(&mut block, host, now);
            }
            None => block.text(Role::Dim, 2, "not in the configuration: nobody asks it"),
        }
        // Nothing younger is known of it.
        let unasked =
            host.is_none_or(|host| host.history.last().is_none() && host.view.facts.is_none());
        if let Some(then) = record.telemetry.as_ref().and_then(RawJson::read).filter(|_| unasked) {
            host_summary(&mut block, &then, now);
        }
        if let Some(certificate) = record.certificate.as_ref().and_then(RawJson::read) {
            host_details::certified(&mut block, &certificate, now);
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
        let since = age_of(running.started_at, now);
        let who = format!(
            "{} for {since}, by {} in process {} on {}",
            running.kind, running.actor, running.pid, running.host
        );
        block.pair("operation", Role::Busy, &who);
        if running.cancel_requested {
            block.pair("", Role::Warn, "its end was asked for");
        }
    }
    block.pair("since", Role::Plain, &ago(record.since));
    block.maybe("observed", Role::Plain, record.observed_at.map(ago));
    let deadline = record.expires_at.map(|end| {
        let word = if end > now { " left" } else { "" };
        format!("{word} ({})", date(end, present.zone))
    });
    let deadline = deadline.unwrap_or_default();
    let role =
        if record.expires_at.is_some_and(|end| end <= now) { Role::Warn } else { Role::Plain };
    block.pair("deadline", role, &format!("{}{deadline}", left(record.expires_at, now)));
    for (key, value) in &record.labels {
        let role = if key == "protect" { Role::Warn } else { Role::Plain };
        block.pair("label", role, &format!("{key}={value}"));
    }
}

/// What it is, and what it was made from.
fn identity(block: &mut TextBlock, record: &SandboxRecord, present: Present<'_>) {
    let ago = |time: Time| present.ago(time);
    block.heading("Record");
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
    block.pair("created", Role::Plain, &format!("{} by {}", ago(record.created_at), record.actor));
    block.maybe("ready", Role::Plain, record.ready_at.map(ago));
    block.maybe("at most", Role::Dim, record.max_expires_at.map(|end| date(end, present.zone)));
}

fn reach(block: &mut TextBlock, record: &SandboxRecord) {
    let Some(reach) = &record.reachability else { return };
    block.heading("Reach it");
    block.maybe("ssh", Role::Code, reach.ssh_command());
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

fn rewrites(block: &mut TextBlock, record: &SandboxRecord) {
    if !record.rewrites.is_empty() {
        block.heading("Changed in the compose file");
        for rewrite in &record.rewrites {
            block.text(Role::Plain, 2, &format!("{}: {}", rewrite.path, rewrite.what));
        }
    }
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
    let money = [
        ("quote", record.quote_usd),
        ("held", record.hold_usd),
        ("cost", record.cost_usd),
        ("per hour", hourly(record)),
    ];
    if money.iter().any(|(_, amount)| amount.is_some()) {
        block.heading("Credits");
        for (key, amount) in money {
            block.maybe(key, Role::Plain, amount.map(|amount| amount.to_string()));
        }
    }
}

/// Which candidate took the request and why not the others; how each attempt ended.
fn routing(block: &mut TextBlock, record: &SandboxRecord, present: Present<'_>) {
    let candidates = record.route.as_ref().map_or(&[][..], |route| &route.candidates);
    let place = place_of_taker(candidates);
    for (at, candidate) in candidates.iter().enumerate() {
        if at == 0 {
            block.heading("Route");
        }
        let taken = place == Some(at);
        let (role, words) = candidate_line(candidate, taken);
        block.text(role, 0, &words);
        for verdict in candidate.verdicts.iter().filter(|verdict| !taken || !verdict.ok) {
            let role = if verdict.ok { Role::Dim } else { Role::Warn };
            block.text(role, 6, &format!("{}: {}", verdict.host, verdict.reason));
        }
    }
    // Records of earlier versions have verdicts there, of hosts on which nothing was tried.
    let tried = record.attempts.iter().filter(|attempt| attempt.extension.is_some());
    for (at, attempt) in tried.enumerate() {
        if at == 0 {
            block.heading("Attempts");
        }
        let extension = attempt.extension.as_ref().map(ToString::to_string).unwrap_or_default();
        let (glyph, role) = if attempt.ok { ('✓', Role::Good) } else { ('✗', Role::Bad) };
        let cost = attempt.cost_usd.map(|cost| format!("  cost {cost}")).unwrap_or_default();
        let Attempt { host, reason, .. } = attempt;
        block.text(role, 2, &format!("{glyph} {extension} on {host}: {reason}{cost}"));
        let when = attempt.at.map(|at| present.ago(at));
        let step = attempt.failure.as_ref().map(|failed| {
            let exit = failed.exit_status.map(|status| format!(", exit {status}"));
            let said = last_telling_line(&failed.output).unwrap_or_default();
            format!("step {}{}: {said}", failed.step, exit.unwrap_or_default())
        });
        for words in when.into_iter().chain(step) {
            block.text(Role::Dim, 6, &words);
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
