//! Outcome of one item of a plan.

use crate::domain::stale::ReapOutcome;

pub(crate) enum Done {
    /// The planned action, done; a sentence on it.
    As(ReapOutcome, String),
    /// Nothing, since it is not what was planned any more; why.
    Skipped(String),
}
