//! Rows of a log at a width: wrapped, or cut on both sides.

use std::ops::Range;

use unicode_segmentation::UnicodeSegmentation;

use super::tail::{LogTail, LogText};
use crate::domain::text::columns;

/// A place in a log: a line, and a row of it where it is wrapped.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Place {
    /// The line's number.
    pub line: u64,
    /// The row within the line.
    pub row: usize,
}

/// A row on the screen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogRow<'a> {
    pub line: &'a LogText,
    /// Its line's number.
    pub number: u64,
    /// The part of the line's text that stands here.
    pub part: Range<usize>,
    /// Whether the line begins here.
    pub begins: bool,
}

/// Lines of a log as rows.
pub(super) struct Rows<'a> {
    pub tail: &'a LogTail,
    /// Whether long lines are wrapped.
    pub wrap: bool,
    /// Columns that are left out on the left where lines are cut.
    pub left: usize,
    /// Columns of a line's text.
    pub width: usize,
}

impl<'a> Rows<'a> {
    fn parts(&self, line: &LogText) -> Vec<Range<usize>> {
        if self.wrap {
            rows(&line.text, self.width)
        } else {
            vec![cut(&line.text, self.left, self.width)]
        }
    }

    fn count(&self, line: &LogText) -> usize {
        if self.wrap { rows(&line.text, self.width).len() } else { 1 }
    }

    /// So many rows from a place on.
    pub(super) fn from(&self, mut place: Place, count: usize) -> Vec<LogRow<'a>> {
        let mut found = Vec::with_capacity(count);
        while found.len() < count {
            let Some(line) = self.tail.line(place.line) else { break };
            for (row, part) in self.parts(line).into_iter().enumerate().skip(place.row) {
                if found.len() < count {
                    found.push(LogRow { line, number: place.line, part, begins: row == 0 });
                }
            }
            place = Place { line: place.line + 1, row: 0 };
        }
        found
    }

    /// The first of so many rows of which the last one is the log's.
    pub(super) fn bottom(&self, count: usize) -> Place {
        self.back(Place { line: self.tail.end(), row: 0 }, count)
    }

    /// The place some rows above.
    pub(super) fn back(&self, from: Place, by: usize) -> Place {
        let Place { mut line, mut row } = from;
        let mut left = by;
        while left > row {
            left -= row;
            let Some(above) = line.checked_sub(1).and_then(|above| self.tail.line(above)) else {
                return Place { line: self.tail.first(), row: 0 };
            };
            line -= 1;
            row = self.count(above);
        }
        Place { line, row: row - left }
    }

    /// The place some rows below.
    pub(super) fn forward(&self, from: Place, by: usize) -> Place {
        let Place { mut line, mut row } = from;
        let mut left = by;
        while left > 0 {
            let Some(here) = self.tail.line(line) else { break };
            let rest = self.count(here).saturating_sub(row);
            if left < rest {
                return Place { line, row: row + left };
            }
            left -= rest;
            (line, row) = (line + 1, 0);
        }
        Place { line, row }
    }
}

/// The rows of a text at a width: broken anywhere between two graphemes. At least one.
fn rows(text: &str, width: usize) -> Vec<Range<usize>> {
    let width = width.max(1);
    if text.is_ascii() {
        let count = text.len().div_ceil(width).max(1);
        return (0..count).map(|row| row * width..((row + 1) * width).min(text.len())).collect();
    }
    let (mut rows, mut start, mut used) = (Vec::new(), 0, 0);
    for (at, grapheme) in text.grapheme_indices(true) {
        let cells = columns(grapheme);
        if used + cells > width && at > start {
            rows.push(start..at);
            (start, used) = (at, 0);
        }
        used += cells;
    }
    rows.push(start..text.len());
    rows
}

/// The part of a text from a column on that fits a width.
fn cut(text: &str, left: usize, width: usize) -> Range<usize> {
    if text.is_ascii() {
        return left.min(text.len())..(left + width).min(text.len());
    }
    let (mut used, mut start, mut end) = (0, text.len(), text.len());
    for (at, grapheme) in text.grapheme_indices(true) {
        if used >= left {
            start = start.min(at);
        }
        used += columns(grapheme);
        if used > left + width {
            end = at;
            break;
        }
    }
    start.min(end)..end
}
