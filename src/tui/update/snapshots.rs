//! Snapshots: read when something changed them, walked as a tree, deleted after asking.

use std::sync::Arc;
use std::time::Duration;

use super::toast::say;
use super::{Effect, Timer, details, patch_status};
use crate::client::{Error, ExtensionView, Request, SnapshotDeleteRequest};
use crate::domain::OperationKind;
use crate::domain::event::{Event, EventKind};
use crate::domain::lineage::SnapshotView;
use crate::tui::keymap::Action;
use crate::tui::model::{
    Confirm, Fetch, Filter, JobId, Load, Model, NodeId, Overlay, Pane, Role, SnapshotDetails,
};

/// How long changes are gathered before the snapshots are read.
const GATHER: Duration = Duration::from_millis(50);

/// Reads the snapshots in a moment, unless that is under way: then once more after it.
pub(super) fn read(model: &mut Model) -> Vec<Effect> {
    if !model.reading_snapshots.begin() {
        return Vec::new();
    }
    vec![Effect::After(GATHER, Box::new(Timer::Snapshots))]
}

/// Time to read them. A change from here on is not in the answer.
pub(super) fn due(model: &mut Model) -> Vec<Effect> {
    model.reading_snapshots = Fetch::Running;
    vec![Effect::Snapshots]
}

/// Reads them if an event can have changed what is shown of them.
pub(super) fn read_if_news(model: &mut Model, event: &Event) -> Vec<Effect> {
    let kind = &event.kind;
    let based =
        || event.sandbox_id.as_ref().is_some_and(|id| model.snapshots.of_sandbox(id).is_some());
    let restored = matches!(kind, EventKind::SandboxRestored | EventKind::SandboxAdopted);
    if kind.is_of_snapshot() || kind.is_of_patch() || restored || based() {
        return read(model);
    }
    Vec::new()
}

/// All snapshots were read.
pub(super) fn taken(
    model: &mut Model,
    answer: Result<Vec<Arc<SnapshotView>>, Error>,
) -> Vec<Effect> {
    let again = model.reading_snapshots.end();
    let mut effects = Vec::new();
    match answer {
        Ok(_) if model.frozen.is_some() && model.snapshots.load == Load::Ready => model.hold(),
        Ok(views) => {
            model.snapshots.replace(views);
            refresh_overlays(model);
            effects.extend(patch_status::read_again(model));
        }
        // Rows that are there stay; the title says that they could not be read again.
        Err(problem) => model.snapshots.load = Load::Failed(problem),
    }
    if again {
        effects.extend(read(model));
    }
    effects
}

fn refresh_overlays(model: &mut Model) {
    for overlay in &mut model.overlays {
        let shown = match overlay {
            Overlay::Snapshot(details) => &mut details.view,
            // Who will get a patch, its number, and what a restore will get are as they are now and not as they were when
            // the form was opened.
            Overlay::Form(form) => match form.snapshot_mut() {
                Some(view) => view,
                None => continue,
            },
            _ => continue,
        };
        if let Some(view) = model.snapshots.get(&shown.record.id) {
            *shown = Arc::clone(view);
        }
    }
}

/// The extensions were read. Without them nothing is dimmed, and the client refuses what cannot be done.
pub(super) fn extensions(
    model: &mut Model,
    answer: Result<Vec<ExtensionView>, Error>,
) -> Vec<Effect> {
    if let Ok(extensions) = answer {
        let places = extensions.iter().filter_map(|view| view.place.as_ref());
        model.hosts.places = places.map(|place| place.as_str().to_lowercase()).collect();
        model.extensions = extensions;
    }
    Vec::new()
}

pub(super) fn in_pane(model: &mut Model, action: Action) -> Vec<Effect> {
    let tree = &mut model.snapshots;
    match action {
        Action::Mark if tree.selected().is_some() && !tree.toggle_mark() => {
            model.say(
                Role::Dim,
                "marks here are of snapshots; sandboxes are marked in their own pane",
            );
        }
        Action::MarkRange => tree.mark_range(),
        Action::MarkAll => tree.mark_all(),
        Action::Clear if !tree.marks.is_empty() => tree.marks.clear(),
        Action::Clear if !tree.filter().is_empty() => tree.set_filter(Filter::default()),
        _ => {
            if let Some(to) = tree.window.moved(action) {
                tree.go(to);
            }
        }
    }
    Vec::new()
}

/// Opens the details of the row under the cursor.
pub(super) fn open_row(model: &mut Model) -> Vec<Effect> {
    let Some(row) = model.snapshots.selected() else { return Vec::new() };
    let view = Arc::clone(&row.view);
    match row.id.clone() {
        NodeId::Sandbox(id) => {
            if model.sandboxes.get(&id).is_none() {
                model.say(Role::Dim, format!("{id} is not listed"));
            }
            details::open(model, &id)
        }
        NodeId::Snapshot(_) => {
            model.overlays.push(Overlay::Snapshot(Box::new(SnapshotDetails { view, offset: 0 })));
            Vec::new()
        }
    }
}

/// The job on the snapshot that is pointed at.
pub(super) fn job_on(model: &Model) -> Option<JobId> {
    model
        .pointed_snapshot()
        .and_then(|view| model.jobs.of_snapshot(&view.record.id))
        .map(|job| job.id)
}

/// Whether `d` means snapshots: in their details, and in their pane but on a sandbox's row.
pub(super) fn are_meant(model: &Model) -> bool {
    match model.overlays.last() {
        Some(Overlay::Snapshot(_)) => true,
        Some(_) => false,
        None => {
            model.focus == Pane::Snapshots
                && model.snapshots.selected().is_none_or(|row| row.at.is_none())
        }
    }
}

/// Opens the question about the marked snapshots, or the one under the cursor, or the one whose details are open.
pub(super) fn ask_delete(model: &mut Model) -> Vec<Effect> {
    let views = match model.overlays.last() {
        Some(_) => model.pointed_snapshot().cloned().into_iter().collect(),
        None => model.snapshots.targets(),
    };
    if views.is_empty() {
        return say(model, Role::Dim, "there is no snapshot to act on");
    }
    let targets = views.iter().map(|view| model.freeze_snapshot(view)).collect();
    model.overlays.push(Overlay::Confirm(Confirm::delete(targets)));
    Vec::new()
}

/// Starts a job for each frozen snapshot, as the operator saw it.
pub(super) fn delete(model: &mut Model, confirm: &Confirm) -> Vec<Effect> {
    let mut effects = Vec::new();
    for target in confirm.taken_snapshots() {
        let record = &target.view.record;
        let (id, now) = (record.id.clone(), model.now);
        let title = target.view.record.title().to_owned();
        let job = model.jobs.start_on(OperationKind::Delete, id.clone(), title, now);
        let force = !target.dependants.is_empty();
        // One that is taken has been named by its id.
        let (revision, force_protected) = (Some(record.revision), record.is_protected());
        let request = SnapshotDeleteRequest {
            id: id.to_string(),
            revision,
            force,
            dependants: Some(target.dependants.clone()),
            force_protected,
            rule: None,
        };
        effects.push(Effect::Start(job, Request::DeleteSnapshot(request)));
    }
    model.snapshots.marks.clear();
    effects
}
