//! Running jobs with their bars, then what happened, the newest first.

use super::paint::Paint;
use super::pane;
use crate::tui::model::{
    ActivityLine, Area, Job, JobState, Model, Pane, Role, Screen, age, clock, rate,
};

/// Draws the pane.
pub(super) fn draw(model: &Model, paint: &mut Paint<'_>, screen: &Screen) {
    let area = screen.activity;
    let running: Vec<&Job> = model.jobs.running().collect();
    let count =
        (!running.is_empty()).then(|| (Role::Busy, format!("─ {} running ", running.len())));
    pane::title(model, paint, screen, Pane::Activity, &Vec::from_iter(count));

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
        if at == model.activity.index && pane::is_focused(model, Pane::Activity) {
            pane::cursor(paint, Area { y, height: 1, ..area }, 1);
        }
    }
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
