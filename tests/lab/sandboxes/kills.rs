//! SIGKILL at every step of create, recreate and destroy, and then `recover`: nothing on the host without a record, no
//! record stuck.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::lab::{Bench, DOCKER, PODMAN, stack_args, text};
use crate::points::each_point;
use crate::sandboxes::rollback::containers;

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

// Every step of an establishment and of a rollback, in order. On podman those behind which its host stands otherwise; the
// others are writings of the console.
each_point! {
    creates_that_are_killed_leave_nothing_on_docker = a_killed_create_leaves_nothing(DOCKER) {
        create_requested: "create.requested";
        create_provisioning: "create.provisioning";
        compose_prepared: "compose.prepared";
        compose_transferred: "compose.transferred";
        compose_rendered: "compose.rendered";
        compose_up: "compose.up";
        create_provisioned: "create.provisioned";
        create_started: "create.started";
        create_dated: "create.dated";
        create_ready: "create.ready";
        rollback_begin: "rollback.begin";
        rollback_torn_down: "rollback.torn_down";
    }
    creates_that_are_killed_leave_nothing_on_podman = a_killed_create_leaves_nothing(PODMAN) {
        compose_prepared: "compose.prepared";
        compose_transferred: "compose.transferred";
        compose_rendered: "compose.rendered";
        compose_up: "compose.up";
        create_started: "create.started";
        create_ready: "create.ready";
        rollback_begin: "rollback.begin";
        rollback_torn_down: "rollback.torn_down";
    }
}

fn a_killed_create_leaves_nothing(host: &str, point: &str) {
    let bench = Bench::new();
    let before = bench.snapshot(host);
    let id = id_of(point);
    if point.starts_with("rollback.") {
        let broken =
            bench.stack("broken", "services:\n  web: {image: \"localhost/sbx-no-such-image:1\"}\n");
        let args = stack_args("profile.compose-e2e", host, &broken, &["--id", &id]);
        killed(&bench, point, &args);
    } else {
        killed(&bench, point, &create(&bench, host, &id));
    }
    let states = recovered(&bench);
    // The last one was ready when its process died: it is as it should be.
    let wanted = if point == "create.ready" { "ready" } else { "destroyed" };
    assert_eq!(states[&id], wanted);
    let kinds = bench.event_kinds(&id);
    assert_eq!(kinds.first().map(String::as_str), Some("sandbox.requested"));
    assert_eq!(kinds.last().unwrap(), &format!("sandbox.{wanted}"), "{kinds:?}");
    if wanted == "ready" {
        bench.run(["destroy", &id]).ok();
    }
    bench.assert_unchanged(host, &before);
}

// Every step of a removal; on podman those behind which its host stands otherwise.
each_point! {
    removals_that_are_killed_are_finished_on_docker = a_killed_removal_is_finished(DOCKER) {
        destroy_destroying: "destroy.destroying";
        compose_torn_down: "compose.torn_down";
        destroy_torn_down: "destroy.torn_down";
        destroy_destroyed: "destroy.destroyed";
    }
    removals_that_are_killed_are_finished_on_podman = a_killed_removal_is_finished(PODMAN) {
        destroy_destroying: "destroy.destroying";
        compose_torn_down: "compose.torn_down";
        destroy_torn_down: "destroy.torn_down";
    }
}

fn a_killed_removal_is_finished(host: &str, point: &str) {
    let bench = Bench::new();
    let before = bench.snapshot(host);
    let id = id_of(point);
    bench.run(create(&bench, host, &id)).ok();
    killed(&bench, point, &words(&["destroy", &id]));
    assert_eq!(recovered(&bench)[&id], "destroyed");
    let kinds = bench.event_kinds(&id);
    assert_eq!(kinds.iter().filter(|kind| *kind == "sandbox.destroyed").count(), 1, "{kinds:?}");
    bench.assert_unchanged(host, &before);
}

// Before anything is removed, and once all of it is there again, it is ready; in between it has failed. What a point leaves
// on a host is the same for `create.started` and `create.ready`.
each_point! {
    recreates_that_are_killed_are_ready_or_can_be_made_again_on_docker = a_killed_recreate(DOCKER) {
        recreate_begin: "recreate.begin", "ready";
        recreate_torn_down: "recreate.torn_down", "failed";
        compose_up: "compose.up", "failed";
        create_started: "create.started", "ready";
        create_ready: "create.ready", "ready";
    }
    recreates_that_are_killed_are_ready_or_can_be_made_again_on_podman = a_killed_recreate(PODMAN) {
        recreate_begin: "recreate.begin", "ready";
        recreate_torn_down: "recreate.torn_down", "failed";
        compose_up: "compose.up", "failed";
        create_started: "create.started", "ready";
    }
}

fn a_killed_recreate(host: &str, point: &str, wanted: &str) {
    let bench = Bench::new();
    let before = bench.snapshot(host);
    let id = format!("again-{}", id_of(point));
    bench.run(create(&bench, host, &id)).ok();
    killed(&bench, point, &words(&["recreate", &id, "--yes"]));
    assert_eq!(recovered(&bench)[&id], wanted);
    let there = usize::from(wanted == "ready");
    assert_eq!(containers(host, &id), there, "what is not ready is not there");
    let record = bench.get(&id);
    assert_eq!(record["reachability"].is_object(), wanted == "ready", "{record:#}");
    // One of each kind goes on.
    if ["recreate.begin", "compose.up"].contains(&point) {
        assert_eq!(bench.run(["recreate", &id, "--yes"]).ok()["state"], "ready");
    }
    bench.run(["destroy", &id]).ok();
    bench.assert_unchanged(host, &before);
}
