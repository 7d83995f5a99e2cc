//! The events overlay's keys, and what it hears.

use super::toast::say;
use super::{Effect, details};
use crate::client::Error;
use crate::domain::event::Event;
use crate::tui::keymap::Action;
use crate::tui::model::{EventFilter, EventLog, EventRows, Load, Model, Overlay, Role};

fn open_log(model: &mut Model) -> Option<&mut EventLog> {
    model.overlays.iter_mut().rev().find_map(|overlay| match overlay {
        Overlay::Events(log) => Some(log.as_mut()),
        _ => None,
    })
}

/// Opens the overlay.
pub(super) fn open(model: &mut Model) -> Vec<Effect> {
    model.overlays.retain(|overlay| !matches!(overlay, Overlay::Events(_)));
    model.overlays.push(Overlay::Events(Box::default()));
    read(model)
}

/// Reads as far back as the filter looks, if that was not read yet.
fn read(model: &mut Model) -> Vec<Effect> {
    let now = model.now;
    let Some(log) = open_log(model) else { return Vec::new() };
    let wanted = log.is_to_be_read();
    wanted.map(|ago| Effect::EventLog(now.minus_seconds(ago.get()))).into_iter().collect()
}

/// Reads everything again, if the overlay is open: some may not have been heard.
pub(super) fn read_again(model: &mut Model) -> Vec<Effect> {
    if let Some(log) = open_log(model) {
        log.read = None;
    }
    read(model)
}

/// The events were read, or could not be.
pub(super) fn taken(model: &mut Model, answer: Result<Box<EventRows>, Error>) -> Vec<Effect> {
    let now = model.now;
    if let Some(log) = open_log(model) {
        match answer {
            Ok(rows) => log.replace(*rows, now),
            Err(problem) => log.load = Load::Failed(problem),
        }
    }
    Vec::new()
}

/// An event was heard.
pub(super) fn hear(model: &mut Model, event: &Event) {
    let now = model.now;
    if let Some(log) = open_log(model) {
        log.hear(event, now);
    }
}

/// A key of the table.
pub(super) fn act(model: &mut Model, action: Action) -> Vec<Effect> {
    let now = model.now;
    let Some(log) = open_log(model) else { return Vec::new() };
    match action {
        Action::NextClass | Action::PreviousClass => log.turn(action == Action::NextClass, now),
        Action::Filter => {
            log.field = Some(tui_input::Input::new(log.filter().text().to_owned()));
        }
        Action::Clear => log.set_filter(EventFilter::default(), now),
        Action::Retry => return read_again(model),
        _ => {
            if let Some(to) = log.window.moved(action) {
                log.go(to);
            }
        }
    }
    Vec::new()
}

/// Opens the sandbox that the event under the cursor is about, listed or not.
pub(super) fn open_row(model: &mut Model) -> Vec<Effect> {
    let Some(Overlay::Events(log)) = model.overlays.last() else { return Vec::new() };
    let Some(row) = log.selected() else { return Vec::new() };
    if let Some(id) = row.id.clone() {
        return details::open_sandbox(model, id);
    }
    let text = format!("{} by {}  {}", row.what, row.by, row.why);
    say(model, Role::Dim, text)
}

/// A key of the table in the filter's text field.
pub(super) fn field_act(model: &mut Model, action: Action) -> Vec<Effect> {
    let now = model.now;
    let Some(log) = open_log(model) else { return Vec::new() };
    match action {
        Action::Submit => {
            log.field = None;
            if let Some(problem) = log.filter().problem().map(str::to_owned) {
                model.say(Role::Warn, problem);
            }
        }
        Action::Leave => {
            log.field = None;
            log.set_filter(EventFilter::default(), now);
        }
        _ => {}
    }
    read(model)
}

/// The text field's text becomes the filter.
pub(super) fn typed(model: &mut Model) -> Vec<Effect> {
    let now = model.now;
    if let Some(log) = open_log(model)
        && let Some(field) = &log.field
        && field.value() != log.filter().text()
    {
        let filter = EventFilter::parse(field.value());
        log.set_filter(filter, now);
    }
    Vec::new()
}
