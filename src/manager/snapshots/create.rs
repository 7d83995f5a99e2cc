//! Snapshot: write ahead, capture, write `ready`; or leave nothing and keep the reason (semantics 6).

use std::sync::Arc;
use std::time::Duration;

use crate::domain::archive::Arrived;
use crate::domain::error::{Code, Error, Kind, Unique};
use crate::domain::event::EventKind;
use crate::domain::extension::{
    Capability, CaptureRequest, Captured, Inspection, SandboxExtension, Target,
};
use crate::domain::name::{HostName, SandboxId, SnapshotId, check_name};
use crate::domain::operation::{CancelOutcome, Operation, OperationKind, Subject};
use crate::domain::profile::SnapshotMode;
use crate::domain::request::{SnapshotRequest, SnapshotStarted};
use crate::domain::sandbox::{SandboxRecord, State};
use crate::domain::snapshot::{
    ArchiveFacts, Replica, ReplicaState, SnapshotKind, SnapshotRecord, SnapshotState,
};
use crate::failpoint;
use crate::manager::deps::Deps;
use crate::manager::journal::{Guard, JournalRecord as _};
use crate::manager::operation::Op;
use crate::manager::operation::dead::check_can_start;
use crate::manager::operation::locks::lock_sandbox;
use crate::manager::operation::record::new_operation;
use crate::manager::sandboxes::find::get_at_revision;
use crate::manager::sandboxes::inspect::inspect_now;
use crate::manager::sandboxes::resolve::resolve;
use crate::manager::snapshots::prune::{apply_keep, beyond_newest, collect_failed};
use crate::manager::snapshots::remove::remove_archives;
use crate::manager::upkeep::ownership::count_change;
use crate::store::Held;

/// Tries to find a random id that nothing has.
const ID_TRIES: u32 = 16;

/// Limit of the cleanup after a failed snapshot, beside the time that containers have to stop in.
const CLEANUP_LIMIT: Duration = Duration::from_mins(2);

/// Starts a snapshot and returns at once.
pub(crate) async fn take_snapshot(
    deps: &Deps,
    request: &SnapshotRequest,
) -> Result<SnapshotStarted, Error> {
    let record = get_at_revision(deps, &request.id, request.revision).await?;
    let extension = deps.extension(&record.extension)?;
    extension.ensure(&Capability::Snapshots, "take snapshots")?;
    if let Some(name) = &request.name {
        check_name(name)?;
    }
    let mode = request.mode.as_deref().map(parse_mode).transpose()?;
    let (record, lock) = lock_sandbox(deps, &request.id, request.revision).await?;
    check_state(&record)?;
    check_can_start(&OperationKind::Snapshot, &record)?;
    let target = resolve(deps, &record).await?;
    if let Some(mode) = mode.as_ref().filter(|_| !extension.may_have_services(&target.profile)) {
        ensure_without_containers(&record, mode)?;
    }
    let draft = SnapshotRecord { name: request.name.clone(), ..draft_snapshot(deps, &record) };
    let (revision, host) = (record.revision, record.host.clone());
    let capture = Capture { draft, mode, target, extension, reached: Some(host) };
    let guard = Guard::Revision(Some(revision));
    Box::pin(start_capture(deps, &record, guard, Some(lock), capture)).await
}

/// Snapshot that is to be taken of a sandbox whose lock is held.
pub(crate) struct Capture {
    pub(crate) draft: SnapshotRecord,
    pub(crate) mode: Option<SnapshotMode>,
    pub(crate) target: Target,
    pub(crate) extension: Arc<dyn SandboxExtension>,
    /// Host for which is done what waits for it, once the snapshot is there.
    pub(crate) reached: Option<HostName>,
}

/// Starts a capture as an operation of its own, on the sandbox as well, which is as `guard` says. Who keeps the sandbox's
/// lock waits for its end.
pub(crate) async fn start_capture(
    deps: &Deps,
    sandbox: &SandboxRecord,
    guard: Guard,
    lock: Option<Box<dyn Held>>,
    capture: Capture,
) -> Result<SnapshotStarted, Error> {
    let Capture { draft, mode, target, extension, reached } = capture;
    let begin = |draft: &mut SnapshotRecord| {
        let root = sandbox.workdir.as_deref().and_then(|workdir| workdir.rsplit_once('/'));
        let (host, identity) = (sandbox.host.clone(), sandbox.host_identity.clone());
        draft.replicas = vec![Replica {
            path: root.map(|(root, _)| format!("{root}/snapshots/{}", draft.id)),
            ..Replica::arriving(host, identity, deps.now())
        }];
        let subject = Subject::SandboxAndSnapshot(draft.sandbox_id.clone(), draft.id.clone());
        new_operation(deps, OperationKind::Snapshot, subject, sandbox.name.as_deref())
    };
    let mut op = write_ahead(deps, draft, begin).await?;
    if let Some(lock) = lock {
        op.add_lock(lock);
    }
    if let Err(error) = op.attach_to(sandbox, guard, |_| Ok(())).await {
        deps.snapshots.remove(&op.subject.id, None).await?;
        return Err(op.abort(error).await);
    }
    failpoint::reached("snapshot.written");
    let snapshot = op.subject.clone();
    let capture = CaptureRequest {
        snapshot: snapshot.clone(),
        owner: snapshot.owner.clone(),
        mode,
        excludes: target.profile.snapshot.exclude.clone(),
    };
    let operation = op.run(reached, move |op| async move {
        run_capture(&op, extension.as_ref(), &target, capture).await
    });
    Ok(SnapshotStarted { operation: Some(operation), snapshot })
}

/// The record of a snapshot of this sandbox, as far as nobody has been asked.
pub(crate) fn draft_snapshot(deps: &Deps, sandbox: &SandboxRecord) -> SnapshotRecord {
    SnapshotRecord {
        id: SnapshotId::from_random((deps.random_u32)()),
        name: None,
        kind: SnapshotKind::User,
        sandbox_id: sandbox.id.clone(),
        sandbox_name: sandbox.name.clone(),
        profile: sandbox.profile.clone(),
        extension: sandbox.extension.clone(),
        extension_version: deps.extension_version(&sandbox.extension),
        host: sandbox.host.clone(),
        state: SnapshotState::Creating,
        message: None,
        failure: None,
        created_at: deps.now(),
        imported_at: None,
        imported_from: None,
        adopted_at: None,
        expires_at: None,
        undo: None,
        archive: ArchiveFacts::default(),
        parent_snapshot: sandbox.based_on_snapshot.clone(),
        patch_level: sandbox.last_patch_sequence,
        next_patch_sequence: 1,
        labels: sandbox.labels.clone(),
        inputs: sandbox.inputs.clone(),
        replicas: Vec::new(),
        verified_at: None,
        unread: None,
        operation: None,
        actor: deps.actor(),
        owner: sandbox.owner.clone(),
        revision: 0,
        imported: None,
        pending: Vec::new(),
    }
}

/// Writes a record under an id that nothing has, under its lock, before anything is done on a host. `begin`: its operation, and what
/// else goes by its id.
pub(crate) async fn write_ahead(
    deps: &Deps,
    mut draft: SnapshotRecord,
    begin: impl Fn(&mut SnapshotRecord) -> Operation,
) -> Result<Op<SnapshotRecord>, Error> {
    for _ in 0..ID_TRIES {
        if let Some(lock) = deps.locks.try_lock_snapshot(&draft.id).await? {
            let operation = begin(&mut draft);
            let insert = async |draft| deps.snapshots.insert(draft).await;
            let start = Op::start_new(deps, operation, (draft.clone(), lock), insert);
            match Box::pin(start).await {
                Ok(op) => {
                    SnapshotRecord::announce(deps);
                    return Ok(op);
                }
                Err(error) if error.kind == Kind::Taken(Unique::Id) => {}
                Err(error) => return Err(error),
            }
        }
        draft.id = SnapshotId::from_random((deps.random_u32)());
    }
    Err(Error::internal("no free snapshot id was found"))
}

async fn run_capture(
    op: &Op<SnapshotRecord>,
    extension: &dyn SandboxExtension,
    target: &Target,
    request: CaptureRequest,
) -> Result<(), Error> {
    let deps = &op.deps;
    // What is kept for undo takes nobody's place.
    let keep = target.profile.snapshot.keep.filter(|_| op.subject.kind == SnapshotKind::User);
    if let Some(keep) = keep {
        // With one more, one more is old.
        let old = beyond_newest(deps, &target.id, keep.saturating_sub(1)).await;
        op.progress.announce(0, u32::from(old.is_ok_and(|old| !old.is_empty())));
    }
    let work = extension.snapshot(target, &request, &op.progress);
    let outcome = match op.or_cancelled(work).await {
        Ok(captured) => {
            failpoint::reached("snapshot.made");
            write_captured(op, captured).await
        }
        Err(error) => Err(error),
    };
    let result = match outcome {
        Ok(record) => {
            failpoint::reached("snapshot.ready");
            count_change(deps, &target.host).await;
            let seen = after_stop(deps, extension, target, &request).await;
            release_source(op, &target.id, None, seen).await?;
            if let Some(keep) = keep {
                apply_keep(deps, &record, keep, &op.progress).await;
            }
            Ok(())
        }
        Err(error) if is_refusal(&error) => Err(remove_refused(op, &request, error).await?),
        Err(error) => Err(cleanup_failed(op, extension, target, &request, error).await?),
    };
    failpoint::reached("snapshot.freed");
    result
}

async fn write_captured(
    op: &Op<SnapshotRecord>,
    captured: Captured,
) -> Result<SnapshotRecord, Error> {
    let data = serde_json::json!({
        "bytes": captured.archive.bytes,
        "files": captured.archive.files,
        "kind": op.subject.kind,
        "took_ms": op.took_ms(),
    });
    let arrived =
        Arrived { path: captured.path, identity: captured.identity, archive: captured.archive };
    let now = op.deps.now();
    op.update(vec![(EventKind::SnapshotReady, data)], move |record| {
        record.state = SnapshotState::Ready;
        record.archive = arrived.archive.clone();
        record.list_replica(arrived.replica(&record.host, now));
        record.operation = None;
    })
    .await
}

/// Services after containers were stopped and started: the engine may have given them other ports. `None`: none were
/// stopped, or nobody could look.
async fn after_stop(
    deps: &Deps,
    extension: &dyn SandboxExtension,
    target: &Target,
    request: &CaptureRequest,
) -> Option<Inspection> {
    let mode = request.mode.as_ref().or(target.profile.snapshot.mode.as_ref());
    if mode != Some(&SnapshotMode::Stop) {
        return None;
    }
    inspect_now(deps, extension, target).await.filter(|seen| seen.ready)
}

/// The sandbox is nobody's again; what came of it is a message at most.
async fn release_source(
    op: &Op<SnapshotRecord>,
    id: &SandboxId,
    message: Option<String>,
    seen: Option<Inspection>,
) -> Result<(), Error> {
    op.update_on(id, Vec::new(), move |record: &mut SandboxRecord| {
        record.operation = None;
        if let Some(seen) = seen {
            record.services = seen.services;
            record.reachability = seen.reachability.or(record.reachability.take());
        }
        if message.is_some() {
            record.message = message;
        }
    })
    .await
    .map(|_| ())
}

/// After a snapshot that was refused: nobody keeps a record of it, and its source is as it was.
async fn remove_refused(
    op: &Op<SnapshotRecord>,
    request: &CaptureRequest,
    error: Error,
) -> Result<Error, Error> {
    let deps = &op.deps;
    deps.snapshots.remove(&request.snapshot.id, None).await?;
    SnapshotRecord::announce(deps);
    release_source(op, &request.snapshot.sandbox_id, None, None).await?;
    Ok(error)
}

/// After a snapshot that failed: the source runs again, nothing of the archive stays, and the reason does.
async fn cleanup_failed(
    op: &Op<SnapshotRecord>,
    extension: &dyn SandboxExtension,
    target: &Target,
    request: &CaptureRequest,
    error: Error,
) -> Result<Error, Error> {
    let deps = &op.deps;
    let id = &request.snapshot.id;
    let (failure, untouched) = (error.evidence.as_deref().cloned(), error.untouched);
    let mut error = error.of_a_part();
    // Before the cleanup is a step itself.
    let failure = failure.unwrap_or_else(|| op.progress.failure_of(&error));
    let (resumed, removed) = if untouched {
        (Ok(()), Ok(()))
    } else {
        let clear = async {
            let resumed = extension.resume(target, Some(id)).await;
            (resumed, remove_archives(deps, id, &op.progress).await)
        };
        let late = || Error::new(Code::Timeout, "the clearing up took too long");
        let limit = CLEANUP_LIMIT + target.profile.stop_grace.duration();
        tokio::time::timeout(limit, clear).await.unwrap_or_else(|_| (Err(late()), Err(late())))
    };
    failpoint::reached("snapshot.cleared");
    if error.code == Code::Cancelled {
        error = cancelled_error(id, resumed.is_ok() && removed.is_ok());
    }
    let message = error.message.clone();
    let unremoved = removed.is_err();
    if let Err(why) = removed {
        let hint = format!(
            "something of it may still be on {}: {}; `sandboxer recover` looks again",
            target.host, why.message
        );
        error = error.hint(hint).detail("unremoved", true);
    }
    let mut source_message = format!("snapshot {id} failed: {message}");
    // A host that cannot be reached resumes them by itself, as soon as the script that held them is gone.
    let paused = resumed.as_ref().is_err_and(|why| why.code != Code::HostUnreachable);
    if let Err(why) = resumed {
        source_message =
            format!("{source_message}; its containers may still be paused: {}", why.message);
        error = error.detail("paused", true);
        if paused {
            error = error.hint("`sandboxer recover` resumes what is still paused");
        } else if !unremoved {
            error =
                error.hint("its host resumes them by itself; `sandboxer get` shows them once it can be reached");
        }
    }
    let data = serde_json::json!({"code": error.code, "step": failure.step, "message": message});
    op.update(vec![(EventKind::SnapshotFailed, data)], move |record| {
        record.state = SnapshotState::Failed;
        record.message = Some(message);
        record.failure = Some(failure);
        if unremoved {
            record.mark_all(&ReplicaState::Removing);
        } else {
            record.replicas.clear();
        }
        record.operation = None;
    })
    .await?;
    let seen = after_stop(deps, extension, target, request).await;
    if paused {
        // It stays on the record, so that `recover` resumes them, and nothing else begins before that.
        op.update_on(&target.id, Vec::new(), move |record: &mut SandboxRecord| {
            record.message = Some(source_message);
        })
        .await?;
    } else {
        release_source(op, &target.id, Some(source_message), seen).await?;
    }
    collect_failed(deps).await;
    Ok(error)
}

/// Whether a snapshot was refused, rather than tried in vain: of that the record keeps what went wrong.
fn is_refusal(error: &Error) -> bool {
    error.is_refusal() && error.code != Code::OperationFailed
}

/// The error of a snapshot that was cancelled, by the result of the cleanup.
fn cancelled_error(id: &SnapshotId, cleared: bool) -> Error {
    if cleared {
        return CancelOutcome::Undone
            .error(format!("snapshot {id}: cancelled; nothing of it is left"));
    }
    CancelOutcome::Stopped
        .error(format!("snapshot {id}: cancelled, and not everything could be put back"))
}

fn parse_mode(word: &str) -> Result<SnapshotMode, Error> {
    match SnapshotMode::from_word(word) {
        SnapshotMode::Other(_) => {
            Err(Error::invalid_input("mode", format!("there is no snapshot mode {word:?}"))
                .hint("modes are live, pause and stop"))
        }
        mode => Ok(mode),
    }
}

/// Refuses to hold still what has no containers: only they can be.
fn ensure_without_containers(record: &SandboxRecord, mode: &SnapshotMode) -> Result<(), Error> {
    if *mode == SnapshotMode::Live {
        return Ok(());
    }
    let message = format!(
        "sandbox {} has no containers: nothing in it can be held still by --mode {mode}",
        record.id
    );
    Err(Error::new(Code::Unsupported, message)
        .hint("--mode live takes its files as they are, and so does a snapshot without --mode")
        .detail("field", "mode"))
}

fn check_state(record: &SandboxRecord) -> Result<(), Error> {
    if matches!(record.state, State::Ready | State::Sleeping) {
        return Ok(());
    }
    Err(Error::new(Code::Conflict, format!("a {} sandbox cannot be snapshotted", record.state))
        .hint("a snapshot is taken of a sandbox that is ready or sleeping")
        .detail("state", record.state.as_str()))
}
