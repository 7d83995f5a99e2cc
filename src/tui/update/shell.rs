//! Where a shell is opened, and how it ended.

use super::Effect;
use crate::tui::keymap::Action;
use crate::tui::message::ShellEnd;
use crate::tui::model::{Model, Overlay, Role, ShellChoice};

/// Opens a shell in the sandbox under the cursor; asks where, if there is more than the workspace.
pub(super) fn open(model: &mut Model) -> Vec<Effect> {
    let Some(entry) = model.subject() else { return Vec::new() };
    let choice = ShellChoice::of(&entry);
    if choice.services.is_empty() {
        return begin(model, &choice);
    }
    model.overlays.push(Overlay::Shell(Box::new(choice)));
    Vec::new()
}

fn begin(model: &mut Model, choice: &ShellChoice) -> Vec<Effect> {
    let (request, title) = choice.request();
    model.say(
        Role::Busy,
        format!("opening a shell in {title}: what you type waits for it, ctrl-c gives up"),
    );
    vec![Effect::Shell(Box::new(request), title)]
}

/// A key of the table while the place is chosen.
pub(super) fn act(model: &mut Model, action: Action) -> Vec<Effect> {
    let Some(Overlay::Shell(choice)) = model.overlays.last_mut() else { return Vec::new() };
    let last = choice.services.len();
    match action {
        Action::Down => choice.at = (choice.at + 1).min(last),
        Action::Up => choice.at = choice.at.saturating_sub(1),
        Action::Top => choice.at = 0,
        Action::Bottom => choice.at = last,
        Action::Choose => {
            let choice = choice.clone();
            model.overlays.pop();
            return begin(model, &choice);
        }
        Action::Redraw => return vec![Effect::Redraw],
        _ => {}
    }
    Vec::new()
}

/// A shell gave the terminal back.
pub(super) fn ended(model: &mut Model, title: &str, end: ShellEnd) -> Vec<Effect> {
    match end {
        ShellEnd::Left(0) => model.say(Role::Good, format!("the shell in {title} ended")),
        ShellEnd::Left(status) => {
            model.say(Role::Warn, format!("the shell in {title} ended with status {status}"));
        }
        ShellEnd::GivenUp => model.say(Role::Warn, format!("the shell in {title} was not opened")),
        ShellEnd::Failed(problem) => {
            model.toast = None;
            model.overlays.push(Overlay::Error(problem, 0));
        }
    }
    Vec::new()
}
