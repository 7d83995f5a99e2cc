//! `hosts check --deep`: everything that a host is there for, done on it once through the verbs that everybody uses, taken
//! away again, and looked for afterwards (contract, section 4).

pub(in crate::manager) mod cleanup;
mod run;
mod stack;
mod steps;

use std::convert::Infallible;
use std::sync::{Arc, PoisonError};

use crate::domain::deep_check::{DeepCheck, DeepStage};
use crate::domain::error::Error;
use crate::domain::host_view::HostView;
use crate::domain::name::{HostName, OperationId};
use crate::domain::operation::{CancelOutcome, OperationKind, Subject};
use crate::manager::deps::Deps;
use crate::manager::hosts::check::{host_spec, list_hosts};
use crate::manager::hosts::deep_check::cleanup::cleanup;
use crate::manager::hosts::deep_check::run::HostCheck;
use crate::manager::hosts::deep_check::steps::{DeepCheckSteps, ENDING};
use crate::manager::operation::Op;
use crate::manager::operation::record::new_operation;
use crate::manager::upkeep::ownership::ensure_own;

/// Starts to try everything on one host, and returns at once, with the host as it was seen last. A host that is down or out of
/// bounds is a step that failed.
///
/// Errors: `not_found` for an unknown name, `conflict` in a copied or restored data directory.
pub(crate) async fn deep_check(deps: &Deps, name: &str) -> Result<(OperationId, HostView), Error> {
    let host = host_spec(deps, name)?.name;
    let known = list_hosts(deps).await?.into_iter().find(|known| known.name.same(host.as_str()));
    let view = known.ok_or_else(|| Error::internal("a host is checked that is not listed"))?;
    ensure_own(deps).await?;
    let operation = new_operation(deps, OperationKind::Check, Subject::Host, Some(host.as_str()));
    let fallback = (deps.clone(), operation.id.clone());
    let op = Box::pin(Op::queue(deps, operation, host, None)).await?;
    let work = async move |op: Arc<Op<HostName>>| {
        let view = check_deeply(&op).await;
        let error = view.deep.as_deref().and_then(check_error);
        let found = &op.deps.deeply_checked;
        found.lock().unwrap_or_else(PoisonError::into_inner).insert(op.id().clone(), view);
        error.map_or(Ok(()), Err)
    };
    let panicked = async move |_| {
        let (deps, id) = fallback;
        if let Err(left) = cleanup(&deps, &id).await {
            tracing::error!(operation = %id, %left, "what a check made could not be taken away");
        }
    };
    Ok((op.run_or(None, work, panicked), view))
}

async fn check_deeply(op: &Op<HostName>) -> HostView {
    let check = HostCheck {
        deps: &op.deps,
        operation: op.id(),
        host: &op.subject,
        cancel: op.cancel_token(),
    };
    let mut steps = DeepCheckSteps::new(&op.progress, &op.subject, op.cancel_token());
    let work = check.run(&mut steps);
    let cancel_requested = async {
        op.cancel_requested().await;
        op.cancel_token().cancel();
        std::future::pending::<Infallible>().await
    };
    let (mut view, scope) = tokio::select! {
        biased;
        seen = work => seen,
        never = cancel_requested => match never {},
    };
    // From here on nobody cancels it: what was made must go.
    let (made, left) = check.end(&mut steps, scope).await;
    let steps = steps.into_list();
    view.deep = Some(Box::new(DeepCheck {
        ok: steps.iter().all(|step| step.error.is_none()),
        operation: op.id().clone(),
        steps,
        sandboxes: made.sandboxes,
        snapshots: made.snapshots,
        left,
    }));
    view
}

/// Error of a check. A cancelled one has undone everything if it could remove all of it.
fn check_error(deep: &DeepCheck) -> Option<Error> {
    let error = deep.error()?.clone();
    let removed = |stage: &DeepStage| {
        deep.steps.iter().any(|step| step.stage == *stage && step.error.is_none())
    };
    if ENDING.iter().all(removed) {
        Some(CancelOutcome::Undone.noted_on(error))
    } else {
        Some(error)
    }
}
