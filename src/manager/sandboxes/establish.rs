//! Establishment, which create, restore and recreate share: provision, wait, write `ready`, or compensate (semantics 2).

use tokio::time::Instant;

use crate::domain::error::{Code, Error};
use crate::domain::event::EventKind;
use crate::domain::extension::{Provisioned, Readiness, Target};
use crate::domain::name::{OperationId, SnapshotId};
use crate::domain::profile::Seconds;
use crate::domain::raw_json::RawJson;
use crate::domain::route::Attempt;
use crate::domain::sandbox::{Failure, Reason, SandboxRecord, State};
use crate::domain::sandbox_manifest::is_same_manifest;
use crate::domain::text::last_lines;
use crate::domain::time::{Time, took_ms};
use crate::failpoint;
use crate::manager::hosts::report::{last_report, note_report};
use crate::manager::hosts::roots::{learn_roots_during, roots_for_new};
use crate::manager::operation::Op;
use crate::manager::operation::progress::EVIDENCE_LINES;
use crate::manager::patches::apply::apply_pending;
use crate::manager::sandboxes::compensate::{end_failed, roll_back};
use crate::manager::sandboxes::establishment::{Establishment, announce_steps};
use crate::manager::sandboxes::fallback::fall_back;
use crate::manager::sandboxes::find::find_sandbox;
use crate::manager::sandboxes::resolve::resolve;
use crate::manager::sandboxes::settle::{RunningServices, patch_and_settle};
use crate::manager::sandboxes::write_errors::not_written_error;
use crate::manager::snapshots::restore_archive::restore_archive;
use crate::manager::upkeep::ownership::note_counter;
use crate::store::ending;

/// Runs an establishment as the operation's work.
pub(crate) fn run_establishment(
    op: Op<SandboxRecord>,
    establishment: Establishment,
) -> OperationId {
    let host = establishment.provision.host.clone();
    op.run(Some(host), move |op| async move {
        announce_steps(&op, &establishment, 0).await;
        Box::pin(establish(&op, establishment)).await.map(|_| ())
    })
}

/// Provisions and waits, with one candidate of its route after the other; at the end the record is `ready`, or `failed` with nothing
/// left on the host.
pub(crate) async fn establish(
    op: &Op<SandboxRecord>,
    mut establishment: Establishment,
) -> Result<SandboxRecord, Error> {
    loop {
        let began = op.deps.now();
        let error = match Box::pin(attempt(op, &mut establishment)).await {
            Ok(record) => return Ok(record),
            Err(error) => error,
        };
        let failed = ending(roll_back(op, &establishment, error)).await;
        if let Some(failed) = Box::pin(fall_back(op, &mut establishment, failed, began)).await {
            return ending(end_failed(op, &establishment, failed)).await;
        }
    }
}

async fn attempt(
    op: &Op<SandboxRecord>,
    establishment: &mut Establishment,
) -> Result<SandboxRecord, Error> {
    let deps = &op.deps;
    let id = establishment.provision.id.clone();
    let host = establishment.provision.host.clone();
    let deadline = establishment.ttl_s.map(|ttl| {
        deps.now().plus_seconds(establishment.ready_timeout.as_secs().saturating_add(ttl))
    });
    establishment.provision.expires_at = deadline;
    // One that was adopted is made again as this installation's own.
    let owner = if establishment.recreate {
        deps.installation.owners().await.ok().and_then(|owners| owners.into_iter().next())
    } else {
        None
    };
    let reading = deps.read_clocks();
    let provisioning = op.update(
        vec![(
            EventKind::SandboxProvisioning,
            serde_json::json!({"host": host, "operation": op.operation.id}),
        )],
        move |record| {
            record.state = State::Provisioning;
            record.reason = Some(Reason::User);
            record.message = None;
            record.expires_at = deadline;
            if let Some(owner) = owner {
                record.owner = owner;
            }
            // An earlier teardown says nothing about what is made from here on.
            record.failure = None;
            record.kept_failed = false;
            record.teardown.clear();
            record.leftovers.clear();
            if let Some(meter) = &mut record.meter {
                meter.begin(reading, deadline.is_some());
            }
        },
    );
    let begun = async {
        // Two files, and each waits for the disk.
        let (owner, record) = tokio::try_join!(deps.installation.next_stamp(), provisioning)?;
        Ok::<_, Error>((owner, record, roots_for_new(deps, &host).await?))
    };
    match begun.await {
        Ok((owner, record, roots)) => {
            (establishment.provision.owner, establishment.provision.roots) = (owner, roots);
            establishment.provision.sandbox = Some(Box::new(record));
            establishment.provision.report = last_report(deps, &host).await.map(Box::new);
            failpoint::reached("create.provisioning");
            Box::pin(provision_to_ready(op, establishment)).await
        }
        Err(error) => Err(not_written_error(&id, error).untouched()),
    }
}

async fn provision_to_ready(
    op: &Op<SandboxRecord>,
    establishment: &Establishment,
) -> Result<SandboxRecord, Error> {
    let deps = &op.deps;
    let id = &establishment.provision.id;
    let extension = deps.extension(&establishment.provision.profile.extension)?;
    let (mut made, not_preserved) = match &establishment.from {
        None => {
            let provision = learn_roots_during(
                deps,
                &establishment.provision.host,
                &op.progress,
                extension.provision(&establishment.provision, &op.progress),
            );
            (op.or_cancelled(provision).await?, None)
        }
        Some(from) => {
            let restored = restore_archive(op, &establishment.provision, from).await?;
            (restored.provisioned, Some(restored.not_preserved))
        }
    };
    failpoint::reached("create.provisioned");
    if let Some(counter) = made.counter_ahead {
        let given = establishment.provision.owner.counter;
        note_counter(deps, &establishment.provision.host, counter, given).await?;
    }
    let (start_output, ready) = (made.start_output.take(), made.ready.take());
    if let Some(said) = made.report.as_deref()
        && establishment.provision.report.as_deref() != Some(said)
    {
        note_report(deps, &establishment.provision.host, said.clone()).await;
    }
    let record = op
        .update(Vec::new(), |record| {
            note_provisioned(record, made);
            record.not_preserved = not_preserved.unwrap_or_default();
        })
        .await
        .map_err(|error| not_written_error(id, error))?;
    let target = Target { start_output, ..resolve(deps, &record).await? };
    let until = Instant::now() + establishment.ready_timeout;
    let ready = if let Some(ready) = ready {
        ready
    } else {
        let limit = establishment.ready_timeout;
        op.or_cancelled(extension.wait_ready(&target, limit, &op.progress)).await?
    };
    let patch = async {
        failpoint::reached("create.started");
        let patched = patch_new(op, establishment).await?;
        failpoint::reached("create.patched");
        Ok(patched)
    };
    let services = RunningServices { extension: extension.as_ref(), target: &target, until };
    let (ready, message) = Box::pin(patch_and_settle(op, services, ready, patch)).await?;
    failpoint::reached("create.settled");
    let ready_at = deps.now();
    let expires_at = establishment.ttl_s.map(|ttl| ready_at.plus_seconds(ttl));
    // Raised once more: a copy of our records in which this one is half-made is an old copy from here on, and must
    // not recover it.
    let stamp =
        deps.installation.next_stamp().await.map_err(|error| not_written_error(id, error))?;
    let target = Target { stamp: Some(stamp), ..target };
    let notes: Vec<String> = establishment
        .from
        .as_ref()
        .and_then(|from| from.note.clone())
        .into_iter()
        .chain(message)
        .chain(establishment.note.clone())
        .collect();
    let message = (!notes.is_empty()).then(|| notes.join("; "));
    let max_s = establishment.provision.profile.max_ttl.map(Seconds::get);
    let told = SandboxRecord {
        state: State::Ready,
        ready_at: Some(ready_at),
        expires_at,
        max_expires_at: max_s.map(|max| ready_at.plus_seconds(max)),
        failure: None,
        ..find_sandbox(deps, id.as_str()).await?
    };
    op.or_cancelled(extension.write_manifest(&target, &told)).await?;
    failpoint::reached("create.dated");
    write_ready(op, establishment, ready, message, told)
        .await
        .map_err(|error| not_written_error(id, error))
}

/// Applies the pending patches of a sandbox made from a snapshot, before it is ready; whether any ran.
async fn patch_new(op: &Op<SandboxRecord>, establishment: &Establishment) -> Result<bool, Error> {
    let Some(from) = &establishment.from else { return Ok(false) };
    let before = find_sandbox(&op.deps, establishment.provision.id.as_str()).await?;
    let pass = apply_pending(op, &before, false).await?;
    match pass.stopped {
        Some(why) if from.require_patches => {
            let error = not_patched(&pass.record, &from.id, &why);
            // Nothing of the sandbox stays: there is nothing to apply it to again.
            op.update(Vec::new(), move |record| {
                record.patch_error = Some(why);
            })
            .await?;
            Err(error)
        }
        _ => Ok(pass.record.applied_patches != before.applied_patches),
    }
}

async fn write_ready(
    op: &Op<SandboxRecord>,
    establishment: &Establishment,
    ready: Readiness,
    message: Option<String>,
    told: SandboxRecord,
) -> Result<SandboxRecord, Error> {
    let ready_at = told.ready_at.unwrap_or_else(|| op.deps.now());
    let took_ms = took_ms(ready_at.since(op.operation.started_at));
    let data = serde_json::json!({"host": establishment.provision.host, "took_ms": took_ms});
    let mut events = vec![(EventKind::SandboxReady, data.clone())];
    if establishment.recreate {
        events.insert(0, (EventKind::SandboxRecreated, data));
    } else if let Some(from) = &establishment.from {
        let mut data = data;
        data["snapshot_id"] = from.id.as_str().into();
        if let Some(removed) = &op.subject.undo_of {
            data["undo_of"] = removed.as_str().into();
        }
        events.insert(0, (EventKind::SandboxRestored, data));
    }
    let reading = op.deps.read_clocks();
    let record = op
        .update(events, move |record| {
            record.state = State::Ready;
            // Its time to live counts from here, and so does what that costs.
            if let Some(meter) = &mut record.meter {
                meter.begin(reading, told.expires_at.is_some());
            }
            record.reason = Some(Reason::User);
            record.message = message;
            record.observed_at = Some(ready_at);
            record.ready_at = Some(ready_at);
            record.expires_at = told.expires_at;
            record.max_expires_at = told.max_expires_at;
            record.reachability = Some(ready.reachability);
            record.services = ready.services;
            record.failure = None;
            record.operation = None;
            note_taken(record, ready_at);
            // Labels are set beside whatever works on it.
            record.manifest_pending = !is_same_manifest(record, &told);
        })
        .await?;
    failpoint::reached("create.ready");
    Ok(record)
}

/// The failure of a restore that wants all patches, with what the script wrote.
fn not_patched(record: &SandboxRecord, snapshot: &SnapshotId, why: &str) -> Error {
    let error = Error::new(Code::OperationFailed, why).step("patch");
    let Some(run) = record.applied_patches.iter().find(|run| run.stopped()) else {
        // None ran to a bad end: one was not begun, or the pass took too long.
        let hint = "restore again when that is mended, or without --require-patches: then `patches apply` goes on";
        return error.hint(hint);
    };
    let hint = format!(
        "`sandboxer patches remove {snapshot} {}` takes it away; add a better one and restore again, or restore without \
         --require-patches",
        run.sequence
    );
    let failure = Failure {
        step: format!("patch {}", run.sequence),
        exit_status: run.exit_status,
        output: last_lines(run.output.as_deref().unwrap_or_default(), EVIDENCE_LINES),
    };
    error.hint(hint).evidence(failure)
}

/// Notes the attempt that came to its end, behind those that failed.
fn note_taken(record: &mut SandboxRecord, at: Time) {
    let fell_back = record.attempts.last().is_some_and(|last| last.extension.is_some() && !last.ok);
    if fell_back {
        record.attempts.push(Attempt {
            ok: true,
            reason: "it is ready".to_owned(),
            ..Attempt::of(&record.extension, &record.host, at)
        });
    }
}

fn note_provisioned(record: &mut SandboxRecord, made: Provisioned) {
    record.handle = Some(made.handle);
    record.workdir = Some(made.workdir);
    record.host_identity = Some(made.identity);
    record.rewrites = made.rewrites;
    // Plain data with strings for keys: it is always JSON.
    let telemetry = made.report.as_ref().and_then(|report| report.telemetry());
    record.telemetry = telemetry.and_then(|telemetry| RawJson::new(&telemetry).ok());
    let certified = made.report.and_then(|report| report.certificate);
    record.certificate = certified.and_then(|certified| RawJson::new(&certified.certificate).ok());
}
