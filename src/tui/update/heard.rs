//! News from the client: events, the ends of operations, and what changed of records and hosts.

use std::time::Duration;

use super::{
    Effect, Timer, activity, credits, destroyed, events, external_operations, hosts, reap, records,
    snapshots, stale, work,
};
use crate::client::{Error, Record, Update};
use crate::domain::event::{Event, EventKind};
use crate::domain::name::SandboxId;
use crate::domain::update::Ended;
use crate::tui::model::{Entry, Load, Model, Overlay, Role};

/// How long events are gathered before what they named is read.
const GATHER: Duration = Duration::from_millis(50);

/// Events are listened to, or cannot be.
pub(super) fn subscribed(model: &mut Model, answer: Result<(), Error>) -> Vec<Effect> {
    match answer {
        Ok(()) => {
            model.listening = true;
            Vec::new()
        }
        Err(problem) => {
            model.say(Role::Bad, format!("events cannot be followed: {}", problem.message));
            disconnected(model)
        }
    }
}

/// The event stream ended: listen again, and read what was missed.
pub(super) fn disconnected(model: &mut Model) -> Vec<Effect> {
    model.listening = false;
    let mut effects = records::list(model);
    effects.push(Effect::After(Duration::from_secs(1), Box::new(Timer::Listen)));
    effects
}

/// Something happened.
pub(super) fn heard(model: &mut Model, heard: Update) -> Vec<Effect> {
    match heard {
        Update::Event(event) => happened(model, &event),
        Update::Progress(progress) => {
            let title = progress.sandbox_id.as_ref().and_then(|id| model.name_of(id));
            model.jobs.advance(progress, title, model.now);
            Vec::new()
        }
        Update::Ended(ended) => heard_end(model, *ended),
        Update::Reaped(operation, item) => reap::reaped(model, &operation, *item),
        Update::Host(view) => hosts::changed(model, *view),
        Update::Record(record) => {
            let id = record.id.clone();
            records::got(model, &id, Ok(Box::new(Entry::new(*record))))
        }
        Update::Snapshots => snapshots::read(model),
        Update::Operations => external_operations::read(model),
        Update::Resync => {
            let mut effects = records::list(model);
            effects.extend(snapshots::read(model));
            effects.push(Effect::Hosts);
            effects.push(Effect::Events(None, Some(model.now.minus_seconds(600))));
            effects.extend(events::read_again(model));
            effects
        }
    }
}

/// An operation of this process ended. Of a job that was asked for here, the effect that started it tells.
fn heard_end(model: &mut Model, ended: Ended) -> Vec<Effect> {
    let Ended { operation, outcome } = ended;
    let host = match &outcome {
        Ok(Record::Sandbox(record)) => Some(record.host.clone()),
        Ok(Record::Snapshot(record)) => Some(record.host.clone()),
        Ok(Record::Host(view)) => Some(view.name.clone()),
        Ok(Record::Reap(_)) => None,
        Err(_) => operation
            .subject
            .sandbox()
            .and_then(|id| model.sandboxes.get(id))
            .map(|entry| entry.record.host.clone()),
    };
    // Its inventory is another one now; by the old one, what was removed would be called an orphan. What is stale is asked
    // behind the next look.
    if let Some(host) = host.and_then(|name| model.hosts.get_mut(name.as_str())) {
        host.changed = true;
    }
    let took = operation.finished_at.map(|end| end.since(operation.started_at));
    let mut of_others = None;
    if let Some(job) = model.jobs.of_operation(&operation.id) {
        job.took = took;
        of_others = (!job.asked_here).then_some(job.id);
    }
    let mut effects = match of_others {
        Some(job) => work::ended(model, job, outcome, took),
        None => Vec::new(),
    };
    if operation.subject.snapshot().is_some() {
        effects.extend(snapshots::read(model));
    }
    effects
}

/// An event came in.
fn happened(model: &mut Model, event: &Event) -> Vec<Effect> {
    let mut effects = snapshots::read_if_news(model, event);
    effects.extend(credits::read_if_news(model, event));
    if let Some(id) = &event.sandbox_id {
        if model.outdated.is_empty() {
            effects.push(Effect::After(GATHER, Box::new(Timer::Fetch)));
        }
        model.outdated.insert(id.clone());
        if model.stale.of(id).is_some() {
            effects.extend(stale::read(model));
        }
    }
    events::hear(model, event);
    if model.frozen.is_some() {
        model.hold();
    } else if !told_by_host(model, event) {
        activity::take(model, event);
    }
    for overlay in &mut model.overlays {
        if let Overlay::Details(details) = overlay
            && event.sandbox_id.as_ref() == Some(&details.id)
            && details.events.iter().all(|known| known.seq != event.seq)
        {
            details.events.push(event.clone());
        }
    }
    if event.kind == EventKind::SandboxDestroyed {
        effects.extend(destroyed::read_again(model));
    }
    // Of a failure its operation tells; where there is none, the event that belongs to nothing.
    if event.kind == EventKind::SandboxExpiring {
        let name = activity::name(model, event);
        effects.push(Effect::Notify(format!("sandbox {name} is about to expire")));
    }
    effects
}

/// Whether a host's own line says what an event does, with the reason in full: this console looks at it itself.
fn told_by_host(model: &Model, event: &Event) -> bool {
    matches!(event.kind, EventKind::HostDown | EventKind::HostUp)
        && event.host().is_some_and(|host| model.hosts.get(host).is_some())
}

/// Kept events were read.
pub(super) fn kept_events(
    model: &mut Model,
    of: Option<&SandboxId>,
    answer: Result<Vec<Event>, Error>,
) -> Vec<Effect> {
    let Some(id) = of else {
        model.activity.loaded = true;
        match answer {
            Ok(events) => {
                for event in events {
                    activity::take(model, &event);
                }
            }
            Err(problem) => {
                let text =
                    format!("the events of the last day cannot be read: {}", problem.message);
                model.activity.add_problem(model.now, text, problem);
            }
        }
        return Vec::new();
    };
    for overlay in &mut model.overlays {
        if let Overlay::Details(details) = overlay
            && details.id == *id
        {
            match &answer {
                Ok(events) => {
                    let newer: Vec<Event> = details.events.drain(..).collect();
                    details.events.clone_from(events);
                    let last = details.events.last().map_or(0, |event| event.seq);
                    details.events.extend(newer.into_iter().filter(|event| event.seq > last));
                    details.load = Load::Ready;
                }
                Err(problem) => details.load = Load::Failed(problem.clone()),
            }
        }
    }
    Vec::new()
}
