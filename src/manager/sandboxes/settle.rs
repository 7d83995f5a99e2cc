//! The last of the way to `ready`: tunnels and patches, while the services show that they stay.

use std::future::Future;

use tokio::time::Instant;

use crate::domain::error::Error;
use crate::domain::extension::{Readiness, SandboxExtension, Target, Unsettled};
use crate::domain::sandbox::SandboxRecord;
use crate::manager::operation::Op;
use crate::manager::sandboxes::inspect::{attach_tunnels, refresh_readiness};

/// Sandbox whose services run, and the limit for it to settle.
pub(crate) struct RunningServices<'a> {
    pub(crate) extension: &'a dyn SandboxExtension,
    pub(crate) target: &'a Target,
    /// When they had to run at the latest. To settle they have their time beyond that.
    pub(crate) until: Instant,
}

/// Adds tunnels and runs `patch` (whether any patch ran), while the services show that they stay; then waits for those that
/// have not settled. The readiness then, and a message on it.
pub(crate) async fn patch_and_settle(
    op: &Op<SandboxRecord>,
    services: RunningServices<'_>,
    ready: Readiness,
    patch: impl Future<Output = Result<bool, Error>>,
) -> Result<(Readiness, Option<String>), Error> {
    let deps = &op.deps;
    let RunningServices { extension, target, until } = services;
    let (id, mut ready) = (&target.id, ready);
    let tunnels = async { Ok::<_, Error>(attach_tunnels(deps, id, &mut ready.reachability).await) };
    let mut message = op.or_cancelled(tunnels).await?;
    let patched = patch.await?;
    if ready.unsettled == Unsettled::None {
        if patched {
            refresh_readiness(deps, extension, target, &mut ready).await;
        }
        return Ok((ready, message));
    }
    let there = ready.reachability.clone();
    let limit = until.saturating_duration_since(Instant::now()) + target.profile.settle.duration();
    let mut settled = op.or_cancelled(extension.wait_settled(target, ready, limit)).await?;
    // A service that was started again meanwhile may have other ports.
    if settled.reachability.endpoints == there.endpoints {
        settled.reachability = there;
    } else {
        message = attach_tunnels(deps, id, &mut settled.reachability).await;
    }
    Ok((settled, message))
}
