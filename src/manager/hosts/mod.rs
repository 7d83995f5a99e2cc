//! Verbs on hosts: checks, status events, capacity, workspace roots; and places, which are none.

pub(super) mod capacity;
pub(super) mod check;
pub(super) mod deep_check;
pub(super) mod inspect;
pub(super) mod places;
pub(super) mod report;
pub(super) mod roots;
pub(super) mod sample;
pub(super) mod status;
pub(super) mod status_log;
pub(super) mod telemetry;
