//! Samples of hosts: one light probe each.

use crate::domain::error::Error;
use crate::domain::telemetry::{DiskUse, HostSample};
use crate::manager::deps::Deps;
use crate::manager::hosts::check::host_spec;
use crate::transport::probe::{self, ProbeRequest};

/// Reads one host's load, memory, disk and clock.
pub(crate) async fn sample_host(deps: &Deps, name: &str) -> Result<HostSample, Error> {
    let spec = host_spec(deps, name)?;
    let transport = deps.transports.open(&spec.name).await?;
    let facts = probe::probe(transport.as_ref(), ProbeRequest::new(deps.now())).await?;
    Ok(HostSample {
        at: facts.at,
        latency_ms: transport.latency().and_then(|way| u64::try_from(way.as_millis()).ok()),
        cpus: facts.cpus,
        load1: facts.load1,
        mem_total_bytes: facts.mem_total_bytes,
        mem_available_bytes: facts.mem_available_bytes,
        swap_total_bytes: 0,
        swap_free_bytes: 0,
        disk: facts.disk.map(|disk| DiskUse {
            path: disk.path,
            total_bytes: disk.total_bytes,
            available_bytes: disk.available_bytes,
            inodes: None,
            inodes_free: None,
        }),
        uptime_s: None,
        clock_offset_s: facts.clock_offset_s,
        sandboxes: std::collections::BTreeMap::new(),
        findings: Vec::new(),
    })
}
