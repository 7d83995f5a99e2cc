//! `host.down`, `host.up`, `host.changed`: told once, by whichever process sees it first. The event log is the memory: what its
//! last event of a host says is what every process knows, and two that see the same at once write the same event.

use std::collections::BTreeMap;

use crate::domain::error::{Code, Error};
use crate::domain::event::{Actor, Event, EventKind, PendingEvent, derived_event_id};
use crate::domain::host_sight::{HostMemory, HostSight};
use crate::domain::name::HostName;
use crate::manager::SandboxManager;
use crate::store::EventFilter;

const KINDS: [EventKind; 3] = [EventKind::HostDown, EventKind::HostUp, EventKind::HostChanged];

/// Sights of hosts, as the log told them so far.
#[derive(Default)]
pub(super) struct HostSights {
    /// The last event that was read; none: nothing was read yet.
    read: Option<u64>,
    /// By the host's name in lower case: what is known of it, and the number of the last event that told of it.
    hosts: BTreeMap<String, (HostMemory, u64)>,
}

impl HostSights {
    fn take(&mut self, events: Vec<Event>) {
        for event in events {
            self.read = self.read.max(Some(event.seq));
            let host = event.data.get("host").and_then(serde_json::Value::as_str);
            if let Some(host) = host.filter(|_| KINDS.contains(&event.kind)) {
                let (memory, seq) = self.hosts.entry(host.to_ascii_lowercase()).or_default();
                memory.heard(&event);
                *seq = event.seq;
            }
        }
    }
}

impl SandboxManager {
    /// Tells of a host what is news of it, and remembers how it was seen. That it cannot be told is no fault of whatever reached
    /// the host, or did not.
    pub(super) async fn saw_host(&self, host: &HostName, sight: HostSight, message: Option<&str>) {
        if let Err(fault) = self.tell_of_host(host, &sight, message).await {
            tracing::warn!(%host, %fault, "how it was seen could not be told");
        }
    }

    /// As [`Self::saw_host`], by what an operation on it came to; other faults than the host's say nothing of it.
    pub(super) async fn saw_fault_of(&self, host: &HostName, fault: &Error) {
        let sight = match fault.code {
            Code::HostUnreachable => HostSight::Silent,
            Code::HostChanged => HostSight::Another,
            _ => return,
        };
        self.saw_host(host, sight, Some(&fault.message)).await;
    }

    async fn tell_of_host(
        &self,
        host: &HostName,
        sight: &HostSight,
        message: Option<&str>,
    ) -> Result<(), Error> {
        let mut sights = self.host_sights.lock().await;
        let events = if let Some(read) = sights.read {
            self.parts.events.tail(read).await?
        } else {
            sights.read = Some(self.parts.events.last_seq().await?);
            let filter = EventFilter { kinds: KINDS.to_vec(), ..EventFilter::default() };
            self.parts.events.read(&filter).await?
        };
        sights.take(events);
        let key = host.as_str().to_ascii_lowercase();
        if sights.hosts.get(&key).is_none_or(|(memory, _)| memory.last.is_none()) {
            let known = self.known_by_records(host).await?;
            sights.hosts.insert(key.clone(), (known, 0));
        }
        let (memory, last) = sights.hosts.entry(key.clone()).or_default();
        let news = memory.news(sight);
        memory.saw(sight);
        let Some(kind) = news else { return Ok(()) };
        let machine_id = match sight {
            HostSight::Answers(machine_id) => machine_id.clone(),
            HostSight::Silent | HostSight::Another => None,
        };
        let event = PendingEvent {
            // The same for whoever sees the same: the log keeps the first.
            id: derived_event_id(&format!("host {key}"), *last, &kind),
            time: self.now(),
            kind,
            sandbox_id: None,
            actor: Actor::observer(),
            data: serde_json::json!({"host": host, "message": message, "machine_id": machine_id}),
        };
        let told = self.parts.events.append(vec![event]).await?;
        *last = told.first().map_or(*last, |event| event.seq);
        self.log_grew.notify_one();
        Ok(())
    }

    /// What records say of a host of which no event tells: it answered when something was made there.
    async fn known_by_records(&self, host: &HostName) -> Result<HostMemory, Error> {
        let records = self.parts.sandboxes.list().await?;
        let mut there = records.iter().rev().filter(|record| record.host.same(host.as_str()));
        let identity = there.find_map(|record| record.host_identity.as_ref());
        let machine_id =
            identity.map(|identity| identity.machine_id.clone()).filter(|id| !id.is_empty());
        Ok(HostMemory {
            last: identity.map(|_| HostSight::Answers(machine_id.clone())),
            machine_id,
        })
    }
}
