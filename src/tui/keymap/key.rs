//! A key press, written as in the configuration and printed as in the help.

use std::fmt;

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

/// A key with its modifiers. Shift is part of a character (`G`), not a modifier of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Key {
    code: KeyCode,
    ctrl: bool,
    alt: bool,
}

/// Named keys: as written, what it is, as printed.
const NAMED: &[(&str, KeyCode, &str)] = &[
    ("enter", KeyCode::Enter, "enter"),
    ("esc", KeyCode::Esc, "esc"),
    ("tab", KeyCode::Tab, "tab"),
    ("backtab", KeyCode::BackTab, "shift-tab"),
    ("space", KeyCode::Char(' '), "space"),
    ("up", KeyCode::Up, "↑"),
    ("down", KeyCode::Down, "↓"),
    ("left", KeyCode::Left, "←"),
    ("right", KeyCode::Right, "→"),
    ("home", KeyCode::Home, "home"),
    ("end", KeyCode::End, "end"),
    ("pgup", KeyCode::PageUp, "PgUp"),
    ("pgdn", KeyCode::PageDown, "PgDn"),
    ("insert", KeyCode::Insert, "insert"),
    ("backspace", KeyCode::Backspace, "backspace"),
    ("delete", KeyCode::Delete, "delete"),
];

impl Key {
    /// Reads `j`, `G`, `ctrl-x`, `alt-enter`, `f5`, `space`.
    pub fn parse(word: &str) -> Option<Self> {
        if let Some(rest) = word.strip_prefix("ctrl-") {
            return Self::parse(rest).map(|key| Self { ctrl: true, ..key });
        }
        if let Some(rest) = word.strip_prefix("alt-") {
            return Self::parse(rest).map(|key| Self { alt: true, ..key });
        }
        let plain = |code| Some(Self { code, ctrl: false, alt: false });
        if let Some((_, code, _)) =
            NAMED.iter().find(|(name, _, shown)| *name == word || *shown == word)
        {
            return plain(*code);
        }
        if let Some(number) = word.strip_prefix('f').and_then(|digits| digits.parse::<u8>().ok()) {
            return (1..=24).contains(&number).then_some(KeyCode::F(number)).and_then(plain);
        }
        let mut chars = word.chars();
        match (chars.next(), chars.next()) {
            (Some(c), None) if !c.is_control() => plain(KeyCode::Char(c)),
            _ => None,
        }
    }

    /// From what the terminal sent. An Alt that is surely one comes as META.
    pub fn from_event(event: &KeyEvent) -> Self {
        Self {
            code: event.code,
            ctrl: event.modifiers.contains(KeyModifiers::CONTROL),
            alt: event.modifiers.intersects(KeyModifiers::ALT | KeyModifiers::META),
        }
    }

    /// Whether this key edits text in shells and text fields.
    pub fn edits_text(&self) -> bool {
        matches!(self.code, KeyCode::Backspace | KeyCode::Delete)
            || (self.ctrl && matches!(self.code, KeyCode::Char('d' | 'k' | 'u' | 'w')))
    }
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.ctrl {
            f.write_str("ctrl-")?;
        }
        if self.alt {
            f.write_str("alt-")?;
        }
        if let Some((_, _, shown)) = NAMED.iter().find(|(_, code, _)| *code == self.code) {
            return f.write_str(shown);
        }
        match self.code {
            KeyCode::Char(c) => write!(f, "{c}"),
            KeyCode::F(number) => write!(f, "f{number}"),
            _ => f.write_str("?"),
        }
    }
}
