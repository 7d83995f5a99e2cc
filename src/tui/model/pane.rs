//! Panes of the screen.

/// The panes of this version.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pane {
    /// The list.
    Sandboxes,
    /// Snapshots and what hangs on them.
    Snapshots,
    /// Hosts and how they are.
    Hosts,
    /// Credits, and what they were spent for.
    Credits,
    /// Jobs and events.
    Activity,
}

impl Pane {
    /// Every pane, in the order in which one goes through them.
    pub const ALL: &'static [Self] =
        &[Self::Sandboxes, Self::Snapshots, Self::Hosts, Self::Credits, Self::Activity];

    /// Name in its title.
    pub fn title(self) -> &'static str {
        match self {
            Self::Sandboxes => "Sandboxes",
            Self::Snapshots => "Snapshots",
            Self::Hosts => "Hosts",
            Self::Credits => "Credits",
            Self::Activity => "Activity",
        }
    }

    /// The next one, or the one before.
    #[must_use]
    pub fn beside(self, forward: bool) -> Self {
        let count = Self::ALL.len();
        let at = Self::ALL.iter().position(|pane| *pane == self).unwrap_or_default();
        Self::ALL[(at + if forward { 1 } else { count - 1 }) % count]
    }
}
