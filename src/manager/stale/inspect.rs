//! Inspection: records against hosts, in both directions. Hosts are looked at first, so that whatever was made meanwhile has a
//! record by the time records are read.

use std::collections::BTreeSet;
use std::sync::Arc;

use futures_util::stream::{self, StreamExt as _};

use crate::domain::error::Error;
use crate::domain::host_sight::HostSight;
use crate::domain::name::{HostName, SandboxId};
use crate::domain::sandbox::{SandboxRecord, State};
use crate::domain::snapshot::SnapshotRecord;
use crate::domain::stale::{
    LeftByDead, PassState, ReapAction, RecordSight, StaleClass, StaleItem, StaleQuery, StaleReport,
    Standpoint, judge_record, judge_snapshot, keep,
};
use crate::domain::sweep::{HeldBack, HoldReason};
use crate::manager::deps::Deps;
use crate::manager::hosts::status::report_host_status;
use crate::manager::operation::dead::{by, works_elsewhere};
use crate::manager::sandboxes::inspect::inspect_sandbox;
use crate::manager::sandboxes::resolve::resolve_as_known;
use crate::manager::stale::found::{
    destroyed_ids, judge_archives, judge_sandboxes, needed_snapshots,
};
use crate::manager::stale::read_hosts::{HostReading, marked_roots, read_hosts};
use crate::manager::upkeep::ownership::{CLAIM_HINT, ownership, ownership_words};
use crate::manager::upkeep::recover::{RecoveryAction, plan_recovery};
use crate::manager::upkeep::recover_snapshots::needs_recovery;
use crate::store::Ownership;

/// Sandboxes of one host that are asked for at a time.
const AT_ONCE: usize = 6;

/// Everything stale. A host that cannot be read is a pass that says so.
///
/// Errors: `not_found` for an unknown host, and what of this installation cannot be read.
pub(crate) async fn inspect_stale(deps: &Deps, query: &StaleQuery) -> Result<StaleReport, Error> {
    inspect_with_readings(deps, query).await.map(|(report, _)| report)
}

/// [`inspect_stale`], with what was read of the hosts.
pub(crate) async fn inspect_with_readings(
    deps: &Deps,
    query: &StaleQuery,
) -> Result<(StaleReport, Vec<HostReading>), Error> {
    let mut readings = read_hosts(deps, query).await?;
    let (records, snapshots) = tokio::try_join!(deps.sandboxes.list(), deps.snapshots.list())?;
    for reading in &mut readings {
        let host = reading.pass.host.clone();
        let there = records.iter().filter(|record| record.host.same(host.as_str()));
        let roots = marked_roots(deps, &host).await;
        let live = there.filter(|record| !record.state.is_over());
        reading.prove(live.map(|record| &**record), &roots);
        if reading.pass.state == PassState::Changed {
            let words = reading.unjudged();
            report_host_status(deps, &host, HostSight::Another, words.as_deref()).await;
        }
    }
    let from = Standpoint {
        now: deps.now(),
        settings: deps.settings.stale.clone(),
        owners: deps.installation.owners().await?,
        owners_ahead: Vec::new(),
    };
    let held_back = held_back(deps).await?;
    let needed = needed_snapshots(deps, &records).await?;
    let mut items = Vec::new();
    for reading in &readings {
        let from = Standpoint { owners_ahead: reading.owners_ahead.clone(), ..from.clone() };
        let there: Vec<_> =
            records.iter().filter(|record| record.host.same(reading.pass.host.as_str())).collect();
        let gone = if query.as_last_seen {
            marked_as_lost(&there)
        } else {
            gone_records(deps, reading, &there).await
        };
        for record in &there {
            items.extend(judge_recorded(deps, reading, record, &gone, &from).await?);
        }
        for record in snapshots.iter().filter(|record| record.host.same(reading.pass.host.as_str()))
        {
            items.extend(judge_snapshot_record(deps, reading, record, &from).await?);
        }
        let destroyed = destroyed_ids(deps, reading, &records, &from).await?;
        items.extend(judge_sandboxes(reading, &records, &destroyed, &from));
        items.extend(judge_archives(reading, &snapshots, &needed, &from));
    }
    without_aliases(&mut items, &readings);
    items.sort_by(|a, b| (&a.class, &a.host, a.id()).cmp(&(&b.class, &b.host, b.id())));
    let hosts = readings.iter().map(|reading| reading.pass.clone()).collect();
    Ok((StaleReport { at: from.now, hosts, held_back, items }, readings))
}

/// Why nothing may be reaped from here.
async fn held_back(deps: &Deps) -> Result<Option<HeldBack>, Error> {
    Ok(match ownership(deps).await? {
        Ownership::Own => None,
        ownership => Some(HeldBack {
            reason: HoldReason::NotOwn,
            message: format!("nothing is reaped from here: {}", ownership_words(&ownership)),
            hint: Some(CLAIM_HINT.to_owned()),
        }),
    })
}

/// Records of which nothing is on their host by what was seen last.
fn marked_as_lost(there: &[&Arc<SandboxRecord>]) -> BTreeSet<SandboxId> {
    let lost = there.iter().filter(|record| record.state == State::Lost);
    lost.map(|record| record.id.clone()).collect()
}

/// Records of which the host, asked and proved, has nothing any more.
async fn gone_records(
    deps: &Deps,
    reading: &HostReading,
    there: &[&Arc<SandboxRecord>],
) -> BTreeSet<SandboxId> {
    let Some(inventory) = reading.inventory() else { return BTreeSet::new() };
    // A namesake of another owner's says nothing of ours.
    let owners = deps.installation.owners().await.unwrap_or_default();
    let is_ours = |owner: &Option<String>| {
        let is_it = |owner: &String| owners.iter().any(|ours| ours.as_str() == owner);
        owner.as_ref().is_none_or(is_it)
    };
    let has = |id: &SandboxId| {
        let mut items = inventory.sandboxes.iter();
        items.any(|item| item.sandbox_id == id.as_str() && is_ours(&item.owner))
    };
    let missing: Vec<Arc<SandboxRecord>> = there
        .iter()
        .filter(|record| stands(record) && !has(&record.id))
        .map(|record| Arc::clone(record))
        .collect();
    let looked: Vec<_> = stream::iter(missing)
        .map(|record| looked_for(deps, record))
        .buffer_unordered(AT_ONCE)
        .collect()
        .await;
    looked.into_iter().flatten().collect()
}

/// Whether a sandbox is one that its host is to have.
fn stands(record: &SandboxRecord) -> bool {
    matches!(record.state, State::Ready | State::Sleeping | State::Lost)
        && record.operation.is_none()
}

/// A sandbox's id, if its host has nothing of it.
async fn looked_for(deps: &Deps, record: Arc<SandboxRecord>) -> Option<SandboxId> {
    let gone = is_gone(deps, &record).await.inspect_err(|error| {
        tracing::warn!(sandbox = %record.id, %error, "nobody could tell whether it is lost");
    });
    gone.is_ok_and(|gone| gone).then(|| record.id.clone())
}

/// Whether the recorded host, proved to be it, has nothing of a sandbox.
pub(crate) async fn is_gone(deps: &Deps, record: &SandboxRecord) -> Result<bool, Error> {
    let extension = deps.extension(&record.extension)?;
    let target = resolve_as_known(deps, record).await?;
    let seen = inspect_sandbox(deps, extension.as_ref(), &target).await?;
    Ok(seen.resources.is_empty())
}

async fn judge_recorded(
    deps: &Deps,
    reading: &HostReading,
    record: &SandboxRecord,
    gone: &BTreeSet<SandboxId>,
    from: &Standpoint,
) -> Result<Option<StaleItem>, Error> {
    let left_by_dead = left_by_dead(deps, record).await?;
    let inventory = reading.inventory();
    let found = inventory.and_then(|inventory| {
        inventory.sandboxes.iter().find(|item| item.sandbox_id == record.id.as_str())
    });
    let unjudged = reading.unjudged();
    Ok(judge_record(
        RecordSight {
            record,
            left_by_dead: left_by_dead.as_ref(),
            is_gone: gone.contains(&record.id),
            found,
            unjudged: unjudged.as_deref(),
        },
        from,
    ))
}

/// Remains of a dead process on a sandbox; none where somebody works on it, or it is in order.
async fn left_by_dead(deps: &Deps, record: &SandboxRecord) -> Result<Option<LeftByDead>, Error> {
    let Some(plan) = plan_recovery(record) else { return Ok(None) };
    // Of a forgotten one the next contact with its host removes what is there.
    if record.state == State::Forgotten || deps.locks.try_lock(&record.id).await?.is_none() {
        return Ok(None);
    }
    if works_elsewhere(deps, record.operation.as_ref()).await?.is_some() {
        return Ok(None);
    }
    let action = match plan.action {
        RecoveryAction::Close => ReapAction::Close,
        RecoveryAction::Remove => ReapAction::Destroy,
        RecoveryAction::Observe | RecoveryAction::Clear => ReapAction::Recover,
    };
    Ok(Some(LeftByDead { was: plan.was, action }))
}

async fn judge_snapshot_record(
    deps: &Deps,
    reading: &HostReading,
    record: &SnapshotRecord,
    from: &Standpoint,
) -> Result<Option<StaleItem>, Error> {
    if !needs_recovery(record) || deps.locks.try_lock_snapshot(&record.id).await?.is_none() {
        return Ok(None);
    }
    if works_elsewhere(deps, record.operation.as_ref()).await?.is_some() {
        return Ok(None);
    }
    let was = match &record.operation {
        Some(dead) => by(&dead.kind, dead.pid, &dead.host),
        None => format!("a {} snapshot", record.state),
    };
    let item = judge_snapshot(record, &was, from);
    Ok(Some(match reading.unjudged() {
        Some(why) => keep(item, &why),
        None => item,
    }))
}

/// Leaves one item of what two names of one host show twice.
fn without_aliases(items: &mut Vec<StaleItem>, readings: &[HostReading]) {
    let machine = |host: &HostName| {
        let reading = readings.iter().find(|reading| reading.pass.host.same(host.as_str()));
        reading.and_then(|reading| reading.pass.machine_id.clone()).unwrap_or_default()
    };
    let mut seen = BTreeSet::new();
    items.retain(|item| {
        let is_found = item.state.is_none() && item.class != StaleClass::Stuck;
        let key = (machine(&item.host), item.id().to_owned(), item.identity.clone());
        !is_found || seen.insert(key)
    });
}
