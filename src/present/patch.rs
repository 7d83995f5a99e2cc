//! Patch: the columns of a snapshot's patches, and of how one stands on each sandbox.

use super::count::many;
use super::document::Document;
use super::lineage::run_words;
use super::role::Role;
use super::sign::patch_role;
use super::table::{Column, or_nothing};
use crate::client::PatchStanding;
use crate::domain::figures::{age_of, bytes};
use crate::domain::patch::{AppliedPatch, Patch, PatchState};
use crate::domain::text::last_lines;

/// Lines of what a patch wrote that are shown.
const OUTPUT: usize = 20;

/// Columns of a snapshot's patches.
pub(crate) const COLUMNS: &[Column<Patch>] = &[
    Column::new("PATCH", |patch, _| patch.sequence.to_string()),
    Column::whole("ID", |patch, _| patch.id.to_string()),
    Column::new("RUNS IN", |patch, _| patch.run_in.clone()),
    Column::whole("SIZE", |patch, _| bytes(patch.script.len() as u64)),
    Column::whole("AGE", |patch, now| age_of(patch.created_at, now)),
    Column::new("BY", |patch, _| patch.actor.to_string()),
    Column::new("DESCRIPTION", |patch, _| or_nothing(patch.description.as_ref())),
];

/// Number of a patch, and how it stands on a sandbox; none where no sandbox is based on the snapshot.
pub(crate) type StandingRow = (u64, Option<PatchStanding>);

/// Columns of how patches stand on sandboxes.
pub(crate) const STANDING: &[Column<StandingRow>] = &[
    Column::new("PATCH", |(sequence, _), _| sequence.to_string()),
    Column::whole("SANDBOX", |(_, on), _| or_nothing(on.as_ref().map(|on| &on.id))),
    Column::new("NAME", |(_, on), _| or_nothing(on.as_ref().and_then(|on| on.name.as_ref()))),
    Column::new("HOST", |(_, on), _| or_nothing(on.as_ref().map(|on| &on.host))),
    Column::whole("STATE", |(_, on), _| or_nothing(on.as_ref().map(|on| &on.state))),
    Column::new("WHAT", |(_, on), _| match on {
        Some(on) => with_a_way_on(on),
        None => "no sandbox is based on the snapshot".to_owned(),
    }),
];

/// How that row is meant.
pub(crate) fn standing_role((_, on): &StandingRow) -> Role {
    on.as_ref().map_or(Role::Dim, |on| patch_role(&on.state))
}

/// How a patch stands on a sandbox: `failed, exit 3, 1.2s`.
pub(crate) fn standing_words(standing: &PatchStanding) -> String {
    if standing.blocked && standing.state == PatchState::Pending {
        return "waits: an earlier one failed".to_owned();
    }
    run_words(&standing.state, standing.run.as_ref())
}

/// The same with what to do where somebody has to.
fn with_a_way_on(standing: &PatchStanding) -> String {
    let words = standing_words(standing);
    let id = &standing.id;
    match standing.state {
        PatchState::Failed => format!("{words}; sandboxer get {id}"),
        PatchState::Unknown => format!("{words}; patches apply {id} --retry runs it again"),
        _ => words,
    }
}

/// The last line that a failed patch wrote.
pub(crate) fn last_said(standing: &PatchStanding) -> Option<&str> {
    let run = standing.run.as_ref().filter(|_| standing.state == PatchState::Failed)?;
    run.output.as_deref()?.lines().rfind(|line| !line.trim().is_empty())
}

/// `3 lines, in workspace`: what a patch is beside what it is for.
pub(crate) fn script_words(patch: &Patch) -> String {
    let lines = many(patch.script.lines().count(), "line", "lines");
    format!("{lines}, in {}", patch.run_in)
}

/// Adds one patch.
pub(crate) fn record(document: &mut Document, patch: &Patch) {
    document.plain("patch", patch.sequence);
    document.plain("id", &patch.id);
    document.plain("snapshot", &patch.snapshot_id);
    document.plain("runs in", &patch.run_in);
    document.plain("size", bytes(patch.script.len() as u64));
    document.maybe("for", Role::Plain, patch.description.as_deref());
}

/// Adds how a patch ended, and what it wrote last.
pub(crate) fn output(document: &mut Document, applied: &AppliedPatch) {
    let words = run_words(&applied.state, Some(applied));
    document.heading(format!("Patch {}: {words}", applied.sequence));
    if let Some(output) = &applied.output {
        document.text(Role::Code, 2, last_lines(output, OUTPUT));
    }
}
