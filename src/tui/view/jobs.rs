//! All operations: those of this console, and those of other processes.

use super::paint::Paint;
use crate::tui::keymap::{Action, Mode};
use crate::tui::model::{Area, Job, JobState, Model, Role, age, clock, rate};

/// Draws the overlay; `at` is the row under the cursor.
pub(super) fn draw(model: &Model, paint: &mut Paint<'_>, at: usize) {
    let screen = model.screen();
    let (outer, area) = (screen.overlay(), screen.overlay_text());
    let key = |action| model.keymap.first(Mode::Jobs, action).unwrap_or_default();
    let hints = [
        (key(Action::Close), "close"),
        (key(Action::Open), "output"),
        (key(Action::CancelJob), "cancel"),
    ];
    let running = model.jobs.running().count();
    paint.overlay(
        outer,
        &format!("Jobs  {running} running of {}", model.jobs.list().len()),
        &hints,
    );
    if model.jobs.list().len() == 0 {
        paint.put(
            area.x + 1,
            area.y + 1,
            area.width.saturating_sub(2),
            "nothing was done in the last day",
            Role::Dim,
        );
        return;
    }
    let height = usize::from(area.height);
    let offset = at.saturating_sub(height.saturating_sub(1));
    for (row, job) in model.jobs.list().skip(offset).take(height).enumerate() {
        let y = area.y + u16::try_from(row).unwrap_or(u16::MAX);
        line(model, paint, area, y, job);
        if offset + row == at {
            paint.put(area.x, y, 1, "▌", Role::Accent);
            let style = paint.style(Role::Selected);
            paint.tint(
                Area { x: area.x + 1, y, width: area.width.saturating_sub(1), height: 1 },
                style,
            );
        }
    }
}

fn line(model: &Model, paint: &mut Paint<'_>, area: Area, y: u16, job: &Job) {
    let (glyph, role, word) = state(job);
    let time = format!(" {} ", clock(job.started, &model.zone));
    let glyph = format!("{glyph} ");
    let what = format!("{} {}", job.kind, job.title);
    let took = format!("{:>6}  ", age(job.seconds(model.now)));
    let end = area.x + area.width;
    let mut x = paint.spans(
        area.x,
        y,
        42.min(area.width),
        &[(Role::Dim, &time), (role, &glyph), (Role::Plain, &what)],
    );
    x = x.max(area.x + 42.min(area.width / 2));
    x += paint.put(x, y, end.saturating_sub(x), &took, Role::Dim);
    x += paint.put(x, y, end.saturating_sub(x), &word, role) + 1;
    if job.is_running()
        && let Some(part) = job.fraction()
        && x + 17 < end
    {
        paint.bar(x, y, 10, part, Role::Busy);
        x += 11
            + paint.put(
                x + 11,
                y,
                end.saturating_sub(x + 11),
                &format!("{:.0}%  ", part * 100.0),
                Role::Plain,
            );
        if let Some(fast) = job.rate.filter(|rate| *rate >= 1.0) {
            x += paint.put(x, y, end.saturating_sub(x), &format!("{}  ", rate(fast)), Role::Dim);
        }
    }
    if let Some(external) = &job.external {
        let words = format!("{}@{} by {}", external.pid, external.host, external.actor);
        paint.put(x + 1, y, end.saturating_sub(x + 1), &words, Role::Dim);
        return;
    }
    // An end speaks for itself.
    if let Some(last) = job.last_line().filter(|line| job.is_running() && !line.starts_with('[')) {
        paint.put(x + 1, y, end.saturating_sub(x + 1), last, Role::Dim);
    }
}

fn state(job: &Job) -> (char, Role, String) {
    match &job.state {
        JobState::Starting => ('◌', Role::Busy, "starting".to_owned()),
        JobState::Running => {
            let stage =
                job.stage.as_ref().map(|(stage, step, steps)| format!("{step}/{steps} {stage}"));
            ('◐', Role::Busy, stage.unwrap_or_else(|| "running".to_owned()))
        }
        JobState::Cancelling => ('◐', Role::Warn, job.state.word().to_owned()),
        JobState::Succeeded | JobState::DoneAnyway => {
            ('✓', Role::Good, job.state.word().to_owned())
        }
        JobState::Undone(problem) => ('○', Role::Warn, format!("undone: {}", problem.message)),
        JobState::Stopped(problem) => ('⚠', Role::Warn, format!("stopped: {}", problem.message)),
        JobState::Skipped(reason) => ('⚠', Role::Warn, format!("skipped: {reason}")),
        JobState::Failed(problem) => ('✗', Role::Bad, format!("failed: {}", problem.message)),
    }
}
