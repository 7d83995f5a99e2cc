//! `patches status`: each patch, and how each sandbox stands to it.

use std::time::Duration;

use super::super::args::SnapshotRef;
use super::super::output::{Context, Outcome, Tone};
use super::super::table::{self, Line};
use crate::client::{PatchStanding, PatchStatus};
use crate::domain::figures::took;
use crate::domain::patch::PatchState;

pub(super) async fn status(context: &mut Context<'_>, args: &SnapshotRef) -> Outcome {
    let record = context.client.snapshot_view(&args.snapshot).await?.record;
    let found = context.client.patch_status(record.id.as_str()).await?;
    if context.options.json {
        context.document(&found)?;
    } else if found.is_empty() {
        context.remark(&format!(
            "snapshot {} has no patches",
            context.options.clean(record.title(), 200)
        ));
    } else {
        let rows: Vec<_> = found.iter().flat_map(rows).collect();
        table::print(
            context,
            &["PATCH", "SANDBOX!", "NAME", "HOST", "STATE!", "TOOK!", "REMARK"],
            &rows,
        )?;
    }
    Ok(0)
}

fn rows(status: &PatchStatus) -> Vec<Line> {
    let sequence = status.patch.sequence.to_string();
    if status.sandboxes.is_empty() {
        let mut cells = vec![sequence];
        cells.resize(6, "-".to_owned());
        cells.push("no sandbox is based on the snapshot".to_owned());
        return vec![Line { tone: Tone::Faint, cells }];
    }
    status.sandboxes.iter().map(|standing| row(&sequence, standing)).collect()
}

fn row(sequence: &str, standing: &PatchStanding) -> Line {
    let tone = match standing.state {
        PatchState::Failed | PatchState::Unknown => Tone::Bad,
        PatchState::Applying | PatchState::Pending => Tone::Busy,
        PatchState::None | PatchState::Applied | PatchState::Other(_) => Tone::Plain,
    };
    let run = standing.run.as_ref();
    let cells = vec![
        sequence.to_owned(),
        standing.id.to_string(),
        standing.name.clone().unwrap_or_else(|| "-".to_owned()),
        standing.host.to_string(),
        standing.state.to_string(),
        run.and_then(|run| run.took_ms)
            .map_or_else(|| "-".to_owned(), |ms| took(Duration::from_millis(ms))),
        remark(standing),
    ];
    Line { tone, cells }
}

fn remark(standing: &PatchStanding) -> String {
    let exit = standing.run.as_ref().and_then(|run| run.exit_status);
    match (&standing.state, exit) {
        (PatchState::Failed, Some(status)) => {
            format!("exit status {status}; sandboxer get {}", standing.id)
        }
        (PatchState::Failed, None) => format!("sandboxer get {}", standing.id),
        (PatchState::Unknown, _) => format!("patches apply {} --retry runs it again", standing.id),
        (PatchState::Pending, _) if standing.blocked => {
            "an earlier one stands in the way".to_owned()
        }
        (PatchState::Pending, _) => "on its next wake".to_owned(),
        _ => String::new(),
    }
}
