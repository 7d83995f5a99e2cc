//! Lines of a log that match what is searched for.

use std::collections::VecDeque;

use super::super::search_pattern::SearchPattern;
use super::tail::LogTail;

/// Matching lines, by their numbers.
#[derive(Debug, Clone, Default)]
pub(super) struct Matches {
    pub(super) pattern: SearchPattern,
    lines: VecDeque<u64>,
    /// The line that was found last.
    pub(super) found: Option<u64>,
}

impl Matches {
    /// Lines of a log that match a pattern.
    pub(super) fn new(pattern: SearchPattern, tail: &LogTail) -> Self {
        let mut matches = Self { pattern, ..Self::default() };
        matches.take(tail, tail.first());
        matches
    }

    /// Takes the lines from this number on that match in, and those out that were dropped.
    pub(super) fn take(&mut self, tail: &LogTail, from: u64) {
        let first = tail.first();
        self.found = self.found.filter(|line| *line >= first);
        while self.lines.front().is_some_and(|line| *line < first) {
            self.lines.pop_front();
        }
        if self.pattern.is_empty() {
            return;
        }
        let is_match =
            |number: &u64| tail.line(*number).is_some_and(|line| self.pattern.is_in(&line.text));
        self.lines.extend((from.max(first)..tail.end()).filter(is_match));
    }

    /// Finds the next line: downwards from one on, that one included, or above one; round the end once. Whether it went
    /// round.
    pub(super) fn next(&mut self, from: u64, down: bool) -> Option<(u64, bool)> {
        let below = self.lines.partition_point(|line| *line < from);
        let at = if down { Some(below) } else { below.checked_sub(1) };
        let here = at.and_then(|at| self.lines.get(at));
        let round = if down { self.lines.front() } else { self.lines.back() };
        let line = here.or(round).copied()?;
        let went_round = here.is_none();
        self.found = Some(line);
        Some((line, went_round))
    }

    /// The place of the line that was found last among those that match, and how many these are.
    pub(super) fn count(&self) -> (Option<usize>, usize) {
        let at = self.found.and_then(|found| self.lines.binary_search(&found).ok());
        (at, self.lines.len())
    }
}
