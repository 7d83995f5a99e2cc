//! Snapshot: the columns of its table, what to know of it before one trusts it, and its record to be read.

use super::count::many;
use super::document::Document;
use super::failure;
use super::moment::Present;
use super::role::Role;
use super::sandbox::running_words;
use super::sign::{snapshot_glyph, snapshot_role};
use super::table::{Column, or_nothing};
use crate::domain::figures::{age_of, bytes};
use crate::domain::lineage::SnapshotView;
use crate::domain::name::HostName;
use crate::domain::request::{PruneItem, counted};
use crate::domain::snapshot::{
    Consistency, Replica, ReplicaState, SnapshotKind, SnapshotRecord, SnapshotState,
};
use crate::domain::text::plural;

/// How many paths are listed.
const PATHS: usize = 10;

pub(crate) const ID: Column<SnapshotView> =
    Column::whole("ID", |view, _| view.record.id.to_string());
pub(crate) const NAME: Column<SnapshotView> =
    Column::new("NAME", |view, _| or_nothing(view.record.name.as_ref()));
/// The state and what qualifies it.
pub(crate) const STATE: Column<SnapshotView> =
    Column::whole("STATE", |view, _| state_words(&view.record));
/// The sandbox it was taken of.
pub(crate) const OF: Column<SnapshotView> = Column::new("OF", |view, _| {
    let record = &view.record;
    record.sandbox_name.clone().unwrap_or_else(|| record.sandbox_id.to_string())
});
/// The host of its archive, and how many copies are elsewhere. Of one that goes: who still has something of it.
pub(crate) const HOST: Column<SnapshotView> = Column::new("HOST", |view, _| {
    let record = &view.record;
    let mut hosts: Vec<&HostName> = record.hosts().collect();
    if hosts.is_empty() {
        hosts.extend(record.replicas.iter().map(|replica| &replica.host));
    }
    let first = hosts.iter().find(|host| host.same(record.host.as_str())).or(hosts.first());
    let first = first.map_or(&record.host, |host| *host);
    match hosts.len().saturating_sub(1) {
        0 => first.to_string(),
        more => format!("{first} +{more}"),
    }
});
/// The archive's size.
pub(crate) const SIZE: Column<SnapshotView> =
    Column::whole("SIZE", |view, _| or_nothing(view.record.archive.bytes.map(bytes)));
pub(crate) const AGE: Column<SnapshotView> =
    Column::whole("AGE", |view, now| age_of(view.record.created_at, now));
/// How many patches are on it.
pub(crate) const PATCHES: Column<SnapshotView> =
    Column::whole("PATCHES", |view, _| view.patches.len().to_string());
/// How many sandboxes are based on it.
pub(crate) const BASED: Column<SnapshotView> =
    Column::whole("BASED ON IT", |view, _| view.sandboxes.len().to_string());

/// `my-env (snap-00000001)`, or the id alone.
pub(crate) fn titled(record: &SnapshotRecord) -> String {
    match &record.name {
        Some(name) => format!("{name} ({})", record.id),
        None => record.id.to_string(),
    }
}

/// The state and what qualifies it: `ready, undo`, `ready, damaged on sandboxer01`.
pub(crate) fn state_words(record: &SnapshotRecord) -> String {
    let mut words = vec![record.state.to_string()];
    if record.kind == SnapshotKind::Undo {
        words.push("undo".to_owned());
    }
    if let Some(running) = &record.operation
        && !matches!(record.state, SnapshotState::Creating | SnapshotState::Deleting)
    {
        words.push(running.kind.to_string());
    }
    words.extend(record.replica_words());
    words.join(", ")
}

/// Doubts on a snapshot, to be known before one trusts it; nothing where all is well.
pub(crate) fn caveats(record: &SnapshotRecord) -> Vec<String> {
    let archive = &record.archive;
    if record.state != SnapshotState::Ready {
        return Vec::new();
    }
    let mut words: Vec<String> =
        record.damaged().map(|replica| format!("archive damaged on {}", replica.host)).collect();
    if archive.consistency == Some(Consistency::Fuzzy) {
        words.push("files changed while it was read".to_owned());
    }
    match archive.not_captured.as_slice() {
        [] => {}
        [only] => words.push(format!("volume {} is not in it", only.name)),
        several => words.push(format!("{} volumes are not in it", several.len())),
    }
    if !archive.not_preserved.is_empty() {
        words.push(format!("not preserved: {}", counted(&archive.not_preserved)));
    }
    words
}

/// Adds its record: how it is, what it is, and why it failed. `work` is what is being done with it, where the face knows better
/// than the record.
pub(crate) fn overview(
    document: &mut Document,
    record: &SnapshotRecord,
    present: Present<'_>,
    work: Option<String>,
) {
    let sign = (snapshot_glyph(&record.state), snapshot_role(record));
    document.signed("state", sign, state_words(record));
    let caveats = caveats(record).join("; ");
    if !caveats.is_empty() {
        document.signed("", ('⚠', Role::Warn), caveats);
    }
    document.maybe("message", Role::Plain, record.message.as_deref());
    let running = || record.operation.as_ref().map(|it| running_words(it, present.now));
    document.maybe("operation", Role::Busy, work.or_else(running));
    document.plain("id", &record.id);
    document.maybe("name", Role::Plain, record.name.as_deref());
    let source = record.sandbox_name.as_ref().map(|name| format!("{name} ")).unwrap_or_default();
    document.plain("of", format!("{source}{}", record.sandbox_id));
    let level = record.patch_level;
    let parent = record.parent_snapshot.as_ref();
    let parent = parent.map(|parent| format!("{parent}, with its patches up to {level}"));
    document.maybe("parent", Role::Plain, parent);
    document.plain("profile", format!("{} {}", record.profile.id, record.profile.version));
    document.plain("extension", &record.extension);
    document.plain("host", &record.host);
    for replica in &record.replicas {
        let role = replica_role(&replica.state);
        document.pair("archive", role, replica_words(replica));
        document.maybe("", role, replica.message.as_deref());
    }
    document.plain("created", format!("{} by {}", present.ago(record.created_at), record.actor));
    document.maybe("expires", Role::Plain, record.expires_at.map(|end| present.date(end)));
    document.maybe("verified", Role::Good, record.verified_at.map(|time| present.ago(time)));
    for (key, value) in &record.labels {
        let role = if key == "protect" { Role::Warn } else { Role::Plain };
        document.pair("label", role, format!("{key}={value}"));
    }
    if let Some(failed) = &record.failure {
        let told = record.message.as_deref();
        failure::section(document, failed, told.as_slice());
    }
}

fn replica_role(state: &ReplicaState) -> Role {
    match state {
        ReplicaState::Ready => Role::Plain,
        ReplicaState::Damaged => Role::Bad,
        ReplicaState::Arriving | ReplicaState::Removing | ReplicaState::Other(_) => Role::Busy,
    }
}

/// `sandboxer01, ready, 802B, /srv/snapshots/snap-00000001`.
fn replica_words(replica: &Replica) -> String {
    let words = [replica.bytes.map(bytes), replica.path.clone()];
    let start = format!("{}, {}", replica.host, replica.state);
    words.into_iter().flatten().fold(start, |text, word| format!("{text}, {word}"))
}

/// Adds its patches.
pub(crate) fn patches(document: &mut Document, view: &SnapshotView) {
    document.heading("Patches");
    if view.patches.is_empty() {
        let next = view.record.next_patch_sequence;
        document.text(Role::Dim, 2, format!("none; the next one is number {next}"));
    }
    for patch in &view.patches {
        let about = patch.description.as_deref().unwrap_or("no description");
        let lines = many(patch.script.lines().count(), "line", "lines");
        let (run_in, id, actor) = (&patch.run_in, &patch.id, &patch.actor);
        let text = format!("{about}  (in {run_in}, {lines}, {id}, by {actor})");
        document.plain(&patch.sequence.to_string(), text);
    }
}

/// Adds what is known of its archive.
pub(crate) fn archive(document: &mut Document, record: &SnapshotRecord, present: Present<'_>) {
    let facts = &record.archive;
    document.heading("Archive");
    let format = facts.format.as_ref().map(|format| format!(" as {format}")).unwrap_or_default();
    let inside = facts.content_bytes.map(|count| format!(", {} inside", bytes(count)));
    let entries = facts.files.map(|files| format!(", {}", plural(files, "entry", "entries")));
    let (inside, entries) = (inside.unwrap_or_default(), entries.unwrap_or_default());
    let size = facts.bytes.map(|size| format!("{}{format}{inside}{entries}", bytes(size)));
    document.maybe("size", Role::Plain, size);
    document.maybe("sha256", Role::Plain, facts.sha256.as_deref());
    let mode = facts.mode.as_ref().map(|mode| match &facts.consistency {
        Some(consistency) => format!("{mode}, {consistency}"),
        None => mode.to_string(),
    });
    document.maybe("mode", Role::Plain, mode);
    for volume in &facts.captured_volumes {
        document.pair("volume", Role::Good, &volume.name);
    }
    for volume in &facts.not_captured {
        document.pair("not captured", Role::Warn, format!("{}: {}", volume.name, volume.reason));
    }
    for remark in &facts.remarks {
        document.pair("remark", Role::Warn, remark);
    }
    if !facts.not_preserved.is_empty() {
        document.pair("not preserved", Role::Warn, counted(&facts.not_preserved));
    }
    if facts.left_out_count > 0 {
        let text = format!("{} sockets and device nodes", facts.left_out_count);
        document.pair("left out", Role::Warn, text);
        for path in facts.left_out.iter().take(PATHS) {
            document.pair("", Role::Dim, path);
        }
    }
    if facts.foreign_owners > 0 {
        document.plain("owners", format!("{} entries of other accounts", facts.foreign_owners));
    }
    for pattern in &facts.excludes {
        document.pair("excluded", Role::Dim, pattern);
    }
    for (service, image) in &facts.images {
        document.pair("image", Role::Dim, format!("{service} {image}"));
    }
    if !record.inputs.is_empty() {
        document.heading("Inputs of its sandbox");
    }
    for (name, value) in &record.inputs {
        document.plain(name, value);
    }
    if record.state == SnapshotState::Ready && record.verified_at.is_none() {
        let old = age_of(record.created_at, present.now);
        let verify = format!("`sandboxer snapshots verify {}`", record.id);
        document.gap();
        document.text(
            Role::Dim,
            2,
            format!("not read again since it was made {old} ago: {verify}"),
        );
    }
}

/// Adds a line about a snapshot, of which only the id is known where it is gone.
pub(crate) fn line(
    document: &mut Document,
    id: &str,
    view: Option<&SnapshotView>,
    present: Present<'_>,
) {
    let Some(view) = view else { return document.pair("", Role::Dim, id) };
    let record = &view.record;
    let name = record.name.as_ref().map(|name| format!("{name}  ")).unwrap_or_default();
    let size = record.archive.bytes.map(|size| format!("  {}", bytes(size))).unwrap_or_default();
    let text = format!("{name}{id}{size}  {} old", age_of(record.created_at, present.now));
    let sign = (snapshot_glyph(&record.state), snapshot_role(record));
    document.line(sign, [(Role::Plain, text)]);
}

/// Line on a snapshot that a prune deleted, would delete, or left.
pub(crate) fn pruned(item: &PruneItem, dry_run: bool) -> String {
    let name = item.name.as_deref().map(|name| format!(" {name}")).unwrap_or_default();
    let size = item.bytes.filter(|_| item.ok).map(|size| format!(" {}", bytes(size)));
    let kept = item.reason.strip_prefix("kept, ");
    let verb = match kept {
        _ if item.ok => gone(dry_run),
        Some(_) => "kept",
        None => "skipped",
    };
    let (size, reason) = (size.unwrap_or_default(), kept.unwrap_or(&item.reason));
    format!("{verb} {}{name}{size}: {reason}", item.id)
}

/// `deleted 2 snapshots, 1.2G`; none where nothing goes of what is old.
pub(crate) fn pruned_sum(items: &[PruneItem], dry_run: bool) -> Option<String> {
    let going: Vec<_> = items.iter().filter(|item| item.ok).collect();
    let freed: u64 = going.iter().filter_map(|item| item.bytes).sum();
    match going.len() {
        0 if items.is_empty() => Some("no snapshot is that old: nothing to do".to_owned()),
        0 => None,
        count => {
            let snapshots = many(count, "snapshot", "snapshots");
            Some(format!("{} {snapshots}, {}", gone(dry_run), bytes(freed)))
        }
    }
}

fn gone(dry_run: bool) -> &'static str {
    if dry_run { "would delete" } else { "deleted" }
}
