//! Trouble: keeps the list's order in step with time and hosts, and goes from one to the next.

use std::collections::HashMap;

use super::Effect;
use crate::domain::name::SandboxId;
use crate::domain::sweep::WARNING_S;
use crate::domain::telemetry::SandboxUse;
use crate::tui::keymap::{Action, Mode};
use crate::tui::model::{Conditions, Model, Pane, Role, Sort, Standing, many};

/// Tells the list of the time, of the hosts, and of what is stale. A frozen display stays as it is.
pub(super) fn settle(model: &mut Model) {
    if model.frozen.is_none() {
        let hosts = model.hosts.silent(model.now, model.started);
        let soon = Some(model.now.plus_seconds(WARNING_S));
        let stale = model.stale.classes();
        model.sandboxes.set_conditions(Conditions { soon, hosts, stale });
    }
}

/// Sorts by the hosts' latest figures, where the list is sorted by these.
pub(super) fn measure(model: &mut Model) {
    if !model.sandboxes.sort().key.is_measured() || model.frozen.is_some() {
        return;
    }
    let samples = model.hosts.list.iter().filter_map(|host| host.sample());
    let uses: HashMap<SandboxId, SandboxUse> =
        samples.flat_map(|sample| sample.sandboxes.clone()).collect();
    model.sandboxes.set_uses(uses);
}

/// Sorts the list, from a key or a click.
pub(super) fn set_sort(model: &mut Model, sort: Sort) -> Vec<Effect> {
    model.sandboxes.set_sort(sort);
    measure(model);
    vec![Effect::SaveState(model.saved_state())]
}

/// Goes to the next sandbox that needs a look; where none does, to a host that is down. What has no row is told: what is stale
/// and in none, and, with whatever comes next, records that cannot be read, and what is wrong with the State Hub.
pub(super) fn next(model: &mut Model) -> Vec<Effect> {
    let hub = model.hub_trouble().and_then(|_| model.hub_lines().into_iter().next());
    let went = go(model);
    let told = if went { None } else { without_row(model) };
    let unread = model.unread().map(|problem| problem.message.clone());
    let hub = hub.map(|(_, words)| words);
    let words: Vec<String> = told.into_iter().chain(unread).chain(hub).collect();
    match words.as_slice() {
        [] if went => {}
        [] => model.say(Role::Good, "no trouble"),
        words => model.say(Role::Warn, words.join("; ")),
    }
    Vec::new()
}

/// Goes to the next row that needs a look, if there is one that is shown.
fn go(model: &mut Model) -> bool {
    if model.sandboxes.go_to_trouble() {
        model.focus_on(Pane::Sandboxes);
        return true;
    }
    let is_down = |at: &usize| model.hosts.list[*at].standing(model.now) == Standing::Down;
    let count = model.hosts.list.len();
    let first = if model.focus == Pane::Hosts { model.hosts.window.index + 1 } else { 0 };
    let down = (first..first + count).map(|at| at % count).find(is_down);
    let down = down.filter(|_| model.sandboxes.hidden_troubles() == 0);
    if let Some(at) = down {
        model.focus_on(Pane::Hosts);
        model.hosts.go(at);
    }
    down.is_some()
}

/// Trouble that is in no row that is shown.
fn without_row(model: &Model) -> Option<String> {
    let hidden = model.sandboxes.hidden_troubles();
    if hidden > 0 {
        let (verb, them) = if hidden == 1 { ("needs", "it") } else { ("need", "them") };
        let what = many(hidden, "sandbox", "sandboxes");
        return Some(format!("{what} that {verb} a look: the filter hides {them}, esc clears it"));
    }
    let count = Some(model.stale.count()).filter(|count| *count > 0)?;
    let key = model.keymap.first(Mode::Main, Action::Reap)?;
    let what = many(count, "stale thing is", "stale things are");
    Some(format!("{what} on hosts, in no row: {key} opens the plan"))
}
