//! Search pattern: what is searched for in a log or in an overlay.

use std::ops::Range;

/// Text that is searched for: without a capital letter, capitals do not count.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SearchPattern {
    text: String,
    folded: bool,
}

impl SearchPattern {
    pub fn new(text: &str) -> Self {
        // Beyond ASCII only exact matches are found: a fold may change a text's length.
        let folded = text.is_ascii() && !text.bytes().any(|byte| byte.is_ascii_uppercase());
        Self { text: text.to_owned(), folded }
    }

    /// Text as it was typed.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Whether nothing is searched for.
    pub fn is_empty(&self) -> bool {
        self.text.is_empty()
    }

    /// Whether a text holds it.
    pub fn is_in(&self, text: &str) -> bool {
        self.next_in(text, 0).is_some()
    }

    /// Its next place in a text, in bytes.
    pub fn next_in(&self, text: &str, from: usize) -> Option<Range<usize>> {
        if self.is_empty() {
            return None;
        }
        let at = if self.folded {
            let (hay, pattern) = (text.as_bytes().get(from..)?, self.text.as_bytes());
            let first = pattern[0];
            let last = hay.len().checked_sub(pattern.len())?;
            (0..=last).find(|at| {
                hay[*at].eq_ignore_ascii_case(&first)
                    && hay[*at..*at + pattern.len()].eq_ignore_ascii_case(pattern)
            })?
        } else {
            text.get(from..)?.find(&self.text)?
        };
        Some(from + at..from + at + self.text.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn capitals_count_once_one_is_typed() {
        for (pattern, text, found) in [
            ("é", "caé", Some(2..4)),
            ("b", "aB", Some(1..2)),
            ("B", "ab", None),
            ("abc", "ab", None),
            ("", "a", None),
        ] {
            assert_eq!(SearchPattern::new(pattern).next_in(text, 0), found, "{pattern} in {text}");
        }
    }
}
