//! Text from hosts and users, made safe for a screen or a table (semantics 11). Never applied to `--json`.

use std::path::{Path, PathBuf};

use unicode_segmentation::UnicodeSegmentation;
use unicode_width::UnicodeWidthStr;

/// Whether a character can move the cursor, hide or reorder text.
pub(super) fn is_unsafe(c: char) -> bool {
    c.is_control()
        || matches!(c,
            '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{061c}' | '\u{fff9}'..='\u{fffb}')
}

/// Line for a screen: escape sequences are removed, other control and bidi characters replaced by `·`, line
/// breaks and tabs by a space, and what is beyond `limit` columns cut with `…`.
pub(crate) fn clean_line(text: &str, limit: usize) -> String {
    // Mostly nothing is to be cleaned, and of 10,000 rows each has five texts.
    if text.len() <= limit && text.bytes().all(|byte| matches!(byte, b' '..=b'~')) {
        return text.to_owned();
    }
    let mut out = String::new();
    let mut width = 0;
    // A line of 90,000 characters must not cost 90,000: stop as soon as the width is full.
    let stripped = strip_escapes(text);
    for grapheme in stripped.graphemes(true) {
        let shown = if grapheme.chars().any(is_unsafe) {
            if matches!(grapheme, "\n" | "\t" | "\r\n" | "\r") { " " } else { "·" }
        } else {
            grapheme
        };
        let cells = shown.width();
        if width + cells > limit {
            while width + 1 > limit {
                let Some(last) = out.graphemes(true).next_back().map(str::len) else { return out };
                width -= out[out.len() - last..].width();
                out.truncate(out.len() - last);
            }
            out.push('…');
            return out;
        }
        width += cells;
        out.push_str(shown);
    }
    out
}

/// Several lines, each cleaned as by [`clean_line`] without a limit on its width.
pub(crate) fn clean_block(text: &str) -> String {
    text.lines().map(|line| clean_line(line, usize::MAX - 1)).collect::<Vec<_>>().join("\n")
}

/// Columns that a text takes on a terminal.
pub fn columns(text: &str) -> usize {
    text.width()
}

/// Removes ANSI escape sequences (CSI, OSC, DCS and two-character ones); an unfinished one is removed to the end.
fn strip_escapes(text: &str) -> String {
    if !text.contains(['\u{1b}', '\u{9b}', '\u{9d}', '\u{90}']) {
        return text.to_owned();
    }
    let mut out = String::with_capacity(text.len());
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        let introducer = match c {
            '\u{1b}' => chars.next(),
            '\u{9b}' => Some('['),
            '\u{9d}' | '\u{90}' => Some(']'),
            other => {
                out.push(other);
                continue;
            }
        };
        match introducer {
            Some('[') => {
                for c in chars.by_ref() {
                    if ('\u{40}'..='\u{7e}').contains(&c) {
                        break;
                    }
                }
            }
            Some(']' | 'P' | 'X' | '^' | '_') => {
                while let Some(c) = chars.next() {
                    if c == '\u{7}' || c == '\u{9c}' {
                        break;
                    }
                    if c == '\u{1b}' {
                        chars.next_if_eq(&'\\');
                        break;
                    }
                }
            }
            Some('(' | ')' | '*' | '+' | '#' | '%' | ' ') => {
                chars.next();
            }
            _ => {}
        }
    }
    out
}

/// A path as typed, with `~` at its beginning as the home directory.
pub(crate) fn expand_home(path: &str, home: Option<&Path>) -> PathBuf {
    match (path.strip_prefix('~'), home) {
        (Some(""), Some(home)) => home.to_owned(),
        (Some(rest), Some(home)) if rest.starts_with('/') => {
            home.join(rest.trim_start_matches('/'))
        }
        _ => PathBuf::from(path),
    }
}

pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::with_capacity(bytes.len() * 2), |mut text, byte| {
        let digit = |nibble: u8| char::from_digit(u32::from(nibble), 16).unwrap_or('0');
        text.extend([digit(byte >> 4), digit(byte & 15)]);
        text
    })
}

/// A count with its noun: `1 file`, `3 files`.
pub(crate) fn plural(count: u64, one: &str, many: &str) -> String {
    format!("{count} {}", if count == 1 { one } else { many })
}

/// Whether a locale's name (the first of `LC_ALL`, `LC_CTYPE` and `LANG` that is set) says that text is UTF-8.
pub(crate) fn is_utf8_locale(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    name.contains("utf-8") || name.contains("utf8")
}

pub(crate) fn last_lines(text: &str, count: usize) -> String {
    let lines: Vec<&str> = text.lines().collect();
    lines[lines.len().saturating_sub(count)..].join("\n")
}

/// Nearest of the `known` words, if one is near enough to be meant. Capitals count as small letters, and `-` as `_`.
pub fn nearest<'a>(word: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    // The distance costs the product of both lengths; nothing that is known is this long.
    if word.chars().count() > 128 {
        return None;
    }
    let plain = |text: &str| text.to_lowercase().replace('-', "_");
    let word = plain(word);
    let known: Vec<(String, &str)> = known.into_iter().map(|one| (plain(one), one)).collect();
    // A beginning, or one with something behind it, is meant more surely than any distance tells.
    let mut begun = known.iter().filter(|(candidate, _)| {
        word.len().min(candidate.len()) >= 3
            && (candidate.starts_with(&word) || word.starts_with(candidate))
    });
    if let (Some((_, only)), None) = (begun.next(), begun.next()) {
        return Some(only);
    }
    let length = word.chars().count();
    let distances = known.into_iter().filter_map(|(candidate, one)| {
        let longer = candidate.chars().count().max(length);
        let allowed = if length <= 2 { 1 } else { (longer / 3).max(2) };
        let distance = strsim::damerau_levenshtein(&word, &candidate);
        // A distance of the whole length would call any short word near.
        (distance <= allowed && distance < longer).then_some((distance, one))
    });
    distances.min_by_key(|(distance, _)| *distance).map(|(_, one)| one)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_that_moves_the_cursor_survives() {
        for (raw, clean) in [
            ("plain", "plain"),
            ("\u{1b}[31mred\u{1b}[0m", "red"),
            ("\u{1b}]0;title\u{7}x", "x"),
            ("\u{1b}]8;;http://a\u{1b}\\link", "link"),
            ("a\u{202e}b", "a·b"),
            ("a\nb\tc", "a b c"),
            ("\u{9b}2Jx", "x"),
            ("unfinished\u{1b}[31", "unfinished"),
            ("\u{7}\u{0}", "··"),
        ] {
            assert_eq!(clean_line(raw, 80), clean, "{raw:?}");
        }
    }

    #[test]
    fn cut_by_columns_not_by_characters() {
        assert_eq!(clean_line("日本語テキスト", 7), "日本語…");
        assert_eq!(clean_line("日本語テキスト", 6), "日本…");
        assert_eq!(clean_line("abc", 3), "abc");
        assert_eq!(clean_line("abcd", 3), "ab…");
        assert_eq!(clean_line("abcd", 0), "");
        assert!(columns(&clean_line(&"x".repeat(90_000), 20)) <= 20);
    }

    #[test]
    fn the_nearest_word_is_near() {
        let words = ["ports", "allow", "max_ttl", "ttl", "published"];
        for (word, near) in [
            ("prots", Some("ports")),
            ("max-ttl", Some("max_ttl")),
            ("TTL", Some("ttl")),
            ("pub", Some("published")),
            ("allow_all", Some("allow")),
            ("alow", Some("allow")),
            ("x", None),
            ("lt", None),
            ("something", None),
            (&"p".repeat(1_000_000), None),
        ] {
            assert_eq!(nearest(word, words), near);
        }
    }
}
