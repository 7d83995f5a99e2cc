//! Stale things: asked after each look at a host, which work on it leads to, and only by what hosts said last. No host
//! is asked for it.

use std::time::Duration;

use super::{Effect, Timer};
use crate::client::{Error, StaleReport};
use crate::tui::model::{Fetch, Model};

/// How long news is gathered before it is judged again: twenty hosts that are looked at are one question.
const GATHER: Duration = Duration::from_secs(1);

/// Asks in a moment, unless that is under way: then once more after it.
pub(super) fn read(model: &mut Model) -> Vec<Effect> {
    if !model.stale.reading.begin() {
        return Vec::new();
    }
    vec![Effect::After(GATHER, Box::new(Timer::Stale))]
}

/// Time to ask. News from here on is not in the answer.
pub(super) fn due(model: &mut Model) -> Vec<Effect> {
    model.stale.reading = Fetch::Running;
    vec![Effect::Stale]
}

/// Judgement, or none: then what was known stays.
pub(super) fn taken(model: &mut Model, answer: Result<Box<StaleReport>, Error>) -> Vec<Effect> {
    let again = model.stale.reading.end();
    match answer {
        Ok(report) if model.frozen.is_some() && model.stale.report().is_some() => {
            if model.stale.is_news(&report) {
                model.hold();
            }
        }
        Ok(report) => model.stale.take(report),
        Err(error) => model.stale.error = Some(error),
    }
    if again { read(model) } else { Vec::new() }
}
