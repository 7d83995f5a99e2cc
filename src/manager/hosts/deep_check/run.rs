//! Steps of a deep check, in order: probe, canary, stack, write, snapshot, restore, compare.

use std::future::Future;
use std::time::Duration;

use futures_util::{FutureExt as _, StreamExt as _};
use tokio_util::sync::CancellationToken;

use crate::domain::deep_check::DeepStage;
use crate::domain::error::{Code, Error};
use crate::domain::facts::HostFacts;
use crate::domain::host_view::{HostState, HostView};
use crate::domain::name::{HostName, OperationId};
use crate::domain::output::{ExecOutput, Source};
use crate::domain::profile::SnapshotMode;
use crate::domain::request::{
    CreateRequest, ExecRequest, RestoreRequest, SnapshotRequest, SnapshotStarted, Started, counted,
};
use crate::domain::sandbox::SandboxRecord;
use crate::domain::snapshot::SnapshotRecord;
use crate::failpoint;
use crate::manager::deps::Deps;
use crate::manager::hosts::check::{check_host, unchecked_host};
use crate::manager::hosts::deep_check::stack;
use crate::manager::hosts::deep_check::stack::LABEL;
use crate::manager::hosts::deep_check::steps::{DeepCheckSteps, ENDING, StepFailed, StepOutcome};
use crate::manager::operation::cancel::cancel_operation;
use crate::manager::operation::wait::{wait_for_operation, wait_for_snapshot};
use crate::manager::sandboxes::create::create_labelled;
use crate::manager::sandboxes::exec::exec;
use crate::manager::snapshots::create::take_snapshot;
use crate::manager::snapshots::find::get_snapshot_at_revision;
use crate::manager::snapshots::restore::restore;
use crate::transport::probe::{self, LeftoverRequest};

/// Time to live of what a check makes: a check that was killed is seen as expired then.
const TTL: &str = "30m";

/// The file in the workspace, and in the volume.
const FILE: &str = "sandboxer-check.txt";

const EXEC_LIMIT: Duration = Duration::from_mins(1);

const WRITE_SH: &str = r#"printf '%s\n' "$2" >"$1" && cat "$1""#;

const READ_SH: &str = r#"cat "$1""#;

pub(crate) struct HostCheck<'a> {
    pub(crate) deps: &'a Deps,
    pub(crate) operation: &'a OperationId,
    pub(crate) host: &'a HostName,
    pub(crate) cancel: &'a CancellationToken,
}

/// Traces that are looked for afterwards, as far as they are known by now.
#[derive(Default)]
pub(crate) struct CleanupScope {
    pub(crate) sought: LeftoverRequest,
    pub(crate) reached: bool,
}

impl HostCheck<'_> {
    /// Tries everything up to the first failure; the host as it was seen.
    pub(crate) async fn run(&self, steps: &mut DeepCheckSteps<'_>) -> (HostView, CleanupScope) {
        let mut view = None;
        let mut before = CleanupScope::default();
        let _ = self.try_all(steps, &mut view, &mut before).await;
        steps.skip_to(&ENDING);
        (view.unwrap_or_else(|| unchecked_host(self.deps, self.host)), before)
    }

    async fn try_all(
        &self,
        steps: &mut DeepCheckSteps<'_>,
        view: &mut Option<HostView>,
        before: &mut CleanupScope,
    ) -> Result<(), StepFailed> {
        let seen = steps.run(&DeepStage::Probe, self.probe(view).boxed()).await?;
        let Some(facts) = seen else { return Ok(()) };
        before.reached = true;
        before.sought.root.clone_from(&facts.workspace_root);
        before.sought.engines = engines(&facts);
        let canary = steps.run(&DeepStage::Canary, self.canary().boxed()).await?;
        let stack = steps.run(&DeepStage::Stack, self.stack(&facts).boxed()).await?;
        let has_volume = stack.is_some();
        let Some(source) = stack.or(canary) else { return Ok(()) };
        steps.run(&DeepStage::Write, self.write(&source, has_volume).boxed()).await?;
        failpoint::reached("check.written");
        let snapshot = steps.run(&DeepStage::Snapshot, self.snapshot(&source).boxed()).await?;
        let Some(snapshot) = snapshot else { return Ok(()) };
        failpoint::reached("check.snapshot");
        let restored = steps.run(&DeepStage::Restore, self.restore(&snapshot).boxed()).await?;
        let Some(restored) = restored else { return Ok(()) };
        failpoint::reached("check.restored");
        steps
            .run(&DeepStage::Compare, self.compare(&restored, &snapshot, has_volume).boxed())
            .await?;
        Ok(())
    }

    async fn probe(&self, view: &mut Option<HostView>) -> Result<StepOutcome<HostFacts>, Error> {
        let seen = self.or_cancelled(check_host(self.deps, self.host.as_str())).await?;
        let seen = view.insert(seen);
        let code = match seen.state {
            HostState::Up | HostState::Slow => None,
            HostState::Forbidden => Some(Code::Forbidden),
            _ => Some(Code::HostUnreachable),
        };
        if let Some(code) = code {
            let mut error = Error::new(code, format!("{} is {}", self.host, seen.state));
            error.hint.clone_from(&seen.hint);
            return Err(match seen.message.clone() {
                Some(why) => error.because(why),
                None => error,
            });
        }
        let facts =
            seen.facts.clone().ok_or_else(|| Error::internal("a host that is up has no facts"))?;
        let runtime = facts
            .runtimes
            .first()
            .map(|runtime| format!("{} {}", runtime.flavour, runtime.version));
        let summary: Vec<String> = facts.os.clone().into_iter().chain(runtime).collect();
        Ok(StepOutcome::Well(facts, Some(summary.join(", "))))
    }

    async fn canary(&self) -> Result<StepOutcome<SandboxRecord>, Error> {
        let made = self.create("profile.sandbox-canary", None).await?;
        let summary = format!("sandbox {}", made.id);
        Ok(StepOutcome::Well(made, Some(summary)))
    }

    async fn stack(&self, facts: &HostFacts) -> Result<StepOutcome<SandboxRecord>, Error> {
        let Some(runtime) = facts.runtimes.first() else {
            return Ok(StepOutcome::Skipped("the host has no compose runtime".to_owned()));
        };
        let image = match self
            .or_cancelled(stack::image(self.deps, self.host, self.operation, &runtime.engine))
            .await?
        {
            probe::ImageFound::Runs(image) => image,
            probe::ImageFound::None(0) => {
                return Ok(StepOutcome::Skipped(format!(
                    "{} has no image, and none is pulled",
                    runtime.engine
                )));
            }
            probe::ImageFound::None(had) => {
                let why = format!(
                    "none of the smallest of {had} images can run a shell, and none is pulled"
                );
                return Ok(StepOutcome::Skipped(why));
            }
        };
        let folder = stack::folder(self.deps, self.operation);
        stack::write(&folder, &image).await?;
        let made = self.create("profile.compose-e2e", Some(&folder)).await;
        stack::remove(&folder).await;
        let made = made?;
        let summary = format!("sandbox {} of image {image}", made.id);
        Ok(StepOutcome::Well(made, Some(summary)))
    }

    async fn create(
        &self,
        profile: &str,
        repo: Option<&std::path::Path>,
    ) -> Result<SandboxRecord, Error> {
        let mut request = CreateRequest {
            profile: Some(profile.to_owned()),
            host: Some(self.host.to_string()),
            ttl: Some(TTL.to_owned()),
            ..CreateRequest::default()
        };
        if let Some(repo) = repo {
            request.inputs.insert("repo".to_owned(), repo.display().to_string());
        }
        let label = Some((LABEL, self.operation.to_string()));
        let started = Box::pin(create_labelled(self.deps, request, label)).await?;
        self.wait_ready(started).await
    }

    async fn write(
        &self,
        source: &SandboxRecord,
        has_volume: bool,
    ) -> Result<StepOutcome<()>, Error> {
        let token = self.operation.as_str();
        self.try_script(source, None, WRITE_SH, FILE, &[token]).await?;
        if has_volume {
            self.try_script(source, Some(stack::SERVICE), WRITE_SH, &in_volume(), &[token]).await?;
        }
        Ok(StepOutcome::Well((), Some(where_to(has_volume).to_owned())))
    }

    async fn snapshot(&self, source: &SandboxRecord) -> Result<StepOutcome<SnapshotRecord>, Error> {
        let take = async |mode: Option<&SnapshotMode>| {
            let (id, mode) = (source.id.to_string(), mode.map(ToString::to_string));
            let request = SnapshotRequest { id, mode, ..SnapshotRequest::default() };
            self.wait_taken(take_snapshot(self.deps, &request).await?).await
        };
        let (taken, why) = match take(None).await {
            // Rootless podman on cgroup v1 cannot pause. What the operator would do then is done.
            Err(error) if error.code == Code::Unsupported => {
                (take(Some(&SnapshotMode::Stop)).await?, Some(error.message))
            }
            taken => (taken?, None),
        };
        let mode =
            taken.archive.mode.as_ref().map(|mode| format!(", mode {mode}")).unwrap_or_default();
        let why = why.map(|why| format!(" ({why})")).unwrap_or_default();
        let summary = format!("{}{mode}{why}", taken.id);
        Ok(StepOutcome::Well(taken, Some(summary)))
    }

    async fn restore(
        &self,
        snapshot: &SnapshotRecord,
    ) -> Result<StepOutcome<SandboxRecord>, Error> {
        let request = RestoreRequest {
            snapshot: snapshot.id.to_string(),
            host: Some(self.host.to_string()),
            ttl: Some(TTL.to_owned()),
            ..RestoreRequest::default()
        };
        let started = Box::pin(restore(self.deps, &request)).await?;
        let made = self.wait_ready(started).await?;
        let mut summary = format!("sandbox {}", made.id);
        if !made.not_preserved.is_empty() {
            summary = format!("{summary}; the host could not set {}", counted(&made.not_preserved));
        }
        Ok(StepOutcome::Well(made, Some(summary)))
    }

    async fn compare(
        &self,
        restored: &SandboxRecord,
        snapshot: &SnapshotRecord,
        has_volume: bool,
    ) -> Result<StepOutcome<()>, Error> {
        self.try_script(restored, None, READ_SH, FILE, &[]).await?;
        if has_volume {
            let read =
                self.try_script(restored, Some(stack::SERVICE), READ_SH, &in_volume(), &[]).await;
            let lost = snapshot.archive.not_captured.first();
            read.map_err(|error| match lost {
                Some(lost) => error.because(format!(
                    "the snapshot is without volume {}: {}",
                    lost.name, lost.reason
                )),
                None => error,
            })?;
        }
        Ok(StepOutcome::Well((), Some(format!("the same {}", where_to(has_volume)))))
    }

    /// Runs a script of ours in a sandbox, whose output has to be the check's token.
    async fn try_script(
        &self,
        sandbox: &SandboxRecord,
        service: Option<&str>,
        script: &str,
        file: &str,
        more: &[&str],
    ) -> Result<(), Error> {
        let words = [&["sh", "-c", script, "sh", file], more].concat();
        let request = ExecRequest {
            id: sandbox.id.to_string(),
            command: words.into_iter().map(str::to_owned).collect(),
            service: service.map(str::to_owned),
        };
        let place = service.map_or_else(
            || "in the workspace".to_owned(),
            |service| format!("in service {service}"),
        );
        let run = async {
            let mut pieces = Box::pin(exec(self.deps, request, None)).await?;
            let (mut status, mut stdout, mut stderr) = (None, Vec::new(), Vec::new());
            while let Some(piece) = pieces.next().await {
                match piece? {
                    ExecOutput::Output(Source::Stdout, bytes) => stdout.extend(bytes),
                    ExecOutput::Output(Source::Stderr, bytes) => stderr.extend(bytes),
                    ExecOutput::Exit(code) => status = Some(code),
                }
            }
            Ok::<_, Error>((status, stdout, stderr))
        };
        let late = || {
            Error::new(
                Code::Timeout,
                format!("a command {place} of sandbox {} did not end", sandbox.id),
            )
        };
        let limited =
            async { tokio::time::timeout(EXEC_LIMIT, run).await.unwrap_or_else(|_| Err(late())) };
        let (status, stdout, stderr) = self.or_cancelled(limited).await?;
        if status == Some(0)
            && String::from_utf8_lossy(&stdout).trim_end() == self.operation.as_str()
        {
            return Ok(());
        }
        let error = Error::new(
            Code::OperationFailed,
            format!("{file} {place} of sandbox {} is not what was written", sandbox.id),
        );
        let words =
            String::from_utf8_lossy(if stderr.is_empty() { &stdout } else { &stderr }).into_owned();
        let error = error.detail("exit_status", status).detail("output", words.as_str());
        Err(if words.trim().is_empty() { error } else { error.because(words.trim().to_owned()) })
    }

    /// Waits for a sandbox that is made; it is cancelled with the check.
    async fn wait_ready(&self, started: Started) -> Result<SandboxRecord, Error> {
        let Some(id) = started.operation else { return Ok(started.sandbox) };
        let ended = wait_for_operation(self.deps, &id);
        let (operation, record) = self.or_cancel(&id, ended).await?;
        let record = record.unwrap_or(started.sandbox);
        let Some(error) = operation.error else { return Ok(record) };
        let error = (*error).detail("sandbox_id", record.id.as_str());
        Err(match serde_json::to_value(&record.failure) {
            Ok(failure) if !failure.is_null() => error.detail("failure", failure),
            _ => error,
        })
    }

    /// Waits for a snapshot that is taken, likewise.
    async fn wait_taken(&self, started: SnapshotStarted) -> Result<SnapshotRecord, Error> {
        let Some(id) = started.operation else { return Ok(started.snapshot) };
        let ended = wait_for_snapshot(self.deps, &id);
        let error = match self.or_cancel(&id, ended).await {
            Err(error) => error.detail("snapshot_id", started.snapshot.id.as_str()),
            taken => return taken,
        };
        let left =
            get_snapshot_at_revision(self.deps, started.snapshot.id.as_str(), None).await.ok();
        Err(match left.and_then(|left| left.failure).map(serde_json::to_value) {
            Some(Ok(failure)) => error.detail("failure", failure),
            _ => error,
        })
    }

    /// Waits for an operation's end. When the check is cancelled so is the operation, and its end is waited for: dropping
    /// the wait would stop nothing.
    async fn or_cancel<T>(
        &self,
        id: &OperationId,
        ended: impl Future<Output = Result<T, Error>>,
    ) -> Result<T, Error> {
        tokio::pin!(ended);
        tokio::select! {
            biased;
            ended = &mut ended => return ended,
            () = self.cancel.cancelled() => {}
        }
        // An operation that has just ended is nothing to cancel.
        let _ = cancel_operation(self.deps, id).await;
        ended.await
    }

    /// Work that changes nothing, or nothing that stays, unless the check is cancelled.
    async fn or_cancelled<T>(
        &self,
        work: impl Future<Output = Result<T, Error>>,
    ) -> Result<T, Error> {
        tokio::select! {
            biased;
            () = self.cancel.cancelled() => Err(Error::new(Code::Cancelled, "the check was cancelled")),
            done = work => done,
        }
    }
}

fn engines(facts: &HostFacts) -> Vec<String> {
    let mut engines: Vec<String> =
        facts.runtimes.iter().map(|runtime| runtime.engine.clone()).collect();
    engines.sort();
    engines.dedup();
    engines
}

fn in_volume() -> String {
    format!("{}/{FILE}", stack::VOLUME_AT)
}

fn where_to(has_volume: bool) -> &'static str {
    if has_volume { "file in the workspace and file in a volume" } else { "file in the workspace" }
}
