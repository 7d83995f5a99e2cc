//! `wait`: until a sandbox is ready, destroyed or patched, whoever works on it. That it is ready its host has to say.

use std::time::Duration;

use futures_util::StreamExt as _;
use tokio::time::Instant;

use super::args::{WaitArgs, WaitFor};
use super::interrupt::until_interrupted;
use super::output::{Context, Outcome};
use super::sandboxes;
use crate::client::{Client, Error, Update};
use crate::domain::patch::{Patch, PatchState};
use crate::domain::pending_patches::pending_patches;
use crate::domain::sandbox::Service;
use crate::domain::{Code, SandboxId, SandboxRecord, State};
use crate::present::sandbox;

/// The record is read again at least this often, in case an event was missed.
const AGAIN: Duration = Duration::from_secs(1);

pub(super) async fn wait(context: &mut Context<'_>, args: &WaitArgs) -> Outcome {
    let client = context.client;
    let deadline = args.timeout.map(|timeout| Instant::now() + timeout.duration());
    let reached = until_interrupted(context, until(client, args, deadline)).await?;
    sandboxes::show(context, &reached?)
}

async fn until(
    client: &dyn Client,
    args: &WaitArgs,
    deadline: Option<Instant>,
) -> Result<SandboxRecord, Error> {
    // Listening begins before the first look, so that nothing falls between.
    let mut updates = client.subscribe().await?;
    let mut record = client.get(&args.id).await?;
    let id = record.id.clone();
    let mut ended = Vec::new();
    loop {
        let unseen = match observed(client, &record, args.what).await {
            Ok(seen) => {
                record = seen;
                None
            }
            // Whoever gave it time means a host that is away for a moment, too.
            Err(problem) if problem.retryable && deadline.is_some() => Some(problem),
            Err(problem) => return Err(problem),
        };
        if unseen.is_none() && judge(client, &record, args.what).await? {
            return Ok(record);
        }
        // Engines that start a service again call it ended for a moment.
        let before = std::mem::replace(&mut ended, services_ended(&record));
        if args.what == WaitFor::Ready && unseen.is_none() && !ended.is_empty() && ended == before {
            return Err(degraded(&record));
        }
        if deadline.is_some_and(|deadline| Instant::now() >= deadline) {
            return Err(unseen.unwrap_or_else(|| late(&record, args)));
        }
        let again = Instant::now() + AGAIN;
        let next = deadline.map_or(again, |deadline| again.min(deadline));
        tokio::select! {
            () = tokio::time::sleep_until(next) => {}
            Some(()) = concerning(&mut updates, &id) => {}
        }
        record = client.get(id.as_str()).await?;
    }
}

/// A sandbox as its host says it is now, where that is what is waited for.
async fn observed(
    client: &dyn Client,
    record: &SandboxRecord,
    what: WaitFor,
) -> Result<SandboxRecord, Error> {
    if what == WaitFor::Ready && record.state == State::Ready && record.operation.is_none() {
        return client.observe(record.id.as_str()).await;
    }
    Ok(record.clone())
}

/// Services that should run and have come to an end.
fn services_ended(record: &SandboxRecord) -> Vec<Service> {
    let ended =
        |service: &&Service| matches!(service.state.as_str(), "exited" | "dead" | "missing");
    record.degraded().filter(ended).cloned().collect()
}

/// Returns at the next update that may have changed this sandbox; none when there will be no more.
async fn concerning(
    updates: &mut (impl futures_util::Stream<Item = Update> + Unpin),
    id: &SandboxId,
) -> Option<()> {
    let concerns = |update: &Update| {
        matches!(update, Update::Resync)
            || matches!(update, Update::Event(event) if event.sandbox_id.as_ref() == Some(id))
            || matches!(update, Update::Ended(end) if end.operation.subject.sandbox() == Some(id))
    };
    while !concerns(&updates.next().await?) {}
    Some(())
}

/// Whether what is waited for has come.
///
/// Errors: `operation_failed` or `conflict` when it will not come by itself.
async fn judge(client: &dyn Client, record: &SandboxRecord, what: WaitFor) -> Result<bool, Error> {
    match what {
        WaitFor::Ready => judge_ready(record),
        // `forgotten` is not destroyed: nobody looked.
        WaitFor::Destroyed => Ok(record.state == State::Destroyed),
        WaitFor::Patched => judge_patched(record, &patches_for(client, record).await?),
    }
}

/// By its pending patches, which the record names only once whoever works on it is done.
fn judge_patched(record: &SandboxRecord, patches: &[Patch]) -> Result<bool, Error> {
    if matches!(record.state, State::Requested | State::Provisioning) {
        // While it is made its patches are still to come.
        return Ok(false);
    }
    if record.state == State::Failed {
        return judge_ready(record);
    }
    let in_a_pass = record.operation.is_some() && record.patch_state == PatchState::Applying;
    let pending = pending_patches(record, patches, false);
    if pending.blocked.is_some() && !in_a_pass {
        let error =
            record.patch_error.clone().unwrap_or_else(|| "its patches are not all in".to_owned());
        return Err(failure(record, Some(&error)));
    }
    if pending.run.is_empty() && !in_a_pass {
        return Ok(true);
    }
    if is_ending(&record.state) { Err(ending(record)) } else { Ok(false) }
}

/// The patches of the snapshot that a sandbox is based on; with a snapshot go its patches. Read behind the record.
async fn patches_for(client: &dyn Client, record: &SandboxRecord) -> Result<Vec<Patch>, Error> {
    let Some(base) = &record.based_on_snapshot else { return Ok(Vec::new()) };
    match client.snapshot_view(base.as_str()).await {
        Ok(view) => Ok(view.patches),
        Err(problem) if problem.code == Code::NotFound => Ok(Vec::new()),
        Err(problem) => Err(problem),
    }
}

fn judge_ready(record: &SandboxRecord) -> Result<bool, Error> {
    let is_recreated = record
        .operation
        .as_ref()
        .is_some_and(|running| running.kind == crate::domain::OperationKind::Recreate);
    match &record.state {
        State::Ready => Ok(record.degraded().next().is_none()),
        // A recreate that has begun leads out of these.
        State::Failed | State::Lost if is_recreated => Ok(false),
        State::Failed | State::Lost => Err(failure(record, record.message.as_ref())
            .hint(format!("sandboxer get {0}; sandboxer recreate {0} makes it again", record.id))),
        state if is_ending(state) && !is_recreated => Err(ending(record)),
        _ => Ok(false),
    }
}

/// A sandbox of which a service ended that nobody starts again.
fn degraded(record: &SandboxRecord) -> Error {
    let words = sandbox::degraded(record).unwrap_or_default();
    Error::new(Code::OperationFailed, format!("{} is not ready any more: {words}", record.title()))
        .hint(format!(
            "sandboxer logs {0} shows why it ended; sandboxer recreate {0} makes it again",
            record.id
        ))
}

fn is_ending(state: &State) -> bool {
    matches!(state, State::Destroying | State::Destroyed | State::Forgotten)
}

fn failure(record: &SandboxRecord, message: Option<&String>) -> Error {
    let message =
        message.cloned().unwrap_or_else(|| format!("{} is {}", record.title(), record.state));
    Error::new(Code::OperationFailed, message)
}

fn ending(record: &SandboxRecord) -> Error {
    Error::new(
        Code::Conflict,
        format!("{} is {}; what is waited for will not come", record.title(), record.state),
    )
}

fn late(record: &SandboxRecord, args: &WaitArgs) -> Error {
    let what = match args.what {
        WaitFor::Ready => "ready",
        WaitFor::Destroyed => "destroyed",
        WaitFor::Patched => "patched",
    };
    let timeout = args.timeout.unwrap_or_default();
    let state: Vec<String> = std::iter::once(record.state.to_string())
        .chain(sandbox::degraded(record).map(|words| format!("degraded: {words}")))
        .collect();
    let state = state.join(", ");
    Error::new(
        Code::Timeout,
        format!("{} is not {what} after {timeout}; it is {state}", record.title()),
    )
}
