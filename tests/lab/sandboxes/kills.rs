//! SIGKILL at every step of create, recreate and destroy, and then `recover`: nothing on the host without a record, no
//! record stuck.

use crate::each_case::each_case;
use crate::lab::{Bench, DOCKER, PODMAN, stack_args};
use crate::sandboxes::rollback::{MISSING_IMAGE, containers};

pub(crate) fn id_of(point: &str) -> String {
    point.replace(['.', '_'], "-")
}

fn create(bench: &Bench, host: &str, id: &str) -> Vec<String> {
    let repo = bench.web_stack("x");
    stack_args("profile.compose-e2e", host, &repo, &["--id", id])
}

// Every step of an establishment and of a rollback, in order. On podman those behind which its host stands otherwise; the
// others are writings of the console.
each_case! {
    creates_that_are_killed_leave_nothing {
        on_docker: DOCKER, &[
            "create.requested",
            "create.provisioning",
            "compose.prepared",
            "compose.transferred",
            "compose.rendered",
            "compose.up",
            "create.provisioned",
            "create.started",
            "create.dated",
            "create.ready",
            "rollback.begin",
            "rollback.torn_down",
        ];
        on_podman: PODMAN, &[
            "compose.prepared",
            "compose.transferred",
            "compose.rendered",
            "compose.up",
            "create.started",
            "create.ready",
            "rollback.begin",
            "rollback.torn_down",
        ];
    }
}

fn creates_that_are_killed_leave_nothing(host: &str, points: &[&str]) {
    let bench = Bench::watching(&[host]);
    for point in points {
        let mut args = create(&bench, host, &id_of(point));
        if point.starts_with("rollback.") {
            let broken = bench.stack("broken", MISSING_IMAGE);
            args = stack_args("profile.compose-e2e", host, &broken, &["--id", &id_of(point)]);
        }
        bench.killed(point, args);
    }
    let states = bench.recovered();
    for point in points {
        let id = id_of(point);
        // The last one was ready when its process died: it is as it should be.
        let wanted = if *point == "create.ready" { "ready" } else { "destroyed" };
        assert_eq!(states[&id], wanted, "{point}");
        let kinds = bench.event_kinds(&id);
        assert_eq!(kinds.first().map(String::as_str), Some("sandbox.requested"), "{point}");
        assert_eq!(kinds.last().unwrap(), &format!("sandbox.{wanted}"), "{point}: {kinds:?}");
    }
    bench.clear();
    bench.assert_as_before();
}

// Every step of a removal; on podman those behind which its host stands otherwise.
each_case! {
    removals_that_are_killed_are_finished {
        on_docker: DOCKER, &[
            "destroy.destroying",
            "compose.torn_down",
            "destroy.torn_down",
            "destroy.destroyed",
        ];
        on_podman: PODMAN, &["destroy.destroying", "compose.torn_down", "destroy.torn_down"];
    }
}

fn removals_that_are_killed_are_finished(host: &str, points: &[&str]) {
    let bench = Bench::watching(&[host]);
    for point in points {
        bench.ok(create(&bench, host, &id_of(point)));
        bench.killed(point, ["destroy", &id_of(point)]);
    }
    let states = bench.recovered();
    for point in points {
        assert_eq!(states[&id_of(point)], "destroyed", "{point}");
        let kinds = bench.event_kinds(&id_of(point));
        let destroyed = kinds.iter().filter(|kind| *kind == "sandbox.destroyed").count();
        assert_eq!(destroyed, 1, "{point}: {kinds:?}");
    }
    bench.assert_as_before();
}

// Before anything is removed, and once all of it is there again, it is ready; in between it has failed. What a point leaves
// on a host is the same for `create.started` and `create.ready`.
each_case! {
    recreates_that_are_killed_are_ready_or_can_be_made_again {
        on_docker: DOCKER, &[
            ("recreate.begin", "ready"),
            ("recreate.torn_down", "failed"),
            ("compose.up", "failed"),
            ("create.started", "ready"),
            ("create.ready", "ready"),
        ];
        on_podman: PODMAN, &[
            ("recreate.begin", "ready"),
            ("recreate.torn_down", "failed"),
            ("compose.up", "failed"),
            ("create.started", "ready"),
        ];
    }
}

fn recreates_that_are_killed_are_ready_or_can_be_made_again(host: &str, points: &[(&str, &str)]) {
    let bench = Bench::watching(&[host]);
    bench.ok(create(&bench, host, "again"));
    for (point, wanted) in points {
        bench.killed(point, ["recreate", "again", "--yes"]);
        assert_eq!(bench.recovered()["again"], *wanted, "{point}");
        let there = usize::from(*wanted == "ready");
        assert_eq!(containers(host, "again"), there, "{point}: what is not ready is not there");
        let record = bench.get("again");
        assert_eq!(record["reachability"].is_object(), *wanted == "ready", "{point}: {record:#}");
        // One that was not touched yet goes on, and so does each that has failed.
        if *wanted == "failed" || *point == "recreate.begin" {
            assert_eq!(bench.ok(["recreate", "again", "--yes"])["state"], "ready", "{point}");
        }
    }
    bench.clear();
    bench.assert_as_before();
}
