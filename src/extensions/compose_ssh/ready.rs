//! `wait_ready`: the engine is asked until it says that every long-running service runs.

use std::collections::BTreeMap;
use std::time::Duration;

use tokio::time::Instant;

use crate::domain::extension::{ExtensionError, Readiness, Report, Reporter, Target};
use crate::domain::fault::{Code, Fault};
use crate::domain::host::HostSpec;
use crate::domain::sandbox::{Failure, Reachability, Service};
use crate::extensions::compose_ssh::ComposeSsh;
use crate::extensions::compose_ssh::handle::Stack;
use crate::extensions::compose_ssh::runtime::{self, Container, Judgement};
use crate::extensions::workspace::reachability::{Door, reachability};
use crate::extensions::workspace::{self, step};
use crate::transport::Command;

const WORKSPACE_SH: &str = "cd -P -- \"$1\"";

/// Between two questions to the engine.
const ASK_AGAIN: Duration = Duration::from_millis(300);

fn stack(target: &Target) -> Result<Stack, Fault> {
    Stack::from_handle(target.handle.as_ref())
        .ok_or_else(|| Fault::internal(format!("the handle of sandbox {} cannot be read", target.id)))
}

pub(super) async fn wait_ready(
    extension: &ComposeSsh,
    target: &Target,
    limit: Duration,
    reporter: &dyn Reporter,
) -> Result<Readiness, ExtensionError> {
    let stack = stack(target)?;
    let workspace = workspace::workspace(workspace::workdir(target)?);
    let transport = extension.open(&target.host).await?;
    let transport = transport.as_ref();
    let report = Report { stage: "ready", ..Report::default() };
    reporter.report(report.clone());
    let spec = transport.spec();
    let Some(used) = &stack.runtime else {
        step(transport, "look at the workspace", &Command::script(WORKSPACE_SH).arg(&workspace)).await?;
        return Ok(Readiness { reachability: reach(spec, &workspace, &[]), services: Vec::new() });
    };
    let until = Instant::now() + limit;
    let mut calm = Calm::default();
    loop {
        let found = runtime::containers(transport, &used.engine, &target.id.project()).await?;
        let services = runtime::services(&stack.services, &found);
        let judged = match runtime::judge(&stack.services, &found) {
            Judgement::Ready => calm.judge(&found),
            other => other,
        };
        match judged {
            Judgement::Ready => {
                return Ok(Readiness { reachability: reach(spec, &workspace, &found), services });
            }
            Judgement::Broken { container, why } => {
                let output = match &container {
                    Some(name) => runtime::last_words(transport, &used.engine, name).await,
                    None => String::new(),
                };
                return Err(not_ready(Code::OperationFailed, why, output, &stack, &services));
            }
            Judgement::Waiting(why) if Instant::now() >= until => {
                let message = format!("not ready within {} s: {why}", limit.as_secs());
                return Err(not_ready(Code::Timeout, message, String::new(), &stack, &services));
            }
            Judgement::Waiting(why) => reporter.report(Report { message: Some(why), ..report.clone() }),
        }
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
fn reach(spec: &HostSpec, workspace: &str, found: &[Container]) -> Reachability {
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
