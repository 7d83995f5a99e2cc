//! Status of hosts, as the event log has it so far.

use std::collections::BTreeMap;

use crate::domain::event::{Event, EventKind};
use crate::domain::host_sight::HostMemory;

pub(crate) const KINDS: [EventKind; 3] =
    [EventKind::HostDown, EventKind::HostUp, EventKind::HostChanged];

/// Status of hosts, as the log has it so far.
#[derive(Default)]
pub(crate) struct HostStatusLog {
    /// The last event that was read; none: nothing was read yet.
    pub(crate) read: Option<u64>,
    /// By the host's name in lower case: what is known of it, and the number of its last event.
    pub(crate) hosts: BTreeMap<String, (HostMemory, u64)>,
}

impl HostStatusLog {
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
