//! Copying into the terminal's clipboard: an id, a command, the text of an overlay. What others wrote is cleaned: a paste must not
//! bring an escape sequence into a shell.

use super::Effect;
use crate::domain::text::{clean_block, clean_line};
use crate::tui::keymap::Action;
use crate::tui::model::{Model, Overlay, Role};

/// Puts an id or a command into the clipboard.
pub(super) fn copy(model: &mut Model, action: Action) -> Vec<Effect> {
    if let Some(Overlay::Error(problem, _)) = model.overlays.last() {
        let text = std::iter::once(&problem.message)
            .chain(&problem.causes)
            .cloned()
            .collect::<Vec<_>>()
            .join("\n");
        model.say(Role::Good, "copied the error");
        return vec![Effect::Copy(clean_block(&text))];
    }
    if let Some(Overlay::Text(page)) = model.overlays.last() {
        let text = clean_block(&page.text);
        model.say(Role::Good, "copied the whole text");
        return vec![Effect::Copy(text)];
    }
    let record = match model.overlays.last() {
        Some(Overlay::Details(details)) => Some(details.record.as_ref()),
        _ => model.pointed_sandbox().map(|entry| &*entry.record),
    };
    let text = match (record, action) {
        (Some(record), Action::CopyId) => Some(record.id.to_string()),
        (Some(record), _) => {
            record.reachability.as_ref().and_then(|it| it.ssh_command()).map(str::to_owned)
        }
        (None, Action::CopyId) => model.pointed_snapshot().map(|view| view.record.id.to_string()),
        (None, _) => return Vec::new(),
    };
    let Some(text) = text else {
        if record.is_some() {
            model.say(Role::Warn, "it is not reachable: there is no ssh command");
        }
        return Vec::new();
    };
    let text = clean_line(&text, 4096);
    model.say(Role::Good, format!("copied: {text}"));
    vec![Effect::Copy(text)]
}
