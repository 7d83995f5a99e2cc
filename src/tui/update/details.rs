//! Details of a sandbox, opened; whoever opens them has looked at what failed there.

use super::Effect;
use crate::domain::name::SandboxId;
use crate::domain::sandbox::SandboxRecord;
use crate::tui::model::{Details, JobId, Model, Overlay};

/// Opens a sandbox's details. One that is over is in no list; its record is there all the same.
pub(super) fn open_sandbox(model: &mut Model, id: SandboxId) -> Vec<Effect> {
    if model.sandboxes.get(&id).is_some() {
        return open(model, &id);
    }
    model.wanted = Some(id.clone());
    vec![Effect::Get(id)]
}

/// Opens a sandbox's details, if it is listed.
pub(super) fn open(model: &mut Model, id: &SandboxId) -> Vec<Effect> {
    let Some(entry) = model.sandboxes.get(id) else { return Vec::new() };
    let record = SandboxRecord::clone(&entry.record);
    look_at(model, id);
    model.overlays.push(Overlay::Details(Details::new(record)));
    vec![Effect::Get(id.clone()), Effect::Events(Some(id.clone()), None)]
}

/// Says that somebody has looked at a sandbox: at each of its failures.
fn look_at(model: &mut Model, id: &SandboxId) {
    let failed: Vec<JobId> = model
        .jobs
        .list()
        .filter(|job| job.sandbox.as_ref() == Some(id) && job.state.problem().is_some())
        .map(|job| job.id)
        .collect();
    for job in failed {
        model.activity.look_at(job);
    }
}
