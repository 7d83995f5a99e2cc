//! SIGKILL at every step of create, recreate and destroy, and then `recover`: nothing on the host without a record, no
//! record stuck.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::lab::{Bench, DOCKER, PODMAN, stack_args, text};
use crate::sandboxes::rollback::containers;

/// Every step of an establishment, in order.
const ESTABLISH: [&str; 9] = [
    "create.provisioning",
    "compose.prepared",
    "compose.transferred",
    "compose.rendered",
    "compose.up",
    "create.provisioned",
    "create.started",
    "create.dated",
    "create.ready",
];

/// Every step of a removal.
const REMOVE: [&str; 4] =
    ["destroy.destroying", "compose.torn_down", "destroy.torn_down", "destroy.destroyed"];

/// Every step of a rollback.
const ROLL_BACK: [&str; 2] = ["rollback.begin", "rollback.torn_down"];

pub(crate) fn id_of(point: &str) -> String {
    point.replace(['.', '_'], "-")
}

/// Runs a command that is killed at this point.
pub(crate) fn killed(bench: &Bench, point: &str, args: &[String]) {
    let ran = bench.run_failing(&format!("{point}=return"), args);
    assert_eq!(ran.status, None, "{point}: killed by a signal: {ran:#?}");
}

fn create(bench: &Bench, host: &str, id: &str) -> Vec<String> {
    let repo = bench.web_stack("x");
    stack_args("profile.compose-e2e", host, &repo, &["--id", id])
}

pub(crate) fn words(list: &[&str]) -> Vec<String> {
    list.iter().map(|word| (*word).to_owned()).collect()
}

/// Recovers, checks that nothing is stuck any more, and answers the states by id.
pub(crate) fn recovered(bench: &Bench) -> BTreeMap<String, String> {
    let items = bench.run(["recover"]).ok();
    for item in items.as_array().unwrap() {
        assert_eq!(item["ok"], true, "{item:#}");
    }
    assert_eq!(bench.run(["recover"]).ok(), json!([]), "a second one has nothing to do");
    let running = |operation: &&Value| operation["state"] == "running";
    let operations = bench.run(["operations", "list"]).ok();
    assert_eq!(operations.as_array().unwrap().iter().find(running), None);
    let records = bench.stored();
    for record in &records {
        assert_eq!(record["operation"], Value::Null, "{record:#}");
        assert_eq!(record["pending"], json!([]), "{record:#}");
    }
    records.iter().map(|record| (text(&record["id"]), text(&record["state"]))).collect()
}

#[test]
#[ignore = "needs the lab (tests/lab/up)"]
fn creates_that_are_killed_leave_nothing_on_docker() {
    creates_that_are_killed_leave_nothing(DOCKER);
}

#[test]
#[ignore = "needs the lab (tests/lab/up)"]
fn creates_that_are_killed_leave_nothing_on_podman() {
    creates_that_are_killed_leave_nothing(PODMAN);
}

fn creates_that_are_killed_leave_nothing(host: &str) {
    let bench = Bench::new();
    let before = bench.snapshot(host);
    let points: Vec<&str> = ["create.requested"].into_iter().chain(ESTABLISH).collect();
    for point in &points {
        killed(&bench, point, &create(&bench, host, &id_of(point)));
    }
    let broken =
        bench.stack("broken", "services:\n  web: {image: \"localhost/sbx-no-such-image:1\"}\n");
    for point in ROLL_BACK {
        killed(
            &bench,
            point,
            &stack_args("profile.compose-e2e", host, &broken, &["--id", &id_of(point)]),
        );
    }
    let states = recovered(&bench);
    for point in points.iter().chain(&ROLL_BACK) {
        // The last one was ready when its process died: it is as it should be.
        let wanted = if *point == "create.ready" { "ready" } else { "destroyed" };
        assert_eq!(states[&id_of(point)], wanted, "{point}");
        let kinds = bench.event_kinds(&id_of(point));
        assert_eq!(kinds.first().map(String::as_str), Some("sandbox.requested"), "{point}");
        assert_eq!(kinds.last().unwrap(), &format!("sandbox.{wanted}"), "{point}: {kinds:?}");
    }
    bench.run(["destroy", &id_of("create.ready")]).ok();
    bench.assert_unchanged(host, &before);
}

#[test]
#[ignore = "needs the lab (tests/lab/up)"]
fn removals_that_are_killed_are_finished_on_docker() {
    removals_that_are_killed_are_finished(DOCKER);
}

#[test]
#[ignore = "needs the lab (tests/lab/up)"]
fn removals_that_are_killed_are_finished_on_podman() {
    removals_that_are_killed_are_finished(PODMAN);
}

fn removals_that_are_killed_are_finished(host: &str) {
    let bench = Bench::new();
    let before = bench.snapshot(host);
    for point in REMOVE {
        bench.run(create(&bench, host, &id_of(point))).ok();
        killed(&bench, point, &words(&["destroy", &id_of(point)]));
    }
    let states = recovered(&bench);
    for point in REMOVE {
        assert_eq!(states[&id_of(point)], "destroyed", "{point}");
        let kinds = bench.event_kinds(&id_of(point));
        assert_eq!(
            kinds.iter().filter(|kind| *kind == "sandbox.destroyed").count(),
            1,
            "{point}: {kinds:?}"
        );
    }
    bench.assert_unchanged(host, &before);
}

#[test]
#[ignore = "needs the lab (tests/lab/up)"]
fn recreates_that_are_killed_are_ready_or_can_be_made_again_on_docker() {
    recreates_that_are_killed_are_ready_or_can_be_made_again(DOCKER);
}

#[test]
#[ignore = "needs the lab (tests/lab/up)"]
fn recreates_that_are_killed_are_ready_or_can_be_made_again_on_podman() {
    recreates_that_are_killed_are_ready_or_can_be_made_again(PODMAN);
}

fn recreates_that_are_killed_are_ready_or_can_be_made_again(host: &str) {
    let bench = Bench::new();
    let before = bench.snapshot(host);
    // Before anything is removed, and once all of it is there again, it is ready; in between it has failed.
    let points: [(&str, &str); 5] = [
        ("recreate.begin", "ready"),
        ("recreate.torn_down", "failed"),
        ("compose.up", "failed"),
        ("create.started", "ready"),
        ("create.ready", "ready"),
    ];
    for (point, _) in points {
        let id = format!("again-{}", id_of(point));
        bench.run(create(&bench, host, &id)).ok();
        killed(&bench, point, &words(&["recreate", &id, "--yes"]));
    }
    let states = recovered(&bench);
    for (point, wanted) in points {
        let id = format!("again-{}", id_of(point));
        assert_eq!(states[&id], wanted, "{point}");
        let there = usize::from(wanted == "ready");
        assert_eq!(containers(host, &id), there, "{point}: what is not ready is not there");
        let record = bench.get(&id);
        assert_eq!(record["reachability"].is_object(), wanted == "ready", "{point}: {record:#}");
    }
    // One of each kind goes on.
    for id in ["again-recreate-begin", "again-compose-up"] {
        assert_eq!(bench.run(["recreate", id, "--yes"]).ok()["state"], "ready", "{id}");
    }
    let all: Vec<String> = states.keys().cloned().collect();
    bench.run(["destroy".to_owned()].into_iter().chain(all)).ok();
    bench.assert_unchanged(host, &before);
}
