//! Undo: what was removed is asked about, and brought back.

use super::Effect;
use crate::client::{Request, UndoRequest};
use crate::domain::OperationKind;
use crate::tui::model::{Confirm, Model, Overlay, Role, UndoTarget};

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
pub(super) fn run(model: &mut Model, targets: &[UndoTarget]) -> Vec<Effect> {
    let bring_back = |target: &UndoTarget| {
        let (snapshot, kind) = (target.snapshot.clone(), OperationKind::Restore);
        let request = UndoRequest { id: Some(snapshot.to_string()) };
        let title = target.name.as_ref().unwrap_or(&target.title).clone();
        Effect::Start(model.jobs.start_on(kind, snapshot, title, model.now), Request::Undo(request))
    };
    targets.iter().map(bring_back).collect()
}
