//! Verbs that change something: operations from their start to their end, labels, rollouts.

use std::panic::AssertUnwindSafe;
use std::sync::{Arc, PoisonError};
use std::time::Duration;

use futures_util::FutureExt as _;
use tokio_util::sync::CancellationToken;

use super::{Effects, panicked};
use crate::client::{
    Client, Error, ExtendRequest, LabelRequest, Request, RolloutRequest, SweepRequest,
};
use crate::domain::error::Code;
use crate::domain::name::{OperationId, SandboxId};
use crate::domain::operation::CancelOutcome;
use crate::tui::message::Msg;
use crate::tui::model::JobId;

/// Reason of what is not begun any more.
const NOT_BEGUN: &str = "the dashboard had ended before it was begun";

impl Effects {
    /// Starts an operation, tells what was answered, waits for its end and tells that.
    pub(super) fn start(&self, job: JobId, request: Request) {
        let (client, begun, queue) = (self.client(), Arc::clone(&self.begun), self.queue.clone());
        self.task(move |problem| Msg::Ended(job, Err(problem), None), async move {
            let Ok(permit) = begun.acquire().await else {
                return Msg::Skipped(job, NOT_BEGUN.to_owned());
            };
            let started = AssertUnwindSafe(client.start(request)).catch_unwind().await;
            drop(permit);
            let started = started.unwrap_or_else(|panic| Err(panicked(panic.as_ref())));
            let operation = started.as_ref().ok().and_then(|started| started.operation.clone());
            let started = Msg::Started(job, started.map(Box::new));
            let Some(operation) = operation else { return started };
            let _ = queue.send(started).await;
            let outcome = client.wait(&operation).await;
            let took = took(client.as_ref(), &operation).await;
            Msg::Ended(job, outcome, took)
        });
    }

    pub(super) fn extend(&self, form: u64, request: ExtendRequest) {
        let (client, begun) = (self.client(), Arc::clone(&self.begun));
        self.answer(move |answer| Msg::Extended(form, answer), async move {
            let Ok(_permit) = begun.acquire().await else {
                return Err(Error::new(Code::Cancelled, NOT_BEGUN));
            };
            client.extend(request).await.map(Box::new)
        });
    }

    pub(super) fn label(&self, request: LabelRequest) {
        let (client, begun) = (self.client(), Arc::clone(&self.begun));
        let of = SandboxId::new(request.id.as_str());
        self.answer(move |answer| Msg::Labelled(of, answer), async move {
            let Ok(_permit) = begun.acquire().await else {
                return Err(Error::new(Code::Cancelled, NOT_BEGUN));
            };
            client.label(request).await.map(Box::new)
        });
    }

    /// Removals that a sweep begins are operations of this process: where nothing is begun any more, there is no sweep.
    pub(super) fn sweep(&self, number: u64) {
        let (client, begun) = (self.client(), Arc::clone(&self.begun));
        self.answer(move |answer| Msg::Swept(number, answer), async move {
            if begun.is_closed() {
                return Err(Error::new(Code::Cancelled, NOT_BEGUN));
            }
            client.sweep(SweepRequest::default()).await.map(Box::new)
        });
    }

    /// A rollout is many operations and none of its own: it is stopped by waiting no longer.
    pub(super) fn roll_out(&self, job: JobId, request: RolloutRequest) {
        let (client, begun) = (self.client(), Arc::clone(&self.begun));
        let token = CancellationToken::new();
        self.rollouts.lock().unwrap_or_else(PoisonError::into_inner).insert(job, token.clone());
        self.task(move |problem| Msg::RolledOut(job, Err(problem)), async move {
            if begun.is_closed() {
                return Msg::Skipped(job, NOT_BEGUN.to_owned());
            }
            tokio::select! {
                answer = client.roll_out(request) => Msg::RolledOut(job, answer),
                () = token.cancelled() => {
                    let message = "no further sandbox is begun; those that run go on to their end";
                    Msg::RolledOut(job, Err(CancelOutcome::Stopped.error(message)))
                }
            }
        });
    }

    pub(super) fn stop_rollout(&self, job: JobId) {
        let stopped = self.rollouts.lock().unwrap_or_else(PoisonError::into_inner).remove(&job);
        if let Some(token) = stopped {
            token.cancel();
        }
    }
}

/// How long an operation took.
async fn took(client: &dyn Client, operation: &OperationId) -> Option<Duration> {
    let operation = client.operation(operation.as_str()).await.ok()?;
    Some(operation.finished_at?.since(operation.started_at))
}
