//! Questions before something destructive: every target named, the harmless button focused.

use ratatui::layout::Position;

use super::paint::Paint;
use crate::domain::text::columns;
use crate::tui::model::{Area, Confirm, Job, Model, Purpose, Role, Target, age, wrap};

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
        let spans: Vec<(Role, &str)> = line.iter().map(|(role, text)| (*role, text.as_str())).collect();
        paint.spans(area.x, area.y + 1 + u16::try_from(row).unwrap_or(0), area.width, &spans);
    }
    if lines.len() > room {
        let text = format!(" {} to {} of {} lines, PgDn ", offset + 1, (offset + room).min(lines.len()), lines.len());
        paint.put_right(area, outer.y + outer.height.saturating_sub(1), &text, Role::Warn);
    }
    let bottom = area.y + area.height.saturating_sub(1);
    let cursor = confirm.demand.as_ref().map(|(wanted, what)| {
        let y = bottom.saturating_sub(2);
        let typed = confirm.typed.value();
        let x = paint.spans(
            area.x,
            y,
            area.width,
            &[
                (Role::Plain, "type "),
                (Role::Plain, what),
                (Role::Plain, ", "),
                (Role::Title, wanted),
                (Role::Plain, ": "),
            ],
        );
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
    let count = confirm.taken().count();
    let many = if count == 1 { "this sandbox".to_owned() } else { format!("{count} sandboxes") };
    match confirm.purpose {
        Purpose::Destroy if confirm.again => format!("Destroy {many} although the host is silent?"),
        Purpose::Recreate if confirm.again => format!("Rebuild {many} although the host is silent?"),
        Purpose::Destroy => format!("Destroy {many}?"),
        Purpose::Recreate => format!("Rebuild {many}?"),
        Purpose::CancelJob(id) => {
            let what = model.jobs.get(id).map(|job| format!("{} {}", job.kind, job.title)).unwrap_or_default();
            format!("Roll back {what}?")
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
    match confirm.purpose {
        Purpose::CancelJob(id) => {
            let Some(job) = model.jobs.get(id) else { return lines };
            if !job.is_running() {
                lines.push(vec![(Role::Good, "it has ended meanwhile".to_owned())]);
            }
            lines.push(vec![(Role::Plain, job.rollback().to_owned())]);
            if let Some(elsewhere) = &job.elsewhere {
                let words = format!(
                    "It runs in process {} on {}, for {}, since {}. That process is asked to roll it back; one that is dead cannot hear it.",
                    elsewhere.pid,
                    elsewhere.host,
                    elsewhere.actor,
                    age(job.seconds(model.now))
                );
                lines.push(Vec::new());
                lines.push(vec![(Role::Dim, words)]);
            }
        }
        Purpose::Quit => {
            lines.push(vec![(Role::Dim, "They run in this console. Rolled back means:".to_owned())]);
            lines.push(Vec::new());
            for job in model.jobs.running_here() {
                lines.extend(running(model, job));
            }
        }
        Purpose::Destroy | Purpose::Recreate => {
            let narrow = model.screen().whole.width < 100;
            lines.extend(confirm.targets.iter().flat_map(|target| named(model, target, narrow)));
            lines.push(Vec::new());
            let words = match confirm.purpose {
                Purpose::Recreate => {
                    "Each is destroyed and made again: same id, profile version and inputs; its files are gone."
                }
                _ => "Containers, networks, volumes and the workspace are removed.",
            };
            lines.push(vec![(Role::Dim, words.to_owned())]);
            if confirm.taken().next().is_none() {
                lines.push(vec![(Role::Warn, "Nothing is left to act on.".to_owned())]);
            }
        }
    }
    lines
}

fn running(model: &Model, job: &Job) -> [Line; 2] {
    let stage = job.stage.as_ref().map(|(stage, step, steps)| format!("  {step}/{steps} {stage}")).unwrap_or_default();
    let what = format!("{} {}{stage}  {}", job.kind, job.title, age(job.seconds(model.now)));
    [vec![(Role::Busy, "◐ ".to_owned()), (Role::Plain, what)], vec![(Role::Dim, format!("    {}", job.rollback()))]]
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
    if let Some(reason) = target.left_out {
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
        let text = if at == confirm.focus { format!("[ {label} ]") } else { format!("  {label}  ") };
        x += paint.put(x, y, (area.x + area.width).saturating_sub(x), &text, role) + 2;
    }
    let hint = "tab moves, enter presses, esc leaves";
    if x + 40 < area.x + area.width {
        paint.put_right(area, y, hint, Role::Dim);
    }
}
