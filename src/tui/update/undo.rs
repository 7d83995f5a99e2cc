//! Undo: what was removed is asked about, and brought back.

use super::Effect;
use crate::client::{Request, UndoRequest};
use crate::domain::OperationKind;
use crate::tui::model::{Confirm, Model, Overlay, Role};

/// Opens the question about what is meant; says why where there is nothing.
pub(super) fn ask(model: &mut Model) -> Vec<Effect> {
    match model.undo_meant() {
        Ok(targets) => {
            let silent = model.silences(targets.iter().map(|target| target.host.as_str()));
            model.overlays.push(Overlay::Confirm(Confirm::undo(targets, silent)));
        }
        Err(why) => model.say(Role::Warn, why),
    }
    Vec::new()
}

/// Brings back what was asked about, each by a job of its own, from the snapshot that was named.
pub(super) fn run(model: &mut Model, confirm: Confirm) -> Vec<Effect> {
    let mut effects = Vec::new();
    for target in confirm.undo {
        let request = UndoRequest { id: Some(target.snapshot.to_string()) };
        let title = target.name.unwrap_or(target.title);
        let kind = OperationKind::Restore;
        let job = model.jobs.start_on(kind, target.snapshot, title, model.now);
        effects.push(Effect::Start(job, Request::Undo(request)));
    }
    effects
}
