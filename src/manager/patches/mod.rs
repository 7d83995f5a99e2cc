//! Verbs on patches: adding, removing, applying, rolling out, and what a sandbox owes.

pub(super) mod add;
pub(super) mod apply;
pub(super) mod find;
pub(super) mod pending;
pub(super) mod remove;
pub(super) mod rollout;
