//! Overlays that are read and scrolled.

use super::toast::say;
use super::{Effect, details, hosts};
use crate::domain::name::SandboxId;
use crate::tui::keymap::Action;
use crate::tui::model::{Model, Overlay, ReapRow, Role, TextOverlay};

/// Rows that an overlay shows at once.
fn height(model: &Model) -> usize {
    usize::from(model.screen().overlay_text().height)
}

/// The last place that the overlay on top can be scrolled to, or its last row where it is a list.
fn last(model: &Model) -> usize {
    match model.overlays.last() {
        Some(Overlay::Jobs(_)) => model.jobs.list().len().saturating_sub(1),
        Some(Overlay::Patches(patches)) => patches.len().saturating_sub(1),
        Some(Overlay::Reap) => model.reap.rows().len().saturating_sub(1),
        _ => model.block().map(|block| block.last_offset(height(model))).unwrap_or_default(),
    }
}

/// Where the overlay on top is: its first row on the screen, or the row under the cursor where it is a list.
pub(super) fn position(model: &Model) -> usize {
    match model.overlays.last() {
        Some(Overlay::Jobs(at)) => *at,
        Some(Overlay::Patches(patches)) => patches.window.index,
        Some(Overlay::Reap) => model.reap.window.index,
        // One that follows its end: where that is has to be counted.
        Some(Overlay::Output(_, None)) => last(model),
        Some(overlay) => overlay.offset(0),
        None => 0,
    }
}

/// Goes to a place of the overlay on top.
pub(super) fn go(model: &mut Model, to: usize) {
    let last = last(model);
    go_within(model, to, last);
}

fn go_within(model: &mut Model, to: usize, last: usize) {
    match model.overlays.last_mut() {
        Some(Overlay::Jobs(at)) => *at = to.min(last),
        Some(Overlay::Patches(patches)) => patches.go(to),
        Some(Overlay::Reap) => model.reap.go(to),
        Some(overlay) => overlay.scroll_to(to.min(last), last),
        None => {}
    }
}

/// Brings a row of the overlay on top on the screen, with something above it; one that follows its end stays there.
pub(super) fn show(model: &mut Model, row: usize) {
    if matches!(model.overlays.last(), Some(Overlay::Jobs(_) | Overlay::Patches(_) | Overlay::Reap))
    {
        return go(model, row);
    }
    let (height, at) = (height(model), position(model));
    let is_shown = (at..at + height).contains(&row);
    let to = if is_shown { at } else { row.saturating_sub(height / 3).min(last(model)) };
    if let Some(overlay) = model.overlays.last_mut() {
        overlay.hold_at(to);
    }
}

/// Scrolls the overlay on top.
pub(super) fn scroll(model: &mut Model, action: Action) {
    let page = height(model).max(2) - 1;
    let (at, end) = (position(model), last(model));
    let to = match action {
        Action::Down => at.saturating_add(1),
        Action::Up => at.saturating_sub(1),
        Action::Top => 0,
        Action::Bottom => end,
        Action::PageDown => at.saturating_add(page),
        Action::PageUp => at.saturating_sub(page),
        _ => return,
    };
    go_within(model, to, end);
}

/// Keeps offsets within what there is: a smaller terminal or a shorter record must not leave an empty screen.
pub(super) fn settle(model: &mut Model) {
    model.searches.keep_open(&model.overlays);
    let height = height(model);
    if let Some(Overlay::Patches(patches)) = model.overlays.last_mut() {
        return patches.window.resize(height.saturating_sub(1), patches.len());
    }
    if let Some(Overlay::Reap) = model.overlays.last() {
        let layout = model.reap_layout();
        let rows = usize::from(layout.list.height / layout.each.max(1));
        return model.reap.window.resize(rows, model.reap.rows().len());
    }
    if let Some(Overlay::Events(_)) = model.overlays.last() {
        let height = usize::from(model.event_rows().height);
        if let Some(Overlay::Events(log)) = model.overlays.last_mut() {
            log.window.resize(height, log.count().0);
        }
        return;
    }
    let last = last(model);
    let follows = matches!(model.overlays.last(), Some(Overlay::Output(_, None)));
    if !follows && position(model) > last {
        go_within(model, last, last);
    }
}

/// Opens all that is known of the item under the cursor: a recorded one's details, else a text.
pub(super) fn open_reap_row(model: &mut Model) -> Vec<Effect> {
    let Some(row) = model.reap.selected() else { return Vec::new() };
    let item = match row {
        ReapRow::Host(at) => {
            let host = model.reap.hosts.get(at).map(|pass| pass.host.clone());
            return host.map(|host| hosts::open(model, host)).unwrap_or_default();
        }
        ReapRow::Item(at) => model.reap.items().get(at),
    };
    let Some(item) = item else { return Vec::new() };
    let id = item.sandbox_id.as_deref().map(SandboxId::new);
    if let Some(id) = id.filter(|id| model.sandboxes.get(id).is_some()) {
        return details::open_sandbox(model, id);
    }
    let title = format!("{} on {}", item.id(), item.host);
    match TextOverlay::of_record(title, serde_json::to_value(item)) {
        Ok(text) => model.overlays.push(Overlay::Text(text)),
        Err(why) => say_no_yaml(model, &why),
    }
    Vec::new()
}

/// Opens the host that the overlay on top is about.
pub(super) fn open_its_host(model: &mut Model) -> Vec<Effect> {
    let name = match model.overlays.last() {
        Some(Overlay::Details(details)) => Some(details.record.host.clone()),
        Some(Overlay::Snapshot(details)) => Some(details.view.record.host.clone()),
        _ => None,
    };
    if let Some(name) = name {
        hosts::open(model, name)
    } else {
        say(model, Role::Dim, "this is about no one host")
    }
}

fn say_no_yaml(model: &mut Model, why: &str) {
    model.say(Role::Bad, format!("it cannot be written as YAML: {why}"));
}

/// Opens the raw record of what the overlay on top is about.
pub(super) fn open_raw(model: &mut Model) {
    match model.raw() {
        Some(Ok(page)) => model.overlays.push(Overlay::Text(page)),
        Some(Err(why)) => say_no_yaml(model, &why),
        None => model.say(Role::Dim, "there is no record behind this"),
    }
}
