//! The tree of snapshots and of what is based on them: only the rows on the screen are drawn.

use super::paint::Paint;
use super::pane;
use crate::domain::lineage::BasedOn;
use crate::domain::patch::PatchState;
use crate::domain::snapshot::SnapshotState;
use crate::domain::text::columns;
use crate::tui::keymap::{Action, Mode};
use crate::tui::model::{
    Area, Job, JobState, Load, Model, Node, Pane, Role, Screen, age, bytes, caveat, is_undo, many,
    patch_glyph, patch_role, rate, snapshot_glyph, standings, state_glyph, state_role,
};

/// More patches than this are counted, not drawn one by one.
const GLYPHS: usize = 8;

/// Draws the pane; its title is on the row above its rows.
pub(super) fn draw(model: &Model, paint: &mut Paint<'_>, screen: &Screen) {
    let area = screen.snapshots;
    title(model, paint, screen);
    if model.snapshots.rows().is_empty() {
        nothing(model, paint, area);
        return;
    }
    let focused = pane::is_focused(model, Pane::Snapshots);
    for (row, node) in model.snapshots.window().iter().enumerate() {
        let y = area.y + u16::try_from(row).unwrap_or(u16::MAX);
        let selected = model.snapshots.window.offset + row == model.snapshots.window.index;
        match node.sandbox() {
            None => snapshot(model, paint, area, y, node, selected),
            Some(sandbox) => based(model, paint, area, y, node, sandbox),
        }
        if selected && focused {
            pane::cursor(paint, Area { y, height: 1, ..area }, 2);
        }
    }
}

fn title(model: &Model, paint: &mut Paint<'_>, screen: &Screen) {
    let tree = &model.snapshots;
    let mut spans = Vec::new();
    if tree.load == Load::Ready || !tree.all().is_empty() {
        let count = if tree.filter().is_empty() {
            format!("{} ", tree.count())
        } else {
            let shown = tree.rows().iter().filter(|row| row.sandbox().is_none()).count();
            format!("{shown} of {} ", tree.count())
        };
        spans.push((Role::Plain, count));
    }
    let mut part = |role: Role, text: String| {
        spans.extend([(Role::Border, "─ ".to_owned()), (role, format!("{text} "))]);
    };
    if !tree.filter().is_empty() {
        part(Role::Accent, format!("/{}", tree.filter().text()));
    }
    if !tree.marks.is_empty() {
        part(Role::Warn, format!("{} marked", tree.marks.ids().len()));
    }
    if let Load::Failed(problem) = &tree.load
        && !tree.all().is_empty()
    {
        part(Role::Bad, format!("not read again: {}", problem.message));
    }
    pane::title(model, paint, screen, Pane::Snapshots, &spans);
}

/// Loading, empty, nothing matches, error: told apart, each with what helps.
fn nothing(model: &Model, paint: &mut Paint<'_>, area: Area) {
    let key = |action| model.keymap.first(Mode::Main, action).unwrap_or_default();
    let (x, y, room) =
        (area.x + 2, area.y + u16::from(area.height > 6), area.width.saturating_sub(3));
    match &model.snapshots.load {
        Load::Loading => drop(paint.put(x, y, room, "reading the snapshots…", Role::Dim)),
        Load::Failed(problem) => {
            let again = key(Action::Redraw);
            let place = Area { x, width: room, ..area };
            paint.error(place, problem, 1, Some((&again, "tries again")));
        }
        Load::Ready if !model.snapshots.filter().is_empty() => {
            let words = format!("nothing matches '{}'", model.snapshots.filter().text());
            paint.put(x, y, room, &words, Role::Plain);
            paint.key(x, y + 1, room, &key(Action::Clear), "shows all of them");
        }
        Load::Ready => {
            paint.put(x, y, room, "no snapshots", Role::Plain);
            let does = if model.read_only {
                "would take one, but this console is read-only"
            } else {
                "on a sandbox takes one"
            };
            paint.key(x, y + 1, room, &key(Action::Snapshot), does);
        }
    }
}

/// `▌✓◆ my-env  114.4MiB  2h  2 patches  3 boxes`
fn snapshot(model: &Model, paint: &mut Paint<'_>, area: Area, y: u16, node: &Node, selected: bool) {
    let record = &node.view.record;
    let marked = model.snapshots.marks.holds(&record.id);
    paint.put(area.x + 1, y, 1, if marked { "✓" } else { " " }, Role::Accent);
    let role = match record.state {
        SnapshotState::Ready if record.is_lost() => Role::Bad,
        SnapshotState::Ready => Role::Accent,
        SnapshotState::Failed => Role::Bad,
        SnapshotState::Creating | SnapshotState::Deleting | SnapshotState::Other(_) => Role::Busy,
    };
    let glyph = format!("{} ", snapshot_glyph(&record.state));
    let x = paint.spans(
        area.x + 2,
        y,
        area.width.saturating_sub(2),
        &[(Role::Border, &node.branch), (role, &glyph)],
    );
    let end = (area.x + area.width).saturating_sub(1);
    let room = usize::from(end.saturating_sub(x));
    let name = record.title();
    // The facts give way to the name, in words first, then shortened, then one by one.
    let wanted = columns(name).clamp(6, 20);
    let facts = facts(model, node, room.saturating_sub(wanted + 2));
    let needed: usize = facts.iter().map(|(_, text)| columns(text) + 2).sum();
    let name_room = u16::try_from(room.saturating_sub(needed)).unwrap_or(0);
    let name_role = match record.state {
        SnapshotState::Failed => Role::Bad,
        _ if is_undo(&node.view) => Role::Dim,
        _ if selected || record.name.is_some() => Role::Title,
        SnapshotState::Creating
        | SnapshotState::Ready
        | SnapshotState::Deleting
        | SnapshotState::Other(_) => Role::Plain,
    };
    paint.put(x, y, name_room, name, name_role);
    let mut at = x + name_room;
    for (role, text) in &facts {
        at = paint.spans(at, y, end.saturating_sub(at), &[(Role::Plain, "  "), (*role, text)]);
    }
}

/// Facts on a snapshot, in as many columns as there are.
fn facts(model: &Model, node: &Node, room: usize) -> Vec<(Role, String)> {
    let record = &node.view.record;
    let old = age(model.now.since(record.created_at).as_secs());
    let job = model.jobs.of_snapshot(&record.id);
    let mut facts: Vec<(Role, String, String)> = Vec::new();
    let same = |role: Role, text: String| (role, text.clone(), text);
    if let Some(job) = job {
        facts.push(same(Role::Busy, at_work(job)));
    } else if let Some(running) = &record.operation {
        let since = age(model.now.since(running.started_at).as_secs());
        facts.push(same(Role::Busy, format!("{} {since} by {}", running.kind, running.actor.name)));
    } else if record.state == SnapshotState::Failed {
        facts.push(same(Role::Bad, format!("failed {old} ago")));
    } else if record.state != SnapshotState::Ready {
        facts.push(same(Role::Busy, record.state.to_string()));
    }
    let replicas = record.replica_words();
    let is_damaged = record.damaged().next().is_some();
    let is_at_work = job.is_some() || record.operation.is_some();
    if is_damaged || !is_at_work && !replicas.is_empty() {
        let role = if is_damaged { Role::Bad } else { Role::Busy };
        facts.push(same(role, replicas.join(", ")));
    } else if caveat(&node.view).is_some() {
        facts.push(same(Role::Warn, "⚠".to_owned()));
    }
    if job.is_none() && record.state != SnapshotState::Failed {
        facts.extend(record.archive.bytes.map(|size| same(Role::Plain, bytes(size))));
    }
    // Before its age: what comes last goes first where there is no room.
    if is_undo(&node.view) {
        facts.push(same(Role::Dim, "undo".to_owned()));
    }
    if job.is_none() && record.state != SnapshotState::Failed {
        facts.push(same(Role::Dim, old));
    }
    let (patches, boxes) = (node.view.patches.len(), node.view.sandboxes.len());
    if patches > 0 {
        facts.push((Role::Plain, many(patches, "patch", "patches"), format!("{patches}p")));
    }
    if boxes > 0 {
        facts.push((Role::Plain, many(boxes, "box", "boxes"), format!("{boxes}b")));
    }
    let long: usize = facts.iter().map(|(_, long, _)| columns(long) + 2).sum();
    let mut shown: Vec<(Role, String)> = facts
        .into_iter()
        .map(|(role, long_text, short)| (role, if long <= room { long_text } else { short }))
        .collect();
    while shown.len() > 1 && shown.iter().map(|(_, text)| columns(text) + 2).sum::<usize>() > room {
        shown.pop();
    }
    shown
}

/// Work on it, and how far it has come: `creating 45.2MiB 12MiB/s`.
fn at_work(job: &Job) -> String {
    let mut words = match (&job.state, &job.stage) {
        (JobState::Cancelling, _) => job.state.word().to_owned(),
        (_, Some((stage, _, _))) => stage.clone(),
        (_, None) => job.kind.to_string(),
    };
    match (job.fraction(), job.moved()) {
        (Some(part), _) => words = format!("{words} {:.0}%", part * 100.0),
        (None, Some(moved)) => words = format!("{words} {}", bytes(moved)),
        (None, None) => {}
    }
    if let Some(fast) = job.rate.filter(|rate| *rate >= 1.0) {
        words = format!("{words} {}", rate(fast));
    }
    words
}

/// `├ ● 9c0d11ee hs-build  ✓✓…`
fn based(model: &Model, paint: &mut Paint<'_>, area: Area, y: u16, node: &Node, sandbox: &BasedOn) {
    let entry = model.sandboxes.get(&sandbox.id);
    let record = entry.map(|entry| &*entry.record);
    let state = record.map_or(&sandbox.state, |record| &record.state);
    let job = model.jobs.of_sandbox(&sandbox.id);
    let silent = record.is_some_and(|record| {
        model.hosts.is_silent(record.host.as_str(), model.now, model.started)
    });
    let busy = job.is_some() || record.is_some_and(|record| record.operation.is_some());
    let (glyph, role) = match (busy, silent) {
        (_, true) => (state_glyph(state), Role::Dim),
        (true, false) => ('◐', Role::Busy),
        (false, false) => (state_glyph(state), state_role(state)),
    };
    let plain = if silent { Role::Dim } else { Role::Plain };
    let name = record.map_or(&sandbox.name, |record| &record.name);
    let name = name.as_ref().map(|name| format!(" {name}")).unwrap_or_default();
    let word = match job.and_then(|job| job.stage.as_ref()) {
        Some((step, _, _)) => format!("  {step}"),
        None if *state == crate::domain::State::Ready => String::new(),
        None => format!("  {state}"),
    };
    let marks = marks(&standings(&node.view, sandbox, record));
    let width: usize = marks.iter().map(|(_, text)| columns(text)).sum();
    let end = (area.x + area.width).saturating_sub(1);
    let x =
        paint.spans(area.x + 2, y, area.width.saturating_sub(2), &[(Role::Border, &node.branch)]);
    // How its patches stand is what one looks for: the name gives way to it.
    let room = end
        .saturating_sub(x)
        .saturating_sub(u16::try_from(width).unwrap_or(u16::MAX).saturating_add(2));
    let glyph = format!("{glyph} ");
    let x = paint.spans(
        x,
        y,
        room,
        &[(role, &glyph), (plain, sandbox.id.as_str()), (plain, &name), (Role::Dim, &word)],
    );
    let x = x + 2;
    paint.row(Area { x, y, width: end.saturating_sub(x), ..area }, &marks);
}

/// A glyph for each patch; of many, how many there are of each.
fn marks(states: &[PatchState]) -> Vec<(Role, String)> {
    let glyph = |state: &PatchState| (patch_role(state), patch_glyph(state).to_string());
    if states.len() <= GLYPHS {
        return states.iter().map(glyph).collect();
    }
    let known = [
        PatchState::Applied,
        PatchState::Pending,
        PatchState::Applying,
        PatchState::Failed,
        PatchState::Unknown,
    ];
    let counts =
        known.iter().map(|state| (state, states.iter().filter(|other| *other == state).count()));
    let counts = counts.filter(|(_, count)| *count > 0);
    counts
        .map(|(state, count)| (patch_role(state), format!("{}{count} ", patch_glyph(state))))
        .collect()
}
