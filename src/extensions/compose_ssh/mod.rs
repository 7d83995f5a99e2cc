//! `ext.compose-ssh`: a workspace on a host, and in it a compose stack where the profile has one.
//!
//! provision is one prepare call, the transfer, and `up`; `wait_ready` asks the engine, never an exit status alone;
//! `teardown` removes by label and reads back. With `config.workspace_only` there is a workspace and no stack: the
//! canary.

mod certify;
mod handle;
mod manifest;
mod provision;
mod ready;
pub mod render;
mod runtime;
mod said;
mod source;
mod teardown;

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;

use crate::domain::extension::{
    Capabilities, ExtensionError, Preview, ProvisionRequest, Provisioned, Readiness, Reporter, SandboxExtension,
    Target, TeardownReport,
};
use crate::domain::fault::{Code, Fault};
use crate::domain::name::{ExtensionId, HostName};
use crate::domain::profile::Profile;
use crate::domain::sandbox::Failure;
use crate::domain::text::last_lines;
use crate::domain::time::Time;
use crate::transport::{Command, Output, Transport, Transports};

/// This extension's id.
pub const ID: &str = "ext.compose-ssh";

/// How long a small remote step may take.
const STEP_LIMIT: Duration = Duration::from_mins(1);

/// Lines of a failed step's output that are kept as evidence.
const EVIDENCE_LINES: usize = 200;

/// Compose stacks and workspaces on hosts over SSH, and on this machine.
pub struct ComposeSsh {
    id: ExtensionId,
    transports: Arc<dyn Transports>,
    /// `SANDBOXER_COMPOSE_CMD`; a host's own `compose_cmd` goes first.
    compose_cmd: Option<String>,
    now: fn() -> Time,
}

impl ComposeSsh {
    /// Over these ways to hosts; `now` is the clock that judges the hosts' clocks.
    pub fn new(transports: Arc<dyn Transports>, compose_cmd: Option<String>, now: fn() -> Time) -> Self {
        Self { id: ID.into(), transports, compose_cmd, now }
    }

    async fn open(&self, host: &HostName) -> Result<Arc<dyn Transport>, Fault> {
        self.transports.open(host).await
    }
}

#[async_trait]
impl SandboxExtension for ComposeSsh {
    fn id(&self) -> &ExtensionId {
        &self.id
    }

    fn capabilities(&self) -> Capabilities {
        // Making and removing; the rest of what the manifest names comes with the verbs that use it.
        Capabilities::new()
    }

    async fn preview(&self, request: &ProvisionRequest) -> Result<Preview, ExtensionError> {
        source::preview(request).await.map_err(ExtensionError::from)
    }

    async fn provision(
        &self,
        request: &ProvisionRequest,
        reporter: &dyn Reporter,
    ) -> Result<Provisioned, ExtensionError> {
        provision::provision(self, request, reporter).await
    }

    async fn wait_ready(
        &self,
        target: &Target,
        limit: Duration,
        reporter: &dyn Reporter,
    ) -> Result<Readiness, ExtensionError> {
        ready::wait_ready(self, target, limit, reporter).await
    }

    async fn set_deadline(&self, target: &Target, expires_at: Option<Time>) -> Result<(), ExtensionError> {
        ready::set_deadline(self, target, expires_at).await
    }

    async fn teardown(&self, target: &Target, reporter: &dyn Reporter) -> Result<TeardownReport, ExtensionError> {
        teardown::teardown(self, target, reporter).await
    }
}

/// Whether the profile makes a workspace and starts nothing.
fn workspace_only(profile: &Profile) -> bool {
    profile.config["workspace_only"] == true
}

/// Runs one of our scripts; an exit status other than 0 is a failed step with the evidence.
async fn step(transport: &dyn Transport, name: &str, command: &Command) -> Result<Output, ExtensionError> {
    let output = transport.run(command, STEP_LIMIT).await.map_err(|fault| fault.detail("step", name))?;
    if output.ok() {
        return Ok(output);
    }
    Err(failed(name, format!("step {name} failed on {}", transport.spec().name), &output))
}

/// A failed step: the fault, and the last lines as evidence.
fn failed(step: &str, message: String, output: &Output) -> ExtensionError {
    let mut text = output.text();
    let errors = output.error_text();
    if !errors.is_empty() {
        if !text.is_empty() && !text.ends_with('\n') {
            text.push('\n');
        }
        text.push_str(&errors);
    }
    let mut fault = Fault::new(Code::OperationFailed, message).detail("step", step);
    if let Some(last) = errors.lines().chain(text.lines()).rfind(|line| !line.trim().is_empty()) {
        fault = fault.because(last.trim().to_owned());
    }
    ExtensionError {
        fault,
        failure: Some(Failure {
            step: step.to_owned(),
            exit_status: Some(output.status),
            output: last_lines(&text, EVIDENCE_LINES),
        }),
        untouched: false,
    }
}
