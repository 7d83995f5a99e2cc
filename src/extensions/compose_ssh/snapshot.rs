//! Restoring a stack from an archive: its tree and volumes are put in place, and then it is rendered anew, from the restored
//! workspace and for the runtime of this host, which may be another one than the archive came from.

use std::collections::BTreeMap;

use crate::domain::error::Error;
use crate::domain::extension::{ProvisionRequest, RestoreSource, Restored};
use crate::domain::name::HostName;
use crate::domain::profile::Profile;
use crate::domain::reporter::{Learnt, Reporter};
use crate::domain::snapshot::ArchiveFacts;
use crate::extensions::archives::restore;
use crate::extensions::compose_ssh::deps::{Deps, workspace_only};
use crate::extensions::compose_ssh::handle::Stack;
use crate::extensions::compose_ssh::render::{HostContext, Rendered};
use crate::extensions::compose_ssh::{host, provision, remote_tree};
use crate::extensions::workspace::prepare::Wanted;
use crate::extensions::workspace::{self, Steps, step};
use crate::failpoint;
use crate::transport::probe::{self, ProbeRequest};
use crate::transport::{Command, Transport};

/// Removes volumes that were filled and that nobody wants. Parameters: the engine's program, their names.
const DROP_SH: &str = "sbx_engine=$1\nshift\nexec \"$sbx_engine\" volume rm \"$@\" >/dev/null";

pub(super) async fn restore(
    deps: &Deps,
    request: &ProvisionRequest,
    from: &RestoreSource,
    reporter: &dyn Reporter,
) -> Result<Restored, Error> {
    let only = workspace_only(&request.profile);
    let steps = Steps::new(reporter, step_count(request));
    steps.next("prepare");
    let transport = deps.open(&request.host).await.map_err(Error::untouched)?;
    let transport = transport.as_ref();
    let identity = from.place.host_identity.as_ref();
    let wanted = Wanted { min_free: restore::room(&from.archive), identity, ..Wanted::default() };
    let prepared = provision::prepare(deps, request, transport, None, wanted, &steps).await?;
    failpoint::reached("restore.prepared");
    let mut not_preserved = restore::unpack(transport, request, &prepared, from, &steps).await?;
    let mut made = prepared.provisioned();
    let stack = if only {
        Stack::default()
    } else {
        let runtime = provision::runtime_of(&prepared, request)?;
        steps.next("render");
        let workspace = workspace::workspace(&prepared.workdir);
        let mut found = provision::host_of(request, &runtime);
        let mut rendered =
            remote_tree::render(transport, request, &workspace, &HostContext::from(&found)).await?;
        if host::wants_addresses(&rendered, &found) {
            found.taken = Some(host::taken(transport, &runtime, request).await?);
            rendered =
                remote_tree::render(transport, request, &workspace, &HostContext::from(&found))
                    .await?;
        }
        let rendered =
            rendered.map_err(|error| provision::refused_by(&error, request, &runtime))?;
        reporter.learnt(&Learnt { rewrites: rendered.rewrites.clone(), ..prepared.learnt() });
        drop_unnamed(transport, request, from, &rendered, &runtime.engine, &mut not_preserved)
            .await?;
        restore::enough(from, request, &not_preserved)?;
        provision::up(request, transport, runtime, (&rendered, false), &mut made, &steps).await?
    };
    failpoint::reached("restore.up");
    made.handle = stack.to_handle()?;
    Ok(Restored { provisioned: made, not_preserved })
}

/// Prepare, extract, render and `up` where there is something to start, ready.
pub(super) fn step_count(request: &ProvisionRequest) -> u32 {
    if workspace_only(&request.profile) { 3 } else { 5 }
}

/// Whether a host has what the restore of an archive takes: what would be found out after the archive was brought there.
pub(super) async fn suits(
    deps: &Deps,
    profile: &Profile,
    archive: &ArchiveFacts,
    host: &HostName,
) -> Result<(), Error> {
    let transport = deps.open(host).await?;
    let spec = transport.spec();
    let compose_cmd = probe::override_words(deps.compose_cmd.as_deref())?;
    let want = ProbeRequest { compose_cmd, ..ProbeRequest::new((deps.now)()) };
    let probed = probe::examine(transport.as_ref(), want).await?;
    restore::suits(&probed.facts, archive, &spec.name)?;
    if !workspace_only(profile) && probed.facts.runtimes.is_empty() {
        return Err(host::no_runtime(spec.name.as_str(), &probed.facts.findings));
    }
    Ok(())
}

/// A volume that the compose file does not name any more would be nobody's.
async fn drop_unnamed(
    transport: &dyn Transport,
    request: &ProvisionRequest,
    from: &RestoreSource,
    rendered: &Rendered,
    engine: &str,
    not_preserved: &mut BTreeMap<String, u64>,
) -> Result<(), Error> {
    let named = |name: &str| rendered.volumes.iter().any(|volume| volume == name);
    let captured = from.archive.captured_volumes.iter().map(|volume| volume.name.as_str());
    let unnamed: Vec<String> = captured
        .filter(|name| !named(name))
        .map(|name| format!("{}_{name}", request.id.project()))
        .collect();
    if unnamed.is_empty() {
        return Ok(());
    }
    step(transport, "render", &Command::script(DROP_SH).arg(engine).args(&unnamed)).await?;
    *not_preserved.entry("volumes".to_owned()).or_insert(0) += unnamed.len() as u64;
    Ok(())
}
