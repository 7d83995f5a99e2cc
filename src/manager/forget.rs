//! Forget: give a sandbox up without looking at its host. What is there is removed when the host is next reached.

use std::sync::Arc;

use futures_util::future::join_all;
use tokio_util::sync::CancellationToken;

use crate::domain::error::Error;
use crate::domain::event::EventKind;
use crate::domain::name::{HostName, SandboxId};
use crate::domain::operation::{Operation, OperationKind};
use crate::domain::sandbox::{Reason, SandboxRecord, State};
use crate::failpoint;
use crate::manager::SandboxManager;
use crate::manager::record::Guard;
use crate::store::ending;

impl SandboxManager {
    /// Makes a sandbox `forgotten`. Whoever works on it is cancelled first.
    pub(super) async fn give_up(
        &self,
        operation: &Operation,
        id: &SandboxId,
        cancel: &CancellationToken,
    ) -> Result<(), Error> {
        let _held = self.take_over(id, operation, true, cancel).await?;
        let before = self.get(id.as_str()).await?;
        if before.state.is_over() {
            return Ok(());
        }
        let message = format!(
            "given up without a look at {0}; what is there is removed when {0} is next reached",
            before.host
        );
        let news = vec![(
            EventKind::SandboxForgotten,
            serde_json::json!({"host": before.host, "was": before.state}),
        )];
        self.transition(id, Guard::Any, news, move |record| {
            record.state = State::Forgotten;
            record.reason = Some(Reason::User);
            record.message = Some(message);
            record.operation = None;
            record.reachability = None;
            record.services.clear();
            record.expires_at = None;
        })
        .await?;
        self.end_followed(&before).await;
        failpoint::reached("forget.forgotten");
        self.parts.ledger.release(id).await
    }

    /// Removes what forgotten sandboxes left on a host that was just reached, and what could not be destroyed because
    /// it was away. What cannot be removed now is tried again at the next contact; it is no failure of whatever reached
    /// the host.
    pub(super) async fn collect_tombstones(&self, host: &HostName) {
        let records = match self.parts.sandboxes.list().await {
            Ok(records) => records,
            Err(fault) => return tracing::warn!(%fault, "tombstones could not be looked for"),
        };
        let waiting = |record: &&Arc<SandboxRecord>| {
            waits_for_host(record) && record.host.same(host.as_str())
        };
        let ids = records.iter().filter(waiting).map(|record| &record.id);
        for (id, collected) in join_all(ids.map(async |id| (id, self.collect(id).await))).await {
            if let Err(fault) = collected {
                tracing::warn!(sandbox = %id, %fault, "a forgotten sandbox could not be removed yet");
            }
        }
    }

    /// Removes a forgotten sandbox as an operation of its own.
    async fn collect(&self, id: &SandboxId) -> Result<(), Error> {
        self.ensure_own().await?;
        let Some(held) = self.parts.locks.try_lock(id).await? else { return Ok(()) };
        let Some(record) = self.parts.sandboxes.get(id).await?.filter(waits_for_host) else {
            return Ok(());
        };
        let operation = self.new_operation(OperationKind::Destroy, id);
        ending(self.parts.operations.put(operation.clone())).await?;
        let name = operation.id.clone();
        self.run_held(operation, held, None, move |manager, operation, cancel| async move {
            manager.remove_held(&operation, &record, Reason::User, &cancel).await
        });
        self.jobs.ended(&name).await;
        Ok(())
    }
}

/// Whether a record waits for its host to be reached: a tombstone, or a removal that found nobody there.
fn waits_for_host(record: &SandboxRecord) -> bool {
    match record.state {
        State::Forgotten => true,
        State::Destroying => record.operation.is_none() && record.reason == Some(Reason::HostLost),
        _ => false,
    }
}
