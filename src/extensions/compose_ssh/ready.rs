//! `wait_ready`, `inspect` and the manifest's deadline.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use tokio::time::Instant;

use crate::domain::extension::{ExtensionError, Readiness, Report, Reporter, Target};
use crate::domain::fault::{Code, Fault};
use crate::domain::host::HostSpec;
use crate::domain::sandbox::{Endpoint, Failure, Reachability, Service};
use crate::domain::time::Time;
use crate::extensions::compose_ssh::handle::Stack;
use crate::extensions::compose_ssh::runtime::{self, Container, Judgement};
use crate::extensions::compose_ssh::{ComposeSsh, manifest, step};
use crate::transport::Command;
use crate::transport::shell::quote::quote;

const DATE_SH: &str = include_str!("scripts/date.sh");
const WORKSPACE_SH: &str = "cd -P -- \"$1\"";

/// Between two questions to the engine.
const ASK_AGAIN: Duration = Duration::from_millis(300);

fn workdir(target: &Target) -> Result<&str, Fault> {
    target.workdir.as_deref().ok_or_else(|| Fault::internal(format!("sandbox {} has no directory yet", target.id)))
}

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
    let workdir = workdir(target)?;
    let workspace = format!("{workdir}/workspace");
    let transport = extension.open(&target.host).await?;
    let transport = transport.as_ref();
    let report = Report { stage: "ready", ..Report::default() };
    reporter.report(report.clone());
    let spec = transport.spec();
    let Some(used) = &stack.runtime else {
        step(transport, "look at the workspace", &Command::script(WORKSPACE_SH).arg(&workspace)).await?;
        return Ok(Readiness { reachability: reachability(spec, &workspace, &[]), services: Vec::new() });
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
                return Ok(Readiness { reachability: reachability(spec, &workspace, &found), services });
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

pub(super) async fn set_deadline(
    extension: &ComposeSsh,
    target: &Target,
    expires_at: Option<Time>,
) -> Result<(), ExtensionError> {
    let owner = target.owners.last().ok_or_else(|| Fault::internal("the sandbox has no owner"))?;
    let created_at = target.created_at;
    let text = manifest::text(&target.id, owner, target.profile.id.as_str(), created_at, expires_at)?;
    let transport = extension.open(&target.host).await?;
    let command = Command::script(DATE_SH).arg(workdir(target)?).arg(text);
    step(transport.as_ref(), "deadline", &command).await.map(|_| ())
}

/// How to get to the sandbox: commands to paste.
fn reachability(spec: &HostSpec, workspace: &str, found: &[Container]) -> Reachability {
    let ssh = ssh_words(spec);
    let enter = format!("cd {} && exec \"$SHELL\" -l", quoted(workspace));
    let mut endpoints: Vec<Endpoint> = found
        .iter()
        .filter(|container| container.state == "running")
        .flat_map(|container| container.ports.iter().map(move |port| (container, port)))
        .map(|(container, port)| {
            let ip = if port.host_ip.is_empty() || port.host_ip == "0.0.0.0" || port.host_ip == "::" {
                "127.0.0.1"
            } else {
                port.host_ip.as_str()
            };
            let scheme = if port.protocol == "tcp" { "http" } else { port.protocol.as_str() };
            let at = if ip.contains(':') { format!("[{ip}]") } else { ip.to_owned() };
            Endpoint {
                service: container.service.clone(),
                container_port: port.container_port,
                host_port: port.host_port,
                protocol: port.protocol.clone(),
                url: format!("{scheme}://{at}:{}", port.host_port),
                // ssh forwards TCP only.
                tunnel: ssh.as_ref().filter(|_| port.protocol == "tcp").map(|words| {
                    format!("ssh {} -N -L {}:{at}:{} {}", words.options, port.host_port, port.host_port, words.target)
                        .replace("  ", " ")
                }),
            }
        })
        .collect();
    endpoints
        .sort_by(|a, b| (&a.service, a.container_port, a.host_port).cmp(&(&b.service, b.container_port, b.host_port)));
    Reachability {
        host: spec.name.clone(),
        ssh: match &ssh {
            Some(words) => format!("ssh {} -t {} {}", words.options, words.target, quoted(&enter)).replace("  ", " "),
            None => format!("cd {}", quoted(workspace)),
        },
        workdir: workspace.to_owned(),
        endpoints,
        attachments: Vec::new(),
    }
}

struct SshWords {
    options: String,
    target: String,
}

fn ssh_words(spec: &HostSpec) -> Option<SshWords> {
    let target = spec.ssh_target()?;
    let options = spec.ssh_config.as_deref().map(|path| format!("-F {}", quoted_path(path))).unwrap_or_default();
    Some(SshWords { options, target: quoted(target) })
}

fn quoted_path(path: &Path) -> String {
    quoted(&path.to_string_lossy())
}

/// A word of a command to paste: bare where that is safe, else in single quotes, which a reader can check.
fn quoted(text: &str) -> String {
    let safe = |c: char| c.is_ascii_alphanumeric() || "@%+=:,./_-".contains(c);
    if !text.is_empty() && text.chars().all(safe) {
        return text.to_owned();
    }
    let mut word = Vec::new();
    match quote(text.as_bytes(), &mut word) {
        Ok(()) => String::from_utf8_lossy(&word).into_owned(),
        Err(_) => "''".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::extensions::compose_ssh::runtime::Published;

    #[test]
    fn the_commands_to_paste_are_quoted_and_name_the_configuration() {
        let mut spec = HostSpec::named("coulombcore");
        spec.ssh = Some("ops@coulombcore".to_owned());
        spec.ssh_config = Some("/etc/my lab/config".into());
        let web = Container {
            name: "sbx-1_web_1".into(),
            service: "web".into(),
            state: "running".into(),
            exit_code: None,
            restarts: None,
            health: None,
            ports: vec![Published {
                container_port: 80,
                protocol: "tcp".into(),
                host_ip: "127.0.0.1".into(),
                host_port: 4711,
            }],
        };
        let there = reachability(&spec, "/srv/a b/sbx-1/workspace", &[web]);
        assert_eq!(
            there.ssh,
            r#"ssh -F '/etc/my lab/config' -t ops@coulombcore 'cd '\''/srv/a b/sbx-1/workspace'\'' && exec "$SHELL" -l'"#
        );
        assert_eq!(there.endpoints[0].url, "http://127.0.0.1:4711");
        assert_eq!(
            there.endpoints[0].tunnel.as_deref(),
            Some("ssh -F '/etc/my lab/config' -N -L 4711:127.0.0.1:4711 ops@coulombcore")
        );
    }
}
