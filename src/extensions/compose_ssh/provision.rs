//! provision: one prepare call, the transfer, and `up`.

use std::time::Duration;

use tokio::time::Instant;

use crate::domain::compose_host::ComposeHost;
use crate::domain::error::{Code, Error};
use crate::domain::extension::{ProvisionRequest, Provisioned, Refusal};
use crate::domain::facts::Runtime;
use crate::domain::host::HostSpec;
use crate::domain::reporter::{Learnt, Report, Reporter};
use crate::domain::text::last_lines;
use crate::extensions::compose_ssh::build_links::BuildLinks;
use crate::extensions::compose_ssh::deps::{Deps, workspace_only};
use crate::extensions::compose_ssh::handle::{Expected, Stack};
use crate::extensions::compose_ssh::mask::Masker;
use crate::extensions::compose_ssh::render::{Dialect, RenderError, Rendered};
use crate::extensions::compose_ssh::{canary, host, ready, runtime, source};
use crate::extensions::workspace::prepare::{Detect, Prepared, Wanted};
use crate::extensions::workspace::{self, EVIDENCE_LINES, Steps, failed, repo};
use crate::failpoint;
use crate::transport::transfer::Plan;
use crate::transport::{Command, Output, Source, Transport};

const UP_SH: &str = concat!(
    include_str!("../../transport/scripts/runtime.sh"),
    include_str!("../workspace/scripts/belonging.sh"),
    include_str!("scripts/clock.sh"),
    include_str!("scripts/up.sh")
);

/// Words of podman where an interface of another network goes away while it lists them all: Go's `net` asks for the list,
/// and then for each one. Seen with podman 4.3 when one sandbox was made while another one was removed.
const VANISHED: &str = "route ip+net: no such network interface";
/// How often a stack is started at most, where that came between.
const TRIES: u32 = 3;
/// How long what goes away there is given meanwhile.
const STUMBLED: Duration = Duration::from_millis(500);

pub(super) async fn provision(
    deps: &Deps,
    request: &ProvisionRequest,
    reporter: &dyn Reporter,
) -> Result<Provisioned, Error> {
    let plan = repo::plan(request).await.map_err(Error::untouched)?;
    let steps = Steps::new(reporter, step_count(request));
    steps.next("prepare");
    let transport = deps.open(&request.host).await.map_err(Error::untouched)?;
    let transport = transport.as_ref();
    let prepared =
        prepare(deps, request, transport, plan.as_ref(), Wanted::default(), &steps).await?;
    failpoint::reached("compose.prepared");
    finish(deps, request, transport, plan, prepared, &steps).await
}

/// Prepare, transfer where there is something, `up` or a look at the host, ready.
pub(super) fn step_count(request: &ProvisionRequest) -> u32 {
    3 + u32::from(repo::repository(&request.inputs).is_some())
}

async fn finish(
    deps: &Deps,
    request: &ProvisionRequest,
    transport: &dyn Transport,
    plan: Option<Plan>,
    prepared: Prepared,
    steps: &Steps<'_>,
) -> Result<Provisioned, Error> {
    if let Some(plan) = &plan {
        prepared.fill(request, transport, plan, steps).await?;
        failpoint::reached("compose.transferred");
    }
    let mut made = prepared.provisioned();
    let stack = if workspace_only(&request.profile) {
        steps.next("inspect");
        let report = canary::report(deps, request, transport, &prepared).await?;
        made.report = Some(Box::new(report));
        Stack::default()
    } else {
        let runtime = runtime_of(&prepared, request)?;
        let workspace = workspace::workspace(&prepared.workdir);
        // Once more, with the host that is there now: nothing is started that was not judged.
        let (rendering, _) =
            host::render(request, &workspace, host_of(request, &runtime), transport).await?;
        let rendered = rendering.result.map_err(|error| refused_by(&error, request, &runtime))?;
        steps.reporter.learnt(&Learnt { rewrites: rendered.rewrites.clone(), ..prepared.learnt() });
        up(request, transport, runtime, (&rendered, prepared.clear), &mut made, steps).await?
    };
    made.handle = stack.to_handle()?;
    Ok(made)
}

/// Makes the directory; for a stack, with a compose runtime of the host. One that was found before is not looked for again,
/// but where its engine is another one by now.
pub(super) async fn prepare(
    deps: &Deps,
    request: &ProvisionRequest,
    transport: &dyn Transport,
    plan: Option<&Plan>,
    wanted: Wanted<'_>,
    steps: &Steps<'_>,
) -> Result<Prepared, Error> {
    let spec = transport.spec();
    let words = host::words(deps, transport)?;
    let known = request.compose_host.as_ref().map(|host| &host.runtime);
    let runtime = match known {
        _ if workspace_only(&request.profile) => Detect::Fingerprint(&words),
        Some(known) => Detect::Known(known),
        None => Detect::First(&words),
    };
    let prepared =
        workspace::prepare::prepare(request, transport, plan, Wanted { runtime, ..wanted }, steps)
            .await?;
    match (runtime, &prepared.runtime) {
        (Detect::Known(before), None) => {
            let runtime = host::find(deps, transport).await?;
            let message =
                format!("the host has {runtime} by now, and had {before}: it is judged again");
            tracing::warn!(sandbox = %request.id, host = %spec.name, message);
            steps.reporter.report(Report {
                stage: "prepare",
                message: Some(message),
                ..Report::default()
            });
            let prepared = prepared.on(runtime);
            steps.reporter.learnt(&prepared.learnt());
            Ok(prepared)
        }
        (Detect::First(_), None) => Err(host::no_runtime(spec.name.as_str(), &prepared.findings)),
        _ => Ok(prepared),
    }
}

/// The runtime that the prepare call found.
pub(super) fn runtime_of(
    prepared: &Prepared,
    request: &ProvisionRequest,
) -> Result<Runtime, Error> {
    prepared.runtime.clone().ok_or_else(|| host::no_runtime(request.host.as_str(), &[]))
}

/// The host as it was found, on the runtime that it has now.
pub(super) fn host_of(request: &ProvisionRequest, runtime: &Runtime) -> ComposeHost {
    let taken = request.compose_host.as_ref().and_then(|host| host.taken.clone());
    ComposeHost { runtime: runtime.clone(), taken }
}

/// A compose file that is refused, with all that is wrong with it.
pub(super) fn refused(error: &RenderError) -> Error {
    Refusal::error("compose_file", &source::refusals(error)).step("render")
}

/// Same as [`refused`], by a host that is perhaps another one than the one that was asked.
pub(super) fn refused_by(
    error: &RenderError,
    request: &ProvisionRequest,
    runtime: &Runtime,
) -> Error {
    let error = refused(error);
    match &request.compose_host {
        Some(before) if before.runtime != *runtime => {
            let before = &before.runtime;
            error.hint(format!(
                "{} has {runtime} by now, and had {before} when it was asked first",
                request.host
            ))
        }
        _ => error,
    }
}

/// Writes the rendered file and starts it; `is_clear`: nothing of another one can have come in its way since the engine was asked.
/// Its rewrites, the tool's last lines and how it runs go with what was made.
pub(super) async fn up(
    request: &ProvisionRequest,
    transport: &dyn Transport,
    runtime: Runtime,
    (rendered, is_clear): (&Rendered, bool),
    made: &mut Provisioned,
    steps: &Steps<'_>,
) -> Result<Stack, Error> {
    failpoint::reached("compose.rendered");
    let report = steps.next("up");
    let project = request.id.project();
    let settle_s = settles_at_start(request, transport.spec());
    let dialect = Dialect::of(&runtime);
    let builds = BuildLinks::of(&request.id, &rendered.contexts, dialect);
    let command = Command::script(UP_SH)
        .arg(&made.workdir)
        .arg(&project)
        .arg(&rendered.yaml)
        .arg(&runtime.engine)
        .arg(if dialect == Dialect::Podman { "apart" } else { "" })
        .arg(request.owner.owner.as_str())
        .arg(settle_s.to_string())
        .arg(if is_clear { "clear" } else { "" })
        .arg(rendered.secrets.len().to_string())
        .args(rendered.secrets.iter().flat_map(|(name, text)| [name, text]))
        .arg(rendered.sources.len().to_string())
        .args(&rendered.sources)
        .arg(builds.file)
        .arg(builds.links.len().to_string())
        .args(builds.links.iter().flat_map(|(name, folder)| [name, folder]))
        .args(&runtime.command);
    let masker = Masker::of_file(&rendered.yaml, &rendered.variables)
        .ok_or_else(|| Error::internal("the rendered file cannot be read again"))?;
    let mut on_line = |source: Source, line: &[u8]| {
        if source == Source::Stderr {
            let message = Some(masker.line(line));
            steps.reporter.report(Report { message, ..report.clone() });
        }
    };
    // Pulling and building count: a start that takes longer than the profile allows has failed.
    let until =
        Instant::now() + request.profile.ready_timeout.duration() + Duration::from_secs(settle_s);
    let mut tries = TRIES;
    let engine = runtime.engine.clone();
    let command_words = runtime.command.join(" ");
    let stack = stack_of(rendered, runtime);
    let (output, seen, ready) = loop {
        let output = transport
            .stream(&command, until.saturating_duration_since(Instant::now()), &mut on_line)
            .await
            .map_err(|error| too_long(error, request).step("up"))?;
        tries -= 1;
        let seen = runtime::parse_observed(&output.text()).filter(|_| !output.truncated);
        let ready = seen.as_ref().filter(|_| output.ok()).and_then(|seen| {
            ready::seen_running(transport.spec(), request, &made.workdir, &stack, seen)
        });
        if tries == 0 || ready.is_some() || !stumbled(&engine, &output) {
            break (output, seen, ready);
        }
        let message = Some("the engine met a network that went away: once more".to_owned());
        steps.reporter.report(Report { message, ..report.clone() });
        tokio::time::sleep(STUMBLED).await;
    };
    failpoint::reached("compose.up");
    let output = masker.output(&Output { stdout: Vec::new(), ..output });
    if !output.ok() {
        return Err(failed("up", format!("{command_words} could not start the stack"), &output));
    }
    let said = last_lines(&output.error_text(), EVIDENCE_LINES);
    // An engine that does not tell here is asked for readiness once more.
    if let Some(seen) = seen {
        runtime::check_started(&stack, &seen.containers, (&output, &said))?;
        made.ready = ready;
    }
    if made.ready.is_some() {
        steps.reporter.report(Report { stage: "ready", ..Report::default() });
    }
    made.rewrites.clone_from(&rendered.rewrites);
    made.start_output = Some(said);
    Ok(stack)
}

/// The longest time to settle that is a part of the start, in seconds: longer ones are told while they go on.
const SETTLES: u64 = 10;

/// Seconds for which services show that they stay before the start is over: none where tunnels or patches come meanwhile.
fn settles_at_start(request: &ProvisionRequest, spec: &HostSpec) -> u64 {
    let is_patched = request.sandbox.as_ref().is_some_and(|one| one.based_on_snapshot.is_some());
    let settle_s = request.profile.settle.get();
    if spec.reach.is_some() || is_patched || settle_s > SETTLES { 0 } else { settle_s }
}

/// Services that are expected to run of a rendered file.
fn stack_of(rendered: &Rendered, runtime: Runtime) -> Stack {
    let services = rendered.services.iter();
    Stack {
        services: services
            .clone()
            .map(|service| Expected {
                name: service.name.clone(),
                replicas: service.replicas,
                restart: service.restart.clone(),
                one_shot: service.one_shot,
                needs: service.needs.clone(),
            })
            .collect(),
        built: services.filter(|s| s.built).map(|s| s.image.clone()).collect(),
        runtime: Some(runtime),
    }
}

/// Whether podman says that it met something of somebody else's that went away under its eyes, which has nothing to do with this
/// stack. A build or a container may print the same words, but does not begin their line like the engine.
fn stumbled(engine: &str, output: &Output) -> bool {
    let is_its_error = |line: &str| line.starts_with("Error") && line.contains(VANISHED);
    engine == "podman" && output.error_text().lines().any(is_its_error)
}

fn too_long(error: Error, request: &ProvisionRequest) -> Error {
    if error.code != Code::Timeout {
        return error;
    }
    let message = format!(
        "the stack was not started within the profile's ready_timeout of {}",
        request.profile.ready_timeout
    );
    Error::new(Code::Timeout, message)
        .hint("what it was doing is in the record's failure")
        .because(error)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_start_is_tried_again_for_what_podman_itself_says() {
        let own = format!("Error: setting up the network: {VANISHED}");
        let printed = format!("web_1 | {VANISHED}");
        for (engine, line, again) in [
            ("podman", own.as_str(), true),
            ("podman", &printed, false),
            ("podman", "Error: no such image", false),
            ("docker", &own, false),
        ] {
            let stderr = format!("pulling\n{line}\nexit code: 125\n").into_bytes();
            let output = Output { stderr, ..Output::default() };
            assert_eq!(stumbled(engine, &output), again, "{engine}: {line}");
        }
    }
}
