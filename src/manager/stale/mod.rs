//! Stale: what hosts and records have and should not, the plan that cleans exactly that, and records of what was lost.

pub(super) mod adopt;
pub(super) mod apply;
pub(super) mod inspect;
pub(super) mod outcome;
pub(super) mod plan;
pub(super) mod read_hosts;
pub(super) mod reap_found;
pub(super) mod reap_record;
