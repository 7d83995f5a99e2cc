//! Diff of a snapshot with another one, or with a sandbox as it is now.

use crate::domain::archive::TreeEntry;
use crate::domain::diff::compare;
use crate::domain::error::{Code, Error};
use crate::domain::name::SnapshotId;
use crate::domain::request::{SnapshotDiff, SnapshotDiffRequest};
use crate::domain::sandbox::{SandboxRecord, State};
use crate::domain::snapshot::SnapshotRecord;
use crate::manager::deps::Deps;
use crate::manager::sandboxes::find::get_at_revision;
use crate::manager::sandboxes::resolve::resolve_as_known;
use crate::manager::snapshots::archives::{READABLE, find_archive, ready_snapshot};

/// Other side of a diff.
enum DiffTarget {
    Snapshot(Box<SnapshotRecord>),
    Sandbox(Box<SandboxRecord>),
}

/// Compares a snapshot with another one, or with a sandbox as it is now.
///
/// Errors: `invalid_input` where nothing says what it is to be compared with; `conflict` for a sandbox whose files are
/// not there to be looked at.
pub(crate) async fn diff_snapshot(
    deps: &Deps,
    request: &SnapshotDiffRequest,
) -> Result<SnapshotDiff, Error> {
    let a = ready_snapshot(deps, &request.a, None, READABLE).await?;
    let other = match &request.b {
        Some(b) if SnapshotId::is_one(b) => {
            DiffTarget::Snapshot(Box::new(ready_snapshot(deps, b, None, READABLE).await?))
        }
        Some(b) => DiffTarget::Sandbox(Box::new(get_at_revision(deps, b, None).await?)),
        None => default_diff_target(deps, &a).await?,
    };
    match other {
        DiffTarget::Snapshot(b) => {
            let (old, new) =
                tokio::try_join!(entries_of_snapshot(deps, &a), entries_of_snapshot(deps, &b))?;
            let notes = not_captured(&a).chain(not_captured(&b)).collect();
            Ok(compare((a.id.as_str(), &old), (b.id.as_str(), &new), notes))
        }
        DiffTarget::Sandbox(b) => {
            let (mut old, new) =
                tokio::try_join!(entries_of_snapshot(deps, &a), entries_of_sandbox(deps, &b, &a))?;
            old.retain(|entry| !entry.path.starts_with("volumes/") && entry.path != "volumes");
            let notes = volumes_note(&a).into_iter().collect();
            Ok(compare((a.id.as_str(), &old), (b.id.as_str(), &new), notes))
        }
    }
}

/// The sandbox that it was taken from, or the snapshot that this one came from.
async fn default_diff_target(deps: &Deps, a: &SnapshotRecord) -> Result<DiffTarget, Error> {
    if let Ok(sandbox) = get_at_revision(deps, a.sandbox_id.as_str(), None).await
        && !sandbox.state.is_over()
    {
        return Ok(DiffTarget::Sandbox(Box::new(sandbox)));
    }
    if let Some(parent) = &a.parent_snapshot
        && let Some(parent) = deps.snapshots.get(parent).await?
    {
        return Ok(DiffTarget::Snapshot(Box::new(parent)));
    }
    let message = format!(
        "the sandbox that snapshot {} was taken from is gone, and there is no parent",
        a.title()
    );
    Err(Error::invalid_input("b", message).hint("name a snapshot or a sandbox to compare it with"))
}

async fn entries_of_snapshot(
    deps: &Deps,
    record: &SnapshotRecord,
) -> Result<Vec<TreeEntry>, Error> {
    let found = find_archive(deps, record, |_| true, None).await?;
    found.archives.entries(&found.place, &found.facts).await
}

async fn entries_of_sandbox(
    deps: &Deps,
    record: &SandboxRecord,
    a: &SnapshotRecord,
) -> Result<Vec<TreeEntry>, Error> {
    if !matches!(record.state, State::Ready | State::Sleeping) {
        return Err(Error::new(
            Code::Conflict,
            format!("sandbox {} is {}: its files cannot be compared", record.id, record.state),
        )
        .hint("it takes a sandbox that is ready or sleeping, or another snapshot")
        .detail("state", record.state.as_str()));
    }
    let extension = deps.extension(&record.extension)?;
    let target = resolve_as_known(deps, record).await?;
    extension.entries(&target, &a.archive.excludes).await
}

fn volumes_note(a: &SnapshotRecord) -> Option<String> {
    let names: Vec<&str> =
        a.archive.captured_volumes.iter().map(|volume| volume.name.as_str()).collect();
    (!names.is_empty()).then(|| {
        format!(
            "volumes are compared between two snapshots only; left out here: {}",
            names.join(", ")
        )
    })
}

fn not_captured(record: &SnapshotRecord) -> impl Iterator<Item = String> {
    record.archive.not_captured.iter().map(move |volume| {
        format!("volume {} is not in snapshot {}: {}", volume.name, record.title(), volume.reason)
    })
}
