//! What a profile's `snapshot.exclude` leaves out, and what it does not.

use std::fs;
use std::path::PathBuf;

use serde_json::json;

use crate::lab::{Bench, DOCKER, text, tree};
use crate::support::json_assertions::JsonAssertions as _;

/// Everything, and whether it is to come back.
const FILES: [(&str, bool); 9] = [
    ("kept", true),
    ("deep/top/kept", true),
    ("deep/old/gone", false),
    ("more/deep/old/kept", true),
    ("top/gone", false),
    ("worksheet", false),
    ("deep/workspace/gone", false),
    ("deep/cache/gone", false),
    ("cached", true),
];

#[test]
#[ignore = "needs the lab (tests/lab/up)"]
fn a_name_is_left_out_anywhere_and_a_path_from_the_top_and_never_the_workspace_itself() {
    let bench = Bench::watching(&[DOCKER]);
    let profile = bench.profile(
        "lean",
        "snapshot: {exclude: ['work*', /top, deep/old, cache/]}\nplacement: {hosts: []}\ninputs: {}\nconfig: {workspace_only: true}",
    );
    let made = bench.ok(["create", "--profile", &profile, "--host", DOCKER, "--name", "source"]);
    let workspace =
        |record: &serde_json::Value| PathBuf::from(text(&record["workdir"])).join("workspace");
    for (file, _) in FILES {
        let file = workspace(&made).join(file);
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        fs::write(file, "text\n").unwrap();
    }
    let told = bench.ok(["snapshot", "source", "--name", "base"]);
    told.has(json!({"excludes": ["work*", "/top", "deep/old", "cache/"]}));
    bench.ok(["snapshots", "verify", "base"]);
    // What was left out is no difference.
    bench.ok(["snapshots", "diff", "base"]).has(json!({"changes": []}));

    let back = bench.ok(["restore", "base", "--name", "back"]);
    let there = tree(&workspace(&back));
    for (file, comes) in FILES {
        assert_eq!(workspace(&back).join(file).exists(), comes, "{file}: {there:#?}");
    }
    bench.ok(["destroy", "source", "back"]);
    bench.ok(["snapshots", "delete", "base"]);
    bench.assert_as_before();
}
