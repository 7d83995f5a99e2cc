//! The last of the way to `ready`: tunnels and patches, while the services show that they stay.

use std::future::Future;

use tokio::time::Instant;

use crate::domain::error::Error;
use crate::domain::extension::{Readiness, SandboxExtension, Target, Unsettled};
use crate::domain::sandbox::SandboxRecord;
use crate::manager::operation::Op;
use crate::manager::sandboxes::inspect::{attach_tunnels, refresh_readiness};

/// A sandbox whose services run.
pub(crate) struct Settling<'a> {
    pub(crate) extension: &'a dyn SandboxExtension,
    pub(crate) target: &'a Target,
    /// When they had to run at the latest. To settle they have their time beyond that.
    pub(crate) until: Instant,
}

/// Adds its tunnels and has it patched, which `patch` does and says whether any ran; its services grow older meanwhile. Then
/// waits for what has not settled by that. How it is then, and what is to be said of it.
pub(crate) async fn patch_and_settle(
    op: &Op<SandboxRecord>,
    settling: Settling<'_>,
    ready: Readiness,
    patch: impl Future<Output = Result<bool, Error>>,
) -> Result<(Readiness, Option<String>), Error> {
    let deps = &op.deps;
    let Settling { extension, target, until } = settling;
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
