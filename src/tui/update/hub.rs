//! The State Hub's backlog: read with the list, and every few seconds while a hub is configured.

use std::time::Duration;

use super::Effect;
use crate::client::{Error, HubBacklog};
use crate::tui::model::{Load, Model};

/// How often it is read while a hub is configured.
const EVERY: Duration = Duration::from_secs(10);

/// Reads the backlog, unless that is under way.
pub(super) fn read(model: &mut Model) -> Vec<Effect> {
    if model.hub.reading.begin() { vec![Effect::HubBacklog] } else { Vec::new() }
}

/// A second passed.
pub(super) fn tick(model: &mut Model) -> Vec<Effect> {
    let is_due = model.hub.read_at.is_some_and(|at| model.now.since(at) >= EVERY);
    if model.hub.backlog.is_some() && is_due { read(model) } else { Vec::new() }
}

/// The backlog was read, or could not be: then the one that was read before stays.
pub(super) fn taken(model: &mut Model, answer: Result<Option<HubBacklog>, Error>) -> Vec<Effect> {
    model.hub.reading.end();
    model.hub.read_at = Some(model.now);
    match answer {
        Ok(_) if model.frozen.is_some() => model.hold(),
        Ok(backlog) => (model.hub.load, model.hub.backlog) = (Load::Ready, backlog),
        Err(problem) => model.hub.load = Load::Failed(problem),
    }
    Vec::new()
}
