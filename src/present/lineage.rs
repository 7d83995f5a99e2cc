//! Lineage: where a sandbox comes from and what was made of it, and what hangs on a snapshot.

use std::sync::Arc;
use std::time::Duration;

use super::document::Document;
use super::failure::exit;
use super::moment::Present;
use super::role::{Role, Spans};
use super::sign::{patch_glyph, patch_role, patch_words, snapshot_glyph, snapshot_role};
use super::sign::{state_glyph, state_role};
use super::snapshot::{self, state_words, titled};
use super::tree::Node;
use crate::domain::figures::took;
use crate::domain::lineage::{BasedOn, SnapshotView};
use crate::domain::name::SnapshotId;
use crate::domain::patch::{AppliedPatch, Patch, PatchState};
use crate::domain::sandbox::SandboxRecord;
use crate::domain::text::last_lines;

/// How many lines of a patch's output are shown in a record.
const OUTPUT: usize = 20;

/// A snapshot by its id, and all that is known of it; of one that is gone the id alone.
pub(crate) type Known<'a> = (SnapshotId, Option<&'a SnapshotView>);

/// How each patch of a snapshot stands on a sandbox: from its record where that is known, else from what the view says.
pub(crate) fn standings(
    view: &SnapshotView,
    based: &BasedOn,
    record: Option<&SandboxRecord>,
) -> Vec<PatchState> {
    let of = |patch: &Patch| {
        let applied = record
            .map(|record| record.applied_patches.iter().find(|applied| applied.id == patch.id));
        match applied {
            Some(Some(applied)) => applied.state.clone(),
            Some(None) => PatchState::Pending,
            None if based.owes.contains(&patch.sequence) => PatchState::Pending,
            None if patch.sequence <= based.last_patch_sequence => PatchState::Applied,
            None => based.patch_state.clone(),
        }
    };
    view.patches.iter().map(of).collect()
}

/// Adds a sandbox's base with that one's ancestors (nearest first), its patches, and the snapshots that were taken of it; nothing
/// where there are none of these.
pub(crate) fn of_sandbox(
    document: &mut Document,
    record: &SandboxRecord,
    ancestors: &[Known<'_>],
    taken: &[Known<'_>],
    present: Present<'_>,
) {
    if ancestors.is_empty() && taken.is_empty() {
        return;
    }
    document.heading("Lineage");
    for (at, (id, view)) in ancestors.iter().enumerate() {
        let key = if at == 0 { "based on" } else { "and that on" };
        let name = view.and_then(|view| view.record.name.as_ref());
        let name = name.map(|name| format!("{name}  ")).unwrap_or_default();
        let gone = if view.is_some() { "" } else { "  (gone)" };
        document.plain(key, format!("{name}{id}{gone}"));
    }
    patches(document, record, ancestors.first().and_then(|(_, view)| *view));
    if !taken.is_empty() {
        document.heading("Snapshots taken of it");
    }
    for (id, view) in taken {
        snapshot::line(document, id.as_str(), *view, present);
    }
}

fn patches(document: &mut Document, record: &SandboxRecord, base: Option<&SnapshotView>) {
    let patches = base.map(|view| view.patches.as_slice()).unwrap_or_default();
    if patches.is_empty() && record.applied_patches.is_empty() {
        return;
    }
    let mine = base.and_then(|view| view.sandboxes.iter().find(|based| based.id == record.id));
    let state = mine.map_or(&record.patch_state, |mine| &mine.patch_state);
    document.signed("patches", (patch_glyph(state), patch_role(state)), state.as_str());
    // What the last pass found is over once the snapshot, or the patch, is gone.
    let error = record.patch_error.as_deref();
    document.maybe("", Role::Bad, error.filter(|_| mine.is_some() && *state == record.patch_state));
    for patch in patches {
        let run = record.applied_patches.iter().find(|applied| applied.id == patch.id);
        let about = patch.description.as_deref().unwrap_or("no description");
        one_patch(document, patch.sequence, about, run);
        let stopped = run.filter(|run| run.stopped());
        if let Some(output) = stopped.and_then(|run| run.output.as_deref()) {
            document.text(Role::Code, 18, last_lines(output, OUTPUT));
        }
    }
    // What one wrote that was taken away stands in nobody's way.
    let attached = |applied: &&AppliedPatch| patches.iter().any(|patch| patch.id == applied.id);
    for gone in record.applied_patches.iter().filter(|applied| !attached(applied)) {
        one_patch(document, gone.sequence, "no longer on the snapshot", Some(gone));
    }
}

fn one_patch(document: &mut Document, sequence: u64, about: &str, run: Option<&AppliedPatch>) {
    let state = run.map_or(&PatchState::Pending, |run| &run.state);
    let words = run_words(state, run);
    let sign = (patch_glyph(state), patch_role(state));
    document.signed("", sign, format!("{sequence}  {about}  {words}"));
}

/// `failed, exit 3, 1.2s`: how a patch stands on a sandbox, and how its run ended there.
pub(crate) fn run_words(state: &PatchState, run: Option<&AppliedPatch>) -> String {
    let status = exit(run.and_then(|run| run.exit_status).filter(|status| *status != 0));
    let ran = run.and_then(|run| run.took_ms);
    let ran = ran.map(|ms| format!(", {}", took(Duration::from_millis(ms)))).unwrap_or_default();
    format!("{}{status}{ran}", patch_words(state))
}

/// Adds what hangs on a snapshot, as the rows of its tree; `record_of` is a sandbox's record, where it is known.
pub(crate) fn below<'a>(
    document: &mut Document,
    rows: &[Node],
    record_of: impl Fn(&BasedOn) -> Option<&'a SandboxRecord>,
) {
    if rows.is_empty() {
        return document.text(Role::Dim, 2, "none");
    }
    for node in rows {
        match node.sandbox() {
            None => {
                let record = &node.view.record;
                let words = format!("{}  {}", titled(record), state_words(record));
                let sign = (snapshot_glyph(&record.state), snapshot_role(record));
                document.branch(&node.branch, sign, [(Role::Plain, words)]);
            }
            Some(based) => {
                let (sign, spans) = based_line(node, based, record_of(based));
                document.branch(&node.branch, sign, spans);
                let error = based.patch_error.as_ref();
                if let Some(error) = error.filter(|_| is_blocked(based)) {
                    document.text(Role::Bad, 6, error);
                }
            }
        }
    }
}

fn based_line(
    node: &Node,
    based: &BasedOn,
    record: Option<&SandboxRecord>,
) -> ((char, Role), Spans) {
    let state = record.map_or(&based.state, |record| &record.state);
    let name = based.name.as_ref().map(|name| format!("  {name}")).unwrap_or_default();
    let mut spans =
        vec![(Role::Title, based.id.to_string()), (Role::Plain, format!("{name}  {state}  "))];
    let states = standings(&node.view, based, record);
    spans.extend(states.iter().map(|state| (patch_role(state), patch_glyph(state).to_string())));
    if !states.is_empty() {
        spans.push((Role::Dim, format!("  patches {}", based.patch_state)));
    }
    ((state_glyph(state), state_role(state)), spans)
}

/// Whether a patch that is still on the snapshot keeps those behind it from a sandbox. Its record tells of one that was taken
/// away until the next wake.
pub(crate) fn is_blocked(based: &BasedOn) -> bool {
    matches!(based.patch_state, PatchState::Failed | PatchState::Unknown)
}

/// The ancestors of a sandbox by what is known of all snapshots, nearest first. One that is gone ends the line.
pub(crate) fn ancestors<'a>(
    record: &SandboxRecord,
    known: impl Fn(&SnapshotId) -> Option<&'a Arc<SnapshotView>>,
) -> Vec<Known<'a>> {
    let mut found: Vec<Known<'a>> = Vec::new();
    let mut next = record.based_on_snapshot.clone();
    while let Some(id) = next.take().filter(|id| found.iter().all(|(seen, _)| seen != id)) {
        let view = known(&id).map(|view| &**view);
        next = view.and_then(|view| view.record.parent_snapshot.clone());
        found.push((id, view));
    }
    found
}
