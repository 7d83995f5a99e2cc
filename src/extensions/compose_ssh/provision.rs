//! provision: one prepare call, the transfer, and `up`.

use std::sync::atomic::{AtomicU64, Ordering};

use crate::domain::extension::{ExtensionError, Learnt, ProvisionRequest, Provisioned, Report, Reporter};
use crate::domain::facts::{Flavour, HostFacts, HostIdentity, Runtime};
use crate::domain::fault::{Code, Fault};
use crate::domain::text::last_lines;
use crate::extensions::compose_ssh::handle::{Expected, Stack};
use crate::extensions::compose_ssh::render::{Dialect, Rendered};
use crate::extensions::compose_ssh::said::Said;
use crate::extensions::compose_ssh::{
    ComposeSsh, EVIDENCE_LINES, certify, failed, manifest, runtime, source, step, workspace_only,
};
use crate::failpoint;
use crate::transport::probe::{self, ProbeRequest, parse_runtimes};
use crate::transport::transfer::{self, Plan};
use crate::transport::{Command, Source, Transport};

const PREPARE_SH: &str = concat!(
    include_str!("../../transport/scripts/runtime.sh"),
    include_str!("scripts/says.sh"),
    include_str!("scripts/prepare.sh")
);
const UP_SH: &str = include_str!("scripts/up.sh");
const WRITE_SH: &str = include_str!("scripts/write.sh");

/// A rendered file up to this size travels as an argument of `up`; a larger one in a call before it. An exec
/// request over SSH is limited to 256 KiB, and one argument to 128 KiB.
const SMALL: usize = 48 * 1024;

/// A piece of a larger one.
const PIECE: usize = 64 * 1024;

/// What the prepare call found and made.
struct Prepared {
    root: String,
    workdir: String,
    identity: HostIdentity,
    runtime: Option<Runtime>,
    rsync: bool,
}

/// Steps of a provision, for the reports.
struct Steps<'a> {
    reporter: &'a dyn Reporter,
    count: u32,
    at: AtomicU64,
}

impl Steps<'_> {
    fn next(&self, stage: &'static str) -> Report {
        let step = self.at.fetch_add(1, Ordering::Relaxed) as u32 + 1;
        let report = Report { stage, step, steps: self.count, ..Report::default() };
        self.reporter.report(report.clone());
        report
    }
}

pub(super) async fn provision(
    extension: &ComposeSsh,
    request: &ProvisionRequest,
    reporter: &dyn Reporter,
) -> Result<Provisioned, ExtensionError> {
    let only = workspace_only(&request.profile);
    let plan = source::plan(request).await.map_err(before_anything)?;
    let count = 2 + u32::from(plan.is_some()) + u32::from(!only) + u32::from(only);
    let steps = Steps { reporter, count, at: AtomicU64::new(0) };
    steps.next("prepare");
    let transport = extension.open(&request.host).await.map_err(before_anything)?;
    let transport = transport.as_ref();
    let prepared = prepare(extension, request, transport, plan.as_ref(), !only).await?;
    failpoint::reached("compose.prepared");
    let trips = transport.round_trips();
    let learnt = Learnt { workdir: prepared.workdir.clone(), identity: prepared.identity.clone() };
    reporter.learnt(&learnt);
    let made = finish(extension, request, transport, plan, prepared, &steps).await?;
    // One for the prepare call; transfer and `up` are in the count.
    tracing::debug!(sandbox = %request.id, round_trips = transport.round_trips() - trips + 1, "provisioned");
    Ok(made)
}

/// A fault before the first remote command.
fn before_anything(fault: Fault) -> ExtensionError {
    ExtensionError { untouched: true, ..fault.into() }
}

async fn finish(
    extension: &ComposeSsh,
    request: &ProvisionRequest,
    transport: &dyn Transport,
    plan: Option<Plan>,
    prepared: Prepared,
    steps: &Steps<'_>,
) -> Result<Provisioned, ExtensionError> {
    if let Some(plan) = &plan {
        let report = steps.next("transfer");
        transfer_tree(request, transport, plan, &prepared, steps, &report).await?;
        failpoint::reached("compose.transferred");
    }
    let mut made = Provisioned {
        handle: serde_json::Value::Null,
        workdir: prepared.workdir.clone(),
        identity: prepared.identity.clone(),
        rewrites: Vec::new(),
        facts: None,
        certificate: None,
        counter_ahead: None,
    };
    let stack = if workspace_only(&request.profile) {
        steps.next("inspect");
        let facts = facts(extension, transport).await?;
        made.certificate = Some(certify::certify(transport, &request.id, &prepared.workdir, &facts).await?);
        made.facts = Some(facts);
        Stack { runtime: None, services: Vec::new(), built: Vec::new(), up_output: String::new() }
    } else {
        let (stack, rendered) = up(request, transport, &prepared, steps).await?;
        made.rewrites = source::rewrites(&rendered);
        stack
    };
    made.handle = stack.to_handle()?;
    Ok(made)
}

async fn prepare(
    extension: &ComposeSsh,
    request: &ProvisionRequest,
    transport: &dyn Transport,
    plan: Option<&Plan>,
    needs_runtime: bool,
) -> Result<Prepared, ExtensionError> {
    let owner = &request.owner;
    let text =
        manifest::text(&request.id, &owner.owner, request.profile.id.as_str(), request.created_at, request.expires_at)?;
    let spec = transport.spec();
    let root = request.profile.config["root"].as_str().unwrap_or(&spec.workspace_root);
    let chosen = spec.compose_cmd.as_deref().or(extension.compose_cmd.as_deref());
    let words = probe::override_words(chosen)?.unwrap_or_default();
    let command = Command::script(PREPARE_SH)
        .arg(root)
        .arg(request.id.as_str())
        .arg(owner.owner.as_str())
        .arg(owner.counter.to_string())
        .arg(&owner.machine_id)
        .arg(text)
        .arg(plan.map_or(0, |plan| plan.bytes).to_string())
        .arg(if needs_runtime { "first" } else { "no" })
        .args(words);
    let output = step(transport, "prepare", &command).await?;
    let text = output.text();
    let said = Said::read(&text);
    let report = parse_runtimes(&text);
    // The script says these before it makes the directory, or after it took a half-made one away.
    said.check("prepare", transport).map_err(|error| ExtensionError { untouched: true, ..error })?;
    let root = said.text("root").filter(|_| said.value("prepared") == Some("yes"));
    let Some(root) = root else {
        return Err(failed("prepare", format!("the workspace on {} could not be prepared", spec.name), &output));
    };
    let runtime = report.runtimes.into_iter().next();
    let prepared = Prepared {
        workdir: format!("{}/{}", root.trim_end_matches('/'), request.id.project()),
        identity: HostIdentity {
            machine_id: said.value("machine").unwrap_or_default().to_owned(),
            engine: runtime.as_ref().map(|runtime| runtime.engine.clone()),
            engine_id: runtime.as_ref().and_then(|runtime| runtime.engine_id.clone()),
        },
        root,
        runtime,
        rsync: said.value("rsync") == Some("yes") && transfer::rsync_here(),
    };
    if needs_runtime && prepared.runtime.is_none() {
        let fault = no_runtime(spec.name.as_str(), &report.findings);
        return Err(fault.into());
    }
    Ok(prepared)
}

fn no_runtime(host: &str, findings: &[String]) -> Fault {
    let fault = Fault::new(Code::MissingDependency, format!("host {host} has no compose runtime that works"))
        .hint(format!("install docker compose or podman-compose on {host}, or name one with compose_cmd"))
        .detail("step", "prepare")
        .detail("missing", "compose");
    if findings.is_empty() { fault } else { fault.because(findings.join("; ")) }
}

async fn transfer_tree(
    request: &ProvisionRequest,
    transport: &dyn Transport,
    plan: &Plan,
    prepared: &Prepared,
    steps: &Steps<'_>,
    report: &Report,
) -> Result<(), ExtensionError> {
    let dest = format!("{}/workspace", prepared.workdir);
    let reporter = steps.reporter;
    let on_bytes = |done: u64, of: u64| {
        reporter.report(Report { done: Some(done), of: Some(of), bytes: Some(done), ..report.clone() });
    };
    let source = source::repository(&request.inputs).unwrap_or_default();
    let sent = transfer::send(transport, plan, &source, &dest, prepared.rsync, &on_bytes)
        .await
        .map_err(|fault| fault.detail("step", "transfer"))?;
    tracing::info!(sandbox = %request.id, root = prepared.root, method = ?sent.method, bytes = sent.bytes, "transferred");
    Ok(())
}

async fn facts(extension: &ComposeSsh, transport: &dyn Transport) -> Result<HostFacts, ExtensionError> {
    let words = probe::override_words(extension.compose_cmd.as_deref())?;
    let want = ProbeRequest { inventory: true, compose_cmd: words, ..ProbeRequest::new((extension.now)()) };
    Ok(probe::probe(transport, want).await.map_err(|fault| fault.detail("step", "inspect"))?)
}

async fn up(
    request: &ProvisionRequest,
    transport: &dyn Transport,
    prepared: &Prepared,
    steps: &Steps<'_>,
) -> Result<(Stack, Rendered), ExtensionError> {
    let Some(runtime) = prepared.runtime.clone() else { return Err(no_runtime(request.host.as_str(), &[]).into()) };
    let workspace = format!("{}/workspace", prepared.workdir);
    let rendered = source::render(request, &workspace, dialect(&runtime)).await?.map_err(|error| {
        let list = source::refusals(&error);
        let words: Vec<String> = list.iter().map(|r| format!("{}: {}", r.path, r.message)).collect();
        Fault::invalid_input("compose_file", words.join("; ")).detail("step", "render")
    })?;
    failpoint::reached("compose.rendered");
    let report = steps.next("up");
    let project = request.id.project();
    let small = rendered.yaml.len() <= SMALL;
    if !small {
        let command = Command::script(WRITE_SH).arg(&prepared.workdir).arg("compose.yaml").args(pieces(&rendered.yaml));
        step(transport, "render", &command).await?;
    }
    let command = Command::script(UP_SH)
        .arg(&prepared.workdir)
        .arg(&project)
        .arg(if small { rendered.yaml.as_str() } else { "" })
        .arg(&runtime.engine)
        .args(&runtime.command);
    let mut on_line = |_: Source, line: &[u8]| {
        let message = Some(String::from_utf8_lossy(line).into_owned());
        steps.reporter.report(Report { message, ..report.clone() });
    };
    let output = transport
        // Pulling and building count: a start that takes longer than the profile allows has failed.
        .stream(&command, request.profile.ready_timeout.duration(), &mut on_line)
        .await
        .map_err(|fault| too_long(fault, request).detail("step", "up"))?;
    failpoint::reached("compose.up");
    if !output.ok() {
        return Err(failed("up", format!("{} could not start the stack", runtime.command.join(" ")), &output));
    }
    let stack = Stack {
        services: rendered
            .services
            .iter()
            .map(|service| Expected {
                name: service.name.clone(),
                replicas: service.replicas,
                restart: service.restart.clone(),
                one_shot: service.one_shot,
            })
            .collect(),
        built: rendered.services.iter().filter(|s| s.built).map(|s| s.image.clone()).collect(),
        up_output: last_lines(&format!("{}\n{}", output.text(), output.error_text()), EVIDENCE_LINES),
        runtime: Some(runtime),
    };
    runtime::started(transport, &stack, &project, &output).await?;
    Ok((stack, rendered))
}

fn too_long(fault: Fault, request: &ProvisionRequest) -> Fault {
    if fault.code != Code::Timeout {
        return fault;
    }
    let message =
        format!("the stack was not started within the profile's ready_timeout of {}", request.profile.ready_timeout);
    Fault::new(Code::Timeout, message).hint("what it was doing is in the record's failure").because(fault)
}

/// What the compose tool understands (crates' and lab's findings on podman-compose 1.0.x).
fn dialect(runtime: &Runtime) -> Dialect {
    let old = runtime.flavour == Flavour::PodmanCompose && runtime.version.starts_with("1.0.");
    if old { Dialect::Narrow } else { Dialect::Full }
}

/// Splits a text so that each piece fits an argument, at character boundaries.
fn pieces(text: &str) -> Vec<&str> {
    let mut rest = text;
    let mut found = Vec::new();
    while !rest.is_empty() {
        let mut end = rest.len().min(PIECE);
        while !rest.is_char_boundary(end) {
            end -= 1;
        }
        let (piece, tail) = rest.split_at(end);
        found.push(piece);
        rest = tail;
    }
    found
}
