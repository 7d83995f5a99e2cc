//! SIGKILL at every step of snapshot, restore and delete, and then `recover`: never a listed snapshot that cannot be
//! restored, never a source left paused, nothing on the host without a record.

use serde_json::{Value, json};

use crate::kills::{id_of, killed, recovered, words};
use crate::lab::{Bench, DOCKER, PODMAN, engine, on_host, text};

/// A stack with a volume, whose content is part of a snapshot.
const KEEPER: &str = r#"services:
  keeper:
    image: "localhost/sbx-lab:1"
    command: ["sh", "-c", "test -s /kept/first || date +%s%N >/kept/first; exec sleep 100000"]
    volumes: ["kept:/kept"]
    stop_signal: SIGKILL
volumes:
  kept: {}
"#;

/// Every step of a snapshot, in order.
const SNAPSHOT: [&str; 7] = [
    "snapshot.written",
    "snapshot.prepared",
    "snapshot.captured",
    "snapshot.sealed",
    "snapshot.made",
    "snapshot.ready",
    "snapshot.freed",
];

/// Every step of a restore.
const RESTORE: [&str; 9] = [
    "restore.requested",
    "create.provisioning",
    "restore.prepared",
    "restore.extracted",
    "restore.up",
    "create.provisioned",
    "create.started",
    "create.dated",
    "create.ready",
];

/// Every step of a deletion.
const DELETE: [&str; 3] = ["delete.deleting", "delete.removed", "delete.told"];

/// How the engine says that a sandbox's containers stand.
pub(crate) fn statuses(host: &str, id: &str) -> Vec<String> {
    let script = "$1 ps -a --filter label=com.docker.compose.project=sbx-$2 --format '{{.Status}}'";
    let said = on_host(host, &[script, engine(host), id]);
    said.lines().map(str::to_owned).collect()
}

fn source(bench: &Bench, host: &str, id: &str) {
    let repo = bench.stack("keeper", KEEPER);
    bench.create_stack(host, &repo, &["--id", id]);
}

/// Every snapshot that is listed as ready is restored, its sandbox looked at, and destroyed.
fn listed_ones_can_be_restored(bench: &Bench, kept: &str) -> usize {
    let listed = bench.run(["snapshots", "list", "--all"]).ok();
    let ready = |record: &&Value| record["state"] == "ready";
    let ready: Vec<String> = listed.as_array().unwrap().iter().filter(ready).map(|s| text(&s["id"])).collect();
    for id in &ready {
        let record = bench.run(["restore", id]).ok();
        assert_eq!(record["state"], "ready", "{record:#}");
        let sandbox = text(&record["id"]);
        let read = bench.run(["exec", &sandbox, "--service", "keeper", "--", "cat", "/kept/first"]).ok();
        assert_eq!(text(&read["stdout"]).trim(), kept, "the volume's content came along");
        bench.run(["destroy", &sandbox]).ok();
    }
    ready.len()
}

fn delete_all(bench: &Bench) {
    for record in bench.run(["snapshots", "list", "--all"]).ok().as_array().unwrap() {
        bench.run(["snapshots", "delete", &text(&record["id"])]).ok();
    }
}

#[test]
#[ignore = "needs the lab (tests/lab/up)"]
fn snapshots_that_are_killed_are_whole_or_gone_on_docker() {
    snapshots_that_are_killed_are_whole_or_gone(DOCKER);
}

#[test]
#[ignore = "needs the lab (tests/lab/up)"]
fn snapshots_that_are_killed_are_whole_or_gone_on_podman() {
    snapshots_that_are_killed_are_whole_or_gone(PODMAN);
}

fn snapshots_that_are_killed_are_whole_or_gone(host: &str) {
    let bench = Bench::new();
    let before = bench.snapshot(host);
    source(&bench, host, "snap-source");
    let kept =
        text(&bench.run(["exec", "snap-source", "--service", "keeper", "--", "cat", "/kept/first"]).ok()["stdout"]);
    for point in SNAPSHOT {
        killed(&bench, point, &words(&["snapshot", "snap-source", "--name", &id_of(point)]));
        let states = recovered(&bench);
        assert_eq!(states["snap-source"], "ready", "{point}");
        let stand = statuses(host, "snap-source");
        assert!(stand.len() == 1 && stand[0].starts_with("Up") && !stand[0].contains("Paused"), "{point}: {stand:?}");
    }
    // From the seal on it is whole, whoever lives to write that down.
    assert_eq!(listed_ones_can_be_restored(&bench, kept.trim()), 4);
    delete_all(&bench);
    bench.run(["destroy", "snap-source"]).ok();
    bench.assert_unchanged(host, &before);
}

#[test]
#[ignore = "needs the lab (tests/lab/up)"]
fn restores_that_are_killed_leave_nothing_on_docker() {
    restores_that_are_killed_leave_nothing(DOCKER);
}

#[test]
#[ignore = "needs the lab (tests/lab/up)"]
fn restores_that_are_killed_leave_nothing_on_podman() {
    restores_that_are_killed_leave_nothing(PODMAN);
}

fn restores_that_are_killed_leave_nothing(host: &str) {
    let bench = Bench::new();
    let before = bench.snapshot(host);
    source(&bench, host, "back-source");
    let kept =
        text(&bench.run(["exec", "back-source", "--service", "keeper", "--", "cat", "/kept/first"]).ok()["stdout"]);
    bench.run(["snapshot", "back-source", "--name", "base"]).ok();
    for point in RESTORE {
        killed(&bench, point, &words(&["restore", "base", "--name", &id_of(point)]));
    }
    recovered(&bench);
    for point in RESTORE {
        let wanted = if point == "create.ready" { "ready" } else { "destroyed" };
        assert_eq!(bench.get(&id_of(point))["state"], wanted, "{point}");
    }
    bench.run(["destroy", &id_of("create.ready")]).ok();
    assert_eq!(listed_ones_can_be_restored(&bench, kept.trim()), 1, "the snapshot is as it was");
    delete_all(&bench);
    bench.run(["destroy", "back-source"]).ok();
    bench.assert_unchanged(host, &before);
}

#[test]
#[ignore = "needs the lab (tests/lab/up)"]
fn deletions_that_are_killed_are_finished() {
    let bench = Bench::new();
    let before = bench.snapshot(DOCKER);
    source(&bench, DOCKER, "gone-source");
    for point in DELETE {
        bench.run(["snapshot", "gone-source", "--name", &id_of(point)]).ok();
        killed(&bench, point, &words(&["snapshots", "delete", &id_of(point)]));
        recovered(&bench);
    }
    assert_eq!(bench.run(["snapshots", "list", "--all"]).ok(), json!([]));
    bench.run(["destroy", "gone-source"]).ok();
    bench.assert_unchanged(DOCKER, &before);
}
