//! Row of an operation, the same in Activity and in the list of jobs: `◐ create shop-7   3/6 transfer 45%   12s`.

use super::paint::{Paint, cells};
use crate::tui::model::{ActivityLine, Area, Job, Model, Role, age, bytes, took};

/// Columns from which on a row also says how long ago it was.
const WITH_WHEN: u16 = 64;
/// Cells of a duration.
const TOOK: u16 = 6;
/// Cells of how long ago it was.
const WHEN: u16 = 11;

/// Draws a job. Of one that ended the last column is how long it took, of one that runs how long it has.
pub(super) fn draw(model: &Model, paint: &mut Paint<'_>, row: Area, job: &Job) {
    let failed = job.state.problem().is_some();
    let ran = if job.is_running() {
        age(job.seconds(model.now))
    } else {
        took(job.ran(model.now)).replace(' ', "")
    };
    let when = (!job.is_running()).then(|| ago(model.now.since(job.end()).as_secs()));
    let left = if row.width >= WITH_WHEN {
        let left = right(paint, row, when.as_deref().unwrap_or_default(), WHEN);
        right(paint, left, &ran, TOOK)
    } else {
        // Where there is room for one only: of a failure, when it was.
        let last = when.filter(|_| failed).unwrap_or(ran);
        right(paint, row, &last, TOOK.max(cells(&last)))
    };
    let (glyph, role) = job.sign();
    // However long a name is, what came of it has room.
    let x = paint.spans(
        left.x + 1,
        row.y,
        (left.width * 3 / 5).saturating_sub(1),
        &[(role, &glyph.to_string()), (Role::Plain, " "), (Role::Plain, &job.what())],
    );
    let end = left.x + left.width;
    let column = left.x + (left.width * 2 / 5).min(30);
    let x = (x + 2).max(column);
    words(model, paint, Area { x, width: end.saturating_sub(x), ..row }, job);
}

/// Draws an event that belongs to no operation.
pub(super) fn draw_line(model: &Model, paint: &mut Paint<'_>, row: Area, line: &ActivityLine) {
    let when = ago(model.now.since(line.time).as_secs());
    let left = right(paint, row, &when, cells(&when).max(TOOK));
    let role = if line.role == Role::Bad { Role::Bad } else { Role::Plain };
    paint.spans(
        left.x + 1,
        row.y,
        left.width.saturating_sub(1),
        &[(line.role, &line.glyph.to_string()), (Role::Plain, " "), (role, &line.text)],
    );
}

/// Draws what happened while nobody looked.
pub(super) fn draw_since(paint: &mut Paint<'_>, row: Area, text: &str) {
    paint.put(row.x + 1, row.y, row.width.saturating_sub(1), text, Role::Accent);
}

fn ago(seconds: u64) -> String {
    format!("{} ago", age(seconds))
}

/// Puts a text at the right end; what is left beside a column of that width.
fn right(paint: &mut Paint<'_>, row: Area, text: &str, width: u16) -> Area {
    let inside = Area { width: row.width.saturating_sub(1), ..row };
    paint.put_right(inside, row.y, text, Role::Dim);
    Area { width: row.width.saturating_sub(width + 3), ..row }
}

/// Texts one after the other, as far as there is room.
struct Pen<'a, 'b> {
    paint: &'a mut Paint<'b>,
    area: Area,
}

impl Pen<'_, '_> {
    fn put(&mut self, text: &str, role: Role) {
        if !text.is_empty() && self.area.width > 0 {
            let used = self.paint.put(self.area.x, self.area.y, self.area.width, text, role) + 1;
            self.skip(used);
        }
    }

    fn bar(&mut self, cells: u16, part: f64) {
        if cells < self.area.width {
            self.paint.bar(self.area.x, self.area.y, cells, part, Role::Busy);
            self.skip(cells + 1);
        }
    }

    fn skip(&mut self, cells: u16) {
        self.area.x = self.area.x.saturating_add(cells);
        self.area.width = self.area.width.saturating_sub(cells);
    }
}

/// How it stands: step, bar and rate, or what came of it; who does it, where that is not the operator.
fn words(model: &Model, paint: &mut Paint<'_>, area: Area, job: &Job) {
    let mut pen = Pen { paint, area };
    let (_, role) = job.sign();
    pen.put(&model.job_words(job), if role == Role::Good { Role::Plain } else { role });
    if job.is_running() {
        progress(&mut pen, job);
    }
    let Some(external) = &job.external else { return };
    let by = external.actor.to_string();
    if by != model.actor {
        pen.put(&format!("by {by}"), Role::Dim);
    }
    if job.is_running() {
        pen.put(&format!("in process {} on {}", external.pid, external.host), Role::Dim);
    }
}

fn progress(pen: &mut Pen<'_, '_>, job: &Job) {
    if let Some(part) = job.fraction() {
        if pen.area.width >= 30 {
            pen.bar(10, part);
        }
        pen.put(&format!("{:.0}%", part * 100.0), Role::Plain);
    }
    if let Some(rate) = job.rate.filter(|rate| *rate >= 1.0) {
        pen.put(&format!("{}/s", bytes(rate as u64)), Role::Dim);
    }
    // The step's own line is no news beside the step, and another process's are not heard.
    let own = job.last_line().filter(|_| job.external.is_none());
    if let Some(line) = own.filter(|line| !line.starts_with('[')) {
        pen.put(line, Role::Dim);
    }
}
