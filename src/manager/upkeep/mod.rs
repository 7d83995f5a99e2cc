//! Upkeep of an installation: what dead processes left, what is over, and whether it is in order.

pub(super) mod claim;
pub(super) mod contact;
pub(super) mod doctor;
pub(super) mod flush;
pub(super) mod forget;
pub(super) mod import;
pub(super) mod ownership;
pub(super) mod reconcile;
pub(super) mod recover;
pub(super) mod recover_snapshots;
pub(super) mod sweep;
pub(super) mod sweep_memory;
pub(super) mod sweep_removal;
pub(super) mod unswept;
