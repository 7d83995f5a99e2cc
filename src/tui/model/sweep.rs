//! Sweep: whether this console ends what has expired.

use std::time::Duration;

/// Whether this console ends what has expired.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Sweep {
    /// Not sweeping: told not to, or not begun.
    #[default]
    Off,
    /// Sweeping.
    On,
    /// Willing to sweep, and held back for this reason.
    Paused(String),
}

/// Sweeps of this console, by their numbers: one that waits for a silent host ends after later ones.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Sweeps {
    /// How often; none: never.
    pub interval: Option<Duration>,
    begun: u64,
    heard: u64,
}

impl Sweeps {
    /// The number of the next one.
    pub fn begin(&mut self) -> u64 {
        self.begun += 1;
        self.begun
    }

    /// Whether the one of this number tells how things are: no later one has.
    pub fn hear(&mut self, number: u64) -> bool {
        let is_news = number > self.heard;
        self.heard = self.heard.max(number);
        is_news
    }
}
