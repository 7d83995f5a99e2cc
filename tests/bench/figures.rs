//! The measured figures, side by side in one run: medians and ratios, never a limit. `just bench`, with the
//! lab up and its `env` read for the parts that need a host. Words choose parts: `just bench -- list frame`.
//!
//! * `frame`: process start to the first full frame of the dashboard, 100, 1,000 and 10,000 records, in a pty
//! * `list`: `list --json` with 1,000 and 10,000 records, and `--version` for comparison
//! * `idle`: processor, bytes to the terminal and memory of a dashboard on which nothing changes, 100 and 10,000 records
//! * `keys`: key to frame with 10,000 records while 200 events a second come in
//! * `hosts`: the same as `idle` on the lab's hosts: 3 of them, and 20 names of one
//! * `stack`: create + destroy of a compose stack against the same by hand (ssh, rsync, docker compose), alternating; requests of a
//!   create to its host, on each engine
//! * `snapshot`: snapshot and restore of 1 GiB in 20,000 files against `tar | zstd` by hand, alternating; memory
//! * `copy`: an archive of 0.5 GiB to another host against `ssh a cat | ssh b cat` by hand, alternating; memory
//! * `reap`: reap of 60 stacks over 2 hosts against one `compose down -v` after another over ssh by hand; sessions
//! * `bulk`: destroy of 24 stacks on one host against one `compose down -v` after another, and the engine's own `rm -f`
//! * `far`: one-shot commands on a host whose connection is open, with 0, 25 and 150 ms on the way

#![allow(clippy::expect_used, reason = "a figure that cannot be taken ends the run")]

mod console;
mod copy;
mod far;
mod fixture;
mod hosts;
mod reap;
mod sample;
mod snapshot;
mod stack;

use std::path::PathBuf;

use fixture::Fixture;
use sample::Sample;

/// Measures on the lab in this folder.
type Measure = fn(&Fixture, &std::path::Path);

fn main() {
    let args: Vec<String> = std::env::args().skip(1).collect();
    // `cargo test --all-targets` runs a bench binary too: nothing is measured there.
    if !args.iter().any(|arg| arg == "--bench") || args.iter().any(|arg| arg == "--test") {
        println!("figures: measures only under `cargo bench`");
        return;
    }
    let words: Vec<&String> = args.iter().filter(|arg| !arg.starts_with('-')).collect();
    let wanted = |part: &str| words.is_empty() || words.iter().any(|word| *word == part);
    let folder = tempfile::tempdir().expect("a temporary directory");
    let fixture = Fixture::new(folder.path());
    Sample::heading();
    if ["frame", "list", "idle", "keys"].iter().any(|part| wanted(part)) {
        for count in [100, 1000, 10_000] {
            on_records(&Fixture::with_records(folder.path(), count), count, &wanted);
        }
    }
    let lab = std::env::var_os("LAB_DIR").map(PathBuf::from);
    let on_hosts: [(&str, Measure); 7] = [
        ("hosts", hosts::measure),
        ("stack", stack::measure),
        ("far", far::measure),
        ("snapshot", snapshot::measure),
        ("copy", copy::measure),
        ("reap", reap::measure),
        ("bulk", reap::measure_bulk),
    ];
    for (part, measure) in on_hosts {
        match &lab {
            _ if !wanted(part) => {}
            Some(lab) => measure(&fixture, lab),
            None => println!("{part}: skipped, LAB_DIR is not set (tests/lab/up, then . .lab/env)"),
        }
    }
}

/// Figures that need no host.
fn on_records(fixture: &Fixture, count: usize, wanted: &dyn Fn(&str) -> bool) {
    let many = count == 10_000;
    if wanted("frame") {
        Sample::of(if many { 9 } else { 15 }, || fixture.first_frame(count))
            .print(&format!("start to first full frame, {count} records"));
    }
    if wanted("list") && count > 100 {
        Sample::of(if many { 9 } else { 30 }, || fixture.list(count))
            .print(&format!("list --json, {count} records"));
        Sample::of(30, || fixture.version()).print("  (--version: the process alone)");
    }
    if wanted("idle") && count != 1000 {
        console::idle(&format!("idle, {count} records, no host"), &fixture.sandboxer(), count);
    }
    if wanted("keys") && many {
        console::keys(fixture, count);
    }
}
