//! Deletion of a snapshot, by request or by a retention rule. Never of one that something depends on, unless somebody
//! insists (semantics 6).

use crate::domain::error::{Code, Error, Kind};
use crate::domain::event::EventKind;
use crate::domain::lineage::SnapshotView;
use crate::domain::name::SnapshotId;
use crate::domain::operation::OperationKind;
use crate::domain::request::{PruneItem, SnapshotDeleteRequest, SnapshotStarted};
use crate::domain::retention::RetentionRule;
use crate::domain::sandbox::{SandboxRecord, State};
use crate::domain::snapshot::{Replica, ReplicaState, SnapshotKind, SnapshotRecord, SnapshotState};
use crate::domain::time::Time;
use crate::domain::update::Update;
use crate::failpoint;
use crate::manager::deps::Deps;
use crate::manager::journal::{self, Guard, append, free_snapshot, update_among};
use crate::manager::operation::Op;
use crate::manager::operation::locks::{busy_error, lock_snapshot};
use crate::manager::operation::record::operation_on_snapshot;
use crate::manager::patches::find::based_on;
use crate::manager::patches::pending::refresh_patch_states;
use crate::manager::patches::remove::remove_patches_of;
use crate::manager::snapshots::find::{get_snapshot_at_revision, snapshot_view};
use crate::manager::snapshots::remove::remove_what_answers;
use crate::manager::upkeep::ownership::ensure_own;
use crate::store::ending;

/// Starts to delete a snapshot: its archive on every host, its patches, its name. What a host does not let go stays listed as
/// `removing`, and the snapshot as `deleting`; by force it is given up.
///
/// Errors of the operation: what is left, and why; where every host refused to begin, it is what it was.
pub(crate) async fn delete_snapshot(
    deps: &Deps,
    request: &SnapshotDeleteRequest,
) -> Result<SnapshotStarted, Error> {
    delete_forced(deps, request, request.force).await
}

/// [`delete_snapshot`], where the caller says whether archives may be given up.
pub(crate) async fn delete_forced(
    deps: &Deps,
    request: &SnapshotDeleteRequest,
    by_force: bool,
) -> Result<SnapshotStarted, Error> {
    if request.rule.is_none() {
        return ending(start_deletion(deps, request, by_force)).await;
    }
    // A directory that may not delete is no reason to pass over one snapshot.
    ensure_own(deps).await?;
    ending(start_deletion(deps, request, by_force)).await.map_err(passed_over)
}

async fn start_deletion(
    deps: &Deps,
    request: &SnapshotDeleteRequest,
    by_force: bool,
) -> Result<SnapshotStarted, Error> {
    let record = get_snapshot_at_revision(deps, &request.id, request.revision).await?;
    ensure_own(deps).await?;
    if let Some(rule) = &request.rule {
        let all = deps.snapshots.list_by_insertion().await?;
        still_old(rule, &record, &all.iter().collect::<Vec<_>>(), deps.now())?;
    }
    refuse_protected(&record, request.force_protected)?;
    refuse_in_use(deps, &record.id, request).await?;
    let lock = lock_snapshot(deps, &record.id).await?;
    let record = get_snapshot_at_revision(deps, &request.id, request.revision).await?;
    if record.state == SnapshotState::Creating {
        return Err(Error::new(
            Code::Conflict,
            format!("snapshot {} is still being made", record.id),
        )
        .hint("cancel its operation; or, if nobody works on it any more, `sandboxer recover`"));
    }
    let operation = operation_on_snapshot(deps, OperationKind::Delete, &record);
    let op = Box::pin(Op::queue(deps, operation, record, Some(lock))).await?;
    failpoint::reached("delete.judged");
    let deleting = match begin_deleting(&op, request).await {
        Ok(deleting) => deleting,
        Err(error) => return Err(op.abort(error).await),
    };
    failpoint::reached("delete.deleting");
    let operation = op.run(None, move |op| async move { delete_locked(&op, by_force).await });
    Ok(SnapshotStarted { operation: Some(operation), snapshot: deleting })
}

/// Writes `deleting`, and looks once more whether somebody began to use it meanwhile: a restore writes its record first
/// and then looks whether the snapshot is still ready, so that one of the two sees the other.
async fn begin_deleting(
    op: &Op<SnapshotRecord>,
    request: &SnapshotDeleteRequest,
) -> Result<SnapshotRecord, Error> {
    let deleting = write_deleting(op, request.rule).await?;
    if let Err(error) = refuse_in_use(&op.deps, &op.subject.id, request).await {
        put_back_snapshot(&op.deps, &op.subject).await?;
        return Err(error);
    }
    Ok(deleting)
}

/// Writes `deleting`. A rule is judged in that very write: of two that one rule would delete, who comes second may be the
/// last one that is left. Why it goes is its message then.
async fn write_deleting(
    op: &Op<SnapshotRecord>,
    rule: Option<RetentionRule>,
) -> Result<SnapshotRecord, Error> {
    let (deps, record, running) = (&op.deps, &op.subject, op.running());
    let (id, expected) = (&record.id, Some(record.revision));
    let begin = move |record: &mut SnapshotRecord| {
        // The name of one that has failed may be another's by now.
        if record.state == SnapshotState::Failed {
            record.name = None;
        }
        record.state = SnapshotState::Deleting;
        record.operation = Some(running);
        record.mark_all(&ReplicaState::Removing);
        Ok(())
    };
    let Some(rule) = rule else {
        return journal::update(deps, id, Guard::Revision(expected), Vec::new(), begin).await;
    };
    let now = deps.now();
    update_among(deps, id, expected, move |record, all| {
        record.message = Some(still_old(&rule, record, all, now)?);
        begin(record)
    })
    .await
}

/// Removes one that is `deleting`, and was as the operation found it.
pub(crate) async fn delete_locked(op: &Op<SnapshotRecord>, by_force: bool) -> Result<(), Error> {
    let (deps, before) = (&op.deps, &op.subject);
    let id = &before.id;
    let cut_off =
        || Error::new(Code::Cancelled, format!("the removal of snapshot {id} was cut off"));
    let removal = remove_what_answers(deps, id, &op.progress);
    let removed = op.or_cancelled_with(cut_off, removal).await;
    failpoint::reached("delete.removed");
    let left = match removed {
        Ok(left) => left,
        Err(error) => return Err(stay_in_deleting(deps, id, error).await?),
    };
    match left.error() {
        Some(error) if left.is_refused && before.state != SnapshotState::Deleting && !by_force => {
            put_back_snapshot(deps, before).await?;
            return Err(error);
        }
        Some(error) if !by_force => return Err(stay_in_deleting(deps, id, error).await?),
        Some(_) | None => {}
    }
    remove_patches_of(deps, id).await?;
    let given_up: Vec<Replica> = left.left.into_iter().map(|(replica, _)| replica).collect();
    let mut data = serde_json::json!({});
    if !given_up.is_empty() {
        let places =
            given_up.iter().map(|gone| serde_json::json!({"host": gone.host, "path": gone.path}));
        data["given_up"] = places.collect();
    }
    let events = vec![(EventKind::SnapshotDeleted, data)];
    let record =
        journal::update(deps, id, Guard::Any, events, |_: &mut SnapshotRecord| Ok(())).await?;
    refresh_patch_states(deps, id).await;
    // Only the record has the events that are not in the log.
    if let Err(error) = append(deps, &record.pending).await {
        return Err(stay_in_deleting(deps, id, error).await?);
    }
    failpoint::reached("delete.told");
    deps.snapshots.remove(id, None).await?;
    deps.jobs.publish(Update::Snapshots);
    let mut gone = deps.deleted.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    let message = given_up_words(&given_up).or_else(|| record.message.clone());
    gone.insert(
        id.clone(),
        SnapshotRecord { operation: None, pending: Vec::new(), message, ..record },
    );
    Ok(())
}

/// Message on archives that were given up.
fn given_up_words(given_up: &[Replica]) -> Option<String> {
    let words = given_up.iter().map(|gone| match &gone.path {
        Some(path) => format!("{path} on {}", gone.host),
        None => format!("whatever is there of it on {}", gone.host),
    });
    let words: Vec<String> = words.collect();
    (!words.is_empty())
        .then(|| format!("given up, and not removed: {} stays there", words.join(", ")))
}

/// After a deletion that was refused: the snapshot is what it was before.
async fn put_back_snapshot(deps: &Deps, before: &SnapshotRecord) -> Result<(), Error> {
    let SnapshotRecord { id, state, name, message, operation, replicas, .. } = before.clone();
    free_snapshot(deps, &id, move |record| {
        (record.state, record.name, record.message) = (state, name, message);
        (record.operation, record.replicas) = (operation, replicas);
    })
    .await
    .map(|_| ())
}

/// Error of a deletion that could not be brought to its end, with how it goes on.
async fn stay_in_deleting(deps: &Deps, id: &SnapshotId, error: Error) -> Result<Error, Error> {
    let message = error.message.clone();
    free_snapshot(deps, id, move |record| record.message = Some(message)).await?;
    let way_out = format!(
        "it stays `deleting`: `sandboxer recover` or `sandboxer snapshots delete {id}` goes on, and --force gives up what is left"
    );
    Ok(error.and_hint(&way_out))
}

/// A snapshot that something depends on is not deleted, unless somebody insists; one that a sandbox is being made from
/// never is.
async fn refuse_in_use(
    deps: &Deps,
    id: &SnapshotId,
    request: &SnapshotDeleteRequest,
) -> Result<(), Error> {
    let made = based_on(deps, id).await?.into_iter().find(is_being_made);
    let made = match made {
        None => brought_back_from(deps, id).await?,
        made => made,
    };
    if let Some(sandbox) = made {
        let what = format!("sandbox {} is being made from snapshot {id}", sandbox.id);
        return Err(busy_error(&what, sandbox.operation.as_ref()).hint("wait for it, or cancel it"));
    }
    refuse_dependants(&snapshot_view(deps, id.as_str()).await?, request)
}

/// Sandbox that is being brought back from an undo snapshot: it is based on another one, or on none.
async fn brought_back_from(deps: &Deps, id: &SnapshotId) -> Result<Option<SandboxRecord>, Error> {
    let snapshot = deps.snapshots.get(id).await?;
    let Some(snapshot) = snapshot.filter(|snapshot| snapshot.kind == SnapshotKind::Undo) else {
        return Ok(None);
    };
    let is_from_it = |record: &SandboxRecord| {
        record.undo_of.as_ref() == Some(&snapshot.sandbox_id)
            && matches!(record.state, State::Requested | State::Provisioning)
    };
    let records = deps.sandboxes.list().await?;
    let found = records.iter().find(|record| is_from_it(record));
    Ok(found.map(|record| SandboxRecord::clone(record)))
}

/// Whether a sandbox is being made. One that is made again keeps its state until what it is made from was read whole.
fn is_being_made(sandbox: &SandboxRecord) -> bool {
    let again =
        sandbox.operation.as_ref().is_some_and(|running| running.kind == OperationKind::Recreate);
    again || matches!(sandbox.state, State::Requested | State::Provisioning)
}

/// A protected one is deleted only by who says that he means it.
fn refuse_protected(record: &SnapshotRecord, forced: bool) -> Result<(), Error> {
    if record.is_protected() && !forced {
        return Err(Error::new(
            Code::Conflict,
            format!("snapshot {} is labelled protect=true", record.title()),
        )
        .hint("--force-protected does it all the same"));
    }
    Ok(())
}

/// Reason why a rule still calls a snapshot old.
///
/// Errors: `conflict` with why not, in `details.skipped` too.
fn still_old(
    rule: &RetentionRule,
    record: &SnapshotRecord,
    all: &[&SnapshotRecord],
    now: Time,
) -> Result<String, Error> {
    rule.judge(record, all, now).map_err(|stays| {
        let error =
            Error::new(Code::Conflict, format!("snapshot {} stays: {stays}", record.title()));
        error.passed_over(format!("kept, {stays}"))
    })
}

/// Error of a deletion by a rule alone, which passes the snapshot over.
fn passed_over(error: Error) -> Error {
    let reason = match (&error.code, &error.kind) {
        (_, Kind::PassedOver(_)) => return error,
        (Code::NotFound, _) => PruneItem::GONE.to_owned(),
        (_, Kind::Needed(dependants)) => format!("kept, in use by {}", dependants.join(", ")),
        (Code::Conflict, _) => format!("kept, {}", error.message),
        _ => return error,
    };
    error.passed_over(reason)
}

fn refuse_dependants(view: &SnapshotView, request: &SnapshotDeleteRequest) -> Result<(), Error> {
    let depends = view.dependants();
    if depends.is_empty() {
        return Ok(());
    }
    if request.force {
        return refuse_unseen(view, &depends, request.dependants.as_deref());
    }
    let message = format!("snapshot {} is in use: {}", view.record.title(), depends.join(", "));
    Err(Error::new(Code::InUse, message)
        .hint("destroy or remove those first; --force deletes it all the same, and what is based on it cannot be recreated then")
        .detail("dependants", depends.as_slice())
        .of_kind(Kind::Needed(depends)))
}

/// Somebody who insists has agreed to what he was shown.
fn refuse_unseen(
    view: &SnapshotView,
    depends: &[String],
    seen: Option<&[String]>,
) -> Result<(), Error> {
    let Some(seen) = seen else { return Ok(()) };
    let unseen: Vec<_> = depends.iter().filter(|one| !seen.contains(one)).cloned().collect();
    if unseen.is_empty() {
        return Ok(());
    }
    let message = format!(
        "more depends on snapshot {} than was looked at: {}",
        view.record.title(),
        unseen.join(", ")
    );
    Err(Error::new(Code::Conflict, message)
        .of_kind(Kind::Stale)
        .hint("look again, then decide")
        .detail("dependants", depends))
}
