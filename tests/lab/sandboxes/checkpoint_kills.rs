//! SIGKILL at every step of snapshot, restore and delete, and then `recover`: never a listed snapshot that cannot be
//! restored, never a source left paused, nothing on the host without a record.

use std::fs;
use std::time::Duration;

use serde_json::{Value, json};

use crate::held::held_and;
use crate::lab::{Bench, DOCKER, PODMAN, engine, on_host, text, wait_until};
use crate::points::each_point;
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

/// How the engine says that a sandbox's containers stand.
pub(crate) fn statuses(host: &str, id: &str) -> Vec<String> {
    let script = "$1 ps -a --filter label=com.docker.compose.project=sbx-$2 --format '{{.Status}}'";
    let said = on_host(host, &[script, engine(host), id]);
    said.lines().map(str::to_owned).collect()
}

/// Makes a keeper; what its volume holds.
fn source(bench: &Bench, host: &str, id: &str) -> String {
    let repo = bench.stack("keeper", KEEPER);
    bench.create_stack(host, &repo, &["--id", id]);
    wait_for_first(bench, id);
    let read = bench.run(["exec", id, "--service", "keeper", "--", "cat", "/kept/first"]).ok();
    text(&read["stdout"]).trim().to_owned()
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

// Every step of a snapshot, in order, and how many can be restored then: from the seal on it is whole, whoever lives to write
// that down. On podman those behind which its host stands otherwise.
each_point! {
    snapshots_that_are_killed_are_whole_or_gone_on_docker = a_killed_snapshot_is_whole_or_gone(DOCKER) {
        snapshot_written: "snapshot.written", 0;
        snapshot_prepared: "snapshot.prepared", 0;
        snapshot_captured: "snapshot.captured", 0;
        snapshot_sealed: "snapshot.sealed", 1;
        snapshot_made: "snapshot.made", 1;
        snapshot_ready: "snapshot.ready", 1;
        snapshot_freed: "snapshot.freed", 1;
    }
    snapshots_that_are_killed_are_whole_or_gone_on_podman = a_killed_snapshot_is_whole_or_gone(PODMAN) {
        snapshot_prepared: "snapshot.prepared", 0;
        snapshot_captured: "snapshot.captured", 0;
        snapshot_sealed: "snapshot.sealed", 1;
        snapshot_made: "snapshot.made", 1;
    }
}

fn a_killed_snapshot_is_whole_or_gone(host: &str, point: &str, whole: usize) {
    let bench = Bench::new();
    let source_id = format!("snap-{}", id_of(point));
    let before = bench.snapshot(host);
    let kept = source(&bench, host, &source_id);
    killed(&bench, point, &words(&["snapshot", &source_id, "--name", &id_of(point)]));
    let states = recovered(&bench);
    assert_eq!(states[&source_id], "ready");
    let stand = statuses(host, &source_id);
    assert!(
        stand.len() == 1 && stand[0].starts_with("Up") && !stand[0].contains("Paused"),
        "{stand:?}"
    );
    assert_eq!(listed_ones_can_be_restored(&bench, &kept), whole);
    delete_all(&bench);
    bench.run(["destroy", &source_id]).ok();
    bench.assert_unchanged(host, &before);
}

// Every step of a restore; on podman those behind which its host stands otherwise.
each_point! {
    restores_that_are_killed_leave_nothing_on_docker = a_killed_restore_leaves_nothing(DOCKER) {
        restore_requested: "restore.requested";
        create_provisioning: "create.provisioning";
        restore_prepared: "restore.prepared";
        restore_extracted: "restore.extracted";
        restore_up: "restore.up";
        create_provisioned: "create.provisioned";
        create_started: "create.started";
        create_patched: "create.patched";
        create_dated: "create.dated";
        create_ready: "create.ready";
    }
    restores_that_are_killed_leave_nothing_on_podman = a_killed_restore_leaves_nothing(PODMAN) {
        restore_prepared: "restore.prepared";
        restore_extracted: "restore.extracted";
        restore_up: "restore.up";
        create_started: "create.started";
        create_ready: "create.ready";
    }
}

fn a_killed_restore_leaves_nothing(host: &str, point: &str) {
    let bench = Bench::new();
    let source_id = format!("back-{}", id_of(point));
    let before = bench.snapshot(host);
    let kept = source(&bench, host, &source_id);
    bench.run(["snapshot", &source_id, "--name", "base"]).ok();
    let name = id_of(point);
    killed(&bench, point, &words(&["restore", "base", "--name", &name]));
    recovered(&bench);
    let wanted = if point == "create.ready" { "ready" } else { "destroyed" };
    assert_eq!(bench.get(&name)["state"], wanted);
    if wanted == "ready" {
        bench.run(["destroy", &name]).ok();
    }
    // One in whose middle its archive was read.
    if point == "restore.extracted" {
        assert_eq!(listed_ones_can_be_restored(&bench, &kept), 1, "the snapshot is as it was");
    }
    delete_all(&bench);
    bench.run(["destroy", &source_id]).ok();
    bench.assert_unchanged(host, &before);
}

each_point! {
    deletions_that_are_killed_are_finished = a_killed_deletion_is_finished() {
        delete_deleting: "delete.deleting";
        delete_removed: "delete.removed";
        delete_told: "delete.told";
    }
}

fn a_killed_deletion_is_finished(point: &str) {
    let bench = Bench::new();
    let source_id = format!("gone-{}", id_of(point));
    let before = bench.snapshot(DOCKER);
    source(&bench, DOCKER, &source_id);
    bench.run(["snapshot", &source_id, "--name", &id_of(point)]).ok();
    killed(&bench, point, &words(&["snapshots", "delete", &id_of(point)]));
    recovered(&bench);
    assert_eq!(bench.run(["snapshots", "list", "--all"]).ok(), json!([]));
    bench.run(["destroy", &source_id]).ok();
    bench.assert_unchanged(DOCKER, &before);
}

// A snapshot that comes to nothing clears up, and is killed when it has: `recover` writes down what became of it.
each_point! {
    snapshots_that_come_to_nothing_and_are_killed_leave_nothing = a_void_snapshot_leaves_nothing() {
        cancelled: "cancelled";
        failed: "failed";
    }
}

fn a_void_snapshot_leaves_nothing(how: &str) {
    let bench = Bench::new();
    let source_id = format!("void-{}", id_of(how));
    let before = bench.snapshot(DOCKER);
    source(&bench, DOCKER, &source_id);
    let shelf = bench.workspace_root(DOCKER).join("snapshots");
    let command = bench.command(["snapshot", &source_id, "--name", how]);
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
    assert_eq!(ran.status, None, "killed by a signal: {ran:#?}");
    assert_eq!(
        bench.run(["snapshots", "get", how]).ok()["state"],
        "creating",
        "nobody wrote it down"
    );
    assert_eq!(recovered(&bench)[&source_id], "ready");
    let record = bench.run(["snapshots", "get", how]).ok();
    assert_eq!(
        (&record["state"], &record["replicas"]),
        (&json!("failed"), &json!([])),
        "{record:#}"
    );
    let stand = statuses(DOCKER, &source_id);
    assert!(
        stand.len() == 1 && stand[0].starts_with("Up") && !stand[0].contains("Paused"),
        "{stand:?}"
    );
    assert!(!shelf.exists(), "nothing of it is on the host");
    delete_all(&bench);
    bench.run(["destroy", &source_id]).ok();
    bench.assert_unchanged(DOCKER, &before);
}

// A restore onto another host brings the archive there first: the copy is on the record or gone, and the sandbox is gone.
each_point! {
    restores_onto_another_host_that_are_killed_leave_a_whole_copy_or_none = a_killed_far_restore() {
        copy_received: "copy.received", false;
        copy_sealed: "copy.sealed", true;
        restore_copied: "restore.copied", true;
    }
}

fn a_killed_far_restore(point: &str, stays: bool) {
    let bench = Bench::new();
    let source_id = format!("far-{}", id_of(point));
    let before = bench.snapshot(PODMAN);
    source(&bench, DOCKER, &source_id);
    bench.run(["snapshot", &source_id, "--name", "base"]).ok();
    let id = id_of(point);
    killed(&bench, point, &words(&["restore", "base", "--host", PODMAN, "--name", &id]));
    recovered(&bench);
    assert_eq!(bench.get(&id)["state"], "destroyed");
    let record = bench.run(["snapshots", "get", "base"]).ok();
    assert_eq!(
        (&record["state"], &record["operation"]),
        (&json!("ready"), &Value::Null),
        "{record:#}"
    );
    let copies: Vec<String> =
        record["replicas"].as_array().unwrap().iter().map(|copy| text(&copy["host"])).collect();
    assert_eq!(copies == [DOCKER, PODMAN], stays, "{record:#}");
    assert_eq!(bench.workspace_root(PODMAN).join("snapshots").exists(), stays);
    assert_eq!(statuses(PODMAN, &text(&bench.get(&id)["id"])), Vec::<String>::new());
    if point == "restore.copied" {
        bench.run(["snapshots", "verify", "base"]).ok();
        let back = bench.run(["restore", "base", "--host", PODMAN, "--name", "back"]).ok();
        assert_eq!(back["state"], "ready", "{back:#}");
        bench.run(["destroy", "back"]).ok();
    }
    bench.run(["destroy", &source_id]).ok();
    delete_all(&bench);
    bench.assert_unchanged(PODMAN, &before);
}
