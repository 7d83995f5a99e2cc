//! The host before anything is started or removed there: its compose runtime, and which addresses lead somewhere.

use std::time::Duration;

use crate::domain::compose_host::{ComposeHost, TakenSubnet};
use crate::domain::error::{Code, Error};
use crate::domain::extension::{ExtensionError, Preview, ProvisionRequest};
use crate::domain::facts::Runtime;
use crate::domain::name::HostName;
use crate::extensions::compose_ssh::render::{HostContext, RenderError, Rendered};
use crate::extensions::compose_ssh::source::Rendering;
use crate::extensions::compose_ssh::{ComposeSsh, source};
use crate::extensions::workspace::repo;
use crate::transport::probe::{self, parse_runtimes};
use crate::transport::{Command, Transport};

const FIND_SH: &str = concat!(
    include_str!("../../transport/scripts/runtime.sh"),
    include_str!("scripts/find_runtime.sh")
);

/// Each call of a tool or engine has a limit of its own, well below.
const LIMIT: Duration = Duration::from_mins(1);

/// The runtime that a stack gets on a host, in one round trip.
///
/// Errors: `missing_dependency` where there is none, `timeout` where one is there and silent.
pub(super) async fn ask(extension: &ComposeSsh, host: &HostName) -> Result<ComposeHost, Error> {
    let transport = extension.open(host).await?;
    find(extension, transport.as_ref()).await
}

/// Same as [`ask`], on a connection that is open.
pub(super) async fn find(
    extension: &ComposeSsh,
    transport: &dyn Transport,
) -> Result<ComposeHost, Error> {
    let spec = transport.spec();
    let chosen = spec.compose_cmd.as_deref().or(extension.compose_cmd.as_deref());
    let words = probe::override_words(chosen)?.unwrap_or_default();
    let command = Command::script(FIND_SH).args(&words);
    let output = transport.run(&command, LIMIT).await?;
    let report = parse_runtimes(&output.text());
    match report.runtimes.into_iter().next() {
        Some(runtime) => Ok(ComposeHost { runtime, taken: None }),
        None => Err(no_runtime(spec.name.as_str(), &report.findings)),
    }
}

/// Error of a host without a compose runtime that works; `findings`: what was tried.
pub(super) fn no_runtime(host: &str, findings: &[String]) -> Error {
    // One that is there and silent is another matter than one that is not there: it may answer the next time.
    if findings.iter().any(|finding| finding.contains("did not answer in time")) {
        return Error::new(
            Code::Timeout,
            format!("the container engine of {host} did not answer in time"),
        )
        .hint("try again; if it stays so, look at the engine there")
        .retryable(true)
        .detail("step", "prepare")
        .because(findings.join("; "));
    }
    let fault = Error::new(
        Code::MissingDependency,
        format!("host {host} has no compose runtime that works"),
    )
    .hint(format!(
        "install docker compose or podman-compose on {host}, or name one with compose_cmd"
    ))
    .detail("step", "prepare")
    .detail("missing", "compose");
    if findings.is_empty() { fault } else { fault.because(findings.join("; ")) }
}

/// The preview as the host that was asked has it: what its compose does otherwise, and what is refused because of it.
pub(super) async fn preview(
    extension: &ComposeSsh,
    request: &mut ProvisionRequest,
    preview: &mut Preview,
) -> Result<(), ExtensionError> {
    let Some(found) = request.compose_host.clone() else { return Ok(()) };
    let transport = extension.open(&request.host).await?;
    let (rendering, host) =
        render(request, source::PREVIEW_WORKDIR, found, transport.as_ref()).await?;
    request.compose_host = Some(host);
    preview.refusals.retain(|refusal| refusal.path == repo::REPO);
    source::note(rendering, preview);
    Ok(())
}

/// Renders the repository's compose file for a host. Where it asks for certain addresses, the host is asked which of them
/// lead somewhere; the host as it is known then.
pub(super) async fn render(
    request: &ProvisionRequest,
    workdir: &str,
    mut host: ComposeHost,
    transport: &dyn Transport,
) -> Result<(Rendering, ComposeHost), Error> {
    let rendering = source::render(request, workdir, &HostContext::from(&host)).await?;
    if !wants_addresses(&rendering.result, &host) {
        return Ok((rendering, host));
    }
    host.taken = Some(taken(transport, &host.runtime, request).await?);
    let rendering = source::render(request, workdir, &HostContext::from(&host)).await?;
    Ok((rendering, host))
}

/// Whether a rendering says nothing yet of addresses that it should say something of.
pub(super) fn wants_addresses(
    rendered: &Result<Rendered, RenderError>,
    host: &ComposeHost,
) -> bool {
    host.taken.is_none() && rendered.as_ref().is_ok_and(|rendered| rendered.fixed_addresses)
}

/// Which addresses lead somewhere on the host, but for this sandbox's own.
pub(super) async fn taken(
    transport: &dyn Transport,
    runtime: &Runtime,
    request: &ProvisionRequest,
) -> Result<Vec<TakenSubnet>, Error> {
    probe::taken_subnets(transport, &runtime.engine, &request.id, &request.owner.owner).await
}
