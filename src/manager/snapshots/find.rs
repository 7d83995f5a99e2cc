//! Snapshots: listing them, and the one that a reference means.

use std::sync::Arc;

use crate::domain::error::{Code, Error};
use crate::domain::lineage::{Lineage, SnapshotView};
use crate::domain::request::SnapshotQuery;
use crate::domain::sandbox::SandboxRecord;
use crate::domain::snapshot::{SnapshotKind, SnapshotRecord, SnapshotState};
use crate::domain::text::nearest;
use crate::manager::deps::Deps;
use crate::manager::sandboxes::find::{changed_error, find_sandbox, several_error};

/// Snapshots with what hangs on them, oldest first. Undo snapshots and failed ones only with `all`.
pub(crate) async fn list_snapshots(
    deps: &Deps,
    query: &SnapshotQuery,
) -> Result<Vec<Arc<SnapshotView>>, Error> {
    let (records, patches, sandboxes) = all_of_snapshots(deps).await?;
    let shown = |record: &&SnapshotRecord| {
        query.all || record.kind == SnapshotKind::User && record.state != SnapshotState::Failed
    };
    let view =
        |record| SnapshotView::of(record, &patches, sandboxes.iter().map(|s| &**s), &records);
    Ok(records.iter().filter(shown).map(|record| Arc::new(view(record))).collect())
}

/// The snapshot that a reference means, with what hangs on it.
pub(crate) async fn snapshot_view(deps: &Deps, reference: &str) -> Result<SnapshotView, Error> {
    let (records, patches, sandboxes) = all_of_snapshots(deps).await?;
    let record = find(&records, reference)?;
    Ok(SnapshotView::of(record, &patches, sandboxes.iter().map(|s| &**s), &records))
}

async fn all_of_snapshots(
    deps: &Deps,
) -> Result<(Vec<SnapshotRecord>, Vec<crate::domain::Patch>, Vec<Arc<SandboxRecord>>), Error> {
    tokio::try_join!(deps.snapshots.list(), deps.patches.list(), deps.sandboxes.list())
}

/// The snapshot with exactly this id, at this revision.
pub(crate) async fn get_snapshot_at_revision(
    deps: &Deps,
    id: &str,
    revision: Option<u64>,
) -> Result<SnapshotRecord, Error> {
    let record = find(&deps.snapshots.list().await?, id)?.clone();
    if record.id.as_str() != id {
        return Err(Error::new(Code::NotFound, format!("there is no snapshot with the id {id}")));
    }
    match revision.filter(|seen| *seen != record.revision) {
        Some(seen) => Err(changed_error(&format!("snapshot {id}"), seen, &record)),
        None => Ok(record),
    }
}

/// Lineage of a sandbox: its base, and the snapshots taken of it.
pub(crate) async fn lineage(deps: &Deps, id: &str) -> Result<Lineage, Error> {
    let record = find_sandbox(deps, id).await?;
    Ok(Lineage::of(&record, &deps.snapshots.list().await?))
}

fn find<'a>(records: &'a [SnapshotRecord], reference: &str) -> Result<&'a SnapshotRecord, Error> {
    if let Some(found) = records.iter().find(|record| record.id.as_str() == reference) {
        return Ok(found);
    }
    let named = |record: &&SnapshotRecord| record.name.as_deref() == Some(reference);
    let living =
        records.iter().rev().filter(|record| record.state != SnapshotState::Failed).find(named);
    if let Some(found) = living.or_else(|| records.iter().rev().find(named)) {
        return Ok(found);
    }
    let long = reference.strip_prefix("snap-").is_some_and(|rest| rest.len() >= 4);
    let matches: Vec<&SnapshotRecord> =
        records.iter().filter(|record| long && record.id.as_str().starts_with(reference)).collect();
    match matches.as_slice() {
        [one] => Ok(one),
        [] => Err(not_found(records, reference)),
        several => {
            let ids = several.iter().map(|record| record.id.as_str()).collect();
            Err(several_error("snapshots", ids))
        }
    }
}

fn not_found(records: &[SnapshotRecord], reference: &str) -> Error {
    let shown: String = reference.chars().take(80).collect();
    let error = Error::new(Code::NotFound, format!("there is no snapshot {shown:?}"));
    let known = records
        .iter()
        .flat_map(|record| record.name.as_deref().into_iter().chain([record.id.as_str()]));
    match nearest(&shown, known) {
        Some(near) => error.hint(format!("did you mean {near}?")),
        None => error.hint("`sandboxer snapshots list` shows what there is"),
    }
}
