//! Stale: what hosts and records have and should not, the plan that cleans exactly that, and records of what was lost.

pub(super) mod adopt;
mod adopt_archives;
mod adopt_id;
pub(super) mod adopt_item;
pub(super) mod adopt_sandbox;
pub(super) mod adopt_snapshot;
mod adopt_trust;
pub(super) mod apply;
mod found;
pub(super) mod inspect;
pub(super) mod outcome;
mod owners;
pub(super) mod plan;
pub(super) mod read_hosts;
pub(super) mod reap_found;
pub(super) mod reap_record;
mod scan;
