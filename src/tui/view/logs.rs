//! A log: the rows of its window, how it stands, and a text field while one is open.

use ratatui::layout::Position;

use super::paint::{Paint, cells};
use super::search::place_among;
use crate::tui::keymap::{Action, Mode};
use crate::tui::model::{Area, LogRow, LogState, Logs, Model, Role, age, many};

/// So many seconds without a line are the host's and the link's.
const PATIENT: u64 = 10;

/// Draws the overlay; answers where the text cursor is.
pub(super) fn draw(model: &Model, paint: &mut Paint<'_>, logs: &Logs) -> Option<Position> {
    let screen = model.screen();
    let (outer, area) = (screen.panes, screen.log_text());
    let key = |action| model.keymap.first(Mode::Logs, action).unwrap_or_default();
    let wrap = if logs.wrap { "cut lines" } else { "wrap lines" };
    let hints = [
        (key(Action::Close), "close"),
        (key(Action::Search), "search"),
        (key(Action::Follow), if logs.top.is_none() { "stop" } else { "follow" }),
        (key(Action::Save), "save"),
        (key(Action::Wrap), wrap),
        (key(Action::NextService), "service"),
        (key(Action::Retry), "read again"),
        (key(Action::Help), "help"),
        (key(Action::Options), "options"),
    ];
    let which = match &logs.service {
        Some(service) => service.clone(),
        None if logs.services.is_empty() => "all services".to_owned(),
        None => format!("all {} services", logs.services.len()),
    };
    paint.overlay(outer, &format!("Log of {}: {which}", logs.title), &hints);
    let size = (usize::from(area.width), usize::from(area.height));
    for (y, row) in (area.y..).zip(logs.window(size.0, size.1)) {
        line(paint, area, y, logs, &row);
    }
    if logs.tail.is_empty() {
        empty(model, paint, area, logs);
    }
    let below = Area { y: area.y + area.height, height: 1, ..area };
    if let Some(search) = &logs.search {
        let x = paint.spans(below.x + 1, below.y, below.width, &[(Role::Accent, "/")]);
        let place = Area { x, width: (below.x + below.width).saturating_sub(x), ..below };
        return Some(paint.field(place, &search.field, Role::Title));
    }
    standing(model, paint, below, logs);
    None
}

/// `web │ text`, with `!` in place of the bar for stderr.
fn line(paint: &mut Paint<'_>, area: Area, y: u16, logs: &Logs, row: &LogRow<'_>) {
    let prefix = u16::try_from(logs.prefix()).unwrap_or(u16::MAX).min(area.width);
    let end = area.x + area.width;
    let mut x = area.x + prefix;
    let Some(service) = &row.line.service else {
        paint.put(area.x, y, area.width, &row.line.text, Role::Warn);
        return;
    };
    let role = Role::Service(logs.place_of(service));
    if row.begins && logs.service.is_none() {
        paint.put(area.x, y, prefix.saturating_sub(3), service, role);
    }
    let (mark, role) = if row.line.stderr { ("!", Role::Warn) } else { ("│", role) };
    paint.put(x.saturating_sub(2), y, 1, mark, role);
    let (text, part) = (row.line.text.as_str(), row.part.clone());
    let found = if logs.found() == Some(row.number) { Role::Found } else { Role::Match };
    let mut at = part.start;
    // A match may have begun in the row above.
    let mut from = part.start.saturating_sub(logs.pattern().text().len());
    while !text.is_char_boundary(from) {
        from -= 1;
    }
    while let Some(place) =
        logs.pattern().next_in(text, from).filter(|place| place.start < part.end)
    {
        from = place.end;
        let (start, stop) = (place.start.max(part.start), place.end.min(part.end));
        if stop <= at {
            continue;
        }
        x += paint.put(x, y, end.saturating_sub(x), &text[at..start.max(at)], Role::Plain);
        x += paint.put(x, y, end.saturating_sub(x), &text[start.max(at)..stop], found);
        at = stop;
    }
    x += paint.put(x, y, end.saturating_sub(x), &text[at..part.end.max(at)], Role::Plain);
    if !logs.wrap && part.end < text.len() {
        paint.put(x.min(end - 1), y, 1, "›", Role::Dim);
    }
}

/// Why there are no lines.
fn empty(model: &Model, paint: &mut Paint<'_>, area: Area, logs: &Logs) {
    let (x, y, room) = (area.x + 2, area.y + area.height / 3, area.width.saturating_sub(4));
    let again = model.keymap.first(Mode::Logs, Action::Retry).unwrap_or_default();
    match &logs.state {
        LogState::Opening | LogState::Open => {
            // A host says that a line was written, never that none was.
            let words = match model.now.since(logs.asked).as_secs() {
                0..PATIENT => "asking the host…".to_owned(),
                seconds => {
                    format!("no line has come for {}: it may have written none", age(seconds))
                }
            };
            paint.put(x, y, room, &words, Role::Dim);
        }
        LogState::Ended => {
            let text = if logs.services.is_empty() {
                "it has no services: there is nothing that writes a log"
            } else {
                "the log ended, and nothing was written"
            };
            paint.put(x, y, room, text, Role::Plain);
            paint.key(x, y + 2, room, &again, "asks again");
        }
        LogState::Failed(problem) => {
            let place = Area { x, width: room, ..area };
            paint.error(place, problem, 4, Some((&again, "asks again")));
        }
    }
}

/// Whether it follows, why not, what came since; on the right what is kept and what is not.
fn standing(model: &Model, paint: &mut Paint<'_>, area: Area, logs: &Logs) {
    let key = |action| model.keymap.first(Mode::Logs, action).unwrap_or_default();
    let follow = key(Action::Bottom);
    let again = key(Action::Retry);
    let mut right = many(logs.tail.len(), "line", "lines");
    let left = logs.left(usize::from(area.width));
    if left > 0 {
        right = format!("from column {}, {right}", left + 1);
    }
    if logs.tail.dropped() > 0 {
        // Where there is little room, whether it follows matters more.
        let words = if area.width < 90 { "dropped" } else { "earlier lines dropped" };
        right = format!("{} {words}, {right}", logs.tail.dropped());
    }
    if !logs.pattern().is_empty() {
        let (at, of) = logs.count();
        let count = place_among(at, of);
        right = format!("/{}  {count}  {right}", logs.pattern().text());
    }
    let taken = cells(&right).min(area.width);
    let room = area.width.saturating_sub(taken + 2);
    let (since, reason);
    let spans: Vec<(Role, &str)> = match &logs.state {
        _ if logs.tail.is_empty() => Vec::new(),
        LogState::Failed(problem) => {
            reason = format!("✗ {}  ", problem.message);
            vec![(Role::Bad, &reason), (Role::Key, &again), (Role::Dim, " reads again")]
        }
        LogState::Ended => {
            vec![
                (Role::Warn, "○ the log ended  "),
                (Role::Key, &again),
                (Role::Dim, " reads again"),
            ]
        }
        _ if logs.top.is_some() => {
            since = match logs.unseen() {
                0 => "○ not following  ".to_owned(),
                count => format!("○ not following, {count} new  "),
            };
            vec![(Role::Warn, &since), (Role::Key, &follow), (Role::Dim, " follows")]
        }
        LogState::Opening | LogState::Open => vec![(Role::Good, "● following")],
    };
    paint.spans(area.x + 1, area.y, room, &spans);
    paint.put_right(area, area.y, &right, Role::Dim);
}
