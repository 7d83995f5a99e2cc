//! Where a sandbox comes from, how far its patches have come, and what was taken of it: the end of `get`.

use std::time::Duration;

use schemars::JsonSchema;
use serde::Serialize;

use crate::client::{Client, Error};
use crate::domain::figures::took;
use crate::domain::lineage::{Lineage, SnapshotView};
use crate::domain::patch::{AppliedPatch, PatchState};
use crate::domain::{Code, SandboxRecord};

/// What `get --json` prints: the record, and where it comes from.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct SandboxDetail {
    /// The record.
    #[serde(flatten)]
    pub record: SandboxRecord,
    /// Where it comes from and what was made of it; null where that cannot be read.
    pub lineage: Option<Lineage>,
    /// Why not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unread: Option<Error>,
}

/// Warning of what of a sandbox cannot be read, in a sentence.
pub(super) fn unread(problem: &Error) -> String {
    let what = "where it comes from and what was taken of it cannot be read";
    let hint = problem.hint.as_ref().map(|hint| format!("; {hint}")).unwrap_or_default();
    format!("warning: {what}: {}{hint}", problem.message)
}

/// Names and values of where a sandbox comes from and what was taken of it.
///
/// Errors: what cannot be read of its snapshots.
pub(super) async fn fields(
    client: &dyn Client,
    record: &SandboxRecord,
    lineage: &Lineage,
) -> Result<Vec<(&'static str, String)>, Error> {
    let mut fields = Vec::new();
    let mut base = None;
    for (at, id) in lineage.ancestors.iter().enumerate() {
        // One that was deleted has only its id left.
        let view = match client.snapshot_view(id.as_str()).await {
            Err(problem) if problem.code == Code::NotFound => None,
            view => Some(view?),
        };
        let named = view.as_ref().and_then(|view| view.record.name.clone());
        let gone = if view.is_none() { ", deleted" } else { "" };
        let named = named.map_or_else(|| format!("{id}{gone}"), |name| format!("{name} ({id})"));
        fields.push((if at == 0 { "based on" } else { "before it" }, named));
        if at == 0 {
            base = view;
        }
    }
    if base.is_some() || !record.applied_patches.is_empty() {
        fields.push(("patches", level(record, base.as_ref())));
        fields.extend(patches(record, base.as_ref()));
    }
    fields.extend(error(record, base.as_ref()).map(|error| ("patch error", error)));
    for id in &lineage.snapshots {
        let named =
            client.snapshot_view(id.as_str()).await.ok().and_then(|view| view.record.name.clone());
        fields.push((
            "snapshot",
            named.map_or_else(|| id.to_string(), |name| format!("{name} ({id})")),
        ));
    }
    Ok(fields)
}

/// What keeps patches from it. What the last pass found is over once the snapshot, or the patch, is gone.
fn error(record: &SandboxRecord, base: Option<&SnapshotView>) -> Option<String> {
    let mine = base?.sandboxes.iter().find(|one| one.id == record.id);
    let over = mine.is_some_and(|mine| mine.patch_state != record.patch_state);
    record.patch_error.clone().filter(|_| !over)
}

/// `applied, level 2; owes 3, 4`.
fn level(record: &SandboxRecord, base: Option<&SnapshotView>) -> String {
    let mine = base.and_then(|base| base.sandboxes.iter().find(|one| one.id == record.id));
    let state = mine.map_or(&record.patch_state, |mine| &mine.patch_state);
    let owes: Vec<_> = mine.iter().flat_map(|mine| &mine.owes).map(ToString::to_string).collect();
    let owes = if owes.is_empty() { String::new() } else { format!("; owes {}", owes.join(", ")) };
    let level = match record.last_patch_sequence {
        0 => String::new(),
        level => format!(", level {level}"),
    };
    format!("{state}{level}{owes}")
}

/// A line for each patch: those that ran, and those that will.
fn patches(record: &SandboxRecord, base: Option<&SnapshotView>) -> Vec<(&'static str, String)> {
    let known = base.map(|base| base.patches.as_slice()).unwrap_or_default();
    let mut lines: Vec<_> = record
        .applied_patches
        .iter()
        .map(|applied| {
            let removed = base.is_some() && known.iter().all(|patch| patch.id != applied.id);
            (applied.sequence, ran(applied, removed))
        })
        .collect();
    let waits = known
        .iter()
        .filter(|patch| record.applied_patches.iter().all(|applied| applied.id != patch.id));
    lines.extend(waits.map(|patch| {
        (patch.sequence, format!("{}  {}  {}", patch.sequence, patch.id, PatchState::Pending))
    }));
    lines.sort_by_key(|(sequence, _)| *sequence);
    lines.into_iter().map(|(_, line)| ("patch", line)).collect()
}

fn ran(applied: &AppliedPatch, removed: bool) -> String {
    let mut words = vec![applied.state.to_string()];
    words.extend(
        applied
            .exit_status
            .filter(|status| *status != 0)
            .map(|status| format!("exit status {status}")),
    );
    words.extend(applied.took_ms.map(|ms| format!("took {}", took(Duration::from_millis(ms)))));
    words.extend(removed.then(|| "removed from the snapshot since".to_owned()));
    format!("{}  {}  {}", applied.sequence, applied.id, words.join(", "))
}
