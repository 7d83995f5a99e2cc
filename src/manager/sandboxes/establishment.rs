//! Establishment: the request that create, restore and recreate share, and the number of its steps.

use std::time::Duration;

use crate::domain::extension::ProvisionRequest;
use crate::domain::sandbox::SandboxRecord;
use crate::manager::operation::Op;
use crate::manager::patches::find::patches_of;
use crate::manager::sandboxes::route::Router;
use crate::manager::snapshots::replicate::TRANSFER_STEPS;
use crate::manager::snapshots::restore_archive::BaseSnapshot;

/// Request to an extension for a sandbox, and the facts for its record.
pub(crate) struct Establishment {
    pub(crate) provision: ProvisionRequest,
    pub(crate) ready_timeout: Duration,
    pub(crate) ttl_s: Option<u64>,
    pub(crate) keep_failed: bool,
    pub(crate) recreate: bool,
    /// The snapshot that it is made from, instead of what the inputs name.
    pub(crate) from: Option<BaseSnapshot>,
    /// Sentence for the record once the sandbox is ready: what is kept of the one that was there before.
    pub(crate) note: Option<String>,
    /// Way through the candidates that are left, where one that fails is no reason to end.
    pub(crate) router: Option<Box<Router>>,
}

impl Establishment {
    /// Establishment of a new sandbox from its inputs.
    pub(crate) fn of(provision: ProvisionRequest, ttl_s: Option<u64>) -> Self {
        Self {
            ready_timeout: provision.profile.ready_timeout.duration(),
            provision,
            ttl_s,
            keep_failed: false,
            recreate: false,
            from: None,
            note: None,
            router: None,
        }
    }
}

/// Says how many steps an establishment has, after `before` others of its operation. What is not known counts when it
/// comes.
pub(crate) async fn announce_steps(
    op: &Op<SandboxRecord>,
    establishment: &Establishment,
    before: u32,
) {
    let deps = &op.deps;
    let Ok(extension) = deps.extension(&establishment.provision.profile.extension) else { return };
    let (mut carried, mut patched) = (0, 0);
    if let Some(from) = &establishment.from {
        let host = establishment.provision.host.as_str();
        if let Ok(Some(snapshot)) = deps.snapshots.get(&from.id).await
            && !snapshot.hosts().any(|known| known.same(host))
        {
            carried = TRANSFER_STEPS;
        }
    }
    if let Some(base) = &op.subject.based_on_snapshot {
        patched = u32::from(patches_of(deps, base).await.is_ok_and(|patches| !patches.is_empty()));
    }
    let total = match extension.steps(&establishment.provision, establishment.from.is_some()) {
        0 => 0,
        own => before + carried + own + patched,
    };
    op.progress.announce(total, patched);
}
