//! `snapshots prune`: which are old, and then exactly those.

use std::collections::HashMap;

use super::super::args::PruneArgs;
use super::super::bulk::{BulkItem, report};
use super::super::confirm::{Question, allow};
use super::super::interrupt::awaited;
use super::super::output::{CliError, Context, Outcome};
use super::delete::delete_one;
use crate::client::{PruneItem, PruneRequest, SnapshotDeleteRequest};
use crate::domain::retention::RetentionRule;
use crate::domain::{Code, SnapshotId};
use crate::present::question;
use crate::present::snapshot::{pruned, pruned_sum};

pub(super) async fn prune(context: &mut Context<'_>, args: &PruneArgs) -> Outcome {
    let client = context.client;
    let older_than_s = args.older_than.map(crate::domain::profile::Seconds::get);
    let mut items = client
        .prune_snapshots(PruneRequest { keep: args.keep, older_than_s, dry_run: true })
        .await?;
    if !args.dry_run {
        let seen = agree(context, args, &mut items).await?;
        let rule = RetentionRule { keep: args.keep, older_than_s, taken_here: false };
        let pruned = awaited(context, async |running| {
            for item in items.iter_mut().filter(|item| item.ok) {
                // The plan may not be true any more: who deletes judges again.
                let request = SnapshotDeleteRequest {
                    id: item.id.to_string(),
                    revision: seen.get(&item.id).copied(),
                    rule: Some(rule),
                    ..SnapshotDeleteRequest::default()
                };
                let ended = delete_one(running, request).await;
                item.ended(ended);
            }
        });
        pruned.await?;
    }
    finish(context, args, &items)
}

/// Asks about those that are to go; the revisions that were shown, none where nobody was asked.
async fn agree(
    context: &mut Context<'_>,
    args: &PruneArgs,
    items: &mut [PruneItem],
) -> Result<HashMap<SnapshotId, u64>, CliError> {
    let mut views = Vec::new();
    for item in items.iter_mut().filter(|item| item.ok) {
        match context.client.snapshot_view(item.id.as_str()).await {
            Ok(view) => views.push(view),
            Err(problem) if problem.code == Code::NotFound => item.skip(PruneItem::GONE),
            Err(problem) => return Err(problem.into()),
        }
    }
    let about = question::snapshots(&views.iter().collect::<Vec<_>>(), context.now());
    let needs_yes = Some("snapshots prune".to_owned());
    let asked =
        allow(context, &Question { verb: "delete", note: None, about, yes: args.yes, needs_yes })
            .await?;
    let shown =
        views.into_iter().filter(|_| asked).map(|view| (view.record.id, view.record.revision));
    Ok(shown.collect())
}

/// Snapshots that stay, since something depends on them or they are not old any more, are no failure.
fn finish(context: &mut Context<'_>, args: &PruneArgs, items: &[PruneItem]) -> Outcome {
    let tried = items.iter().filter(|item| item.ok || item.error.is_some());
    let ends: Vec<_> =
        tried.map(|item| BulkItem::new(item.id.as_str(), item.error.clone())).collect();
    report(context, items, &ends, |context| print(context, args, items))
}

fn print(context: &mut Context<'_>, args: &PruneArgs, items: &[PruneItem]) -> Result<(), CliError> {
    for item in items.iter().filter(|item| item.error.is_none()) {
        context.say(&pruned(item, args.dry_run))?;
    }
    if let Some(sum) = pruned_sum(items, args.dry_run) {
        context.remark(&sum);
    }
    Ok(())
}
