//! Steps are counted to the number that was said first.

use std::fs;

use serde_json::Value;

use super::{add, read};
use crate::lab::{Bench, DOCKER, PODMAN, Ran, text};

/// Runs well, and tells of every step up to the last of as many as it said at first; how many.
#[track_caller]
fn steps(ran: &Ran) -> u64 {
    ran.ok();
    let mut lines: Vec<Value> =
        ran.stderr.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    // `keep` deletes with operations of their own.
    let own = lines[0]["progress"]["operation"].clone();
    lines.retain(|line| line["progress"]["operation"] == own);
    let told = |key: &str| {
        lines.iter().map(|line| line["progress"][key].as_u64().unwrap()).collect::<Vec<_>>()
    };
    let (at, of) = (told("step"), told("steps"));
    assert!(of.windows(2).all(|pair| pair[0] == pair[1]), "{ran:#?}");
    assert!(at.is_sorted() && at.first() == Some(&1) && at.last() == of.last(), "{ran:#?}");
    of[0]
}

#[test]
#[ignore = "needs the lab (tests/lab/up)"]
fn the_number_of_steps_is_right_from_the_first_on() {
    let bench = Bench::watching(&[DOCKER, PODMAN]);
    let repo = bench.web_stack("first page");
    let profile = bench.profile("counted", "snapshot: {mode: pause, keep: 2}");
    let repo = format!("repo={}", repo.display());
    let create =
        ["create", "--profile", &profile, "--host", DOCKER, "--input", &repo, "--name", "source"];
    assert_eq!(steps(&bench.run_telling(create)), 4, "prepare, transfer, up, ready");
    let found = steps(&bench.run_telling(["snapshot", "source", "--name", "base"]));
    assert_eq!(found, 4, "prepare, pause, archive, seal");

    let found = steps(&bench.run_telling(["restore", "base", "--name", "first"]));
    assert_eq!(found, 5, "prepare, extract, render, up, ready");
    add(&bench, "base", "echo one >>marks", &[]);
    assert_eq!(steps(&bench.run_telling(["sleep", "first"])), 1);
    assert_eq!(steps(&bench.run_telling(["wake", "first"])), 3, "start, ready, patch");
    assert_eq!(read(&bench, "first", "marks"), "one\n");
    let found = steps(&bench.run_telling(["recreate", "first", "--yes"]));
    assert_eq!(found, 9, "verify, images, teardown, and a restore with its patches");
    let found = steps(&bench.run_telling(["recreate", "source", "--yes"]));
    assert_eq!(found, 6, "images, teardown, prepare, transfer, up, ready");

    let there = ["restore", "base", "--name", "there", "--host", PODMAN];
    let found = steps(&bench.run_telling(there));
    assert_eq!(found, 8, "prepare and copy, and a restore with its patches");

    // What the profile's `keep` deletes afterwards is a step.
    bench.ok(["snapshot", "source", "--name", "second"]);
    bench.ok(["snapshot", "source", "--name", "third"]);
    assert_eq!(steps(&bench.run_telling(["snapshot", "source"])), 5);
    assert_eq!(steps(&bench.run_telling(["snapshots", "copy", "third", "--to", PODMAN])), 2);

    let file = bench.path("third.tar");
    bench.ok(["snapshots", "export", "third", &text(&Value::from(file.to_string_lossy()))]);
    let import =
        ["snapshots", "import", &*file.to_string_lossy(), "--host", PODMAN, "--name", "again"];
    assert_eq!(steps(&bench.run_telling(import)), 2);
    fs::remove_file(file).unwrap();
    bench.clear();
    bench.assert_as_before();
}
