//! Trouble: keeps the list's order in step with time and hosts, and goes from one to the next.

use std::collections::HashMap;

use super::Effect;
use crate::domain::name::SandboxId;
use crate::domain::sweep::WARNING_S;
use crate::domain::telemetry::SandboxUse;
use crate::tui::keymap::{Action, Mode};
use crate::tui::model::{Conditions, Model, Pane, Role, Standing, many};

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

/// Goes to the next sandbox that needs a look; where none does, to a host that is down. What is stale and in no row is told.
pub(super) fn next(model: &mut Model) -> Vec<Effect> {
    let hidden = model.sandboxes.hidden_troubles();
    if model.sandboxes.go_to_trouble() {
        model.focus_on(Pane::Sandboxes);
        return Vec::new();
    }
    let is_down = |at: &usize| model.hosts.list[*at].standing(model.now) == Standing::Down;
    let count = model.hosts.list.len();
    let first = if model.focus == Pane::Hosts { model.hosts.window.index + 1 } else { 0 };
    let down = (first..first + count).map(|at| at % count).find(is_down);
    match (down, hidden) {
        (_, 1..) => {
            let (verb, them) = if hidden == 1 { ("needs", "it") } else { ("need", "them") };
            let what = many(hidden, "sandbox", "sandboxes");
            model.say(
                Role::Warn,
                format!("{what} that {verb} a look: the filter hides {them}, esc clears it"),
            );
        }
        (Some(at), 0) => {
            model.focus_on(Pane::Hosts);
            model.hosts.go(at);
        }
        (None, 0) => match (model.stale.count(), model.keymap.first(Mode::Main, Action::Reap)) {
            (0, _) | (_, None) => match (model.hub_trouble(), model.hub_lines().into_iter().next())
            {
                (Some(_), Some((_, words))) => model.say(Role::Warn, words),
                _ => model.say(Role::Good, "no trouble"),
            },
            (count, Some(key)) => {
                let what = many(count, "stale thing is", "stale things are");
                model.say(Role::Warn, format!("{what} on hosts, in no row: {key} opens the plan"));
            }
        },
    }
    Vec::new()
}
