//! SIGKILL at every step of create, recreate and destroy, and then `recover`: nothing on the host without a record, no
//! record stuck.

use crate::lab::{Bench, DOCKER, PODMAN, stack_args};
use crate::points::each_point;
use crate::sandboxes::rollback::containers;

pub(crate) fn id_of(point: &str) -> String {
    point.replace(['.', '_'], "-")
}

fn create(bench: &Bench, host: &str, id: &str) -> Vec<String> {
    let repo = bench.web_stack("x");
    stack_args("profile.compose-e2e", host, &repo, &["--id", id])
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
    let bench = Bench::watching(&[host]);
    let id = id_of(point);
    if point.starts_with("rollback.") {
        let broken =
            bench.stack("broken", "services:\n  web: {image: \"localhost/sbx-no-such-image:1\"}\n");
        let args = stack_args("profile.compose-e2e", host, &broken, &["--id", &id]);
        bench.killed(point, &args);
    } else {
        bench.killed(point, create(&bench, host, &id));
    }
    let states = bench.recovered();
    // The last one was ready when its process died: it is as it should be.
    let wanted = if point == "create.ready" { "ready" } else { "destroyed" };
    assert_eq!(states[&id], wanted);
    let kinds = bench.event_kinds(&id);
    assert_eq!(kinds.first().map(String::as_str), Some("sandbox.requested"));
    assert_eq!(kinds.last().unwrap(), &format!("sandbox.{wanted}"), "{kinds:?}");
    if wanted == "ready" {
        bench.ok(["destroy", &id]);
    }
    bench.assert_as_before();
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
    let bench = Bench::watching(&[host]);
    let id = id_of(point);
    bench.ok(create(&bench, host, &id));
    bench.killed(point, ["destroy", &id]);
    assert_eq!(bench.recovered()[&id], "destroyed");
    let kinds = bench.event_kinds(&id);
    assert_eq!(kinds.iter().filter(|kind| *kind == "sandbox.destroyed").count(), 1, "{kinds:?}");
    bench.assert_as_before();
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
    let bench = Bench::watching(&[host]);
    let id = format!("again-{}", id_of(point));
    bench.ok(create(&bench, host, &id));
    bench.killed(point, ["recreate", &id, "--yes"]);
    assert_eq!(bench.recovered()[&id], wanted);
    let there = usize::from(wanted == "ready");
    assert_eq!(containers(host, &id), there, "what is not ready is not there");
    let record = bench.get(&id);
    assert_eq!(record["reachability"].is_object(), wanted == "ready", "{record:#}");
    // One of each kind goes on.
    if ["recreate.begin", "compose.up"].contains(&point) {
        assert_eq!(bench.ok(["recreate", &id, "--yes"])["state"], "ready");
    }
    bench.ok(["destroy", &id]);
    bench.assert_as_before();
}
