//! A snapshot in words: its row, its block, and the tree of what hangs on it.

use std::collections::HashSet;
use std::fmt::Write as _;
use std::sync::Arc;

use super::super::output::{CliError, Context, OutputOptions, Tone};
use super::super::table::Line;
use crate::domain::Time;
use crate::domain::figures::{age_of, bytes};
use crate::domain::lineage::{BasedOn, SnapshotView};
use crate::domain::patch::PatchState;
use crate::domain::request::counted;
use crate::domain::snapshot::{SnapshotKind, SnapshotRecord, SnapshotState};
use crate::domain::text::plural;

/// Paths of what was left out that are shown; `--json` has all that are kept.
const LEFT_OUT: usize = 5;

/// `my-env (snap-00000001)`, or the id alone.
pub(super) fn titled(record: &SnapshotRecord) -> String {
    match &record.name {
        Some(name) => format!("{name} ({})", record.id),
        None => record.id.to_string(),
    }
}

/// The row of `snapshots list`.
pub(super) fn row(view: &SnapshotView, now: Time) -> Line {
    let record = &view.record;
    let tone = match record.state {
        SnapshotState::Failed => Tone::Bad,
        SnapshotState::Creating | SnapshotState::Deleting => Tone::Busy,
        _ if record.is_lost() => Tone::Bad,
        _ if !record.damage.is_empty() => Tone::Busy,
        SnapshotState::Ready | SnapshotState::Other(_) => Tone::Plain,
    };
    let copies = match record.replicas.len() {
        0 => String::new(),
        more => format!(" +{more}"),
    };
    let cells = vec![
        record.id.to_string(),
        record.name.clone().unwrap_or_else(|| "-".to_owned()),
        state(record),
        record.sandbox_name.clone().unwrap_or_else(|| record.sandbox_id.to_string()),
        format!("{}{copies}", record.host),
        record.archive.bytes.map_or_else(|| "-".to_owned(), bytes),
        age_of(record.created_at, now),
        view.patches.len().to_string(),
        view.sandboxes.len().to_string(),
    ];
    Line { tone, cells }
}

/// The state and what qualifies it.
fn state(record: &SnapshotRecord) -> String {
    let mut words = vec![record.state.to_string()];
    if record.kind == SnapshotKind::Undo {
        words.push("undo".to_owned());
    }
    if let Some(running) = &record.operation
        && !matches!(record.state, SnapshotState::Creating | SnapshotState::Deleting)
    {
        words.push(running.kind.to_string());
    }
    if record.state == SnapshotState::Ready {
        words.extend(record.damage_words());
    }
    if record.unremoved {
        words.push("not removed".to_owned());
    }
    words.join(", ")
}

/// Names and values of a record.
pub(super) fn fields(record: &SnapshotRecord, now: Time) -> Vec<(&'static str, String)> {
    let archive = &record.archive;
    let mut fields = vec![("id", record.id.to_string())];
    let mut add =
        |key: &'static str, value: Option<String>| fields.extend(value.map(|value| (key, value)));
    let when = |time: Time| format!("{time} ({} ago)", age_of(time, now));
    add("name", record.name.clone());
    add("state", Some(state(record)));
    add("message", record.message.clone());
    add(
        "of",
        Some(match &record.sandbox_name {
            Some(name) => format!("{name} ({})", record.sandbox_id),
            None => record.sandbox_id.to_string(),
        }),
    );
    add(
        "parent",
        record
            .parent_snapshot
            .as_ref()
            .map(|id| format!("{id}, with its patches up to {}", record.patch_level)),
    );
    add("profile", Some(format!("{} {}", record.profile.id, record.profile.version)));
    add("host", Some(record.host.to_string()));
    add("path", record.path.clone());
    add("created", Some(when(record.created_at)));
    add("expires", record.expires_at.map(|end| end.to_string()));
    add("verified", record.verified_at.map(when));
    for damage in &record.damage {
        add("damaged", Some(format!("{}, found {}", damage.message, when(damage.found_at))));
    }
    add(
        "size",
        archive.bytes.map(|size| {
            let content = archive
                .content_bytes
                .map(|count| format!(", {} inside", bytes(count)))
                .unwrap_or_default();
            let files = archive
                .files
                .map(|files| format!(", {}", plural(files, "entry", "entries")))
                .unwrap_or_default();
            format!("{}{content}{files}", bytes(size))
        }),
    );
    add("format", archive.format.as_ref().map(ToString::to_string));
    add("sha256", archive.sha256.clone());
    add(
        "mode",
        archive.mode.as_ref().map(|mode| match &archive.consistency {
            Some(consistency) => format!("{mode}, {consistency}"),
            None => mode.to_string(),
        }),
    );
    let captured: Vec<_> =
        archive.captured_volumes.iter().map(|volume| volume.name.as_str()).collect();
    add("volumes", (!captured.is_empty()).then(|| captured.join(", ")));
    for volume in &archive.not_captured {
        add("not in it", Some(format!("volume {}: {}", volume.name, volume.reason)));
    }
    for remark in &archive.remarks {
        add("remark", Some(remark.clone()));
    }
    for path in archive.left_out.iter().take(LEFT_OUT) {
        add("left out", Some(path.clone()));
    }
    let more = archive.left_out_count.saturating_sub(archive.left_out.len().min(LEFT_OUT) as u64);
    add("left out", (more > 0).then(|| format!("{more} more sockets and devices")));
    add("not kept", (!archive.not_preserved.is_empty()).then(|| counted(&archive.not_preserved)));
    for copy in &record.replicas {
        add(
            "copy",
            Some(format!(
                "{}, {}, {} old",
                copy.host,
                bytes(copy.bytes),
                age_of(copy.created_at, now)
            )),
        );
    }
    add("copying to", record.copying_to.as_ref().map(ToString::to_string));
    for (key, value) in &record.labels {
        add("label", Some(format!("{key}={value}")));
    }
    fields
}

/// Prints one snapshot, its patches, and the tree of what hangs on it.
pub(super) fn print(
    context: &mut Context<'_>,
    view: &SnapshotView,
    all: &[Arc<SnapshotView>],
) -> Result<(), CliError> {
    super::show(context, &view.record)?;
    if view.patches.is_empty() && view.sandboxes.is_empty() && view.children.is_empty() {
        return Ok(());
    }
    context.line("")?;
    let mut tree = Tree { all, options: context.options, lines: Vec::new(), seen: HashSet::new() };
    tree.lines.push(titled(&view.record));
    tree.below(view, "");
    for line in tree.lines {
        context.line(&context.options.clean(&line, 1000))?;
    }
    Ok(())
}

/// Draws snapshot → sandboxes based on it → snapshots taken of those, and so on.
struct Tree<'a> {
    all: &'a [Arc<SnapshotView>],
    options: OutputOptions,
    lines: Vec<String>,
    /// Snapshots that are drawn: a record that names itself as its ancestor must not draw for ever.
    seen: HashSet<String>,
}

/// What stands below a snapshot or a sandbox.
enum Branch<'a> {
    Text(String),
    Sandbox(String, Vec<&'a SnapshotView>),
    Snapshot(&'a SnapshotView),
}

impl Tree<'_> {
    fn below(&mut self, view: &SnapshotView, indent: &str) {
        if !self.seen.insert(view.record.id.to_string()) {
            return;
        }
        let all = self.all;
        let mut branches: Vec<_> = view
            .patches
            .iter()
            .map(|patch| {
                let what = patch
                    .description
                    .as_deref()
                    .map(|text| format!("  {text}"))
                    .unwrap_or_default();
                Branch::Text(format!(
                    "patch {}  {}  in {}{what}",
                    patch.sequence, patch.id, patch.run_in
                ))
            })
            .collect();
        let children: Vec<&SnapshotView> = view
            .children
            .iter()
            .filter_map(|id| all.iter().find(|one| one.record.id == *id))
            .map(|one| &**one)
            .collect();
        for sandbox in &view.sandboxes {
            let taken = children
                .iter()
                .copied()
                .filter(|child| child.record.sandbox_id == sandbox.id)
                .collect();
            branches.push(Branch::Sandbox(sandbox_line(sandbox), taken));
        }
        // Taken of sandboxes that are over.
        let alone = |child: &&&SnapshotView| {
            view.sandboxes.iter().all(|one| one.id != child.record.sandbox_id)
        };
        branches.extend(children.iter().filter(alone).map(|child| Branch::Snapshot(child)));
        self.branches(branches, indent);
    }

    fn branches(&mut self, branches: Vec<Branch<'_>>, indent: &str) {
        let (fork, last, bar) = if self.options.ascii {
            ("|- ", "`- ", "|  ")
        } else {
            ("├─ ", "└─ ", "│  ")
        };
        let count = branches.len();
        for (at, branch) in branches.into_iter().enumerate() {
            let ends = at + 1 == count;
            let stem = format!("{indent}{}", if ends { last } else { fork });
            let deeper = format!("{indent}{}", if ends { "   " } else { bar });
            match branch {
                Branch::Text(text) => self.lines.push(format!("{stem}{text}")),
                Branch::Sandbox(text, taken) => {
                    self.lines.push(format!("{stem}{text}"));
                    self.branches(taken.into_iter().map(Branch::Snapshot).collect(), &deeper);
                }
                Branch::Snapshot(view) => {
                    self.lines.push(format!(
                        "{stem}snapshot {}  {}",
                        titled(&view.record),
                        state(&view.record)
                    ));
                    self.below(view, &deeper);
                }
            }
        }
    }
}

/// `sandbox try (a1b2c3d4)  ready  patches pending, level 2, owes 3`.
fn sandbox_line(sandbox: &BasedOn) -> String {
    let title = match &sandbox.name {
        Some(name) => format!("{name} ({})", sandbox.id),
        None => sandbox.id.to_string(),
    };
    let mut text = format!("sandbox {title}  {}", sandbox.state);
    if sandbox.patch_state != PatchState::None {
        let _ = write!(text, "  patches {}", sandbox.patch_state);
    }
    if sandbox.last_patch_sequence > 0 {
        let _ = write!(text, ", level {}", sandbox.last_patch_sequence);
    }
    if !sandbox.owes.is_empty() {
        let owes: Vec<_> = sandbox.owes.iter().map(ToString::to_string).collect();
        let _ = write!(text, ", owes {}", owes.join(", "));
    }
    text
}
