//! Inspection of one sandbox on its host, with its tunnels.

use crate::domain::error::Error;
use crate::domain::event::EventKind;
use crate::domain::extension::{Inspection, Readiness, SandboxExtension, Target};
use crate::domain::name::SandboxId;
use crate::domain::sandbox::{Reachability, SandboxRecord, State};
use crate::manager::deps::Deps;
use crate::manager::hosts::roots::learn_root;
use crate::manager::journal::NewEvent;
use crate::manager::upkeep::ownership::ensure_own;

/// Adds the tunnels that the host's `reach` command knows. Without an answer there are none, and the record's
/// message says why: a tunnel that is missing takes nothing from the sandbox.
pub(crate) async fn attach_tunnels(
    deps: &Deps,
    id: &SandboxId,
    there: &mut Reachability,
) -> Option<String> {
    match deps.transports.attachments(id, there).await {
        Ok(attachments) => {
            there.attachments = attachments;
            None
        }
        Err(error) => {
            let causes = error.causes.join("; ");
            let why = if causes.is_empty() { String::new() } else { format!(": {causes}") };
            Some(format!("no attachments: {}{why}", error.message))
        }
    }
}

/// Inspection of a sandbox on its host, which learns of its root and compares the installation's counter.
pub(crate) async fn inspect_sandbox(
    deps: &Deps,
    extension: &dyn SandboxExtension,
    target: &Target,
) -> Result<Inspection, Error> {
    let target = &Target { stamp: Some(deps.installation.stamp().await?), ..target.clone() };
    let seen = extension.inspect(target).await?;
    if let Some(root) = seen.root.clone() {
        learn_root(deps, &target.host, root).await;
    }
    if let Some(counter) = seen.counter {
        deps.installation.seen_on(&target.host, counter).await?;
        ensure_own(deps).await?;
    }
    Ok(seen)
}

/// Inspection of a sandbox with its tunnels; `None` when its host could not be asked.
pub(crate) async fn inspect_now(
    deps: &Deps,
    extension: &dyn SandboxExtension,
    target: &Target,
) -> Option<Inspection> {
    let mut seen = inspect_sandbox(deps, extension, target).await.ok()?;
    if let Some(there) = &mut seen.reachability {
        attach_tunnels(deps, &target.id, there).await;
    }
    Some(seen)
}

/// Refreshes services and reachability after a patch, which may have restarted or ended some. Where the host cannot be
/// asked they stay as they were.
pub(crate) async fn refresh_readiness(
    deps: &Deps,
    extension: &dyn SandboxExtension,
    target: &Target,
    ready: &mut Readiness,
) {
    let Some(seen) = inspect_now(deps, extension, target).await else { return };
    ready.services = seen.services;
    if let Some(there) = seen.reachability {
        ready.reachability = there;
    }
}

/// The event of a sandbox of which its host has nothing any more.
pub(crate) fn lost_event(record: &SandboxRecord) -> Vec<NewEvent> {
    vec![(EventKind::SandboxLost, serde_json::json!({"host": record.host, "was": record.state}))]
}

/// Marks a record's sandbox as lost.
pub(crate) fn lose(record: &mut SandboxRecord) {
    record.state = State::Lost;
    // `host_lost` is said of a host that does not answer; this one does.
    record.reason = None;
    record.message = Some(format!("{} has nothing of it any more", record.host));
    record.reachability = None;
    record.services.clear();
}
