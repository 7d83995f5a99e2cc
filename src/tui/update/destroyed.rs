//! Sandboxes that are over, for a day: read only while the filter asks for them.

use std::sync::Arc;

use super::Effect;
use crate::client::Error;
use crate::tui::model::{Entry, Model, Role};

/// How long one can be looked at, in seconds.
const SHOWN_S: u64 = 86_400;

/// Asks for them when the filter begins to, and lets them go when it ends.
pub(super) fn settle(model: &mut Model) -> Vec<Effect> {
    let wants = model.sandboxes.shows_destroyed();
    if wants == model.wants_destroyed {
        return Vec::new();
    }
    model.wants_destroyed = wants;
    if wants {
        return read(model);
    }
    model.sandboxes.set_destroyed(Vec::new());
    Vec::new()
}

fn read(model: &mut Model) -> Vec<Effect> {
    if !model.reading_destroyed.begin() {
        return Vec::new();
    }
    vec![Effect::ListDestroyed(model.now.minus_seconds(SHOWN_S))]
}

/// A removal more: they are read again, where they are shown.
pub(super) fn read_again(model: &mut Model) -> Vec<Effect> {
    if model.wants_destroyed { read(model) } else { Vec::new() }
}

/// They were read, or could not be: then those stay that are there.
pub(super) fn listed(model: &mut Model, answer: Result<Vec<Arc<Entry>>, Error>) -> Vec<Effect> {
    let again = model.reading_destroyed.end();
    match answer {
        Ok(entries) if model.wants_destroyed => model.sandboxes.set_destroyed(entries),
        Ok(_) => {}
        Err(problem) => {
            let text = format!("destroyed sandboxes cannot be read: {}", problem.message);
            model.say(Role::Bad, text);
        }
    }
    if again { read_again(model) } else { Vec::new() }
}
