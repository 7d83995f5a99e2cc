//! Questions before something destructive.

use crossterm::event::KeyEvent;
use tui_input::backend::crossterm::to_input_request;

use super::{Effect, Frozen, work};
use crate::client::{DestroyRequest, RecreateRequest};
use crate::domain::OperationKind;
use crate::tui::keymap::Action;
use crate::tui::model::{Confirm, Entry, Leaving, Model, Overlay, Purpose, Role, Standing, Target, age};

/// Freezes a row as a target.
pub(super) fn freeze(model: &Model, entry: &Entry) -> Target {
    let name = entry.record.host.as_str();
    let silent = model.hosts.is_silent(name, model.now, model.started).then(|| {
        let host = model.hosts.get(name);
        let down = host.filter(|host| host.standing(model.now) == Standing::Down);
        let since = host.and_then(|host| host.answered).or(entry.record.observed_at);
        let since =
            since.map_or_else(|| "never".to_owned(), |at| format!("{} ago", age(model.now.since(at).as_secs())));
        let word = if down.is_some() { "is down" } else { "has not answered" };
        format!("{name} {word}; last heard of {since}")
    });
    Target::of(entry, silent)
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
        _ if confirm.demand.is_some() => {
            if let Some(request) = to_input_request(&crossterm::event::Event::Key(*key)) {
                confirm.typed.handle(request);
            }
        }
        _ => {}
    }
    confirm.offset = confirm.offset.min(confirm.targets.len().saturating_sub(1));
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
        confirm.again = true;
        confirm.focus = 0;
        return Vec::new();
    }
    let Some(Overlay::Confirm(confirm)) = model.overlays.pop() else { return Vec::new() };
    match confirm.purpose {
        Purpose::Quit if confirm.focus == 1 => work::leave_after(model, Leaving::Waiting),
        Purpose::Quit => work::leave_after(model, Leaving::RollingBack),
        Purpose::CancelJob(job) => work::cancel(model, job),
        Purpose::Destroy | Purpose::Recreate => run(model, &confirm),
    }
}

/// Starts a job for each frozen target, with the revision that the operator saw.
fn run(model: &mut Model, confirm: &Confirm) -> Vec<Effect> {
    let mut effects = Vec::new();
    for target in confirm.taken() {
        let destroy = confirm.purpose == Purpose::Destroy;
        let kind = if destroy { OperationKind::Destroy } else { OperationKind::Recreate };
        let title = match &target.name {
            Some(name) => format!("{} {name}", target.id),
            None => target.id.to_string(),
        };
        let job = model.jobs.start(kind, Some(target.id.clone()), title, model.now);
        let frozen = Frozen { id: target.id.clone(), revision: target.revision, state: target.state.clone() };
        let id = target.id.to_string();
        let (revision, force_protected) = (Some(target.revision), target.protected);
        effects.push(if destroy {
            let request = DestroyRequest { id, revision, forget: false, no_undo: false, force_protected };
            Effect::Destroy(job, frozen, request)
        } else {
            Effect::Recreate(job, frozen, RecreateRequest { id, revision, no_undo: false, force_protected })
        });
    }
    model.sandboxes.clear_marks();
    effects
}
