//! Operations of other processes, and news of services while nobody looked.

use super::{Effect, activity};
use crate::domain::error::Error;
use crate::domain::name::HostName;
use crate::domain::operation::Operation;
use crate::domain::{OperationState, State};
use crate::tui::model::{Fetch, JobState, Load, Model, Moved};

/// How many ended operations of other processes are listed.
const ENDED: usize = 150;

/// Reads the operations, unless they are being read: then once more after it.
pub(super) fn read(model: &mut Model) -> Vec<Effect> {
    if model.reading_operations.begin() { vec![Effect::Operations] } else { Vec::new() }
}

fn is_ours(model: &Model, pid: u32, host: &str) -> bool {
    model.process.0 == pid && model.process.1 == host
}

/// The operations were read.
pub(super) fn operations(model: &mut Model, answer: Result<Vec<Operation>, Error>) -> Vec<Effect> {
    let again = model.reading_operations.end();
    // One that cannot be read is read again soon; records tell of those that matter meanwhile.
    let mut effects = Vec::new();
    let problem = answer.as_ref().err().cloned();
    if let Some(problem) = problem.clone()
        && model.activity.operations_problem.as_ref() != Some(&problem)
    {
        let words = "the operations cannot be read: what other processes do is not shown";
        model.activity.add_problem(model.now, words.to_owned(), problem);
    }
    model.activity.operations_problem = problem;
    model.activity.operations = match &answer {
        Ok(_) => Load::Ready,
        // Those that were read before are known all the same.
        Err(_) if model.activity.operations == Load::Ready => Load::Ready,
        Err(problem) => Load::Failed(problem.clone()),
    };
    if let Ok(mut operations) = answer {
        operations.retain(|operation| !is_ours(model, operation.pid, &operation.host));
        let ended = operations
            .iter()
            .filter(|operation| operation.state != OperationState::Running)
            .count();
        let mut skip = ended.saturating_sub(ENDED);
        operations.retain(|operation| {
            let old = operation.state != OperationState::Running && skip > 0;
            skip -= usize::from(old);
            !old
        });
        let (sandboxes, snapshots) = (&model.sandboxes, &model.snapshots);
        let moved = model.jobs.take_external(operations, model.started, |operation| {
            let sandbox = operation.subject.sandbox();
            let snapshot = operation.subject.snapshot().filter(|_| sandbox.is_none());
            let listed = sandbox.and_then(|id| sandboxes.get(id)).map(|entry| &entry.record);
            let kept = snapshot.and_then(|id| snapshots.get(id)).map(|view| &view.record);
            let name = listed
                .map(|record| record.title())
                .or(kept.map(crate::domain::snapshot::SnapshotRecord::title));
            let id = || sandbox.map(ToString::to_string).or(snapshot.map(ToString::to_string));
            let name = operation.name.clone().or(name.map(str::to_owned)).or_else(id);
            name.unwrap_or_else(|| "a host".to_owned())
        });
        model.activity.fold(&model.jobs);
        for step in moved {
            effects.extend(of_moved(model, step));
        }
    }
    if again {
        effects.extend(read(model));
    }
    effects
}

/// Another process's operation began or ended: its record says more, and what began with it may have no event.
fn of_moved(model: &mut Model, moved: Moved) -> Vec<Effect> {
    let mut effects = Vec::new();
    let id = match moved {
        Moved::Began(id) => id,
        Moved::Ended(id, before) => {
            // Whoever asked for its end is told how it ended.
            if before == JobState::Cancelling {
                activity::tell(model, id);
            }
            effects.extend(activity::notify(model, id));
            id
        }
    };
    let sandbox = model.jobs.get(id).and_then(|job| job.sandbox.clone());
    effects.extend(sandbox.filter(|id| model.sandboxes.get(id).is_some()).map(Effect::Get));
    effects
}

/// Asks a host for its services: if it answers, has something to ask for, and is not being asked.
pub(super) fn refresh_services(model: &mut Model, name: &HostName) -> Vec<Effect> {
    let wanted = model
        .sandboxes
        .all()
        .any(|entry| entry.record.state == State::Ready && entry.record.host.same(name.as_str()));
    let Some(host) = model.hosts.get_mut(name.as_str()) else { return Vec::new() };
    let asks = host.refreshing != Fetch::Idle || wanted && host.is_fine();
    if asks && host.refreshing.begin() {
        vec![Effect::RefreshServices(name.clone())]
    } else {
        Vec::new()
    }
}

/// A host was asked for its services. That it could not be is the host's state, shown where hosts are.
pub(super) fn services_refreshed(
    model: &mut Model,
    name: &HostName,
    answer: Result<(), Error>,
) -> Vec<Effect> {
    let Some(host) = model.hosts.get_mut(name.as_str()) else { return Vec::new() };
    let again = host.refreshing.end();
    host.services_error = answer.err();
    if again { refresh_services(model, name) } else { Vec::new() }
}
