//! Questions before something destructive: every target named, the harmless button focused.

use ratatui::layout::Position;

use super::paint::Paint;
use super::reap;
use crate::domain::text::columns;
use crate::tui::model::{
    Area, Confirm, Job, Model, PatchTarget, Purpose, Role, Target, UndoTarget, Verb, age, bytes,
    many, wrap,
};

/// Draws the dialog; answers where the text cursor is.
pub(super) fn draw(model: &Model, paint: &mut Paint<'_>, confirm: &Confirm) -> Option<Position> {
    let whole = model.screen().whole;
    let width = 96.min(whole.width.saturating_sub(4));
    let lines = wrapped(body(model, confirm), usize::from(width.saturating_sub(6)));
    let demand = if confirm.demand.is_some() { 2 } else { 0 };
    let wanted = u16::try_from(lines.len()).unwrap_or(u16::MAX).saturating_add(demand + 5);
    let outer = whole.centred(width, wanted.min(whole.height.saturating_sub(2)));
    paint.overlay(outer, &title(model, confirm), &[]);
    let area = Area { x: outer.x + 3, width: outer.width.saturating_sub(6), ..outer.inner(1) };
    let room = usize::from(area.height.saturating_sub(3 + demand));
    let offset = confirm.offset.min(lines.len().saturating_sub(room));
    for (row, line) in lines.iter().skip(offset).take(room).enumerate() {
        let y = area.y + 1 + u16::try_from(row).unwrap_or(0);
        paint.row(Area { y, ..area }, line);
    }
    if lines.len() > room {
        let (from, to, all) = (offset + 1, (offset + room).min(lines.len()), lines.len());
        let text = format!(" {from} to {to} of {all} lines, PgDn ");
        paint.put_right(area, outer.y + outer.height.saturating_sub(1), &text, Role::Warn);
    }
    let bottom = area.y + area.height.saturating_sub(1);
    let cursor = confirm.demand.as_ref().map(|(wanted, what)| {
        let y = bottom.saturating_sub(2);
        let typed = confirm.typed.value();
        let asks = format!("type {what}, ");
        let spans = [(Role::Plain, asks.as_str()), (Role::Title, wanted), (Role::Plain, ": ")];
        let x = paint.spans(area.x, y, area.width, &spans);
        let room = (area.x + area.width).saturating_sub(x);
        let field = format!("{typed:<12}");
        paint.put(x, y, room, &field, Role::Field);
        let at = u16::try_from(confirm.typed.visual_cursor()).unwrap_or(0);
        Position::new(x + at, y)
    });
    buttons(paint, confirm, area, bottom);
    cursor
}

fn title(model: &Model, confirm: &Confirm) -> String {
    let named = |count: usize, one: &str, more: &str| {
        if count == 1 { one.to_owned() } else { format!("{count} {more}") }
    };
    let many = named(confirm.taken().count(), "this sandbox", "sandboxes");
    let silent = if confirm.again { " although the host is silent" } else { "" };
    match &confirm.purpose {
        Purpose::Sandboxes(Verb::Destroy, _) => format!("Destroy {many}{silent}?"),
        Purpose::Sandboxes(Verb::Recreate, _) => format!("Rebuild {many}{silent}?"),
        Purpose::Sandboxes(Verb::Sleep, _) => format!("Put {many} to sleep{silent}?"),
        Purpose::Sandboxes(Verb::Wake, _) => format!("Wake {many}{silent}?"),
        Purpose::Sandboxes(Verb::Apply { retry: false }, _) => {
            format!("Apply the patches that wait{silent}?")
        }
        Purpose::Sandboxes(Verb::Apply { retry: true }, _) => {
            format!("Run the patch once more{silent}?")
        }
        Purpose::DeleteSnapshots(_) => {
            let many = named(confirm.taken_snapshots().count(), "this snapshot", "snapshots");
            format!("Delete {many}{silent}?")
        }
        Purpose::RemovePatch(_) => "Take this patch away?".to_owned(),
        Purpose::Undo(targets) => {
            format!("Bring {} back{silent}?", named(targets.len(), "this sandbox", "sandboxes"))
        }
        Purpose::Reap(target) => {
            let count = target.plan.to_do().count();
            format!("Reap {}{silent}?", named(count, "this stale item", "stale items"))
        }
        Purpose::CancelJob(id) => {
            let what = model.jobs.get(*id).map(Job::what).unwrap_or_default();
            format!("Cancel {what}?")
        }
        Purpose::Quit => "Jobs are running".to_owned(),
    }
}

type Line = Vec<(Role, String)>;

/// Sentences are wrapped; a target's columns stay on their line.
fn wrapped(lines: Vec<Line>, width: usize) -> Vec<Line> {
    let mut out = Vec::with_capacity(lines.len());
    for line in lines {
        match line.as_slice() {
            [(role, text)] => {
                let text = crate::domain::text::clean_line(text, 400);
                let indent = text.len() - text.trim_start().len();
                let pad = " ".repeat(indent);
                let parts = wrap(text.trim_start(), width.saturating_sub(indent));
                out.extend(parts.into_iter().map(|part| vec![(*role, format!("{pad}{part}"))]));
            }
            _ => out.push(line),
        }
    }
    out
}

fn body(model: &Model, confirm: &Confirm) -> Vec<Line> {
    let mut lines = Vec::new();
    match &confirm.purpose {
        Purpose::CancelJob(id) => {
            let Some(job) = model.jobs.get(*id) else { return lines };
            if !job.is_running() {
                lines.push(vec![(Role::Good, "it has ended meanwhile".to_owned())]);
            }
            lines.push(vec![(Role::Plain, job.cancel_leaves().to_owned())]);
            if let Some(external) = &job.external {
                let words = format!(
                    "It runs in process {} on {}, for {}, since {}. That process is asked to end it; one that is dead cannot hear it.",
                    external.pid,
                    external.host,
                    external.actor,
                    age(job.seconds(model.now))
                );
                lines.push(Vec::new());
                lines.push(vec![(Role::Dim, words)]);
            }
        }
        Purpose::Quit => {
            lines
                .push(vec![(Role::Dim, "They run in this console. Rolled back means:".to_owned())]);
            lines.push(Vec::new());
            for job in model.jobs.running_here() {
                lines.extend(running(model, job));
            }
        }
        Purpose::DeleteSnapshots(_) => lines.extend(deletion(model, confirm)),
        Purpose::RemovePatch(patch) => lines.extend(removal(patch)),
        Purpose::Undo(targets) => {
            lines.extend(targets.iter().flat_map(|target| coming_back(model, target)));
        }
        Purpose::Reap(target) => lines.extend(reap::question(model, target)),
        Purpose::Sandboxes(verb, targets) => {
            let narrow = model.screen().whole.width < 100;
            let sums = confirm.sums();
            if !sums.is_empty() {
                // What is lost stays in sight, however long the list is.
                lines.push(vec![(Role::Dim, consequence(*verb).to_owned())]);
                lines.extend(sums.into_iter().map(|sum| vec![(Role::Plain, sum)]));
                lines.push(Vec::new());
            }
            lines.extend(targets.iter().flat_map(|target| named(model, target, narrow)));
            lines.push(Vec::new());
            lines.push(vec![(Role::Dim, consequence(*verb).to_owned())]);
            if confirm.taken().next().is_none() {
                lines.push(vec![(Role::Warn, "Nothing is left to act on.".to_owned())]);
            }
        }
    }
    lines.extend(confirm.silent.iter().map(|silent| vec![(Role::Warn, format!("⚠ {silent}"))]));
    lines
}

/// A removed sandbox: how it comes back, from when, and for how long.
fn coming_back(model: &Model, target: &UndoTarget) -> Vec<Line> {
    let old = age(model.now.since(target.taken).as_secs());
    let size = target.bytes.map(|size| format!(", {}", bytes(size))).unwrap_or_default();
    let called = target.name.as_ref().map(|name| format!(", called {name}")).unwrap_or_default();
    let ttl = match target.ttl {
        Some(Some(seconds)) => format!("a fresh time to live of {}", age(seconds)),
        Some(None) => "no deadline, as it had none".to_owned(),
        None => "its profile's time to live".to_owned(),
    };
    let mut lines = vec![
        vec![
            (Role::Title, target.title.clone()),
            (Role::Plain, format!("  {} on {}", target.id, target.host)),
        ],
        vec![(Role::Plain, format!("    comes back as a new sandbox{called}, with {ttl}"))],
        vec![(Role::Dim, format!("    as it was {old} ago ({}{size})", target.snapshot))],
    ];
    lines.extend(target.before.as_ref().map(|before| {
        vec![(Role::Warn, format!("    ⚠ it was brought back before, as {before}"))]
    }));
    lines
}

/// Consequences of a verb for each of its sandboxes.
fn consequence(verb: Verb) -> &'static str {
    match verb {
        Verb::Recreate => {
            "Each is destroyed and made again: same id, profile version and inputs; its files are gone."
        }
        Verb::Sleep => {
            "What runs is stopped; files and volumes stay, and the deadline goes on. Ports may be others after waking."
        }
        Verb::Wake => {
            "What ran is started again; it is ready once its patches ended. The first that fails stops the rest."
        }
        Verb::Apply { retry: false } => {
            "They run now, one after the other, while it is ready. The first that fails stops the rest."
        }
        Verb::Apply { retry: true } => {
            "What failed, or may have run, runs once more, then the rest. A script that is not made for that may do harm."
        }
        Verb::Destroy => "Containers, networks, volumes and the workspace are removed.",
    }
}

/// Each snapshot with its size, age and hosts; below it what depends on it.
fn deletion(model: &Model, confirm: &Confirm) -> Vec<Line> {
    let mut lines = Vec::new();
    for target in confirm.snapshots() {
        let record = &target.view.record;
        let (id_role, role) = if target.left_out.is_some() {
            (Role::Dim, Role::Dim)
        } else {
            (Role::Title, Role::Plain)
        };
        let size =
            record.archive.bytes.map(|size| format!("{}  ", bytes(size))).unwrap_or_default();
        let old = age(model.now.since(record.created_at).as_secs());
        let hosts: Vec<String> = record.hosts().map(ToString::to_string).collect();
        let facts = format!("  {size}{old} old  {} on {}", record.state, hosts.join(", "));
        lines.push(vec![(id_role, target.title()), (role, facts)]);
        if let Some(reason) = &target.left_out {
            lines.push(vec![(Role::Warn, format!("    left out: {reason}"))]);
        } else if !target.dependants.is_empty() {
            lines.push(vec![(
                Role::Warn,
                "    ⚠ it is in use; by force it goes all the same:".to_owned(),
            )]);
            lines.extend(
                target
                    .dependants
                    .iter()
                    .map(|dependant| vec![(Role::Plain, format!("      {dependant}"))]),
            );
        }
        if let Some(silent) = &target.silent {
            lines.push(vec![(Role::Warn, format!("    ⚠ {silent}; what is shown may be old"))]);
        }
    }
    lines.push(Vec::new());
    let by_force = confirm.taken_snapshots().any(|target| !target.dependants.is_empty());
    let words = if by_force {
        "Its archive and its patches go. Sandboxes based on it stay, but cannot be rebuilt any more."
    } else {
        "The archives are removed from their hosts, copies too. Nothing brings them back."
    };
    lines.push(vec![(Role::Dim, words.to_owned())]);
    if confirm.taken_snapshots().next().is_none() {
        lines.push(vec![(Role::Warn, "Nothing is left to act on.".to_owned())]);
    }
    lines
}

fn removal(patch: &PatchTarget) -> Vec<Line> {
    let about = patch.description.as_deref().unwrap_or("no description");
    let (has, owes) = patch.counts;
    vec![
        vec![
            (Role::Title, format!("{} ", patch.sequence)),
            (Role::Plain, format!("{about}  ({}) of {}", patch.id, patch.title)),
        ],
        Vec::new(),
        vec![(
            Role::Dim,
            format!(
                "{} it and keep what it did; {owes} will not get it. Its number is not used again.",
                many(has, "sandbox has", "sandboxes have")
            ),
        )],
    ]
}

fn running(model: &Model, job: &Job) -> [Line; 2] {
    let stage = job.stage_words().map(|stage| format!("  {stage}")).unwrap_or_default();
    let what = format!("{}{stage}  {}", job.what(), age(job.seconds(model.now)));
    [
        vec![(Role::Busy, "◐ ".to_owned()), (Role::Plain, what)],
        vec![(Role::Dim, format!("    {}", job.cancel_leaves()))],
    ]
}

/// A target: id, name, host, profile, state, age, on two lines where there is little room; below it what else to
/// know.
fn named(model: &Model, target: &Target, narrow: bool) -> Vec<Line> {
    let name = target.name.as_deref().unwrap_or("—");
    let old = age(model.now.since(target.created_at).as_secs());
    let role = if target.left_out.is_some() { Role::Dim } else { Role::Plain };
    let id_role = if target.left_out.is_some() { Role::Dim } else { Role::Title };
    let pad = |text: &str, width: usize| {
        let text = crate::domain::text::clean_line(text, width);
        let fill = " ".repeat(width.saturating_sub(columns(&text)) + 2);
        format!("{text}{fill}")
    };
    let mut lines = vec![vec![(id_role, pad(target.id.as_str(), 8)), (role, pad(name, 16))]];
    let place = [(role, pad(&target.host, 14)), (role, pad(&target.profile, 18))];
    let state = [(role, pad(target.state.as_str(), 10)), (role, format!("{old} old"))];
    if narrow {
        lines[0].extend(state);
        lines.push(std::iter::once((role, "    on ".to_owned())).chain(place).collect());
    } else {
        lines[0].extend(place.into_iter().chain(state));
    }
    if target.protected && target.left_out.is_none() {
        lines.push(vec![(Role::Warn, "    ⚠ it is protected (label protect=true)".to_owned())]);
    }
    if target.left_out.is_none() {
        lines.extend(target.notes.iter().map(|note| vec![(Role::Busy, format!("    {note}"))]));
    }
    if let Some(reason) = &target.left_out {
        lines.push(vec![(Role::Warn, format!("    left out: {reason}"))]);
    }
    if let Some(silent) = &target.silent {
        lines.push(vec![(Role::Warn, format!("    ⚠ {silent}; what is shown may be old"))]);
    }
    lines
}

fn buttons(paint: &mut Paint<'_>, confirm: &Confirm, area: Area, y: u16) {
    let mut x = area.x;
    for (at, label) in confirm.buttons.iter().enumerate() {
        let locked = at > 0 && !confirm.is_unlocked();
        let role = match (at == confirm.focus, locked) {
            (true, _) => Role::Pressed,
            (false, true) => Role::Dim,
            (false, false) => Role::Button,
        };
        // The focused one is told apart without reverse video too.
        let text =
            if at == confirm.focus { format!("[ {label} ]") } else { format!("  {label}  ") };
        x += paint.put(x, y, (area.x + area.width).saturating_sub(x), &text, role) + 2;
    }
    let hint = "tab moves, enter presses, esc leaves";
    if x + 40 < area.x + area.width {
        paint.put_right(area, y, hint, Role::Dim);
    }
}
