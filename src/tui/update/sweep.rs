//! Sweep of this console: begun by the clock, told of in the header and by a toast.

use std::time::Duration;

use super::{Effect, Timer};
use crate::client::{Error, SweepReport};
use crate::domain::sweep::{SweepItem, SweepOutcome};
use crate::domain::text::clean_line;
use crate::tui::model::{Model, Role, Sweep, many};

/// Wait before the first one: the list and the hosts come first.
const FIRST: Duration = Duration::from_secs(1);

/// Timer of the first one, if there are any.
pub(super) fn first(model: &Model) -> Option<Effect> {
    let interval = model.sweeps.interval?;
    Some(Effect::After(FIRST.min(interval), Box::new(Timer::Sweep)))
}

/// Begins one, whether or not the one before has come to its end. An operator who leaves waits for nothing new.
pub(super) fn due(model: &mut Model) -> Vec<Effect> {
    let Some(interval) = model.sweeps.interval else { return Vec::new() };
    let mut effects = vec![Effect::After(interval, Box::new(Timer::Sweep))];
    if model.leaving.is_none() {
        effects.push(Effect::Sweep(model.sweeps.begin()));
    }
    effects
}

/// End of a sweep.
pub(super) fn swept(
    model: &mut Model,
    number: u64,
    answer: Result<Box<SweepReport>, Error>,
) -> Vec<Effect> {
    let is_news = model.sweeps.hear(number);
    let (standing, ended) = match answer {
        Ok(report) => {
            let held = report.held_back.as_ref().map(|held| held.message.clone());
            (held.map_or(Sweep::On, Sweep::Paused), destroyed(&report))
        }
        Err(error) => (Sweep::Paused(error.message), None),
    };
    if is_news && model.sweep != standing {
        if let Sweep::Paused(why) = &standing {
            model.say(Role::Warn, clean_line(&format!("sweep paused: {why}"), 400));
        }
        model.sweep = standing;
    }
    if let Some(text) = ended {
        model.say(Role::Plain, text);
    }
    Vec::new()
}

/// Sentence on what a sweep destroyed.
fn destroyed(report: &SweepReport) -> Option<String> {
    let items: Vec<&SweepItem> = report.with(&SweepOutcome::Destroyed).collect();
    match items.as_slice() {
        [] => None,
        [item] => {
            let title = item.name.as_deref().unwrap_or(item.id.as_str());
            Some(clean_line(&format!("destroyed {title}: its time was over"), 400))
        }
        items => {
            let count = many(items.len(), "sandbox", "sandboxes");
            Some(format!("destroyed {count}: their time was over"))
        }
    }
}
