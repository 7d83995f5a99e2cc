//! Restore from an archive: brings it to the sandbox's host where it is not there, verifies it, and has the sandbox made
//! from it.

use crate::domain::archive::ArchivePlace;
use crate::domain::error::{Code, Error};
use crate::domain::extension::{ProvisionRequest, RestoreSource, Restored};
use crate::domain::name::{HostName, SnapshotId};
use crate::domain::profile::Profile;
use crate::domain::sandbox::SandboxRecord;
use crate::domain::snapshot::{ArchiveFacts, SnapshotRecord, SnapshotState};
use crate::failpoint;
use crate::manager::deps::Deps;
use crate::manager::hosts::roots::learn_roots_during;
use crate::manager::operation::Op;
use crate::manager::operation::locks::queue_for_snapshot_lock;
use crate::manager::snapshots::archives::{
    archive_place, archives_of, facts_on, profile_of_snapshot,
};
use crate::manager::snapshots::find::get_snapshot_at_revision;
use crate::manager::snapshots::replicate::{find_under_other_name, replicate};

/// An archive on the host that it is wanted on.
struct ArchiveOnHost {
    of: SnapshotRecord,
    place: ArchivePlace,
    archive: ArchiveFacts,
}

/// Brings a snapshot's archive to this host, if it is not there. The copy stays, for the next one and for a recreate.
/// Where the host is another name of one that has it, that one is used.
async fn ensure_archive_on_host(
    op: &Op<SandboxRecord>,
    snapshot: SnapshotRecord,
    host: &HostName,
) -> Result<ArchiveOnHost, Error> {
    let deps = &op.deps;
    let is_there =
        |snapshot: &SnapshotRecord| snapshot.hosts().any(|known| known.same(host.as_str()));
    if is_there(&snapshot) {
        return archive_listed_on(deps, snapshot, host).await;
    }
    // Whoever holds it may be copying it to this very host.
    let turn = op.or_cancelled(queue_for_snapshot_lock(deps, &snapshot.id, &op.progress)).await;
    let _lock = turn?;
    let snapshot = get_snapshot_at_revision(deps, snapshot.id.as_str(), None).await?;
    check_ready(&snapshot)?;
    if is_there(&snapshot) {
        return archive_listed_on(deps, snapshot, host).await;
    }
    // Boxed, as what follows: it is large, and a part of every restore.
    let there = op.or_cancelled(Box::pin(find_under_other_name(deps, &snapshot, host))).await;
    if let Some((place, archive)) = there? {
        return Ok(ArchiveOnHost { of: snapshot, place, archive });
    }
    let copied = Box::pin(replicate(op, &snapshot, host)).await?;
    failpoint::reached("restore.copied");
    archive_listed_on(deps, copied, host).await
}

async fn archive_listed_on(
    deps: &Deps,
    snapshot: SnapshotRecord,
    host: &HostName,
) -> Result<ArchiveOnHost, Error> {
    let place = archive_place(deps, &snapshot, host).await?;
    Ok(ArchiveOnHost { archive: facts_on(&snapshot, host), of: snapshot, place })
}

/// Snapshot that a sandbox is made from.
pub(crate) struct BaseSnapshot {
    pub(crate) id: SnapshotId,
    /// Fail when the host cannot set all that the archive has.
    pub(crate) strict: bool,
    /// Fail when a patch fails.
    pub(crate) require_patches: bool,
    /// Message of the record once the sandbox is ready.
    pub(crate) note: Option<String>,
}

/// Base of a restored sandbox; `None` for one that was made from its inputs.
///
/// Errors: `not_found` when the snapshot is gone, `conflict` when it is not ready.
pub(crate) async fn find_base(
    deps: &Deps,
    record: &SandboxRecord,
) -> Result<Option<BaseSnapshot>, Error> {
    let Some(id) = &record.based_on_snapshot else { return Ok(None) };
    let snapshot = deps.snapshots.get(id).await?.ok_or_else(|| base_missing_error(record, id))?;
    check_ready(&snapshot)?;
    let note = profile_note(deps, &snapshot, &profile_of_snapshot(deps, &snapshot).await?);
    Ok(Some(BaseSnapshot { id: id.clone(), strict: false, require_patches: false, note }))
}

/// Makes the sandbox from the archive, which is brought to its host first where it is not there.
pub(crate) async fn restore_archive(
    op: &Op<SandboxRecord>,
    provision: &ProvisionRequest,
    from: &BaseSnapshot,
) -> Result<Restored, Error> {
    let deps = &op.deps;
    // Whoever deletes it looks for sandboxes that are made from it after having written `deleting`; this one's record
    // is written.
    let snapshot = get_snapshot_at_revision(deps, from.id.as_str(), None).await?;
    check_ready(&snapshot)?;
    let host = &provision.host;
    let ArchiveOnHost { of, place, archive } =
        ensure_archive_on_host(op, snapshot, host).await.map_err(Error::of_a_part)?;
    let extension = deps.extension(&of.extension)?;
    let source = RestoreSource { place, archive, strict: from.strict };
    let work = extension.restore_from_snapshot(provision, &source, &op.progress);
    let work = learn_roots_during(deps, host, &op.progress, work);
    op.or_cancelled(work).await
}

/// Verifies the archive that a sandbox is to be made from again, on its host: before the sandbox is removed for it.
///
/// Errors: `operation_failed` and `not_found` for an archive that is altered or gone, with what was not touched.
pub(crate) async fn verify_base(
    op: &Op<SandboxRecord>,
    sandbox: &SandboxRecord,
    from: &BaseSnapshot,
) -> Result<(), Error> {
    let deps = &op.deps;
    let host = &sandbox.host;
    let snapshot = get_snapshot_at_revision(deps, from.id.as_str(), None).await?;
    check_ready(&snapshot)?;
    let ArchiveOnHost { of, place, archive } =
        ensure_archive_on_host(op, snapshot, host).await.map_err(Error::of_a_part)?;
    let extension = deps.extension(&of.extension)?;
    let work = archives_of(extension.as_ref())?.verify(&place, &archive, &op.progress);
    let Err(error) = op.or_cancelled(work).await else { return Ok(()) };
    let hint = format!(
        "nothing of the sandbox was touched; `sandboxer snapshots verify {}` reads every copy",
        of.id
    );
    Err(error.hint(hint))
}

fn base_missing_error(record: &SandboxRecord, id: &SnapshotId) -> Error {
    Error::new(
        Code::NotFound,
        format!("sandbox {} is based on snapshot {id}, which is not there any more", record.id),
    )
    .hint("nothing was touched; take a snapshot of the sandbox as it is, and restore that")
    .detail("snapshot", id.as_str())
}

/// Note on a pinned profile that the catalogue has otherwise by now.
pub(crate) fn profile_note(
    deps: &Deps,
    snapshot: &SnapshotRecord,
    profile: &Profile,
) -> Option<String> {
    let recorded = format!("{} {}", profile.id, profile.version);
    match deps.catalogue.usable_profile(profile.id.as_str()) {
        Ok(today) if today.hash() == snapshot.profile.hash => None,
        Ok(today) => Some(format!(
            "made with the profile that was recorded, {recorded}; the catalogue's is {} and another one by now",
            today.version
        )),
        Err(_) => Some(format!(
            "made with the profile that was recorded, {recorded}; the catalogue has it no more"
        )),
    }
}

/// Refuses a snapshot that is not ready.
pub(crate) fn check_ready(snapshot: &SnapshotRecord) -> Result<(), Error> {
    if snapshot.state == SnapshotState::Ready {
        return Ok(());
    }
    Err(Error::new(Code::Conflict, format!("snapshot {} is {}", snapshot.title(), snapshot.state))
        .hint("only a snapshot that is ready can be restored")
        .detail("state", snapshot.state.as_str()))
}
