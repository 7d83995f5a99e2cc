//! The credits: their sums, what the last day cost, and the last entries of the ledger.

use super::paint::{Paint, cells};
use super::pane;
use crate::present::credit::{AGE, AMOUNT, BALANCE, KIND};
use crate::tui::model::{Area, CreditsLayout, EntryRow, Load, Model, Pane, Role, Screen, WIDE};

/// Below this width what stands side by side stands close.
const NARROW: u16 = 40;

/// Columns of an entry, from its left edge; those that a narrow pane has no room for are left out.
struct Columns {
    age: u16,
    kind: u16,
    usd: u16,
    balance: u16,
}

const COLUMNS: Columns = Columns { age: 4, kind: 9, usd: 10, balance: 10 };

/// Draws the pane.
pub(super) fn draw(model: &Model, paint: &mut Paint<'_>, screen: &Screen) {
    title(model, paint, screen);
    let area = screen.credits;
    if let Some(lines) = model.instead_of_credits(usize::from(area.height)) {
        for (y, line) in (area.y..area.y + area.height).zip(&lines) {
            let (x, width) = (area.x + 2, area.width.saturating_sub(3));
            paint.row(Area { x, y, width, ..area }, line);
        }
        return;
    }
    let layout = model.credits_layout();
    sums(model, paint, layout.sums);
    spent(model, paint, layout.spent);
    entries(model, paint, &layout);
}

/// Trouble, and that the ledger could not be read again.
fn title(model: &Model, paint: &mut Paint<'_>, screen: &Screen) {
    let mut rest = Vec::new();
    let mut part = |role: Role, text: String| {
        rest.extend([(Role::Border, "─ ".to_owned()), (role, format!("{text} "))]);
    };
    if let Some(warning) = model.credits.ledger.warning() {
        part(Role::Warn, warning);
    }
    if let Load::Failed(problem) = &model.credits.load
        && !model.credits.ledger.is_empty()
    {
        part(Role::Bad, format!("not read again: {}", problem.message));
    }
    pane::title(model, paint, screen, Pane::Credits, &rest);
}

/// `$41.20  held $0.80  $0.21/h  8d`: as many of them as there is room for; each is shown whole.
fn sums(model: &Model, paint: &mut Paint<'_>, area: Area) {
    if area.height == 0 {
        return;
    }
    let end = (area.x + area.width).saturating_sub(1);
    let gap = if area.width < NARROW { 1 } else { 2 };
    let mut x = area.x + 2;
    for (at, (role, text)) in model.credit_sums().into_iter().enumerate() {
        if at > 0 && x.saturating_add(cells(&text)) > end {
            break;
        }
        x = paint.put(x, area.y, end.saturating_sub(x), &text, role) + x + gap;
    }
}

/// `24h $1.86 ▁▁▂▃`: what the last day cost, an hour a cell; the last hours where there are fewer cells.
fn spent(model: &Model, paint: &mut Paint<'_>, area: Area) {
    if area.height == 0 {
        return;
    }
    let room = area.width.saturating_sub(3);
    let (words, hours) = model.spending(usize::from(room));
    paint.spans(area.x + 2, area.y, room, &[(Role::Dim, &words), (Role::Accent, &hours)]);
}

fn entries(model: &Model, paint: &mut Paint<'_>, layout: &CreditsLayout) {
    if layout.titles.height > 0 {
        titles(paint, layout.titles);
    }
    let area = layout.list;
    let window = &model.credits.window;
    let entries = &model.credits.ledger.entries;
    if area.height > 0 && entries.is_empty() {
        paint.put(area.x + 2, area.y, area.width.saturating_sub(3), "no entries", Role::Dim);
    }
    for (y, at) in (area.y..area.y + area.height).zip(window.rows(entries.len())) {
        let line = Area { y, height: 1, ..area };
        entry(paint, line, &model.entry_row(&entries[at]));
        if at == window.index && pane::is_focused(model, Pane::Credits) {
            pane::cursor(paint, line, 1);
        }
    }
}

fn titles(paint: &mut Paint<'_>, area: Area) {
    let mut x = area.x + 2;
    let mut put = |width: u16, text: &str, is_figure: bool| {
        let cell = Area { x, width, ..area };
        if is_figure {
            paint.put_right(cell, area.y, text, Role::Dim);
        } else {
            paint.put(x, area.y, width, text, Role::Dim);
        }
        x += width + 1;
    };
    put(COLUMNS.age, AGE.title, false);
    put(COLUMNS.kind, KIND.title, false);
    put(COLUMNS.usd, AMOUNT.title, true);
    put(COLUMNS.balance, BALANCE.title, true);
    put(30, "SANDBOX, BY, NOTE", false);
}

fn entry(paint: &mut Paint<'_>, area: Area, row: &EntryRow) {
    let end = (area.x + area.width).saturating_sub(1);
    let mut x = area.x + 2;
    let mut left = |width: u16| {
        let cell = Area { x, width: width.min(end.saturating_sub(x)), ..area };
        x = x.saturating_add(width + 1);
        cell
    };
    let age = left(COLUMNS.age);
    paint.put(age.x, age.y, age.width, &row.age, Role::Dim);
    let kind = left(COLUMNS.kind);
    paint.put(kind.x, kind.y, kind.width, &row.kind, Role::Plain);
    let width = if area.width < NARROW { COLUMNS.usd - 2 } else { COLUMNS.usd };
    paint.put_right(left(width), area.y, &row.amount.1, row.amount.0);
    if area.width >= WIDE {
        paint.put_right(left(COLUMNS.balance), area.y, &row.balance.1, row.balance.0);
    }
    paint.row(left(area.width), &row.about);
}
