//! Hosts, each asked by itself: a light probe every two seconds while it answers, its inventory every 30 s and after work on it;
//! one that is down ever more seldom. No answer of one is waited for by another.

use std::time::Duration;

use super::{Effect, Timer, external_operations, records, snapshots, stale};
use crate::client::Error;
use crate::domain::Time;
use crate::domain::error::Code;
use crate::domain::host_view::{HostState, HostView};
use crate::domain::name::HostName;
use crate::domain::telemetry::HostSample;
use crate::domain::text::clean_line;
use crate::tui::model::{Host, HostChange, HostDetails, Load, Model, Overlay, Role, Sampling};

/// How soon the first host is asked.
const FIRST: Duration = Duration::from_millis(20);
/// The same while the list is being read: this machine's engines, a host too, would take the processors from that.
const FIRST_WHILE_LISTING: Duration = Duration::from_millis(400);
/// How much later each further one is.
const STAGGER: Duration = Duration::from_millis(60);
/// How often the inventory of a host that answers is taken.
const INVENTORY_S: u64 = 30;
/// How soon a host that went down is tried again; twice as late after each further time.
const RETRY_S: u64 = 5;
/// How late at most.
const LATEST_RETRY_S: u64 = 60;
/// How long a host is left alone before work on it leads to another inventory: a bulk is many operations.
const SETTLES: Duration = Duration::from_secs(3);
/// Doublings of the pause after samples that fail on a host that answers.
const MOST_DOUBLINGS: u32 = 5;

/// The hosts were read; each is asked, one after the other.
pub(super) fn listed(model: &mut Model, answer: Result<Vec<HostView>, Error>) -> Vec<Effect> {
    match answer {
        Err(problem) => {
            model.hosts.load = Load::Failed(problem);
            Vec::new()
        }
        Ok(views) => {
            let known: Vec<HostName> =
                model.hosts.list.iter().map(|host| host.view.name.clone()).collect();
            model.hosts.replace(views, model.now);
            let new =
                model.hosts.list.iter().filter(|host| host.view.state != HostState::Forbidden);
            let new = new.map(|host| host.view.name.clone()).filter(|name| !known.contains(name));
            let listed = model.sandboxes.load != Load::Loading;
            let first = if listed { FIRST } else { FIRST_WHILE_LISTING };
            // Staggered: twenty connections at once are no kindness to anyone.
            new.zip(0..)
                .map(|(name, place)| {
                    let wait = first + STAGGER * place;
                    Effect::After(wait, Box::new(Timer::Host(name)))
                })
                .collect()
        }
    }
}

/// A second passed: hosts on which work ended are looked at.
pub(super) fn tick(model: &mut Model) -> Vec<Effect> {
    let now = model.now;
    let settled = |host: &&mut Host| {
        host.changed
            && host.asked.is_none()
            && host.answered.is_none_or(|at| now.since(at) >= SETTLES)
    };
    let names: Vec<HostName> =
        model.hosts.list.iter_mut().filter(settled).map(|host| host.view.name.clone()).collect();
    names.into_iter().flat_map(|name| ask(model, name)).collect()
}

/// Time to ask a host. At most one timer a host is under way: what is asked beside it sets none.
pub(super) fn due(model: &mut Model, name: HostName) -> Vec<Effect> {
    if let Some(host) = model.hosts.get_mut(name.as_str()) {
        host.next = None;
    }
    ask(model, name)
}

/// Asks a host, unless it is being asked.
pub(super) fn ask(model: &mut Model, name: HostName) -> Vec<Effect> {
    let now = model.now;
    match model.hosts.get_mut(name.as_str()) {
        Some(host) if host.asked.is_none() && host.view.state != HostState::Forbidden => {
            host.asked = Some(now);
            host.changed = false;
            vec![Effect::CheckHost(name)]
        }
        _ => Vec::new(),
    }
}

/// A host was asked.
pub(super) fn checked(
    model: &mut Model,
    name: &HostName,
    answer: Result<Box<HostView>, Error>,
) -> Vec<Effect> {
    let now = model.now;
    let Some(host) = model.hosts.get_mut(name.as_str()) else { return Vec::new() };
    host.asked = None;
    let view = match answer {
        Ok(view) => *view,
        Err(problem) => HostView {
            state: HostState::Down,
            latency_ms: None,
            message: Some(problem.message),
            hint: problem.hint,
            ..host.view.clone()
        },
    };
    let mut effects = changed(model, view);
    effects.extend(external_operations::refresh_services(model, name));
    effects.extend(stale::read(model));
    let pace = model.refresh;
    if let Some(host) = model.hosts.get_mut(name.as_str()) {
        effects.extend(start_sampling(host, pace));
        effects.extend(set_timer(host, now));
    }
    effects
}

/// The next question, unless its time is set already.
fn set_timer(host: &mut Host, now: Time) -> Option<Effect> {
    let wait_s = if host.is_fine() {
        host.tries = 0;
        INVENTORY_S
    } else {
        let wait = RETRY_S.saturating_mul(1 << host.tries.min(8)).min(LATEST_RETRY_S);
        host.tries += 1;
        wait
    };
    if host.next.is_some() {
        return None;
    }
    let wait = Duration::from_millis(wait_s * 1000 + jitter_ms(host.view.name.as_str(), wait_s));
    host.next = Some(now.plus_seconds(wait.as_secs()));
    Some(Effect::After(wait, Box::new(Timer::Host(host.view.name.clone()))))
}

/// Up to a tenth more, by the host's name: hosts that went down together are not tried together.
fn jitter_ms(name: &str, wait_s: u64) -> u64 {
    let hash =
        name.bytes().fold(0_u64, |hash, byte| hash.wrapping_mul(31).wrapping_add(byte.into()));
    hash % (wait_s * 100).max(1)
}

/// Begins to sample a host that answers, if nothing of that is under way.
fn start_sampling(host: &mut Host, pace: Duration) -> Option<Effect> {
    if !host.is_fine() || host.sampling != Sampling::Off {
        return None;
    }
    let name = host.view.name.clone();
    if host.failed_samples == 0 {
        host.sampling = Sampling::Asked;
        return Some(Effect::SampleHost(name));
    }
    host.sampling = Sampling::Waiting;
    let pause = pace.saturating_mul(1 << host.failed_samples.min(MOST_DOUBLINGS));
    Some(Effect::After(pause, Box::new(Timer::Sample(name))))
}

/// Time to sample a host.
pub(super) fn sample_due(model: &mut Model, name: HostName) -> Vec<Effect> {
    match model.hosts.get_mut(name.as_str()) {
        Some(host) if host.sampling == Sampling::Waiting => {
            host.sampling = if host.is_fine() { Sampling::Asked } else { Sampling::Off };
            match host.sampling {
                Sampling::Asked => vec![Effect::SampleHost(name)],
                Sampling::Off | Sampling::Waiting => Vec::new(),
            }
        }
        _ => Vec::new(),
    }
}

/// A host was sampled. What a silent one means is the check's to say, and at once.
pub(super) fn sampled(
    model: &mut Model,
    name: HostName,
    answer: Result<Box<HostSample>, Error>,
) -> Vec<Effect> {
    let (now, pace) = (model.now, model.refresh);
    let Some(host) = model.hosts.get_mut(name.as_str()) else { return Vec::new() };
    host.sampling = Sampling::Off;
    if let Ok(sample) = answer {
        host.failed_samples = 0;
        host.answered = host.answered.max(Some(now));
        if let Some(way) = sample.latency_ms {
            host.view.latency_ms = Some(way);
        }
        host.history.push(*sample);
        if !host.is_fine() {
            return Vec::new();
        }
        host.sampling = Sampling::Waiting;
        vec![Effect::After(pace, Box::new(Timer::Sample(name)))]
    } else {
        host.failed_samples += 1;
        if host.failed_samples == 1 {
            // The check's answer begins the samples anew, if the host is there.
            return ask(model, name);
        }
        start_sampling(host, pace).into_iter().collect()
    }
}

/// Reads everything again: the list, the hosts, every host itself.
fn read_again(model: &mut Model) -> Vec<Effect> {
    let names: Vec<HostName> = model.hosts.list.iter().map(|host| host.view.name.clone()).collect();
    let mut effects = records::list(model);
    effects.extend(snapshots::read(model));
    effects.push(Effect::Hosts);
    for name in names {
        effects.extend(ask(model, name));
    }
    effects
}

/// Takes a host's newer view; a change between up and down is told.
pub(super) fn changed(model: &mut Model, view: HostView) -> Vec<Effect> {
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

/// Reads everything again, and draws every cell.
pub(super) fn redraw(model: &mut Model) -> Vec<Effect> {
    let mut effects = read_again(model);
    effects.push(Effect::Redraw);
    effects
}

pub(super) fn open(model: &mut Model, name: HostName) -> Vec<Effect> {
    let due = match model.hosts.get(name.as_str()) {
        // What it says is asked for anew, as one looks.
        Some(_) => ask(model, name.clone()),
        None => Vec::new(),
    };
    model.overlays.push(Overlay::Host(HostDetails::new(name)));
    due
}
