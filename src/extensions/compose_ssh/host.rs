//! The host before anything is started or removed there: its compose runtime, and which addresses lead somewhere.

use std::time::Duration;

use crate::domain::compose_host::{ComposeHost, TakenSubnet};
use crate::domain::error::{Code, Error};
use crate::domain::extension::{HostAnswer, Preview, ProvisionRequest};
use crate::domain::facts::Runtime;
use crate::domain::headroom::{AddressPool, Headroom, NetworkRoom, blocks, default_pools};
use crate::domain::host_report::{DetectionScope, RuntimeDetection};
use crate::domain::name::HostName;
use crate::domain::profile::Profile;
use crate::extensions::compose_ssh::deps::{Deps, workspace_only};
use crate::extensions::compose_ssh::render::{HostContext, RenderError, Rendered};
use crate::extensions::compose_ssh::source;
use crate::extensions::compose_ssh::source::Rendering;
use crate::extensions::workspace::{configured_root, repo};
use crate::transport::probe::{self, Detecting};
use crate::transport::{Command, Transport};

const FIND_SH: &str = concat!(
    include_str!("../../transport/scripts/runtime.sh"),
    include_str!("../../transport/scripts/headroom.sh"),
    include_str!("scripts/find_runtime.sh")
);

/// Each call of a tool or engine has a limit of its own, well below.
const LIMIT: Duration = Duration::from_mins(1);

/// The runtime that a stack gets on a host, and whether there is room for it, in one round trip. `known`: what was found there
/// last.
///
/// Errors: `missing_dependency` where there is none, `timeout` where one is there and silent.
pub(super) async fn ask(
    deps: &Deps,
    profile: &Profile,
    host: &HostName,
    known: Option<&RuntimeDetection>,
) -> Result<HostAnswer, Error> {
    let transport = deps.open(host).await?;
    let root = configured_root(profile).unwrap_or(&transport.spec().workspace_root);
    if workspace_only(profile) {
        let headroom = Some(probe::headroom(transport.as_ref(), root).await?);
        return Ok(HostAnswer { headroom, ..HostAnswer::default() });
    }
    let words = words(deps, transport.as_ref())?;
    let detecting = Detecting::new(DetectionScope::First, &words, known, (deps.now)());
    let answer = find_runtime(transport.as_ref(), root, &detecting).await?;
    match answer.compose {
        // Its engine is gone or another one, which the fingerprint does not show.
        None if detecting.known.is_some() => {
            find_runtime(transport.as_ref(), root, &detecting.anew()).await
        }
        Some(_) | None => Ok(answer),
    }
}

/// The runtime of a host that was found to have another one just now, on a connection that is open.
pub(super) async fn find(deps: &Deps, transport: &dyn Transport) -> Result<Runtime, Error> {
    let words = words(deps, transport)?;
    let detecting = Detecting::new(DetectionScope::First, &words, None, (deps.now)());
    let root = &transport.spec().workspace_root;
    let answer = find_runtime(transport, root, &detecting).await?;
    let found = answer.compose.map(|host| host.runtime);
    found.ok_or_else(|| no_runtime(transport.spec().name.as_str(), &[]))
}

/// The compose command that the operator named for a host, in words; empty: none.
pub(super) fn words(deps: &Deps, transport: &dyn Transport) -> Result<Vec<String>, Error> {
    let chosen = transport.spec().compose_cmd.as_deref().or(deps.compose_cmd.as_deref());
    Ok(probe::override_words(chosen)?.unwrap_or_default())
}

/// Question to a host. No runtime is an error only where nothing that was known stood in for a detection.
async fn find_runtime(
    transport: &dyn Transport,
    root: &str,
    detecting: &Detecting<'_>,
) -> Result<HostAnswer, Error> {
    let known_pools = detecting.known.and_then(|known| known.address_pools.clone());
    let (mode, words) = detecting.arguments();
    let command = Command::script(FIND_SH)
        .arg(root)
        .arg(known_pools.as_deref().map(blocks_of).unwrap_or_default())
        .arg(mode)
        .args(&words);
    let output = transport.run(&command, LIMIT).await?;
    let text = output.text();
    let report = detecting.read(&text);
    // Pools that were known hold as long as the runtimes; where they do not, they are asked for the next time.
    let known_pools = known_pools.filter(|_| report.detection.is_none());
    let pools = known_pools.clone().or_else(|| probe::parse_pools(&text));
    // A probe found the runtimes and did not ask for these.
    let completed = detecting.known.filter(|_| known_pools.is_none() && pools.is_some()).cloned();
    let headroom = |runtime: &Runtime| Headroom {
        networks: if runtime.is_podman() {
            NetworkRoom::Unlimited
        } else {
            probe::network_room(&text, pools.as_deref())
        },
        ..probe::parse_headroom(&text)
    };
    match report.runtimes.into_iter().next() {
        Some(runtime) => Ok(HostAnswer {
            headroom: Some(headroom(&runtime)),
            compose: Some(ComposeHost { runtime, taken: None }),
            detection: report
                .detection
                .or(completed)
                .map(|found| RuntimeDetection { address_pools: pools.clone(), ..found }),
        }),
        None if detecting.known.is_some() => Ok(HostAnswer::default()),
        None => Err(no_runtime(transport.spec().name.as_str(), &report.findings)),
    }
}

/// So many blocks docker has for networks, as the script takes it.
fn blocks_of(pools: &[AddressPool]) -> String {
    let count = if pools.is_empty() { blocks(&default_pools()) } else { blocks(pools) };
    count.to_string()
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
        .step("prepare")
        .because(findings.join("; "));
    }
    let error = Error::new(
        Code::MissingDependency,
        format!("host {host} has no compose runtime that works"),
    )
    .hint(format!(
        "install docker compose or podman-compose on {host}, or name one with compose_cmd"
    ))
    .step("prepare")
    .detail("missing", "compose");
    if findings.is_empty() { error } else { error.because(findings.join("; ")) }
}

/// The preview as the host that was asked has it: what its compose does otherwise, and what is refused because of it.
pub(super) async fn preview(
    deps: &Deps,
    request: &mut ProvisionRequest,
    preview: &mut Preview,
) -> Result<(), Error> {
    let Some(found) = request.compose_host.clone() else { return Ok(()) };
    let transport = deps.open(&request.host).await?;
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
