//! The last of the way to `ready`: tunnels and patches, while the services show that they stay.

use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::domain::extension::{ExtensionError, Readiness, SandboxExtension, Target, Unsettled};
use crate::domain::fault::Code;
use crate::manager::SandboxManager;

/// A sandbox whose services run.
pub(super) struct Settling<'a> {
    pub(super) extension: &'a dyn SandboxExtension,
    pub(super) target: &'a Target,
    /// When they had to run at the latest. To settle they have their time beyond that.
    pub(super) until: Instant,
}

impl SandboxManager {
    /// Adds its tunnels and has it patched, which `patch` does and says whether any ran, until its services have settled. Where one
    /// comes to nothing the other is told to `stop`, and waited for. How it is then, and what is to be said of it.
    pub(super) async fn settle_and_patch(
        &self,
        settling: Settling<'_>,
        ready: Readiness,
        stop: &CancellationToken,
        patch: impl Future<Output = Result<bool, ExtensionError>>,
    ) -> Result<(Readiness, Option<String>), ExtensionError> {
        let Settling { extension, target, until } = settling;
        let id = &target.id;
        let mut there = ready.reachability.clone();
        let rest = async {
            let message = self.or_cancelled(id, stop, async { Ok(self.attach(id, &mut there).await) }).await?;
            Ok((message, patch.await?))
        };
        let settle = async {
            if ready.unsettled == Unsettled::None {
                return Ok(ready);
            }
            let limit = until.saturating_duration_since(Instant::now()) + target.profile.settle.duration();
            self.or_cancelled(id, stop, extension.wait_settled(target, ready, limit)).await
        };
        let (settled, rest) = tokio::join!(stopping(stop, settle), stopping(stop, rest));
        let (mut ready, (mut message, patched)) = match (settled, rest) {
            (Ok(settled), Ok(rest)) => (settled, rest),
            // What was only told to stop says nothing.
            (Err(error), Err(other)) if error.fault.code == Code::Cancelled => return Err(other),
            (Err(error), _) | (Ok(_), Err(error)) => return Err(error),
        };
        // A service that was started again meanwhile may have other ports.
        if ready.reachability.endpoints == there.endpoints {
            ready.reachability = there;
        } else {
            message = self.attach(id, &mut ready.reachability).await;
        }
        if patched {
            self.look_again(extension, target, &mut ready).await;
        }
        Ok((ready, message))
    }
}

/// Tells the other one to stop where this one fails.
async fn stopping<T>(
    stop: &CancellationToken,
    work: impl Future<Output = Result<T, ExtensionError>>,
) -> Result<T, ExtensionError> {
    let done = work.await;
    if done.is_err() {
        stop.cancel();
    }
    done
}
