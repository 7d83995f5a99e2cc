//! Sandboxes on the lab's two real hosts and on this machine, through the real binary: `tests/lab/up` first, then
//! `tests/run --test lab_sandboxes`.

#![allow(clippy::unwrap_used, clippy::expect_used, missing_docs)]

mod accounts;
mod attend;
mod bad_days;
mod bad_input;
mod belonging;
mod broken;
mod cases;
mod checkpoint_answers;
mod checkpoint_base;
mod checkpoint_busybox;
mod checkpoint_cancels;
mod checkpoint_days;
mod checkpoint_hold;
mod checkpoint_kills;
mod checkpoint_lost;
mod commands;
mod copies;
mod crowd;
mod deep;
mod faults;
mod flavours;
mod held;
mod judged;
mod kills;
mod lab;
mod lifecycle;
mod looks;
mod neighbours;
mod networks;
mod options;
mod processes;
mod races;
mod recreates;
mod rollback;
mod roots;
mod scripts;
mod secrets;
mod settling;
mod stacks;
mod stdin;
mod stores;
mod vm;
mod wakes;
