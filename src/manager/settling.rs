//! The last of the way to `ready`: tunnels and patches, while the services show that they stay.

use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::domain::error::Error;
use crate::domain::extension::{Readiness, SandboxExtension, Target, Unsettled};
use crate::manager::SandboxManager;

/// A sandbox whose services run.
pub(super) struct Settling<'a> {
    pub(super) extension: &'a dyn SandboxExtension,
    pub(super) target: &'a Target,
    /// When they had to run at the latest. To settle they have their time beyond that.
    pub(super) until: Instant,
}

impl SandboxManager {
    /// Adds its tunnels and has it patched, which `patch` does and says whether any ran; its services grow older meanwhile. Then
    /// waits for what has not settled by that. How it is then, and what is to be said of it.
    pub(super) async fn patch_and_settle(
        &self,
        settling: Settling<'_>,
        ready: Readiness,
        cancel: &CancellationToken,
        patch: impl Future<Output = Result<bool, Error>>,
    ) -> Result<(Readiness, Option<String>), Error> {
        let Settling { extension, target, until } = settling;
        let (id, mut ready) = (&target.id, ready);
        let tunnels = async { Ok(self.attach(id, &mut ready.reachability).await) };
        let mut message = self.or_cancelled(id, cancel, tunnels).await?;
        let patched = patch.await?;
        if ready.unsettled == Unsettled::None {
            if patched {
                self.look_again(extension, target, &mut ready).await;
            }
            return Ok((ready, message));
        }
        let there = ready.reachability.clone();
        let limit =
            until.saturating_duration_since(Instant::now()) + target.profile.settle.duration();
        let mut settled =
            self.or_cancelled(id, cancel, extension.wait_settled(target, ready, limit)).await?;
        // A service that was started again meanwhile may have other ports.
        if settled.reachability.endpoints == there.endpoints {
            settled.reachability = there;
        } else {
            message = self.attach(id, &mut settled.reachability).await;
        }
        Ok((settled, message))
    }
}
