//! Outcome of one item of a plan.

use crate::domain::stale::ReapOutcome;

/// What was done about an item.
pub(crate) enum Done {
    /// What was planned.
    As(ReapOutcome, String),
    /// Nothing: it is not what was planned any more.
    Skipped(String),
}
