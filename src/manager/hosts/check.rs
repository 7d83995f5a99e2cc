//! Hosts as a face shows them: as configured, as last seen, and as probed now.

use std::collections::BTreeMap;
use std::sync::{Arc, PoisonError};
use std::time::{Duration, Instant};

use crate::domain::error::{Code, Error};
use crate::domain::facts::HostFacts;
use crate::domain::host::HostSpec;
use crate::domain::host_report::HostReport;
use crate::domain::host_sight::HostSight;
use crate::domain::host_view::{HostState, HostView};
use crate::domain::name::HostName;
use crate::domain::root::HostRecord;
use crate::domain::text::nearest;
use crate::domain::update::Update;
use crate::manager::deps::Deps;
use crate::manager::hosts::capacity::count_by_host;
use crate::manager::hosts::places::extension_at;
use crate::manager::hosts::report::{last_report, note_report};
use crate::manager::hosts::status::{report_host_error, report_host_status};
use crate::transport::probe::{self, ProbeRequest};
use crate::transport::{Command, Transport};

/// A round trip beyond which a host is shown as slow.
const SLOW: Duration = Duration::from_secs(1);

const PING_LIMIT: Duration = Duration::from_secs(10);

/// All configured hosts as last seen; contacts none.
pub(crate) async fn list_hosts(deps: &Deps) -> Result<Vec<HostView>, Error> {
    let counts = count_by_host(deps).await;
    let specs = deps.transports.hosts();
    let mut reports = Vec::with_capacity(specs.len());
    for spec in &specs {
        reports.push(deps.hosts.get(&spec.name).await);
    }
    let seen = deps.seen_hosts.lock().unwrap_or_else(PoisonError::into_inner);
    Ok(specs
        .iter()
        .zip(reports)
        .map(|(spec, report)| {
            let key = spec.name.as_str().to_ascii_lowercase();
            let mut view = seen.get(&key).cloned().unwrap_or_else(|| unseen(spec));
            note_last_report(&mut view, report);
            note_count(&mut view, &counts);
            view
        })
        .collect())
}

/// Connects to one host, probes it, and removes what forgotten sandboxes left there.
pub(crate) async fn check_host(deps: &Deps, name: &str) -> Result<HostView, Error> {
    let view = probe_host(deps, name).await?;
    if matches!(view.state, HostState::Up | HostState::Slow) {
        (deps.host_reached)(deps, &view.name).await;
    }
    Ok(view)
}

/// Connects to one host and probes it.
pub(crate) async fn probe_host(deps: &Deps, name: &str) -> Result<HostView, Error> {
    let spec = host_spec(deps, name)?;
    let mut view = unseen(&spec);
    let counts = count_by_host(deps).await;
    if spec.forbid.is_none() {
        view.checked_at = Some(deps.now());
        inspect_host(deps, &spec, &mut view).await;
    }
    note_count(&mut view, &counts);
    remember_host(deps, view.clone());
    Ok(view)
}

/// A host's configuration; `not_found`, with the nearest name.
pub(crate) fn host_spec(deps: &Deps, name: &str) -> Result<HostSpec, Error> {
    deps.transports.spec(&HostName::new(name)).ok_or_else(|| {
        let known: Vec<String> =
            deps.transports.hosts().iter().map(|spec| spec.name.to_string()).collect();
        let shown: String = name.chars().take(80).collect();
        let error = Error::new(Code::NotFound, format!("there is no host {shown:?}"));
        if let Some(extension) = extension_at(deps, &HostName::new(name)) {
            return error.hint(format!(
                "it is the place of {}; `sandboxer inspect stale --host {shown}` shows what is there",
                extension.id()
            ));
        }
        match nearest(&shown, known.iter().map(String::as_str)) {
            Some(near) => error.hint(format!("did you mean {near}?")),
            None => error.hint(format!("hosts are configured in {}", deps.settings.config_file)),
        }
    })
}

async fn inspect_host(deps: &Deps, spec: &HostSpec, view: &mut HostView) {
    let looked = async {
        let transport = deps.transports.open(&spec.name).await?;
        let latency = measure_way(transport.as_ref()).await?;
        let (facts, half) = take_inventory(deps, spec, transport.as_ref()).await?;
        Ok::<_, Error>((facts, half, latency))
    };
    match looked.await {
        Ok((facts, half, latency)) => {
            if let Some(error) = half {
                view.message = Some(error.sentence());
                view.hint = error.hint;
            }
            let machine_id = Some(facts.machine_id.clone()).filter(|id| !id.is_empty());
            report_host_status(deps, &spec.name, HostSight::Answers(machine_id), None).await;
            view.state = if latency > SLOW { HostState::Slow } else { HostState::Up };
            view.latency_ms = u64::try_from(latency.as_millis()).ok();
            view.facts = Some(facts);
        }
        Err(error) => {
            report_host_error(deps, &spec.name, &error).await;
            view.state = HostState::Down;
            view.message = Some(error.sentence());
            view.hint = error.hint;
        }
    }
}

/// The way to a host and back: measured already by what ran there, else by a command that does nothing.
async fn measure_way(transport: &dyn Transport) -> Result<Duration, Error> {
    if let Some(known) = transport.latency() {
        return Ok(known);
    }
    // The shell is opened by the first command: the second one measures the way and nothing else.
    transport.run(&Command::script(":"), PING_LIMIT).await?;
    let started = Instant::now();
    transport.run(&Command::script(":"), PING_LIMIT).await?;
    Ok(started.elapsed())
}

/// A host's facts with its inventory, in one round trip. Where a part of the inventory cannot be read there is none, and why;
/// the rest of the facts is asked for by itself then.
async fn take_inventory(
    deps: &Deps,
    spec: &HostSpec,
    transport: &dyn Transport,
) -> Result<(HostFacts, Option<Error>), Error> {
    let request = ProbeRequest {
        inventory: true,
        compose_cmd: compose_override(deps, spec)?,
        roots: deps.catalogue.workspace_roots().into_iter().collect(),
        known: last_report(deps, &spec.name).await.and_then(|report| report.detection),
        now: deps.now(),
    };
    let half = match probe::examine(transport, request.clone()).await {
        Ok(probed) => {
            let mut facts = probed.facts;
            deps.telemetry.with(&spec.name, |host| {
                host.learn(&facts, probed.containers);
                facts.inventory.iter_mut().for_each(|inventory| host.fill_sizes(inventory));
            });
            measure_directories(deps, &spec.name);
            let report = HostReport::of(facts.clone(), probed.detection);
            note_report(deps, &spec.name, report).await;
            return Ok((facts, None));
        }
        Err(error) if matches!(error.code, Code::OperationFailed | Code::Timeout) => error,
        Err(error) => return Err(error),
    };
    let request = ProbeRequest { inventory: false, now: deps.now(), ..request };
    // Garbage all the same: what was asked first says more of it.
    let facts = probe::probe(transport, request).await.map_err(|_| half.clone())?;
    Ok((facts, Some(half)))
}

/// Has the directories of a host measured, if that is due; nobody waits for it.
fn measure_directories(deps: &Deps, host: &HostName) {
    let now = deps.now();
    if !deps.telemetry.with(host, |telemetry| telemetry.begin_measuring(now)) {
        return;
    }
    let (deps, host) = (Arc::clone(deps), host.clone());
    Arc::clone(&deps).jobs.background(async move {
        let roots: Vec<String> = deps.catalogue.workspace_roots().into_iter().collect();
        let measured = async {
            let transport = deps.transports.open(&host).await?;
            probe::sizes(transport.as_ref(), &roots).await
        };
        let sizes = measured.await.inspect_err(|error| {
            tracing::warn!(%host, %error, "its directories could not be measured");
        });
        let now = deps.now();
        deps.telemetry.with(&host, |telemetry| telemetry.end_measuring(sizes.ok(), now));
        deps.measured.notify_waiters();
        show_sizes(&deps, &host);
    });
}

/// Puts sizes into what was seen of a host last, and tells listeners.
fn show_sizes(deps: &Deps, host: &HostName) {
    let key = host.as_str().to_ascii_lowercase();
    let mut seen = deps.seen_hosts.lock().unwrap_or_else(PoisonError::into_inner);
    let Some(view) = seen.get_mut(&key) else { return };
    let Some(inventory) = view.facts.as_mut().and_then(|facts| facts.inventory.as_mut()) else {
        return;
    };
    deps.telemetry.with(host, |telemetry| telemetry.fill_sizes(inventory));
    deps.jobs.publish(Update::Host(Box::new(view.clone())));
}

/// The compose command that the configuration or the environment names for a host, as words.
fn compose_override(deps: &Deps, spec: &HostSpec) -> Result<Option<Vec<String>>, Error> {
    probe::override_words(spec.compose_cmd.as_deref().or(deps.settings.compose_cmd.as_deref()))
}

fn remember_host(deps: &Deps, view: HostView) {
    let key = view.name.as_str().to_ascii_lowercase();
    deps.seen_hosts.lock().unwrap_or_else(PoisonError::into_inner).insert(key, view.clone());
    deps.jobs.publish(Update::Host(Box::new(view)));
}

/// Notes the number of sandboxes on a host. Where it cannot be counted, the rest is shown all the same, with why.
fn note_count(view: &mut HostView, counts: &Result<BTreeMap<String, u32>, Error>) {
    match counts {
        Ok(counts) => {
            view.sandboxes =
                counts.get(&view.name.as_str().to_ascii_lowercase()).copied().unwrap_or(0);
        }
        Err(error) => {
            view.message.get_or_insert_with(|| {
                format!("its sandboxes cannot be counted: {}", error.message)
            });
        }
    }
}

/// Notes what a host said last, where it was not asked since; forbidden ones say nothing. Where that cannot be read, why.
fn note_last_report(view: &mut HostView, report: Result<Option<HostRecord>, Error>) {
    if view.state != HostState::Unknown || view.facts.is_some() {
        return;
    }
    match report {
        Ok(record) => {
            let said = record.and_then(|record| record.last_report());
            view.facts = said.and_then(|said| said.facts);
            view.checked_at = view.facts.as_ref().map(|facts| facts.at);
        }
        Err(error) => {
            view.message = Some(format!("what it said last cannot be read: {}", error.message));
            view.hint = error.hint;
        }
    }
}

/// A host of which nothing is known but its configuration.
pub(crate) fn unchecked_host(deps: &Deps, host: &HostName) -> HostView {
    let spec = deps.transports.spec(host);
    unseen(&spec.unwrap_or_else(|| HostSpec::named(host.as_str())))
}

fn unseen(spec: &HostSpec) -> HostView {
    let forbidden =
        spec.forbid.as_ref().map(|why| format!("forbidden by the configuration: {why}"));
    HostView {
        name: spec.name.clone(),
        ssh: if spec.name.is_local() {
            None
        } else {
            Some(spec.ssh.clone().unwrap_or_else(|| spec.name.to_string()))
        },
        state: if forbidden.is_some() { HostState::Forbidden } else { HostState::Unknown },
        latency_ms: None,
        checked_at: None,
        message: forbidden,
        hint: None,
        sandboxes: 0,
        max_sandboxes: spec.max_sandboxes,
        labels: spec.labels.clone(),
        limits: Some(spec.limits.clone()),
        facts: None,
        sample: None,
        deep: None,
    }
}
