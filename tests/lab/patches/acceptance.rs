//! The acceptance list of patches, from its first line to its last, with scripts that leave their mark in the workspace.

use serde_json::{Value, json};

use super::{add, patches_of, read};
use crate::lab::{Bench, DOCKER, http_get, text, url_of};
use crate::support::json_assertions::JsonAssertions as _;

fn sleep_and_wake(bench: &Bench, id: &str) -> Value {
    assert_eq!(bench.ok(["sleep", id])["state"], "sleeping");
    let woken = bench.run(["wake", id]);
    assert_eq!(woken.status, Some(0), "a patch that fails takes no sandbox away: {woken:#?}");
    let record = bench.get(id);
    record.has(json!({"state": "ready", "operation": null}));
    record
}

fn listed(bench: &Bench) -> Vec<u64> {
    let patches = bench.ok(["patches", "list", "base"]);
    patches.as_array().unwrap().iter().map(|patch| patch["sequence"].as_u64().unwrap()).collect()
}

fn done(list: &[u64]) -> Vec<(u64, String)> {
    list.iter().map(|sequence| (*sequence, "applied".to_owned())).collect()
}

/// Scripts are run in a workspace by its host's shell, which asks no engine; that each engine sleeps, wakes and restores is tested
/// where these verbs are.
#[test]
#[ignore = "needs the lab (tests/lab/up)"]
fn the_acceptance_list() {
    let bench = Bench::watching(&[DOCKER]);
    let repo = bench.web_stack("first page");
    let source = text(&bench.create_stack(DOCKER, &repo, &[])["id"]);
    bench.ok(["snapshot", &source, "--name", "base"]);

    assert_eq!(add(&bench, "base", "echo one >>marks; echo page one >www/index.html", &[]), 1);
    let record = bench.ok(["restore", "base", "--name", "one"]);
    assert_eq!((patches_of(&record), &record["patch_state"]), (done(&[1]), &json!("applied")));
    assert!(http_get(&url_of(&record)).contains("page one"));

    assert_eq!(add(&bench, "base", "echo two >>marks", &[]), 2);
    assert_eq!(read(&bench, "one", "marks").as_str(), "one\n");
    assert_eq!(bench.get("one")["patch_state"], json!("pending"));
    let record = sleep_and_wake(&bench, "one");
    assert_eq!(patches_of(&record), done(&[1, 2]));
    assert_eq!(read(&bench, "one", "marks"), "one\ntwo\n", "with the first one's effects intact");
    assert!(http_get(&url_of(&record)).contains("page one"));

    assert_eq!(add(&bench, "base", "echo three >>marks; echo no room >&2; exit 7", &[]), 3);
    assert_eq!(add(&bench, "base", "echo four >>marks", &[]), 4);
    let record = sleep_and_wake(&bench, "one");
    assert_eq!(patches_of(&record)[2].clone(), (3, "failed".into()));
    assert_eq!(record["patch_state"].clone(), json!("failed"));
    let failed = &record["applied_patches"][2];
    failed.has(json!({"exit_status": 7, "output": "no room\n"}));
    let error = text(&record["patch_error"]);
    assert!(error.contains("exit status 7") && error.contains("patches remove base 3"), "{error}");
    assert_eq!(read(&bench, "one", "marks"), "one\ntwo\nthree\n", "the fourth waits behind it");
    let status = bench.ok(["patches", "status", "base"]);
    let fourth = &status[3]["sandboxes"][0];
    fourth.has(json!({"state": "pending", "blocked": true}));

    bench.ok(["patches", "remove", "base", "3", "--yes"]);
    assert_eq!(listed(&bench), [1, 2, 4]);
    let record = sleep_and_wake(&bench, "one");
    record.has(json!({"patch_state": "applied", "patch_error": null}));
    assert_eq!(read(&bench, "one", "marks"), "one\ntwo\nthree\nfour\n");
    bench.run(["patches", "remove", "base", "3", "--yes"]).error("not_found");
    bench.ok(["patches", "remove", "base", "4", "--yes"]);
    assert_eq!(add(&bench, "base", "echo five >>marks", &[]), 5);

    // One level deep: what a snapshot of it has, it has; and nothing comes to what is based on that, or to the source.
    bench.ok(["snapshot", "one", "--name", "frozen"]);
    let third = bench.ok(["restore", "frozen", "--name", "third"]);
    assert_eq!((patches_of(&third), &third["patch_state"]), (vec![], &json!("none")));
    assert_eq!(read(&bench, "third", "marks"), "one\ntwo\nthree\nfour\n");
    sleep_and_wake(&bench, "third");
    sleep_and_wake(&bench, &source);
    assert_eq!(read(&bench, "third", "marks"), "one\ntwo\nthree\nfour\n");
    assert_eq!(bench.run(["exec", &source, "--", "test", "-e", "marks"]).status, Some(1));

    // All of them once more on what is made again from the snapshot.
    let record = bench.ok(["recreate", "one", "--yes"]);
    assert_eq!(patches_of(&record), done(&[1, 2, 5]));
    assert_eq!(read(&bench, "one", "marks"), "one\ntwo\nfive\n");

    for id in ["third", "one", &source] {
        bench.ok(["destroy", id, "--yes"]);
    }
    for name in ["frozen", "base"] {
        bench.ok(["snapshots", "delete", name, "--force", "--yes"]);
    }
    bench.assert_as_before();
}

#[test]
#[ignore = "needs the lab (tests/lab/up)"]
fn a_rollout_stops_at_its_canary_and_reaches_the_rest_once_that_is_well() {
    let bench = Bench::new();
    super::canary_base(&bench, DOCKER, "profile.sandbox-canary");
    for name in ["b1", "b2", "b3"] {
        bench.ok(["restore", "base", "--name", name]);
    }
    add(&bench, "base", "echo bad >>marks; exit 1", &[]);
    let ran = bench.run(["patches", "apply", "--all", "base", "--canary", "1"]);
    assert_eq!(ran.status, Some(8), "{ran:#?}");
    let items = ran.json();
    let told: Vec<(bool, bool)> =
        items.as_array().unwrap().iter().map(|i| (i["ok"] == true, i["canary"] == true)).collect();
    assert_eq!(told, [(false, true), (false, false), (false, false)], "{items:#}");
    let marks =
        |name: &str| bench.run(["exec", name, "--", "cat", "marks"]).json()["stdout"].clone();
    assert_eq!([marks("b1"), marks("b2"), marks("b3")], ["bad\n", "", ""]);
    bench.ok(["patches", "remove", "base", "1", "--yes"]);
    add(&bench, "base", "echo good >>marks", &[]);
    bench.ok(["patches", "apply", "--all", "base", "--canary", "1"]);
    assert_eq!([marks("b1"), marks("b2"), marks("b3")], ["bad\ngood\n", "good\n", "good\n"]);
    bench.ok(["snapshots", "delete", "base", "--force", "--yes"]);
}
