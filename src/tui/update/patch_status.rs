//! How the patches of open snapshots stand: read when they are opened, and when something changed.

use super::Effect;
use crate::client::{Error, PatchStatus};
use crate::domain::name::SnapshotId;
use crate::tui::model::{Load, Model, Overlay};

/// Reads how they stand once more, where they are open.
pub(super) fn read_again(model: &mut Model) -> Vec<Effect> {
    let mut effects = Vec::new();
    for overlay in &mut model.overlays {
        if let Overlay::Patches(patches) = overlay
            && patches.reading.begin()
        {
            effects.push(Effect::PatchStatus(patches.snapshot.clone()));
        }
    }
    effects
}

/// The stand of its patches is known.
pub(super) fn taken(
    model: &mut Model,
    id: &SnapshotId,
    answer: &Result<Vec<PatchStatus>, Error>,
) -> Vec<Effect> {
    let mut again = false;
    for overlay in &mut model.overlays {
        let Overlay::Patches(patches) = overlay else { continue };
        if patches.snapshot != *id {
            continue;
        }
        again |= patches.reading.end();
        match answer {
            Ok(status) => patches.replace(status.clone()),
            Err(problem) => patches.load = Load::Failed(problem.clone()),
        }
    }
    if again { read_again(model) } else { Vec::new() }
}
