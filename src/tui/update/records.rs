//! Records of sandboxes: read when something named them, and taken into the list and the open details.

use std::sync::Arc;

use super::toast::say;
use super::{Effect, credits, external_operations, hub, snapshots, stale};
use crate::client::Error;
use crate::domain::Time;
use crate::domain::error::Code;
use crate::domain::name::{HostName, SandboxId};
use crate::domain::sandbox::SandboxRecord;
use crate::tui::model::{Details, Entry, FormKind, Load, Model, Overlay, Role};

/// More ids than this are read with one list.
const MANY: usize = 32;
/// How often everything is read again, in case an event was lost: this many refreshes.
const LISTS_EVERY: u32 = 15;

/// A second passed.
pub(super) fn tick(model: &mut Model, now: Time) -> Vec<Effect> {
    model.now = now;
    if model.toast.as_ref().is_some_and(|toast| toast.until <= now) {
        model.toast = None;
    }
    // A file that could not be read may be mended by hand, of which nothing tells.
    let refreshes = if matches!(model.sandboxes.load, Load::Failed(_)) { 1 } else { LISTS_EVERY };
    let every = model.refresh.saturating_mul(refreshes);
    if model.read_at.is_some_and(|at| now.since(at) >= every) && model.frozen.is_none() {
        return list(model);
    }
    Vec::new()
}

/// Reads everything, unless a read is under way: then once more after it.
pub(super) fn list(model: &mut Model) -> Vec<Effect> {
    if !model.reading.begin() {
        return Vec::new();
    }
    model.outdated.clear();
    vec![Effect::List]
}

/// All sandboxes were read.
pub(super) fn listed(model: &mut Model, answer: Result<Vec<Arc<Entry>>, Error>) -> Vec<Effect> {
    let again = model.reading.end();
    model.read_at = Some(model.now);
    let mut effects = Vec::new();
    match answer {
        Ok(_) if model.frozen.is_some() && model.sandboxes.load == Load::Ready => model.hold(),
        Ok(entries) => {
            refresh_details(model, &entries);
            let first = model.sandboxes.load != Load::Ready;
            let old = model.sandboxes.replace(entries);
            if !old.is_empty() {
                effects.push(Effect::Discard(old));
            }
            effects.extend(external_operations::read(model));
            effects.extend(snapshots::read(model));
            effects.extend(credits::read(model));
            effects.extend(hub::read(model));
            if first {
                // Their schemas take longer to read than the list: not before that is on the screen.
                effects.extend([Effect::Extensions, Effect::Profiles]);
                effects.extend(stale::read(model));
                // A host that answered before this could not tell whether it had anything to be asked for.
                let hosts: Vec<HostName> =
                    model.hosts.list.iter().map(|host| host.view.name.clone()).collect();
                effects.extend(
                    hosts
                        .iter()
                        .flat_map(|name| external_operations::refresh_services(model, name)),
                );
            }
        }
        // Rows that are there stay; the title says that they could not be read again.
        Err(problem) => model.sandboxes.load = Load::Failed(problem),
    }
    if again {
        effects.extend(list(model));
    }
    effects
}

fn refresh_details(model: &mut Model, entries: &[Arc<Entry>]) {
    for overlay in &mut model.overlays {
        if let Overlay::Details(details) = overlay
            && let Some(entry) = entries.iter().find(|entry| entry.record.id == details.id)
        {
            (*details.record).clone_from(&entry.record);
        }
    }
}

/// Record of a sandbox, as read.
pub(super) fn got(
    model: &mut Model,
    id: &SandboxId,
    answer: Result<Box<Entry>, Error>,
) -> Vec<Effect> {
    if model.wanted.as_ref() == Some(id) {
        return show_wanted(model, answer);
    }
    if model.frozen.is_some() {
        model.hold();
        return Vec::new();
    }
    match answer {
        Ok(entry) => take(model, *entry),
        Err(problem) if problem.code == Code::NotFound => model.sandboxes.remove(id),
        // The next list brings it.
        Err(_) => {}
    }
    Vec::new()
}

/// Opens the details of one that is not in the list, if nothing was opened meanwhile.
fn show_wanted(model: &mut Model, answer: Result<Box<Entry>, Error>) -> Vec<Effect> {
    model.wanted = None;
    match answer {
        Ok(entry) if matches!(model.overlays.last(), None | Some(Overlay::Events(_))) => {
            let id = entry.record.id.clone();
            model
                .overlays
                .push(Overlay::Details(Details::new(SandboxRecord::clone(&entry.record))));
            vec![Effect::Events(Some(id), None)]
        }
        Ok(_) => Vec::new(),
        Err(problem) => say(model, Role::Warn, problem.message),
    }
}

/// Takes a record's newer version into the list and the open details.
pub(super) fn take(model: &mut Model, entry: Entry) {
    for overlay in &mut model.overlays {
        if let Overlay::Details(details) = overlay
            && details.id == entry.record.id
            && details.record.revision <= entry.record.revision
        {
            (*details.record).clone_from(&entry.record);
        }
    }
    model.sandboxes.upsert(entry);
}

/// Events named sandboxes; they are read now.
pub(super) fn fetch(model: &mut Model) -> Vec<Effect> {
    if model.outdated.len() > MANY {
        return list(model);
    }
    std::mem::take(&mut model.outdated).into_iter().map(Effect::Get).collect()
}

/// Takes those whose labels were refused as they are now, in the form of labels and by reading them anew.
pub(super) fn look_again(model: &mut Model, refused: Vec<SandboxId>) -> Vec<Effect> {
    if refused.is_empty() {
        return say(model, Role::Dim, "none was refused");
    }
    let entries = refused.iter().filter_map(|id| model.sandboxes.get(id)).cloned();
    let entries: Vec<Arc<Entry>> = entries.collect();
    if let Some(FormKind::Labels(labels)) = model.form().map(|form| &mut form.kind) {
        for entry in &entries {
            labels.look_again(&entry.record);
        }
    }
    refused.into_iter().map(Effect::Get).collect()
}
