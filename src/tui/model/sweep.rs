//! Sweep: whether this console ends what has expired.

/// Whether this console ends what has expired.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Sweep {
    /// It does not: it is told not to, or has not begun.
    #[default]
    Off,
    /// It does.
    On,
    /// It would, and holds back for this reason.
    Paused(String),
}
