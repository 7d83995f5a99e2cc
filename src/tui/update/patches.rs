//! The patches of a snapshot: opened, walked, added, taken away, applied.

use std::sync::Arc;

use super::toast::say;
use super::{Effect, confirm, forms, jobs, patch_status, snapshots};
use crate::client::{Error, RolloutItem};
use crate::domain::error::Code;
use crate::domain::lineage::SnapshotView;
use crate::domain::name::SnapshotId;
use crate::domain::operation::CancelOutcome;
use crate::domain::patch::{Patch, PatchState};
use crate::tui::keymap::Action;
use crate::tui::model::{
    Confirm, JobId, JobResult, Model, Overlay, PatchTarget, Patches, Role, Script, TextOverlay,
    Verb, many,
};

/// Opens the patches of the snapshot that is pointed at, or of the one that a sandbox is based on.
pub(super) fn open(model: &mut Model) -> Vec<Effect> {
    let sandbox = model.pointed_sandbox().map(|entry| entry.record.id.clone());
    let of_sandbox = sandbox
        .as_ref()
        .and_then(|id| model.snapshots.of_sandbox(id))
        .map(|(view, _)| Arc::clone(view));
    let Some(view) = model.pointed_snapshot().cloned().or(of_sandbox) else {
        let what = if sandbox.is_some() {
            "it is based on no snapshot"
        } else {
            "there is no snapshot here"
        };
        return say(model, Role::Dim, format!("{what}: patches are on snapshots"));
    };
    let (id, title) = (view.record.id.clone(), view.record.title().to_owned());
    model.overlays.push(Overlay::Patches(Box::new(Patches::new(id.clone(), title))));
    vec![Effect::PatchStatus(id)]
}

fn top(model: &mut Model) -> Option<&mut Patches> {
    match model.overlays.last_mut() {
        Some(Overlay::Patches(patches)) => Some(patches),
        _ => None,
    }
}

/// The snapshot whose patches are open. Says so if it is gone.
fn snapshot(model: &mut Model) -> Option<Arc<SnapshotView>> {
    let id = top(model)?.snapshot.clone();
    let view = model.snapshots.get(&id).cloned();
    if view.is_none() {
        model.say(Role::Warn, format!("{id} is not there any more"));
    }
    view
}

fn add(model: &mut Model, script: Script) -> Vec<Effect> {
    match snapshot(model) {
        Some(view) => forms::patch(model, view, script),
        None => Vec::new(),
    }
}

/// A key of the table.
pub(super) fn act(model: &mut Model, action: Action) -> Vec<Effect> {
    let Some(patches) = top(model) else { return Vec::new() };
    match action {
        Action::Retry => return patch_status::read_again(model),
        Action::AddPatch => return add(model, Script::File),
        Action::WritePatch => return vec![Effect::Write(patches.snapshot.clone())],
        Action::RemovePatch => return ask_remove(model),
        Action::RollOut => return ask_apply(model),
        _ => {
            if let Some(to) = patches.window.moved(action) {
                patches.go(to);
            }
        }
    }
    Vec::new()
}

/// Opens the script of the patch under the cursor, or what it wrote on the sandbox under the cursor.
pub(super) fn open_row(model: &mut Model) -> Vec<Effect> {
    let Some(row) = top(model).and_then(|patches| patches.selected()) else { return Vec::new() };
    let patch = &row.status.patch;
    let page = match row.standing {
        None => {
            let about = patch.description.as_deref().unwrap_or("no description");
            TextOverlay {
                title: format!("Patch {}: {about}", patch.sequence),
                text: patch.script.clone(),
                offset: 0,
            }
        }
        Some(standing) => {
            let Some(run) = &standing.run else {
                let words = format!("patch {} has not run on {} yet", patch.sequence, standing.id);
                return say(model, Role::Dim, words);
            };
            let end = run.exit_status.map(|status| format!(", exit {status}")).unwrap_or_default();
            let title = format!("Patch {} on {}: {}{end}", patch.sequence, standing.id, run.state);
            TextOverlay { title, text: run.output.clone().unwrap_or_default(), offset: 0 }
        }
    };
    model.overlays.push(Overlay::Text(page));
    Vec::new()
}

fn ask_remove(model: &mut Model) -> Vec<Effect> {
    let Some(patches) = top(model) else { return Vec::new() };
    let title = patches.title.clone();
    let Some(row) = patches.selected() else {
        return say(model, Role::Dim, "there is no patch to take away");
    };
    let patch = &row.status.patch;
    let has = row.applied();
    let target = PatchTarget {
        snapshot: patch.snapshot_id.clone(),
        title,
        id: patch.id.clone(),
        sequence: patch.sequence,
        description: patch.description.clone(),
        counts: (has, row.status.sandboxes.len() - has),
    };
    model.overlays.push(Overlay::Confirm(Confirm::remove_patch(target)));
    Vec::new()
}

/// A patch was taken away, or could not be.
pub(super) fn removed(model: &mut Model, answer: Result<Box<Patch>, Error>) -> Vec<Effect> {
    match answer {
        Ok(patch) => model.say(
            Role::Good,
            format!("patch {} is taken away; who has it keeps it", patch.sequence),
        ),
        Err(problem) => {
            model.say(Role::Bad, format!("the patch was not taken away: {}", problem.message));
        }
    }
    snapshots::read(model)
}

/// On a sandbox's row: asks whether that one gets what it owes. Else opens the form of a rollout.
fn ask_apply(model: &mut Model) -> Vec<Effect> {
    let row = top(model).and_then(|patches| patches.selected());
    let Some((id, state)) =
        row.and_then(|row| row.standing).map(|s| (s.id.clone(), s.state.clone()))
    else {
        return match snapshot(model) {
            Some(view) => forms::roll_out(model, view),
            None => Vec::new(),
        };
    };
    let retry = matches!(state, PatchState::Failed | PatchState::Unknown);
    let Some(entry) = model.sandboxes.get(&id).cloned() else {
        return say(model, Role::Dim, format!("{id} is not listed"));
    };
    let mut target = model.freeze(&entry);
    target.patches = confirm::patches(model, Verb::Apply { retry }, &entry.record);
    model.overlays.push(Overlay::Confirm(Confirm::about(Verb::Apply { retry }, vec![target])));
    Vec::new()
}

/// A rollout ended.
pub(super) fn rolled_out(
    model: &mut Model,
    job: JobId,
    answer: Result<Vec<RolloutItem>, Error>,
) -> Vec<Effect> {
    let mut effects = snapshots::read(model);
    let items = match answer {
        Ok(items) => items,
        Err(problem) => {
            effects.extend(jobs::ended_badly(model, job, problem));
            return effects;
        }
    };
    if let Some(job) = model.jobs.get_mut(job) {
        for item in &items {
            let canary = if item.canary { " (first)" } else { "" };
            let applied =
                item.applied.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
            job.write(match &item.error {
                Some(error) => format!("{}{canary}: {}", item.id, error.message),
                None if item.reason.is_some() => {
                    format!("{}{canary}: {}", item.id, item.reason.as_deref().unwrap_or_default())
                }
                None if applied.is_empty() => format!("{}{canary}: has them all", item.id),
                None => format!("{}{canary}: got {applied}", item.id),
            });
        }
    }
    let well = items.iter().filter(|item| item.ok && item.reason.is_none()).count();
    // One that was passed over, because it sleeps or somebody works on it, is no failure; nor is one that was not begun.
    let passed = |error: &Error| matches!(error.code, Code::Conflict | Code::Busy);
    let failed = |item: &RolloutItem| {
        item.error.clone().filter(|error| !passed(error)).map(|error| (item.id.clone(), error))
    };
    let failures: Vec<_> = items.iter().filter_map(failed).collect();
    let cancelled = failures.iter().all(|(_, error)| error.code == Code::Cancelled);
    if let Some((id, error)) = failures.first() {
        let text = format!("{well} of {} have them; {id}: {}", items.len(), error.message);
        // What one of them left half done, or with its patches, is not as before.
        let undone = |error: &Error| error.cancel_outcome() == Some(CancelOutcome::Undone);
        let problem = match cancelled {
            false => Error::new(Code::Partial, text),
            true if well == 0 && failures.iter().all(|(_, error)| undone(error)) => {
                CancelOutcome::Undone.error(text)
            }
            true => CancelOutcome::Stopped.error(text),
        };
        effects.extend(jobs::ended_badly(model, job, problem));
        return effects;
    }
    let over = items.len() - well;
    let on = many(well, "sandbox has them", "sandboxes have them");
    let result = match over {
        0 => JobResult::Told(on),
        over => JobResult::Warned(format!("{on}; {over} passed over: the job's output says why")),
    };
    effects.extend(jobs::ended_as(model, job, result));
    effects
}

/// An editor gave the terminal back.
pub(super) fn written(
    model: &mut Model,
    id: &SnapshotId,
    answer: Result<Option<String>, Error>,
) -> Vec<Effect> {
    match answer {
        Ok(Some(text)) if top(model).is_some_and(|patches| patches.snapshot == *id) => {
            return add(model, Script::Written(text));
        }
        Ok(Some(_)) => {
            model.say(Role::Warn, "the patches were closed meanwhile: what was written is dropped");
        }
        Ok(None) => model.say(Role::Dim, "nothing was written: no patch was added"),
        Err(problem) => {
            model.toast = None;
            model.overlays.push(Overlay::Error(problem, 0));
        }
    }
    Vec::new()
}
