//! The command palette. What is chosen in it is done by whoever does what a key does.

use crate::tui::keymap::Action;
use crate::tui::model::{Model, Offer, Overlay};

/// A key of the table; what was chosen by it.
pub(super) fn act(model: &mut Model, action: Action) -> Option<Offer> {
    let Some(Overlay::Palette(input, _)) = model.overlays.last() else { return None };
    let mut found = model.palette(input.value());
    let count = found.len().max(1);
    let Some(Overlay::Palette(_, at)) = model.overlays.last_mut() else { return None };
    match action {
        Action::NextMatch => *at = (*at + 1) % count,
        Action::PreviousMatch => *at = (*at + count - 1) % count,
        Action::Leave => {
            model.overlays.pop();
        }
        Action::Choose => {
            let chosen = (*at < found.len()).then(|| found.swap_remove(*at));
            model.overlays.pop();
            return chosen;
        }
        _ => {}
    }
    None
}
