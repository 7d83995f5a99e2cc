//! `wait_ready`: the engine is asked until it says that every long-running service runs.

use std::collections::BTreeMap;
use std::time::Duration;

use tokio::time::Instant;

use crate::domain::extension::{ExtensionError, Readiness, Report, Reporter, Target};
use crate::domain::fault::{Code, Fault};
use crate::domain::host::HostSpec;
use crate::domain::sandbox::{Failure, Reachability, Service};
use crate::extensions::compose_ssh::handle::{Expected, Stack};
use crate::extensions::compose_ssh::runtime::{self, Container, Judgement};
use crate::extensions::compose_ssh::{ComposeSsh, given};
use crate::extensions::workspace::reachability::{Door, reachability};
use crate::extensions::workspace::{self, step};
use crate::transport::{Command, Transport};

const WORKSPACE_SH: &str = "cd -P -- \"$1\"";

/// Between two questions to the engine.
const ASK_AGAIN: Duration = Duration::from_millis(300);

pub(super) fn stack(target: &Target) -> Result<Stack, Fault> {
    Stack::from_handle(target.handle.as_ref())
        .ok_or_else(|| Fault::internal(format!("the handle of sandbox {} cannot be read", target.id)))
}

/// Who is asked, for what, and how long.
pub(super) struct Asked<'a> {
    pub(super) transport: &'a dyn Transport,
    pub(super) target: &'a Target,
    pub(super) stack: &'a Stack,
    pub(super) reporter: &'a dyn Reporter,
    pub(super) until: Instant,
    /// How long that was at first, for a person.
    pub(super) limit: Duration,
}

impl Asked<'_> {
    fn not_ready(&self, code: Code, message: String, words: String, found: &[Container]) -> ExtensionError {
        not_ready(code, message, words, self.stack, &runtime::services(&self.stack.services, found))
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

    fn late(&self, why: &str, found: &[Container]) -> ExtensionError {
        let message = format!("not ready within {} s: {why}", self.limit.as_secs());
        self.not_ready(Code::Timeout, message, String::new(), found)
    }
}

pub(super) async fn wait_ready(
    extension: &ComposeSsh,
    target: &Target,
    limit: Duration,
    reporter: &dyn Reporter,
) -> Result<Readiness, ExtensionError> {
    let stack = stack(target)?;
    let transport = extension.open(&target.host).await?;
    reporter.report(Report { stage: "ready", ..Report::default() });
    let until = Instant::now() + limit;
    let asked = Asked { transport: transport.as_ref(), target, stack: &stack, reporter, until, limit };
    until_ready(&asked, &stack.services, None).await
}

/// Asks until these services run; `only`: nothing else than these containers counts.
pub(super) async fn until_ready(
    asked: &Asked<'_>,
    expected: &[Expected],
    only: Option<&[String]>,
) -> Result<Readiness, ExtensionError> {
    let &Asked { transport, target, stack, .. } = asked;
    let workspace = workspace::workspace(workspace::workdir(target)?);
    let report = Report { stage: "ready", ..Report::default() };
    let spec = transport.spec();
    let Some(used) = &stack.runtime else {
        step(transport, "look at the workspace", &Command::script(WORKSPACE_SH).arg(&workspace)).await?;
        return Ok(Readiness { reachability: reach(spec, &workspace, &[]), services: Vec::new() });
    };
    let counts = |container: &&Container| only.is_none_or(|only| only.contains(&container.name));
    let owners = workspace::owners(target);
    let mut calm = Calm::default();
    loop {
        let all = runtime::containers(transport, &used.engine, &target.id, &owners).await?;
        let found: Vec<Container> = all.iter().filter(counts).cloned().collect();
        let judged = match runtime::judge(expected, &found) {
            Judgement::Ready => calm.judge(&found),
            other => other,
        };
        match judged {
            Judgement::Ready => {
                let services = runtime::services(&stack.services, &all);
                return Ok(Readiness { reachability: reach(spec, &workspace, &all), services });
            }
            Judgement::Broken { container, why } => {
                let output = match &container {
                    Some(name) => asked.last_words(&used.engine, name).await,
                    None => String::new(),
                };
                return Err(asked.not_ready(Code::OperationFailed, why, output, &all));
            }
            Judgement::Waiting(why) if Instant::now() >= asked.until => return Err(asked.late(&why, &all)),
            Judgement::Waiting(why) => asked.reporter.report(Report { message: Some(why), ..report.clone() }),
        }
        tokio::time::sleep(ASK_AGAIN).await;
    }
}

/// Asks until all containers of a service are as healthy as they can say. One without a health check is.
pub(super) async fn healthy(asked: &Asked<'_>, service: &str) -> Result<(), ExtensionError> {
    let Some(used) = &asked.stack.runtime else { return Ok(()) };
    let owners = workspace::owners(asked.target);
    loop {
        let all = runtime::containers(asked.transport, &used.engine, &asked.target.id, &owners).await?;
        let mut of = all.iter().filter(|container| container.service == service && container.state == "running");
        let Some(sick) = of.find(|c| c.health.as_deref().is_some_and(|health| health != "healthy")) else {
            return Ok(());
        };
        let why = format!("service {service} is {}", sick.health.as_deref().unwrap_or_default());
        if Instant::now() >= asked.until {
            return Err(asked.late(&why, &all));
        }
        asked.reporter.report(Report { stage: "start", message: Some(why), ..Report::default() });
        tokio::time::sleep(ASK_AGAIN).await;
    }
}

/// How long a container that the engine had to start again must run before it counts: one look may fall between
/// two crashes.
const CALM: Duration = Duration::from_secs(2);

/// Restarts of each container, and since when there were so many.
#[derive(Default)]
struct Calm(BTreeMap<String, (u32, Instant)>);

impl Calm {
    fn judge(&mut self, found: &[Container]) -> Judgement {
        let mut waiting = None;
        for container in found.iter().filter(|container| container.state == "running") {
            let restarts = container.restarts.unwrap_or(0);
            let seen = self.0.entry(container.name.clone()).or_insert((restarts, Instant::now()));
            if seen.0 != restarts {
                *seen = (restarts, Instant::now());
            }
            if restarts > 0 && seen.1.elapsed() < CALM {
                waiting = Some(format!("service {} was started again {restarts} times", container.service));
            }
        }
        waiting.map_or(Judgement::Ready, Judgement::Waiting)
    }
}

fn not_ready(code: Code, message: String, words: String, stack: &Stack, services: &[Service]) -> ExtensionError {
    let output = if words.trim().is_empty() { stack.up_output.clone() } else { words };
    let exit_status = services.iter().find(|service| service.is_degraded()).and_then(|service| service.exit_code);
    ExtensionError {
        fault: Fault::new(code, message)
            .detail("step", "ready")
            .detail("services", serde_json::to_value(services).unwrap_or_default()),
        failure: Some(Failure { step: "ready".to_owned(), exit_status, output }),
        untouched: false,
    }
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
