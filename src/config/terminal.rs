//! Terminal: what the environment says that it can show.

use super::Environment;
use crate::domain::text::is_utf8_locale;

/// The colours of a terminal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Colours {
    None,
    /// The usual 16.
    Sixteen,
    /// 256 of them.
    Indexed,
    /// Any.
    True,
}

/// Terminals without colours, by the beginning of their name.
const COLOURLESS: [&str; 6] = ["vt1", "vt2", "vt3", "vt4", "vt52", "xterm-mono"];

/// Abilities of a terminal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Terminal<'a> {
    /// Its kind; none where `TERM` does not tell of one that can move its cursor.
    pub kind: Option<&'a str>,
    /// Its colours, `NO_COLOR` counted in.
    pub colours: Colours,
    /// Whether the locale is UTF-8.
    pub utf8: bool,
}

impl<'a> Terminal<'a> {
    /// Read from the environment.
    pub(crate) fn of(environment: &'a Environment) -> Self {
        let kind = environment.text("TERM").filter(|term| *term != "dumb");
        let colours = match kind {
            _ if environment.text("NO_COLOR").is_some() => Colours::None,
            None => Colours::None,
            Some(kind)
                if COLOURLESS.iter().any(|name| kind.starts_with(name)) || kind.ends_with("-m") =>
            {
                Colours::None
            }
            Some(_) if matches!(environment.text("COLORTERM"), Some("truecolor" | "24bit")) => {
                Colours::True
            }
            Some(kind) if kind.contains("256color") => Colours::Indexed,
            Some(_) => Colours::Sixteen,
        };
        Self { kind, colours, utf8: is_utf8(environment) }
    }

    /// Whether it has glyphs beyond ASCII: the console of Linux has few, whatever the locale.
    pub(crate) fn has_glyphs(&self) -> bool {
        self.utf8 && self.kind != Some("linux")
    }
}

/// Locale rule of the C library: the first of the three that is set counts.
fn is_utf8(environment: &Environment) -> bool {
    let locale = ["LC_ALL", "LC_CTYPE", "LANG"].into_iter().find_map(|name| environment.text(name));
    is_utf8_locale(locale.unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_terminal_can_show() {
        for (pairs, kind, colours, glyphs) in [
            (
                &[("TERM", "xterm-256color"), ("LANG", "en_US.UTF-8")][..],
                Some("xterm-256color"),
                Colours::Indexed,
                true,
            ),
            (
                &[("TERM", "xterm"), ("COLORTERM", "truecolor"), ("LANG", "C.utf8")],
                Some("xterm"),
                Colours::True,
                true,
            ),
            (
                &[("TERM", "tmux"), ("LC_ALL", "C"), ("LANG", "en_US.UTF-8")],
                Some("tmux"),
                Colours::Sixteen,
                false,
            ),
            (&[("TERM", "linux"), ("LANG", "C.UTF-8")], Some("linux"), Colours::Sixteen, false),
            (&[("TERM", "vt220"), ("LANG", "C.UTF-8")], Some("vt220"), Colours::None, true),
            (&[("TERM", "xterm"), ("NO_COLOR", "1")], Some("xterm"), Colours::None, false),
            (&[("TERM", "dumb"), ("LANG", "C.UTF-8")], None, Colours::None, true),
            (&[], None, Colours::None, false),
        ] {
            let environment = Environment::from_pairs(pairs.iter().copied());
            let terminal = Terminal::of(&environment);
            assert_eq!(
                (terminal.kind, terminal.colours, terminal.has_glyphs()),
                (kind, colours, glyphs),
                "{pairs:?}"
            );
        }
    }

    #[test]
    fn the_first_locale_that_is_set_counts() {
        for (pairs, expected) in [
            (vec![("LANG", "de_DE.UTF-8")], true),
            (vec![("LANG", "C.utf8"), ("LC_ALL", "C")], false),
            (vec![("LC_ALL", ""), ("LC_CTYPE", "C.UTF-8"), ("LANG", "C")], true),
            (vec![], false),
        ] {
            assert_eq!(is_utf8(&Environment::from_pairs(pairs.clone())), expected, "{pairs:?}");
        }
    }
}
