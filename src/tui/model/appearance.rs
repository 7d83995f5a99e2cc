//! Colours and glyphs of the screen, as the configuration and the terminal want them.

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ThemeName {
    /// The terminal's own 16 colours.
    #[default]
    Terminal,
    /// For dark backgrounds.
    Dark,
    /// For light backgrounds.
    Light,
    /// Strong contrast.
    HighContrast,
    /// No colours.
    Mono,
}

impl ThemeName {
    pub const ALL: &'static [Self] =
        &[Self::Terminal, Self::Dark, Self::Light, Self::HighContrast, Self::Mono];

    /// Sign set of the configuration.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Terminal => "terminal",
            Self::Dark => "dark",
            Self::Light => "light",
            Self::HighContrast => "high-contrast",
            Self::Mono => "mono",
        }
    }
}

/// How the screen looks; fixed for a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Appearance {
    pub theme: ThemeName,
    /// Only ASCII glyphs.
    pub ascii: bool,
    /// No colours, whatever the theme (`NO_COLOR`).
    pub no_color: bool,
}
