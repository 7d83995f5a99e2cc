//! Questions before something destructive.

use std::sync::Arc;

use crossterm::event::KeyEvent;

use super::{Effect, jobs, reap, snapshots, text_input, undo};
use crate::client::{ApplyRequest, DestroyRequest, RecreateRequest, Request, SleepRequest};
use crate::domain::extension::Capability;
use crate::domain::sandbox::SandboxRecord;
use crate::domain::{OperationKind, PatchId, State};
use crate::tui::keymap::Action;
use crate::tui::model::{
    Confirm, Entry, Leaving, Load, Model, Overlay, Pane, Purpose, Role, Target, is_blocked, many,
};

/// Opens the question about the marked ones, or the one that is pointed at.
pub(super) fn ask(model: &mut Model, purpose: Purpose) -> Vec<Effect> {
    if let Some(confirm) = question(model, purpose) {
        model.overlays.push(Overlay::Confirm(confirm));
    }
    Vec::new()
}

/// Wakes at once where that is all that happens: one sandbox, no patches, a host that answers. Else it asks.
pub(super) fn ask_wake(model: &mut Model) -> Vec<Effect> {
    let Some(confirm) = question(model, Purpose::Wake) else { return Vec::new() };
    let plain = |target: &Target| {
        target.notes.is_empty() && target.silent.is_none() && target.left_out.is_none()
    };
    if let [only] = confirm.targets.as_slice()
        && plain(only)
    {
        return run(model, &confirm);
    }
    model.overlays.push(Overlay::Confirm(confirm));
    Vec::new()
}

/// The question about the marked ones, or the one that is pointed at; none, and that is said, where there is none.
fn question(model: &mut Model, purpose: Purpose) -> Option<Confirm> {
    let entries: Vec<Arc<Entry>> = match model.overlays.last() {
        None if model.focus == Pane::Sandboxes => model.sandboxes.targets(),
        _ => model.pointed_sandbox().cloned().into_iter().collect(),
    };
    if entries.is_empty() {
        model.say_no_subject();
        return None;
    }
    let sleeps = matches!(purpose, Purpose::Sleep | Purpose::Wake);
    let of = |entry: &Arc<Entry>| {
        let mut target = model.freeze(entry);
        target.left_out =
            model.cannot(&entry.record.extension, &Capability::Sleep).filter(|_| sleeps);
        target.notes = notes(model, purpose, &entry.record);
        target.undo = takes_undo(model, purpose, &entry.record);
        if target.undo {
            target
                .notes
                .push("an undo snapshot is taken first, where there is room for one".to_owned());
        }
        target.patches = patches(model, purpose, &entry.record);
        target
    };
    let targets = entries.iter().map(of).collect();
    Some(Confirm::about(purpose, targets))
}

/// Whether an undo snapshot is taken of a sandbox before it is removed: its profile wants one, and there is something of it.
fn takes_undo(model: &Model, purpose: Purpose, record: &SandboxRecord) -> bool {
    let removes = matches!(purpose, Purpose::Destroy | Purpose::Recreate);
    // Of what is neither nothing can be brought back.
    let is_there = matches!(record.state, State::Ready | State::Sleeping);
    removes && is_there && model.undo_profiles.contains(&record.profile.id)
}

/// What a verb does to a sandbox beyond its name: which patches it will get, which snapshot it is made of again.
fn notes(model: &Model, purpose: Purpose, record: &SandboxRecord) -> Vec<String> {
    let based = model.snapshots.of_sandbox(&record.id);
    match (purpose, &record.based_on_snapshot) {
        (Purpose::Recreate, Some(base)) => match based {
            Some((view, _)) if view.patches.is_empty() => {
                vec![format!("made again from snapshot {}", view.record.title())]
            }
            Some((view, _)) => {
                let patches = many(view.patches.len(), "patch", "patches");
                vec![format!(
                    "made again from snapshot {}, with its {patches}",
                    view.record.title()
                )]
            }
            None if model.snapshots.load == Load::Ready => {
                vec![format!("its snapshot {base} is gone: this will be refused")]
            }
            None => vec![format!("made again from snapshot {base}")],
        },
        (Purpose::Wake | Purpose::Apply { .. }, Some(_)) => {
            let Some((view, sandbox)) = based else { return Vec::new() };
            let pending =
                view.patches.iter().filter(|patch| sandbox.owes.contains(&patch.sequence));
            let mut notes: Vec<String> = pending
                .map(|patch| {
                    let about = patch.description.as_deref().unwrap_or("no description");
                    format!("gets patch {}: {about}", patch.sequence)
                })
                .collect();
            if let Some(error) =
                sandbox.patch_error.as_ref().filter(|_| is_blocked(sandbox) && !notes.is_empty())
            {
                notes = vec![format!("{} wait: {error}", many(notes.len(), "patch", "patches"))];
            }
            notes
        }
        _ => Vec::new(),
    }
}

/// The patches that a verb is shown with: one that is added meanwhile changes nothing of a sandbox that owes another already.
pub(super) fn patches(
    model: &Model,
    purpose: Purpose,
    record: &SandboxRecord,
) -> Option<Vec<PatchId>> {
    let applies = matches!(purpose, Purpose::Wake | Purpose::Recreate | Purpose::Apply { .. });
    let (view, _) = model.snapshots.of_sandbox(&record.id).filter(|_| applies)?;
    Some(view.patches.iter().map(|patch| patch.id.clone()).collect())
}

fn top(model: &mut Model) -> Option<&mut Confirm> {
    match model.overlays.last_mut() {
        Some(Overlay::Confirm(confirm)) => Some(confirm),
        _ => None,
    }
}

/// A key of the table.
pub(super) fn act(model: &mut Model, action: Action) -> Vec<Effect> {
    let Some(confirm) = top(model) else { return Vec::new() };
    let count = confirm.buttons.len().max(1);
    match action {
        Action::NextButton | Action::PreviousButton | Action::Press if !confirm.drawn => {
            model.say_undrawn();
        }
        Action::NextButton => confirm.focus = (confirm.focus + 1) % count,
        Action::PreviousButton => confirm.focus = (confirm.focus + count - 1) % count,
        Action::Leave => {
            model.overlays.pop();
        }
        Action::Press => return press(model),
        Action::Redraw => return vec![Effect::Redraw],
        _ => {}
    }
    Vec::new()
}

/// A key that is typed: into the demanded text, or it scrolls the targets.
pub(super) fn text(model: &mut Model, key: &KeyEvent) -> Vec<Effect> {
    use crossterm::event::KeyCode;
    let Some(confirm) = top(model) else { return Vec::new() };
    match key.code {
        KeyCode::PageDown => confirm.offset += 5,
        KeyCode::PageUp => confirm.offset = confirm.offset.saturating_sub(5),
        _ if !confirm.drawn => {
            model.say_undrawn();
            return Vec::new();
        }
        _ if confirm.demand.is_some() => {
            text_input::typed(&mut confirm.typed, key);
        }
        _ => {}
    }
    confirm.offset = confirm.offset.min(confirm.last_offset());
    Vec::new()
}

/// The focused button is pressed.
pub(super) fn press(model: &mut Model) -> Vec<Effect> {
    let Some(confirm) = top(model) else { return Vec::new() };
    if confirm.focus == 0 {
        model.overlays.pop();
        return Vec::new();
    }
    if !confirm.is_unlocked() {
        let what = confirm.demand.as_ref().map(|(_, what)| *what).unwrap_or_default();
        model.say(Role::Warn, format!("type {what} first"));
        return Vec::new();
    }
    if confirm.asks_again() {
        (confirm.again, confirm.drawn) = (true, false);
        confirm.focus = 0;
        return Vec::new();
    }
    let Some(Overlay::Confirm(confirm)) = model.overlays.pop() else { return Vec::new() };
    match confirm.purpose {
        Purpose::Quit if confirm.focus == 1 => jobs::leave_after(model, Leaving::Waiting),
        Purpose::Quit => jobs::leave_after(model, Leaving::Cancelling),
        Purpose::CancelJob(job) => jobs::cancel(model, job),
        Purpose::DeleteSnapshots => snapshots::delete(model, &confirm),
        Purpose::Reap => reap::apply(model, confirm),
        Purpose::Undo => undo::run(model, confirm),
        Purpose::RemovePatch => confirm
            .patch
            .into_iter()
            .map(|patch| Effect::RemovePatch(patch.snapshot, patch.id))
            .collect(),
        Purpose::Destroy
        | Purpose::Recreate
        | Purpose::Sleep
        | Purpose::Wake
        | Purpose::Apply { .. } => run(model, &confirm),
    }
}

/// Starts a job for each frozen sandbox, with the revision and the patches that the operator saw.
fn run(model: &mut Model, confirm: &Confirm) -> Vec<Effect> {
    let mut effects = Vec::new();
    for target in confirm.taken() {
        let without_undo = confirm.focus > 1;
        let Some((kind, request)) = request(confirm.purpose, target, without_undo) else {
            continue;
        };
        let job = model.jobs.start(kind, Some(target.id.clone()), target.called(), model.now);
        effects.push(Effect::Start(job, request));
    }
    if model.focus == Pane::Sandboxes {
        model.sandboxes.clear_marks();
    }
    effects
}

/// Request of a question about sandboxes; none of another question.
fn request(purpose: Purpose, target: &Target, no_undo: bool) -> Option<(OperationKind, Request)> {
    let (id, revision) = (target.id.to_string(), Some(target.revision));
    let (force_protected, patches) = (target.protected, target.patches.clone());
    Some(match purpose {
        Purpose::Destroy => {
            let request = DestroyRequest { id, revision, forget: false, no_undo, force_protected };
            (OperationKind::Destroy, Request::Destroy(request))
        }
        Purpose::Recreate => {
            let request = RecreateRequest { id, revision, no_undo, force_protected, patches };
            (OperationKind::Recreate, Request::Recreate(request))
        }
        Purpose::Sleep => {
            (OperationKind::Sleep, Request::Sleep(SleepRequest { id, revision, patches }))
        }
        Purpose::Wake => {
            (OperationKind::Wake, Request::Wake(SleepRequest { id, revision, patches }))
        }
        Purpose::Apply { retry } => {
            let request = ApplyRequest { id, revision, retry, patches };
            (OperationKind::Patch, Request::ApplyPatches(request))
        }
        Purpose::DeleteSnapshots
        | Purpose::RemovePatch
        | Purpose::Reap
        | Purpose::Undo
        | Purpose::CancelJob(_)
        | Purpose::Quit => return None,
    })
}
