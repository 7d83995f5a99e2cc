//! What the manager promises, held against a scripted extension and the real files.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test that cannot go on has failed")]

mod adding;
mod cancels;
mod copies;
mod dead;
mod deep_check;
mod gone;
mod host_events;
mod house;
mod imports;
mod keeping;
mod leavings;
mod owing;
mod patches;
mod placement;
mod recipes;
mod recover;
mod refusals;
mod repeated;
mod rollouts;
mod roots;
mod scripted;
mod seen;
mod shelf;
mod sleep;
mod snapshots;
mod vanished;
mod verbs;
