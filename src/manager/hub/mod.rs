//! State Hub: the event log delivered to it, at least once and in each sandbox's order, by one process at a time.

pub(crate) mod backlog;
pub(crate) mod check;
pub(crate) mod deliver;
mod drain;
