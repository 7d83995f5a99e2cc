//! Cleanup of a check: what it made is removed, and the host is looked through for what is left of it.

use std::time::Duration;

use futures_util::FutureExt as _;
use futures_util::future::join_all;

use crate::domain::deep_check::DeepStage;
use crate::domain::error::{Code, Error};
use crate::domain::name::{OperationId, SandboxId, SnapshotId};
use crate::domain::request::{DestroyRequest, SnapshotDeleteRequest};
use crate::domain::teardown::Resource;
use crate::failpoint;
use crate::manager::deps::Deps;
use crate::manager::hosts::deep_check::run::{CleanupScope, HostCheck};
use crate::manager::hosts::deep_check::stack;
use crate::manager::hosts::deep_check::stack::LABEL;
use crate::manager::hosts::deep_check::steps::{DeepCheckSteps, StepOutcome};
use crate::manager::operation::wait::{wait_for_operation, wait_for_snapshot};
use crate::manager::sandboxes::destroy::destroy;
use crate::manager::snapshots::delete::delete_forced;
use crate::transport::probe::{self, LeftoverRequest};

/// Pause and number of inspections while something is left on the host: engines and watchdogs take a moment, and
/// KILL comes 5 s after TERM.
const RECHECK: (Duration, usize) = (Duration::from_secs(1), 8);

/// Sandboxes and snapshots that a check made, by its label.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct MadeByCheck {
    pub(crate) sandboxes: Vec<SandboxId>,
    pub(crate) snapshots: Vec<SnapshotId>,
}

impl MadeByCheck {
    fn is_empty(&self) -> bool {
        self.sandboxes.is_empty() && self.snapshots.is_empty()
    }

    /// Ids in a list.
    pub(crate) fn words(&self) -> String {
        let ids = self.sandboxes.iter().map(ToString::to_string);
        ids.chain(self.snapshots.iter().map(ToString::to_string)).collect::<Vec<_>>().join(", ")
    }
}

/// Finds what carries a check's label; records of sandboxes that are destroyed stay for a day, those of snapshots do not.
async fn find_made_by(deps: &Deps, operation: &OperationId) -> Result<MadeByCheck, Error> {
    let ours = |labels: &std::collections::BTreeMap<String, String>| {
        labels.get(LABEL).is_some_and(|value| value == operation.as_str())
    };
    let (sandboxes, snapshots) = tokio::try_join!(deps.sandboxes.list(), deps.snapshots.list())?;
    Ok(MadeByCheck {
        sandboxes: sandboxes
            .iter()
            .filter(|one| ours(&one.labels))
            .map(|one| one.id.clone())
            .collect(),
        snapshots: snapshots
            .iter()
            .filter(|one| ours(&one.labels))
            .map(|one| one.id.clone())
            .collect(),
    })
}

/// Removes what a check made, also one whose process died; returns what that was.
///
/// Errors: the first thing that could not be removed; the others are.
pub(crate) async fn cleanup(deps: &Deps, operation: &OperationId) -> Result<MadeByCheck, Error> {
    stack::remove(&stack::folder(deps, operation)).await;
    let made = find_made_by(deps, operation).await?;
    let mut first = join_all(made.sandboxes.iter().map(|id| cleanup_sandbox(deps, id))).await;
    for id in &made.snapshots {
        first.push(cleanup_snapshot(deps, id).await);
    }
    first.into_iter().find_map(Result::err).map_or(Ok(made), Err)
}

async fn cleanup_sandbox(deps: &Deps, id: &SandboxId) -> Result<(), Error> {
    let request = DestroyRequest { id: id.to_string(), no_undo: true, ..DestroyRequest::default() };
    let Some(operation) = destroy(deps, &request).await?.operation else { return Ok(()) };
    let (operation, _) = wait_for_operation(deps, &operation).await?;
    operation.error.map_or(Ok(()), |error| Err(*error))
}

async fn cleanup_snapshot(deps: &Deps, id: &SnapshotId) -> Result<(), Error> {
    // Things of the check itself that are based on it and could not be removed shall not keep it.
    let request = SnapshotDeleteRequest {
        id: id.to_string(),
        force: true,
        ..SnapshotDeleteRequest::default()
    };
    let deleted = async {
        // On a host that does not answer it is left, and not given up.
        let started = delete_forced(deps, &request, false).await?;
        let Some(operation) = started.operation else { return Ok(()) };
        wait_for_snapshot(deps, &operation).await.map(|_| ())
    };
    match deleted.await {
        // The record of a failed one may go by itself.
        Err(error) if error.code == Code::NotFound => Ok(()),
        deleted => deleted,
    }
}

impl HostCheck<'_> {
    /// Removes everything and looks the host through; what was made, and what is left of it.
    pub(crate) async fn end(
        &self,
        steps: &mut DeepCheckSteps<'_>,
        before: CleanupScope,
    ) -> (MadeByCheck, Vec<Resource>) {
        let (mut made, mut left) = (MadeByCheck::default(), Vec::new());
        let mut sought = before.sought;
        // Failures are in the list.
        let _ =
            steps.finish(&DeepStage::Destroy, self.destroy(&mut made, &mut sought).boxed()).await;
        if before.reached {
            let _ = steps.finish(&DeepStage::Host, self.look(&sought, &mut left).boxed()).await;
        } else {
            let unseen =
                async { Ok(StepOutcome::<()>::Skipped("the host was not reached".to_owned())) };
            let _ = steps.finish(&DeepStage::Host, unseen.boxed()).await;
        }
        (made, left)
    }

    async fn destroy(
        &self,
        made: &mut MadeByCheck,
        sought: &mut LeftoverRequest,
    ) -> Result<StepOutcome<()>, Error> {
        *made = find_made_by(self.deps, self.operation).await?;
        sought.ids = made.sandboxes.iter().map(ToString::to_string).collect();
        sought.ids.extend(made.snapshots.iter().map(ToString::to_string));
        if !made.is_empty() {
            // Volumes without a name of ours are known by the containers that use them, as long as these are there.
            sought.volumes = self
                .leftovers(sought)
                .await
                .unwrap_or_default()
                .into_iter()
                .filter_map(volume)
                .collect();
        }
        failpoint::reached("check.destroying");
        cleanup(self.deps, self.operation).await?;
        if made.is_empty() {
            return Ok(StepOutcome::Skipped("nothing was made".to_owned()));
        }
        Ok(StepOutcome::Well((), Some(made.words())))
    }

    async fn look(
        &self,
        sought: &LeftoverRequest,
        left: &mut Vec<Resource>,
    ) -> Result<StepOutcome<()>, Error> {
        let (pause, times) = RECHECK;
        for _ in 0..times {
            *left = self.leftovers(sought).await?;
            if left.is_empty() {
                return Ok(StepOutcome::Well((), Some("nothing of it is left".to_owned())));
            }
            tokio::time::sleep(pause).await;
        }
        let names: Vec<String> =
            left.iter().map(|one| format!("{} {}", one.kind, one.id)).collect();
        let error = Error::new(
            Code::OperationFailed,
            format!("left on {}: {}", self.host, names.join(", ")),
        );
        Err(error
            .hint("sandboxer takes these for removed: look at them there, and remove them by hand"))
    }

    async fn leftovers(&self, sought: &LeftoverRequest) -> Result<Vec<Resource>, Error> {
        let transport = self.deps.transports.open(self.host).await?;
        probe::leftovers(transport.as_ref(), self.operation, sought).await
    }
}

fn volume(found: Resource) -> Option<String> {
    (found.kind == "volume").then_some(found.id)
}
