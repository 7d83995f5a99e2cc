//! Forms that are opened, each on what is pointed at or marked; what they show is frozen then.

use std::sync::Arc;

use super::Effect;
use super::toast::say;
use crate::client::SnapshotDiffRequest;
use crate::domain::extension::Capability;
use crate::domain::lineage::SnapshotView;
use crate::domain::name::SandboxId;
use crate::domain::snapshot::SnapshotState;
use crate::tui::model::{
    AddPatch, Comparison, EditLabels, Entry, Extend, FormKind, Grant, Load, LogOptions, Model,
    Overlay, Pane, Restore, Role, RollOut, SaveLog, Script, TakeSnapshot, Target,
};

/// The marked sandboxes, or the one that is pointed at.
fn marked(model: &Model) -> Vec<Arc<Entry>> {
    match model.overlays.last() {
        None if model.focus == Pane::Sandboxes => model.sandboxes.targets(),
        _ => model.pointed_sandbox().cloned().into_iter().collect(),
    }
}

/// A snapshot, of the marked sandboxes or the one that is pointed at.
pub(super) fn snapshot(model: &mut Model) -> Vec<Effect> {
    let entries = marked(model);
    if entries.is_empty() {
        return say(model, Role::Dim, "there is no sandbox here: a snapshot is taken of one");
    }
    let freeze = |entry: &Arc<Entry>| {
        let mut target = model.freeze(entry);
        target.left_out = model.cannot(&entry.record.extension, &Capability::Snapshots);
        target
    };
    let targets: Vec<Target> = entries.iter().map(freeze).collect();
    if let [Target { left_out: Some(reason), .. }] = targets.as_slice() {
        return say(model, Role::Warn, format!("snapshot: {reason}"));
    }
    model.open_form(FormKind::Snapshot(TakeSnapshot { targets }));
    Vec::new()
}

/// A restore, from the snapshot that is pointed at.
pub(super) fn restore(model: &mut Model) -> Vec<Effect> {
    let Some(view) = model.pointed_snapshot().cloned() else {
        return say(
            model,
            Role::Dim,
            "a restore is from a snapshot: put the cursor on one in their pane",
        );
    };
    let record = &view.record;
    if record.state != SnapshotState::Ready {
        return say(model, Role::Warn, format!("restore: {} is {}", record.title(), record.state));
    }
    let hosts = model.hosts.list.iter().map(|host| host.view.name.to_string()).collect();
    let target = model.freeze_snapshot(&view);
    let restore = Restore { target, hosts, comparison: Comparison::Asking };
    let number = model.open_form(FormKind::Restore(Box::new(restore)));
    vec![Effect::Compare(number, SnapshotDiffRequest { a: record.id.to_string(), b: None })]
}

/// A new patch on a snapshot.
pub(super) fn patch(model: &mut Model, view: Arc<SnapshotView>, script: Script) -> Vec<Effect> {
    model.open_form(FormKind::AddPatch(AddPatch { view, script }));
    Vec::new()
}

/// A rollout of a snapshot's patches.
pub(super) fn roll_out(model: &mut Model, view: Arc<SnapshotView>) -> Vec<Effect> {
    let protected =
        |id: &&SandboxId| model.sandboxes.get(id).is_some_and(|entry| entry.record.is_protected());
    let protected =
        view.sandboxes.iter().map(|sandbox| &sandbox.id).filter(protected).cloned().collect();
    model.open_form(FormKind::RollOut(RollOut { view, protected }));
    Vec::new()
}

/// A later deadline, of the sandbox that is pointed at.
pub(super) fn extend(model: &mut Model) -> Vec<Effect> {
    let Some(entry) = model.pointed_sandbox() else {
        return say(model, Role::Dim, "there is no sandbox here: a deadline is one's");
    };
    let record = Arc::clone(&entry.record);
    if record.expires_at.is_none() {
        return say(model, Role::Warn, format!("extend: {} has no deadline", record.title()));
    }
    model.open_form(FormKind::Extend(Extend { record }));
    Vec::new()
}

pub(super) fn grant(model: &mut Model) -> Vec<Effect> {
    let known = model.credits.load == Load::Ready;
    let balance = known.then_some(model.credits.ledger.sums.balance_usd);
    model.open_form(FormKind::Grant(Grant { balance }));
    Vec::new()
}

/// Labels of the marked ones, or the one that is pointed at.
pub(super) fn labels(model: &mut Model) -> Vec<Effect> {
    let entries = marked(model);
    if entries.is_empty() {
        model.say_no_subject();
        return Vec::new();
    }
    let labels = EditLabels::of(entries.iter().map(AsRef::as_ref));
    model.open_form(FormKind::Labels(Box::new(labels)));
    Vec::new()
}

/// Options of the log on top.
pub(super) fn log_options(model: &mut Model) -> Vec<Effect> {
    let Some(Overlay::Logs(logs)) = model.overlays.last() else { return Vec::new() };
    let (title, service) = (logs.title.clone(), logs.service.clone());
    let (services, lines) = (logs.services.clone(), logs.lines);
    model.open_form(FormKind::LogOptions(LogOptions { title, services, service, lines }));
    Vec::new()
}

/// A file for what is kept of the log on top.
pub(super) fn save_log(model: &mut Model) -> Vec<Effect> {
    let Some(Overlay::Logs(logs)) = model.overlays.last() else { return Vec::new() };
    if logs.tail.is_empty() {
        return say(model, Role::Dim, "there is nothing to save");
    }
    let service = logs.service.as_ref().map(|name| format!("-{name}")).unwrap_or_default();
    let file = format!("{}{service}.log", logs.id);
    let (title, kept) = (logs.title.clone(), logs.tail.len());
    model.open_form(FormKind::SaveLog(SaveLog { title, file, kept }));
    Vec::new()
}
