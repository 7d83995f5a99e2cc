//! The reap plan: asked for, changed, applied after a question; and what comes of each item while it runs.

use super::toast::say;
use super::{Effect, jobs, snapshots};
use crate::client::{Error, PlanSource, ReapItem, ReapPlan, ReapReport, ReapRequest, Request};
use crate::domain::OperationKind;
use crate::domain::name::{HostName, OperationId};
use crate::domain::stale::{ReapAction, ReapOutcome};
use crate::tui::keymap::Action;
use crate::tui::model::{
    Confirm, Job, JobId, JobResult, Judged, Load, Model, Overlay, PlanTarget, Role, many,
    reap_outcomes,
};

/// Opens the plan: the one that is being applied, else a new one.
pub(super) fn open(model: &mut Model) -> Vec<Effect> {
    if !model.overlays.iter().any(|overlay| matches!(overlay, Overlay::Reap)) {
        model.overlays.push(Overlay::Reap);
    }
    if is_running(model) || model.reap.is_asked() { Vec::new() } else { ask(model) }
}

/// Asks for a plan. A console that only looks asks what is stale, which keeps nothing.
fn ask(model: &mut Model) -> Vec<Effect> {
    let number = model.reap.ask();
    vec![if model.read_only { Effect::InspectStale(number) } else { Effect::PlanReap(number) }]
}

fn is_running(model: &Model) -> bool {
    model.reap.job.and_then(|id| model.jobs.get(id)).is_some_and(Job::is_running)
}

/// The plan is there, or cannot be made.
pub(super) fn planned(
    model: &mut Model,
    number: u64,
    answer: Result<Judged, Error>,
) -> Vec<Effect> {
    if number != model.reap.number {
        return Vec::new();
    }
    match answer {
        Ok(judged) => model.reap.take(judged),
        Err(error) => model.reap.load = Load::Failed(error),
    }
    Vec::new()
}

/// A key of the table.
pub(super) fn act(model: &mut Model, action: Action) -> Vec<Effect> {
    match action {
        Action::NextClass => model.reap.step_class(true),
        Action::PreviousClass => model.reap.step_class(false),
        Action::Retry if is_running(model) => {
            model.say(Role::Dim, "it is being applied: a new plan when that has ended");
        }
        Action::Retry if model.reap.is_asked() => {}
        Action::Retry => return ask(model),
        Action::Tick | Action::TickAll | Action::AdoptInstead | Action::RemoveInstead => {
            choose(model, action);
        }
        Action::Apply => ask_apply(model),
        _ => {
            if let Some(to) = model.reap.window.moved(action) {
                model.reap.go(to);
            }
        }
    }
    Vec::new()
}

/// Changes what is done about the item under the cursor, or about all that are shown.
fn choose(model: &mut Model, action: Action) {
    if !model.reap.drawn {
        return model.say_undrawn();
    }
    if model.reap.job.is_some() {
        return model.say(Role::Dim, "it was applied as it is: r makes a new plan");
    }
    let chosen = match action {
        Action::AdoptInstead => model.reap.choose(&ReapAction::Adopt),
        Action::RemoveInstead => model.reap.choose(&ReapAction::Remove),
        Action::TickAll => {
            model.reap.toggle_all();
            Ok(())
        }
        _ => model.reap.toggle(),
    };
    if let Err(why) = chosen {
        model.say(Role::Warn, why);
    }
}

/// Opens the question whether to apply it, with all that was chosen as it is now.
fn ask_apply(model: &mut Model) {
    if !model.reap.drawn {
        return model.say_undrawn();
    }
    if let Some(why) = model.reap_refusal() {
        return model.say(Role::Warn, why);
    }
    let changed = model.reap_changes();
    let Some(plan) = model.reap.plan(&changed) else { return };
    let forced = model.reap.to_do().filter(|(at, _)| !changed.contains(at));
    let forced = forced.filter(|(at, _)| model.reap.is_forced(*at)).count();
    let silent = model.silences(plan.to_do().map(|item| item.host.as_str()));
    let target = PlanTarget { left_out: changed.len(), forced, plan };
    model.overlays.push(Overlay::Confirm(Confirm::reap(target, silent)));
}

/// Applies what was asked about. A plan that became too old meanwhile is not begun.
pub(super) fn apply(model: &mut Model, plan: ReapPlan) -> Vec<Effect> {
    if let Some(why) = model.reap_refusal() {
        return say(model, Role::Warn, why);
    }
    let count = plan.to_do().count();
    let title = many(count, "stale item", "stale items");
    let job = model.jobs.start(OperationKind::Reap, None, title, model.now);
    if let Some(job) = model.jobs.get_mut(job) {
        job.part = Some((0, count as u64));
    }
    model.reap.begin(job);
    let plan = PlanSource::Plan(Box::new(plan));
    let request = ReapRequest { plan, no_undo: false, alone: false };
    vec![Effect::Start(job, Request::Reap(Box::new(request)))]
}

/// An item is done: of the reap that was asked for here, also where its start was not answered yet.
pub(super) fn reaped(model: &mut Model, operation: &OperationId, item: ReapItem) -> Vec<Effect> {
    let job = model.reap.job.and_then(|id| model.jobs.get(id));
    let begun_here = job.is_some_and(|job| match &job.operation {
        Some(own) => own == operation,
        None => job.is_running(),
    });
    if begun_here {
        model.reap.done(item);
    }
    Vec::new()
}

/// End with an error: some of it could not be done, or it was cancelled. What was done was told item by item.
pub(super) fn ended_badly(model: &mut Model) -> Vec<Effect> {
    let hosts: Vec<HostName> = model.reap.to_do().map(|(_, item)| item.host.clone()).collect();
    look_again(model, hosts.iter())
}

/// Hosts on which something was done are looked at again; what is stale is asked behind that.
fn look_again<'a>(model: &mut Model, hosts: impl Iterator<Item = &'a HostName>) -> Vec<Effect> {
    for host in hosts {
        if let Some(host) = model.hosts.get_mut(host.as_str()) {
            host.changed = true;
        }
    }
    snapshots::read(model)
}

/// End, and all that it did.
pub(super) fn ended(model: &mut Model, id: JobId, report: &ReapReport) -> Vec<Effect> {
    if model.reap.job == Some(id) {
        model.reap.done_all(report);
    }
    let outcomes = reap_outcomes(|outcome| report.with(outcome).count());
    let bad = report.items.iter().find(|item| item.outcome == ReapOutcome::Failed);
    let result = match (bad, report.items.is_empty()) {
        (_, true) => JobResult::Told("nothing was to be done".to_owned()),
        (None, false) => JobResult::Told(outcomes),
        (Some(bad), false) => {
            JobResult::Warned(format!("{outcomes}: {} on {}: {}", bad.id, bad.host, bad.message))
        }
    };
    let mut effects = jobs::ended_as(model, id, result);
    effects.extend(look_again(model, report.items.iter().map(|item| &item.host)));
    effects
}
