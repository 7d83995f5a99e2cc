//! Undo snapshot: what is kept of a sandbox before it is removed (semantics 5). It is an operation of its own: a process that
//! dies over it leaves a sandbox that a snapshot was taken of, and nothing that is being removed.

use crate::domain::error::{Code, Error, Kind};
use crate::domain::extension::{Capability, Target};
use crate::domain::name::{OperationId, SnapshotId};
use crate::domain::operation::{CancelOutcome, OperationKind};
use crate::domain::profile::{Bytes, SnapshotMode};
use crate::domain::reporter::{Report, Reporter as _};
use crate::domain::sandbox::{Running, SandboxRecord, State};
use crate::domain::snapshot::{SnapshotKind, SnapshotRecord};
use crate::domain::undo::UndoFacts;
use crate::domain::update::Ended;
use crate::failpoint;
use crate::manager::deps::Deps;
use crate::manager::hosts::status::report_host_error;
use crate::manager::journal::Guard;
use crate::manager::operation::Op;
use crate::manager::operation::subject::OperationRecord as _;
use crate::manager::sandboxes::find::find_sandbox;
use crate::manager::sandboxes::resolve::resolve;
use crate::manager::snapshots::create::{Capture, draft_snapshot, start_capture};
use crate::manager::snapshots::pinned_profile::pinned_profile_as_known;
use crate::manager::snapshots::prune::{delete_undo, prune_undo};

/// Policy on undo snapshots of whoever removes a sandbox.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum UndoPolicy {
    /// Nobody wants one.
    None,
    /// A failed one stops the removal: somebody is there who can say what is to be done.
    Required,
    /// A failed one is told, and the removal goes on.
    BestEffort,
}

impl UndoPolicy {
    /// Policy of a request by somebody who is there.
    pub(crate) fn of_request(no_undo: bool) -> Self {
        if no_undo { Self::None } else { Self::Required }
    }
}

/// Result of taking an undo snapshot, where the removal may go on.
pub(crate) struct UndoTaken {
    /// Record of the sandbox then.
    pub(crate) record: SandboxRecord,
    /// Sentence for its record: until when which snapshot is kept, or why there is none.
    pub(crate) note: Option<String>,
    snapshot: Option<SnapshotId>,
}

/// End of an attempt that did not fail.
enum Attempt {
    Taken(Box<SnapshotRecord>),
    Skipped(String),
}

/// Takes an undo snapshot of a sandbox whose lock is held, before the first of it is removed; of what is neither ready nor
/// sleeping nothing can be brought back. A removal that does not go on frees the record, which is as it was.
///
/// Errors: `cancelled`, or a host that cannot be reached, whatever the policy: then there is nothing that could be removed
/// either. Any other failure where it is required.
pub(crate) async fn take_undo(
    op: &Op<SandboxRecord>,
    before: &SandboxRecord,
    policy: UndoPolicy,
) -> Result<UndoTaken, Error> {
    let (deps, id) = (&op.deps, &before.id);
    let without = |note: Option<String>| UndoTaken { record: before.clone(), note, snapshot: None };
    if !is_kept(before) || !pinned_profile_as_known(deps, before).await.undo {
        return Ok(without(None));
    }
    let none = |why: &str| Some(format!("no undo snapshot of {id} was taken: {why}"));
    if policy == UndoPolicy::None {
        return Ok(without(none("--no-undo")));
    }
    if !deps.extension(&before.extension)?.capabilities().contains(&Capability::Snapshots) {
        return Ok(without(none(&format!("{} takes no snapshots", before.extension))));
    }
    match Box::pin(attempt(op, before)).await {
        Ok(Attempt::Skipped(why)) => Ok(without(none(&why))),
        Ok(Attempt::Taken(snapshot)) => {
            prune_undo(deps, &before.host, Some(&snapshot.id)).await;
            let record = put_back(op, before, true).await?;
            Ok(UndoTaken { record, note: kept_words(&snapshot), snapshot: Some(snapshot.id) })
        }
        Err(error) => {
            report_host_error(deps, &before.host, &error).await;
            let stops = policy == UndoPolicy::Required
                || matches!(error.code, Code::Cancelled | Code::HostUnreachable);
            let record = put_back(op, before, !stops).await?;
            if stops {
                return Err(stopped_error(before, error));
            }
            tracing::warn!(sandbox = %id, %error, "no undo snapshot could be taken");
            Ok(UndoTaken { record, note: none(&error.message), snapshot: None })
        }
    }
}

impl UndoTaken {
    /// End of the removal: where the sandbox is as it was, nobody needs the undo snapshot; where it broke off, the error says
    /// that there is one.
    pub(crate) async fn ended(
        self,
        deps: &Deps,
        before: &SandboxRecord,
        removed: Result<(), Error>,
    ) -> Result<(), Error> {
        let Err(error) = removed else { return Ok(()) };
        let Some(snapshot) = &self.snapshot else { return Err(error) };
        match find_sandbox(deps, before.id.as_str()).await {
            Ok(now) if now.state == before.state => {
                delete_undo(deps, snapshot, None).await;
                Err(error)
            }
            _ => {
                let back = format!("`sandboxer undo {snapshot}` brings back what was there");
                Err(error.and_hint(&back))
            }
        }
    }
}

/// Whether a sandbox has something that could be brought back, and nobody began to remove it before.
fn is_kept(record: &SandboxRecord) -> bool {
    use OperationKind::{Destroy, Recover};
    let begun = |dead: &Running| matches!(dead.kind, Destroy | Recover);
    matches!(record.state, State::Ready | State::Sleeping)
        && !record.operation.as_ref().is_some_and(begun)
}

/// Whether it is an undo snapshot of a removal that works on a sandbox: whoever wants it removed waits for that.
pub(crate) async fn is_taken_for_removal(deps: &Deps, running: &Running) -> bool {
    if running.kind != OperationKind::Snapshot {
        return false;
    }
    let operation = deps.operations.get(&running.id).await.ok().flatten();
    let Some(id) = operation.as_ref().and_then(|operation| operation.subject.snapshot()) else {
        return false;
    };
    let snapshot = deps.snapshots.get(id).await.ok().flatten();
    let facts = snapshot.and_then(|snapshot| snapshot.undo);
    facts.is_some_and(|facts| facts.before != OperationKind::Recreate)
}

async fn attempt(op: &Op<SandboxRecord>, before: &SandboxRecord) -> Result<Attempt, Error> {
    let deps = &op.deps;
    let extension = deps.extension(&before.extension)?;
    op.progress.report(Report { stage: "undo", ..Report::default() });
    let target = resolve(deps, before).await?;
    let seen = op.or_cancelled(extension.measure(&target)).await?;
    let limits = deps.transports.spec(&before.host).map(|spec| spec.limits).unwrap_or_default();
    let settings = &deps.settings.undo;
    if let Some(why) = settings.refusal(&seen, &limits) {
        return Ok(Attempt::Skipped(why));
    }
    failpoint::reached("undo.measured");
    let captured = match capture_once(op, before, &target, None).await {
        // What is about to be removed may just as well be stopped.
        Err(error) if error.code == Code::Unsupported => {
            capture_once(op, before, &target, Some(SnapshotMode::Stop)).await
        }
        captured => captured,
    };
    let (snapshot, cancelled) = captured?;
    if cancelled {
        delete_undo(deps, &snapshot.id, None).await;
        return Err(Error::new(Code::Cancelled, "cancelled while its undo snapshot was taken"));
    }
    // Of what other accounts wrote more may have come than could be told before.
    let size = Bytes(snapshot.archive.bytes.unwrap_or(0));
    if size > settings.max_bytes {
        delete_undo(deps, &snapshot.id, None).await;
        let most = settings.max_bytes;
        return Ok(Attempt::Skipped(format!(
            "its archive has {size}, and undo.max_bytes is {most}"
        )));
    }
    failpoint::reached("undo.taken");
    Ok(Attempt::Taken(Box::new(snapshot)))
}

/// Takes the snapshot in this mode, else in the profile's; and whether somebody asked for its end meanwhile.
async fn capture_once(
    op: &Op<SandboxRecord>,
    before: &SandboxRecord,
    target: &Target,
    mode: Option<SnapshotMode>,
) -> Result<(SnapshotRecord, bool), Error> {
    let deps = &op.deps;
    let window = deps.settings.undo.window;
    let draft = SnapshotRecord {
        kind: SnapshotKind::Undo,
        expires_at: Some(deps.now().plus_seconds(window.get())),
        undo: Some(Box::new(UndoFacts::of(before, op.operation.kind.clone()))),
        ..draft_snapshot(deps, before)
    };
    // Its own operation is no dead one that this one begins over.
    let free = SandboxRecord {
        operation: before.operation.clone().filter(|running| running.id != *op.id()),
        ..before.clone()
    };
    let extension = deps.extension(&before.extension)?;
    let capture = Capture { draft, mode, target: target.clone(), extension, reached: None };
    let started = Box::pin(start_capture(deps, &free, Guard::Any, None, capture)).await?;
    let Some(operation) = started.operation else {
        return Err(Error::internal("an undo snapshot has no operation"));
    };
    let (ended, cancelled) = ended_or_cancelled(op, &operation).await?;
    match ended.operation.error {
        Some(error) => Err(*error),
        None => Ok((ended.outcome?.into_snapshot()?, cancelled)),
    }
}

/// End of the snapshot's operation, which ends with the removal's, and whether somebody asked for that.
async fn ended_or_cancelled(
    op: &Op<SandboxRecord>,
    snapshot: &OperationId,
) -> Result<(Ended, bool), Error> {
    let jobs = &op.deps.jobs;
    let lost = || Error::internal("nobody knows how the undo snapshot ended");
    let ended = async { jobs.ended(snapshot).await.ok_or_else(|| Some(lost())) };
    match op.or_cancelled_with(|| None, ended).await {
        Ok(ended) => Ok((ended, false)),
        Err(Some(error)) => Err(error),
        Err(None) => {
            jobs.cancel(snapshot);
            Ok((jobs.ended(snapshot).await.ok_or_else(lost)?, true))
        }
    }
}

/// Puts on the record what the snapshot's operation took off: a removal that goes on has it as before, one that does not is
/// over. Containers that may still be paused keep it for `recover`.
async fn put_back(
    op: &Op<SandboxRecord>,
    before: &SandboxRecord,
    goes_on: bool,
) -> Result<SandboxRecord, Error> {
    let ours = op.id().clone();
    let (operation, message) = (before.operation.clone(), before.message.clone());
    let operation = operation.filter(|running| goes_on || running.id != ours);
    SandboxRecord::write(&op.deps, &before.id, Guard::Any, Vec::new(), move |record| {
        if record.operation.as_ref().is_none_or(|running| running.id == ours) {
            (record.operation, record.message) = (operation, message);
        }
        Ok(())
    })
    .await
}

fn kept_words(snapshot: &SnapshotRecord) -> Option<String> {
    let (id, sandbox) = (&snapshot.id, &snapshot.sandbox_id);
    let until = snapshot.expires_at?;
    Some(format!(
        "undo snapshot {id} is kept until {until}; `sandboxer undo {sandbox}` brings it back"
    ))
}

/// Error of a removal that its undo snapshot stopped.
fn stopped_error(before: &SandboxRecord, error: Error) -> Error {
    let id = &before.id;
    if error.code == Code::Cancelled {
        return CancelOutcome::Undone
            .error(format!("sandbox {id}: cancelled over its undo snapshot; nothing was removed"));
    }
    let message = format!("sandbox {id} is not removed: no undo snapshot of it could be taken");
    let stopped =
        Error { message, causes: Vec::new(), kind: Kind::NoUndoSnapshot, ..error.clone() };
    stopped
        .and_hint("--no-undo goes on without one, and nothing brings it back then")
        .because(error)
}
