//! Sweep (semantics 4): tells of deadlines that are near, ends what is over, finishes removals on which nobody works any more,
//! removes what forgotten sandboxes left; and nothing else.
//!
//! Two sweeps at once, of one process or of several, are safe: a warning is a compare-and-set on the record that is warned of, a
//! removal holds the sandbox's lock and begins on the very revision that was judged.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use futures_util::future::join_all;

use crate::domain::clock::ClockReading;
use crate::domain::error::{Code, Error};
use crate::domain::event::EventKind;
use crate::domain::name::HostName;
use crate::domain::sandbox::SandboxRecord;
use crate::domain::sweep::{
    HeldBack, HoldReason, SkipReason, SweepItem, SweepOutcome, SweepReport, SweepRequest,
    SweepTask, due_at, task_of,
};
use crate::domain::time::Time;
use crate::manager::credits::renew::{Renewal, renew};
use crate::manager::credits::unclaimed::release_unclaimed;
use crate::manager::deps::Deps;
use crate::manager::journal::{Observed, update_observed};
use crate::manager::upkeep::ownership::{CLAIM_HINT, ownership, ownership_words};
use crate::manager::upkeep::sweep_memory::Paused;
use crate::manager::upkeep::sweep_removal::{Due, failed_item, item, remove_due, skipped_item};
use crate::store::Ownership;

/// Time after which the next sweep is noted, in milliseconds: so many writes less.
const NOTE_AFTER_MS: u64 = 60_000;

/// Judges every sandbox by its deadline, and waits for the removals that follow. A host that does not answer holds up nobody's but
/// its own.
///
/// Errors: what of this installation cannot be read. What fails of one sandbox is in its item.
pub(crate) async fn sweep(deps: &Deps, request: &SweepRequest) -> Result<SweepReport, Error> {
    let reading = deps.read_clocks();
    let mut report = SweepReport { at: reading.wall, held_back: None, items: Vec::new() };
    let alone = if request.alone { deps.sweeps.try_lock().await? } else { None };
    report.held_back = if request.alone && alone.is_none() {
        Some(another_sweeps())
    } else {
        hold_back(deps, &reading).await?
    };
    if report.held_back.is_some() {
        return Ok(report);
    }
    if let Err(error) = release_unclaimed(deps).await {
        tracing::warn!(%error, "holds that no record has could not be looked for");
    }
    let (mut warnings, mut unpaid) = (Vec::new(), Vec::new());
    let mut removals = BTreeMap::<String, Vec<Due>>::new();
    for due in find_due(deps, &reading).await? {
        let Due { record, task } = &due;
        let spec = deps.transports.spec(&record.host);
        if let Some(why) = spec.and_then(|spec| spec.forbid) {
            let words = format!("{} is forbidden by the configuration: {why}", record.host);
            report.items.push(skipped_item(record, SkipReason::Forbidden, words));
            continue;
        }
        match task {
            SweepTask::Warn => warnings.push(due.record),
            SweepTask::Protected => {
                let words = "it is due, and labelled protect=true".to_owned();
                report.items.push(skipped_item(record, SkipReason::Protected, words));
            }
            SweepTask::Renew | SweepTask::Unpaid => unpaid.push(due),
            SweepTask::Destroy | SweepTask::Finish | SweepTask::Collect => {
                removals.entry(record.host.as_str().to_ascii_lowercase()).or_default().push(due);
            }
        }
    }
    report.items.extend(warn(deps, &warnings, &reading).await);
    for due in unpaid {
        match renew_due(deps, &due).await {
            Some(item) => report.items.push(item),
            None => {
                removals
                    .entry(due.record.host.as_str().to_ascii_lowercase())
                    .or_default()
                    .push(due);
            }
        }
    }
    let removals = removals.into_values().map(|due| Box::pin(remove_on_host(deps, due)));
    report.items.extend(join_all(removals).await.into_iter().flatten());
    report.items.sort_by(|a, b| a.id.cmp(&b.id));
    Ok(report)
}

fn another_sweeps() -> HeldBack {
    HeldBack {
        reason: HoldReason::Another,
        message: "another sweep is at work".to_owned(),
        hint: None,
    }
}

/// Why nothing may be judged now. What is not held back is noted, so that others know that somebody sweeps.
async fn hold_back(deps: &Deps, reading: &ClockReading) -> Result<Option<HeldBack>, Error> {
    match ownership(deps).await? {
        Ownership::Own => {}
        ownership => {
            return Ok(Some(HeldBack {
                reason: HoldReason::NotOwn,
                message: format!("nothing is ended from here: {}", ownership_words(&ownership)),
                hint: Some(CLAIM_HINT.to_owned()),
            }));
        }
    }
    let before = match deps.sweep.replace_reading(reading) {
        Some(before) => Some(before),
        None => deps.sweeps.last().await.unwrap_or_else(|error| {
            tracing::warn!(%error, "when something swept last cannot be read");
            None
        }),
    };
    let jump = before.and_then(|before| reading.jump_since(&before));
    if jump.is_some() || deps.sweep.is_note_due(reading, NOTE_AFTER_MS) {
        deps.sweep.set_noted(reading);
        if let Err(error) = deps.sweeps.note(reading).await {
            tracing::warn!(%error, "the sweep could not be noted");
        }
    }
    if jump.is_some() {
        // When something is due was reckoned by a clock that was wrong.
        deps.sweep.set_quiet(None);
    }
    Ok(jump.map(HeldBack::over_jump))
}

/// Sandboxes with which something is due. Where nothing was and nothing changed since, no record is looked at.
async fn find_due(deps: &Deps, reading: &ClockReading) -> Result<Vec<Due>, Error> {
    let now = reading.wall;
    let version = deps.sandboxes.version().await?;
    if deps.sweep.is_quiet(version, now) {
        return Ok(Vec::new());
    }
    let (mut found, mut until) = (Vec::new(), None::<Time>);
    for record in deps.sandboxes.list().await? {
        match task_of(&record, now) {
            Some(task) => found.push(Due { record, task }),
            None => until = [until, due_at(&record)].into_iter().flatten().min(),
        }
    }
    let is_quiet = found.iter().all(|due| due.task == SweepTask::Protected);
    deps.sweep.set_quiet(is_quiet.then_some((version, until)));
    deps.sweep.retain_sandboxes(&found.iter().map(|due| &due.record.id).collect::<BTreeSet<_>>());
    Ok(found)
}

/// Tells of deadlines that are near, in one write. Whoever changed a record meanwhile has it told at the next sweep.
async fn warn(
    deps: &Deps,
    records: &[Arc<SandboxRecord>],
    reading: &ClockReading,
) -> Vec<SweepItem> {
    if records.is_empty() || deps.sweep.pause_of(&Paused::Warnings, reading).is_some() {
        return Vec::new();
    }
    let told = records.iter().map(|record| -> Observed {
        let deadline = record.expires_at;
        let data = serde_json::json!({
            "host": record.host, "expires_at": deadline, "protected": record.is_protected(),
        });
        let events = vec![(EventKind::SandboxExpiring, data)];
        (Arc::clone(record), events, Box::new(move |record| record.expiring_told = deadline))
    });
    match update_observed(deps, told.collect()).await {
        Ok(outcomes) => {
            deps.sweep.went_well(&Paused::Warnings);
            records
                .iter()
                .zip(outcomes)
                .map(|(record, outcome)| match outcome {
                    Ok(_) => {
                        item(record, SweepOutcome::Warned, warning_words(record, reading.wall))
                    }
                    Err(error) => skipped_item(record, SkipReason::Changed, error.message),
                })
                .collect()
        }
        Err(error) => {
            tracing::warn!(%error, "deadlines that are near could not be told");
            deps.sweep.failed(Paused::Warnings, reading, &error.message);
            records.iter().map(|record| failed_item(record, error.clone())).collect()
        }
    }
}

/// Renews a hold; `None`: its credits ran out a while ago, and it ends for that.
async fn renew_due(deps: &Deps, due: &Due) -> Option<SweepItem> {
    let Due { record, task } = due;
    Some(match renew(deps, record).await {
        Ok(Renewal::Renewed) => item(
            record,
            SweepOutcome::Renewed,
            "credits are held for another hour of it".to_owned(),
        ),
        Ok(Renewal::Warned(end, error)) => {
            let words = format!("its credits ran out: it ends at {end} ({})", error.message);
            item(record, SweepOutcome::Warned, words)
        }
        Ok(Renewal::Unpaid(..)) if *task == SweepTask::Unpaid => return None,
        Ok(Renewal::Unpaid(end, error)) => {
            let end = if record.is_protected() {
                "it stays, labelled protect=true".to_owned()
            } else {
                format!("it ends at {end}")
            };
            let words = format!("its credits ran out: {end} ({})", error.message);
            skipped_item(record, SkipReason::Credits, words)
        }
        Err(error) if error.code == Code::Conflict => {
            skipped_item(record, SkipReason::Changed, error.message)
        }
        Err(error) => {
            tracing::warn!(sandbox = %record.id, %error, "its hold could not be renewed");
            failed_item(record, error)
        }
    })
}

fn warning_words(record: &SandboxRecord, now: Time) -> String {
    match record.expires_at {
        Some(deadline) if deadline <= now => {
            format!("its time was over at {deadline}; it stays: it is labelled protect=true")
        }
        Some(deadline) => format!("its time is over at {deadline}"),
        None => "it has no deadline".to_owned(),
    }
}

/// Removes what is due on one host. Where that answered, what else waits for it is done too.
async fn remove_on_host(deps: &Deps, due: Vec<Due>) -> Vec<SweepItem> {
    let host: Option<HostName> = due.first().map(|due| due.record.host.clone());
    let removals = due.iter().map(|due| Box::pin(remove_due(deps, due)));
    let items: Vec<SweepItem> = join_all(removals).await.into_iter().flatten().collect();
    let is_done = |item: &SweepItem| item.skipped.is_none() && item.error.is_none();
    if let Some(host) = host.filter(|_| items.iter().any(is_done)) {
        (deps.host_reached)(deps, &host).await;
    }
    items
}
