//! The reap plan: sums and what to know above its items, which are several lines each, and below them the one under the cursor.

use super::paint::Paint;
use crate::domain::error::Error;
use crate::tui::keymap::{Action, Mode};
use crate::tui::model::{Area, Job, Load, Model, PlanTarget, ReapLayout, Role, Spans, summed};

/// Draws the overlay.
pub(super) fn draw(model: &Model, paint: &mut Paint<'_>) {
    let screen = model.screen();
    paint.overlay(screen.overlay(), &model.reap_title(), &hints(model));
    let area = screen.overlay_text();
    match &model.reap.load {
        Load::Loading => {
            let words = "looking at the hosts, to see what is stale…";
            paint.put(area.x + 1, area.y + 1, area.width.saturating_sub(2), words, Role::Dim);
        }
        Load::Failed(error) => failed(model, paint, area, error),
        Load::Ready => plan(model, paint, area),
    }
}

fn hints(model: &Model) -> Vec<(String, &'static str)> {
    let key = |action| model.keymap.first(Mode::Reap, action).unwrap_or_default();
    let reap = &model.reap;
    let mut hints = vec![(key(Action::Close), "close")];
    let running = reap.job.and_then(|id| model.jobs.get(id)).is_some_and(Job::is_running);
    if running {
        hints.push((key(Action::CancelJob), "cancel"));
    } else if reap.load != Load::Loading {
        if model.reap_refusal().is_none() {
            hints.push((key(Action::Apply), "apply"));
        }
        hints.push((key(Action::Retry), "new plan"));
    }
    hints.extend([
        (key(Action::NextClass), "class"),
        (key(Action::Search), "search"),
        (key(Action::Help), "help"),
    ]);
    hints
}

fn failed(model: &Model, paint: &mut Paint<'_>, area: Area, error: &Error) {
    let (x, y, width) = (area.x + 1, area.y + 1, area.width.saturating_sub(2));
    let again = model.keymap.first(Mode::Reap, Action::Retry).unwrap_or_default();
    let place = Area { x, y, width, height: area.height.saturating_sub(1) };
    paint.error(place, error, 3, Some((&again, "asks again")));
}

fn plan(model: &Model, paint: &mut Paint<'_>, area: Area) {
    let layout = model.reap_layout();
    for (y, line) in (area.y..).zip(&layout.head) {
        paint.row(Area { y, ..area }, line);
    }
    let reap = &model.reap;
    if reap.rows().is_empty() {
        let y = layout.list.y + 1;
        paint.put(area.x + 1, y, area.width.saturating_sub(2), "nothing is stale", Role::Good);
        return;
    }
    for (row, place) in reap.window.rows(reap.rows().len()).enumerate() {
        let y = layout.list.y + u16::try_from(row).unwrap_or(u16::MAX).saturating_mul(layout.each);
        let room = Area { x: area.x + 1, y, width: area.width.saturating_sub(1), height: 1 };
        let Some(found) = reap.rows().get(place) else { break };
        let lines = model.reap_row(*found, layout.each);
        for (y, line) in (y..y + layout.each).zip(&lines) {
            if y < layout.list.y + layout.list.height {
                paint.row(Area { y, ..room }, line);
            }
        }
        if place == reap.window.index {
            cursor(paint, area, y, &layout);
        }
    }
    let (width, height) = (usize::from(layout.strip.width), usize::from(layout.strip.height));
    for (y, line) in (layout.strip.y..).zip(&model.reap_strip(width, height)) {
        paint.row(Area { y, ..layout.strip }, line);
    }
    let place = format!(" {}/{} ", reap.window.index + 1, reap.rows().len());
    paint.put_right(area, model.screen().overlay().y, &place, Role::Dim);
}

/// The bar beside all lines of an item; its first line is tinted.
fn cursor(paint: &mut Paint<'_>, area: Area, y: u16, layout: &ReapLayout) {
    let end = (y + layout.each).min(layout.list.y + layout.list.height);
    for y in y..end {
        paint.put(area.x, y, 1, "▌", Role::Accent);
    }
    let style = paint.style(Role::Selected);
    let line = Area { x: area.x + 1, y, width: area.width.saturating_sub(1), height: 1 };
    paint.tint(line, style);
}

/// Lines of the question whether to apply it: sums first, then each item, and what changed while it is asked.
pub(super) fn question(model: &Model, target: &PlanTarget) -> Vec<Spans> {
    let plain = |text: String| vec![(Role::Plain, text)];
    let items: Vec<_> = target.plan.to_do().collect();
    let mut lines = vec![
        vec![(
            Role::Dim,
            "Exactly this is done, and only where it is still so. What changed is skipped."
                .to_owned(),
        )],
        plain(summed(items.iter().map(|item| item.action.to_string()))),
        plain(summed(items.iter().map(|item| item.class.to_string()))),
        plain(summed(items.iter().map(|item| format!("on {}", item.host)))),
    ];
    let mut warn = |text: String| lines.push(vec![(Role::Warn, text)]);
    if target.forced > 0 {
        warn(format!("⚠ {} of them the plan would not take away by itself", target.forced));
    }
    if target.left_out > 0 {
        warn(format!("{} left out: changed since the plan was made", target.left_out));
    }
    lines.push(Vec::new());
    for item in items {
        let name = item.name.as_deref().map(|name| format!(" {name}")).unwrap_or_default();
        lines.push(vec![
            (Role::Accent, format!("{} ", item.action)),
            (Role::Title, item.id().to_owned()),
            (Role::Plain, format!("{name}  {} on {}", item.class, item.host)),
        ]);
        lines.push(vec![(Role::Dim, format!("    {}", item.why))]);
        let at = model.reap.items().iter().position(|known| known.is_same(item));
        let change = at.and_then(|at| model.reap_change(at));
        lines.extend(
            change.map(|change| vec![(Role::Warn, format!("    ⚠ changed since: {change}"))]),
        );
    }
    lines
}
