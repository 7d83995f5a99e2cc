//! A sandbox record in words: the block that `get` and `create` print, the cells of `list`, a failure's evidence.

use super::output::{CliError, Context, OutputOptions, Tone};
use super::table::Line;
use crate::client::Client;
use crate::domain::figures::{self, age_of};
use crate::domain::patch::{AppliedPatch, PatchState};
use crate::domain::pending_patches::{Blocked, pending_patches};
use crate::domain::request::counted;
use crate::domain::route::{Attempt, CandidateVerdict};
use crate::domain::sandbox::{Attachment, Failure, Service};
use crate::domain::teardown::TeardownLine;
use crate::domain::telling::{folded, telling_lines};
use crate::domain::text::{clean_block, clean_line, last_lines};
use crate::domain::{SandboxRecord, State, Time};

/// Older observations than this are shown with their age in a list: seconds.
const FRESH: u64 = 300;
/// Lines of a failed step that are shown; `get --json` has all that is kept.
const EVIDENCE: usize = 20;
/// The widest a service's name and state get in a cell, in columns: the cell is never cut, and others need room.
const NAME: usize = 16;
/// The widest a value in a block gets, in columns.
const VALUE: usize = 1000;

/// The state and what qualifies it: what is being done now, dead services, and how old the observation is, from `fresh` seconds on.
pub(super) fn state(record: &SandboxRecord, now: Time, fresh: u64) -> String {
    let mut words = vec![record.state.to_string()];
    words.extend(degraded(record));
    words.extend(match record.patch_state {
        PatchState::Pending => Some("patches pending".to_owned()),
        PatchState::Failed => Some("patch failed".to_owned()),
        PatchState::Unknown => Some("patch unknown".to_owned()),
        PatchState::None | PatchState::Applying | PatchState::Applied | PatchState::Other(_) => {
            None
        }
    });
    if let Some(operation) = &record.operation {
        // In these states the state itself says what is being done.
        if !matches!(record.state, State::Requested | State::Provisioning | State::Destroying) {
            words.push(operation.kind.to_string());
        }
    }
    // A host that does not answer changes no state: then the state is only what was seen last. Of the other
    // states nothing is on a host that could have changed since.
    let may_differ =
        matches!(record.state, State::Ready | State::Sleeping | State::Lost | State::Destroying);
    if let Some(seen) = record.observed_at.filter(|_| may_differ)
        && now.since(seen).as_secs() >= fresh
    {
        words.push(format!("as of {} ago", age_of(seen, now)));
    }
    words.join(", ")
}

/// Which service should run and does not; of several the first, and how many more.
pub(super) fn degraded(record: &SandboxRecord) -> Option<String> {
    let mut services = record.degraded();
    let first = services.next()?;
    let exit = first.exit_code.map(|code| format!(" {code}")).unwrap_or_default();
    let more = match services.count() {
        0 => String::new(),
        more => format!(" +{more}"),
    };
    Some(format!(
        "degraded: {} {}{exit}{more}",
        clean_line(&first.name, NAME),
        clean_line(&first.state, NAME)
    ))
}

/// `web: exited, exit status 137, restarted 3 times, unhealthy`.
fn service(service: &Service) -> String {
    let mut words = vec![service.state.clone()];
    words.extend(service.exit_code.map(|code| format!("exit status {code}")));
    words.extend(match service.restarts {
        None | Some(0) => None,
        Some(1) => Some("restarted once".to_owned()),
        Some(times) => Some(format!("restarted {times} times")),
    });
    words.extend(service.health.clone().filter(|health| !health.is_empty()));
    format!("{}: {}", service.name, words.join(", "))
}

/// What is left of its time.
pub(super) fn left(record: &SandboxRecord, now: Time) -> String {
    match record.expires_at {
        _ if record.state.is_over() => "-".to_owned(),
        None => "-".to_owned(),
        deadline => figures::left(deadline, now),
    }
}

/// The row of `list`.
pub(super) fn row(record: &SandboxRecord, now: Time) -> Line {
    let tone = match record.state {
        State::Failed | State::Lost => Tone::Bad,
        State::Requested | State::Provisioning | State::Destroying => Tone::Busy,
        State::Destroyed | State::Forgotten => Tone::Faint,
        _ if record.degraded().next().is_some() => Tone::Bad,
        State::Ready | State::Sleeping | State::Other(_) => Tone::Plain,
    };
    let cells = vec![
        record.id.to_string(),
        record.name.clone().unwrap_or_else(|| "-".to_owned()),
        state(record, now, FRESH),
        record.profile.id.as_str().trim_start_matches("profile.").to_owned(),
        record.host.to_string(),
        age_of(record.created_at, now),
        left(record, now),
    ];
    Line { tone, cells }
}

/// Prints one record for a person.
pub(super) fn print(context: &mut Context<'_>, record: &SandboxRecord) -> Result<(), CliError> {
    block(context, &fields(record, context.now()))?;
    for line in evidence(record, context.options) {
        context.line(&line)?;
    }
    Ok(())
}

/// Names and values of a record.
pub(super) fn fields(record: &SandboxRecord, now: Time) -> Vec<(&'static str, String)> {
    let mut fields = vec![("id", record.id.to_string())];
    let mut add =
        |key: &'static str, value: Option<String>| fields.extend(value.map(|value| (key, value)));
    add("name", record.name.clone());
    add("state", Some(state(record, now, 1)));
    add("reason", record.reason.as_ref().map(ToString::to_string));
    add("message", record.message.clone());
    add("profile", Some(format!("{} {}", record.profile.id, record.profile.version)));
    add("host", Some(record.host.to_string()));
    add("created", Some(format!("{} ({} ago)", record.created_at, age_of(record.created_at, now))));
    add("expires", Some(expires(record, now)));
    for (key, value) in &record.labels {
        add("label", Some(format!("{key}={value}")));
    }
    add("undo of", record.undo_of.as_ref().map(ToString::to_string));
    add("workdir", record.workdir.clone());
    add("ssh", record.reachability.as_ref().and_then(|it| it.ssh_command()).map(str::to_owned));
    for one in &record.services {
        add("service", Some(service(one)));
    }
    for endpoint in record.reachability.iter().flat_map(|reach| &reach.endpoints) {
        add(
            "endpoint",
            Some(format!("{}:{}  {}", endpoint.service, endpoint.container_port, endpoint.url)),
        );
        add("tunnel", endpoint.tunnel.clone());
    }
    for attachment in record.reachability.iter().flat_map(|reach| &reach.attachments) {
        let Attachment { provider, id, local, state } = attachment;
        add("attached", Some(format!("{local}  by {provider} ({id}, {state})")));
    }
    for rewrite in &record.rewrites {
        add("rewritten", Some(format!("{}: {}", rewrite.path, rewrite.what)));
    }
    add("not kept", (!record.not_preserved.is_empty()).then(|| counted(&record.not_preserved)));
    let money = [("quote", record.quote_usd), ("held", record.hold_usd), ("cost", record.cost_usd)];
    for (key, amount) in money {
        add(key, amount.map(|usd| usd.to_string()));
    }
    let candidates = record.route.iter().flat_map(|route| &route.candidates);
    for candidate in candidates {
        add("route", Some(route(candidate)));
    }
    // Records of earlier versions have verdicts there, of hosts on which nothing was tried.
    for attempt in record.attempts.iter().filter(|attempt| attempt.extension.is_some()) {
        add("attempt", Some(tried(attempt)));
    }
    fields
}

/// Verdict on a candidate of the profile's routing, in a line.
pub(super) fn route(candidate: &CandidateVerdict) -> String {
    let word = match (&candidate.condition, candidate.ok) {
        (_, true) => "yes".to_owned(),
        (Some(condition), false) => format!("no, {condition}"),
        (None, false) => "no".to_owned(),
    };
    let price = candidate.quote_usd.map(|usd| format!(", {usd}")).unwrap_or_default();
    format!("{} ({word}{price}): {}", candidate.extension, candidate.reason)
}

/// How an attempt ended: where, why, what it cost.
fn tried(attempt: &Attempt) -> String {
    let extension = attempt.extension.as_ref().map(ToString::to_string).unwrap_or_default();
    let word = if attempt.ok { "took it" } else { "failed" };
    let cost = attempt.cost_usd.map(|usd| format!(", {usd}")).unwrap_or_default();
    format!("{extension} on {} ({word}{cost}): {}", attempt.host, attempt.reason)
}

fn expires(record: &SandboxRecord, now: Time) -> String {
    match record.expires_at {
        Some(end) if record.state.is_over() => end.to_string(),
        Some(end) => {
            let word = if end > now { " left" } else { "" };
            format!("{end} ({}{word})", figures::left(Some(end), now))
        }
        None => "never".to_owned(),
    }
}

/// Prints names and values in two columns; values are cleaned.
pub(super) fn block(context: &mut Context<'_>, fields: &[(&str, String)]) -> Result<(), CliError> {
    let options = context.options;
    let wide = fields.iter().map(|(key, _)| key.len()).max().unwrap_or_default();
    let paints = context.paints();
    for (key, value) in fields {
        let key = Tone::Faint.paint(&format!("{key:wide$}"), paints);
        context.line(format!("{key}  {}", options.clean(value, VALUE)).trim_end())?;
    }
    Ok(())
}

/// The step that failed, why, and the last lines it wrote. Cleaned.
pub(super) fn failure(failure: &Failure, options: OutputOptions) -> Vec<String> {
    let status =
        failure.exit_status.map(|status| format!(" (exit status {status})")).unwrap_or_default();
    let mut lines = vec![format!("failed step: {}{status}", options.clean(&failure.step, VALUE))];
    let output = clean_block(&failure.output);
    let telling = telling_lines(&output);
    if telling.len() == output.lines().count() {
        lines.extend(quoted(&output, options));
        return lines;
    }
    lines.extend(telling.iter().map(|line| format!("  {}", options.clean(line, VALUE))));
    lines.push("its last lines:".to_owned());
    lines.extend(quoted(&folded(&output), options));
    lines
}

/// The run that keeps a sandbox's later patches from it. One that was taken away from the snapshot stays on the record, and
/// stands in nobody's way.
pub(super) async fn standing_in_the_way(
    client: &dyn Client,
    record: &SandboxRecord,
) -> Vec<AppliedPatch> {
    let Some(base) = &record.based_on_snapshot else { return Vec::new() };
    let Ok(view) = client.snapshot_view(base.as_str()).await else { return Vec::new() };
    match pending_patches(record, &view.patches, false).blocked {
        Some(Blocked::Failed(applied) | Blocked::Unknown(applied)) => vec![applied.clone()],
        None => Vec::new(),
    }
}

/// How a patch ended, and what it wrote last. Cleaned.
pub(super) fn patch_output(applied: &AppliedPatch, options: OutputOptions) -> Vec<String> {
    let status =
        applied.exit_status.map(|status| format!(" (exit status {status})")).unwrap_or_default();
    let mut lines = vec![format!("patch {} {}{status}", applied.sequence, applied.state)];
    lines.extend(applied.output.iter().flat_map(|output| quoted(output, options)));
    lines
}

/// The last lines that a program wrote, each marked as quoted. Cleaned.
pub(super) fn quoted(output: &str, options: OutputOptions) -> Vec<String> {
    let output = clean_block(&last_lines(output, EVIDENCE));
    output.lines().map(|line| format!("  | {}", options.clean(line, VALUE))).collect()
}

/// What is known of a failure: the step, its last lines, what is left on the host. Cleaned.
pub(super) fn evidence(record: &SandboxRecord, options: OutputOptions) -> Vec<String> {
    let mut lines = Vec::new();
    lines.extend(record.failure.iter().flat_map(|failed| failure(failed, options)));
    lines.extend(
        record
            .teardown
            .iter()
            .filter_map(TeardownLine::left_alone)
            .map(|line| options.clean(&line, VALUE)),
    );
    if !record.leftovers.is_empty() {
        lines.push(format!("left on {}:", options.clean(record.host.as_str(), VALUE)));
        for resource in &record.leftovers {
            lines.push(format!(
                "  {} {}",
                options.clean(&resource.kind, VALUE),
                options.clean(&resource.id, VALUE)
            ));
        }
    }
    lines
}
