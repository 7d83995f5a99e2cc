//! Running jobs with their bars, then what happened, the newest first.

use super::paint::Paint;
use crate::tui::model::{
    ActivityLine, Area, Job, JobState, Model, Pane, Role, Screen, age, clock, rate,
};

/// Draws the pane; `title` is the row of its title.
pub(super) fn draw(model: &Model, paint: &mut Paint<'_>, screen: &Screen, title: u16) {
    let area = screen.activity;
    let running: Vec<&Job> = model.jobs.running().collect();
    let focused = model.focus == Pane::Activity && model.overlays.is_empty();
    let mut spans =
        vec![(if focused { Role::Accent } else { Role::Title }, " Activity ".to_owned())];
    if !running.is_empty() {
        spans.push((Role::Busy, format!("{} running ", running.len())));
    }
    for other in others(screen, Pane::Activity) {
        spans.push((Role::Border, "─ ".to_owned()));
        spans.push((Role::Dim, format!("{other} (tab) ")));
    }
    let spans: Vec<(Role, &str)> =
        spans.iter().map(|(role, text)| (*role, text.as_str())).collect();
    paint.spans(screen.frame.x + 2, title, screen.frame.width.saturating_sub(4), &spans);

    let total = running.len() + model.activity.lines().len();
    if total == 0 {
        let text = if model.activity.loaded {
            "nothing happened in the last day"
        } else {
            "reading what happened…"
        };
        paint.put(area.x + 3, area.y, area.width.saturating_sub(4), text, Role::Dim);
        return;
    }
    for row in 0..usize::from(area.height) {
        let at = model.activity.offset + row;
        let y = area.y + u16::try_from(row).unwrap_or(u16::MAX);
        match (
            running.get(at),
            at.checked_sub(running.len()).and_then(|at| model.activity.line(at)),
        ) {
            (Some(job), _) => job_line(model, paint, area, y, job),
            (None, Some(line)) => event_line(model, paint, area, y, line),
            (None, None) => break,
        }
        if focused && at == model.activity.index {
            paint.put(area.x, y, 1, "▌", Role::Accent);
            let style = paint.style(Role::Selected);
            paint.tint(Area { x: area.x + 1, y, width: area.width - 1, height: 1 }, style);
        }
    }
}

/// The panes that have no place on the screen beside this one: they are tabs of it.
pub(super) fn others(screen: &Screen, pane: Pane) -> Vec<&'static str> {
    let all = [
        (Pane::Sandboxes, "Sandboxes"),
        (Pane::Snapshots, "Snapshots"),
        (Pane::Activity, "Activity"),
    ];
    let hidden =
        all.into_iter().filter(|(other, _)| *other != pane && screen.rows(*other).height == 0);
    hidden.map(|(_, name)| name).collect()
}

/// `14:03:20 create 77fe01aa  [3/6 transfer] ▓▓▓▓▓░░░░░ 45%  12.1MiB/s`
fn job_line(model: &Model, paint: &mut Paint<'_>, area: Area, y: u16, job: &Job) {
    let end = area.x + area.width;
    let started = clock(job.started, &model.zone);
    let what = format!("{} {}  ", job.kind, job.title);
    let word = match (&job.state, &job.stage) {
        (JobState::Cancelling, _) => job.state.word().to_owned(),
        (_, Some((stage, step, steps))) => format!("[{step}/{steps} {stage}]"),
        (_, None) if job.external.is_some() => age(job.seconds(model.now)),
        (_, None) => "starting".to_owned(),
    };
    let mut x = paint.spans(
        area.x + 1,
        y,
        area.width.saturating_sub(1),
        &[(Role::Dim, &started), (Role::Busy, " ◐ "), (Role::Plain, &what), (Role::Busy, &word)],
    ) + 1;
    if let Some(part) = job.fraction() {
        if x + 10 < end {
            paint.bar(x, y, 10, part, Role::Busy);
            x += 11;
        }
        x +=
            paint.put(x, y, end.saturating_sub(x), &format!("{:.0}%  ", part * 100.0), Role::Plain);
    }
    if let Some(fast) = job.rate.filter(|rate| *rate >= 1.0) {
        x += paint.put(x, y, end.saturating_sub(x), &format!("{}  ", rate(fast)), Role::Dim);
    }
    if let Some(external) = &job.external {
        let words =
            format!(" in process {} on {}, for {}", external.pid, external.host, external.actor);
        paint.put(x, y, end.saturating_sub(x), &words, Role::Dim);
        return;
    }
    // The stage's own line is no news beside the stage.
    if let Some(line) = job.last_line().filter(|line| !line.starts_with('[')) {
        paint.put(x, y, end.saturating_sub(x), line, Role::Dim);
    }
}

fn event_line(model: &Model, paint: &mut Paint<'_>, area: Area, y: u16, line: &ActivityLine) {
    let time = clock(line.time, &model.zone);
    let glyph = format!(" {} ", line.glyph);
    let role = if line.role == Role::Bad { Role::Bad } else { Role::Plain };
    paint.spans(
        area.x + 1,
        y,
        area.width.saturating_sub(1),
        &[(Role::Dim, &time), (line.role, &glyph), (role, &line.text)],
    );
}
