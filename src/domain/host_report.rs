//! Report of a host: what it said last, as `hosts.json` keeps it. Lists need no connection, and no command finds out twice which
//! compose runtime a host has.

use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::domain::Time;
use crate::domain::canary::{CanaryTelemetry, InventoryCounts};
use crate::domain::facts::{Certificate, HostFacts, HostIdentity, Runtime};
use crate::domain::headroom::AddressPool;
use crate::domain::words::string_enum;

/// Age up to which a canary takes a host's facts from here: what a dashboard shows is not younger.
const FRESH: Duration = Duration::from_secs(30);

/// Age up to which a detection counts. A tool behind a wrapper script may be upgraded without a trace in the fingerprint.
const DETECTED_FOR: Duration = Duration::from_hours(24);

/// Same for a detection that met a tool or engine that did not answer: it may by now.
const DETECTED_IN_PART_FOR: Duration = Duration::from_mins(10);

/// Commands that a detection finds; any other one was named by the operator.
const DETECTED: [&[&str]; 3] = [&["docker", "compose"], &["docker-compose"], &["podman-compose"]];

/// Last report of a host.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct HostReport {
    /// Identity that it proved.
    #[serde(default)]
    pub identity: Option<HostIdentity>,
    /// Facts, with when it said so; the inventory is counted.
    #[serde(default)]
    pub facts: Option<HostFacts>,
    /// Things of sandboxes that were there, with the facts.
    #[serde(default)]
    pub inventory: Option<InventoryCounts>,
    /// Compose runtimes that were found.
    #[serde(default)]
    pub detection: Option<RuntimeDetection>,
    /// Certificate of its compose runtime.
    #[serde(default)]
    pub certificate: Option<CertifiedRuntime>,
}

string_enum! {
    /// Extent to which a host was asked for compose runtimes.
    pub enum DetectionScope {
        /// Until one worked.
        First = "first",
        /// For each of them.
        All = "all",
    }
}

/// Compose runtimes that a host was found to have.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RuntimeDetection {
    /// When.
    pub at: Time,
    /// SHA-256, by the host, of what a detection rests on: machine, boot, account, tools, what selects an engine. Where it is
    /// another one, so may be the runtimes.
    pub fingerprint: String,
    /// The command that the operator named, in words; empty: none.
    #[serde(default)]
    pub compose_cmd: Vec<String>,
    /// Extent to which the host was asked.
    pub scope: DetectionScope,
    /// The runtimes, the preferred one first.
    pub runtimes: Vec<Runtime>,
    /// Tools and engines that were there and did not count, and why.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub findings: Vec<String>,
    /// Pools that docker takes addresses for networks from; empty: its own default; null where it was not asked.
    #[serde(default)]
    pub address_pools: Option<Vec<AddressPool>>,
}

/// Certificate, with what it holds for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CertifiedRuntime {
    /// Fingerprint of the host that was examined.
    pub fingerprint: String,
    /// The certificate.
    pub certificate: Certificate,
}

impl HostReport {
    /// From facts in full.
    pub fn of(facts: HostFacts, detection: Option<RuntimeDetection>) -> Self {
        let preferred = facts.runtimes.first();
        Self {
            identity: Some(HostIdentity {
                machine_id: facts.machine_id.clone(),
                engine: preferred.map(|runtime| runtime.engine.clone()),
                engine_id: preferred.and_then(|runtime| runtime.engine_id.clone()),
            }),
            inventory: facts.inventory.as_ref().map(InventoryCounts::from),
            facts: Some(HostFacts { inventory: None, ..facts }),
            detection,
            certificate: None,
        }
    }

    /// The facts for a canary's record.
    pub fn telemetry(&self) -> Option<CanaryTelemetry> {
        let facts = self.facts.as_ref()?;
        Some(CanaryTelemetry { inventory: self.inventory, ..CanaryTelemetry::from(facts) })
    }

    /// Whether its facts and its certificate are those of the host as it is now, for all that anybody needs to ask again.
    pub(crate) fn is_fresh(&self, now: Time, fingerprint: &str) -> bool {
        let facts = self.facts.as_ref().filter(|facts| is_within(now, facts.at, FRESH));
        let certified = self.certificate_for(fingerprint, facts.and_then(|f| f.runtimes.first()));
        facts.is_some() && self.inventory.is_some() && certified.is_some()
    }

    /// The certificate, where it is of this runtime on the host as it is now.
    pub(crate) fn certificate_for(
        &self,
        fingerprint: &str,
        runtime: Option<&Runtime>,
    ) -> Option<&CertifiedRuntime> {
        self.certificate.as_ref().filter(|certified| {
            certified.fingerprint == fingerprint
                && certified.certificate.runtime.as_ref() == runtime
        })
    }

    /// Takes in what the host said since. Of another machine behind the same name nothing stays.
    pub fn renew(&mut self, newer: Self) {
        let machine = |report: &Self| report.identity.as_ref().map(|id| id.machine_id.clone());
        if machine(&newer).is_some_and(|now| machine(self).is_some_and(|then| then != now)) {
            *self = Self::default();
        }
        self.identity = newer.identity.or(self.identity.take());
        if newer.facts.is_some() {
            self.facts = newer.facts;
        }
        self.inventory = newer.inventory.or(self.inventory);
        self.detection = match (newer.detection, self.detection.take()) {
            (Some(newer), Some(older)) if newer.fingerprint == older.fingerprint => {
                // A look for runtimes alone does not ask for the pools.
                let address_pools = newer.address_pools.clone().or(older.address_pools);
                Some(RuntimeDetection { address_pools, ..newer })
            }
            (newer, older) => newer.or(older),
        };
        self.certificate = newer.certificate.or(self.certificate.take());
    }
}

impl RuntimeDetection {
    /// Whether it may stand for a detection with this compose command and scope. The host still has to show the same
    /// fingerprint.
    pub(crate) fn holds(&self, now: Time, compose_cmd: &[String], scope: &DetectionScope) -> bool {
        let limit = if self.findings.is_empty() { DETECTED_FOR } else { DETECTED_IN_PART_FOR };
        let enough = *scope == DetectionScope::First || self.scope == DetectionScope::All;
        let is_hash = self.fingerprint.len() == 64
            && self.fingerprint.bytes().all(|byte| byte.is_ascii_hexdigit());
        enough
            && is_hash
            && self.compose_cmd == compose_cmd
            && is_within(now, self.at, limit)
            && !self.runtimes.is_empty()
            && self.runtimes.iter().all(|runtime| is_known(runtime, compose_cmd))
    }
}

/// Whether a runtime is one that a detection can find, or the one that the operator named: nothing else is ever run.
fn is_known(runtime: &Runtime, compose_cmd: &[String]) -> bool {
    let detected = || DETECTED.iter().any(|words| runtime.command == *words);
    let command = if compose_cmd.is_empty() { detected() } else { runtime.command == compose_cmd };
    command && matches!(runtime.engine.as_str(), "docker" | "podman")
}

/// Whether a moment is that young. One that is yet to come is not: a clock was put back.
fn is_within(now: Time, at: Time, age: Duration) -> bool {
    at <= now && now.since(at) <= age
}

#[cfg(test)]
mod tests;
