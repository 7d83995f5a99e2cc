//! Undo: what was removed is looked up, asked about, and brought back.

use super::Effect;
use crate::client::{Request, UndoRequest};
use crate::domain::OperationKind;
use crate::domain::name::SandboxId;
use crate::domain::sandbox::SandboxRecord;
use crate::tui::keymap::Mode;
use crate::tui::model::{Confirm, Model, Overlay, Role};

/// Looks up what is meant; says why where there is nothing.
pub(super) fn ask(model: &mut Model) -> Vec<Effect> {
    match model.undo_meant() {
        Ok(ids) => vec![Effect::Removed(ids)],
        Err(why) => {
            model.say(Role::Warn, why);
            Vec::new()
        }
    }
}

/// The last records are there, as far as they are kept: it is asked, if nothing else was opened meanwhile.
pub(super) fn found(
    model: &mut Model,
    removed: &[(SandboxId, Option<Box<SandboxRecord>>)],
) -> Vec<Effect> {
    if !matches!(model.mode(), Mode::Main | Mode::TextBlock) {
        return Vec::new();
    }
    let target = |(id, last): &(SandboxId, Option<Box<SandboxRecord>>)| {
        model.undo_target(id, last.as_deref())
    };
    let targets: Vec<_> = removed.iter().filter_map(target).collect();
    if targets.is_empty() {
        model.say(Role::Warn, "nothing to undo: the undo snapshot is gone by now");
        return Vec::new();
    }
    let silent = model.silences(targets.iter().map(|target| target.host.as_str()));
    model.overlays.push(Overlay::Confirm(Confirm::undo(targets, silent)));
    Vec::new()
}

/// Brings back what was asked about, each by a job of its own.
pub(super) fn run(model: &mut Model, confirm: Confirm) -> Vec<Effect> {
    let mut effects = Vec::new();
    for target in confirm.undo {
        let title = target.name.clone().unwrap_or_else(|| target.title.clone());
        let kind = OperationKind::Restore;
        let job = model.jobs.start_on(kind, target.snapshot, title, model.now);
        let request = UndoRequest { id: Some(target.id.to_string()) };
        effects.push(Effect::Start(job, Request::Undo(request)));
    }
    effects
}
