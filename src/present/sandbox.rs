//! Sandbox: the columns of its table, what is wrong with it, and its record to be read.

use super::count::{counts, many};
use super::credit::hourly;
use super::document::Document;
use super::failure::{self, exit};
use super::moment::Present;
use super::role::Role;
use super::route;
use super::sign::{patch_glyph, patch_role, state_glyph, state_role};
use super::table::{Column, or_nothing};
use crate::domain::figures::{age_of, left, usd};
use crate::domain::patch::PatchState;
use crate::domain::sandbox::{Running, Service};
use crate::domain::teardown::TeardownOutcome;
use crate::domain::telling::last_telling_line;
use crate::domain::text::columns;
use crate::domain::{SandboxRecord, State, Time};

/// Older observations than this are told with their age where nobody knows whether the host is silent: seconds.
const FRESH: u64 = 300;
/// Columns that a command's table gives what is wrong, about.
const WHAT: usize = 60;

pub(crate) const ID: Column<SandboxRecord> = Column::whole("ID", |record, _| record.id.to_string());
pub(crate) const NAME: Column<SandboxRecord> =
    Column::new("NAME", |record, _| or_nothing(record.name.as_ref()));
pub(crate) const PROFILE: Column<SandboxRecord> =
    Column::new("PROFILE", |record, _| short_profile(record.profile.id.as_str()).to_owned());
pub(crate) const HOST: Column<SandboxRecord> =
    Column::new("HOST", |record, _| record.host.to_string());
pub(crate) const STATE: Column<SandboxRecord> =
    Column::whole("STATE", |record, _| state_word(record).to_owned());
pub(crate) const AGE: Column<SandboxRecord> =
    Column::whole("AGE", |record, now| age_of(record.created_at, now));
/// Time left; nothing where there is no deadline, or none that counts yet.
pub(crate) const TTL: Column<SandboxRecord> = Column::whole("TTL", |record, now| {
    let counts = matches!(record.state, State::Ready | State::Sleeping | State::Lost);
    let end = record.expires_at.filter(|_| counts || record.kept_failed);
    end.map(|end| left(Some(end), now)).unwrap_or_default()
});
/// Cost so far.
pub(crate) const COST: Column<SandboxRecord> =
    Column::whole("COST", |record, _| or_nothing(record.cost_usd.map(usd)));
/// Cost of an hour.
pub(crate) const HOURLY: Column<SandboxRecord> =
    Column::whole("$/H", |record, _| or_nothing(hourly(record).map(usd)));
/// Work on it, or what is wrong with it, by its record alone.
pub(crate) const WHAT_IS: Column<SandboxRecord> = Column::new("WHAT", |record, now| {
    let (_, what) = what(record, std::slice::from_ref(&record.patch_state), now, WHAT);
    let words = [what, not_observed(record, now).unwrap_or_default()];
    words.into_iter().filter(|word| !word.is_empty()).collect::<Vec<_>>().join(", ")
});

/// A profile's id without `profile.`.
pub(crate) fn short_profile(id: &str) -> &str {
    id.strip_prefix("profile.").unwrap_or(id)
}

pub(crate) fn state_word(record: &SandboxRecord) -> &str {
    match &record.state {
        _ if record.degraded().next().is_some() => "degraded",
        State::Requested | State::Provisioning => "creating",
        state => state.as_str(),
    }
}

/// How that word is meant.
pub(crate) fn role(record: &SandboxRecord) -> Role {
    if record.degraded().next().is_some() { Role::Warn } else { state_role(&record.state) }
}

/// How old an observation is on which something may hang that changed since. A host that does not answer changes no state.
fn not_observed(record: &SandboxRecord, now: Time) -> Option<String> {
    let may_differ =
        matches!(record.state, State::Ready | State::Sleeping | State::Lost | State::Destroying);
    let seen = record.observed_at.filter(|_| may_differ)?;
    (now.since(seen).as_secs() >= FRESH).then(|| format!("as of {} ago", age_of(seen, now)))
}

/// Work on a sandbox, else what is wrong with it, in as few words as `width` columns hold: how it is, where it is
/// worked on by nobody and not gone, is told by its services, by its patches (each as it stands), and whether it is protected.
pub(crate) fn what(
    record: &SandboxRecord,
    patches: &[PatchState],
    now: Time,
    width: usize,
) -> (Role, String) {
    if let Some(running) = &record.operation {
        let asked = if running.cancel_requested { "cancelling " } else { "" };
        let since = age_of(running.started_at, now);
        return (Role::Busy, format!("{asked}{} {since} by {}", running.kind, running.actor.name));
    }
    match record.state {
        State::Failed => (Role::Bad, failed(record, width)),
        State::Lost | State::Destroying => {
            let ago = age_of(record.since, now);
            let message = record.message.as_deref().unwrap_or("nothing of it is left");
            (Role::Warn, format!("{ago} ago: {message}"))
        }
        _ => standing(record, patches),
    }
}

fn standing(record: &SandboxRecord, patches: &[PatchState]) -> (Role, String) {
    let stuck = patches.contains(&PatchState::Failed) || patches.contains(&PatchState::Unknown);
    if let Some(degraded) = degraded(record) {
        // A patch that failed may be why; there is no room for two sentences.
        let patch = if stuck { ", patch failed" } else { "" };
        return (Role::Warn, format!("{degraded}{patch}"));
    }
    if stuck {
        let error = record.patch_error.as_deref().unwrap_or("a patch failed");
        return (Role::Bad, error.to_owned());
    }
    let waiting = patches.iter().filter(|state| **state == PatchState::Pending).count();
    if waiting > 0 {
        return (Role::Warn, format!("{} pending", many(waiting, "patch", "patches")));
    }
    if record.is_protected() {
        return (Role::Dim, "protected".to_owned());
    }
    (Role::Plain, String::new())
}

/// `up: connection refused`: the step, and of what it wrote the end of the line that says why.
fn failed(record: &SandboxRecord, width: usize) -> String {
    let message = record.message.as_deref().unwrap_or("it failed");
    let Some(failure) = &record.failure else { return message.to_owned() };
    let line = last_telling_line(&failure.output).unwrap_or(message);
    let room = width.saturating_sub(columns(&failure.step) + 2);
    format!("{}: {}", failure.step, ending(line, room))
}

/// The end of a sentence of the form `where: what: why`, from the first part from which on it fits; at least its last part.
pub(crate) fn ending(line: &str, room: usize) -> &str {
    let mut rest = line;
    while columns(rest) > room
        && let Some((_, shorter)) = rest.split_once(": ")
    {
        rest = shorter;
    }
    rest
}

/// `db exit 137, web restarting`: services that should run and do not.
pub(crate) fn degraded(record: &SandboxRecord) -> Option<String> {
    let words = record.degraded().map(|service| {
        let Service { name, state, exit_code, .. } = service;
        match (state.as_str(), exit_code) {
            ("exited", Some(code)) => format!("{name} exit {code}"),
            (state, Some(code)) => format!("{name} {state} (exit {code})"),
            (state, None) => format!("{name} {state}"),
        }
    });
    let words = words.collect::<Vec<_>>().join(", ");
    (!words.is_empty()).then_some(words)
}

/// `recreate for 40s, by adm:kim in process 4711 on box`.
pub(crate) fn running_words(running: &Running, now: Time) -> String {
    let since = age_of(running.started_at, now);
    let Running { kind, actor, pid, host, .. } = running;
    format!("{kind} for {since}, by {actor} in process {pid} on {host}")
}

/// Adds what it is, and what it was made from.
pub(crate) fn identity(document: &mut Document, record: &SandboxRecord, present: Present<'_>) {
    document.plain("id", &record.id);
    document.maybe("name", Role::Plain, record.name.as_deref());
    document.plain("profile", format!("{} {}", record.profile.id, record.profile.version));
    document.plain("extension", &record.extension);
    document.plain("host", &record.host);
    document.maybe("workdir", Role::Plain, record.workdir.as_deref());
    document.maybe("undo of", Role::Plain, record.undo_of.as_ref().map(ToString::to_string));
    document.plain("created", format!("{} by {}", present.ago(record.created_at), record.actor));
    document.maybe("ready", Role::Plain, record.ready_at.map(|at| present.ago(at)));
    document.maybe("at most", Role::Dim, record.max_expires_at.map(|end| present.date(end)));
}

/// Adds how it is, since when and until when, and why it failed.
pub(crate) fn overview(document: &mut Document, record: &SandboxRecord, present: Present<'_>) {
    let sign = (state_glyph(&record.state), state_role(&record.state));
    document.signed("state", sign, record.state.as_str());
    document.maybe("reason", Role::Plain, record.reason.as_ref().map(ToString::to_string));
    document.maybe("message", Role::Plain, record.message.as_deref());
    if record.degraded().next().is_some() {
        let (role, words) = standing(record, std::slice::from_ref(&record.patch_state));
        document.pair("degraded", role, words);
    }
    let patches = &record.patch_state;
    if !matches!(patches, PatchState::None | PatchState::Applied | PatchState::Other(_)) {
        document.signed("patches", (patch_glyph(patches), patch_role(patches)), patches.as_str());
    }
    if let Some(running) = &record.operation {
        document.pair("operation", Role::Busy, running_words(running, present.now));
        if running.cancel_requested {
            document.pair("", Role::Warn, "its end was asked for");
        }
    }
    document.plain("since", present.ago(record.since));
    document.maybe("observed", Role::Plain, record.observed_at.map(|at| present.ago(at)));
    let over = record.expires_at.is_some_and(|end| end <= present.now);
    let deadline = match record.expires_at {
        Some(end) if record.state.is_over() => present.date(end),
        end => present.deadline(end),
    };
    document.pair("deadline", if over { Role::Warn } else { Role::Plain }, deadline);
    for (key, value) in &record.labels {
        let role = if key == "protect" { Role::Warn } else { Role::Plain };
        document.pair("label", role, format!("{key}={value}"));
    }
}

/// Adds how it is reached, and how its services are.
pub(crate) fn reach(document: &mut Document, record: &SandboxRecord) {
    if let Some(reach) = &record.reachability {
        document.heading("Reach it");
        document.maybe("ssh", Role::Code, reach.ssh_command());
        for endpoint in &reach.endpoints {
            let (from, to) = (endpoint.container_port, endpoint.host_port);
            document.plain(
                "endpoint",
                format!("{} {from} -> {to}/{}", endpoint.service, endpoint.protocol),
            );
            document.pair("url", Role::Code, &endpoint.url);
            document.maybe("tunnel", Role::Code, endpoint.tunnel.as_deref());
        }
        for attachment in &reach.attachments {
            let (local, provider) = (&attachment.local, &attachment.provider);
            let text = format!("{local} ({provider}, {}, {})", attachment.id, attachment.state);
            document.plain("attachment", text);
        }
    }
    if !record.services.is_empty() {
        document.heading("Services");
    }
    for service in &record.services {
        let sign = match (&record.state, service.is_degraded()) {
            (State::Ready, true) => ('✗', Role::Bad),
            (State::Ready, false) => ('●', Role::Good),
            (_, true) => ('✗', Role::Dim),
            (_, false) => ('●', Role::Dim),
        };
        document.signed(&service.name, sign, service_words(service));
    }
}

fn service_words(service: &Service) -> String {
    let mut words = vec![service.state.clone()];
    words.extend(service.exit_code.map(|code| format!("exit {code}")));
    let restarts = service.restarts.filter(|count| *count > 0);
    let times = |count| if count == 1 { "once".to_owned() } else { format!("{count} times") };
    words.extend(restarts.map(|count| format!("restarted {}", times(count))));
    let health = service.health.as_ref().filter(|health| !health.is_empty());
    words.extend(health.map(|health| format!("health {health}")));
    words.join(", ")
}

/// Adds the evidence of a failure: why, what its step wrote without what was told, what was removed and what is left.
pub(crate) fn evidence(document: &mut Document, record: &SandboxRecord, told: &[&str]) {
    if let Some(failed) = &record.failure {
        failure::section(document, failed, told);
    }
    teardown(document, record);
}

/// Adds what was changed in its compose file.
pub(crate) fn rewrites(document: &mut Document, record: &SandboxRecord) {
    if !record.rewrites.is_empty() {
        document.heading("Changed in the compose file");
    }
    for rewrite in &record.rewrites {
        document.text(Role::Plain, 2, format!("{}: {}", rewrite.path, rewrite.what));
    }
}

/// Adds what was removed of it, what is left, and what a restore could not set.
pub(crate) fn teardown(document: &mut Document, record: &SandboxRecord) {
    if !record.teardown.is_empty() {
        document.heading("Teardown");
    }
    for line in &record.teardown {
        let role = match line.outcome {
            TeardownOutcome::Removed => Role::Good,
            TeardownOutcome::Failed => Role::Bad,
            TeardownOutcome::Absent | TeardownOutcome::Foreign | TeardownOutcome::Other(_) => {
                Role::Dim
            }
        };
        let reason = line.reason.as_ref().map(|reason| format!(": {reason}")).unwrap_or_default();
        let (kind, id) = (&line.resource.kind, &line.resource.id);
        document.pair(line.outcome.as_str(), role, format!("{kind} {id}{reason}"));
    }
    if !record.leftovers.is_empty() {
        document.heading(format!("Left on {}", record.host));
    }
    for resource in &record.leftovers {
        document.pair(&resource.kind, Role::Warn, &resource.id);
    }
    let kinds = record.not_preserved.iter();
    let kinds =
        counts(kinds.map(|(kind, count)| (usize::try_from(*count).unwrap_or(usize::MAX), kind)));
    document.maybe("not preserved", Role::Warn, Some(kinds).filter(|kinds| !kinds.is_empty()));
}

/// Adds its inputs, where it was placed and why, and what it costs.
pub(crate) fn settings(document: &mut Document, record: &SandboxRecord, present: Present<'_>) {
    if !record.inputs.is_empty() {
        document.heading("Inputs");
    }
    for (name, value) in &record.inputs {
        document.pair(name, Role::Plain, value);
    }
    if let Some(route) = &record.route {
        document.heading("Placement");
        document.pair(route.host.as_str(), Role::Good, &route.reason);
        for verdict in route.verdicts.iter().filter(|verdict| verdict.host != route.host) {
            let role = if verdict.ok { Role::Plain } else { Role::Warn };
            document.pair(verdict.host.as_str(), role, &verdict.reason);
        }
    }
    credits(document, record);
    route::of_sandbox(document, record, present);
}

/// Adds what it costs.
pub(crate) fn credits(document: &mut Document, record: &SandboxRecord) {
    let money = [
        ("quote", record.quote_usd),
        ("held", record.hold_usd),
        ("cost", record.cost_usd),
        ("per hour", hourly(record)),
    ];
    if money.iter().any(|(_, amount)| amount.is_some()) {
        document.heading("Credits");
    }
    for (key, amount) in money {
        document.maybe(key, Role::Plain, amount.map(|amount| amount.to_string()));
    }
}

/// `step up, exit 125 on coulombcore`.
pub(crate) fn failed_step(record: &SandboxRecord) -> Option<String> {
    let failure = record.failure.as_ref()?;
    let (step, host) = (&failure.step, &record.host);
    Some(format!("step {step}{} on {host}", exit(failure.exit_status)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sentence_that_is_too_long_keeps_its_end() {
        let line = "Error: pinging container registry: connection refused";
        assert_eq!(ending(line, 80), line);
        assert_eq!(ending(line, 40), "connection refused");
        assert_eq!(ending(line, 48), "pinging container registry: connection refused");
        assert_eq!(ending(line, 3), "connection refused");
    }
}
