//! The list: only the rows on the screen are drawn.

use super::paint::Paint;
use super::pane;
use crate::present::{Role, bytes, many, sandbox, state_glyph, state_role};
use crate::tui::keymap::{Action, Mode};
use crate::tui::model::{Area, Column, Entry, Load, Model, Pane, Placed, Screen, Sort, SortKey};

/// Draws the pane.
pub(super) fn draw(model: &Model, paint: &mut Paint<'_>, screen: &Screen) {
    let columns = screen.columns(model.sandboxes.longest_name(), model.sandboxes.has_prices());
    title(model, paint, screen, &columns);
    if model.sandboxes.shown().is_empty() {
        nothing(model, paint, screen.list);
        return;
    }
    titles(model, paint, screen.titles, &columns);
    let hosts = &model.sandboxes.conditions().hosts;
    for (at, entry) in model.sandboxes.window().iter().enumerate() {
        let y = screen.list.y + u16::try_from(at).unwrap_or(u16::MAX);
        let row = Row {
            entry,
            area: Area { y, height: 1, ..screen.list },
            silent: hosts.holds(&entry.words[3]),
            selected: model.sandboxes.window.offset + at == model.sandboxes.window.index,
        };
        line(model, paint, &row, &columns);
    }
    scrollbar(model, paint, screen);
}

fn title(model: &Model, paint: &mut Paint<'_>, screen: &Screen, columns: &[Placed]) {
    let list = &model.sandboxes;
    let count = if list.filter().is_empty() {
        format!("{} ", list.len())
    } else {
        format!("{} of {} ", list.shown().len(), list.len())
    };
    let mut spans = Vec::new();
    if list.load == Load::Ready || !list.is_empty() {
        spans.push((Role::Plain, count));
    }
    let mut part = |role: Role, text: String| {
        spans.extend([(Role::Border, "─ ".to_owned()), (role, format!("{text} "))]);
    };
    if let Some(words) = sorted(list.sort(), columns) {
        part(Role::Dim, words);
    }
    if !list.filter().is_empty() {
        part(Role::Accent, format!("/{}", list.filter().text()));
    }
    match (list.marks.ids().len(), list.hidden_marks()) {
        (0, _) => {}
        (marked, 0) => part(Role::Warn, format!("{marked} marked")),
        (marked, hidden) => {
            part(Role::Warn, format!("{marked} marked, {hidden} of them hidden by the filter"));
        }
    }
    if let Load::Failed(problem) = &list.load
        && !list.is_empty()
    {
        part(Role::Bad, format!("not read again: {}", problem.message));
    }
    pane::title(model, paint, screen, Pane::Sandboxes, &spans);
}

/// The sort in words, where no column's title is marked.
fn sorted(sort: Sort, columns: &[Placed]) -> Option<String> {
    let turned = |turned| if turned { " ↓" } else { "" };
    match (sort.key, sort.descending) {
        (SortKey::Trouble, false) => Some("trouble first".to_owned()),
        (SortKey::Trouble, true) => Some("trouble last".to_owned()),
        (key, _) if columns.iter().any(|placed| placed.column.sort_key() == Some(key)) => None,
        (key, descending) => Some(format!("by {}{}", key.as_str(), turned(descending))),
    }
}

fn titles(model: &Model, paint: &mut Paint<'_>, area: Area, columns: &[Placed]) {
    let sort = model.sandboxes.sort();
    for placed in columns {
        let title = placed.column.title();
        // The list's title says that trouble comes first.
        let sorted = sort.key != SortKey::Trouble && placed.column.sort_key() == Some(sort.key);
        let text = match (sorted, sort.descending) {
            (false, _) => title.to_owned(),
            (true, false) => format!("{title} ↑"),
            (true, true) => format!("{title} ↓"),
        };
        let role = if sorted { Role::Title } else { Role::Dim };
        let x = area.x + placed.x;
        if placed.column.is_figure() {
            // The mark may stand in the gap before the column.
            let room = Area { x: x.saturating_sub(1), width: placed.width + 1, ..area };
            paint.put_right(room, area.y, &text, role);
        } else {
            paint.put(x, area.y, placed.width + 1, &text, role);
        }
    }
}

/// Loading, empty, nothing matches, error: told apart, each with what helps.
fn nothing(model: &Model, paint: &mut Paint<'_>, area: Area) {
    let key = |action| model.keymap.first(Mode::Main, action).unwrap_or_default();
    let y = area.y + area.height / 3;
    let x = area.x + 3;
    let room = area.width.saturating_sub(6);
    match &model.sandboxes.load {
        Load::Loading => {
            paint.put(x, y, room, "reading the sandboxes…", Role::Dim);
        }
        Load::Failed(problem) => {
            let above = u16::from(area.height > 6);
            let (y, height) = (area.y + above, area.height - above);
            let again = key(Action::Redraw);
            let place = Area { x, y, width: room, height };
            paint.error(place, problem, 3, Some((&again, "tries again")));
        }
        Load::Ready if !model.sandboxes.filter().is_empty() => {
            let text = format!(
                "none of {} matches '{}'",
                many(model.sandboxes.len(), "sandbox", "sandboxes"),
                model.sandboxes.filter().text()
            );
            paint.put(x, y, room, &text, Role::Plain);
            paint.key(x, y + 1, room, &key(Action::Clear), "shows all of them");
        }
        Load::Ready => {
            paint.put(x, y, room, "no sandboxes", Role::Plain);
            let does = if model.read_only {
                "would create one, but this console is read-only"
            } else {
                "creates one"
            };
            paint.key(x, y + 1, room, &key(Action::Create), does);
        }
    }
}

/// A row to be drawn.
struct Row<'a> {
    entry: &'a Entry,
    /// Its place on the screen.
    area: Area,
    /// Whether its host does not answer.
    silent: bool,
    /// Whether the cursor is on it.
    selected: bool,
}

fn line(model: &Model, paint: &mut Paint<'_>, row: &Row<'_>, columns: &[Placed]) {
    for placed in columns {
        let (role, text) = match placed.column {
            Column::Marks => {
                marks(model, paint, row);
                continue;
            }
            column => cell(model, row, column, usize::from(placed.width)),
        };
        let area = Area { x: row.area.x + placed.x, width: placed.width, ..row.area };
        if placed.column.is_figure() {
            paint.put_right(area, area.y, &text, role);
        } else {
            paint.put(area.x, area.y, area.width, &text, role);
        }
    }
    if row.selected && pane::is_focused(model, Pane::Sandboxes) {
        // Cursor, mark and glyph keep their colours.
        let marks = columns.first().map_or(0, |placed| placed.width);
        pane::cursor(paint, row.area, marks);
    }
}

/// Mark, or the sign of a stale one; and the glyph.
fn marks(model: &Model, paint: &mut Paint<'_>, row: &Row<'_>) {
    let record = &row.entry.record;
    let marked = model.sandboxes.marks.holds(&record.id);
    let (mark, role) = match (marked, model.stale.of(&record.id)) {
        (true, _) => ("✓", Role::Accent),
        (false, Some(_)) => ("◷", Role::Warn),
        (false, None) => (" ", Role::Plain),
    };
    paint.put(row.area.x + 1, row.area.y, 1, mark, role);
    let busy = record.operation.is_some() || model.jobs.of_sandbox(&record.id).is_some();
    let (glyph, role) = match (busy, row.entry.degraded > 0) {
        (true, _) => ('◐', Role::Busy),
        (false, true) => ('⚠', Role::Warn),
        (false, false) => (state_glyph(&record.state), state_role(&record.state)),
    };
    let role = if row.silent { Role::Dim } else { role };
    paint.put(row.area.x + 2, row.area.y, 1, &glyph.to_string(), role);
}

/// Text of a column for a row.
fn cell(model: &Model, row: &Row<'_>, column: Column, width: usize) -> (Role, String) {
    if matches!(column, Column::Cpu | Column::Memory) {
        return used(model, row, column);
    }
    if column == Column::What {
        return model.what(row.entry, row.silent, width);
    }
    let record = &row.entry.record;
    let text = column.of_record().map(|column| (column.cell)(record, model.now));
    let Some(mut text) = text.filter(|text| !text.is_empty()) else {
        return (Role::Dim, "—".to_owned());
    };
    // It is what was, not what is.
    if row.silent && column == Column::State {
        text.push('?');
    }
    (if row.silent { Role::Dim } else { role(model, row, column) }, text)
}

/// How a column's cell is meant.
fn role(model: &Model, row: &Row<'_>, column: Column) -> Role {
    match column {
        Column::Name => Role::Title,
        Column::Profile | Column::Age => Role::Dim,
        Column::State => sandbox::role(&row.entry.record),
        Column::Left if model.sandboxes.conditions().is_expiring(row.entry) => Role::Warn,
        _ => Role::Plain,
    }
}

/// Usage of its containers, of the processor or of memory, as its host said last.
fn used(model: &Model, row: &Row<'_>, column: Column) -> (Role, String) {
    let record = &row.entry.record;
    if row.silent {
        return (Role::Dim, "?".to_owned());
    }
    let used = model.hosts.used(record.host.as_str(), &record.id);
    let text = match column {
        Column::Cpu => used.and_then(|used| used.cpu_pct).map(|percent| format!("{percent:.0}%")),
        _ => used.map(|used| bytes(used.memory_bytes)),
    };
    text.map_or((Role::Dim, "—".to_owned()), |text| (Role::Plain, text))
}

/// Where the window is in a long list, on the frame's right edge.
fn scrollbar(model: &Model, paint: &mut Paint<'_>, screen: &Screen) {
    let (count, height) = (model.sandboxes.shown().len(), usize::from(screen.list.height));
    if count <= height || height == 0 {
        return;
    }
    let thumb = (height * height / count).max(1);
    let top = model.sandboxes.window.offset * (height - thumb) / (count - height).max(1);
    // On the frame: no column ends below it.
    let x = screen.list.x + screen.list.width;
    for row in top..top + thumb {
        let y = screen.list.y + u16::try_from(row).unwrap_or(u16::MAX);
        paint.put(x, y, 1, "┃", Role::Dim);
    }
}
