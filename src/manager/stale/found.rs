//! Found on hosts: what they have and no record knows, judged against what was destroyed and what is needed here.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::domain::error::Error;
use crate::domain::facts::{HostFacts, HostIdentity, InventoryArchive, InventoryItem};
use crate::domain::name::{HostName, SnapshotId};
use crate::domain::sandbox::{SandboxRecord, State};
use crate::domain::snapshot::SnapshotRecord;
use crate::domain::stale::{
    FoundSight, ReapAction, StaleItem, Standpoint, judge_archive, judge_found, keep,
};
use crate::domain::time::Time;
use crate::manager::deps::Deps;
use crate::manager::stale::read_hosts::HostReading;

/// Sandboxes that were destroyed, by their records, and of which a host has something: since when. The history is read only
/// where something is there that no live record knows.
pub(super) async fn destroyed_ids(
    deps: &Deps,
    reading: &HostReading,
    records: &[Arc<SandboxRecord>],
    from: &Standpoint,
) -> Result<BTreeMap<String, Time>, Error> {
    let Some(inventory) = reading.inventory() else { return Ok(BTreeMap::new()) };
    let is_ours = |owner: &Option<String>| {
        owner.as_ref().is_some_and(|owner| from.owners.iter().any(|ours| ours.as_str() == owner))
    };
    let live = |id: &str| {
        let is_it = |record: &&Arc<SandboxRecord>| record.id.as_str() == id;
        records.iter().find(is_it).is_some_and(|record| record.state != State::Destroyed)
    };
    let unknown: BTreeSet<&str> = inventory
        .sandboxes
        .iter()
        .filter(|item| is_ours(&item.owner) && !live(&item.sandbox_id))
        .map(|item| item.sandbox_id.as_str())
        .collect();
    if unknown.is_empty() {
        return Ok(BTreeMap::new());
    }
    let past = deps.sandboxes.history().await?;
    let all = past.iter().chain(records);
    let destroyed = all
        .filter(|record| record.state == State::Destroyed && unknown.contains(record.id.as_str()));
    Ok(destroyed.map(|record| (record.id.to_string(), record.since)).collect())
}

/// Snapshots that sandboxes are based on, or that have patches, whether or not there is a record of them.
pub(super) async fn needed_snapshots(
    deps: &Deps,
    records: &[Arc<SandboxRecord>],
) -> Result<BTreeSet<SnapshotId>, Error> {
    let patches = deps.patches.list().await?;
    let bases = records.iter().filter_map(|record| record.needs_snapshot().cloned());
    Ok(bases.chain(patches.into_iter().map(|patch| patch.snapshot_id)).collect())
}

/// Sandboxes that a host has and no live record knows. What was destroyed after the host was read is not there any more.
pub(super) fn judge_sandboxes(
    reading: &HostReading,
    records: &[Arc<SandboxRecord>],
    destroyed: &BTreeMap<String, Time>,
    from: &Standpoint,
) -> Vec<StaleItem> {
    let (Some(inventory), Some(facts)) = (reading.inventory(), &reading.facts) else {
        return Vec::new();
    };
    let host = &reading.pass.host;
    let silent = reading.silent_engine();
    let known = |id: &str| {
        records.iter().find(|record| record.id.as_str() == id && record.state != State::Destroyed)
    };
    let judge = |found: &InventoryItem| {
        let record = known(&found.sandbox_id);
        if record.is_some_and(|record| is_recorded_here(record, host, facts, found)) {
            return None;
        }
        let destroyed_at = destroyed.get(&found.sandbox_id).copied();
        if destroyed_at.is_some_and(|at| at >= facts.at) {
            return None;
        }
        let sight = FoundSight {
            host,
            found,
            answering: &facts.engines,
            silent: silent.as_deref(),
            destroyed_at,
        };
        let item = judge_found(sight, from)?;
        Some(match record {
            Some(record) if !item.class.is_never_reaped() => {
                keep(item, &format!("sandbox {} is recorded on {}", record.id, record.host))
            }
            _ => item,
        })
    };
    inventory.sandboxes.iter().filter_map(judge).collect()
}

/// Archives that a host has and no record knows. One that something here needs is kept.
pub(super) fn judge_archives(
    reading: &HostReading,
    snapshots: &[SnapshotRecord],
    needed: &BTreeSet<SnapshotId>,
    from: &Standpoint,
) -> Vec<StaleItem> {
    let (Some(inventory), Some(facts)) = (reading.inventory(), &reading.facts) else {
        return Vec::new();
    };
    let host = &reading.pass.host;
    let judge = |found: &InventoryArchive| {
        let record = snapshots.iter().find(|record| record.id.as_str() == found.snapshot_id);
        if record.is_some_and(|record| is_archived_here(record, host, facts, found)) {
            return None;
        }
        let item = judge_archive(host, found, from)?;
        if item.class.is_never_reaped() {
            return Some(item);
        }
        Some(match record {
            Some(record) => {
                keep(item, &format!("snapshot {} is recorded on {}", record.id, record.host))
            }
            None if needed.contains(found.snapshot_id.as_str()) => StaleItem {
                possible: vec![ReapAction::Adopt],
                ..keep(item, "sandboxes are based on it, or it has patches here: adopt it")
            },
            None => item,
        })
    };
    inventory.archives.iter().filter_map(judge).collect()
}

/// Whether what a host has is what the record is about: under this name of the host, or under another.
fn is_recorded_here(
    record: &SandboxRecord,
    host: &HostName,
    facts: &HostFacts,
    found: &InventoryItem,
) -> bool {
    let same_machine = record.host_identity.as_ref().is_some_and(|recorded| {
        !recorded.machine_id.is_empty() && recorded.machine_id == facts.machine_id
    });
    let same_place = found.directory.is_none() || found.directory == record.workdir;
    record.host.same(host.as_str()) || same_machine && same_place
}

/// Same for an archive.
fn is_archived_here(
    record: &SnapshotRecord,
    host: &HostName,
    facts: &HostFacts,
    found: &InventoryArchive,
) -> bool {
    let identity = HostIdentity::of_machine(facts.machine_id.as_str());
    record.replicas.iter().any(|replica| {
        replica.host.same(host.as_str())
            || replica.is_at(Some(&identity), Some(found.directory.as_str()))
    })
}
