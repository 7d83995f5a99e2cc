//! Questions before something destructive.

use std::sync::Arc;

use crossterm::event::KeyEvent;

use super::toast::say;
use super::{Effect, jobs, reap, snapshots, text_input, undo};
use crate::client::{ApplyRequest, DestroyRequest, RecreateRequest, Request, SleepRequest};
use crate::domain::extension::Capability;
use crate::domain::sandbox::SandboxRecord;
use crate::domain::{OperationKind, PatchId, State};
use crate::tui::keymap::Action;
use crate::tui::model::{
    Confirm, Entry, Leaving, Load, Model, Overlay, Pane, Purpose, Role, Target, Verb, is_blocked,
    many,
};

/// Opens the question about the marked ones, or the one that is pointed at.
pub(super) fn ask(model: &mut Model, verb: Verb) -> Vec<Effect> {
    if let Some(confirm) = question(model, verb) {
        model.overlays.push(Overlay::Confirm(confirm));
    }
    Vec::new()
}

/// Wakes at once where that is all that happens: one sandbox, no patches, a host that answers. Else it asks.
pub(super) fn ask_wake(model: &mut Model) -> Vec<Effect> {
    let Some(confirm) = question(model, Verb::Wake) else { return Vec::new() };
    let plain = |target: &Target| {
        target.notes.is_empty() && target.silent.is_none() && target.left_out.is_none()
    };
    if let Purpose::Sandboxes(verb, targets) = &confirm.purpose
        && let [only] = targets.as_slice()
        && plain(only)
    {
        return run(model, *verb, &confirm);
    }
    model.overlays.push(Overlay::Confirm(confirm));
    Vec::new()
}

/// The question about the marked ones, or the one that is pointed at; none, and that is said, where there is none.
fn question(model: &mut Model, verb: Verb) -> Option<Confirm> {
    let entries: Vec<Arc<Entry>> = match model.overlays.last() {
        None if model.focus == Pane::Sandboxes => model.sandboxes.targets(),
        _ => model.pointed_sandbox().cloned().into_iter().collect(),
    };
    if entries.is_empty() {
        model.say_no_subject();
        return None;
    }
    let sleeps = matches!(verb, Verb::Sleep | Verb::Wake);
    let of = |entry: &Arc<Entry>| {
        let mut target = model.freeze(entry);
        target.left_out =
            model.cannot(&entry.record.extension, &Capability::Sleep).filter(|_| sleeps);
        target.notes = notes(model, verb, &entry.record);
        target.undo = takes_undo(model, verb, &entry.record);
        let undo = "an undo snapshot is taken first, where there is room for one";
        target.notes.extend(target.undo.then(|| undo.to_owned()));
        target.patches = patches(model, verb, &entry.record);
        target
    };
    let targets = entries.iter().map(of).collect();
    Some(Confirm::about(verb, targets))
}

/// Whether an undo snapshot is taken of a sandbox before it is removed: its profile wants one, and there is something of it.
fn takes_undo(model: &Model, verb: Verb, record: &SandboxRecord) -> bool {
    let removes = matches!(verb, Verb::Destroy | Verb::Recreate);
    // Of what is neither nothing can be brought back.
    let is_there = matches!(record.state, State::Ready | State::Sleeping);
    removes && is_there && model.undo_profiles.contains(&record.profile.id)
}

/// Acts of a verb on a sandbox beyond its name: which patches it will get, which snapshot it is made of again.
fn notes(model: &Model, verb: Verb, record: &SandboxRecord) -> Vec<String> {
    let based = model.snapshots.of_sandbox(&record.id);
    match (verb, &record.based_on_snapshot) {
        (Verb::Recreate, Some(base)) => match based {
            Some((view, _)) if view.patches.is_empty() => {
                vec![format!("made again from snapshot {}", view.record.title())]
            }
            Some((view, _)) => {
                let (title, count) = (view.record.title(), view.patches.len());
                let patches = many(count, "patch", "patches");
                vec![format!("made again from snapshot {title}, with its {patches}")]
            }
            None if model.snapshots.load == Load::Ready => {
                vec![format!("its snapshot {base} is gone: this will be refused")]
            }
            None => vec![format!("made again from snapshot {base}")],
        },
        (Verb::Wake | Verb::Apply { .. }, Some(_)) => {
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
pub(super) fn patches(model: &Model, verb: Verb, record: &SandboxRecord) -> Option<Vec<PatchId>> {
    let applies = matches!(verb, Verb::Wake | Verb::Recreate | Verb::Apply { .. });
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
        return say(model, Role::Warn, format!("type {what} first"));
    }
    if confirm.asks_again() {
        (confirm.again, confirm.drawn) = (true, false);
        confirm.focus = 0;
        return Vec::new();
    }
    let Some(Overlay::Confirm(confirm)) = model.overlays.pop() else { return Vec::new() };
    match &confirm.purpose {
        Purpose::Quit if confirm.focus == 1 => jobs::leave_after(model, Leaving::Waiting),
        Purpose::Quit => jobs::leave_after(model, Leaving::Cancelling),
        Purpose::CancelJob(job) => jobs::cancel(model, *job),
        Purpose::DeleteSnapshots(_) => snapshots::delete(model, &confirm),
        Purpose::Reap(target) => reap::apply(model, target.plan.clone()),
        Purpose::Undo(targets) => undo::run(model, targets),
        Purpose::RemovePatch(patch) => {
            vec![Effect::RemovePatch(patch.snapshot.clone(), patch.id.clone())]
        }
        Purpose::Sandboxes(verb, _) => run(model, *verb, &confirm),
    }
}

/// Starts a job for each frozen sandbox, with the revision and the patches that the operator saw.
fn run(model: &mut Model, verb: Verb, confirm: &Confirm) -> Vec<Effect> {
    let mut effects = Vec::new();
    for target in confirm.taken() {
        let (kind, request) = request(verb, target, confirm.focus > 1);
        let job = model.jobs.start(kind, Some(target.id.clone()), target.called(), model.now);
        effects.push(Effect::Start(job, request));
    }
    if model.focus == Pane::Sandboxes {
        model.sandboxes.marks.clear();
    }
    effects
}

/// Request of a verb for one of its sandboxes.
fn request(verb: Verb, target: &Target, no_undo: bool) -> (OperationKind, Request) {
    let (id, revision) = (target.id.to_string(), Some(target.revision));
    let (force_protected, patches) = (target.protected, target.patches.clone());
    match verb {
        Verb::Destroy => {
            let request = DestroyRequest { id, revision, forget: false, no_undo, force_protected };
            (OperationKind::Destroy, Request::Destroy(request))
        }
        Verb::Recreate => {
            let request = RecreateRequest { id, revision, no_undo, force_protected, patches };
            (OperationKind::Recreate, Request::Recreate(request))
        }
        Verb::Sleep => {
            (OperationKind::Sleep, Request::Sleep(SleepRequest { id, revision, patches }))
        }
        Verb::Wake => (OperationKind::Wake, Request::Wake(SleepRequest { id, revision, patches })),
        Verb::Apply { retry } => {
            let request = ApplyRequest { id, revision, retry, patches };
            (OperationKind::Patch, Request::ApplyPatches(request))
        }
    }
}
