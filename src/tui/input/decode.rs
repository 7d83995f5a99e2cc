//! Bytes of a terminal as keys, mouse and pasted text: what xterm and its kin send in the modes that we put on.
//!
//! An Esc before a key is Alt, or it is the Esc key that a slow link joined with what was typed next: such a key has the
//! modifier ALT, and who knows the bound keys decides. Where a sequence names its modifiers, Alt is META.

use crossterm::event::{
    Event, KeyCode, KeyEvent, KeyModifiers, MouseButton, MouseEvent, MouseEventKind,
};

/// The longest sequence that is looked at; a longer one is no key.
const LONGEST: usize = 64;
/// How much of a paste is kept.
const PASTE: usize = 1024 * 1024;
const PASTE_BEGINS: &[u8] = b"\x1b[200~";
const PASTE_ENDS: &[u8] = b"\x1b[201~";

/// Takes bytes, answers with events.
#[derive(Debug, Default)]
pub(super) struct Decoder {
    begun: Vec<u8>,
    /// A key that came whole behind another one, in one sequence that neither is part of.
    second: Option<Event>,
    paste: Option<Vec<u8>>,
}

impl Decoder {
    /// Takes a byte; the event that it ends, if it ends one.
    pub(super) fn push(&mut self, byte: u8) -> Option<Event> {
        if let Some(paste) = &mut self.paste {
            paste.push(byte);
            if paste.ends_with(PASTE_ENDS) {
                let mut paste = self.paste.take().unwrap_or_default();
                paste.truncate(paste.len() - PASTE_ENDS.len());
                return Some(Event::Paste(String::from_utf8_lossy(&paste).into_owned()));
            }
            if paste.len() > PASTE {
                // The end is looked for in what is left; the middle is dropped.
                paste.drain(PASTE / 2..paste.len() - PASTE_ENDS.len());
            }
            return None;
        }
        self.begun.push(byte);
        if self.begun == PASTE_BEGINS {
            self.begun.clear();
            self.paste = Some(Vec::new());
            return None;
        }
        match read(&self.begun) {
            Read::First(event, length) => {
                self.begun.drain(..length);
                match read(&self.begun) {
                    Read::More => {}
                    Read::Event(second) => {
                        self.begun.clear();
                        self.second = Some(second);
                    }
                    Read::Nothing | Read::First(..) => self.begun.clear(),
                }
                Some(event)
            }
            Read::More if self.begun.len() < LONGEST => None,
            Read::More | Read::Nothing => {
                self.begun.clear();
                None
            }
            Read::Event(event) => {
                self.begun.clear();
                Some(event)
            }
        }
    }

    /// The event that came behind the last one.
    pub(super) fn second(&mut self) -> Option<Event> {
        self.second.take()
    }

    /// Whether a sequence is begun that may be whole as it is: a bare `esc` looks like the beginning of an arrow.
    pub(super) fn is_begun(&self) -> bool {
        !self.begun.is_empty()
    }

    /// The rest of a sequence did not come: what was begun is what it is.
    pub(super) fn give_up(&mut self) -> Option<Event> {
        let begun = std::mem::take(&mut self.begun);
        match begun.as_slice() {
            b"\x1b" => Some(key(KeyCode::Esc, KeyModifiers::NONE)),
            [0x1b, letter @ (b'[' | b'O')] => {
                Some(key(KeyCode::Char(char::from(*letter)), KeyModifiers::ALT))
            }
            _ => None,
        }
    }
}

/// Meaning of some bytes.
enum Read {
    More,
    Nothing,
    Event(Event),
    /// So many bytes are a key alone; the rest begins something else.
    First(Event, usize),
}

impl From<Option<Event>> for Read {
    fn from(event: Option<Event>) -> Self {
        event.map_or(Self::Nothing, Self::Event)
    }
}

fn key(code: KeyCode, modifiers: KeyModifiers) -> Event {
    Event::Key(KeyEvent::new(code, modifiers))
}

fn read(bytes: &[u8]) -> Read {
    match bytes {
        [0x1b] | [0x1b, b'[' | b'O'] | [0x1b, b'[', b'['] => Read::More,
        [0x1b, 0x1b] => Read::First(key(KeyCode::Esc, KeyModifiers::NONE), 1),
        // The keypad's enter; after `ESC [` the same letter begins a report of the mouse.
        [0x1b, b'O', b'M'] => Read::Event(key(KeyCode::Enter, KeyModifiers::NONE)),
        [0x1b, b'O', last] => match letter(*last) {
            Some(code) => Read::Event(key(code, KeyModifiers::NONE)),
            // No key of a terminal: Esc, the letter, and whatever came next.
            None => Read::First(key(KeyCode::Char('O'), KeyModifiers::ALT), 2),
        },
        // The mouse of a terminal that does not know mode 1006: three bytes that must not become keys.
        [0x1b, b'[', b'M', report @ ..] => {
            if report.len() < 3 {
                Read::More
            } else {
                Read::Nothing
            }
        }
        // The Linux console's F1 to F5.
        [0x1b, b'[', b'[', last @ b'A'..=b'E'] => {
            Read::Event(key(KeyCode::F(last - b'A' + 1), KeyModifiers::NONE))
        }
        [0x1b, b'[', body @ ..] => control_sequence(body),
        [0x1b, rest @ ..] => match read(rest) {
            Read::Event(Event::Key(event)) => {
                Read::Event(key(event.code, event.modifiers | KeyModifiers::ALT))
            }
            other => other,
        },
        _ => plain(bytes),
    }
}

/// A character or a control key.
fn plain(bytes: &[u8]) -> Read {
    let control = |c: u8| key(KeyCode::Char(char::from(c)), KeyModifiers::CONTROL);
    match bytes {
        // Enter arrives as a line feed: the terminal keeps translating it, so that what waits for a shell is right.
        [b'\r' | b'\n'] => Read::Event(key(KeyCode::Enter, KeyModifiers::NONE)),
        [b'\t'] => Read::Event(key(KeyCode::Tab, KeyModifiers::NONE)),
        [0x7f] => Read::Event(key(KeyCode::Backspace, KeyModifiers::NONE)),
        [0] => Read::Event(control(b' ')),
        [c @ 0x01..=0x1a] => Read::Event(control(c - 1 + b'a')),
        [c @ 0x1c..=0x1f] => Read::Event(control(c - 0x1c + b'4')),
        _ => match std::str::from_utf8(bytes) {
            Ok(text) => Read::from(text.chars().next().map(|c| {
                let shift = if c.is_uppercase() { KeyModifiers::SHIFT } else { KeyModifiers::NONE };
                key(KeyCode::Char(c), shift)
            })),
            Err(error) if error.error_len().is_none() => Read::More,
            Err(_) => Read::Nothing,
        },
    }
}

/// `ESC [ … final`.
fn control_sequence(body: &[u8]) -> Read {
    let Some((last, parameters)) =
        body.split_last().filter(|(last, _)| (0x40..=0x7e).contains(*last))
    else {
        return Read::More;
    };
    let Ok(parameters) = std::str::from_utf8(parameters) else { return Read::Nothing };
    if let Some(mouse) = parameters.strip_prefix('<') {
        return Read::from(self::mouse(mouse, *last));
    }
    let mut numbers = parameters.split(';').map(|number| number.parse::<u16>().ok());
    let first = numbers.next().flatten();
    let modifiers = numbers.next().flatten().map_or(KeyModifiers::NONE, modifiers);
    let code = match last {
        b'Z' => Some(KeyCode::BackTab),
        b'~' => first.and_then(numbered),
        last => letter(*last),
    };
    Read::from(code.map(|code| key(code, modifiers)))
}

/// Keys that are named by a letter, after `ESC O` or `ESC [`.
fn letter(last: u8) -> Option<KeyCode> {
    Some(match last {
        b'A' => KeyCode::Up,
        b'B' => KeyCode::Down,
        b'C' => KeyCode::Right,
        b'D' => KeyCode::Left,
        b'H' => KeyCode::Home,
        b'F' => KeyCode::End,
        b'P'..=b'S' => KeyCode::F(last - b'P' + 1),
        _ => return None,
    })
}

/// Keys that are named by a number, before `~`.
fn numbered(number: u16) -> Option<KeyCode> {
    let function = |number: u16| u8::try_from(number).ok().map(KeyCode::F);
    match number {
        1 | 7 => Some(KeyCode::Home),
        2 => Some(KeyCode::Insert),
        3 => Some(KeyCode::Delete),
        4 | 8 => Some(KeyCode::End),
        5 => Some(KeyCode::PageUp),
        6 => Some(KeyCode::PageDown),
        11..=15 => function(number - 10),
        17..=21 => function(number - 11),
        23..=26 => function(number - 12),
        28 | 29 => function(number - 13),
        31..=34 => function(number - 14),
        _ => None,
    }
}

/// xterm's number for modifiers: one more than their bits.
fn modifiers(number: u16) -> KeyModifiers {
    let bits = number.saturating_sub(1);
    [(1, KeyModifiers::SHIFT), (2, KeyModifiers::META), (4, KeyModifiers::CONTROL)]
        .into_iter()
        .filter(|(bit, _)| bits & bit != 0)
        .fold(KeyModifiers::NONE, |all, (_, modifier)| all | modifier)
}

/// A report of the mouse (mode 1006): `button;column;row`, `M` pressed, `m` released.
fn mouse(parameters: &str, last: u8) -> Option<Event> {
    let mut numbers = parameters.split(';').map(|number| number.parse::<u16>().ok());
    let (button, column, row) = (numbers.next()??, numbers.next()??, numbers.next()??);
    let which = match button & 3 {
        0 => MouseButton::Left,
        1 => MouseButton::Middle,
        _ => MouseButton::Right,
    };
    let kind = match (button & 64, last) {
        (0, b'M') if button & 32 == 0 => MouseEventKind::Down(which),
        (0, b'm') => MouseEventKind::Up(which),
        (0, _) => MouseEventKind::Drag(which),
        _ if which == MouseButton::Left => MouseEventKind::ScrollUp,
        _ if which == MouseButton::Middle => MouseEventKind::ScrollDown,
        _ => return None,
    };
    let modifiers = [(4, KeyModifiers::SHIFT), (8, KeyModifiers::ALT), (16, KeyModifiers::CONTROL)]
        .into_iter()
        .filter(|(bit, _)| button & bit != 0)
        .fold(KeyModifiers::NONE, |all, (_, modifier)| all | modifier);
    Some(Event::Mouse(MouseEvent {
        kind,
        column: column.checked_sub(1)?,
        row: row.checked_sub(1)?,
        modifiers,
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The events of some bytes, one by one, as short words.
    fn decoded(bytes: &[u8]) -> Vec<String> {
        let mut decoder = Decoder::default();
        let mut events: Vec<Event> = Vec::new();
        for byte in bytes {
            events.extend(decoder.push(*byte));
            events.extend(decoder.second());
        }
        events.extend(decoder.give_up());
        let word = |event: &Event| match event {
            Event::Key(key) if key.modifiers == KeyModifiers::NONE => key.code.to_string(),
            Event::Key(key) => format!("{}+{}", key.modifiers, key.code),
            Event::Paste(text) => format!("paste {text:?}"),
            Event::Mouse(mouse) => format!("{:?} {} {}", mouse.kind, mouse.column, mouse.row),
            other => format!("{other:?}"),
        };
        events.iter().map(word).collect()
    }

    #[test]
    fn keys_as_terminals_send_them() {
        for (bytes, events) in [
            (&b"a"[..], "a"),
            (b"G", "Shift+G"),
            ("é日".as_bytes(), "é 日"),
            (b"\r", "Enter"),
            (b"\n", "Enter"),
            (b"\t\x1b[Z", "Tab Back Tab"),
            (b"\x7f", "Backspace"),
            (b"\x03\x10", "Control+c Control+p"),
            (b"\x1b", "Esc"),
            (b"\x1b[A\x1bOB", "Up Down"),
            (b"\x1b[1;5C\x1b[1;2D", "Control+Right Shift+Left"),
            (b"\x1b[5~\x1b[6~\x1b[3~\x1b[H\x1b[F", "Page Up Page Down Del Home End"),
            (b"\x1bOP\x1b[15~\x1b[24~\x1b[[A", "F1 F5 F12 F1"),
            (b"\x1bx", "Alt+x"),
            (b"\x1b[", "Alt+["),
            (b"\x1b\r\x1b\x03", "Alt+Enter Control+Alt+c"),
            (b"\x1b\x1b", "Esc Esc"),
            (b"\x1b\x1bw\x1b\x1b[A", "Esc Alt+w Esc Up"),
            (b"\x1bOd\x1bOOq", "Alt+O d Alt+O Shift+O q"),
            (b"\x1b[1;3A", "Meta+Up"),
            (b"\x1b[9999zq", "q"),
            (b"\x1b[I\x1b[Oq", "q"),
            (b"\xff\xfeq", "q"),
            (b"\x1b[<0;12;3M\x1b[<64;1;1M", "Down(Left) 11 2 ScrollUp 0 0"),
            (b"\x1b[<0;0;0Mq", "q"),
            (b"\x1b[M d!q\x1bOM", "q Enter"),
            (b"\x1b[200~a\x1b[31mb\r\n\x1b[201~c", "paste \"a\\u{1b}[31mb\\r\\n\" c"),
        ] {
            assert_eq!(decoded(bytes).join(" "), events, "{}", bytes.escape_ascii());
        }
    }

    #[test]
    fn any_bytes_are_safe_and_bounded() {
        let mut decoder = Decoder::default();
        let mut seed = 7_u32;
        for _ in 0..200_000 {
            seed = seed.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            decoder.push((seed >> 24) as u8);
            assert!(decoder.begun.len() <= LONGEST);
        }
        let mut decoder = Decoder::default();
        for byte in PASTE_BEGINS {
            assert_eq!(decoder.push(*byte), None);
        }
        for _ in 0..3 * PASTE {
            assert_eq!(decoder.push(b'x'), None);
        }
        let end: Vec<Event> = PASTE_ENDS.iter().filter_map(|byte| decoder.push(*byte)).collect();
        assert!(matches!(&end[..], [Event::Paste(text)] if text.len() <= PASTE + 8));
    }
}
