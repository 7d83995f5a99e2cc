//! Deletion of a snapshot, by request or by a retention rule. Never of one that something depends on, unless somebody
//! insists (semantics 6).

use crate::domain::error::{Code, Error, Kind};
use crate::domain::event::EventKind;
use crate::domain::lineage::SnapshotView;
use crate::domain::name::SnapshotId;
use crate::domain::operation::{CancelOutcome, OperationKind};
use crate::domain::request::{PruneItem, SnapshotDeleteRequest, SnapshotStarted};
use crate::domain::retention::RetentionRule;
use crate::domain::sandbox::{SandboxRecord, State};
use crate::domain::snapshot::{SnapshotKind, SnapshotRecord, SnapshotState};
use crate::domain::teardown::TeardownReport;
use crate::domain::time::Time;
use crate::domain::update::Update;
use crate::failpoint;
use crate::manager::deps::Deps;
use crate::manager::journal::{self, Guard, append, update_among};
use crate::manager::operation::Op;
use crate::manager::operation::locks::{busy_error, lock_snapshot};
use crate::manager::operation::progress::ProgressReporter;
use crate::manager::operation::record::operation_on_snapshot;
use crate::manager::patches::find::based_on;
use crate::manager::patches::pending::refresh_patch_states;
use crate::manager::patches::remove::remove_patches_of;
use crate::manager::snapshots::find::{get_snapshot_at_revision, snapshot_view};
use crate::manager::snapshots::import_identity::deletion_record;
use crate::manager::snapshots::inspect::{
    AbandonedArchive, DeletionBlocked, abandoned_words, inspect_archives, put_back_snapshot,
    stay_in_deleting, undo_deletion,
};
use crate::manager::snapshots::pinned_profile::{archive_place, is_profile_lost};
use crate::manager::upkeep::ownership::ensure_own;
use crate::store::ending;

/// Starts to delete a snapshot: its archive on every host, its patches, its name. By force an archive is given up whose host
/// is not configured any more and does not answer.
///
/// Errors of the operation: why a host could not be looked at; then nothing is removed, and it is what it was.
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
    let record = get_snapshot_at_revision(deps, id.as_str(), None).await?;
    let inspected = op
        .or_cancelled_with(
            || DeletionBlocked::from(cut_off()),
            inspect_own_archives(deps, &record, by_force),
        )
        .await;
    let abandoned = match inspected {
        Ok(abandoned) => abandoned,
        Err(blocked) => {
            return Err(CancelOutcome::Undone
                .noted_on(undo_deletion(deps, &record, before, blocked).await?));
        }
    };
    let removal = remove_archives_but(deps, id, &abandoned, &op.progress);
    let removed = op.or_cancelled_with(cut_off, removal).await;
    failpoint::reached("delete.removed");
    match removed {
        Ok(()) => {}
        Err(error) if error.is_refusal() && before.state != SnapshotState::Deleting => {
            put_back_snapshot(deps, before).await?;
            return Err(error);
        }
        Err(error) => return Err(stay_in_deleting(deps, id, error).await?),
    }
    remove_patches_of(deps, id).await?;
    let record = get_snapshot_at_revision(deps, id.as_str(), None).await?;
    let mut data = deletion_record(&record);
    if !abandoned.is_empty() {
        data["given_up"] = serde_json::to_value(&abandoned).unwrap_or_default();
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
    let message = abandoned_words(&abandoned).or_else(|| record.message.clone());
    gone.insert(
        id.clone(),
        SnapshotRecord { operation: None, pending: Vec::new(), message, ..record },
    );
    Ok(())
}

/// [`inspect_archives`] of a snapshot; one of the earlier tool's has none that is sandboxer's.
async fn inspect_own_archives(
    deps: &Deps,
    record: &SnapshotRecord,
    by_force: bool,
) -> Result<Vec<AbandonedArchive>, DeletionBlocked> {
    match record.imported {
        Some(_) => Ok(Vec::new()),
        None => inspect_archives(deps, record, by_force).await,
    }
}

/// Removes a snapshot's archive from every host that has or may have one: copies first.
///
/// Errors: `operation_failed` naming what is left, or why a host could not be asked.
pub(crate) async fn remove_archives(
    deps: &Deps,
    id: &SnapshotId,
    progress: &ProgressReporter,
) -> Result<(), Error> {
    remove_archives_but(deps, id, &[], progress).await
}

async fn remove_archives_but(
    deps: &Deps,
    id: &SnapshotId,
    abandoned: &[AbandonedArchive],
    progress: &ProgressReporter,
) -> Result<(), Error> {
    let record = get_snapshot_at_revision(deps, id.as_str(), None).await?;
    if record.imported.is_some() {
        return Ok(());
    }
    let extension = deps.extension(&record.extension)?;
    let Some(archives) = extension.archives() else { return Ok(()) };
    let mut untouched = true;
    // A copy that died may have left a part where the record does not list one yet.
    let hosts: Vec<_> = record.hosts().chain(&record.copying_to).cloned().collect();
    for host in hosts
        .iter()
        .rev()
        .filter(|host| !abandoned.iter().any(|gone| gone.host.same(host.as_str())))
    {
        let place = match archive_place(deps, &record, host).await {
            // Of a failed one nothing is there; and where it would be only the profile knew.
            Err(error)
                if is_profile_lost(&error)
                    && record.state == SnapshotState::Deleting
                    && !record.unremoved =>
            {
                continue;
            }
            place => place?,
        };
        let report = archives.remove(&place, progress).await?;
        untouched &= report.untouched;
        if !report.is_clean() {
            return Err(Error { untouched, ..left_over(id, &report) });
        }
    }
    Ok(())
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

fn left_over(id: &SnapshotId, report: &TeardownReport) -> Error {
    let left: Vec<String> =
        report.leftovers.iter().map(|r| format!("{} {}", r.kind, r.id)).collect();
    let why: Vec<String> = report.lines.iter().filter_map(|line| line.reason.clone()).collect();
    let how_much =
        if report.untouched { "nothing was removed" } else { "not everything could be removed" };
    let message = format!("snapshot {id}: {how_much}: {}", left.join(", "));
    let then = if report.untouched { "deletes it" } else { "goes on" };
    let error = Error::new(Code::OperationFailed, message).detail("leftovers", left).hint(format!(
        "look at it there: what is not known to be this snapshot's is never removed. Once it is out of the way, \
         `sandboxer snapshots delete {id}` {then}"
    ));
    if why.is_empty() { error } else { error.because(why.join("; ")) }
}
