//! Reconciliation of a sandbox over which a process died, and which was ready once: it becomes what its host says.

use crate::domain::error::{Code, Error};
use crate::domain::event::EventKind;
use crate::domain::extension::{Inspection, SandboxExtension, Target};
use crate::domain::operation::{CancelOutcome, OperationKind};
use crate::domain::pending_patches::pending_patches;
use crate::domain::sandbox::{Reason, Running, SandboxRecord, State};
use crate::domain::settlement::After;
use crate::failpoint;
use crate::manager::credits::charge::settlement_of;
use crate::manager::deps::Deps;
use crate::manager::hosts::status::report_host_error;
use crate::manager::journal::Guard;
use crate::manager::operation::Op;
use crate::manager::operation::subject::OperationRecord as _;
use crate::manager::patches::find::patches_of;
use crate::manager::sandboxes::inspect::{attach_tunnels, inspect_sandbox, lose, lost_event};
use crate::manager::sandboxes::resolve::resolve_as_known;
use crate::manager::sandboxes::teardown::{note_teardown, tear_down_checked};

const RECONCILED: &str = "the process that worked on it died; this is what its host says";

/// Asks the host. What runs as it should is ready again; a recreate that died half-way is a failed one, of which
/// nothing stays; everything else keeps its state.
pub(crate) async fn reconcile(op: &Op<SandboxRecord>, before: &SandboxRecord) -> Result<(), Error> {
    let deps = &op.deps;
    let id = &before.id;
    let dead = before.operation.as_ref().map(|dead| &dead.kind);
    // A death over this leaves what the dead one left, and the next one has to know what that was.
    let kind = dead.unwrap_or(&op.operation.kind).clone();
    let running = Running { kind, ..op.running() };
    let record = SandboxRecord::write(deps, id, Guard::Any, Vec::new(), |record| {
        record.operation = Some(running);
        Ok(())
    })
    .await?;
    let extension = deps.extension(&record.extension)?;
    let target = resolve_as_known(deps, &record).await?;
    let look = async {
        let seen = inspect_sandbox(deps, extension.as_ref(), &target).await?;
        if lacks_patches(deps, &record).await? {
            return Ok(Inspection { ready: false, ..seen });
        }
        // The host is proved by now. What it has may run again, or sleep, after this.
        match dead {
            Some(OperationKind::Snapshot | OperationKind::Patch) => {
                extension.resume(&target, None).await
            }
            Some(turn) if is_between_power_states(deps, turn, &record, &seen).await? => {
                extension.sleep(&target, &op.progress).await
            }
            _ => return Ok(seen),
        }?;
        inspect_sandbox(deps, extension.as_ref(), &target).await
    };
    let cancelled = || CancelOutcome::Undone.error(format!("sandbox {id}: not looked at yet"));
    let seen = op.or_cancelled_with(cancelled, look).await;
    failpoint::reached("recover.inspected");
    match seen {
        // A failed one stays failed: it is made again, or destroyed, by whoever asks for it.
        Ok(seen) if seen.ready && record.state.may_become(&State::Ready) => {
            ready_again(op, &record, extension.as_ref(), &target, seen).await
        }
        Ok(_) if record.state == State::Provisioning => remake_failed(op, &record).await,
        Ok(seen) => {
            let now = deps.now();
            let gone = seen.resources.is_empty() && record.state.may_become(&State::Lost);
            let asleep = seen.asleep && record.state == State::Ready;
            let events = match (gone, asleep) {
                (true, _) => lost_event(&record),
                (false, true) => {
                    vec![(EventKind::SandboxSleeping, serde_json::json!({"host": record.host}))]
                }
                (false, false) => Vec::new(),
            };
            op.update(events, move |record| {
                record.services = seen.services;
                record.observed_at = Some(now);
                record.message = Some(RECONCILED.to_owned());
                record.operation = None;
                if gone {
                    lose(record);
                } else if asleep {
                    record.state = State::Sleeping;
                    record.reason = Some(Reason::CrashRecovered);
                    record.reachability = None;
                }
            })
            .await
            .map(|_| ())
        }
        Err(error) => {
            // Nobody could look: it stays as the dead process left it, for the next time.
            let dead = before.operation.clone();
            op.update(Vec::new(), move |record| record.operation = dead).await?;
            report_host_error(deps, &record.host, &error).await;
            Err(error)
        }
    }
}

/// Whether a sleep or a wake was cut off in the middle: neither awake, with its patches, nor asleep. It is put to sleep,
/// from where a wake does all of it.
async fn is_between_power_states(
    deps: &Deps,
    dead: &OperationKind,
    record: &SandboxRecord,
    seen: &Inspection,
) -> Result<bool, Error> {
    let patches = match (dead, &record.based_on_snapshot) {
        (OperationKind::Wake, Some(base)) if record.state == State::Sleeping => {
            patches_of(deps, base).await?
        }
        (OperationKind::Wake | OperationKind::Sleep, _) => Vec::new(),
        _ => return Ok(false),
    };
    let pending = pending_patches(record, &patches, false);
    let awake = seen.ready && (pending.run.is_empty() || pending.blocked.is_some());
    Ok(!awake && !seen.asleep && !seen.resources.is_empty())
}

/// Whether a recreate died over a sandbox that stands again and has pending patches which could run. One that was not removed
/// yet is still reached, and is as it was before.
async fn lacks_patches(deps: &Deps, record: &SandboxRecord) -> Result<bool, Error> {
    let Some(base) = &record.based_on_snapshot else { return Ok(false) };
    if record.state != State::Provisioning || record.reachability.is_some() {
        return Ok(false);
    }
    let patches = patches_of(deps, base).await?;
    let pending = pending_patches(record, &patches, false);
    Ok(pending.blocked.is_none() && !pending.run.is_empty())
}

async fn ready_again(
    op: &Op<SandboxRecord>,
    record: &SandboxRecord,
    extension: &dyn SandboxExtension,
    target: &Target,
    seen: Inspection,
) -> Result<(), Error> {
    let deps = &op.deps;
    let now = deps.now();
    // A recreate starts the time to live again; one that had removed nothing yet, and whatever else died, leaves the deadline as
    // it was.
    let remade = record.state == State::Provisioning && record.reachability.is_none();
    let ready_at = if remade { now } else { record.ready_at.unwrap_or(now) };
    let expires_at =
        if remade { record.ttl_s.map(|ttl| now.plus_seconds(ttl)) } else { record.expires_at };
    let is_moved = expires_at != record.expires_at;
    let max_s = target.profile.max_ttl.map(crate::domain::profile::Seconds::get);
    let max_expires_at = max_s.map(|max| ready_at.plus_seconds(max));
    if is_moved {
        let told = SandboxRecord {
            state: State::Ready,
            ready_at: Some(ready_at),
            expires_at,
            max_expires_at,
            ..record.clone()
        };
        extension.write_manifest(target, &told).await?;
    }
    let reading = deps.read_clocks();
    let mut seen = seen;
    let alone = match &mut seen.reachability {
        Some(there) => attach_tunnels(deps, &record.id, there).await,
        None => None,
    };
    let data = serde_json::json!({"host": record.host, "reason": Reason::CrashRecovered});
    let events = vec![(EventKind::SandboxReady, data)];
    op.update(events, move |record| {
        record.state = State::Ready;
        if let Some(meter) = record.meter.as_mut().filter(|_| remade) {
            meter.begin(reading, expires_at.is_some());
        }
        record.reason = Some(Reason::CrashRecovered);
        record.message =
            Some(alone.map_or_else(|| RECONCILED.to_owned(), |why| format!("{RECONCILED}; {why}")));
        record.observed_at = Some(now);
        record.ready_at = Some(ready_at);
        record.expires_at = expires_at;
        record.manifest_pending &= !is_moved;
        record.max_expires_at = max_expires_at;
        record.services = seen.services;
        record.reachability = seen.reachability.or(record.reachability.take());
        record.operation = None;
    })
    .await
    .map(|_| ())
}

/// Removes what a recreate that died had removed or made in part, and leaves `failed`: it can be recreated.
async fn remake_failed(op: &Op<SandboxRecord>, record: &SandboxRecord) -> Result<(), Error> {
    let deps = &op.deps;
    let report = match tear_down_checked(deps, record, &op.progress).await {
        Ok(report) => report,
        Err(error) => {
            let running = Running { kind: OperationKind::Recreate, ..op.running() };
            op.update(Vec::new(), move |record| {
                record.operation = Some(running);
            })
            .await?;
            report_host_error(deps, &record.host, &error).await;
            return Err(error);
        }
    };
    let clean = report.is_clean();
    let id = record.id.clone();
    let message =
        format!("the process that made it again died; `sandboxer recreate {id}` makes it again");
    let data =
        serde_json::json!({"code": Code::OperationFailed, "step": "recreate", "message": message});
    let settlement = settlement_of(op, &report, After::Over).await;
    op.update(vec![(EventKind::SandboxFailed, data)], move |record| {
        if let Some(settlement) = settlement {
            settlement.write_on(record);
        }
        record.state = State::Failed;
        record.reason = Some(Reason::CrashRecovered);
        record.message = Some(message);
        record.expires_at = None;
        record.operation = None;
        record.reachability = None;
        record.services.clear();
        note_teardown(record, Some(report));
    })
    .await?;
    if clean {
        Ok(())
    } else {
        Err(Error::new(Code::OperationFailed, format!("sandbox {id}: something is left")))
    }
}
