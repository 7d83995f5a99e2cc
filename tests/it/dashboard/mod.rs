//! The dashboard: what keys and messages do to the model, its screens, and the real binary on a terminal.

mod activity;
mod drive;
mod fake_client;
mod keys;
mod lineage;
mod logs;
mod patches;
mod pty;
mod screens;
mod snapshots;
mod update;
mod work;
