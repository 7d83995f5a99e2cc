//! Credits: read when an event tells that they changed, and with the list; granted from a form.

use std::time::Duration;

use super::toast::say;
use super::{Effect, Timer, details};
use crate::client::Error;
use crate::domain::event::Event;
use crate::tui::model::{Fetch, Ledger, Load, Model, Overlay, Role};

/// How long changes are gathered before the ledger is read: all of it is, whatever changed.
const GATHER: Duration = Duration::from_millis(300);

/// Reads the credits in a moment, unless that is under way: then once more after it.
pub(super) fn read(model: &mut Model) -> Vec<Effect> {
    if !model.credits.reading.begin() {
        return Vec::new();
    }
    vec![Effect::After(GATHER, Box::new(Timer::Credits))]
}

/// Time to read them. A change from here on is not in the answer.
pub(super) fn due(model: &mut Model) -> Vec<Effect> {
    model.credits.reading = Fetch::Running;
    vec![Effect::Credits(model.now)]
}

/// Reads them if an event tells that they changed.
pub(super) fn read_if_news(model: &mut Model, event: &Event) -> Vec<Effect> {
    if event.kind.is_of_credits() { read(model) } else { Vec::new() }
}

/// The credits were read, or could not be: then those that were read before stay.
pub(super) fn taken(model: &mut Model, answer: Result<Box<Ledger>, Error>) -> Vec<Effect> {
    let again = model.credits.reading.end();
    match answer {
        Ok(_) if model.frozen.is_some() && model.credits.load == Load::Ready => model.hold(),
        Ok(ledger) => {
            model.credits.take(*ledger);
            model.measure_spending();
        }
        Err(problem) => model.credits.load = Load::Failed(problem),
    }
    if again { read(model) } else { Vec::new() }
}

/// Opens the sandbox of the entry under the cursor, or why the credits could not be read.
pub(super) fn open_row(model: &mut Model) -> Vec<Effect> {
    if let Load::Failed(problem) = &model.credits.load {
        let problem = problem.clone();
        model.overlays.push(Overlay::Error(problem, 0));
        return Vec::new();
    }
    let Some(entry) = model.credits.selected() else { return Vec::new() };
    if let Some(id) = entry.entry.sandbox_id.clone() {
        return details::open_sandbox(model, id);
    }
    let note = entry.entry.note.as_deref().map(|note| format!(": {note}")).unwrap_or_default();
    let text = format!("{} by {}{note}", entry.entry.kind, entry.entry.actor);
    say(model, Role::Dim, text)
}
