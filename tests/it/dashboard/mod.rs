//! The dashboard: what keys and messages do to the model, its screens, and the real binary on a terminal.

mod activity;
mod choosing;
mod credits;
mod drive;
mod events;
mod keys;
mod lineage;
mod logs;
mod overlays;
mod patches;
mod polling;
pub(crate) mod pty;
mod reap;
mod route;
mod screens;
mod snapshots;
mod stale;
mod sweep;
mod trouble;
mod undo;
mod update;
mod work;
