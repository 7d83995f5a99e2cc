//! Observation of sandboxes on their hosts: a service that died after `ready` is a mark; a sandbox of which the proved
//! host has nothing any more is `lost`, and what is back is ready again (semantics 1).

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::domain::error::{Code, Error};
use crate::domain::event::EventKind;
use crate::domain::extension::{Inspection, SandboxExtension, Target};
use crate::domain::name::{ExtensionId, HostName};
use crate::domain::sandbox::{Reason, SandboxRecord, Service, State};
use crate::domain::update::Update;
use crate::manager::deps::Deps;
use crate::manager::journal::{Observed, update_observed};
use crate::manager::sandboxes::find::find_sandbox;
use crate::manager::sandboxes::inspect::{inspect_sandbox, lose, lost_event};
use crate::manager::sandboxes::resolve::resolve_as_known;

/// An observation that is older than this, in seconds, is written down anew though nothing changed.
const FRESH_S: u64 = 60;

/// Changed records that are one write; whoever is ended meanwhile has written the others.
const WRITE_BATCH: usize = 1000;

/// Asks a host for the services of all its sandboxes, and writes down what changed: many at a time, since each write is
/// of the whole file.
pub(crate) async fn refresh_services(deps: &Deps, host: &str) -> Result<(), Error> {
    let mut observed = Vec::new();
    let outcome = inspect_on_host(deps, &HostName::new(host), &mut observed).await;
    write_observed(deps, &mut observed, 1).await;
    outcome
}

/// Asks a sandbox's host for it and writes down what changed; the record as it is then. One that is worked on, or of which
/// nothing is to be there, is as it is recorded.
///
/// Errors: why nobody could look, `host_changed` among them.
pub(crate) async fn observe(deps: &Deps, id: &str) -> Result<SandboxRecord, Error> {
    let record = Arc::new(find_sandbox(deps, id).await?);
    let stands = matches!(record.state, State::Ready | State::Sleeping | State::Lost);
    if record.operation.is_some() || !stands {
        return Ok(SandboxRecord::clone(&record));
    }
    let extension = deps.extension(&record.extension)?;
    let target = resolve_as_known(deps, &record).await?;
    let seen = match extension.inspect(&target).await {
        Err(error) if error.code == Code::Unsupported => {
            return Ok(SandboxRecord::clone(&record));
        }
        seen => seen?,
    };
    let old = record.observed_at.is_none_or(|at| deps.now().since(at).as_secs() >= FRESH_S);
    let same = || old.then(|| -> Observed { (Arc::clone(&record), Vec::new(), Box::new(|_| {})) });
    let mut observed: Vec<Observed> = changes_of(&record, seen).or_else(same).into_iter().collect();
    write_observed(deps, &mut observed, 1).await;
    find_sandbox(deps, record.id.as_str()).await
}

async fn inspect_on_host(
    deps: &Deps,
    host: &HostName,
    observed: &mut Vec<Observed>,
) -> Result<(), Error> {
    let mut by_extension: BTreeMap<ExtensionId, Vec<(Target, Arc<SandboxRecord>)>> =
        BTreeMap::new();
    let mut lost = Vec::new();
    for record in deps.sandboxes.list().await? {
        if record.operation.is_some() || !record.host.same(host.as_str()) {
            continue;
        }
        match record.state {
            State::Ready | State::Sleeping => {
                let target = resolve_as_known(deps, &record).await?;
                by_extension.entry(record.extension.clone()).or_default().push((target, record));
            }
            State::Lost => lost.push(record),
            State::Requested
            | State::Provisioning
            | State::Failed
            | State::Destroying
            | State::Destroyed
            | State::Forgotten
            | State::Other(_) => {}
        }
    }
    for (id, known) in by_extension {
        let extension = deps.extension(&id)?;
        let (targets, records): (Vec<Target>, Vec<Arc<SandboxRecord>>) = known.into_iter().unzip();
        let mut seen = extension.services(host, &targets).await?;
        for (target, record) in targets.iter().zip(records) {
            match seen.remove(&target.id) {
                Some(services) => observed.extend(services_change(record, services)),
                None => {
                    observed.extend(inspect_one(deps, extension.as_ref(), target, record).await);
                }
            }
            write_observed(deps, observed, WRITE_BATCH).await;
        }
    }
    for record in lost {
        let extension = deps.extension(&record.extension)?;
        let target = resolve_as_known(deps, &record).await?;
        observed.extend(inspect_one(deps, extension.as_ref(), &target, record).await);
        write_observed(deps, observed, WRITE_BATCH).await;
    }
    Ok(())
}

/// Looks for one sandbox that the host did not name, or that was lost. What cannot be asked stays as it is.
async fn inspect_one(
    deps: &Deps,
    extension: &dyn SandboxExtension,
    target: &Target,
    record: Arc<SandboxRecord>,
) -> Option<Observed> {
    let seen = match inspect_sandbox(deps, extension, target).await {
        Ok(seen) => seen,
        Err(error) => {
            tracing::debug!(sandbox = %target.id, %error, "its host could not be asked for it");
            return None;
        }
    };
    changes_of(&record, seen)
}

/// Writes down what was seen, as soon as it is so much, except for what somebody changed meanwhile: he knows better.
async fn write_observed(deps: &Deps, observed: &mut Vec<Observed>, from: usize) {
    if observed.len() < from {
        return;
    }
    let now = deps.now();
    let seen = std::mem::take(observed).into_iter().map(|(record, events, change)| -> Observed {
        let change = move |record: &mut SandboxRecord| {
            change(record);
            record.observed_at = Some(now);
        };
        (record, events, Box::new(change))
    });
    match update_observed(deps, seen.collect()).await {
        Ok(outcomes) => {
            for outcome in outcomes {
                match outcome {
                    Ok(record) => deps.jobs.publish(Update::Record(Box::new(record))),
                    Err(error) => {
                        tracing::debug!(%error, "what was seen of a sandbox was not written down");
                    }
                }
            }
        }
        Err(error) => {
            tracing::debug!(%error, "what was seen of sandboxes was not written down");
        }
    }
}

/// Changes that a look at one sandbox makes in its record.
fn changes_of(record: &Arc<SandboxRecord>, seen: Inspection) -> Option<Observed> {
    let data = serde_json::json!({"host": record.host, "was": record.state});
    match record.state {
        State::Ready | State::Sleeping if seen.resources.is_empty() => {
            Some((Arc::clone(record), lost_event(record), Box::new(lose)))
        }
        State::Ready | State::Sleeping => services_change(Arc::clone(record), seen.services),
        State::Lost if seen.ready => {
            let events = vec![(EventKind::SandboxReady, data)];
            Some((
                Arc::clone(record),
                events,
                Box::new(move |record| mark_found(record, State::Ready, seen)),
            ))
        }
        State::Lost if seen.asleep => {
            let events = vec![(EventKind::SandboxSleeping, data)];
            Some((
                Arc::clone(record),
                events,
                Box::new(move |record| mark_found(record, State::Sleeping, seen)),
            ))
        }
        State::Lost
        | State::Requested
        | State::Provisioning
        | State::Failed
        | State::Destroying
        | State::Destroyed
        | State::Forgotten
        | State::Other(_) => None,
    }
}

/// Change of services, if they changed.
fn services_change(record: Arc<SandboxRecord>, services: Vec<Service>) -> Option<Observed> {
    let changed = record.services != services;
    changed.then(|| -> Observed {
        (record, Vec::new(), Box::new(move |record| record.services = services))
    })
}

fn mark_found(record: &mut SandboxRecord, state: State, seen: Inspection) {
    record.state = state;
    record.reason = Some(Reason::User);
    record.message = None;
    record.reachability = seen.reachability;
    record.services = seen.services;
}
