//! Text to be read: lines of spans that say how they are meant, not which colour they have.

use unicode_segmentation::UnicodeSegmentation;

use crate::domain::text::{clean_line, columns};

/// A line of another program's text is cut at this many columns.
const LINE: usize = 4000;
/// A value is cut at this many: one endless message must not push everything else away.
const PAIR: usize = 1000;

/// How a piece of the screen is meant.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Role {
    /// Nothing special.
    Plain,
    /// Of less weight.
    Dim,
    /// A heading.
    Title,
    /// What the eye should find first.
    Accent,
    /// All is well.
    Good,
    /// Look at this.
    Warn,
    /// Something failed.
    Bad,
    /// Something is being done.
    Busy,
    /// A key to press.
    Key,
    /// Something to paste.
    Code,
    /// A frame.
    Border,
    /// The frame of what has the focus.
    Focus,
    /// The row under the cursor.
    Selected,
    /// A button that is not focused.
    Button,
    /// The focused button.
    Pressed,
    /// A text field.
    Field,
    /// A service's name: the same number is always the same colour.
    Service(usize),
    /// What a search matches.
    Match,
    /// What it matches in the line that was found last.
    Found,
}

/// A piece of a line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Span {
    /// How it is meant.
    pub role: Role,
    /// What it says, cleaned.
    pub text: String,
}

/// A line.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct TextLine(pub Vec<Span>);

/// Lines that fit a width.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TextBlock {
    /// The lines.
    pub lines: Vec<TextLine>,
    width: usize,
}

impl TextLine {
    /// A line of spans.
    pub fn of<T: Into<String>>(spans: impl IntoIterator<Item = (Role, T)>) -> Self {
        Self(spans.into_iter().map(|(role, text)| Span { role, text: text.into() }).collect())
    }

    /// The text without roles.
    pub fn text(&self) -> String {
        self.0.iter().map(|span| span.text.as_str()).collect()
    }
}

impl TextBlock {
    /// An empty text block of this width.
    pub fn new(width: usize) -> Self {
        Self { lines: Vec::new(), width: width.max(8) }
    }

    /// Adds an empty line.
    pub fn gap(&mut self) {
        if !self.lines.is_empty() {
            self.lines.push(TextLine::default());
        }
    }

    /// Adds a heading with a gap above it.
    pub fn heading(&mut self, text: &str) {
        self.gap();
        self.lines.push(TextLine::of([(Role::Title, text)]));
    }

    /// Adds text from anywhere, cleaned, wrapped at the width under an indent.
    pub fn text(&mut self, role: Role, indent: usize, text: &str) {
        for raw in text.lines() {
            for part in wrap(&clean_line(raw, LINE), self.width.saturating_sub(indent)) {
                self.lines.push(TextLine::of([(Role::Plain, " ".repeat(indent)), (role, part)]));
            }
        }
    }

    /// Adds `key   value`, the value wrapped beside the key.
    pub fn pair(&mut self, key: &str, role: Role, value: &str) {
        const KEY: usize = 14;
        let mut first = true;
        for part in wrap(&clean_line(value, PAIR), self.width.saturating_sub(KEY + 2)) {
            let key = if first { clean_line(key, KEY - 1) } else { String::new() };
            let pad = " ".repeat(KEY - columns(&key).min(KEY));
            self.lines.push(TextLine::of([(Role::Dim, format!("  {key}{pad}")), (role, part)]));
            first = false;
        }
    }

    /// Adds a pair if there is a value.
    pub fn maybe(&mut self, key: &str, role: Role, value: Option<impl AsRef<str>>) {
        if let Some(value) = value {
            self.pair(key, role, value.as_ref());
        }
    }

    /// Adds a line of spans, cut at the width.
    pub fn spans<T: Into<String>>(&mut self, spans: impl IntoIterator<Item = (Role, T)>) {
        let mut room = self.width;
        let mut line = TextLine::default();
        for (role, text) in spans {
            let text = clean_line(&text.into(), room);
            room -= columns(&text);
            line.0.push(Span { role, text });
        }
        self.lines.push(line);
    }

    /// How far one can scroll so that the last line stays at the bottom of `height` rows.
    pub fn last_offset(&self, height: usize) -> usize {
        self.lines.len().saturating_sub(height)
    }
}

/// Breaks a clean text at spaces where it can, else anywhere; never empty. A path or a command stays in one piece as long
/// as it fits a line.
pub fn wrap(text: &str, width: usize) -> Vec<String> {
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
}
