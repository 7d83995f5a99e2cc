//! Forget: give a sandbox up without looking at its host. What is there is removed when the host is next reached.

use std::sync::Arc;

use futures_util::future::join_all;

use crate::domain::error::Error;
use crate::domain::event::EventKind;
use crate::domain::name::{HostName, SandboxId};
use crate::domain::operation::OperationKind;
use crate::domain::sandbox::{Reason, SandboxRecord, State};
use crate::domain::settlement::After;
use crate::domain::sweep::reason_to_finish;
use crate::failpoint;
use crate::manager::credits::charge::{Ran, Settlement};
use crate::manager::deps::Deps;
use crate::manager::journal::Guard;
use crate::manager::operation::Op;
use crate::manager::operation::dead::end_predecessor;
use crate::manager::operation::start::run_to_end;
use crate::manager::operation::subject::OperationRecord as _;
use crate::manager::sandboxes::find::find_sandbox;
use crate::manager::sandboxes::remove::{destroy_locked, take_over_lock};
use crate::manager::upkeep::ownership::ensure_own;

/// Makes a sandbox `forgotten`. Whoever works on it is cancelled first.
pub(crate) async fn forget_sandbox(op: &Op<SandboxRecord>) -> Result<(), Error> {
    let (deps, id) = (&op.deps, &op.subject.id);
    let _lock = take_over_lock(op, true).await?;
    let before = find_sandbox(deps, id.as_str()).await?;
    if before.state.is_over() {
        return Ok(());
    }
    let message = format!(
        "given up without a look at {0}; what is there is removed when {0} is next reached",
        before.host
    );
    let events = vec![(
        EventKind::SandboxForgotten,
        serde_json::json!({"host": before.host, "was": before.state}),
    )];
    let settlement = Settlement::of(deps, &before, Ran::Metered, After::Forgotten).await;
    SandboxRecord::write(deps, id, Guard::Any, events, move |record| {
        settlement.write_on(record);
        record.state = State::Forgotten;
        record.reason = Some(Reason::User);
        record.message = Some(message);
        record.operation = None;
        record.reachability = None;
        record.services.clear();
        record.expires_at = None;
        Ok(())
    })
    .await?;
    end_predecessor(deps, before.operation.as_ref()).await;
    failpoint::reached("forget.forgotten");
    Ok(())
}

/// Removes what forgotten sandboxes left on a host that was just reached, and what could not be destroyed because
/// it was away. What cannot be removed now is tried again at the next contact; it is no failure of whatever reached
/// the host.
pub(crate) async fn collect_tombstones(deps: &Deps, host: &HostName) {
    let records = match deps.sandboxes.list().await {
        Ok(records) => records,
        Err(error) => return tracing::warn!(%error, "tombstones could not be looked for"),
    };
    let waiting =
        |record: &&Arc<SandboxRecord>| waits_for_host(record) && record.host.same(host.as_str());
    let ids = records.iter().filter(waiting).map(|record| &record.id);
    for (id, collected) in
        join_all(ids.map(async |id| (id, collect_tombstone(deps, id).await))).await
    {
        if let Err(error) = collected {
            tracing::warn!(sandbox = %id, %error, "a forgotten sandbox could not be removed yet");
        }
    }
}

/// Removes a forgotten sandbox as an operation of its own.
async fn collect_tombstone(deps: &Deps, id: &SandboxId) -> Result<(), Error> {
    ensure_own(deps).await?;
    let Some(lock) = deps.locks.try_lock(id).await? else { return Ok(()) };
    let Some(record) = deps.sandboxes.get(id).await?.filter(waits_for_host) else {
        return Ok(());
    };
    let ended = run_to_end(deps, OperationKind::Destroy, (record, lock), |op| async move {
        destroy_locked(&op, &op.subject, reason_to_finish(&op.subject)).await
    });
    ended.await.map(|_| ())
}

/// Whether a record waits for its host to be reached: a tombstone, or a removal that found nobody there.
fn waits_for_host(record: &SandboxRecord) -> bool {
    match record.state {
        State::Forgotten => true,
        State::Destroying => record.operation.is_none() && record.reason == Some(Reason::HostLost),
        State::Requested
        | State::Provisioning
        | State::Ready
        | State::Sleeping
        | State::Failed
        | State::Lost
        | State::Destroyed
        | State::Other(_) => false,
    }
}
