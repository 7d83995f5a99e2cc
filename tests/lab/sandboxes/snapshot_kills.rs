//! SIGKILL at every step of snapshot, restore and delete, and then `recover`: never a listed snapshot that cannot be
//! restored, never a source left paused, nothing on the host without a record.

use std::fs;
use std::time::Duration;

use serde_json::{Value, json};

use crate::held::held_and;
use crate::lab::{Bench, DOCKER, PODMAN, on_engine, text, wait_until};
use crate::points::each_point;
use crate::sandboxes::kills::id_of;
use crate::support::said::Said as _;

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
    let said = on_engine(host, &[script, id]);
    said.lines().map(str::to_owned).collect()
}

/// Whether this many containers are there, all of them run, and nothing holds them.
pub(crate) fn all_run(host: &str, id: &str, count: usize) -> bool {
    let stand = statuses(host, id);
    stand.len() == count && stand.iter().all(|one| one.starts_with("Up") && !one.contains("Paused"))
}

/// Makes a keeper; what its volume holds.
fn source(bench: &Bench, host: &str, id: &str) -> String {
    let repo = bench.stack("keeper", KEEPER);
    bench.create_stack(host, &repo, &["--id", id]);
    wait_for_first(bench, id);
    let read = bench.ok(["exec", id, "--service", "keeper", "--", "cat", "/kept/first"]);
    text(&read["stdout"]).trim().to_owned()
}

/// Waits until a keeper has written its file.
pub(crate) fn wait_for_first(bench: &Bench, id: &str) {
    let look = ["exec", id, "--service", "keeper", "--", "test", "-s", "/kept/first"];
    wait_until("the keeper has written", || bench.run(look).status == Some(0));
}

/// Every snapshot that is listed as ready is restored, its sandbox looked at, and destroyed.
fn listed_ones_can_be_restored(bench: &Bench, kept: &str) -> usize {
    let listed = bench.ok(["snapshots", "list", "--all"]);
    let ready = |record: &&Value| record["state"] == "ready";
    let ready: Vec<String> =
        listed.as_array().unwrap().iter().filter(ready).map(|s| text(&s["id"])).collect();
    for id in &ready {
        let record = bench.ok(["restore", id]);
        assert_eq!(record["state"], "ready", "{record:#}");
        let sandbox = text(&record["id"]);
        let read = bench.ok(["exec", &sandbox, "--service", "keeper", "--", "cat", "/kept/first"]);
        assert_eq!(text(&read["stdout"]).trim(), kept, "the volume's content came along");
        bench.ok(["destroy", &sandbox]);
    }
    ready.len()
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
    bench.killed(point, ["snapshot", &source_id, "--name", &id_of(point)]);
    let states = bench.recovered();
    assert_eq!(states[&source_id], "ready");
    assert!(all_run(host, &source_id, 1), "{:?}", statuses(host, &source_id));
    assert_eq!(listed_ones_can_be_restored(&bench, &kept), whole);
    bench.delete_snapshots();
    bench.ok(["destroy", &source_id]);
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
    bench.ok(["snapshot", &source_id, "--name", "base"]);
    let name = id_of(point);
    bench.killed(point, ["restore", "base", "--name", &name]);
    bench.recovered();
    let wanted = if point == "create.ready" { "ready" } else { "destroyed" };
    assert_eq!(bench.get(&name)["state"], wanted);
    if wanted == "ready" {
        bench.ok(["destroy", &name]);
    }
    // One in whose middle its archive was read.
    if point == "restore.extracted" {
        assert_eq!(listed_ones_can_be_restored(&bench, &kept), 1, "the snapshot is as it was");
    }
    bench.delete_snapshots();
    bench.ok(["destroy", &source_id]);
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
    bench.ok(["snapshot", &source_id, "--name", &id_of(point)]);
    bench.killed(point, ["snapshots", "delete", &id_of(point)]);
    bench.recovered();
    assert_eq!(bench.ok(["snapshots", "list", "--all"]), json!([]));
    bench.ok(["destroy", &source_id]);
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
    assert_eq!(bench.ok(["snapshots", "get", how])["state"], "creating", "nobody wrote it down");
    assert_eq!(bench.recovered()[&source_id], "ready");
    bench.ok(["snapshots", "get", how]).has(json!({"state": "failed", "replicas": []}));
    assert!(all_run(DOCKER, &source_id, 1), "{:?}", statuses(DOCKER, &source_id));
    assert!(!shelf.exists(), "nothing of it is on the host");
    bench.delete_snapshots();
    bench.ok(["destroy", &source_id]);
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
    bench.ok(["snapshot", &source_id, "--name", "base"]);
    let id = id_of(point);
    bench.killed(point, ["restore", "base", "--host", PODMAN, "--name", &id]);
    bench.recovered();
    assert_eq!(bench.get(&id)["state"], "destroyed");
    let record = bench.ok(["snapshots", "get", "base"]);
    record.has(json!({"state": "ready", "operation": null}));
    let copies: Vec<String> =
        record["replicas"].as_array().unwrap().iter().map(|copy| text(&copy["host"])).collect();
    assert_eq!(copies == [DOCKER, PODMAN], stays, "{record:#}");
    assert_eq!(bench.workspace_root(PODMAN).join("snapshots").exists(), stays);
    assert_eq!(statuses(PODMAN, &text(&bench.get(&id)["id"])), Vec::<String>::new());
    if point == "restore.copied" {
        bench.ok(["snapshots", "verify", "base"]);
        let back = bench.ok(["restore", "base", "--host", PODMAN, "--name", "back"]);
        assert_eq!(back["state"], "ready", "{back:#}");
        bench.ok(["destroy", "back"]);
    }
    bench.ok(["destroy", &source_id]);
    bench.delete_snapshots();
    bench.assert_unchanged(PODMAN, &before);
}
