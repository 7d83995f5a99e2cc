//! `hosts check --deep`: everything that a host is there for, done on it once through the verbs that everybody uses, taken
//! away again, and looked for afterwards (contract, section 4).

mod course;
mod ending;
mod stack;
mod steps;

use std::convert::Infallible;
use std::sync::PoisonError;

use tokio_util::sync::CancellationToken;

use crate::domain::deep_check::{DeepCheck, DeepStage};
use crate::domain::error::Error;
use crate::domain::facts::HostView;
use crate::domain::name::{HostName, OperationId, SandboxId};
use crate::domain::operation::{CancelOutcome, Operation, OperationKind, Subject};
use crate::manager::SandboxManager;
use crate::manager::deep_check::course::Course;
use crate::manager::deep_check::steps::Steps;
use crate::manager::reporter::JobReporter;

/// The label of what a check makes; its value is the check's operation. Only sandboxer itself can give it.
pub(super) const LABEL: &str = "sandboxer.check";

impl SandboxManager {
    /// Starts to try everything on one host, and returns at once. A host that is down or out of bounds is a step that
    /// failed.
    ///
    /// Errors: `not_found` for an unknown name, `conflict` in a copied or restored data directory.
    pub async fn deep_check(&self, name: &str) -> Result<OperationId, Error> {
        let host = self.host_spec(name)?.name;
        self.ensure_own().await?;
        let nobody = SandboxId::new(String::new());
        let operation = Operation {
            subject: Subject::Host,
            ..self.new_operation(OperationKind::Check, &nobody)
        };
        self.parts.operations.put(operation.clone()).await?;
        let (id, body) = (operation.id.clone(), operation.clone());
        let (manager, fallback) = (self.clone(), self.clone());
        self.jobs.start(
            &id,
            move |cancel| async move {
                let view = manager.check_deeply(&body, &host, &cancel).await;
                let error = view.deep.as_deref().and_then(why_not);
                let found = &manager.deeply_checked;
                found.lock().unwrap_or_else(PoisonError::into_inner).insert(body.id.clone(), view);
                manager.end_operation(body, error.map_or(Ok(()), Err)).await
            },
            move |fault| async move {
                if let Err(left) = fallback.take_back(&operation.id).await {
                    tracing::error!(operation = %operation.id, %left, "what a check made could not be taken away");
                }
                fallback.abandon(operation, fault).await
            },
        );
        Ok(id)
    }

    /// Waits for a deep check's end; the host with what was found. Steps that failed are in that.
    pub async fn finish_deep_check(&self, id: &OperationId) -> Result<HostView, Error> {
        self.wait(id).await?.into_host()
    }

    async fn check_deeply(
        &self,
        operation: &Operation,
        host: &HostName,
        cancel: &CancellationToken,
    ) -> HostView {
        let course = Course { manager: self, operation: &operation.id, host, cancel };
        let mut steps = Steps::new(JobReporter::new(&self.jobs, operation), host, cancel);
        let work = course.run(&mut steps);
        let called_off = async {
            self.end_requested(&operation.id).await;
            cancel.cancel();
            std::future::pending::<Infallible>().await
        };
        let (mut view, before) = tokio::select! {
            biased;
            seen = work => seen,
            never = called_off => match never {},
        };
        // From here on nobody calls it off: what was made must go.
        let (made, left) = course.end(&mut steps, before).await;
        let steps = steps.into_list();
        view.deep = Some(Box::new(DeepCheck {
            ok: steps.iter().all(|step| step.error.is_none()),
            operation: operation.id.clone(),
            steps,
            sandboxes: made.sandboxes,
            snapshots: made.snapshots,
            left,
        }));
        view
    }
}

/// Why a check did not come well to its end. One that was cancelled has undone everything if it could remove all of it.
fn why_not(deep: &DeepCheck) -> Option<Error> {
    let fault = Error::from(deep.error()?.clone());
    let removed = |stage: &DeepStage| {
        deep.steps.iter().any(|step| step.stage == *stage && step.error.is_none())
    };
    if ENDING.iter().all(removed) {
        Some(CancelOutcome::Undone.noted_on(fault))
    } else {
        Some(fault)
    }
}

/// The steps that come after everything was tried, whatever came of it.
const ENDING: [DeepStage; 2] = [DeepStage::Destroy, DeepStage::Host];
