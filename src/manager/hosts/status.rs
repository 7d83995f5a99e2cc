//! Status events of hosts (`host.down`, `host.up`, `host.changed`): written once, by whichever process sees it first. The
//! event log is the memory: what its last event of a host says is what every process knows, and two that see the same at
//! once write the same event.

use crate::domain::actor::Actor;
use crate::domain::error::{Code, Error};
use crate::domain::event::{PendingEvent, derived_event_id};
use crate::domain::host_sight::{HostMemory, HostSight};
use crate::domain::name::HostName;
use crate::manager::deps::Deps;
use crate::manager::hosts::status_log::KINDS;
use crate::store::EventFilter;

/// Writes an event when a host's status changed, and remembers the status. That it cannot be written is logged, and fails
/// nothing that reached the host, or did not.
pub(crate) async fn report_host_status(
    deps: &Deps,
    host: &HostName,
    sight: HostSight,
    message: Option<&str>,
) {
    if let Err(error) = write_status_event(deps, host, &sight, message).await {
        tracing::warn!(%host, %error, "its status event could not be written");
    }
}

/// [`report_host_status`] by an operation's error; errors that are not the host's say nothing of it.
pub(crate) async fn report_host_error(deps: &Deps, host: &HostName, error: &Error) {
    let sight = match error.code {
        Code::HostUnreachable => HostSight::Silent,
        Code::HostChanged => HostSight::Another,
        _ => return,
    };
    report_host_status(deps, host, sight, Some(&error.message)).await;
}

async fn write_status_event(
    deps: &Deps,
    host: &HostName,
    sight: &HostSight,
    message: Option<&str>,
) -> Result<(), Error> {
    let mut sights = deps.host_status_log.lock().await;
    let events = if let Some(read) = sights.read {
        deps.events.tail(read).await?
    } else {
        sights.read = Some(deps.events.last_seq().await?);
        let filter = EventFilter { kinds: KINDS.to_vec(), ..EventFilter::default() };
        deps.events.read(&filter).await?
    };
    sights.take(events);
    let key = host.as_str().to_ascii_lowercase();
    if sights.hosts.get(&key).is_none_or(|(memory, _)| memory.last.is_none()) {
        let known = known_by_records(deps, host).await?;
        sights.hosts.insert(key.clone(), (known, 0));
    }
    let (memory, last) = sights.hosts.entry(key.clone()).or_default();
    let kind = memory.news(sight);
    memory.saw(sight);
    let Some(kind) = kind else { return Ok(()) };
    let machine_id = match sight {
        HostSight::Answers(machine_id) => machine_id.clone(),
        HostSight::Silent | HostSight::Another => None,
    };
    let event = PendingEvent {
        // The same for whoever sees the same: the log keeps the first.
        id: derived_event_id(&format!("host {key}"), *last, &kind),
        time: deps.now(),
        kind,
        sandbox_id: None,
        actor: Actor::observer(),
        data: serde_json::json!({"host": host, "message": message, "machine_id": machine_id}),
    };
    let written = deps.events.append(vec![event]).await?;
    *last = written.first().map_or(*last, |event| event.seq);
    deps.appended();
    Ok(())
}

/// Status of a host by the records, where no event has it: it answered when something was made there.
async fn known_by_records(deps: &Deps, host: &HostName) -> Result<HostMemory, Error> {
    let records = deps.sandboxes.list().await?;
    let mut there = records.iter().rev().filter(|record| record.host.same(host.as_str()));
    let identity = there.find_map(|record| record.host_identity.as_ref());
    let machine_id =
        identity.map(|identity| identity.machine_id.clone()).filter(|id| !id.is_empty());
    Ok(HostMemory { last: identity.map(|_| HostSight::Answers(machine_id.clone())), machine_id })
}
