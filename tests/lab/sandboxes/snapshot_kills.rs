//! SIGKILL at every step of snapshot, restore and delete, and then `recover`: never a listed snapshot that cannot be
//! restored, never a source left paused, nothing on the host without a record. One source serves all points of a verb.

use std::fs;
use std::time::Duration;

use serde_json::{Value, json};

use crate::archives::source::folder;
use crate::each_case::each_case;
use crate::held::held_and;
use crate::lab::{Bench, DOCKER, PODMAN, on_engine, text, wait_until};
use crate::sandboxes::kills::id_of;
use crate::support::json_assertions::JsonAssertions as _;

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

/// Every snapshot that is listed as ready is restored, its sandbox looked at, and destroyed. The names of these snapshots.
fn listed_ones_can_be_restored(bench: &Bench, kept: &str) -> Vec<String> {
    let listed = bench.ok(["snapshots", "list", "--all"]);
    let ready = |record: &&Value| record["state"] == "ready";
    let mut names: Vec<String> =
        listed.as_array().unwrap().iter().filter(ready).map(|s| text(&s["name"])).collect();
    names.sort();
    for name in &names {
        let record = bench.ok(["restore", name]);
        assert_eq!(record["state"], "ready", "{name}: {record:#}");
        let sandbox = text(&record["id"]);
        let read = bench.ok(["exec", &sandbox, "--service", "keeper", "--", "cat", "/kept/first"]);
        assert_eq!(text(&read["stdout"]).trim(), kept, "{name}: the volume's content came along");
        bench.ok(["destroy", &sandbox]);
    }
    names
}

// Every step of a snapshot, in order; behind those of the second list it can be restored: from the seal on it is whole, whoever
// lives to write that down. On podman those behind which its host stands otherwise.
each_case! {
    snapshots_that_are_killed_are_whole_or_gone {
        on_docker: DOCKER,
            &["snapshot.written", "snapshot.prepared", "snapshot.captured"],
            &["snapshot.sealed", "snapshot.made", "snapshot.ready", "snapshot.freed"];
        on_podman: PODMAN,
            &["snapshot.prepared", "snapshot.captured"],
            &["snapshot.sealed", "snapshot.made"];
    }
}

fn snapshots_that_are_killed_are_whole_or_gone(host: &str, gone: &[&str], whole: &[&str]) {
    let bench = Bench::watching(&[host]);
    let kept = source(&bench, host, "snap-source");
    for point in gone.iter().chain(whole) {
        bench.killed(point, ["snapshot", "snap-source", "--name", &id_of(point)]);
        assert_eq!(bench.recovered()["snap-source"], "ready", "{point}");
        let stand = statuses(host, "snap-source");
        assert!(all_run(host, "snap-source", 1), "{point}: {stand:?}");
    }
    let mut names: Vec<String> = whole.iter().map(|point| id_of(point)).collect();
    names.sort();
    assert_eq!(listed_ones_can_be_restored(&bench, &kept), names);
    bench.clear();
    bench.assert_as_before();
}

// Every step of a restore; on podman those behind which its host stands otherwise.
each_case! {
    restores_that_are_killed_leave_nothing {
        on_docker: DOCKER, &[
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
        on_podman: PODMAN, &[
            "restore.prepared",
            "restore.extracted",
            "restore.up",
            "create.started",
            "create.ready",
        ];
    }
}

fn restores_that_are_killed_leave_nothing(host: &str, points: &[&str]) {
    let bench = Bench::watching(&[host]);
    let kept = source(&bench, host, "back-source");
    bench.ok(["snapshot", "back-source", "--name", "base"]);
    for point in points {
        bench.killed(point, ["restore", "base", "--name", &id_of(point)]);
    }
    bench.recovered();
    for point in points {
        let wanted = if *point == "create.ready" { "ready" } else { "destroyed" };
        assert_eq!(bench.get(&id_of(point))["state"], wanted, "{point}");
    }
    assert_eq!(listed_ones_can_be_restored(&bench, &kept), ["base"], "the snapshot is as it was");
    bench.clear();
    bench.assert_as_before();
}

#[test]
#[ignore = "needs the lab (tests/lab/up)"]
fn deletions_that_are_killed_are_finished() {
    let bench = Bench::watching(&[DOCKER]);
    bench.ok(["create", "--host", DOCKER, "--id", "gone-source"]);
    for point in ["delete.deleting", "delete.removed", "delete.told"] {
        bench.ok(["snapshot", "gone-source", "--name", &id_of(point)]);
        bench.killed(point, ["snapshots", "delete", &id_of(point)]);
    }
    bench.recovered();
    assert_eq!(bench.ok(["snapshots", "list", "--all"]), json!([]));
    bench.clear();
    bench.assert_as_before();
}

/// A snapshot that comes to nothing clears up, and is killed when it has: `recover` writes down what became of it.
#[test]
#[ignore = "needs the lab (tests/lab/up)"]
fn snapshots_that_come_to_nothing_and_are_killed_leave_nothing() {
    let bench = Bench::watching(&[DOCKER]);
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
        let record = bench.ok(["snapshots", "get", how]);
        assert_eq!(record["state"], "creating", "{how}: nobody wrote it down");
        assert_eq!(bench.recovered()["void-source"], "ready", "{how}");
        bench.ok(["snapshots", "get", how]).has(json!({"state": "failed", "replicas": []}));
        let stand = statuses(DOCKER, "void-source");
        assert!(all_run(DOCKER, "void-source", 1), "{how}: {stand:?}");
        assert!(!shelf.exists(), "{how}: nothing of it is on the host");
    }
    bench.clear();
    bench.assert_as_before();
}

/// A restore onto another host brings the archive there first: the copy is on the record or gone, and the sandbox is gone.
#[test]
#[ignore = "needs the lab (tests/lab/up)"]
fn restores_onto_another_host_that_are_killed_leave_a_whole_copy_or_none() {
    let points = [("copy.received", false), ("copy.sealed", true), ("restore.copied", true)];
    let base_of = |point: &str| format!("base-{}", id_of(point));
    let bench = Bench::watching(&[PODMAN]);
    source(&bench, DOCKER, "far-source");
    for (point, _) in points {
        let base = base_of(point);
        bench.ok(["snapshot", "far-source", "--name", &base]);
        bench.killed(point, ["restore", &base, "--host", PODMAN, "--name", &id_of(point)]);
    }
    bench.recovered();
    for (point, stays) in points {
        let sandbox = bench.get(&id_of(point));
        assert_eq!(sandbox["state"], "destroyed", "{point}");
        assert_eq!(statuses(PODMAN, &text(&sandbox["id"])), Vec::<String>::new(), "{point}");
        let record = bench.ok(["snapshots", "get", &base_of(point)]);
        record.has(json!({"state": "ready", "operation": null}));
        let copies = record["replicas"].as_array().unwrap().iter();
        let copies: Vec<String> = copies.map(|copy| text(&copy["host"])).collect();
        assert_eq!(copies == [DOCKER, PODMAN], stays, "{point}: {record:#}");
        assert_eq!(folder(&bench, PODMAN, &text(&record["id"])).exists(), stays, "{point}");
    }
    let base = base_of("restore.copied");
    bench.ok(["snapshots", "verify", &base]);
    let back = bench.ok(["restore", &base, "--host", PODMAN, "--name", "back"]);
    assert_eq!(back["state"], "ready", "{back:#}");
    bench.clear();
    bench.assert_as_before();
}
