//! A log as it is followed: what is kept of it, which part is on the screen, what is searched for.

mod matches;
mod rows;
mod tail;

use std::collections::BTreeMap;
use std::sync::Arc;

use tui_input::Input;

use super::search_pattern::SearchPattern;
use crate::domain::Time;
use crate::domain::error::Error;
use crate::domain::name::SandboxId;
use crate::domain::text::columns;

use matches::Matches;
use rows::Rows;

pub(crate) use rows::{LogRow, Place};
pub(crate) use tail::LogTail;
pub use tail::{KEPT_BYTES, KEPT_LINES, LogText};

/// A service's name takes this many columns at most.
const NAME: usize = 14;

/// How the stream stands.
#[derive(Debug, Clone, PartialEq)]
pub enum LogState {
    /// Asked for.
    Opening,
    /// Lines come.
    Open,
    /// Ended by itself.
    Ended,
    /// Not to be opened, or broken.
    Failed(Error),
}

/// Search that is being typed.
#[derive(Debug, Clone)]
pub struct LogSearch {
    /// Its text field.
    pub field: Input,
    /// Where the search began.
    pub before: Option<Place>,
}

/// How many lines of each service are asked for at first.
const LINES: u64 = 500;

/// The overlay.
#[derive(Debug, Clone)]
pub struct Logs {
    /// Which sandbox.
    pub id: SandboxId,
    /// Name of its sandbox.
    pub title: String,
    pub services: Vec<String>,
    /// The service whose log is shown; none: all.
    pub service: Option<String>,
    /// How many lines of each service are asked for.
    pub lines: u64,
    /// Recognises late answers of an earlier stream.
    pub generation: u64,
    /// How the stream stands.
    pub state: LogState,
    /// The lines.
    pub tail: LogTail,
    /// Whether long lines are wrapped.
    pub wrap: bool,
    /// Columns that are left out on the left where lines are cut, of each service's log: as far as one went there.
    left: BTreeMap<Option<String>, usize>,
    /// When the stream was asked for.
    pub asked: Time,
    /// The first row on the screen; none: it follows the end.
    pub top: Option<Place>,
    /// The end when it stopped following, to count what came since.
    pub seen: u64,
    matches: Matches,
    /// The search, while one types.
    pub search: Option<LogSearch>,
    names: usize,
}

impl Logs {
    /// Opens the log of all services.
    pub fn new(
        id: SandboxId,
        title: String,
        services: Vec<String>,
        generation: u64,
        now: Time,
    ) -> Self {
        let names = services.iter().map(|name| columns(name)).max().unwrap_or_default().min(NAME);
        Self {
            id,
            title,
            services,
            service: None,
            lines: LINES,
            generation,
            state: LogState::Opening,
            tail: LogTail::default(),
            wrap: true,
            left: BTreeMap::new(),
            asked: now,
            top: None,
            seen: 0,
            matches: Matches::default(),
            search: None,
            names,
        }
    }

    /// Begins anew, with another stream.
    pub fn restart(&mut self, generation: u64, now: Time) {
        (self.generation, self.asked) = (generation, now);
        self.state = LogState::Opening;
        self.tail = LogTail::default();
        self.matches = Matches::new(self.matches.pattern.clone(), &self.tail);
        self.top = None;
    }

    /// Goes to the next service, or back: all of them, then each.
    pub fn turn(&mut self, by: isize) {
        let count = self.services.len() + 1;
        let is_shown = |name: &String| self.service.as_ref() == Some(name);
        let at = self.services.iter().position(is_shown).map_or(0, |at| at + 1);
        let next = (at + count).saturating_add_signed(by) % count;
        self.service = next.checked_sub(1).and_then(|at| self.services.get(at).cloned());
    }

    /// Takes lines.
    pub fn extend(&mut self, missed: u64, lines: Vec<Arc<LogText>>) {
        let widest = lines
            .iter()
            .filter_map(|line| line.service.as_deref())
            .map(columns)
            .max()
            .unwrap_or_default();
        self.names = self.names.max(widest.min(NAME));
        let before = self.tail.end();
        self.tail.extend(missed, lines);
        self.matches.take(&self.tail, before);
        // What is looked at may have been dropped.
        let first = self.tail.first();
        if self.top.is_some_and(|top| top.line < first) {
            self.top = Some(Place { line: first, row: 0 });
        }
    }

    /// Searches for something else.
    pub fn search_for(&mut self, pattern: SearchPattern) {
        self.matches = Matches::new(pattern, &self.tail);
    }

    /// Pattern that is searched for: set by [`Self::search_for`].
    pub fn pattern(&self) -> &SearchPattern {
        &self.matches.pattern
    }

    /// The line that was found last.
    pub fn found(&self) -> Option<u64> {
        self.matches.found
    }

    /// The place of the line that was found last among those that match, and how many these are.
    pub fn count(&self) -> (Option<usize>, usize) {
        self.matches.count()
    }

    /// Finds the next line that matches and shows it: from a line on, that one included, or above it; round the end once.
    /// Whether it went round, or none when nothing matches.
    pub fn find(&mut self, from: u64, down: bool, size: (usize, usize)) -> Option<bool> {
        let (line, went_round) = self.matches.next(from, down)?;
        self.show(line, size);
        Some(went_round)
    }

    /// Columns for the service's name and the mark behind it.
    pub fn prefix(&self) -> usize {
        if self.service.is_some() { 2 } else { self.names + 3 }
    }

    /// The place of a service among those that are known, for its colour.
    pub fn place_of(&self, service: &str) -> usize {
        let known = self.services.iter().position(|name| name == service);
        known.unwrap_or_else(|| {
            service.bytes().fold(0, |sum, byte| sum * 31 % 9973 + usize::from(byte))
        })
    }

    /// Columns that are left out on the left, at this width of the whole: never so many that every line would be.
    pub fn left(&self, width: usize) -> usize {
        let wanted = self.left.get(&self.service).copied().unwrap_or_default();
        if self.wrap || wanted == 0 {
            return 0;
        }
        let widest = self.tail.lines().map(|line| line.columns).max().unwrap_or_default();
        wanted.min(widest.saturating_sub(self.text_width(width)))
    }

    /// Goes to the side by so many columns.
    pub fn shift(&mut self, by: isize, width: usize) {
        let from = self.left(width);
        self.left.insert(self.service.clone(), from.saturating_add_signed(by));
        let to = self.left(width);
        self.left.insert(self.service.clone(), to);
    }

    /// The columns of a line's text, of so many in all.
    fn text_width(&self, width: usize) -> usize {
        width.saturating_sub(self.prefix()).max(1)
    }

    /// Lines as rows, at this width of the whole.
    fn rows(&self, width: usize) -> Rows<'_> {
        let (left, inner) = (self.left(width), self.text_width(width));
        Rows { tail: &self.tail, wrap: self.wrap, left, width: inner }
    }

    /// The rows on a screen of this size.
    pub fn window(&self, width: usize, height: usize) -> Vec<LogRow<'_>> {
        let rows = self.rows(width);
        rows.from(self.top.unwrap_or_else(|| rows.bottom(height)), height)
    }

    /// Scrolls by rows. Above the end it stops following; back at the end it follows again.
    pub fn scroll(&mut self, by: isize, (width, height): (usize, usize)) {
        let rows = self.rows(width);
        let bottom = rows.bottom(height);
        let (top, by_rows) = (self.top.unwrap_or(bottom), by.unsigned_abs());
        let to = if by < 0 { rows.back(top, by_rows) } else { rows.forward(top, by_rows) };
        self.go(Some(to).filter(|to| *to < bottom));
    }

    /// Goes to a place; none follows the end.
    pub fn go(&mut self, top: Option<Place>) {
        if self.top.is_none() {
            self.seen = self.tail.end();
        }
        self.top = top;
    }

    /// Stops at what is on the screen now.
    pub fn hold(&mut self, (width, height): (usize, usize)) {
        let bottom = self.rows(width).bottom(height);
        self.go(Some(bottom));
    }

    /// Lines that came since it stopped following.
    pub fn unseen(&self) -> u64 {
        if self.top.is_some() { self.tail.end().saturating_sub(self.seen) } else { 0 }
    }

    /// Brings a line on the screen, with something above it.
    fn show(&mut self, line: u64, (width, height): (usize, usize)) {
        let shown: Vec<u64> = self.window(width, height).iter().map(|row| row.number).collect();
        let inner = self.text_width(width);
        if shown.contains(&line) {
            if self.top.is_none() {
                self.hold((width, height));
            }
        } else {
            let rows = self.rows(width);
            let to = rows.back(Place { line, row: 0 }, height / 3).min(rows.bottom(height));
            self.go(Some(to));
        }
        if !self.wrap
            && let Some(found) = self.tail.line(line).and_then(|line| {
                self.matches
                    .pattern
                    .next_in(&line.text, 0)
                    .map(|part| columns(&line.text[..part.start])..columns(&line.text[..part.end]))
            })
            && (found.start < self.left(width) || found.end > self.left(width) + inner)
        {
            self.left.insert(self.service.clone(), found.start.saturating_sub(inner / 3));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::tail::line;
    use super::*;

    fn logs(texts: &[&str]) -> Logs {
        let mut logs = Logs::new(
            "a1b2c3d4".into(),
            "a1b2c3d4".to_owned(),
            vec!["web".to_owned()],
            1,
            Time::from_unix(0),
        );
        logs.extend(0, texts.iter().map(|text| line(text)).collect());
        logs
    }

    fn shown(logs: &Logs, size: (usize, usize)) -> Vec<String> {
        logs.window(size.0 + logs.prefix(), size.1)
            .iter()
            .map(|row| row.line.text[row.part.clone()].to_owned())
            .collect()
    }

    #[test]
    fn follows_scrolls_and_follows_again() {
        let mut logs = logs(&["one", "two", "three", "four", "five"]);
        let size = (20 + logs.prefix(), 2);
        assert_eq!(shown(&logs, (20, 2)), ["four", "five"]);
        logs.scroll(-1, size);
        assert_eq!(shown(&logs, (20, 2)), ["three", "four"]);
        logs.extend(0, vec![line("six")]);
        assert_eq!(shown(&logs, (20, 2)), ["three", "four"]);
        assert_eq!(logs.unseen(), 1);
        logs.scroll(-100, size);
        assert_eq!(shown(&logs, (20, 2)), ["one", "two"]);
        logs.scroll(100, size);
        assert_eq!(logs.top, None);
        assert_eq!(shown(&logs, (20, 2)), ["five", "six"]);
    }

    #[test]
    fn wrapped_by_columns_and_scrolled_by_rows() {
        let mut logs = logs(&["abcdefghij", "日本語日本語", ""]);
        let size = (5 + logs.prefix(), 10);
        assert_eq!(shown(&logs, (5, 10)), ["abcde", "fghij", "日本", "語日", "本語", ""]);
        assert_eq!(shown(&logs, (5, 3)), ["語日", "本語", ""]);
        logs.scroll(-2, (size.0, 3));
        assert_eq!(shown(&logs, (5, 3)), ["fghij", "日本", "語日"]);
        logs.wrap = false;
        logs.top = None;
        assert_eq!(shown(&logs, (5, 10)), ["abcde", "日本", ""]);
        logs.shift(3, size.0);
        assert_eq!(shown(&logs, (5, 10)), ["defgh", "語日", ""]);
        // Not beyond the end of the longest line.
        logs.shift(80, size.0);
        assert_eq!(logs.left(size.0), 7);
        assert_eq!(shown(&logs, (5, 10)), ["hij", "本語", ""]);
        logs.shift(-80, size.0);
        assert_eq!(shown(&logs, (5, 10)), ["abcde", "日本", ""]);
    }

    #[test]
    fn how_far_one_went_to_the_side_is_each_services_own() {
        let mut logs = logs(&["a line that is far longer than the screen"]);
        (logs.wrap, logs.service) = (false, Some("web".to_owned()));
        let width = 10 + logs.prefix();
        logs.shift(16, width);
        assert_eq!(shown(&logs, (10, 5)), ["ar longer "]);
        logs.turn(1);
        logs.restart(2, Time::from_unix(1));
        logs.extend(0, vec![line("short")]);
        assert_eq!(shown(&logs, (10, 5)), ["short"]);
        logs.turn(1);
        logs.restart(3, Time::from_unix(2));
        logs.extend(0, vec![line("short")]);
        let why = "clamped while what was long is not there yet";
        assert_eq!(shown(&logs, (10, 5)), ["short"], "{why}");
        logs.extend(0, vec![line("a line that is far longer than the screen")]);
        assert_eq!(shown(&logs, (10, 5)), ["", "ar longer "]);
    }
    #[test]
    fn what_is_looked_at_stays_until_it_is_dropped() {
        let mut logs = logs(&["first"]);
        logs.top = Some(Place { line: 0, row: 0 });
        logs.extend(0, (0..KEPT_LINES).map(|_| line("x")).collect());
        assert_eq!(logs.top, Some(Place { line: 1, row: 0 }));
    }

    #[test]
    fn found_downwards_upwards_and_round_the_end() {
        let mut logs = logs(&["GET /a", "error: x", "GET /b", "Error: y", "GET /c"]);
        let size = (40, 2);
        logs.search_for(SearchPattern::new("error"));
        assert_eq!(logs.count(), (None, 2));
        assert_eq!(logs.find(logs.tail.end(), false, size), Some(false));
        assert_eq!((logs.found(), logs.count()), (Some(3), (Some(1), 2)));
        assert_eq!(logs.find(2, false, size), Some(false));
        assert_eq!(logs.found(), Some(1));
        assert_eq!(logs.find(0, false, size), Some(true));
        assert_eq!(logs.found(), Some(3));
        logs.extend(0, (0..KEPT_LINES - 3).map(|_| line("x")).chain([line("an error")]).collect());
        assert_eq!(logs.count(), (Some(0), 2), "what is dropped counts no more");
        assert_eq!(logs.found(), Some(3));
        logs.search_for(SearchPattern::new("Error"));
        assert_eq!(logs.find(0, true, size), Some(false));
        assert_eq!(logs.found(), Some(3));
        logs.search_for(SearchPattern::new("nowhere"));
        assert_eq!(logs.find(0, true, size), None);
    }
}
