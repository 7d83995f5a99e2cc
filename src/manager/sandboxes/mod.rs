//! Verbs on sandboxes, and the steps that they share: placement, establishment, teardown, inspection.

pub(super) mod compensate;
pub(super) mod create;
pub(super) mod destroy;
pub(super) mod establish;
pub(super) mod establishment;
pub(super) mod exec;
pub(super) mod extend;
pub(super) mod extension_place;
pub(super) mod find;
pub(super) mod idempotency;
pub(super) mod inputs;
pub(super) mod inspect;
pub(super) mod label;
pub(super) mod manifest;
pub(super) mod observe;
pub(super) mod place;
pub(super) mod power;
pub(super) mod recreate;
pub(super) mod remove;
pub(super) mod resolve;
pub(super) mod settle;
pub(super) mod teardown;
pub(super) mod write_errors;
