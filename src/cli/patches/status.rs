//! `patches status`: each patch, and how each sandbox stands to it.

use crate::cli::args::SnapshotRef;
use crate::cli::output::{Context, Outcome};
use crate::cli::table;
use crate::client::PatchStatus;
use crate::present::patch::{STANDING, StandingRow, standing_role};

pub(super) async fn status(context: &mut Context<'_>, args: &SnapshotRef) -> Outcome {
    let record = context.client.snapshot_view(&args.snapshot).await?.record;
    let found = context.client.patch_status(record.id.as_str()).await?;
    context.reply(&found, |context| {
        if found.is_empty() {
            context.remark(&format!("snapshot {} has no patches", record.title()));
            return Ok(());
        }
        let rows: Vec<StandingRow> = found.iter().cloned().flat_map(rows).collect();
        table::print(context, STANDING, &rows, standing_role)
    })
}

fn rows(status: PatchStatus) -> Vec<StandingRow> {
    let sequence = status.patch.sequence;
    if status.sandboxes.is_empty() {
        return vec![(sequence, None)];
    }
    status.sandboxes.into_iter().map(|standing| (sequence, Some(standing))).collect()
}
