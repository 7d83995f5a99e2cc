//! Prune, and a profile's `keep`: old snapshots on which nothing depends are deleted.

use std::sync::Arc;

use crate::domain::error::Error;
use crate::domain::lineage::SnapshotView;
use crate::domain::name::{SandboxId, SnapshotId};
use crate::domain::reporter::{Report, Reporter};
use crate::domain::request::{PruneItem, PruneRequest, SnapshotDeleteRequest, SnapshotQuery};
use crate::domain::retention::RetentionRule;
use crate::domain::snapshot::SnapshotRecord;
use crate::manager::deps::Deps;
use crate::manager::journal::{self, Guard};
use crate::manager::operation::progress::ProgressReporter;
use crate::manager::operation::wait::wait_for_snapshot;
use crate::manager::snapshots::delete::delete_snapshot;
use crate::manager::snapshots::find::list_snapshots;
use crate::manager::upkeep::ownership::ensure_own;

/// Deletes old snapshots on which nothing depends, or says which it would.
///
/// Errors: `invalid_input` when neither a number nor an age says which are old.
pub(crate) async fn prune_snapshots(
    deps: &Deps,
    request: &PruneRequest,
) -> Result<Vec<PruneItem>, Error> {
    if request.keep.is_none() && request.older_than_s.is_none() {
        return Err(Error::invalid_input(
            "keep",
            "which snapshots are old is said by --keep, --older-than, or both",
        ));
    }
    if !request.dry_run {
        ensure_own(deps).await?;
    }
    let rule =
        RetentionRule { keep: request.keep, older_than_s: request.older_than_s, taken_here: false };
    let mut items = Vec::new();
    for (view, why) in old_snapshots(deps, &rule).await? {
        let record = &view.record;
        let depends = view.dependants();
        let stays = if record.is_protected() {
            Some("kept, labelled protect=true".to_owned())
        } else {
            (!depends.is_empty()).then(|| format!("kept, in use by {}", depends.join(", ")))
        };
        let mut item = PruneItem {
            id: record.id.clone(),
            name: record.name.clone(),
            ok: stays.is_none(),
            bytes: record.archive.bytes,
            reason: stays.unwrap_or(why),
            error: None,
        };
        if item.ok && !request.dry_run {
            item.ended(delete_while_old(deps, &record.id, rule).await);
        }
        items.push(item);
    }
    Ok(items)
}

/// Deletes one, unless it is not old any more, or something depends on it by now; its last record.
async fn delete_while_old(
    deps: &Deps,
    id: &SnapshotId,
    rule: RetentionRule,
) -> Result<SnapshotRecord, Error> {
    let request = SnapshotDeleteRequest {
        id: id.to_string(),
        rule: Some(rule),
        ..SnapshotDeleteRequest::default()
    };
    let started = delete_snapshot(deps, &request).await?;
    match started.operation {
        Some(operation) => wait_for_snapshot(deps, &operation).await,
        None => Ok(started.snapshot),
    }
}

/// A profile's `keep`, after a snapshot that went well: what it deleted is in the message of that one. What cannot be
/// deleted stays, and is no failure.
pub(crate) async fn apply_keep(
    deps: &Deps,
    newest: &SnapshotRecord,
    keep: u32,
    progress: &ProgressReporter,
) {
    let sandbox = &newest.sandbox_id;
    let rule = RetentionRule { keep: Some(keep), taken_here: true, ..RetentionRule::default() };
    let old = match beyond_newest(deps, sandbox, keep).await {
        Ok(old) => old,
        Err(error) => {
            return tracing::warn!(%sandbox, %error, "old snapshots could not be looked for");
        }
    };
    let mut gone = Vec::new();
    for (at, view) in old.iter().enumerate() {
        let (done, of) = (Some(at as u64), Some(old.len() as u64));
        progress.report(Report { stage: "keep", done, of, ..Report::default() });
        let record = &view.record;
        // Boxed: it starts operations of this very kind.
        match Box::pin(delete_while_old(deps, &record.id, rule)).await {
            Ok(_) => gone.push(record.title()),
            Err(error) => {
                tracing::warn!(snapshot = %record.id, %error, "an old snapshot could not be deleted");
            }
        }
    }
    if gone.is_empty() {
        return;
    }
    let message = format!("the profile keeps {keep} of a sandbox: deleted {}", gone.join(", "));
    let noted = journal::update(
        deps,
        &newest.id,
        Guard::Any,
        Vec::new(),
        move |record: &mut SnapshotRecord| {
            record.message = Some(message);
            Ok(())
        },
    );
    if let Err(error) = noted.await {
        tracing::warn!(snapshot = %newest.id, %error, "what was deleted for it is not on its record");
    }
}

/// The snapshots of a sandbox that a profile's `keep` would delete.
pub(crate) async fn beyond_newest(
    deps: &Deps,
    sandbox: &SandboxId,
    keep: u32,
) -> Result<Vec<Arc<SnapshotView>>, Error> {
    let rule = RetentionRule { keep: Some(keep), taken_here: true, ..RetentionRule::default() };
    let old = old_snapshots(deps, &rule).await?.into_iter().map(|(view, _)| view);
    let goes =
        |view: &Arc<SnapshotView>| !view.record.is_protected() && view.dependants().is_empty();
    Ok(old.filter(|view| view.record.sandbox_id == *sandbox && goes(view)).collect())
}

/// Snapshots that a rule calls old, and why.
async fn old_snapshots(
    deps: &Deps,
    rule: &RetentionRule,
) -> Result<Vec<(Arc<SnapshotView>, String)>, Error> {
    let records = deps.snapshots.list_by_insertion().await?;
    let views = list_snapshots(deps, &SnapshotQuery { all: true }).await?;
    let view_of = |id: &SnapshotId| views.iter().find(|view| view.record.id == *id).cloned();
    let old = rule.old(&records.iter().collect::<Vec<_>>(), deps.now());
    Ok(old.into_iter().filter_map(|(record, why)| Some((view_of(&record.id)?, why))).collect())
}
