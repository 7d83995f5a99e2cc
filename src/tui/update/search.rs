//! Search in an overlay: typed as one goes, walked from match to match, ended before the overlay is.

use super::{Effect, overlay};
use crate::tui::keymap::Action;
use crate::tui::model::{Model, Role, SearchPattern};

/// A key of the table over an overlay.
pub(super) fn act(model: &mut Model, action: Action) {
    match action {
        Action::Search => {
            let before = overlay::position(model);
            model.searches.begin(&model.overlays, before);
        }
        Action::NextFound => step(model, true),
        Action::PreviousFound => step(model, false),
        _ => {}
    }
}

/// Ends the search in the overlay on top; whether there was one.
pub(super) fn end(model: &mut Model) -> bool {
    model.searches.end(model.overlays.len()).is_some()
}

/// A key of the table in the text field.
pub(super) fn field_act(model: &mut Model, action: Action) -> Vec<Effect> {
    let depth = model.overlays.len();
    match action {
        Action::Leave => {
            if let Some(search) = model.searches.end(depth) {
                // Where the eye was before it searched.
                overlay::go(model, search.before);
            }
        }
        Action::Submit => {
            let Some(search) = model.searches.at_mut(depth) else { return Vec::new() };
            search.field = None;
            if search.pattern.is_empty() {
                model.searches.end(depth);
            } else if search.found.is_none() {
                say_none(model);
            }
        }
        _ => {}
    }
    Vec::new()
}

/// Searches for what is typed so far, from where the eye was.
pub(super) fn typed(model: &mut Model) {
    let depth = model.overlays.len();
    let Some(search) = model.searches.at_mut(depth) else { return };
    let Some(field) = &search.field else { return };
    let pattern = SearchPattern::new(field.value());
    if pattern == search.pattern {
        return;
    }
    let before = search.before;
    (search.pattern, search.found) = (pattern, None);
    overlay::go(model, before);
    let found = model.found();
    let next = found.iter().position(|row| *row >= before).or(found.first().map(|_| 0));
    take(model, &found, next);
}

/// Goes to the next match, or to the one before; round the end.
fn step(model: &mut Model, down: bool) {
    let Some(search) = model.search() else {
        return model.say(Role::Dim, "nothing is searched for: / searches");
    };
    let at = search.found;
    let found = model.found();
    if found.is_empty() {
        return say_none(model);
    }
    let here = overlay::position(model);
    let next = match (at, down) {
        (Some(at), true) => Some(at + 1).filter(|next| *next < found.len()),
        (Some(at), false) => at.min(found.len()).checked_sub(1),
        (None, true) => found.iter().position(|row| *row >= here),
        (None, false) => found.iter().rposition(|row| *row < here),
    };
    take(model, &found, Some(next.unwrap_or(if down { 0 } else { found.len() - 1 })));
    if next.is_none() {
        let from = if down { "from the first match again" } else { "from the last match again" };
        model.say(Role::Dim, from);
    }
}

fn take(model: &mut Model, found: &[usize], next: Option<usize>) {
    let depth = model.overlays.len();
    if let Some(search) = model.searches.at_mut(depth) {
        search.found = next;
    }
    if let Some(row) = next.and_then(|at| found.get(at)) {
        overlay::show(model, *row);
    }
}

fn say_none(model: &mut Model) {
    let Some(search) = model.search() else { return };
    let text = format!("'{}' is not in here", search.pattern.text());
    model.say(Role::Warn, text);
}
