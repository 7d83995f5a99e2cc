//! `wait`: until a sandbox is ready, destroyed or patched, whoever works on it.

use std::time::Duration;

use futures_util::StreamExt as _;
use tokio::time::Instant;

use super::args::{WaitArgs, WaitFor};
use super::interrupt::look_on;
use super::output::{Face, Outcome};
use super::sandboxes;
use crate::client::{Client, Problem, Update};
use crate::domain::patch::PatchState;
use crate::domain::{Code, SandboxId, SandboxRecord, State};

/// The record is read again at least this often, in case an event was missed.
const AGAIN: Duration = Duration::from_secs(1);

pub(super) async fn wait(face: &mut Face<'_>, args: &WaitArgs) -> Outcome {
    let client = face.client;
    let deadline = args.timeout.map(|timeout| Instant::now() + timeout.duration());
    let reached = look_on(face, until(client, args, deadline)).await?;
    sandboxes::show(face, &reached?)?;
    Ok(0)
}

async fn until(client: &dyn Client, args: &WaitArgs, deadline: Option<Instant>) -> Result<SandboxRecord, Problem> {
    // Listening begins before the first look, so that nothing falls between.
    let mut updates = client.subscribe().await?;
    let mut record = client.get(&args.id).await?;
    let id = record.id.clone();
    loop {
        if judge(&record, args.what)? {
            return Ok(record);
        }
        let again = Instant::now() + AGAIN;
        let next = deadline.map_or(again, |deadline| again.min(deadline));
        tokio::select! {
            () = tokio::time::sleep_until(next) => {}
            Some(()) = concerning(&mut updates, &id) => {}
        }
        record = client.get(id.as_str()).await?;
        if deadline.is_some_and(|deadline| Instant::now() >= deadline) && !judge(&record, args.what)? {
            return Err(late(&record, args));
        }
    }
}

/// Returns at the next update that may have changed this sandbox; none when there will be no more.
async fn concerning(updates: &mut (impl futures_util::Stream<Item = Update> + Unpin), id: &SandboxId) -> Option<()> {
    loop {
        match updates.next().await? {
            Update::Event(event) if event.sandbox_id.as_ref() == Some(id) => return Some(()),
            Update::Ended(operation) if operation.sandbox_id.as_ref() == Some(id) => return Some(()),
            Update::Resync => return Some(()),
            _ => {}
        }
    }
}

/// Whether what is waited for has come.
///
/// Errors: `operation_failed` or `conflict` when it will not come by itself.
fn judge(record: &SandboxRecord, what: WaitFor) -> Result<bool, Problem> {
    match what {
        WaitFor::Ready => judge_ready(record),
        // `forgotten` is not destroyed: nobody looked.
        WaitFor::Destroyed => Ok(record.state == State::Destroyed),
        // While it is made its patches are still to come.
        WaitFor::Patched if matches!(record.state, State::Requested | State::Provisioning) => Ok(false),
        WaitFor::Patched if record.state == State::Failed => judge_ready(record),
        WaitFor::Patched => match record.patch_state {
            PatchState::None | PatchState::Applied => Ok(true),
            PatchState::Failed | PatchState::Unknown => Err(failure(record, record.patch_error.as_ref())),
            _ if is_ending(&record.state) => Err(ending(record)),
            _ => Ok(false),
        },
    }
}

fn judge_ready(record: &SandboxRecord) -> Result<bool, Problem> {
    match &record.state {
        State::Ready => Ok(true),
        // A recreate that has begun leads out of these.
        _ if record
            .operation
            .as_ref()
            .is_some_and(|running| running.kind == crate::domain::OperationKind::Recreate) =>
        {
            Ok(false)
        }
        State::Failed | State::Lost => Err(failure(record, record.message.as_ref())
            .hint(format!("sandboxer get {0}; sandboxer recreate {0} makes it again", record.id))),
        state if is_ending(state) => Err(ending(record)),
        _ => Ok(false),
    }
}

fn is_ending(state: &State) -> bool {
    matches!(state, State::Destroying | State::Destroyed | State::Forgotten)
}

fn failure(record: &SandboxRecord, message: Option<&String>) -> Problem {
    let message = message.cloned().unwrap_or_else(|| format!("{} is {}", record.title(), record.state));
    Problem::new(Code::OperationFailed, message)
}

fn ending(record: &SandboxRecord) -> Problem {
    Problem::new(Code::Conflict, format!("{} is {}; what is waited for will not come", record.title(), record.state))
}

fn late(record: &SandboxRecord, args: &WaitArgs) -> Problem {
    let what = match args.what {
        WaitFor::Ready => "ready",
        WaitFor::Destroyed => "destroyed",
        WaitFor::Patched => "patched",
    };
    let timeout = args.timeout.unwrap_or_default();
    Problem::new(Code::Timeout, format!("{} is not {what} after {timeout}; it is {}", record.title(), record.state))
}
