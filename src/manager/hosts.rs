//! Hosts as a face shows them: as configured, as last seen, and as probed now.

use std::collections::BTreeMap;
use std::sync::PoisonError;
use std::time::{Duration, Instant};

use crate::domain::error::{Code, Error};
use crate::domain::event::Update;
use crate::domain::facts::{HostState, HostView};
use crate::domain::host::HostSpec;
use crate::domain::host_sight::HostSight;
use crate::domain::name::HostName;
use crate::domain::sandbox::{SandboxRecord, State};
use crate::domain::text::nearest;
use crate::manager::SandboxManager;
use crate::transport::Command;
use crate::transport::probe::{self, ProbeRequest};

/// A round trip beyond which a host is shown as slow.
const SLOW: Duration = Duration::from_secs(1);

/// How long the smallest command may take.
const PING_LIMIT: Duration = Duration::from_secs(10);

impl SandboxManager {
    /// All configured hosts as last seen; contacts none.
    pub async fn hosts(&self) -> Result<Vec<HostView>, Error> {
        let counts = self.count_by_host().await;
        let seen = self.seen_hosts.lock().unwrap_or_else(PoisonError::into_inner);
        Ok(self
            .parts
            .transports
            .hosts()
            .iter()
            .map(|spec| {
                let key = spec.name.as_str().to_ascii_lowercase();
                let mut view = seen.get(&key).cloned().unwrap_or_else(|| unseen(spec));
                note_count(&mut view, &counts);
                view
            })
            .collect())
    }

    /// Connects to one host, probes it, and removes what forgotten sandboxes left there.
    pub async fn check_host(&self, name: &str) -> Result<HostView, Error> {
        let view = self.probe_host(name).await?;
        if matches!(view.state, HostState::Up | HostState::Slow) {
            self.collect_tombstones(&view.name).await;
        }
        Ok(view)
    }

    /// Connects to one host and probes it.
    pub(super) async fn probe_host(&self, name: &str) -> Result<HostView, Error> {
        let spec = self.host_spec(name)?;
        let mut view = unseen(&spec);
        let counts = self.count_by_host().await;
        if spec.forbid.is_none() {
            view.checked_at = Some(self.now());
            self.look_at(&spec, &mut view).await;
        }
        note_count(&mut view, &counts);
        self.remember_host(view.clone());
        Ok(view)
    }

    /// A host's configuration; `not_found`, with the nearest name.
    pub(super) fn host_spec(&self, name: &str) -> Result<HostSpec, Error> {
        self.parts.transports.spec(&HostName::new(name)).ok_or_else(|| {
            let known: Vec<String> =
                self.parts.transports.hosts().iter().map(|spec| spec.name.to_string()).collect();
            let shown: String = name.chars().take(80).collect();
            let fault = Error::new(Code::NotFound, format!("there is no host {shown:?}"));
            match nearest(&shown, known.iter().map(String::as_str)) {
                Some(near) => fault.hint(format!("did you mean {near}?")),
                None => fault
                    .hint(format!("hosts are configured in {}", self.parts.settings.config_file)),
            }
        })
    }

    async fn look_at(&self, spec: &HostSpec, view: &mut HostView) {
        let looked = async {
            let transport = self.parts.transports.open(&spec.name).await?;
            // The shell is opened by the first command: the second one measures the way and nothing else.
            transport.run(&Command::script(":"), PING_LIMIT).await?;
            let started = Instant::now();
            transport.run(&Command::script(":"), PING_LIMIT).await?;
            let latency = started.elapsed();
            let request = ProbeRequest {
                inventory: true,
                compose_cmd: self.compose_override(spec)?,
                ..ProbeRequest::new(self.now())
            };
            let facts = probe::probe(transport.as_ref(), request).await?;
            Ok::<_, Error>((facts, latency))
        };
        match looked.await {
            Ok((facts, latency)) => {
                let machine_id = Some(facts.machine_id.clone()).filter(|id| !id.is_empty());
                self.saw_host(&spec.name, HostSight::Answers(machine_id), None).await;
                view.state = if latency > SLOW { HostState::Slow } else { HostState::Up };
                view.latency_ms = u64::try_from(latency.as_millis()).ok();
                view.facts = Some(facts);
            }
            Err(fault) => {
                self.saw_fault_of(&spec.name, &fault).await;
                view.state = HostState::Down;
                let causes = fault.causes;
                view.message = Some(
                    std::iter::once(fault.message.clone())
                        .chain(causes)
                        .collect::<Vec<_>>()
                        .join(": "),
                );
                view.hint = fault.hint;
            }
        }
    }

    /// The compose command that the configuration or the environment names for a host, as words.
    pub(super) fn compose_override(&self, spec: &HostSpec) -> Result<Option<Vec<String>>, Error> {
        probe::override_words(
            spec.compose_cmd.as_deref().or(self.parts.settings.compose_cmd.as_deref()),
        )
    }

    pub(super) fn remember_host(&self, view: HostView) {
        let key = view.name.as_str().to_ascii_lowercase();
        self.seen_hosts.lock().unwrap_or_else(PoisonError::into_inner).insert(key, view.clone());
        self.jobs.publish(Update::Host(Box::new(view)));
    }

    /// Sandboxes on each host by our records, by the host's name in lower case.
    pub(super) async fn count_by_host(&self) -> Result<BTreeMap<String, u32>, Error> {
        let mut counts = BTreeMap::new();
        for record in self.parts.sandboxes.list().await? {
            if occupies(&record) {
                *counts.entry(record.host.as_str().to_ascii_lowercase()).or_insert(0) += 1;
            }
        }
        Ok(counts)
    }
}

/// How many sandboxes are on a host. Where that cannot be told, the rest is shown all the same, with why.
fn note_count(view: &mut HostView, counts: &Result<BTreeMap<String, u32>, Error>) {
    match counts {
        Ok(counts) => {
            view.sandboxes =
                counts.get(&view.name.as_str().to_ascii_lowercase()).copied().unwrap_or(0);
        }
        Err(fault) => {
            view.message.get_or_insert_with(|| {
                format!("its sandboxes cannot be counted: {}", fault.message)
            });
        }
    }
}

/// A host of which nothing is known but its configuration.
pub(super) fn unseen_host(manager: &SandboxManager, host: &HostName) -> HostView {
    let spec = manager.parts.transports.spec(host);
    unseen(&spec.unwrap_or_else(|| HostSpec::named(host.as_str())))
}

/// Why a host has no room for one more sandbox, such as `full: 3 of 3 sandboxes`; `None` when it has. `live`: the live
/// records, of any host.
pub(super) fn fullness<'a>(
    spec: &HostSpec,
    live: impl Iterator<Item = &'a SandboxRecord>,
) -> Option<String> {
    let max = spec.max_sandboxes?;
    let there =
        live.filter(|record| record.host.same(spec.name.as_str()) && occupies(record)).count();
    (there >= max as usize).then(|| format!("full: {there} of {max} sandboxes"))
}

/// The fault of a host that is full.
pub(super) fn host_full(spec: &HostSpec, fullness: &str) -> Error {
    Error::new(Code::Conflict, format!("host {} is {fullness}", spec.name))
        .hint("destroy one, or raise the host's max_sandboxes")
}

/// Whether a record stands for something on its host.
pub(super) fn occupies(record: &SandboxRecord) -> bool {
    match record.state {
        State::Destroyed | State::Forgotten => false,
        State::Failed => record.kept_failed || !record.leftovers.is_empty(),
        _ => true,
    }
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
        facts: None,
        deep: None,
    }
}
