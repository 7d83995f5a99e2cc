//! Where a sandbox comes from and what was made of it, and a snapshot's whole record, as text to be read.

use std::sync::Arc;
use std::time::Duration;

use super::failure;
use super::jobs::Jobs;
use super::sandboxes::Sandboxes;
use super::snapshots::{Snapshots, caveat, snapshot_glyph, standings};
use super::text_block::{Role, TextBlock};
use super::words::{Present, date, many, patch_glyph, patch_role, state_glyph, state_role};
use crate::domain::Time;
use crate::domain::figures::{age, bytes, took};
use crate::domain::lineage::SnapshotView;
use crate::domain::name::SnapshotId;
use crate::domain::patch::{AppliedPatch, PatchState};
use crate::domain::request::counted;
use crate::domain::sandbox::SandboxRecord;
use crate::domain::snapshot::{SnapshotRecord, SnapshotState};
use crate::domain::text::last_lines;

/// How many lines of a patch's output are shown in a record.
const OUTPUT: usize = 20;
/// How many paths are listed.
const PATHS: usize = 10;

/// One snapshot's whole record.
#[derive(Debug, Clone)]
pub struct SnapshotDetails {
    /// As it was read last; it stays when the snapshot is gone.
    pub view: Arc<SnapshotView>,
    /// The first line on the screen.
    pub offset: usize,
}

impl SnapshotDetails {
    /// The record as lines of a width.
    pub fn block(
        &self,
        width: usize,
        present: Present<'_>,
        jobs: &Jobs,
        all: &Snapshots,
        sandboxes: &Sandboxes,
    ) -> TextBlock {
        let mut block = TextBlock::new(width);
        let (view, now) = (self.view.as_ref(), present.now);
        overview(&mut block, view, present, jobs);
        if let Some(failed) = &view.record.failure {
            failure::section(&mut block, failed);
        }
        based(&mut block, view, sandboxes);
        patches(&mut block, view);
        if !view.children.is_empty() {
            block.heading("Snapshots taken of its sandboxes");
            for id in &view.children {
                snapshot_line(&mut block, id, all, now);
            }
        }
        archive(&mut block, &view.record, now);
        block
    }
}

fn overview(block: &mut TextBlock, view: &SnapshotView, present: Present<'_>, jobs: &Jobs) {
    let now = present.now;
    let record = &view.record;
    let role = match record.state {
        SnapshotState::Ready if record.is_lost() => Role::Bad,
        SnapshotState::Ready => Role::Good,
        SnapshotState::Failed => Role::Bad,
        SnapshotState::Creating | SnapshotState::Deleting | SnapshotState::Other(_) => Role::Busy,
    };
    block.pair("state", role, &format!("{} {}", snapshot_glyph(&record.state), record.state));
    block.maybe("", Role::Warn, caveat(view).map(|words| format!("⚠ {words}")));
    block.maybe("message", Role::Plain, record.message.as_deref());
    if let Some(job) = jobs.of_snapshot(&record.id) {
        let stage = job
            .stage
            .as_ref()
            .map(|(stage, step, steps)| format!(" {step}/{steps} {stage}"))
            .unwrap_or_default();
        let moved = job.moved().map(|moved| format!(", {}", bytes(moved))).unwrap_or_default();
        block.pair("operation", Role::Busy, &format!("{}{stage}{moved}", job.kind));
    } else if let Some(running) = &record.operation {
        let since = age(now.since(running.started_at).as_secs());
        let who = format!("by {} in process {} on {}", running.actor, running.pid, running.host);
        block.pair("operation", Role::Busy, &format!("{} for {since}, {who}", running.kind));
    }
    block.pair("id", Role::Plain, record.id.as_str());
    block.maybe("name", Role::Plain, record.name.as_deref());
    block.pair("kind", Role::Plain, record.kind.as_str());
    let source = record.sandbox_name.as_ref().map(|name| format!(" {name}")).unwrap_or_default();
    block.pair("taken of", Role::Plain, &format!("{}{source}", record.sandbox_id));
    block.maybe(
        "parent",
        Role::Plain,
        record
            .parent_snapshot
            .as_ref()
            .map(|parent| format!("{parent}, with its patches up to {}", record.patch_level)),
    );
    block.pair(
        "profile",
        Role::Plain,
        &format!("{} {}", record.profile.id, record.profile.version),
    );
    block.pair("extension", Role::Plain, record.extension.as_str());
    block.pair("host", Role::Plain, record.host.as_str());
    block.maybe("path", Role::Code, record.path.as_deref());
    for replica in &record.replicas {
        block.pair(
            "copy",
            Role::Plain,
            &format!("{} {} ({})", replica.host, replica.path, bytes(replica.bytes)),
        );
    }
    block.pair(
        "created",
        Role::Plain,
        &format!("{} by {}", present.ago(record.created_at), record.actor),
    );
    block.maybe("expires", Role::Plain, record.expires_at.map(|end| date(end, present.zone)));
    block.maybe("verified", Role::Good, record.verified_at.map(|time| present.ago(time)));
    for damage in &record.damage {
        block.pair(
            "damaged",
            Role::Bad,
            &format!("{}, found {}", damage.message, present.ago(damage.found_at)),
        );
    }
    for (key, value) in &record.labels {
        block.pair(
            "label",
            if key == "protect" { Role::Warn } else { Role::Plain },
            &format!("{key}={value}"),
        );
    }
}

fn based(block: &mut TextBlock, view: &SnapshotView, sandboxes: &Sandboxes) {
    block.heading("Sandboxes based on it");
    if view.sandboxes.is_empty() {
        block.text(Role::Dim, 2, "none");
    }
    for sandbox in &view.sandboxes {
        let record = sandboxes.get(&sandbox.id).map(|entry| &*entry.record);
        let state = record.map_or(&sandbox.state, |record| &record.state);
        let name = sandbox.name.as_deref().unwrap_or("—");
        let mut spans = vec![
            (state_role(state), format!("  {} ", state_glyph(state))),
            (Role::Title, sandbox.id.to_string()),
            (Role::Plain, format!("  {name}  {state}  ")),
        ];
        for state in standings(view, sandbox, record) {
            spans.push((patch_role(&state), patch_glyph(&state).to_string()));
        }
        block.spans(spans);
        if let Some(error) = &sandbox.patch_error {
            block.text(Role::Bad, 6, error);
        }
    }
}

fn patches(block: &mut TextBlock, view: &SnapshotView) {
    block.heading("Patches");
    if view.patches.is_empty() {
        block.text(
            Role::Dim,
            2,
            &format!("none; the next one is number {}", view.record.next_patch_sequence),
        );
    }
    for patch in &view.patches {
        let about = patch.description.as_deref().unwrap_or("no description");
        let lines = many(patch.script.lines().count(), "line", "lines");
        let text =
            format!("{about}  (in {}, {lines}, {}, by {})", patch.run_in, patch.id, patch.actor);
        block.pair(&patch.sequence.to_string(), Role::Plain, &text);
    }
}

fn archive(block: &mut TextBlock, record: &SnapshotRecord, now: Time) {
    let facts = &record.archive;
    block.heading("Archive");
    let format = facts.format.as_ref().map(|format| format!(" as {format}")).unwrap_or_default();
    block.maybe("size", Role::Plain, facts.bytes.map(|size| format!("{}{format}", bytes(size))));
    block.maybe("content", Role::Plain, facts.content_bytes.map(bytes));
    block.maybe("entries", Role::Plain, facts.files.map(|files| files.to_string()));
    block.maybe("sha256", Role::Plain, facts.sha256.as_deref());
    block.maybe("mode", Role::Plain, facts.mode.as_ref().map(ToString::to_string));
    block.maybe("consistency", Role::Plain, facts.consistency.as_ref().map(ToString::to_string));
    for volume in &facts.captured_volumes {
        block.pair("volume", Role::Good, &volume.name);
    }
    for volume in &facts.not_captured {
        block.pair("not captured", Role::Warn, &format!("{}: {}", volume.name, volume.reason));
    }
    for remark in &facts.remarks {
        block.pair("remark", Role::Warn, remark);
    }
    if !facts.not_preserved.is_empty() {
        block.pair("not preserved", Role::Warn, &counted(&facts.not_preserved));
    }
    if facts.left_out_count > 0 {
        let text = format!("{} sockets and device nodes", facts.left_out_count);
        block.pair("left out", Role::Warn, &text);
        for path in facts.left_out.iter().take(PATHS) {
            block.pair("", Role::Dim, path);
        }
    }
    if facts.foreign_owners > 0 {
        block.pair(
            "owners",
            Role::Plain,
            &format!("{} entries of other accounts", facts.foreign_owners),
        );
    }
    for pattern in &facts.excludes {
        block.pair("excluded", Role::Dim, pattern);
    }
    for (service, image) in &facts.images {
        block.pair("image", Role::Dim, &format!("{service} {image}"));
    }
    if !record.inputs.is_empty() {
        block.heading("Inputs of its sandbox");
        for (name, value) in &record.inputs {
            block.pair(name, Role::Plain, value);
        }
    }
    if record.state == SnapshotState::Ready && record.verified_at.is_none() {
        block.gap();
        let old = age(now.since(record.created_at).as_secs());
        let text = format!(
            "not read again since it was made {old} ago: `sandboxer snapshots verify {}`",
            record.id
        );
        block.text(Role::Dim, 2, &text);
    }
}

fn snapshot_line(block: &mut TextBlock, id: &SnapshotId, all: &Snapshots, now: Time) {
    let Some(view) = all.get(id) else { return block.pair("", Role::Dim, id.as_str()) };
    let record = &view.record;
    let name = record.name.as_ref().map(|name| format!("{name}  ")).unwrap_or_default();
    let size = record.archive.bytes.map(|size| format!("  {}", bytes(size))).unwrap_or_default();
    let text = format!("{name}{id}{size}  {} old", age(now.since(record.created_at).as_secs()));
    let role = if record.state == SnapshotState::Failed { Role::Bad } else { Role::Good };
    block.spans([(role, format!("  {} ", snapshot_glyph(&record.state))), (Role::Plain, text)]);
}

/// Adds a sandbox's base, its patches, and the snapshots that were taken of it; nothing where there are none of these.
pub(super) fn of_sandbox(
    block: &mut TextBlock,
    record: &SandboxRecord,
    all: &Snapshots,
    now: Time,
) {
    let taken: Vec<&Arc<SnapshotView>> = all.taken_of(&record.id).collect();
    if record.based_on_snapshot.is_none() && taken.is_empty() {
        return;
    }
    block.heading("Lineage");
    let mut next = record.based_on_snapshot.clone();
    let mut seen = Vec::new();
    while let Some(id) = next.take().filter(|id| !seen.contains(id)) {
        let view = all.get(&id);
        let key = if seen.is_empty() { "based on" } else { "and that on" };
        let name = view
            .and_then(|view| view.record.name.as_ref())
            .map(|name| format!("{name}  "))
            .unwrap_or_default();
        let gone = if view.is_some() { "" } else { "  (gone)" };
        block.pair(key, Role::Plain, &format!("{name}{id}{gone}"));
        next = view.and_then(|view| view.record.parent_snapshot.clone());
        seen.push(id);
    }
    applied(block, record, all);
    if !taken.is_empty() {
        block.heading("Snapshots taken of it");
        for view in taken {
            snapshot_line(block, &view.record.id, all, now);
        }
    }
}

fn applied(block: &mut TextBlock, record: &SandboxRecord, all: &Snapshots) {
    let base = all.of_sandbox(&record.id);
    let patches = base.map(|(view, _)| view.patches.as_slice()).unwrap_or_default();
    if patches.is_empty() && record.applied_patches.is_empty() {
        return;
    }
    let state = base.map_or(&record.patch_state, |(_, based)| &based.patch_state);
    block.pair("patches", patch_role(state), &format!("{} {state}", patch_glyph(state)));
    // What the last pass found is over once the snapshot, or the patch, is gone.
    let error =
        record.patch_error.as_deref().filter(|_| base.is_some() && *state == record.patch_state);
    block.maybe("", Role::Bad, error);
    for patch in patches {
        let run = record.applied_patches.iter().find(|applied| applied.id == patch.id);
        let about = patch.description.as_deref().unwrap_or("no description");
        one_patch(block, patch.sequence, about, run);
    }
    let attached = |applied: &&AppliedPatch| patches.iter().any(|patch| patch.id == applied.id);
    for gone in record.applied_patches.iter().filter(|applied| !attached(applied)) {
        one_patch(block, gone.sequence, "no longer on the snapshot", Some(gone));
    }
}

fn one_patch(block: &mut TextBlock, sequence: u64, about: &str, run: Option<&AppliedPatch>) {
    let state = run.map_or(PatchState::Pending, |run| run.state.clone());
    let mut text = format!("{} {sequence}  {about}  {}", patch_glyph(&state), patch_words(&state));
    if let Some(status) = run.and_then(|run| run.exit_status).filter(|status| *status != 0) {
        text = format!("{text}, exit {status}");
    }
    if let Some(ran) = run.and_then(|run| run.took_ms) {
        text = format!("{text}, {}", took(Duration::from_millis(ran)));
    }
    block.pair("", patch_role(&state), &text);
    let failed = run.filter(|_| matches!(state, PatchState::Failed | PatchState::Unknown));
    if let Some(output) = failed.and_then(|run| run.output.as_deref()) {
        block.text(Role::Code, 18, &last_lines(output, OUTPUT));
    }
}

/// A patch's state on a sandbox, in words.
pub fn patch_words(state: &PatchState) -> &'static str {
    match state {
        PatchState::Pending => "on the next wake",
        PatchState::Applying => "being applied",
        PatchState::Applied => "applied",
        PatchState::Failed => "failed",
        PatchState::Unknown => "nobody knows whether it ran",
        PatchState::None | PatchState::Other(_) => "",
    }
}
