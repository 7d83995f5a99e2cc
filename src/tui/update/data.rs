//! What the client says: records, hosts, events.

use std::sync::Arc;
use std::time::Duration;

use super::{
    Effect, Timer, activity, credits, destroyed, events, external_operations, hub, reap, snapshots,
    stale, work,
};
use crate::client::{Error, Record, Update};
use crate::domain::Time;
use crate::domain::error::Code;
use crate::domain::event::{Event, EventKind};
use crate::domain::host_view::HostView;
use crate::domain::name::{HostName, SandboxId};
use crate::domain::sandbox::SandboxRecord;
use crate::domain::text::clean_line;
use crate::domain::update::Ended;
use crate::tui::model::{Details, Entry, HostChange, Load, Model, Overlay, Role};

/// How long events are gathered before what they named is read.
const GATHER: Duration = Duration::from_millis(50);
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
    let every = model.refresh.saturating_mul(LISTS_EVERY);
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

/// One sandbox was read.
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
        Err(problem) => {
            model.say(Role::Warn, problem.message);
            Vec::new()
        }
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

/// Takes a host's newer view; a change between up and down is told.
pub(super) fn host_changed(model: &mut Model, view: HostView) -> Vec<Effect> {
    let (name, message) = (view.name.clone(), view.message.clone().unwrap_or_default());
    let hint = view.hint.clone();
    // One that never answered here did not go down: it is only shown, nobody is called.
    let had_answered = model.hosts.get(name.as_str()).is_some_and(|host| host.answered.is_some());
    match model.hosts.take(view, model.now) {
        Some(HostChange::WentDown) => {
            let text = clean_line(&format!("host {name} is down: {message}"), 300);
            let mut problem = Error::new(Code::HostUnreachable, format!("{name} does not answer"));
            problem.causes = vec![message];
            problem.hint = hint;
            model.activity.add_problem(model.now, text.clone(), problem);
            model.say(Role::Bad, text.clone());
            if had_answered { vec![Effect::Notify(text)] } else { Vec::new() }
        }
        Some(HostChange::CameUp) => {
            let text = format!("host {name} answers again");
            model.activity.add(model.now, ('✓', Role::Good), text);
            Vec::new()
        }
        None => Vec::new(),
    }
}

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
    let mut effects = list(model);
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
        Update::Host(view) => host_changed(model, *view),
        Update::Record(record) => got(model, &record.id.clone(), Ok(Box::new(Entry::new(*record)))),
        Update::Snapshots => snapshots::read(model),
        Update::Operations => external_operations::read(model),
        Update::Resync => {
            let mut effects = list(model);
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
