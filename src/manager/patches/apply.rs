//! Pass that applies the pending patches of a sandbox: on restore, wake, recreate and when somebody asks (semantics 7).
//!
//! Each step is on the record before the next one is taken: a script that was begun and whose end nobody saw is `unknown`
//! for ever, and runs again only for whoever says so.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use tokio::time::Instant;

use crate::domain::error::{Code, Error, Kind};
use crate::domain::event::EventKind;
use crate::domain::extension::{Capability, PatchOutcome, PatchRun};
use crate::domain::operation::{CancelOutcome, OperationKind};
use crate::domain::patch::{AppliedPatch, Patch, PatchState};
use crate::domain::pending_patches::pending_patches;
use crate::domain::profile::Seconds;
use crate::domain::reporter::{Report, Reporter};
use crate::domain::request::{ApplyRequest, Started};
use crate::domain::sandbox::{SandboxRecord, State};
use crate::domain::time::took_ms;
use crate::failpoint;
use crate::manager::deps::Deps;
use crate::manager::operation::Op;
use crate::manager::operation::locks::lock_sandbox;
use crate::manager::operation::start::start;
use crate::manager::patches::find::{ensure_patches_as_shown, patches_of};
use crate::manager::patches::pending::{is_settled, next_step, patch_base, settle};
use crate::manager::sandboxes::find::get_at_revision;
use crate::manager::sandboxes::inspect::inspect_now;
use crate::manager::sandboxes::resolve::{resolve, resolve_as_known};

/// A patch is not begun with less than this: hosts count in seconds, and it would be ended before it could do anything.
const LEAST_LEFT: Duration = Duration::from_secs(1);

/// End of one patch of a pass.
enum Step {
    Applied(SandboxRecord),
    /// Removed from the snapshot before it began. The next one may run.
    TakenAway(SandboxRecord),
    /// Somebody ended the pass before the script began.
    Cancelled,
    /// The pass ends here, for a reason.
    Stopped(SandboxRecord, String),
}

pub(crate) struct PassResult {
    pub(crate) record: SandboxRecord,
    /// The patch that it stopped at now and why, without what somebody may do about it: that depends on who asks.
    pub(crate) stopped: Option<String>,
}

impl From<SandboxRecord> for PassResult {
    fn from(record: SandboxRecord) -> Self {
        Self { record, stopped: None }
    }
}

/// Starts to apply a sandbox's pending patches; it stays `ready`.
///
/// Errors: `conflict` for one that is not ready, or not based on a snapshot.
pub(crate) async fn apply_patches(deps: &Deps, request: &ApplyRequest) -> Result<Started, Error> {
    let record = get_at_revision(deps, &request.id, request.revision).await?;
    deps.extension(&record.extension)?.ensure(&Capability::Patches, "apply patches")?;
    let (record, lock) = lock_sandbox(deps, &request.id, request.revision).await?;
    check_can_patch(&record)?;
    ensure_patches_as_shown(deps, &record, request.patches.as_deref()).await?;
    let op = start(deps, OperationKind::Patch, (record, lock)).await?;
    let (retry, sandbox) = (request.retry, op.subject.clone());
    let host = Some(sandbox.host.clone());
    let operation = op.run(host, move |op| async move { run_apply(&op, retry).await });
    Ok(Started { operation: Some(operation), sandbox })
}

async fn run_apply(op: &Op<SandboxRecord>, retry: bool) -> Result<(), Error> {
    let (deps, record) = (&op.deps, &op.subject);
    let outcome = apply_pending(op, record, retry).await;
    let ran = outcome
        .as_ref()
        .map_or(true, |after| after.record.applied_patches != record.applied_patches);
    let look = async {
        let extension = deps.extension(&record.extension).ok()?;
        let target = resolve_as_known(deps, record).await.ok()?;
        inspect_now(deps, extension.as_ref(), &target).await
    };
    let seen = if ran { look.await } else { None };
    let free = op.update(Vec::new(), |record| {
        record.operation = None;
        if let Some(seen) = seen {
            record.services = seen.services;
            record.reachability = seen.reachability.or(record.reachability.take());
        }
    });
    let record = free.await?;
    outcome.map_err(|error| look_first(&record, error))?;
    match &record.patch_error {
        Some(why) => Err(Error::new(Code::OperationFailed, why.clone()).step("patch")),
        None => Ok(()),
    }
}

/// Applies the pending patches, in ascending sequence, and writes each step on its record; the record as it is then.
/// The sandbox's lock is held, and `operation` is on its record. A patch that fails is written down (`patch_state`,
/// `patch_error`) and is no error here: the sandbox is usable.
///
/// Errors: `cancelled`, and whatever keeps the record from being written. What had begun is `unknown` then.
pub(crate) async fn apply_pending(
    op: &Op<SandboxRecord>,
    record: &SandboxRecord,
    retry: bool,
) -> Result<PassResult, Error> {
    let deps = &op.deps;
    let Some(base) = &record.based_on_snapshot else { return Ok(record.clone().into()) };
    let patches = patches_of(deps, base).await?;
    let pending = pending_patches(record, &patches, retry);
    if pending.blocked.is_some() || pending.run.is_empty() {
        return settle_patches(op, record).await.map(PassResult::from);
    }
    let limits = resolve(deps, record).await?.profile.patches;
    let began = Instant::now();
    let mut now = record.clone();
    let count = pending.run.len() as u64;
    for (at, patch) in pending.run.iter().enumerate() {
        if op.is_cancelled() {
            return Err(cancelled_before(&now, patch, at > 0));
        }
        // The first one has all of it, however small that is.
        let spent = if at == 0 { Duration::ZERO } else { began.elapsed() };
        let left = limits.pass_timeout.duration().saturating_sub(spent);
        if left < LEAST_LEFT {
            let why = late(patch, limits.pass_timeout);
            let patch_error = format!("{why}; `sandboxer patches apply {}` goes on", now.id);
            let error = (patch.id.clone(), patch_error);
            let late = op.update(Vec::new(), move |record| {
                record.patch_state = PatchState::Pending;
                record.set_patch_error(Some(error));
            });
            return Ok(PassResult { record: late.await?, stopped: Some(why) });
        }
        op.progress.report(Report {
            stage: "patch",
            done: Some(at as u64),
            of: Some(count),
            message: Some(format!("patch {} ({})", patch.sequence, patch.id)),
            ..Report::default()
        });
        let run =
            PatchRun { patch: Patch::clone(patch), limit: limits.timeout.duration().min(left) };
        let ended = apply_one(op, &now, &run).await?;
        match ended {
            Step::Cancelled => return Err(cancelled_before(&now, patch, at > 0)),
            Step::Applied(record) | Step::TakenAway(record) => now = record,
            Step::Stopped(record, why) => return Ok(PassResult { record, stopped: Some(why) }),
        }
    }
    settle_patches(op, &now).await.map(PassResult::from)
}

/// Writes what a sandbox's patches have come to, where nothing is left to run or something stands in the way.
async fn settle_patches(
    op: &Op<SandboxRecord>,
    record: &SandboxRecord,
) -> Result<SandboxRecord, Error> {
    // Read anew: somebody may have added or removed one meanwhile.
    let base = patch_base(&op.deps, record).await?;
    let Some(base) = base.filter(|base| !is_settled(record, base)) else {
        return Ok(record.clone());
    };
    op.update(Vec::new(), move |record| settle(record, &base)).await
}

/// Runs one patch. `applying` is on the record before its script begins.
async fn apply_one(
    op: &Op<SandboxRecord>,
    record: &SandboxRecord,
    run: &PatchRun,
) -> Result<Step, Error> {
    let deps = &op.deps;
    let extension = deps.extension(&record.extension)?;
    extension.ensure(&Capability::Patches, "apply patches")?;
    let target = resolve(deps, record).await?;
    let begun = AppliedPatch {
        id: run.patch.id.clone(),
        sequence: run.patch.sequence,
        state: PatchState::Applying,
        started_at: Some(deps.now()),
        took_ms: None,
        exit_status: None,
        output: None,
    };
    let (before, applying) = (record.applied_patches.clone(), begun.clone());
    let ran_before = before.iter().any(|before| before.id == run.patch.id);
    let as_before = move |record: &mut SandboxRecord| {
        record.applied_patches = before;
        record.patch_state = PatchState::Pending;
    };
    op.update(Vec::new(), move |record| {
        note_run(record, applying);
        record.patch_state = PatchState::Applying;
        record.set_patch_error(None);
    })
    .await?;
    failpoint::reached("patch.applying");
    // Asked after it was written down: whoever takes it away after that takes away one that has begun.
    if !patches_of(deps, &run.patch.snapshot_id).await?.iter().any(|patch| patch.id == run.patch.id)
    {
        return op.update(Vec::new(), as_before).await.map(Step::TakenAway);
    }
    let ran = AtomicBool::new(false);
    let script = async {
        ran.store(true, Ordering::Relaxed);
        extension.run_patch(&target, run, &op.progress).await
    };
    let ended = op.or_cancelled(script).await;
    failpoint::reached("patch.ran");
    let step = match ended {
        Ok(outcome) => write_outcome(op, record, run, begun, outcome).await,
        Err(_) if !ran.into_inner() => {
            op.update(Vec::new(), as_before).await.map(|_| Step::Cancelled)
        }
        // Nothing of it ran: it is as if it had not been tried.
        Err(error) if error.kind == Kind::NeverBegan => {
            let why =
                format!("{} could not be begun: {}", patch_title(&run.patch), error.sentence());
            let flag = if ran_before { " --retry" } else { "" };
            let patch_error =
                format!("{why}; `sandboxer patches apply {}{flag}` tries again", record.id);
            let error = (run.patch.id.clone(), patch_error);
            op.update(Vec::new(), move |record| {
                as_before(record);
                record.set_patch_error(Some(error));
            })
            .await
            .map(|record| Step::Stopped(record, why))
        }
        Err(error) => {
            // A script that is cut off is not rolled back: what it did stays.
            let cut_off = error.code == Code::Cancelled;
            let because = if cut_off { "it was cut off".to_owned() } else { error.sentence() };
            let why = unknown_words(&run.patch, Some(&because));
            let how = next_step(deps, record, run.patch.sequence).await;
            let patch_error = format!("{why}; {how}");
            let record = op
                .update(Vec::new(), move |record| {
                    record.set_patch_error(Some((begun.id.clone(), patch_error)));
                    note_run(record, AppliedPatch { state: PatchState::Unknown, ..begun });
                    record.patch_state = PatchState::Unknown;
                })
                .await?;
            if cut_off {
                let patch = patch_title(&run.patch);
                let message = format!(
                    "sandbox {}: the script of {patch} was cut off, and may be half done",
                    record.id
                );
                return Err(CancelOutcome::Stopped.error(message).hint(how).step("patch"));
            }
            Ok(Step::Stopped(record, why))
        }
    };
    failpoint::reached("patch.applied");
    step
}

async fn write_outcome(
    op: &Op<SandboxRecord>,
    record: &SandboxRecord,
    run: &PatchRun,
    begun: AppliedPatch,
    outcome: PatchOutcome,
) -> Result<Step, Error> {
    let patch = &run.patch;
    let well = outcome.exit_status == 0 && !outcome.timed_out;
    let (kind, state) = if well {
        (EventKind::PatchApplied, PatchState::Applied)
    } else {
        (EventKind::PatchFailed, PatchState::Failed)
    };
    let data = serde_json::json!({
        "patch_id": patch.id, "snapshot_id": patch.snapshot_id, "sequence": patch.sequence,
        "exit_status": outcome.exit_status, "timed_out": outcome.timed_out,
        "took_ms": took_ms(outcome.duration),
    });
    let stopped = (!well).then(|| failed_words(run, &outcome));
    let error = match &stopped {
        Some(why) => Some(format!("{why}; {}", next_step(&op.deps, record, patch.sequence).await)),
        None => None,
    };
    let ended = AppliedPatch {
        state: state.clone(),
        took_ms: Some(took_ms(outcome.duration)),
        exit_status: Some(outcome.exit_status),
        output: Some(outcome.output),
        ..begun
    };
    let record = op
        .update(vec![(kind, data)], move |record| {
            record.set_patch_error(error.map(|error| (ended.id.clone(), error)));
            note_run(record, ended);
            // While a pass runs this is its state; what it ends with is settled behind its last patch.
            record.patch_state = if well { PatchState::Applying } else { state };
        })
        .await?;
    Ok(match stopped {
        None => Step::Applied(record),
        Some(why) => Step::Stopped(record, why),
    })
}

/// A script that was cut off in a sandbox that runs on: what it did is there to be looked at.
fn look_first(record: &SandboxRecord, error: Error) -> Error {
    let stopped = error.kind == Kind::Cancelled(CancelOutcome::Stopped);
    match error.hint.clone().filter(|_| stopped) {
        Some(how) => {
            error.hint(format!("look at what is there with `sandboxer shell {}`; {how}", record.id))
        }
        None => error,
    }
}

/// Puts a patch's run on a record, in the place of the one before.
fn note_run(record: &mut SandboxRecord, run: AppliedPatch) {
    record.applied_patches.retain(|applied| applied.id != run.id);
    record.applied_patches.push(run);
    // An adoption must not run a script twice.
    record.manifest_pending = true;
    record.applied_patches.sort_by(|a, b| (a.sequence, &a.id).cmp(&(b.sequence, &b.id)));
    let has = record.applied_patches.iter().filter(|applied| applied.state == PatchState::Applied);
    record.last_patch_sequence = has.map(|applied| applied.sequence).max().unwrap_or(0);
}

/// The error of a pass that was cancelled before this patch began; whether others were tried before it.
fn cancelled_before(record: &SandboxRecord, patch: &Patch, tried: bool) -> Error {
    let (id, patch) = (&record.id, patch_title(patch));
    if tried {
        let message = format!(
            "sandbox {id}: cancelled before {patch}; the patches before it are applied, and stay"
        );
        return CancelOutcome::Stopped
            .error(message)
            .hint(format!("`sandboxer patches apply {id}` goes on"));
    }
    CancelOutcome::Undone
        .error(format!("sandbox {id}: cancelled before {patch}; no patch was begun"))
}

fn patch_title(patch: &Patch) -> String {
    format!("patch {} ({})", patch.sequence, patch.id)
}

fn failed_words(run: &PatchRun, outcome: &PatchOutcome) -> String {
    let (patch, status) = (patch_title(&run.patch), outcome.exit_status);
    if outcome.timed_out {
        return format!("{patch} was ended after {} s (exit status {status})", run.limit.as_secs());
    }
    format!("{patch} failed with exit status {status}")
}

fn unknown_words(patch: &Patch, because: Option<&str>) -> String {
    let why = because.map(|why| format!(" ({why})")).unwrap_or_default();
    format!("nobody knows whether {} came to its end{why}", patch_title(patch))
}

fn late(patch: &Patch, limit: Seconds) -> String {
    format!(
        "{} was not begun: the pass may take {limit}, and they were used up by the patches before it",
        patch_title(patch)
    )
}

fn check_can_patch(record: &SandboxRecord) -> Result<(), Error> {
    let id = &record.id;
    if record.based_on_snapshot.is_none() {
        return Err(Error::new(
            Code::Conflict,
            format!("sandbox {id} is not based on a snapshot; it gets no patches"),
        )
        .hint("patches go to what was restored from their snapshot"));
    }
    let error = || {
        Error::new(
            Code::Conflict,
            format!("sandbox {id} is {}; patches are applied to one that is ready", record.state),
        )
        .detail("state", record.state.as_str())
    };
    match record.state {
        State::Ready => Ok(()),
        State::Sleeping => Err(error().hint(format!("`sandboxer wake {id}` wakes it, which applies those that it owes; then `patches apply {id} --retry` runs one again"))),
        _ => Err(error().hint(format!("`sandboxer get {id}` shows what became of it"))),
    }
}
