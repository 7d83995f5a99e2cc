//! `wait_ready`: the engine is asked until it says that every long-running service runs; `wait_settled`: until each has run for
//! a while.

use std::collections::BTreeMap;
use std::time::Duration;

use tokio::time::Instant;

use crate::domain::Time;
use crate::domain::error::{Code, Error};
use crate::domain::extension::{ProvisionRequest, Readiness, Target, Unsettled};
use crate::domain::host::HostSpec;
use crate::domain::reporter::{Report, Reporter};
use crate::domain::sandbox::{Failure, Reachability, Service};
use crate::domain::text::plural;
use crate::extensions::compose_ssh::deps::Deps;
use crate::extensions::compose_ssh::given;
use crate::extensions::compose_ssh::handle::{Expected, Stack};
use crate::extensions::compose_ssh::runtime::{self, Container, Judgement, Observed};
use crate::extensions::workspace::reachability::{Door, reachability};
use crate::extensions::workspace::{self, step};
use crate::transport::{Command, Transport};

const WORKSPACE_SH: &str = "cd -P -- \"$1\"";
const AWAKE_SH: &str = include_str!("scripts/awake.sh");

/// Between two questions to the engine, and the longest between two while what runs settles.
const ASK_AGAIN: Duration = Duration::from_millis(300);
const SETTLING: Duration = Duration::from_millis(700);

pub(super) fn stack(target: &Target) -> Result<Stack, Error> {
    Stack::from_handle(target.handle.as_ref()).ok_or_else(|| {
        Error::internal(format!("the handle of sandbox {} cannot be read", target.id))
    })
}

/// Question to an engine: of whom, for what, and how long.
pub(super) struct Asked<'a> {
    pub(super) transport: &'a dyn Transport,
    pub(super) target: &'a Target,
    pub(super) stack: &'a Stack,
    /// Where it is told how far it is; none where something else is done meanwhile.
    pub(super) reporter: Option<&'a dyn Reporter>,
    pub(super) until: Instant,
    /// How long that was at first, for a person.
    pub(super) limit: Duration,
}

impl Asked<'_> {
    fn tell(&self, stage: &'static str, why: String) {
        if let Some(reporter) = self.reporter {
            reporter.report(Report { stage, message: Some(why), ..Report::default() });
        }
    }

    fn not_ready(&self, code: Code, message: String, words: String, found: &[Container]) -> Error {
        let services = runtime::services(&self.stack.services, found);
        // What the compose tool wrote says nothing of why; that is the last line then.
        let output = if words.trim().is_empty() {
            format!("{}\n{message}", self.target.start_output.as_deref().unwrap_or_default())
        } else {
            words
        };
        not_ready(code, message, output, &services)
    }

    /// The last lines of a container, without the values that it was given.
    async fn last_words(&self, engine: &str, container: &str) -> String {
        let words = runtime::last_words(self.transport, engine, container).await;
        if words.trim().is_empty() {
            return words;
        }
        match given::masker(self.transport, self.target).await {
            Some(masker) => masker.cut(&words),
            None => format!(
                "what {container} wrote is not kept, since nobody can tell the secrets in it; `sandboxer logs {}` shows it",
                self.target.id
            ),
        }
    }

    /// Too late; the words are those of what ended, or was started again.
    async fn late(&self, engine: &str, why: &str, found: &[Container]) -> Error {
        let message = format!("not ready within {} s: {why}", self.limit.as_secs());
        let troubled = found
            .iter()
            .find(|container| container.state != "running" && container.exit_code != Some(0));
        let troubled = troubled
            .or_else(|| found.iter().find(|container| container.restarts.is_some_and(|n| n > 0)));
        let words = match troubled {
            Some(container) => self.last_words(engine, &container.name).await,
            None => String::new(),
        };
        self.not_ready(Code::Timeout, message, words, found)
    }
}

pub(super) async fn wait_ready(
    deps: &Deps,
    target: &Target,
    limit: Duration,
    reporter: &dyn Reporter,
) -> Result<Readiness, Error> {
    let stack = stack(target)?;
    let transport = deps.open(&target.host).await?;
    reporter.report(Report { stage: "ready", ..Report::default() });
    let until = Instant::now() + limit;
    let asked = Asked {
        transport: transport.as_ref(),
        target,
        stack: &stack,
        reporter: Some(reporter),
        until,
        limit,
    };
    until_ready(&asked, Unsettled::All, Wanted::Runs).await
}

/// Waits until what is unsettled has run for long enough. One that was woken is not asleep any more then.
pub(super) async fn wait_settled(
    deps: &Deps,
    target: &Target,
    found: Readiness,
    limit: Duration,
) -> Result<Readiness, Error> {
    let stack = stack(target)?;
    let transport = deps.open(&target.host).await?;
    let transport = transport.as_ref();
    let until = Instant::now() + limit;
    let asked = Asked { transport, target, stack: &stack, reporter: None, until, limit };
    let woken = matches!(found.unsettled, Unsettled::Woken(_));
    let settled = until_ready(&asked, found.unsettled, Wanted::Settled).await?;
    if woken {
        awake(transport, target).await?;
    }
    Ok(settled)
}

/// Notes that nothing of it is asleep any more.
pub(super) async fn awake(transport: &dyn Transport, target: &Target) -> Result<(), Error> {
    step(transport, "start", &Command::script(AWAKE_SH).arg(workspace::workdir(target)?))
        .await
        .map(|_| ())
}

/// How far containers must have come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Wanted {
    Runs,
    /// They have run for the profile's `settle` without a restart.
    Settled,
}

/// Readiness of a stack that was just started, by a first look; none where something of it does not run yet.
pub(super) fn seen_running(
    spec: &HostSpec,
    request: &ProvisionRequest,
    workdir: &str,
    stack: &Stack,
    Observed { now, containers }: &Observed,
) -> Option<Readiness> {
    if runtime::judge(&stack.services, containers) != Judgement::Ready {
        return None;
    }
    let settle = request.profile.settle.duration();
    let left = Runs::default().left(&stack.services, containers, *now, settle);
    Some(Readiness {
        reachability: reach(spec, &workspace::workspace(workdir), containers),
        services: runtime::services(&stack.services, containers),
        unsettled: if left.is_some() { Unsettled::All } else { Unsettled::None },
    })
}

/// Asks until these containers have come so far.
pub(super) async fn until_ready(
    asked: &Asked<'_>,
    unsettled: Unsettled,
    wanted: Wanted,
) -> Result<Readiness, Error> {
    let &Asked { transport, target, stack, .. } = asked;
    let workspace = workspace::workspace(workspace::workdir(target)?);
    let spec = transport.spec();
    let Some(used) = &stack.runtime else {
        step(transport, "look at the workspace", &Command::script(WORKSPACE_SH).arg(&workspace))
            .await?;
        let reachability = reach(spec, &workspace, &[]);
        return Ok(Readiness { reachability, services: Vec::new(), unsettled: Unsettled::None });
    };
    let owners = workspace::owners(target);
    let mut runs = Runs::default();
    loop {
        let Observed { now, containers: all } =
            runtime::containers(transport, &used.engine, &target.id, &owners).await?;
        let settle = target.profile.settle.duration();
        let judged = match wanted {
            Wanted::Runs => judge(stack, &unsettled, &all),
            Wanted::Settled => judge(stack, &unsettled, &excused(&all, settle)),
        };
        let (why, again) = match judged {
            Judgement::Ready => {
                let left = runs.left(&stack.services, &all, now, settle);
                match left {
                    Some((why, left)) if wanted == Wanted::Settled => (why, left.min(SETTLING)),
                    left => {
                        let services = runtime::services(&stack.services, &all);
                        let unsettled = if left.is_some() { unsettled } else { Unsettled::None };
                        return Ok(Readiness {
                            reachability: reach(spec, &workspace, &all),
                            services,
                            unsettled,
                        });
                    }
                }
            }
            Judgement::Broken { container, why } => {
                let output = match &container {
                    Some(name) => asked.last_words(&used.engine, name).await,
                    None => String::new(),
                };
                return Err(asked.not_ready(Code::OperationFailed, why, output, &all));
            }
            Judgement::Waiting(why) => (why, ASK_AGAIN),
        };
        if Instant::now() >= asked.until {
            return Err(asked.late(&used.engine, &why, &all).await);
        }
        asked.tell("ready", why);
        tokio::time::sleep(again).await;
    }
}

/// Containers, with those that ended after they had run for long enough as if they had ended well: whatever ended them, a patch or
/// their own work, they had settled. Their services are told as they are.
fn excused(all: &[Container], settle: Duration) -> Vec<Container> {
    let ran = |c: &Container| Some(c.finished_at?.since(c.started_at?));
    let excuse = |container: &Container| match container.exit_code {
        Some(_) if ran(container).is_some_and(|ran| ran >= settle) => {
            Container { exit_code: Some(0), ..container.clone() }
        }
        _ => container.clone(),
    };
    all.iter().map(excuse).collect()
}

/// Holds what runs against what is asked for.
fn judge(stack: &Stack, unsettled: &Unsettled, all: &[Container]) -> Judgement {
    let Unsettled::Woken(names) = unsettled else { return runtime::judge(&stack.services, all) };
    let found: Vec<Container> =
        all.iter().filter(|container| names.contains(&container.name)).cloned().collect();
    if found.len() < names.len() {
        return Judgement::Waiting(format!(
            "{} of {} containers are there",
            found.len(),
            names.len()
        ));
    }
    let count = |service: &str| {
        found.iter().filter(|container| container.service == service).count() as u32
    };
    let counted = stack
        .services
        .iter()
        .map(|service| Expected { replicas: count(&service.name), ..service.clone() });
    let expected: Vec<Expected> = counted.filter(|service| service.replicas > 0).collect();
    runtime::judge(&expected, &found)
}

/// Asks until all containers of a service are as healthy as they can say. One without a health check is.
pub(super) async fn healthy(asked: &Asked<'_>, service: &str) -> Result<(), Error> {
    let Some(used) = &asked.stack.runtime else { return Ok(()) };
    let owners = workspace::owners(asked.target);
    loop {
        let all = runtime::containers(asked.transport, &used.engine, &asked.target.id, &owners)
            .await?
            .containers;
        let mut of = all
            .iter()
            .filter(|container| container.service == service && container.state == "running");
        let Some(sick) = of.find(|c| c.health.as_deref().is_some_and(|health| health != "healthy"))
        else {
            return Ok(());
        };
        let why = format!("service {service} is {}", sick.health.as_deref().unwrap_or_default());
        if Instant::now() >= asked.until {
            return Err(asked.late(&used.engine, &why, &all).await);
        }
        asked.tell("start", why);
        tokio::time::sleep(ASK_AGAIN).await;
    }
}

/// Since when each container is seen to run without a pause: its start by the host's clock, its restarts, and our own clock. Where
/// the host's was set back meanwhile, ours tells.
#[derive(Default)]
struct Runs(BTreeMap<String, (Option<Time>, u32, Instant)>);

impl Runs {
    /// How long the youngest of the services that are to go on running still has to run, and a sentence; none where all have run
    /// for long enough. A health check that passed says as much.
    fn left(
        &mut self,
        services: &[Expected],
        found: &[Container],
        now: Time,
        settle: Duration,
    ) -> Option<(String, Duration)> {
        let stays =
            |name: &str| services.iter().any(|service| service.name == name && !service.one_shot);
        let mut most: Option<(String, Duration)> = None;
        for container in found
            .iter()
            .filter(|container| container.state == "running" && stays(&container.service))
        {
            let (started, restarts) = (container.started_at, container.restarts.unwrap_or(0));
            let seen = self
                .0
                .entry(container.id.clone())
                .or_insert_with(|| (started, restarts, Instant::now()));
            if (seen.0, seen.1) != (started, restarts) {
                *seen = (started, restarts, Instant::now());
            }
            let runs =
                started.map_or(Duration::ZERO, |started| now.since(started)).max(seen.2.elapsed());
            if runs >= settle || container.health.as_deref() == Some("healthy") {
                continue;
            }
            let left = settle.saturating_sub(runs);
            if most.as_ref().is_some_and(|(_, most)| *most >= left) {
                continue;
            }
            let name = &container.service;
            let again = if restarts > 0 {
                format!(", started again {}", plural(u64::from(restarts), "time", "times"))
            } else {
                String::new()
            };
            let why = format!(
                "service {name} has run for {:.1} s of {} s{again}",
                runs.as_secs_f64(),
                settle.as_secs()
            );
            most = Some((why, left));
        }
        most
    }
}

fn not_ready(code: Code, message: String, output: String, services: &[Service]) -> Error {
    let exit_status =
        services.iter().find(|service| service.is_degraded()).and_then(|service| service.exit_code);
    Error::new(code, message)
        .step("ready")
        .detail("services", serde_json::to_value(services).unwrap_or_default())
        .evidence(Failure { step: "ready".to_owned(), exit_status, output })
}

/// How to get to the workspace and to the ports of what runs.
pub(super) fn reach(spec: &HostSpec, workspace: &str, found: &[Container]) -> Reachability {
    let running = found.iter().filter(|container| container.state == "running");
    let doors = running.flat_map(|container| {
        container.ports.iter().map(move |port| Door {
            service: &container.service,
            container_port: port.container_port,
            protocol: &port.protocol,
            host_ip: &port.host_ip,
            host_port: port.host_port,
        })
    });
    reachability(spec, workspace, doors)
}

#[cfg(test)]
mod tests;
