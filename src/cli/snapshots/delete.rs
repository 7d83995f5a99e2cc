//! `snapshots delete` of one or many.

use futures_util::StreamExt as _;
use futures_util::stream;

use super::super::args::DeleteArgs;
use super::super::bulk::{AT_ONCE, BulkItem, Target, bulk, resolve};
use super::super::confirm::{self, Question, allow, beginning};
use super::super::interrupt::{Running, with_progress};
use super::super::output::{CliError, Context, Outcome};
use crate::client::{Error, Request, SnapshotDeleteRequest};
use crate::domain::SnapshotRecord;
use crate::domain::lineage::SnapshotView;

pub(super) async fn delete(context: &mut Context<'_>, args: &DeleteArgs) -> Outcome {
    let client = context.client;
    let find = async |reference: String| client.snapshot_view(&reference).await;
    let targets = resolve(&args.snapshots, find, |view| view.record.id.to_string()).await;
    let asked = agree(context, args, &targets).await?;
    let running = Running::new(client);
    let work = stream::iter(&targets)
        .map(|(typed, target)| {
            let running = &running;
            async move {
                let view = match target {
                    Ok(view) => view,
                    Err(problem) => {
                        return (BulkItem::new(typed.as_str(), Err(problem.clone())), None);
                    }
                };
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
                (BulkItem::new(record.id.as_str(), deleted.map(drop)), note)
            }
        })
        .buffered(AT_ONCE)
        .collect::<Vec<_>>();
    let (items, notes): (Vec<_>, Vec<_>) =
        Box::pin(with_progress(context, &running, work)).await?.into_iter().unzip();
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
    let known =
        targets.iter().filter_map(|(typed, target)| target.as_ref().ok().map(|view| (typed, view)));
    let mut beginnings = known.clone().map(|(typed, view)| {
        let record = &view.record;
        beginning(typed, record.id.as_str(), record.name.as_deref())
    });
    let needs_yes = if args.force {
        Some("--force".to_owned())
    } else if args.force_protected {
        Some("--force-protected".to_owned())
    } else {
        beginnings.find_map(|beginning| beginning)
    };
    let views: Vec<_> = known.map(|(_, view)| view).collect();
    let in_use = args.force && views.iter().any(|view| !view.dependants().is_empty());
    let note = in_use.then(|| {
        "Patches go with their snapshot; sandboxes based on it cannot be recreated.".to_owned()
    });
    let about = confirm::snapshots(&views, context.now());
    allow(context, &Question { verb: "delete", note, about, yes: args.yes, needs_yes }).await
}
