//! Memory of how hosts were seen, as the event log told it so far.

use std::collections::BTreeMap;

use crate::domain::event::{Event, EventKind};
use crate::domain::host_sight::HostMemory;

pub(crate) const KINDS: [EventKind; 3] =
    [EventKind::HostDown, EventKind::HostUp, EventKind::HostChanged];

/// Sights of hosts, as the log told them so far.
#[derive(Default)]
pub(crate) struct HostSights {
    /// The last event that was read; none: nothing was read yet.
    pub(crate) read: Option<u64>,
    /// By the host's name in lower case: what is known of it, and the number of the last event that told of it.
    pub(crate) hosts: BTreeMap<String, (HostMemory, u64)>,
}

impl HostSights {
    pub(crate) fn take(&mut self, events: Vec<Event>) {
        for event in events {
            self.read = self.read.max(Some(event.seq));
            if let Some(host) = event.host().filter(|_| KINDS.contains(&event.kind)) {
                let (memory, seq) = self.hosts.entry(host.to_ascii_lowercase()).or_default();
                memory.heard(&event);
                *seq = event.seq;
            }
        }
    }
}
