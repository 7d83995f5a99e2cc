//! Sleep, wake and patches on the lab's real hosts, through the real binary: `tests/lab/up` first, then
//! `tests/run --test lab patches::`.

mod acceptance;
mod counted;
mod kills;
mod leavings;
mod owing;
mod passes;
mod scripts;
mod service;
mod sleep;

use serde_json::Value;

use crate::lab::{Bench, text};

/// Adds a patch with this script; the sequence it got.
fn add(bench: &Bench, snapshot: &str, script: &str, more: &[&str]) -> u64 {
    let file = bench.path("patch.sh");
    std::fs::write(&file, script).unwrap();
    let words = ["patches", "add", snapshot, "--script-file", file.to_str().unwrap()];
    bench.ok(words.iter().chain(more))["sequence"].as_u64().unwrap()
}

/// What a sandbox's record says of its patches: sequence and state of each.
fn patches_of(record: &Value) -> Vec<(u64, String)> {
    let runs = record["applied_patches"].as_array().unwrap();
    runs.iter().map(|run| (run["sequence"].as_u64().unwrap(), text(&run["state"]))).collect()
}

/// What a file of a sandbox's workspace has.
fn read(bench: &Bench, id: &str, file: &str) -> String {
    text(&bench.ok(["exec", id, "--", "cat", file])["stdout"])
}

/// A workspace of its own and a snapshot of it, `base`.
fn canary_base(bench: &Bench, host: &str, profile: &str) {
    bench.ok(["create", "--profile", profile, "--host", host, "--name", "source"]);
    bench.ok(["snapshot", "source", "--name", "base"]);
}
