//! Verbs on hosts: checks, status events, capacity, workspace roots.

pub(super) mod capacity;
pub(super) mod check;
pub(super) mod deep_check;
pub(super) mod report;
pub(super) mod roots;
pub(super) mod sample;
pub(super) mod status;
pub(super) mod status_log;
