//! Readings of hosts for what is stale: what each has, and whether that may be judged by.

use std::sync::PoisonError;

use futures_util::future::join_all;

use crate::domain::error::{Code, Error};
use crate::domain::facts::{HostFacts, Inventory};
use crate::domain::host::HostSpec;
use crate::domain::host_view::{HostState, HostView};
use crate::domain::name::{HostName, OwnerId};
use crate::domain::root::MarkedRoot;
use crate::domain::sandbox::SandboxRecord;
use crate::domain::stale::{HostPass, PassState, StaleQuery};
use crate::manager::deps::Deps;
use crate::manager::hosts::capacity::occupies;
use crate::manager::hosts::check::{host_spec, probe_host};
use crate::manager::hosts::places::{PlaceReading, extension_at, owner_counter, used_places};

pub(crate) struct HostReading {
    pub(crate) pass: HostPass,
    /// Facts of the host, where all of it could be read.
    pub(crate) facts: Option<HostFacts>,
    /// Owner ids of ours under which another console works there.
    pub(crate) owners_ahead: Vec<OwnerId>,
}

impl HostReading {
    fn of(host: &HostName, state: PassState, error: Option<Error>) -> Self {
        let pass = HostPass { host: host.clone(), state, machine_id: None, error };
        Self { pass, facts: None, owners_ahead: Vec::new() }
    }

    /// Inventory of the host, where it may be judged by.
    pub(crate) fn inventory(&self) -> Option<&Inventory> {
        let facts = self.facts.as_ref().filter(|_| self.pass.state == PassState::Read)?;
        facts.inventory.as_ref()
    }

    /// Why engines of the host may have more than was seen: one that is installed does not answer.
    pub(crate) fn silent_engine(&self) -> Option<String> {
        let silent = self.facts.as_ref()?.silent_engines().into_iter().next()?;
        Some(format!(
            "{silent} is installed there and does not answer: it may have something of it"
        ))
    }

    /// Why nothing on the host is judged; none where it may be.
    pub(crate) fn unjudged(&self) -> Option<String> {
        if self.pass.state == PassState::Read {
            return None;
        }
        Some(match &self.pass.error {
            Some(error) => error.message.clone(),
            None => format!("{} was not looked at", self.pass.host),
        })
    }

    /// Ends the pass where a record says that its host was another one, or has an engine that does not answer now.
    pub(crate) fn prove<'a>(
        &mut self,
        records: impl Iterator<Item = &'a SandboxRecord>,
        roots: &[MarkedRoot],
    ) {
        let Some(facts) = &self.facts else { return };
        for record in records {
            let found = match another(facts, record).or_else(|| other_root(facts, record, roots)) {
                Some(words) => (PassState::Changed, Code::HostChanged, words),
                None => match unanswered(facts, record) {
                    Some(words) => (PassState::Unread, Code::OperationFailed, words),
                    None => continue,
                },
            };
            let (state, code, words) = found;
            let id = &record.id;
            let message = format!("{}: {words}; nothing on it is judged", self.pass.host);
            let hint = match code {
                Code::HostChanged => format!(
                    "if the old one is gone for good, `sandboxer destroy --forget {id}` gives up what was on it"
                ),
                _ => "start it there, then look again".to_owned(),
            };
            self.pass.state = state;
            self.pass.error = Some(Error::new(code, message).hint(hint));
            return;
        }
    }
}

/// Workspace roots of a host whose marks are known. Where that cannot be read none is.
pub(crate) async fn marked_roots(deps: &Deps, host: &HostName) -> Vec<MarkedRoot> {
    match deps.hosts.get(host).await {
        Ok(known) => known.map(|known| known.roots).unwrap_or_default(),
        Err(error) => {
            tracing::warn!(%host, %error, "what is known of its workspace roots cannot be read");
            Vec::new()
        }
    }
}

fn answers(facts: &HostFacts, engine: &str) -> bool {
    facts.engines.iter().any(|known| known.program == engine)
}

/// Why this is another host than the one that a sandbox was made on; none where nothing says so.
fn another(facts: &HostFacts, record: &SandboxRecord) -> Option<String> {
    let recorded = record.host_identity.as_ref()?;
    if !recorded.machine_id.is_empty() && recorded.machine_id != facts.machine_id {
        return Some(format!(
            "this is machine {}, and sandbox {} was made on {}",
            if facts.machine_id.is_empty() { "(without an id)" } else { &facts.machine_id },
            record.id,
            recorded.machine_id
        ));
    }
    let engine = recorded.engine.as_deref()?;
    let wanted = recorded.engine_id.as_deref()?;
    let now = facts.engines.iter().find(|known| known.program == engine)?.id.as_deref()?;
    (now != wanted)
        .then(|| format!("its {engine} is {now}, and sandbox {} was made on {wanted}", record.id))
}

/// Why the root that a sandbox is recorded in is not the one that was looked into; none where nothing says so.
fn other_root(facts: &HostFacts, record: &SandboxRecord, known: &[MarkedRoot]) -> Option<String> {
    let (root, _) = record.workdir.as_deref().filter(|_| occupies(record))?.rsplit_once('/')?;
    let mut seen = facts.inventory.as_ref()?.roots.iter();
    let seen = seen.find(|seen| seen.path.trim_end_matches('/') == root)?;
    let id = &record.id;
    if !seen.there {
        return Some(format!(
            "{root}, in which sandbox {id} was made, is not there: it may not be mounted"
        ));
    }
    let mut known = known.iter();
    let known = known.find(|known| known.path == root && known.machine_id == facts.machine_id)?;
    (seen.mark.as_deref() != Some(known.mark.as_str())).then(|| {
        format!(
            "{root} does not bear the mark of the root in which sandbox {id} was made: it may not be mounted"
        )
    })
}

/// Why a sandbox's engine says nothing of it; none where it answers.
fn unanswered(facts: &HostFacts, record: &SandboxRecord) -> Option<String> {
    let engine = record.host_identity.as_ref()?.engine.as_deref()?;
    (!answers(facts, engine))
        .then(|| format!("{engine} does not answer, and sandbox {} was made on it", record.id))
}

enum Backend {
    Host(HostSpec),
    Place(HostName),
    /// Host of a record that nothing configures any more.
    Unknown(HostName),
}

impl Backend {
    fn name(&self) -> &HostName {
        match self {
            Self::Host(spec) => &spec.name,
            Self::Place(name) | Self::Unknown(name) => name,
        }
    }

    fn recorded(deps: &Deps, name: HostName) -> Self {
        if extension_at(deps, &name).is_some() {
            return Self::Place(name);
        }
        deps.transports.spec(&name).map_or(Self::Unknown(name), Self::Host)
    }
}

/// Looks at hosts and places, all at once: those that are asked for, else all that are configured, all that records name, and the
/// places at which something is.
///
/// Errors: `not_found` for a host that nobody knows.
pub(crate) async fn read_hosts(deps: &Deps, query: &StaleQuery) -> Result<Vec<HostReading>, Error> {
    let mut backends: Vec<Backend> = Vec::new();
    let mut add = |backend: Backend| {
        if !backends.iter().any(|known| known.name().same(backend.name().as_str())) {
            backends.push(backend);
        }
    };
    if query.hosts.is_empty() {
        deps.transports.hosts().into_iter().map(Backend::Host).for_each(&mut add);
        for host in recorded_hosts(deps).await? {
            add(Backend::recorded(deps, host));
        }
        let places = used_places(deps).await;
        let with_something = places.into_iter().filter(PlaceReading::has_something);
        with_something.map(|reading| Backend::Place(reading.place)).for_each(&mut add);
    } else {
        for host in &query.hosts {
            let name = HostName::new(host.as_str());
            let place = extension_at(deps, &name).and_then(|extension| extension.place());
            add(match place {
                Some(place) => Backend::Place(place),
                None => Backend::Host(host_spec(deps, host)?),
            });
        }
    }
    let as_last_seen = query.as_last_seen;
    let readings = backends.iter().map(|backend| Box::pin(read(deps, backend, as_last_seen)));
    Ok(join_all(readings).await.into_iter().flatten().collect())
}

async fn recorded_hosts(deps: &Deps) -> Result<Vec<HostName>, Error> {
    let records = deps.sandboxes.list().await?;
    let live = records.iter().filter(|record| !record.state.is_over());
    Ok(live.map(|record| record.host.clone()).collect())
}

/// `None`: it was not seen yet, and nobody asks it now.
async fn read(deps: &Deps, backend: &Backend, as_last_seen: bool) -> Option<HostReading> {
    let spec = match backend {
        Backend::Host(spec) => spec,
        // Files of this machine: they are never out of date.
        Backend::Place(place) => return Some(read_place(deps, place).await),
        Backend::Unknown(host) => {
            let error = Error::new(Code::NotFound, format!("{host} is not configured any more"))
                .hint("configure it again, or `sandboxer destroy --forget` what was on it");
            return Some(HostReading::of(host, PassState::Unread, Some(error)));
        }
    };
    let host = &spec.name;
    if let Some(why) = &spec.forbid {
        let error =
            Error::new(Code::Forbidden, format!("{host} is forbidden by the configuration: {why}"));
        return Some(HostReading::of(host, PassState::Forbidden, Some(error)));
    }
    if as_last_seen {
        let key = host.as_str().to_ascii_lowercase();
        let seen =
            deps.seen_hosts.lock().unwrap_or_else(PoisonError::into_inner).get(&key).cloned();
        return seen.map(|view| read_view(view, Vec::new()));
    }
    let view = match probe_host(deps, host.as_str()).await {
        Ok(view) => view,
        Err(error) => return Some(HostReading::of(host, PassState::Unread, Some(error))),
    };
    if view.facts.is_none() {
        return Some(read_view(view, Vec::new()));
    }
    Some(match owners_ahead(deps, host).await {
        Ok(ahead) => read_view(view, ahead),
        Err(error) => HostReading::of(host, PassState::Unread, Some(error)),
    })
}

async fn read_place(deps: &Deps, place: &HostName) -> HostReading {
    let read = async {
        let gone = || Error::internal(format!("no extension has the place {place}"));
        let facts = extension_at(deps, place).ok_or_else(gone)?.list_owned().await?;
        Ok::<_, Error>((facts, owners_ahead(deps, place).await?))
    };
    match read.await {
        Ok((facts, owners_ahead)) => {
            let pass = HostPass {
                host: place.clone(),
                state: PassState::Read,
                machine_id: Some(facts.machine_id.clone()),
                error: None,
            };
            HostReading { pass, facts: Some(facts), owners_ahead }
        }
        Err(error) => HostReading::of(place, PassState::Unread, Some(error)),
    }
}

fn read_view(view: HostView, owners_ahead: Vec<OwnerId>) -> HostReading {
    let HostView { name, state, message, hint, facts, .. } = view;
    let machine_id = facts.as_ref().map(|facts| facts.machine_id.clone());
    let has_inventory = facts.as_ref().is_some_and(|facts| facts.inventory.is_some());
    if has_inventory {
        let pass = HostPass { host: name, state: PassState::Read, machine_id, error: None };
        return HostReading { pass, facts, owners_ahead };
    }
    let code = if matches!(state, HostState::Up | HostState::Slow) {
        Code::OperationFailed
    } else {
        Code::HostUnreachable
    };
    let message = message.unwrap_or_else(|| format!("{name} could not be read"));
    let mut error = Error::new(code, message);
    error.hint = hint;
    let pass = HostPass { host: name, state: PassState::Unread, machine_id, error: Some(error) };
    HostReading { pass, facts: None, owners_ahead }
}

/// Owner ids of ours of which a host counts more than is known here. Of the one for new sandboxes that makes this data directory
/// an old copy.
async fn owners_ahead(deps: &Deps, host: &HostName) -> Result<Vec<OwnerId>, Error> {
    let first = deps.installation.stamp().await?.owner;
    let mut ahead = Vec::new();
    for (owner, known) in deps.installation.owner_counters().await? {
        let Some(counter) = owner_counter(deps, host, &owner).await? else { continue };
        if owner == first {
            deps.installation.seen_on(host, counter).await?;
        } else if counter > known {
            ahead.push(owner);
        }
    }
    Ok(ahead)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::facts::{Engine, HostIdentity};
    use crate::domain::tests as examples;
    use crate::domain::time::Time;

    fn reading(engines: &[(&str, &str)], tools: &[&str]) -> HostReading {
        let mut facts: HostFacts = serde_json::from_value(serde_json::json!({
            "at": Time::from_unix(0), "machine_id": "m1", "hostname": "far", "kernel": "Linux", "os": null, "user": "ops",
            "uid": 1, "cpus": 1, "load1": 0.0, "mem_total_bytes": 1, "mem_available_bytes": 1, "disk": null,
            "workspace_root": "/r", "clock_offset_s": null, "inventory": {"sandboxes": []}
        }))
        .unwrap();
        facts.tools = tools.iter().map(|tool| ((*tool).to_owned(), "/bin/x".to_owned())).collect();
        facts.engines = engines
            .iter()
            .map(|(program, id)| Engine {
                program: (*program).to_owned(),
                version: None,
                id: Some((*id).to_owned()),
                rootless: false,
                podman_behind: false,
            })
            .collect();
        let pass = HostPass {
            host: HostName::new("far"),
            state: PassState::Read,
            machine_id: Some("m1".into()),
            error: None,
        };
        HostReading { pass, facts: Some(facts), owners_ahead: Vec::new() }
    }

    fn record(machine_id: &str, engine: Option<(&str, &str)>) -> SandboxRecord {
        let mut record = examples::sandbox(serde_json::json!({"host": "far"}));
        record.host_identity = Some(HostIdentity {
            machine_id: machine_id.to_owned(),
            engine: engine.map(|(program, _)| program.to_owned()),
            engine_id: engine.map(|(_, id)| id.to_owned()),
        });
        record
    }

    #[test]
    fn a_pass_ends_where_the_host_or_its_engine_is_another_or_silent() {
        let judge = |reading: &mut HostReading, record: &SandboxRecord| {
            reading.prove(std::iter::once(record), &[]);
            let has_inventory = reading.inventory().is_some();
            assert_eq!(has_inventory, reading.pass.state == PassState::Read, "judged by or not");
            reading.pass.state.to_string()
        };
        let docker = [("docker", "D1")];
        for (engines, record, state) in [
            (&docker[..], record("m1", None), "read"),
            (&docker, record("m1", Some(("docker", "D1"))), "read"),
            (&docker, record("m2", None), "changed"),
            (&docker, record("m1", Some(("docker", "D2"))), "changed"),
            (&docker, record("m1", Some(("podman", "/p:1"))), "unread"),
            (&[], record("m1", Some(("docker", "D1"))), "unread"),
            (&[], record("m1", None), "read"),
            // A record of a host without an id proves nothing against this one.
            (&[], record("", None), "read"),
        ] {
            assert_eq!(judge(&mut reading(engines, &[]), &record), state, "{record:?}");
        }
        assert!(reading(&docker, &["docker"]).silent_engine().is_none());
        assert!(
            reading(&docker, &["docker", "podman"]).silent_engine().unwrap().contains("podman")
        );
    }
}
