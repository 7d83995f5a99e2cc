//! The strip below the list: what is wrong with the row under the cursor, or how it is reached; and the keys that help. From
//! 200 columns on its lines stand above the details beside the list.

use super::{
    Entry, Host, Model, Pane, Role, Standing, Trouble, age_of, date, is_counted, many,
    standing_glyph, state_glyph, state_role, what,
};
use crate::domain::text::clean_line;
use crate::domain::{State, telling::last_telling_line};
use crate::present::{Spans as Line, sandbox};
use crate::tui::keymap::{Action, Mode};

/// Lines on a row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Strip {
    /// Which row, and how it is.
    pub title: Line,
    /// Two, the more telling first.
    pub lines: Vec<Line>,
    /// Keys that help.
    pub keys: Line,
}

impl Model {
    /// The sandbox that the strip tells of: the one that the focused pane's cursor means, or else the list's.
    pub fn strip_sandbox(&self) -> Option<&Entry> {
        let pointed = match self.focus {
            Pane::Snapshots | Pane::Credits | Pane::Activity if self.overlays.is_empty() => {
                self.pointed_sandbox()
            }
            Pane::Sandboxes | Pane::Snapshots | Pane::Hosts | Pane::Credits | Pane::Activity => {
                None
            }
        };
        pointed.or_else(|| self.sandboxes.selected()).map(AsRef::as_ref)
    }

    /// Cells of its lines.
    fn strip_width(&self) -> usize {
        let screen = self.screen();
        usize::from(screen.strip.width.max(screen.details.width).saturating_sub(2))
    }

    /// Lines of the strip.
    pub fn strip(&self) -> Option<Strip> {
        match self.focus {
            Pane::Hosts => self.hosts.selected().map(|selected| host(self, selected)),
            Pane::Sandboxes | Pane::Snapshots | Pane::Credits | Pane::Activity => {
                self.strip_sandbox().map(|entry| of_sandbox(self, entry))
            }
        }
    }
}

fn strip(model: &Model, title: Line, mut lines: Vec<Line>, helping: &[(Action, &str)]) -> Strip {
    lines.resize(2, Line::new());
    Strip { title, lines, keys: keys(model, helping) }
}

/// ` l its output   enter details`, without keys that nothing is bound to.
fn keys(model: &Model, keys: &[(Action, &str)]) -> Line {
    let mut line = Line::new();
    for (action, what) in keys {
        let Some(key) = model.keymap.first(Mode::Main, *action) else { continue };
        let role = if model.unavailable(*action).is_some() { Role::Dim } else { Role::Key };
        line.extend([(role, key), (Role::Dim, format!(" {what}   "))]);
    }
    line
}

fn of_sandbox(model: &Model, entry: &Entry) -> Strip {
    let conditions = model.sandboxes.conditions();
    let trouble = conditions.trouble(entry);
    let silent = conditions.hosts.holds(&entry.words[3]);
    let stale = model.stale_words(entry);
    let (mut lines, keys) = match trouble {
        _ if entry.record.state.is_over() => (over(entry), OVER),
        Trouble::Failed if stale.is_some() => (failed(entry, model.strip_width()), FAILED_STALE),
        Trouble::Failed => (failed(entry, model.strip_width()), FAILED),
        Trouble::Lost if stale.is_some() => (lost(model, entry), LOST_STALE),
        Trouble::Lost => (lost(model, entry), LOST),
        Trouble::Stale => (well(model, entry, String::new()), STALE),
        Trouble::Running => (running(model, entry), RUNNING),
        _ if silent => (not_seen(model, entry), SILENT),
        Trouble::Degraded => {
            (well(model, entry, sandbox::degraded(&entry.record).unwrap_or_default()), DEGRADED)
        }
        Trouble::Expiring => (expiring(model, entry), EXPIRING),
        _ if entry.record.state == State::Sleeping => (asleep(model, entry), SLEEPING),
        Trouble::Silent | Trouble::None => (well(model, entry, String::new()), WELL),
    };
    match (stale, trouble, lines.first_mut()) {
        // Why it failed or is lost needs its room; what else is known does not.
        (Some((role, words)), Trouble::Failed | Trouble::Lost, Some(first)) => {
            first.push((role, format!("   {words}")));
        }
        (Some(words), ..) => lines.insert(0, vec![words]),
        (None, ..) => {}
    }
    strip(model, title(model, entry, silent), lines, keys)
}

const FAILED_STALE: &[(Action, &str)] = &[
    (Action::Logs, "its output"),
    (Action::Open, "details"),
    (Action::Reap, "reap"),
    (Action::Recreate, "rebuild"),
    (Action::Destroy, "destroy"),
];
const LOST_STALE: &[(Action, &str)] =
    &[(Action::Open, "details"), (Action::Reap, "reap"), (Action::Recreate, "rebuild")];
const STALE: &[(Action, &str)] = &[
    (Action::Reap, "reap"),
    (Action::Open, "details"),
    (Action::Extend, "extend"),
    (Action::Labels, "protect"),
];
const FAILED: &[(Action, &str)] = &[
    (Action::Logs, "its output"),
    (Action::Open, "details"),
    (Action::Recreate, "rebuild"),
    (Action::Destroy, "destroy"),
];
const LOST: &[(Action, &str)] =
    &[(Action::Open, "details"), (Action::Recreate, "rebuild"), (Action::Destroy, "destroy")];
const RUNNING: &[(Action, &str)] =
    &[(Action::CancelJob, "cancel"), (Action::Open, "details"), (Action::Jobs, "jobs")];
const SILENT: &[(Action, &str)] =
    &[(Action::PaneHosts, "hosts"), (Action::Open, "details"), (Action::Redraw, "ask again")];
const DEGRADED: &[(Action, &str)] = &[
    (Action::Logs, "logs"),
    (Action::Shell, "shell"),
    (Action::Open, "details"),
    (Action::Recreate, "rebuild"),
];
const EXPIRING: &[(Action, &str)] = &[
    (Action::Extend, "extend"),
    (Action::Labels, "protect"),
    (Action::Snapshot, "snapshot"),
    (Action::Open, "details"),
];
const SLEEPING: &[(Action, &str)] = &[
    (Action::Wake, "wake"),
    (Action::Open, "details"),
    (Action::Snapshot, "snapshot"),
    (Action::Destroy, "destroy"),
];
/// Of what is over, only the record is there, and perhaps what was kept of it.
const OVER: &[(Action, &str)] = &[(Action::Open, "details"), (Action::Undo, "undo")];
const WELL: &[(Action, &str)] = &[
    (Action::Shell, "shell"),
    (Action::Logs, "logs"),
    (Action::CopySsh, "copy ssh"),
    (Action::Snapshot, "snapshot"),
    (Action::Open, "details"),
];

/// `nightly 0b1c2d3e ─ failed 41m ago, by atm:nightly`.
fn title(model: &Model, entry: &Entry, silent: bool) -> Line {
    let record = &entry.record;
    let name = record.name.as_deref().map(|name| format!(" {}", clean_line(name, 40)));
    let since = age_of(record.since, model.now);
    let state = match record.state {
        State::Failed => (Role::Bad, format!("failed {since} ago")),
        _ if silent => (Role::Dim, format!("{}?, {}", record.state, what::not_seen(model, entry))),
        _ if entry.degraded > 0 => (Role::Warn, "degraded".to_owned()),
        _ => (state_role(&record.state), format!("{} for {since}", record.state)),
    };
    let mut line = vec![(state.0, format!(" {}", state_glyph(&record.state)))];
    line.extend(name.map(|name| (Role::Title, name)));
    line.extend([
        (Role::Plain, format!(" {} ", record.id)),
        (Role::Border, "─ ".to_owned()),
        state,
    ]);
    if record.actor.to_string() != model.actor {
        line.push((Role::Dim, format!(", by {}", record.actor)));
    }
    line.push((Role::Plain, " ".to_owned()));
    line
}

fn failed(entry: &Entry, width: usize) -> Vec<Line> {
    let record = &entry.record;
    let message = record.message.as_deref().unwrap_or("it failed");
    let Some(failure) = &record.failure else {
        return vec![vec![(Role::Bad, format!("{message}, on {}", record.host))]];
    };
    let step = sandbox::failed_step(record).unwrap_or_default();
    let telling = last_telling_line(&failure.output).unwrap_or(message);
    let telling = sandbox::ending(telling, width).to_owned();
    vec![vec![(Role::Plain, step)], vec![(Role::Bad, telling)]]
}

fn lost(model: &Model, entry: &Entry) -> Vec<Line> {
    let record = &entry.record;
    let message = record.message.clone();
    let message = message.unwrap_or_else(|| format!("{} has nothing of it any more", record.host));
    let seen = what::not_seen(model, entry);
    vec![vec![(Role::Bad, message)], vec![(Role::Dim, format!("{seen}, on {}", record.host))]]
}

fn running(model: &Model, entry: &Entry) -> Vec<Line> {
    let record = &entry.record;
    let job = model.jobs.of_sandbox(&record.id);
    let stage = job.and_then(what::stage).map(|stage| format!(": {stage}")).unwrap_or_default();
    let said = job.and_then(|job| job.last_line()).unwrap_or_default().to_owned();
    let words = match &record.operation {
        Some(running) => {
            let since = age_of(running.started_at, model.now);
            let asked = if running.cancel_requested { ", is being cancelled" } else { "" };
            format!(
                "{} for {since} by {} on {}{asked}{stage}",
                running.kind, running.actor, record.host
            )
        }
        None => format!("{} on {}{stage}", record.state, record.host),
    };
    vec![vec![(Role::Busy, words)], vec![(Role::Dim, said)]]
}

/// Its host, since it is the host that is wrong.
fn not_seen(model: &Model, entry: &Entry) -> Vec<Line> {
    let seen = vec![(Role::Warn, what::not_seen(model, entry))];
    if let Some(found) = model.hosts.get(entry.record.host.as_str()) {
        let [mut first, mut second] = host_lines(model, found);
        first.insert(0, (Role::Plain, format!("{} ", found.view.name)));
        second.extend([(Role::Plain, "   ".to_owned())]);
        second.extend(seen);
        vec![first, second]
    } else {
        let words = format!("host {} is not in the configuration", entry.record.host);
        vec![vec![(Role::Warn, words)], seen]
    }
}

/// Why it is gone, and who did it.
fn over(entry: &Entry) -> Vec<Line> {
    let record = &entry.record;
    let reason = record.reason.as_ref().map(|reason| format!(": {reason}")).unwrap_or_default();
    let first = vec![(Role::Plain, format!("{} on {}{reason}", record.state, record.host))];
    vec![first, vec![(Role::Dim, record.message.clone().unwrap_or_default())]]
}

fn asleep(model: &Model, entry: &Entry) -> Vec<Line> {
    let record = &entry.record;
    let since = age_of(record.since, model.now);
    let words = format!("asleep for {since} on {}: its services are stopped", record.host);
    vec![vec![(Role::Plain, words)], Vec::new()]
}

fn expiring(model: &Model, entry: &Entry) -> Vec<Line> {
    let Some(end) = entry.record.expires_at else { return Vec::new() };
    let at = date(end, &model.zone);
    let words = if end > model.now {
        format!("expires in {} ({at})", age_of(model.now, end))
    } else {
        format!("expired {} ago ({at})", age_of(end, model.now))
    };
    let mut lines = vec![vec![(Role::Warn, words)]];
    lines.extend(well(model, entry, String::new()));
    lines
}

/// How it is reached, and what else is known of it. `wrong` comes first.
fn well(model: &Model, entry: &Entry, wrong: String) -> Vec<Line> {
    let record = &entry.record;
    let mut first = Line::new();
    if let Some(reach) = &record.reachability {
        first.extend(reach.ssh_command().map(|ssh| (Role::Code, ssh.to_owned())));
        for endpoint in &reach.endpoints {
            let gap = if first.is_empty() { "" } else { "   " };
            first.push((Role::Dim, format!("{gap}{} ", endpoint.service)));
            first.push((Role::Code, endpoint.url.clone()));
        }
    } else {
        first.push((Role::Dim, format!("nothing tells how it is reached on {}", record.host)));
    }
    let mut facts = Vec::new();
    if !record.services.is_empty() {
        let up = record.services.iter().filter(|service| !service.is_degraded()).count();
        facts.push(format!("{up} of {} up", many(record.services.len(), "service", "services")));
    }
    if let Some((view, _)) = model.snapshots.of_sandbox(&record.id) {
        let states = what::patches(model, entry);
        let patches = many(states.len(), "patch", "patches");
        facts.push(format!("based on {} with {patches}", clean_line(view.record.title(), 40)));
    }
    if record.is_protected() {
        facts.push("protected".to_owned());
    }
    facts.extend(record.patch_error.clone());
    let second = vec![(Role::Dim, facts.join("   "))];
    if wrong.is_empty() { vec![first, second] } else { vec![vec![(Role::Warn, wrong)], first] }
}

fn host(model: &Model, host: &Host) -> Strip {
    let (glyph, role) = standing_glyph(host.standing(model.now));
    let ssh = host.view.ssh.as_deref().map(|target| format!("─ ssh {} ", clean_line(target, 60)));
    let mut title =
        vec![(role, format!(" {glyph} ")), (Role::Title, format!("{} ", host.view.name))];
    title.extend(ssh.map(|ssh| (Role::Dim, ssh)));
    strip(model, title, host_lines(model, host).into(), HOST)
}

const HOST: &[(Action, &str)] = &[
    (Action::Open, "details"),
    (Action::Redraw, "ask again"),
    (Action::NextTrouble, "next trouble"),
];

/// How much on a host is there to be reaped.
fn stale_on(model: &Model, host: &Host) -> (Role, String) {
    let items = model.stale.on_host(host.view.name.as_str());
    let count = items.filter(|item| is_counted(item)).count();
    (Role::Warn, if count == 0 { String::new() } else { format!(", {count} stale") })
}

/// How a host is, and what it says or what to do.
fn host_lines(model: &Model, host: &Host) -> [Line; 2] {
    let view = &host.view;
    let words = |text: &Option<String>| text.clone().unwrap_or_default();
    let since = |since| age_of(since, model.now);
    match host.standing(model.now) {
        Standing::Down => {
            let down = host.down_since.map(|at| format!(" {}", since(at))).unwrap_or_default();
            let next = host
                .next
                .filter(|next| *next > model.now)
                .map(|next| format!("next try in {}   ", age_of(model.now, next)));
            let first = vec![(Role::Bad, format!("down{down}: {}", words(&view.message)))];
            let next = next.unwrap_or_default();
            [first, vec![(Role::Plain, next), (Role::Key, words(&view.hint))]]
        }
        Standing::Forbidden => [vec![(Role::Dim, words(&view.message))], Line::new()],
        Standing::Connecting => {
            let asked = host.asked.map(|at| format!(" for {}", since(at))).unwrap_or_default();
            [vec![(Role::Busy, format!("connecting{asked}"))], Line::new()]
        }
        Standing::Up | Standing::Slow => {
            let ms = view.latency_ms.map(|ms| format!(", round trip {ms} ms")).unwrap_or_default();
            let held = many(view.sandboxes as usize, "sandbox", "sandboxes");
            let most = view.max_sandboxes.map(|most| format!(" of {most}")).unwrap_or_default();
            let first = vec![(Role::Plain, format!("up{ms}, {held}{most}")), stale_on(model, host)];
            let said = vec![(Role::Warn, words(&view.message)), (Role::Key, words(&view.hint))];
            [first, said]
        }
    }
}
