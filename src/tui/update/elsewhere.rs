//! What other processes do, and what became of services while nobody looked.

use std::sync::Arc;

use super::Effect;
use crate::client::Problem;
use crate::domain::lineage::SnapshotView;
use crate::domain::name::HostName;
use crate::domain::operation::Operation;
use crate::domain::{OperationState, State};
use crate::tui::model::{Entry, Job, Model};

/// How many ended operations of other processes are listed.
const ENDED: usize = 50;

/// Reads the operations, unless they are being read: then once more after it.
pub(super) fn read(model: &mut Model) -> Vec<Effect> {
    if model.reading_operations.0 {
        model.reading_operations.1 = true;
        return Vec::new();
    }
    model.reading_operations = (true, false);
    vec![Effect::Operations]
}

/// Reads the operations if a record tells of one that is not known here, or does not tell of one that is.
pub(super) fn read_if_news(model: &mut Model, entry: &Entry) -> Vec<Effect> {
    let id = &entry.record.id;
    let told = entry.record.operation.as_ref();
    let known = |job: &&Job| told.is_some_and(|running| job.operation.as_ref() == Some(&running.id));
    let ended = |job: &Job| job.elsewhere.is_some() && job.sandbox.as_ref() == Some(id) && !known(&job);
    let new = told.is_some_and(|running| !is_ours(model, running.pid, &running.host))
        && model.jobs.list().find(known).is_none();
    if new || model.jobs.running().any(ended) { read(model) } else { Vec::new() }
}

/// Reads the operations if a snapshot tells of one that is not known here, or does not tell of one that is.
pub(super) fn read_if_snapshots_tell(model: &mut Model, views: &[Arc<SnapshotView>]) -> Vec<Effect> {
    let told = |job: &Job| {
        let view = job.snapshot.as_ref().and_then(|id| views.iter().find(|view| view.record.id == *id));
        view.is_some_and(|view| view.record.operation.as_ref().map(|running| &running.id) == job.operation.as_ref())
    };
    let on_it = |job: &&Job| job.elsewhere.is_some() && job.sandbox.is_none() && job.snapshot.is_some();
    let ended = model.jobs.running().filter(on_it).any(|job| !told(job));
    let running = views.iter().filter_map(|view| view.record.operation.as_ref());
    let new = running
        .filter(|running| !is_ours(model, running.pid, &running.host))
        .any(|running| model.jobs.list().all(|job| job.operation.as_ref() != Some(&running.id)));
    if new || ended { read(model) } else { Vec::new() }
}

/// Reads the operations if one runs of whose end no record tells: a deep check of a host.
pub(super) fn read_if_nothing_tells(model: &mut Model) -> Vec<Effect> {
    let alone = |job: &Job| job.elsewhere.is_some() && job.sandbox.is_none() && job.snapshot.is_none();
    if model.jobs.running().any(alone) { read(model) } else { Vec::new() }
}

fn is_ours(model: &Model, pid: u32, host: &str) -> bool {
    model.process.0 == pid && model.process.1 == host
}

/// The operations were read.
pub(super) fn operations(model: &mut Model, answer: Result<Vec<Operation>, Problem>) -> Vec<Effect> {
    let again = model.reading_operations.1;
    model.reading_operations = (false, false);
    // One that cannot be read is read again soon; records tell of those that matter meanwhile.
    if let Ok(mut operations) = answer {
        operations.retain(|operation| !is_ours(model, operation.pid, &operation.host));
        let ended = operations.iter().filter(|operation| operation.state != OperationState::Running).count();
        let mut skip = ended.saturating_sub(ENDED);
        operations.retain(|operation| {
            let old = operation.state != OperationState::Running && skip > 0;
            skip -= usize::from(old);
            !old
        });
        let (sandboxes, snapshots) = (&model.sandboxes, &model.snapshots);
        model.jobs.take_elsewhere(operations, |operation| {
            let id = operation.sandbox_id.as_ref();
            if let Some(entry) = id.and_then(|id| sandboxes.get(id)) {
                return super::work::title(&entry.record);
            }
            let snapshot = operation.snapshot_id.as_ref().map(|id| match snapshots.get(id) {
                Some(view) => super::work::snapshot_title(&view.record),
                None => id.to_string(),
            });
            id.map(ToString::to_string).or(snapshot).unwrap_or_else(|| "a host".to_owned())
        });
    }
    if again { read(model) } else { Vec::new() }
}

/// Asks a host for its services: if it answers, has something to ask for, and is not being asked.
pub(super) fn refresh_services(model: &mut Model, name: &HostName) -> Vec<Effect> {
    let wanted =
        model.sandboxes.all().any(|entry| entry.record.state == State::Ready && entry.record.host.same(name.as_str()));
    match model.hosts.get_mut(name.as_str()) {
        Some(host) if host.refreshing.0 => {
            host.refreshing.1 = true;
            Vec::new()
        }
        Some(host) if wanted && host.is_fine() => {
            host.refreshing = (true, false);
            vec![Effect::RefreshServices(name.clone())]
        }
        _ => Vec::new(),
    }
}

/// A host was asked for its services. That it could not be is the host's state, shown where hosts are.
pub(super) fn services_refreshed(model: &mut Model, name: &HostName, answer: Result<(), Problem>) -> Vec<Effect> {
    let Some(host) = model.hosts.get_mut(name.as_str()) else { return Vec::new() };
    let again = std::mem::take(&mut host.refreshing).1;
    host.services_error = answer.err();
    if again { refresh_services(model, name) } else { Vec::new() }
}
