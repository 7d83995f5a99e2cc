//! Archives of a snapshot: where they are, which is whole, and what is known of each.

use std::time::Duration;

use crate::domain::archive::{ArchivePlace, SnapshotArchives};
use crate::domain::error::{Code, Error};
use crate::domain::name::HostName;
use crate::domain::snapshot::{ArchiveManifest, SnapshotRecord, SnapshotState};
use crate::manager::deps::Deps;
use crate::manager::operation::locks::busy_or_refusal;
use crate::manager::snapshots::archive_facts::{facts_on, is_sealed, not_whole};
use crate::manager::snapshots::find::get_snapshot_at_revision;
use crate::manager::snapshots::integrity::note_damage;
use crate::manager::snapshots::pinned_profile::{archive_place, profile_of_snapshot};

/// Limit of the cleanup after a cancelled operation.
pub(crate) const CLEANUP_LIMIT: Duration = Duration::from_mins(1);

/// The snapshot with exactly this id, if its archive is whole.
pub(crate) async fn ready_snapshot(deps: &Deps, id: &str) -> Result<SnapshotRecord, Error> {
    let record = get_snapshot_at_revision(deps, id, None).await?;
    match ensure_ready(&record) {
        Ok(()) => Ok(record),
        Err(error) => Err(busy_or_refusal(deps, &record.id, error).await),
    }
}

/// The first of a snapshot's archives that is there whole, as far as that is known without reading it; none on
/// `but`.
///
/// Errors: what was wrong with the first one.
pub(crate) async fn whole_archive(
    deps: &Deps,
    record: &SnapshotRecord,
    archives: &dyn SnapshotArchives,
    but: &[HostName],
) -> Result<ArchivePlace, Error> {
    let mut first = None;
    let wanted = record.hosts().filter(|host| !but.iter().any(|but| but.same(host.as_str())));
    // Those last of which somebody knows better.
    let (sound, damaged): (Vec<_>, Vec<_>) =
        wanted.partition(|host| record.damage_on(host).is_none());
    for host in sound.into_iter().chain(damaged) {
        let place = archive_place(deps, record, host).await?;
        let facts = facts_on(record, host);
        let why = match archives.look(&place).await {
            Ok(seen) if is_sealed(&seen, &facts) => return Ok(place),
            Ok(seen) => not_whole(record, host, seen.bytes),
            Err(error) => error,
        };
        note_damage(deps, &record.id, host, &why).await;
        first.get_or_insert(why);
    }
    Err(first.unwrap_or_else(|| Error::internal(format!("snapshot {} is nowhere", record.id))))
}

/// Manifest beside a snapshot's archive on one of its hosts.
pub(crate) async fn manifest_of(
    deps: &Deps,
    record: &SnapshotRecord,
    host: &HostName,
) -> Result<ArchiveManifest, Error> {
    let snapshot = SnapshotRecord {
        archive: facts_on(record, host),
        message: None,
        damage: Vec::new(),
        replicas: Vec::new(),
        copying_to: None,
        operation: None,
        pending: Vec::new(),
        unremoved: false,
        ..record.clone()
    };
    let profile = profile_of_snapshot(deps, record).await?;
    Ok(ArchiveManifest {
        schema: 1,
        id: record.id.clone(),
        owner: record.owner.clone(),
        snapshot,
        recipe: profile.as_written().clone(),
    })
}

/// Refuses a snapshot that is not ready.
pub(crate) fn ensure_ready(record: &SnapshotRecord) -> Result<(), Error> {
    if record.state == SnapshotState::Ready {
        return Ok(());
    }
    Err(Error::new(Code::Conflict, format!("snapshot {} is {}", record.title(), record.state))
        .hint("it takes a snapshot that is ready")
        .detail("state", record.state.as_str()))
}
