//! Rollout of a snapshot's patches onto all sandboxes that are based on it: some first, then the rest (semantics 7).

use futures_util::stream::{self, StreamExt};

use crate::domain::error::{Code, Error};
use crate::domain::extension::Capability;
use crate::domain::pending_patches::{Blocked, applied_ids, pending_patches};
use crate::domain::request::{ApplyRequest, RolloutItem, RolloutRequest};
use crate::domain::sandbox::{SandboxRecord, State};
use crate::manager::deps::Deps;
use crate::manager::operation::locks::busy_error;
use crate::manager::operation::wait::wait_for_operation;
use crate::manager::patches::apply::apply_patches;
use crate::manager::patches::find::{based_on, patches_of};
use crate::manager::snapshots::find::get_snapshot_at_revision;

const AT_ONCE: usize = 4;

/// Applies a snapshot's patches to all sandboxes based on it, the oldest `canary` of them first; stops at the first
/// failure: what runs then comes to its end, and no other is begun. One that sleeps is left to its wake. An item for
/// each sandbox, oldest first.
pub(crate) async fn roll_out(
    deps: &Deps,
    request: &RolloutRequest,
) -> Result<Vec<RolloutItem>, Error> {
    if request.canary == Some(0) {
        return Err(Error::invalid_input(
            "canary",
            "--canary is 1 or more: the sandboxes that come first",
        )
        .hint("without --canary all of them come at once"));
    }
    let snapshot = get_snapshot_at_revision(deps, &request.snapshot, request.revision).await?;
    deps.extension(&snapshot.extension)?.ensure(&Capability::Patches, "apply patches")?;
    let patches = patches_of(deps, &snapshot.id).await?;
    let mut items = Vec::new();
    let mut to_patch = Vec::new();
    let unseen = |record: &SandboxRecord| {
        request.sandboxes.as_ref().is_some_and(|seen| !seen.contains(&record.id))
    };
    for record in based_on(deps, &snapshot.id).await? {
        let pending = pending_patches(&record, &patches, false);
        let nothing = pending.run.is_empty() && pending.blocked.is_none();
        match passed_over(&record) {
            _ if nothing => items.push(item(&record, true, Vec::new(), None)),
            None if record.state == State::Sleeping => {
                items.push(asleep(&record, pending.blocked));
            }
            None if record.state != State::Ready => items.push(not_running(&record)),
            Some(why) => items.push(item(&record, false, Vec::new(), Some(why))),
            None if unseen(&record) => items.push(not_shown(&record)),
            None => to_patch.push(record),
        }
    }
    let first = request.canary.map_or(to_patch.len(), |first| first as usize).min(to_patch.len());
    let rest = to_patch.split_off(first);
    let (mut done, mut ended) = roll_over(deps, to_patch, None).await;
    for item in &mut done {
        item.canary = request.canary.is_some();
    }
    items.append(&mut done);
    let (mut done, stopped) = roll_over(deps, rest, ended.take()).await;
    if let Some(why) = stopped {
        tracing::info!(snapshot = %snapshot.id, %why, "the rollout stopped");
    }
    items.append(&mut done);
    let order: Vec<_> =
        based_on(deps, &snapshot.id).await?.into_iter().map(|record| record.id).collect();
    items.sort_by_key(|item| order.iter().position(|id| *id == item.id));
    Ok(items)
}

/// Patches these, some at a time, until one fails or is cancelled; why no other was begun, or is to be (`ended`).
async fn roll_over(
    deps: &Deps,
    records: Vec<SandboxRecord>,
    ended: Option<String>,
) -> (Vec<RolloutItem>, Option<String>) {
    let ended = std::sync::Mutex::new(ended);
    let one = async |record: SandboxRecord| {
        let before = lock(&ended).clone();
        if let Some(before) = before {
            let reason = Some(format!("not begun: {before}"));
            return RolloutItem { reason, ..item(&record, false, Vec::new(), None) };
        }
        let item = roll_onto(deps, &record).await;
        if let Some(error) = &item.error {
            lock(&ended).get_or_insert_with(|| match error.code {
                Code::Cancelled => "the rollout was cancelled".to_owned(),
                _ => format!("sandbox {} failed", record.title()),
            });
        }
        item
    };
    let done = stream::iter(records).map(one).buffered(AT_ONCE).collect().await;
    (done, ended.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner))
}

async fn roll_onto(deps: &Deps, record: &SandboxRecord) -> RolloutItem {
    let ask = ApplyRequest { id: record.id.to_string(), ..ApplyRequest::default() };
    let had = applied_ids(record);
    let outcome = async {
        let started = apply_patches(deps, &ask).await?;
        let Some(operation) = started.operation else { return Ok((None, started.sandbox)) };
        let (operation, now) = wait_for_operation(deps, &operation).await?;
        Ok::<_, Error>((operation.error, now.unwrap_or(started.sandbox)))
    };
    match outcome.await {
        Ok((error, now)) => {
            let new = now.applied_patches.iter().filter(|run| applied_ids(&now).contains(&run.id));
            let applied =
                new.filter(|run| !had.contains(&run.id)).map(|run| run.sequence).collect();
            let mut item = item(record, error.is_none(), applied, None);
            item.error = error.map(|error| *error);
            item
        }
        Err(error) => item(record, false, Vec::new(), Some(error)),
    }
}

fn lock<T>(mutex: &std::sync::Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}

fn item(record: &SandboxRecord, ok: bool, applied: Vec<u64>, why: Option<Error>) -> RolloutItem {
    let error = why;
    RolloutItem { id: record.id.clone(), ok, canary: false, applied, reason: None, error }
}

/// Item of a sandbox that sleeps: its wake applies its pending patches, unless something stands in the way of that too.
fn asleep(record: &SandboxRecord, blocked: Option<Blocked<'_>>) -> RolloutItem {
    let Some(Blocked::Failed(patch) | Blocked::Unknown(patch)) = blocked else {
        let reason = Some("it sleeps, and gets them on its next wake".to_owned());
        return RolloutItem { reason, ..item(record, true, Vec::new(), None) };
    };
    let (id, sequence, state) = (&record.id, patch.sequence, &patch.state);
    let why = Error::new(
        Code::Conflict,
        format!("passed over: sandbox {id} sleeps, and its patch {sequence} is {state}"),
    )
    .hint(format!(
        "`sandboxer wake {id}`, then `sandboxer patches apply {id} --retry`, or remove the patch"
    ));
    item(record, false, Vec::new(), Some(why))
}

/// Item of a sandbox that was made, or woke, since the request was shown who is there.
fn not_shown(record: &SandboxRecord) -> RolloutItem {
    let reason = Some("not begun: it was not ready when that was looked at".to_owned());
    RolloutItem { reason, ..item(record, false, Vec::new(), None) }
}

/// Item of a sandbox of which nothing runs: its patches are applied before it is ready.
fn not_running(record: &SandboxRecord) -> RolloutItem {
    let reason = match &record.state {
        State::Requested | State::Provisioning => {
            "it is being made, and gets them before it is ready".to_owned()
        }
        State::Failed | State::Lost => {
            format!("it is {}, and gets them if it is made again", record.state)
        }
        state => format!("it is {state}"),
    };
    RolloutItem { reason: Some(reason), ..item(record, true, Vec::new(), None) }
}

/// Reason why a sandbox is left alone. That stops nothing.
fn passed_over(record: &SandboxRecord) -> Option<Error> {
    let id = &record.id;
    if record.is_protected() {
        return Some(
            Error::new(
                Code::Conflict,
                format!("passed over: sandbox {id} is labelled protect=true"),
            )
            .hint(format!("`sandboxer patches apply {id}` does it all the same")),
        );
    }
    if !matches!(record.state, State::Ready | State::Sleeping) {
        return None;
    }
    let working = record.operation.as_ref()?;
    let hint = format!("`sandboxer patches apply {id}` when it has ended");
    Some(busy_error(&format!("passed over: sandbox {id} is busy"), Some(working)).hint(hint))
}
