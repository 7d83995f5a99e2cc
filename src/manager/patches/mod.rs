//! Verbs on patches: adding, removing, applying, rolling out, and which are pending for a sandbox.

pub(super) mod add;
pub(super) mod apply;
pub(super) mod find;
pub(super) mod pending;
pub(super) mod remove;
pub(super) mod rollout;
