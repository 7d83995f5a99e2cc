//! Probe: a host's facts, in one round trip.
//!
//! Shell script with the host's own tools; what it prints is read by the parsers beneath, which take any bytes.
//! Nothing is made or changed on the host.

mod addresses;
mod archives;
mod clock;
mod containers;
mod counter;
mod facts;
mod headroom;
mod images;
mod inventory;
mod leftovers;
pub(crate) mod lines;
mod manifest;
mod networks;
mod runtime;
mod sample;
mod sizes;

use std::time::{Duration, Instant};

use crate::domain::error::{Code, Error};
use crate::domain::facts::{HostFacts, Inventory, NetworkUse};
use crate::domain::host_report::{DetectionScope, RuntimeDetection};
use crate::domain::text::{clean_block, last_lines};
use crate::domain::time::Time;
use crate::transport::{Command, Output, Transport};

use clock::clock_offset;

pub(crate) use addresses::taken_subnets;
pub(crate) use containers::Container;
pub(crate) use counter::{counter, raise_counter};
pub(crate) use headroom::{headroom, network_room, parse_headroom, parse_pools};
pub(crate) use images::{ImageFound, small_image};
pub(crate) use leftovers::{LeftoverRequest, leftovers};
pub(crate) use manifest::{HostManifest, manifest_text, read_manifest};
pub(crate) use runtime::{Detecting, engine_word, parse_runtimes};
pub(crate) use sample::{Counters, SampleRequest, sample};
pub(crate) use sizes::{Sizes, sizes};

/// The probe's script, runtime detection included.
const PROBE_SH: &str = concat!(
    include_str!("scripts/resolve.sh"),
    include_str!("scripts/runtime.sh"),
    include_str!("scripts/probe.sh")
);

/// Time that a probe may take. Each call in it has a limit of its own, well below.
const DEADLINE: Duration = Duration::from_mins(1);

/// Questions to a host.
#[derive(Debug, Clone)]
pub struct ProbeRequest {
    /// Whether to look for sandboxes: directories, containers, networks, volumes, pods.
    pub inventory: bool,
    /// The compose command to use instead of the detected one, in words (`SANDBOXER_COMPOSE_CMD`). The host's own
    /// `compose_cmd` goes first.
    pub compose_cmd: Option<Vec<String>>,
    /// Roots to look for directories in, beside the host's workspace root.
    pub roots: Vec<String>,
    /// Detection from before. Where it holds and the host shows the same fingerprint, compose tools are not asked for their
    /// version again (`podman-compose` takes half a second to say it); engines are.
    pub known: Option<RuntimeDetection>,
    /// The moment of the call, by the clock that judges.
    pub now: Time,
}

impl ProbeRequest {
    /// Facts and runtimes, no inventory, nothing known yet.
    pub fn new(now: Time) -> Self {
        Self { inventory: false, compose_cmd: None, roots: Vec::new(), known: None, now }
    }

    /// The question for compose runtimes; its compose command is the one that counts on this host.
    fn detecting(&self) -> Detecting<'_> {
        let words = self.compose_cmd.as_deref().unwrap_or_default();
        Detecting::new(DetectionScope::All, words, self.known.as_ref(), self.now)
    }
}

/// Answers of a host to a probe.
#[derive(Debug, Clone, PartialEq)]
pub struct Probed {
    pub facts: HostFacts,
    /// The host's fingerprint, where it could be made.
    pub fingerprint: Option<String>,
    /// The runtimes, to be kept; none where they are those that were known.
    pub detection: Option<RuntimeDetection>,
    /// The inventory's running containers of sandboxes, for the light probe.
    pub containers: Vec<Container>,
}

/// Asks a host for its facts. See [`examine`].
pub async fn probe(transport: &dyn Transport, want: ProbeRequest) -> Result<HostFacts, Error> {
    examine(transport, want).await.map(|probed| probed.facts)
}

/// Asks a host for its facts and for what was found wrong, in one round trip.
///
/// Errors: the transport's; `invalid_config` for a compose command that is not a command line; `operation_failed`
/// when the script did not come to its end, or when any part of an inventory that was asked for could not be read
/// (`details.failed`): half an inventory must not pass for a whole one.
pub async fn examine(transport: &dyn Transport, want: ProbeRequest) -> Result<Probed, Error> {
    let spec = transport.spec();
    let compose_cmd = override_words(spec.compose_cmd.as_deref())?.or(want.compose_cmd);
    let want = ProbeRequest { compose_cmd, ..want };
    let (mode, words) = want.detecting().arguments();
    let command = Command::script(PROBE_SH)
        .arg(&spec.workspace_root)
        .arg(if want.inventory { "yes" } else { "no" })
        .arg(mode)
        .arg(want.roots.len().to_string())
        .args(&want.roots)
        .args(&words);
    let before = transport.latency();
    let began = Instant::now();
    let output = transport.run(&command, DEADLINE).await?;
    let elapsed = began.elapsed();
    // The shortest that is known: a round trip that includes a slow command is no measure of the way.
    let rtt =
        [before, transport.latency()].into_iter().flatten().min().unwrap_or_default().min(elapsed);
    let host = spec.name.to_string();
    let probed = read(&output, &want, elapsed.saturating_sub(rtt / 2))
        .map_err(|error| error.detail("host", host))?;
    if want.detecting().known.is_some() && probed.facts.runtimes.is_empty() {
        // Its engine is another one than the fingerprint shows.
        return Box::pin(examine(transport, ProbeRequest { known: None, ..want })).await;
    }
    Ok(probed)
}

/// The words of a compose command as a configuration or an environment variable has it; none if there is none.
///
/// Errors: `invalid_config` when it has an open quote, no words, or a line break.
pub(crate) fn override_words(text: Option<&str>) -> Result<Option<Vec<String>>, Error> {
    let Some(text) = text else { return Ok(None) };
    let words =
        shlex::split(text).filter(|words| !words.is_empty() && !text.contains(['\n', '\r', '\0']));
    words.map(Some).ok_or_else(|| {
        Error::new(Code::InvalidConfig, "the compose command is not a command line")
            .detail("compose_cmd", text)
    })
}

/// Reads the script's output; `ended` is how long after `want.now` the host looked at its clock.
fn read(output: &Output, want: &ProbeRequest, ended: Duration) -> Result<Probed, Error> {
    let text = output.text();
    let entries = lines::entries(&text);
    let clock = entries.iter().rev().find(|entry| entry.key == "now");
    let Some(clock) = clock.filter(|_| output.ok()) else {
        return Err(Error::new(Code::OperationFailed, "the host's facts could not be read")
            .step("probe")
            .detail("exit_status", output.status)
            .detail("output", clean_block(&last_lines(&output.error_text(), 20))));
    };
    let mut facts = facts::parse(&entries, want.now);
    facts.clock_offset_s = clock_offset(clock.value, want.now, ended);
    let report = want.detecting().read(&text);
    facts.engines = report.engines;
    facts.runtimes = report.runtimes;
    facts.findings.extend(report.findings);
    let mut running = Vec::new();
    if want.inventory {
        let mut found = inventory::parse(&entries);
        if output.truncated {
            found.failed.push("it is longer than what is kept of a command's output".to_owned());
        }
        if !found.failed.is_empty() {
            return Err(Error::new(
                Code::OperationFailed,
                format!("the inventory is incomplete: {}", found.failed[0]),
            )
            .step("inventory")
            .detail("failed", found.failed));
        }
        let (containers, findings) = containers::parse(&entries, &found.containers, want.now);
        let networks = networks::parse(&entries);
        // Podman has no pools that it tells of, and neither has it behind docker's words.
        let is_docker = |engine: &str| {
            facts.engines.iter().any(|known| known.program == engine && !known.podman_behind)
        };
        let networks = networks.into_iter().map(|networks| NetworkUse {
            left: networks.left.filter(|_| is_docker(&networks.engine)),
            ..networks
        });
        facts.inventory = Some(Inventory { networks: networks.collect(), ..found.inventory });
        facts.findings.extend(findings);
        running = containers;
    }
    Ok(Probed {
        facts,
        fingerprint: report.fingerprint,
        detection: report.detection,
        containers: running,
    })
}

#[cfg(test)]
mod tests;
