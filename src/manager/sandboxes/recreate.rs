//! Recreate: remove and make again under the same id (semantics 1).

use crate::domain::error::{Code, Error, Unique};
use crate::domain::event::EventKind;
use crate::domain::extension::ProvisionRequest;
use crate::domain::name::SnapshotId;
use crate::domain::operation::{CancelOutcome, OperationKind};
use crate::domain::pending_patches::settled_state;
use crate::domain::profile::{InputKind, Profile};
use crate::domain::request::{RecreateRequest, Started};
use crate::domain::sandbox::{Reason, SandboxRecord, State};
use crate::domain::settlement::After;
use crate::domain::teardown::TeardownReport;
use crate::failpoint;
use crate::manager::credits::charge::settlement_of;
use crate::manager::credits::next_run::start_next_run;
use crate::manager::credits::unclaimed::release_next_run;
use crate::manager::deps::Deps;
use crate::manager::hosts::report::ask_host_noting;
use crate::manager::hosts::status::report_host_error;
use crate::manager::operation::Op;
use crate::manager::operation::dead::check_can_start;
use crate::manager::operation::locks::lock_sandbox;
use crate::manager::operation::progress::ProgressReporter;
use crate::manager::operation::subject::OperationRecord as _;
use crate::manager::patches::find::{ensure_patches_as_shown, patches_of};
use crate::manager::sandboxes::destroy::check_protection;
use crate::manager::sandboxes::establish::establish;
use crate::manager::sandboxes::establishment::{Establishment, announce_steps};
use crate::manager::sandboxes::find::find_sandbox;
use crate::manager::sandboxes::inputs::resolve_directories;
use crate::manager::sandboxes::inspect::inspect_sandbox;
use crate::manager::sandboxes::remove::tear_down_noting;
use crate::manager::sandboxes::resolve::{resolve, resolve_as_known};
use crate::manager::sandboxes::teardown::{leftovers_error, note_teardown, unseen};
use crate::manager::snapshots::restore_archive::{find_base, verify_base};
use crate::manager::snapshots::undo_snapshot::{UndoPolicy, take_undo};
use crate::manager::upkeep::ownership::ensure_own;

/// Starts a recreate and returns at once: the same id, pinned profile and inputs.
pub(crate) async fn recreate(deps: &Deps, request: &RecreateRequest) -> Result<Started, Error> {
    let (record, lock) = lock_sandbox(deps, &request.id, request.revision).await?;
    if !record.state.may_be_recreated() {
        return Err(Error::new(
            Code::Conflict,
            format!("a {} sandbox cannot be recreated", record.state),
        )
        .hint(
            "recreate works on ready, sleeping, failed and lost ones; destroy works on every other",
        )
        .detail("state", record.state.as_str()));
    }
    check_can_start(&OperationKind::Recreate, &record)?;
    check_protection(&record, request.force_protected)?;
    ensure_patches_as_shown(deps, &record, request.patches.as_deref()).await?;
    ensure_name_is_its_own(deps, &record).await?;
    ensure_own(deps).await?;
    let extension = deps.extension(&record.extension)?;
    // Nothing is removed for a recreate that would be refused, or could not be written down to its end.
    deps.snapshots.list().await.map_err(hint_untouched)?;
    if let Some(base) = &record.based_on_snapshot {
        patches_of(deps, base).await.map_err(hint_untouched)?;
    }
    let from = find_base(deps, &record).await?;
    let target = resolve(deps, &record).await?;
    if from.is_none() {
        refuse_unproved_inputs(&record, &target.profile)?;
    }
    let SandboxRecord { id, owner, host, inputs, created_at, .. } = record.clone();
    let profile = target.profile.clone();
    let mut draft = ProvisionRequest {
        allow_large: true,
        ..ProvisionRequest::draft(id, Some(owner), host, profile, inputs, created_at)
    };
    let ask = async |draft: &ProvisionRequest| {
        let answer = ask_host_noting(deps, extension.as_ref(), &draft.profile, &draft.host).await;
        answer.map(|answer| answer.compose).map_err(hint_untouched)
    };
    if from.is_none() {
        resolve_directories(deps, &draft.profile, &mut draft.inputs)
            .await
            .map_err(hint_untouched)?;
        let mut preview = extension.preview(&draft).await?;
        preview.check().map_err(hint_untouched)?;
        draft.compose_host = ask(&draft).await?;
        extension.preview_on_host(&mut draft, &mut preview).await.map_err(hint_untouched)?;
        preview.check().map_err(hint_untouched)?;
    } else {
        draft.compose_host = ask(&draft).await?;
    }
    let next = (&draft.profile, &draft.inputs);
    let op = start_next_run(deps, (record, lock), next).await.map_err(hint_unpaid)?;
    let record = op.subject.clone();
    let establishment =
        Establishment { recreate: true, from, ..Establishment::of(draft, record.ttl_s) };
    let host = Some(record.host.clone());
    let (forced, undo) = (request.force_protected, UndoPolicy::of_request(request.no_undo));
    let operation = op.run(host, move |op| async move {
        let ended = Box::pin(run_recreate(&op, establishment, (forced, undo))).await;
        if ended.is_err()
            && let Err(error) = release_next_run(&op.deps, &op.subject.id).await
        {
            tracing::warn!(sandbox = %op.subject.id, %error, "what was held for it stays held for now");
        }
        ended
    });
    Ok(Started { operation: Some(operation), sandbox: record })
}

async fn run_recreate(
    op: &Op<SandboxRecord>,
    mut establishment: Establishment,
    (forced, undo): (bool, UndoPolicy),
) -> Result<(), Error> {
    let (deps, id) = (&op.deps, &op.subject.id);
    let before = find_sandbox(deps, id.as_str()).await?;
    let keeps = undo != UndoPolicy::None && establishment.provision.profile.undo;
    check_before_removal(op, &before, &establishment, 1 + u32::from(keeps)).await?;
    let taken = take_undo(op, &before, undo).await?;
    establishment.note.clone_from(&taken.note);
    let replaced = Box::pin(replace(op, &before, establishment, forced)).await;
    taken.ended(deps, &before, replaced).await
}

/// Finds out what would keep it from being made again, while nothing of it is removed. Whatever that is, the record is freed.
/// `removal`: how many steps that has, behind these.
async fn check_before_removal(
    op: &Op<SandboxRecord>,
    before: &SandboxRecord,
    establishment: &Establishment,
    removal: u32,
) -> Result<(), Error> {
    let deps = &op.deps;
    // The archive is read, images are found, and what is there is kept and removed.
    let pulls = establishment.provision.compose_host.is_some();
    let before_it = u32::from(establishment.from.is_some()) + u32::from(pulls) + removal;
    announce_steps(op, establishment, before_it).await;
    if let Some(from) = &establishment.from
        && let Err(error) = verify_base(op, before, from).await
    {
        return Err(match error.code {
            Code::HostChanged => put_back_unchanged(op, before, error.untouched()).await?,
            _ => leave_unchanged(op, before, CancelOutcome::Undone.noted_on(error)).await?,
        });
    }
    if let Err(error) = refuse_foreign(deps, before).await {
        return Err(put_back_unchanged(op, before, error.untouched()).await?);
    }
    if pulls
        && let Err(error) =
            op.or_cancelled(pull_images(deps, establishment, before, &op.progress)).await
    {
        // The record stays as it was, to the letter: nothing was found out about this sandbox.
        op.update(Vec::new(), |record| record.operation = None).await?;
        return Err(hint_untouched(CancelOutcome::Undone.noted_on(error)));
    }
    Ok(())
}

/// Removes it and makes it again.
async fn replace(
    op: &Op<SandboxRecord>,
    before: &SandboxRecord,
    establishment: Establishment,
    forced: bool,
) -> Result<(), Error> {
    let id = &before.id;
    // Written first: whoever dies in the middle must not leave `ready` behind where nothing is. Somebody may have protected it while
    // its images were pulled, or its undo snapshot was taken.
    let written = SandboxRecord::write(&op.deps, id, op.guard(), Vec::new(), |record| {
        check_protection(record, forced)?;
        record.state = State::Provisioning;
        record.reason = Some(Reason::User);
        Ok(())
    });
    let record = match Box::pin(written).await {
        Ok(record) => record,
        Err(error) => return Err(put_back_unchanged(op, before, error.untouched()).await?),
    };
    failpoint::reached("recreate.begin");
    let begun = async || {
        let events = vec![(
            EventKind::SandboxDestroying,
            serde_json::json!({"host": before.host, "recreate": true}),
        )];
        op.update(events, |_| {}).await.map(|_| ())
    };
    let report = match tear_down_noting(op, &record, begun).await {
        Ok(report) => report,
        Err(error) if error.untouched => {
            return Err(put_back_unchanged(op, before, error).await?);
        }
        Err(error) => return Err(fail_broken_off(op, before, error).await?),
    };
    failpoint::reached("recreate.torn_down");
    if !report.is_clean() {
        let error = leftovers_error(id, &report);
        let message = error.message.clone();
        let data = serde_json::json!({"code": error.code, "step": "teardown", "message": message});
        op.update(vec![(EventKind::SandboxFailed, data)], move |record| {
            record.state = State::Failed;
            record.reason = Some(Reason::ProvisionFailed);
            record.message = Some(message);
            record.operation = None;
            note_teardown(record, Some(report));
        })
        .await?;
        return Err(error);
    }
    reset_record(op, record.based_on_snapshot.as_ref(), report).await?;
    Box::pin(establish(op, establishment)).await.map(|_| ())
}

async fn pull_images(
    deps: &Deps,
    establishment: &Establishment,
    before: &SandboxRecord,
    progress: &ProgressReporter,
) -> Result<(), Error> {
    let restored = match establishment.from {
        Some(_) => Some(resolve(deps, before).await?),
        None => None,
    };
    let extension = deps.extension(&establishment.provision.profile.extension)?;
    extension.pull(&establishment.provision, restored.as_ref(), progress).await
}

/// Refuses where the host has something of somebody else's that bears its id or a name of it: it would stand in the way
/// once the sandbox is removed. Where that is not known, nothing is removed.
async fn refuse_foreign(deps: &Deps, before: &SandboxRecord) -> Result<(), Error> {
    let extension = deps.extension(&before.extension)?;
    let target = resolve_as_known(deps, before).await?;
    let seen = match inspect_sandbox(deps, extension.as_ref(), &target).await {
        Ok(seen) => seen,
        // There a stranger's resources cannot be distinguished from its own.
        Err(error) if error.code == Code::Unsupported => return Ok(()),
        Err(error) => return Err(error),
    };
    let Some(first) = seen.foreign.first() else { return Ok(()) };
    let (id, host) = (&before.id, &before.host);
    let message =
        format!("something on {host} looks like a part of sandbox {id} and is somebody else's");
    Err(Error::new(Code::Conflict, message)
        .hint(format!(
            "remove it on {host} by hand, or create another sandbox; nothing was removed"
        ))
        .because(first.left_alone().unwrap_or_default())
        .detail("foreign", serde_json::to_value(&seen.foreign).unwrap_or_default()))
}

/// Refuses to send a directory of this machine to the host that named it: whoever works in a sandbox can rewrite the manifest
/// from which it was adopted.
fn refuse_unproved_inputs(record: &SandboxRecord, profile: &Profile) -> Result<(), Error> {
    let Some(adopted_at) = record.adopted_at else { return Ok(()) };
    let is_directory =
        |name: &str| profile.inputs.get(name).is_some_and(|spec| spec.kind == InputKind::Directory);
    let Some((name, path)) = record.inputs.iter().find(|(name, _)| is_directory(name)) else {
        return Ok(());
    };
    let id = &record.id;
    let message = format!(
        "sandbox {id} was adopted at {adopted_at}: that it was made from {path} is known from its host alone, to which that directory would be sent"
    );
    Err(Error::new(Code::Conflict, message).detail("field", name.as_str()).hint(format!(
        "if it is the right one, create another sandbox from it (`sandboxer create --profile {} --input {name}=...`), and destroy {id}",
        profile.id
    )))
}

/// Refuses one that failed and whose name another sandbox has by now.
async fn ensure_name_is_its_own(deps: &Deps, record: &SandboxRecord) -> Result<(), Error> {
    let Some(name) = record.name.as_deref().filter(|_| record.name_in_use().is_none()) else {
        return Ok(());
    };
    let records = deps.sandboxes.list().await?;
    match records.iter().find(|other| other.id != record.id && other.name_in_use() == Some(name)) {
        Some(other) => Err(Error::taken(
            Unique::Name,
            format!("its name {name} is sandbox {}'s by now", other.id),
        )
        .hint(format!("destroy {} first, or leave this one: nothing of it is there", other.id))),
        None => Ok(()),
    }
}

/// Resets the record of a removed sandbox: its facts go, and its patches are pending anew.
async fn reset_record(
    op: &Op<SandboxRecord>,
    base: Option<&SnapshotId>,
    report: TeardownReport,
) -> Result<(), Error> {
    let patches = match base {
        Some(base) => patches_of(&op.deps, base).await?,
        None => Vec::new(),
    };
    let settlement = settlement_of(op, &report, After::Next).await;
    let anew = op.update(Vec::new(), move |record| {
        if let Some(settlement) = settlement {
            settlement.write_on(record);
        }
        record.handle = None;
        record.reachability = None;
        record.services.clear();
        record.kept_failed = false;
        record.applied_patches.clear();
        record.last_patch_sequence = 0;
        record.patch_state = settled_state(record, &patches);
        record.set_patch_error(None);
        note_teardown(record, Some(report));
    });
    anew.await.map(|_| ())
}

/// A recreate before anything was removed, and why: the record is what it was. Of a host that does not answer it says so.
async fn put_back_unchanged(
    op: &Op<SandboxRecord>,
    before: &SandboxRecord,
    error: Error,
) -> Result<Error, Error> {
    let message = (!error.is_refusal()).then(|| error.message.clone());
    let was = before.clone();
    op.update(Vec::new(), move |record| {
        record.state = was.state;
        record.reason = was.reason;
        record.since = was.since;
        record.operation = None;
        if message.is_some() {
            record.message = message;
        }
    })
    .await?;
    report_host_error(&op.deps, &before.host, &error).await;
    Ok(error)
}

/// A removal that broke off, and why: nobody knows what is still there.
async fn fail_broken_off(
    op: &Op<SandboxRecord>,
    before: &SandboxRecord,
    error: Error,
) -> Result<Error, Error> {
    let (id, why) = (&before.id, error.message.clone());
    let reason = if error.code == Code::Cancelled { Reason::Cancelled } else { Reason::HostLost };
    let data = serde_json::json!({"code": error.code, "step": "teardown", "message": why});
    let events = vec![(EventKind::SandboxFailed, data)];
    let report = unseen(id, &why);
    op.update(events, move |record| {
        record.state = State::Failed;
        record.reason = Some(reason);
        record.message = Some(format!("its removal broke off: {why}"));
        record.operation = None;
        record.reachability = None;
        record.services.clear();
        record.expires_at = None;
        note_teardown(record, Some(report));
    })
    .await?;
    report_host_error(&op.deps, &before.host, &error).await;
    Ok(error.hint(format!("`sandboxer recreate {id}` tries again; `destroy` removes what is left")))
}

/// Writes down why nothing was touched; the error, for whoever asked.
async fn leave_unchanged(
    op: &Op<SandboxRecord>,
    before: &SandboxRecord,
    error: Error,
) -> Result<Error, Error> {
    let message = format!("it was not made again: {}", error.message);
    op.update(Vec::new(), move |record| {
        record.operation = None;
        record.message = Some(message);
    })
    .await?;
    report_host_error(&op.deps, &before.host, &error).await;
    Ok(error)
}

/// [`hint_untouched`], for what credits were missing for.
fn hint_unpaid(error: Error) -> Error {
    if error.code == Code::InsufficientCredits { hint_untouched(error) } else { error }
}

/// Adds that nothing was removed to an error: whoever reads it fears for the sandbox.
fn hint_untouched(error: Error) -> Error {
    let hint = error.hint.as_ref().map(|hint| format!("; {hint}")).unwrap_or_default();
    error.hint(format!("nothing of the sandbox was touched{hint}"))
}
