//! Overlays that are read and scrolled, and the command palette.

use crossterm::event::KeyEvent;
use tui_input::backend::crossterm::to_input_request;

use super::{Effect, fields, keys};
use crate::tui::keymap::Action;
use crate::tui::model::{Filter, Model, NodeId, Offer, Overlay, Pane, Sort};

/// Scrolls the overlay on top.
pub(super) fn scroll(model: &mut Model, action: Action) {
    let page = usize::from(model.screen().overlay_text().height).max(2) - 1;
    let jobs = model.jobs.list().len();
    let last = model.block().map(|block| block.last_offset(page + 1)).unwrap_or_default();
    let moved = |at: usize, end: usize| -> usize {
        match action {
            Action::Down => at.saturating_add(1),
            Action::Up => at.saturating_sub(1),
            Action::Top => 0,
            Action::Bottom => end,
            Action::PageDown => at.saturating_add(page),
            Action::PageUp => at.saturating_sub(page),
            _ => at,
        }
        .min(end)
    };
    match model.overlays.last_mut() {
        Some(Overlay::Details(details)) => details.offset = moved(details.offset, last),
        Some(Overlay::Snapshot(details)) => details.offset = moved(details.offset, last),
        Some(Overlay::Text(page)) => page.offset = moved(page.offset, last),
        Some(Overlay::Help(offset) | Overlay::Error(_, offset)) => *offset = moved(*offset, last),
        Some(Overlay::Output(_, offset)) => {
            // At its end it follows what is written.
            let to = moved(offset.unwrap_or(last), last);
            *offset = (to < last).then_some(to);
        }
        Some(Overlay::Jobs(at)) => *at = moved(*at, jobs.saturating_sub(1)),
        Some(
            Overlay::Create(_)
            | Overlay::Confirm(_)
            | Overlay::Palette(..)
            | Overlay::Logs(_)
            | Overlay::Shell(_)
            | Overlay::Labels(_)
            | Overlay::ActionForm(_)
            | Overlay::Patches(_),
        )
        | None => {}
    }
}

/// Keeps offsets within what there is: a smaller terminal or a shorter record must not leave an empty screen.
pub(super) fn settle(model: &mut Model) {
    let height = usize::from(model.screen().overlay_text().height);
    let last = model.block().map(|block| block.last_offset(height)).unwrap_or_default();
    let jobs = model.jobs.list().len().saturating_sub(1);
    match model.overlays.last_mut() {
        Some(Overlay::Details(details)) => details.offset = details.offset.min(last),
        Some(Overlay::Snapshot(details)) => details.offset = details.offset.min(last),
        Some(Overlay::Text(page)) => page.offset = page.offset.min(last),
        Some(Overlay::Patches(patches)) => patches.set_height(height.saturating_sub(1)),
        Some(Overlay::Help(offset) | Overlay::Error(_, offset)) => *offset = (*offset).min(last),
        Some(Overlay::Jobs(at)) => *at = (*at).min(jobs),
        Some(
            Overlay::Create(_)
            | Overlay::Confirm(_)
            | Overlay::Output(..)
            | Overlay::Palette(..)
            | Overlay::Logs(_)
            | Overlay::Shell(_)
            | Overlay::Labels(_)
            | Overlay::ActionForm(_),
        )
        | None => {}
    }
}

/// A key of the table in the palette.
pub(super) fn palette_act(model: &mut Model, action: Action) -> Vec<Effect> {
    let Some(Overlay::Palette(input, _)) = model.overlays.last() else { return Vec::new() };
    let mut found = model.palette(input.value());
    let count = found.len().max(1);
    let Some(Overlay::Palette(_, at)) = model.overlays.last_mut() else { return Vec::new() };
    match action {
        Action::NextMatch => *at = (*at + 1) % count,
        Action::PreviousMatch => *at = (*at + count - 1) % count,
        Action::Leave => {
            model.overlays.pop();
        }
        Action::Choose => {
            let chosen = (*at < found.len()).then(|| found.swap_remove(*at));
            model.overlays.pop();
            return chosen.map(|offer| take(model, offer)).unwrap_or_default();
        }
        _ => {}
    }
    Vec::new()
}

/// Does what was chosen in the palette.
fn take(model: &mut Model, offer: Offer) -> Vec<Effect> {
    match offer {
        Offer::Action(Action::Suspend) => return vec![Effect::Suspend],
        Offer::Action(action) => return keys::act(model, action),
        Offer::Sort(key) => return keys::set_sort(model, Sort { key, descending: false }),
        Offer::Filter(filter) => {
            model.focus_on(Pane::Sandboxes);
            model.sandboxes.set_filter(Filter::parse(&filter));
        }
        Offer::Jump(id, _) => {
            model.focus_on(Pane::Sandboxes);
            if !model.sandboxes.shown().iter().any(|entry| entry.record.id == id) {
                model.sandboxes.set_filter(Filter::default());
            }
            model.sandboxes.point_at(id);
        }
        Offer::Restore(id, _) => {
            model.focus_on(Pane::Snapshots);
            model.snapshots.set_filter(Filter::default());
            model.snapshots.point_at(NodeId::Snapshot(id));
            return keys::act(model, Action::Restore);
        }
    }
    Vec::new()
}

/// A key that is typed in the palette.
pub(super) fn palette_text(model: &mut Model, key: &KeyEvent) -> Vec<Effect> {
    if let Some(Overlay::Palette(input, at)) = model.overlays.last_mut()
        && let Some(request) = to_input_request(&crossterm::event::Event::Key(*key))
    {
        input.handle(request);
        *at = 0;
    }
    Vec::new()
}

/// Pasted text goes into the palette's field.
pub(super) fn palette_paste(model: &mut Model, text: &str) -> Vec<Effect> {
    if let Some(Overlay::Palette(input, at)) = model.overlays.last_mut() {
        fields::insert(input, text);
        *at = 0;
    }
    Vec::new()
}
