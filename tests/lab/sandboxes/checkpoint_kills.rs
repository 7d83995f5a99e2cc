//! SIGKILL at every step of snapshot, restore and delete, and then `recover`: never a listed snapshot that cannot be
//! restored, never a source left paused, nothing on the host without a record.

use std::fs;
use std::time::Duration;

use serde_json::{Value, json};

use crate::held::held_and;
use crate::lab::{Bench, DOCKER, PODMAN, engine, on_host, text, wait_until};
use crate::sandboxes::kills::{id_of, killed, recovered, words};

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
const RESTORE: [&str; 10] = [
    "restore.requested",
    "create.provisioning",
    "restore.prepared",
    "restore.extracted",
    "restore.up",
    "create.provisioned",
    "create.started",
    "create.patched",
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
    wait_for_first(bench, id);
}

/// Waits until a keeper has written its file.
pub(crate) fn wait_for_first(bench: &Bench, id: &str) {
    let look = ["exec", id, "--service", "keeper", "--", "test", "-s", "/kept/first"];
    wait_until("the keeper has written", || bench.run(look).status == Some(0));
}

/// Every snapshot that is listed as ready is restored, its sandbox looked at, and destroyed.
fn listed_ones_can_be_restored(bench: &Bench, kept: &str) -> usize {
    let listed = bench.run(["snapshots", "list", "--all"]).ok();
    let ready = |record: &&Value| record["state"] == "ready";
    let ready: Vec<String> =
        listed.as_array().unwrap().iter().filter(ready).map(|s| text(&s["id"])).collect();
    for id in &ready {
        let record = bench.run(["restore", id]).ok();
        assert_eq!(record["state"], "ready", "{record:#}");
        let sandbox = text(&record["id"]);
        let read =
            bench.run(["exec", &sandbox, "--service", "keeper", "--", "cat", "/kept/first"]).ok();
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
    let kept = text(
        &bench.run(["exec", "snap-source", "--service", "keeper", "--", "cat", "/kept/first"]).ok()
            ["stdout"],
    );
    for point in SNAPSHOT {
        killed(&bench, point, &words(&["snapshot", "snap-source", "--name", &id_of(point)]));
        let states = recovered(&bench);
        assert_eq!(states["snap-source"], "ready", "{point}");
        let stand = statuses(host, "snap-source");
        assert!(
            stand.len() == 1 && stand[0].starts_with("Up") && !stand[0].contains("Paused"),
            "{point}: {stand:?}"
        );
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
    let kept = text(
        &bench.run(["exec", "back-source", "--service", "keeper", "--", "cat", "/kept/first"]).ok()
            ["stdout"],
    );
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

/// One that comes to nothing clears up, and is killed when it has: `recover` writes down what became of it.
#[test]
#[ignore = "needs the lab (tests/lab/up)"]
fn snapshots_that_come_to_nothing_and_are_killed_leave_nothing() {
    let bench = Bench::new();
    let before = bench.snapshot(DOCKER);
    source(&bench, DOCKER, "void-source");
    let shelf = bench.workspace_root(DOCKER).join("snapshots");
    for how in ["cancelled", "failed"] {
        let command = bench.command(["snapshot", "void-source", "--name", how]);
        // Held before it is sealed, so that there is something to take away.
        let (snapshot, gate) =
            held_and(&bench, "snapshot.captured", ";snapshot.cleared=return", command);
        if how == "cancelled" {
            snapshot.signal("INT");
            // It has to hear of it before it goes on.
            std::thread::sleep(Duration::from_millis(500));
        } else {
            let folder = fs::read_dir(&shelf).unwrap().flatten().next().unwrap().path();
            fs::remove_file(folder.join("archive.tar.zst.partial")).unwrap();
        }
        gate.open();
        let ran = snapshot.finish();
        assert_eq!(ran.status, None, "{how}: killed by a signal: {ran:#?}");
        assert_eq!(
            bench.run(["snapshots", "get", how]).ok()["state"],
            "creating",
            "nobody wrote it down"
        );
        assert_eq!(recovered(&bench)["void-source"], "ready", "{how}");
        let record = bench.run(["snapshots", "get", how]).ok();
        assert_eq!(
            (&record["state"], &record["unremoved"]),
            (&json!("failed"), &json!(false)),
            "{record:#}"
        );
        let stand = statuses(DOCKER, "void-source");
        assert!(
            stand.len() == 1 && stand[0].starts_with("Up") && !stand[0].contains("Paused"),
            "{how}: {stand:?}"
        );
        assert!(!shelf.exists(), "{how}: nothing of it is on the host");
    }
    delete_all(&bench);
    bench.run(["destroy", "void-source"]).ok();
    bench.assert_unchanged(DOCKER, &before);
}

/// A restore onto another host brings the archive there first: the copy is on the record or gone, and the sandbox is gone.
#[test]
#[ignore = "needs the lab (tests/lab/up)"]
fn restores_onto_another_host_that_are_killed_leave_a_whole_copy_or_none() {
    let bench = Bench::new();
    let before = bench.snapshot(PODMAN);
    source(&bench, DOCKER, "far-source");
    for (point, stays) in
        [("copy.received", false), ("copy.sealed", true), ("restore.copied", true)]
    {
        delete_all(&bench);
        bench.run(["snapshot", "far-source", "--name", "base"]).ok();
        let id = id_of(point);
        killed(&bench, point, &words(&["restore", "base", "--host", PODMAN, "--name", &id]));
        recovered(&bench);
        assert_eq!(bench.get(&id)["state"], "destroyed", "{point}");
        let record = bench.run(["snapshots", "get", "base"]).ok();
        assert_eq!(
            (&record["state"], &record["operation"]),
            (&json!("ready"), &Value::Null),
            "{point}: {record:#}"
        );
        let copies: Vec<String> =
            record["replicas"].as_array().unwrap().iter().map(|copy| text(&copy["host"])).collect();
        assert_eq!(copies == [PODMAN], stays, "{point}: {record:#}");
        assert_eq!(bench.workspace_root(PODMAN).join("snapshots").exists(), stays, "{point}");
        assert_eq!(statuses(PODMAN, &text(&bench.get(&id)["id"])), Vec::<String>::new(), "{point}");
    }
    bench.run(["snapshots", "verify", "base"]).ok();
    let back = bench.run(["restore", "base", "--host", PODMAN, "--name", "back"]).ok();
    assert_eq!(back["state"], "ready", "{back:#}");
    bench.run(["destroy", "back", "far-source"]).ok();
    delete_all(&bench);
    bench.assert_unchanged(PODMAN, &before);
}
