//! `snapshots delete` of one or many.

use super::super::args::DeleteArgs;
use super::super::bulk::{BulkItem, Target, bulk, each, resolve};
use super::super::confirm::{Question, allow, needs_yes};
use super::super::interrupt::Running;
use super::super::output::{CliError, Context, Outcome};
use crate::client::{Error, Request, SnapshotDeleteRequest};
use crate::domain::SnapshotRecord;
use crate::domain::lineage::SnapshotView;
use crate::present::question;

pub(super) async fn delete(context: &mut Context<'_>, args: &DeleteArgs) -> Outcome {
    let client = context.client;
    let find = async |reference: String| client.snapshot_view(&reference).await;
    let targets = resolve(&args.snapshots, find, |view| view.record.id.to_string()).await;
    let asked = agree(context, args, &targets).await?;
    let ended = each(context, &targets, async |running, view: &SnapshotView| {
        let record = &view.record;
        let request = SnapshotDeleteRequest {
            id: record.id.to_string(),
            // Only somebody who was shown the record agreed to that revision, and to what depends on it.
            revision: asked.then_some(record.revision),
            force: args.force,
            dependants: (asked && args.force).then(|| view.dependants()),
            force_protected: args.force_protected,
            rule: None,
        };
        let deleted = delete_one(running, request).await;
        // What it said before is no news of the deletion.
        let said = deleted.as_ref().ok().and_then(|deleted| deleted.message.clone());
        let note = said.filter(|said| record.message.as_ref() != Some(said));
        (BulkItem::new(record.id.as_str(), deleted.err()), note)
    });
    let (items, notes): (Vec<_>, Vec<_>) = ended.await?.into_iter().unzip();
    for (item, note) in items.iter().zip(notes) {
        if let Some(note) = note {
            context.remark(&format!("warning: {}: {note}", item.id));
        }
    }
    bulk(context, &items, |_| "deleted")
}

/// Deletes one: the record that is gone. Its message says what stays behind.
pub(super) async fn delete_one(
    running: &Running<'_>,
    request: SnapshotDeleteRequest,
) -> Result<SnapshotRecord, Error> {
    if let Some(problem) = running.cancelled() {
        return Err(problem);
    }
    running.run(Request::DeleteSnapshot(request)).await?.into_snapshot()
}

async fn agree(
    context: &mut Context<'_>,
    args: &DeleteArgs,
    targets: &[Target<SnapshotView>],
) -> Result<bool, CliError> {
    let flags = [(args.force, "--force"), (args.force_protected, "--force-protected")];
    let needs_yes =
        needs_yes(targets, flags, |one| (one.record.id.as_str(), one.record.name.as_deref()));
    let views: Vec<_> = targets.iter().filter_map(|(_, target)| target.as_ref().ok()).collect();
    let in_use = args.force && views.iter().any(|view| !view.dependants().is_empty());
    let note = in_use.then(|| {
        "Patches go with their snapshot; sandboxes based on it cannot be recreated.".to_owned()
    });
    let about = question::snapshots(&views, context.now());
    allow(context, &Question { verb: "delete", note, about, yes: args.yes, needs_yes }).await
}
