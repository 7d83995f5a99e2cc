//! Restore from an archive: brings it to the sandbox's host where it is not there, verifies it, and has the sandbox made
//! from it.

use crate::domain::error::{Code, Error};
use crate::domain::extension::{ProvisionRequest, RestoreSource, Restored};
use crate::domain::name::{HostName, SnapshotId};
use crate::domain::profile::Profile;
use crate::domain::sandbox::SandboxRecord;
use crate::domain::snapshot::SnapshotRecord;
use crate::failpoint;
use crate::manager::deps::Deps;
use crate::manager::hosts::roots::learn_roots_during;
use crate::manager::operation::Op;
use crate::manager::operation::locks::queue_for_snapshot_lock;
use crate::manager::snapshots::archives::{
    ArchiveOnHost, archive_on, ensure_ready, profile_of_snapshot,
};
use crate::manager::snapshots::find::get_snapshot_at_revision;
use crate::manager::snapshots::replicate::{find_under_other_name, replicate};

/// Hint at a snapshot from which no sandbox is made.
pub(crate) const RESTORABLE: &str = "only a snapshot that is ready can be restored";

/// Brings a snapshot's archive to this host, if it is not there. The copy stays, for the next one and for a recreate.
/// Where the host is another name of one that has it, that one is used.
async fn ensure_archive_on_host(
    op: &Op<SandboxRecord>,
    id: &SnapshotId,
    host: &HostName,
) -> Result<ArchiveOnHost, Error> {
    let deps = &op.deps;
    let is_there =
        |snapshot: &SnapshotRecord| snapshot.hosts().any(|known| known.same(host.as_str()));
    // Whoever deletes it looks for sandboxes that are made from it after having written `deleting`; this one's record
    // is written.
    let snapshot = get_snapshot_at_revision(deps, id.as_str(), None).await?;
    ensure_ready(&snapshot, RESTORABLE)?;
    if is_there(&snapshot) {
        return archive_on(deps, &snapshot, host).await;
    }
    // Whoever holds it may be copying it to this very host.
    let turn = op.or_cancelled(queue_for_snapshot_lock(deps, id, &op.progress)).await;
    let _lock = turn?;
    let snapshot = get_snapshot_at_revision(deps, id.as_str(), None).await?;
    ensure_ready(&snapshot, RESTORABLE)?;
    if is_there(&snapshot) {
        return archive_on(deps, &snapshot, host).await;
    }
    // Boxed, as what follows: it is large, and a part of every restore.
    let there = op.or_cancelled(Box::pin(find_under_other_name(deps, &snapshot, host))).await;
    if let Some(there) = there? {
        return Ok(there);
    }
    let copied = Box::pin(replicate(op, &snapshot, host)).await?;
    failpoint::reached("restore.copied");
    archive_on(deps, &copied, host).await
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
    ensure_ready(&snapshot, RESTORABLE)?;
    let note = profile_note(deps, &snapshot, &profile_of_snapshot(deps, &snapshot).await?);
    Ok(Some(BaseSnapshot { id: id.clone(), strict: false, require_patches: false, note }))
}

/// Makes the sandbox from the archive, which is brought to its host first where it is not there.
pub(crate) async fn restore_archive(
    op: &Op<SandboxRecord>,
    provision: &ProvisionRequest,
    from: &BaseSnapshot,
) -> Result<Restored, Error> {
    let (deps, host) = (&op.deps, &provision.host);
    let there = ensure_archive_on_host(op, &from.id, host).await.map_err(Error::of_a_part)?;
    let extension = deps.extension(&provision.profile.extension)?;
    let source = RestoreSource { place: there.place, archive: there.facts, strict: from.strict };
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
    let there = ensure_archive_on_host(op, &from.id, &sandbox.host).await;
    let there = there.map_err(Error::of_a_part)?;
    let work = there.archives.verify(&there.place, &there.facts, &op.progress);
    let Err(error) = op.or_cancelled(work).await else { return Ok(()) };
    let hint = format!(
        "nothing of the sandbox was touched; `sandboxer snapshots verify {}` reads every copy",
        from.id
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
