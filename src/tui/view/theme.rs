//! Looks of a meaning: roles to styles, glyphs to ASCII.

use ratatui::buffer::Buffer;
use ratatui::style::{Color, Modifier, Style};
use unicode_width::UnicodeWidthStr;

use crate::present::{Role, ascii_symbol};
use crate::tui::model::{Appearance, ThemeName};

/// Appearance, resolved.
#[derive(Debug, Clone, Copy)]
pub(super) struct Theme {
    name: ThemeName,
    no_color: bool,
    /// Only ASCII glyphs.
    pub(super) ascii: bool,
}

/// The colours of a palette.
struct Palette {
    accent: Color,
    good: Color,
    warn: Color,
    bad: Color,
    busy: Color,
    code: Color,
    other: Color,
    dim: Option<Color>,
    border: Option<Color>,
    selected: Option<Color>,
}

impl Theme {
    pub(super) fn of(appearance: Appearance) -> Self {
        Self {
            name: appearance.theme,
            no_color: appearance.no_color || appearance.theme == ThemeName::Mono,
            ascii: appearance.ascii,
        }
    }

    fn palette(self) -> Palette {
        match self.name {
            ThemeName::Terminal | ThemeName::Mono => Palette {
                accent: Color::Cyan,
                good: Color::Green,
                warn: Color::Yellow,
                bad: Color::Red,
                busy: Color::Cyan,
                code: Color::Cyan,
                other: Color::Magenta,
                dim: None,
                border: None,
                selected: None,
            },
            ThemeName::Dark => Palette {
                accent: Color::Rgb(122, 176, 242),
                good: Color::Rgb(143, 201, 134),
                warn: Color::Rgb(230, 192, 123),
                bad: Color::Rgb(235, 111, 111),
                busy: Color::Rgb(122, 176, 242),
                code: Color::Rgb(158, 206, 206),
                other: Color::Rgb(198, 160, 226),
                dim: Some(Color::Rgb(128, 134, 148)),
                border: Some(Color::Rgb(72, 78, 92)),
                selected: Some(Color::Rgb(44, 50, 62)),
            },
            ThemeName::Light => Palette {
                accent: Color::Rgb(20, 92, 180),
                good: Color::Rgb(30, 120, 50),
                warn: Color::Rgb(150, 95, 0),
                bad: Color::Rgb(180, 30, 30),
                busy: Color::Rgb(20, 92, 180),
                code: Color::Rgb(0, 105, 120),
                other: Color::Rgb(120, 50, 150),
                dim: Some(Color::Rgb(105, 105, 112)),
                border: Some(Color::Rgb(180, 180, 188)),
                selected: Some(Color::Rgb(222, 230, 242)),
            },
            ThemeName::HighContrast => Palette {
                accent: Color::LightCyan,
                good: Color::LightGreen,
                warn: Color::LightYellow,
                bad: Color::LightRed,
                busy: Color::LightCyan,
                code: Color::LightCyan,
                other: Color::LightMagenta,
                dim: Some(Color::White),
                border: Some(Color::White),
                selected: None,
            },
        }
    }

    pub(super) fn style(self, role: Role) -> Style {
        let palette = self.palette();
        let plain = Style::new();
        let faint = |color: Option<Color>| {
            color.map_or(plain.add_modifier(Modifier::DIM), |color| plain.fg(color))
        };
        let style = match role {
            Role::Plain | Role::Button => plain,
            Role::Dim => faint(palette.dim),
            Role::Border => faint(palette.border),
            Role::Title => plain.add_modifier(Modifier::BOLD),
            Role::Accent | Role::Key => plain.fg(palette.accent).add_modifier(Modifier::BOLD),
            Role::Focus => plain.fg(palette.accent),
            Role::Good => plain.fg(palette.good),
            Role::Warn => plain.fg(palette.warn),
            Role::Bad => plain.fg(palette.bad).add_modifier(Modifier::BOLD),
            Role::Busy => plain.fg(palette.busy),
            Role::Code => plain.fg(palette.code),
            Role::Selected => match palette.selected {
                Some(color) if !self.no_color => plain.bg(color),
                // One bar: colours reversed would be a row of patches.
                _ => plain
                    .fg(Color::Reset)
                    .remove_modifier(Modifier::DIM)
                    .add_modifier(Modifier::REVERSED),
            },
            Role::Pressed => plain.add_modifier(Modifier::REVERSED | Modifier::BOLD),
            Role::Field => plain.add_modifier(Modifier::UNDERLINED),
            Role::Service(number) => {
                let colours =
                    [palette.accent, palette.good, palette.warn, palette.code, palette.other];
                plain.fg(colours[number % colours.len()])
            }
            Role::Match => plain.add_modifier(Modifier::UNDERLINED | Modifier::BOLD),
            Role::Found => plain.add_modifier(Modifier::REVERSED),
        };
        if self.no_color { Style { fg: None, bg: None, ..style } } else { style }
    }

    /// Makes what was drawn plain ASCII: one place for every glyph, so that none is forgotten. A wide character
    /// becomes `?` and a space.
    pub(super) fn fold(self, buf: &mut Buffer) {
        if !self.ascii {
            return;
        }
        for cell in &mut buf.content {
            let symbol = cell.symbol();
            if symbol.is_ascii() {
                continue;
            }
            let wide = symbol.width() > 1;
            let plain = ascii_symbol(symbol);
            cell.set_symbol(plain);
            if wide {
                cell.set_symbol("?");
            }
        }
    }
}
