//! Text to be read: lines of spans that say how they are meant, not which colour they have.

use std::ops::Range;

use unicode_segmentation::UnicodeSegmentation;

use super::search_pattern::SearchPattern;
use crate::domain::text::{clean_line, columns};
use crate::present::{Document, Piece, Role, Spans};

/// A line of another program's text is cut at this many columns.
const LINE: usize = 4000;
/// A value is cut at this many: one endless message must not push everything else away.
const PAIR: usize = 1000;

/// Lines that fit a width.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TextBlock {
    /// The lines, cleaned.
    pub lines: Vec<Spans>,
    width: usize,
    /// Rows that go on with the text of the row above.
    joints: Vec<Joint>,
}

/// Break of a text that takes several rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Joint {
    /// The row that goes on.
    row: usize,
    /// Where the text begins in it, in bytes.
    indent: usize,
    /// Whether a space was left out at the break.
    space: bool,
}

/// Match of a search: a part of one row, or of several where a text was broken within it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Match {
    /// Rows, and the bytes of each.
    pub parts: Vec<(usize, Range<usize>)>,
}

/// A line's text, without roles.
pub fn line_text(line: &[(Role, String)]) -> String {
    line.iter().map(|(_, text)| text.as_str()).collect()
}

impl TextBlock {
    /// An empty text block of this width.
    pub fn new(width: usize) -> Self {
        Self { lines: Vec::new(), width: width.max(8), joints: Vec::new() }
    }

    /// A document's text, at this width.
    pub fn of(document: &Document, width: usize) -> Self {
        let mut block = Self::new(width);
        for piece in document.pieces() {
            match piece {
                Piece::Gap => block.gap(),
                Piece::Heading(text) => block.heading(text),
                Piece::Pair { key, sign, role, value } => match sign {
                    Some(sign) => block.pair(key, *role, &format!("{sign} {value}")),
                    None => block.pair(key, *role, value),
                },
                Piece::Text { role, indent, text } => block.text(*role, *indent, text),
                Piece::Line { branch, sign: (role, sign), spans } => {
                    let before =
                        [(Role::Border, format!("  {branch}")), (*role, format!("{sign} "))];
                    block.spans(before.into_iter().chain(spans.iter().cloned()));
                }
            }
        }
        block
    }

    /// Adds an empty line.
    pub fn gap(&mut self) {
        if !self.lines.is_empty() {
            self.lines.push(Spans::new());
        }
    }

    /// Adds a heading with a gap above it.
    pub fn heading(&mut self, text: &str) {
        self.gap();
        self.lines.push(vec![(Role::Title, text.to_owned())]);
    }

    /// Adds text from anywhere, cleaned, wrapped at the width under an indent.
    pub fn text(&mut self, role: Role, indent: usize, text: &str) {
        for raw in text.lines() {
            let raw = clean_line(raw, LINE);
            let parts = wrap(&raw, self.width.saturating_sub(indent));
            self.join(&raw, &parts, indent);
            for part in parts {
                self.lines.push(vec![(Role::Plain, " ".repeat(indent)), (role, part)]);
            }
        }
    }

    /// Adds `key   value`, the value wrapped beside the key.
    pub fn pair(&mut self, key: &str, role: Role, value: &str) {
        const KEY: usize = 14;
        let mut first = true;
        let value = clean_line(value, PAIR);
        let parts = wrap(&value, self.width.saturating_sub(KEY + 2));
        self.join(&value, &parts, KEY + 2);
        for part in parts {
            let key = if first { clean_line(key, KEY - 1) } else { String::new() };
            let pad = " ".repeat(KEY - columns(&key).min(KEY));
            self.lines.push(vec![(Role::Dim, format!("  {key}{pad}")), (role, part)]);
            first = false;
        }
    }

    /// Notes that rows which come next belong together.
    fn join(&mut self, text: &str, parts: &[String], indent: usize) {
        let (row, mut rest) = (self.lines.len(), text);
        for (at, part) in parts.iter().enumerate() {
            let skipped = rest.find(part.as_str()).unwrap_or_default();
            rest = rest.get(skipped + part.len()..).unwrap_or_default();
            if at > 0 {
                self.joints.push(Joint { row: row + at, indent, space: skipped > 0 });
            }
        }
    }

    /// Places that a pattern matches, from above; one within a broken text too.
    pub fn matches(&self, pattern: &SearchPattern) -> Vec<Match> {
        let mut found = Vec::new();
        let mut joints = self.joints.iter().peekable();
        let mut row = 0;
        while row < self.lines.len() {
            // A text, and where its rows are in it.
            let mut text = line_text(&self.lines[row]);
            let mut rows = vec![RowPart { begin: 0, end: text.len(), row, indent: 0 }];
            row += 1;
            while let Some(joint) = joints.next_if(|joint| joint.row == row) {
                text.push_str(if joint.space { " " } else { "" });
                let begin = text.len();
                let line = line_text(&self.lines[row]);
                text.push_str(line.get(joint.indent..).unwrap_or_default());
                rows.push(RowPart { begin, end: text.len(), row, indent: joint.indent });
                row += 1;
            }
            let mut from = 0;
            while let Some(place) = pattern.next_in(&text, from) {
                from = place.end;
                found.push(Match { parts: parts(&place, &rows) });
            }
        }
        found
    }

    /// Adds a line of spans, cut at the width.
    pub fn spans<T: Into<String>>(&mut self, spans: impl IntoIterator<Item = (Role, T)>) {
        let mut room = self.width;
        let mut line = Spans::new();
        for (role, text) in spans {
            let text = clean_line(&text.into(), room);
            room -= columns(&text);
            line.push((role, text));
        }
        self.lines.push(line);
    }

    /// How far one can scroll so that the last line stays at the bottom of `height` rows.
    pub fn last_offset(&self, height: usize) -> usize {
        self.lines.len().saturating_sub(height)
    }
}

/// Part of a text in a row: where it begins and ends in the text, and where it begins in the row.
struct RowPart {
    begin: usize,
    end: usize,
    row: usize,
    indent: usize,
}

/// A place in a text as parts of its rows.
fn parts(place: &Range<usize>, rows: &[RowPart]) -> Vec<(usize, Range<usize>)> {
    rows.iter()
        .filter_map(|piece| {
            let (from, to) = (place.start.max(piece.begin), place.end.min(piece.end));
            let within = |at: usize| at - piece.begin + piece.indent;
            (from < to).then(|| (piece.row, within(from)..within(to)))
        })
        .collect()
}

/// Breaks a clean text at spaces where it can, else anywhere; never empty. A path or a command stays in one piece as long
/// as it fits a line.
pub(crate) fn wrap(text: &str, width: usize) -> Vec<String> {
    let width = width.max(1);
    if columns(text) <= width {
        return vec![text.to_owned()];
    }
    let mut lines = Vec::new();
    let mut line = String::new();
    let mut used = 0;
    for word in text.split_inclusive(' ') {
        let cells = columns(word);
        if used > 0 && used + columns(word.trim_end()) > width {
            lines.push(std::mem::take(&mut line).trim_end().to_owned());
            used = 0;
        }
        if cells <= width {
            line.push_str(word);
            used += cells;
            continue;
        }
        for grapheme in word.graphemes(true) {
            let cells = columns(grapheme);
            if used + cells > width && used > 0 {
                lines.push(std::mem::take(&mut line).trim_end().to_owned());
                used = 0;
            }
            line.push_str(grapheme);
            used += cells;
        }
    }
    if !line.trim_end().is_empty() {
        lines.push(line.trim_end().to_owned());
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wrapped_at_spaces_and_never_wider_than_asked() {
        assert_eq!(wrap("one two three", 8), ["one two", "three"]);
        assert_eq!(wrap("it is gone (asks).", 11), ["it is gone", "(asks)."]);
        assert_eq!(wrap("one abcdefghij two", 4), ["one", "abcd", "efgh", "ij", "two"]);
        assert_eq!(wrap("", 8), [""]);
        assert_eq!(wrap("abcdefghij", 4), ["abcd", "efgh", "ij"]);
        assert!(wrap("日本語日本語", 5).iter().all(|line| columns(line) <= 5));
    }

    #[test]
    fn a_match_is_found_across_the_rows_of_a_text_and_not_across_texts() {
        let mut block = TextBlock::new(24);
        block.text(Role::Plain, 2, "dial tcp: connection refused by peer");
        block.pair("url", Role::Code, "http://example.org/refused");
        let shown: Vec<String> = block.lines.iter().map(|line| line_text(line)).collect();
        assert_eq!(
            shown,
            [
                "  dial tcp: connection",
                "  refused by peer",
                "  url           http://e",
                "                xample.o",
                "                rg/refus",
                "                ed"
            ]
        );
        let found = |pattern: &str| -> Vec<Vec<String>> {
            let piece = |(row, part): &(usize, Range<usize>)| shown[*row][part.clone()].to_owned();
            let matches = block.matches(&SearchPattern::new(pattern));
            matches.iter().map(|found| found.parts.iter().map(piece).collect()).collect()
        };
        assert_eq!(found("tion refused"), [["tion", "refused"]]);
        assert_eq!(found("refused"), [vec!["refused"], vec!["refus", "ed"]]);
        assert_eq!(found("example.org"), [["e", "xample.o", "rg"]]);
        assert!(found("Refused").is_empty() && found("peer url").is_empty());
    }
}
