//! Samples of hosts: one light probe each.

use std::sync::PoisonError;

use crate::domain::error::Error;
use crate::domain::telemetry::HostSample;
use crate::manager::deps::Deps;
use crate::manager::hosts::check::host_spec;
use crate::transport::probe::{self, SampleRequest};

/// Reads one host's load, memory, disk and clock, and what its sandboxes use.
pub(crate) async fn sample_host(deps: &Deps, name: &str) -> Result<HostSample, Error> {
    let spec = host_spec(deps, name)?;
    let transport = deps.transports.open(&spec.name).await?;
    let now = deps.now();
    // Taken: after a sample that failed there is nothing to compare with.
    let (containers, previous, pause) = deps.telemetry.with(&spec.name, |host| {
        (host.containers.clone(), host.counters.take(), host.disk_pause(now))
    });
    let want = SampleRequest {
        disk: pause.is_none(),
        containers: &containers,
        previous: previous.as_ref(),
        now,
    };
    let sampled = probe::sample(transport.as_ref(), &want).await?;
    let mut sample = sampled.sample;
    deps.telemetry.with(&spec.name, |host| {
        host.counters = Some(sampled.counters);
        // The kernel counts all processors; the account may be held to some.
        sample.cpus = host.cpus.unwrap_or(sample.cpus);
        if want.disk {
            host.note_disk(sampled.disk_is_late, now);
        }
    });
    if let Some(until) = pause {
        let seconds = until.since(now).as_secs();
        sample.findings.push(format!(
            "the workspace root's file system did not answer; it is asked again in {seconds} s"
        ));
    }
    let key = spec.name.as_str().to_ascii_lowercase();
    let mut seen = deps.seen_hosts.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(view) = seen.get_mut(&key) {
        view.sample = Some(sample.clone());
    }
    drop(seen);
    Ok(sample)
}
