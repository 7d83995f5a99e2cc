//! A host that is lost in the middle of a snapshot, a restore or a copy: a clear error, nothing that is listed and cannot be
//! restored, nobody left paused, and nothing in part on the host: it takes that away itself, or `recover` does.

use std::fs;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::faults::{Halting, Relay};
use crate::lab::{Bench, DOCKER, PODMAN, Way, port_of, text, wait_until};
use crate::sandboxes::broken::Sshd;
use crate::sandboxes::snapshot_kills::{all_run, statuses};
use crate::support::json_assertions::JsonAssertions as _;

/// A container that would be paused, and a volume.
pub(crate) const KEEPER: &str = r#"services:
  keeper:
    image: "localhost/sbx-lab:1"
    command: ["sh", "-c", "echo in the volume >/kept/first; exec sleep 100000"]
    volumes: ["kept:/kept"]
    stop_signal: SIGKILL
volumes:
  kept: {}
"#;

/// What the host does by itself, it does within this: it takes some seconds, and the machine may be busy.
const BY_ITSELF: Duration = Duration::from_secs(30);

/// A relay before one of the lab's hosts, which is called `relayed` in the configuration. It comes first, so that it goes
/// last: the bench clears up through it.
///
/// What is copied over it stands still in the middle, and with it the copy: it is not over before the host is lost.
fn relayed(host: &'static str) -> (Relay, Bench) {
    let relay = Relay::start(port_of(host), &["--stall-after", "8000000"]);
    let bench = Bench::new();
    bench.add_host("relayed", &Way::to(host, relay.port), &bench.workspace_root(host));
    (relay, bench)
}

/// As [`relayed`] before a host like the Docker host, whose archives stand still in the middle where they are told to.
fn halting() -> (Bench, Sshd, Halting, Relay) {
    let bench = Bench::new();
    let halting = Halting::new(&bench);
    let host = Sshd::start(&bench, "halting", &[("PATH", &halting.path())]);
    let relay = Relay::start(host.port, &[]);
    bench.add_host("relayed", &Way::to(DOCKER, relay.port), &bench.workspace_root(DOCKER));
    (bench, host, halting, relay)
}

/// The host behind a port answers again, where it answered before.
fn back(target: u16, port: u16) -> Relay {
    Relay::start_at(port, target, &[])
}

/// A sandbox with so much in its workspace that a snapshot of it takes a while.
fn source(bench: &Bench, host: &str, id: &str, mebibytes: u64) {
    let repo = bench.stack("keeper", KEEPER);
    let made = bench.create_stack(host, &repo, &["--id", id]);
    let mut much =
        fs::File::create(PathBuf::from(text(&made["workdir"])).join("workspace/much")).unwrap();
    io::copy(&mut fs::File::open("/dev/urandom").unwrap().take(mebibytes << 20), &mut much)
        .unwrap();
}

/// The size of the largest file below a folder; 0 without one.
fn largest(folder: &Path) -> u64 {
    let size = |entry: fs::DirEntry| match entry.file_type() {
        Ok(kind) if kind.is_dir() => largest(&entry.path()),
        _ => entry.metadata().map_or(0, |meta| meta.len()),
    };
    fs::read_dir(folder).into_iter().flatten().flatten().map(size).max().unwrap_or(0)
}

fn shelf(bench: &Bench, host: &str) -> PathBuf {
    bench.workspace_root(host).join("snapshots")
}

/// A snapshot that is listed can be restored; one that came to nothing says so and is in nobody's way.
fn works_now(bench: &Bench, id: &str) {
    bench.ok(["snapshot", id, "--name", "again"]);
    bench.ok(["snapshots", "verify", "again"]);
    let record = bench.ok(["restore", "again", "--name", "one"]);
    let read =
        bench.ok(["exec", &text(&record["id"]), "--service", "keeper", "--", "cat", "/kept/first"]);
    assert_eq!(text(&read["stdout"]), "in the volume\n");
}

/// The only snapshot that there is.
fn only_snapshot(bench: &Bench) -> Value {
    let listed = bench.ok(["snapshots", "list", "--all"]);
    assert_eq!(listed.as_array().unwrap().len(), 1, "{listed:#}");
    bench.ok(["snapshots", "get", &text(&listed[0]["id"])])
}

#[test]
#[ignore = "needs the lab (tests/lab/up)"]
fn a_connection_that_breaks_under_a_snapshot_leaves_nothing_of_it() {
    let (bench, _host, halting, relay) = halting();
    let before = bench.snapshot(DOCKER);
    source(&bench, "relayed", "cut-source", 24);
    halting.halt();
    let snapshot = bench.start(["snapshot", "cut-source", "--name", "base"]);
    wait_until("it began", || largest(&shelf(&bench, DOCKER)) > 1 << 20);
    relay.cut();
    let error = snapshot.finish().error_with_hint("host_unreachable");
    halting.go_on();
    error.has(
        json!({"details.kind": "lost", "details.step": "archive", "details.unremoved": false}),
    );
    let record = only_snapshot(&bench);
    record.has(json!({"state": "failed", "replicas": [], "failure.step": "archive"}));
    assert!(
        all_run(DOCKER, "cut-source", 1),
        "it is not paused: {:?}",
        statuses(DOCKER, "cut-source")
    );
    assert!(!shelf(&bench, DOCKER).exists(), "nothing of it stays");
    let source = bench.get("cut-source");
    source.has(json!({"state": "ready", "operation": null}));
    assert_eq!(bench.ok(["recover"]), json!([]));
    works_now(&bench, "cut-source");
    bench.clear();
    bench.assert_unchanged(DOCKER, &before);
}

#[test]
#[ignore = "needs the lab (tests/lab/up)"]
fn a_host_that_is_gone_under_a_snapshot_clears_up_by_itself() {
    let (bench, host, halting, relay) = halting();
    let before = bench.snapshot(DOCKER);
    source(&bench, "relayed", "gone-source", 24);
    halting.halt();
    let snapshot = bench.start(["snapshot", "gone-source", "--name", "base"]);
    wait_until("it began", || largest(&shelf(&bench, DOCKER)) > 1 << 20);
    let port = relay.port;
    drop(relay);
    let error = snapshot.finish().error_with_hint("host_unreachable");
    error.has(json!({"details.unremoved": true, "details.paused": true})).hints("recover");
    let record = only_snapshot(&bench);
    record.has(json!({"state": "failed", "replicas.0.state": "removing"}));
    // Nobody comes back to it: the host notices.
    let until = Instant::now() + BY_ITSELF;
    while !all_run(DOCKER, "gone-source", 1) || shelf(&bench, DOCKER).exists() {
        assert!(
            Instant::now() < until,
            "it is not resumed, or its part stays: {:?}",
            statuses(DOCKER, "gone-source")
        );
    }
    halting.go_on();

    let away = bench.run(["recover"]);
    assert_eq!((away.status, &away.json()[0]["ok"]), (Some(5), &json!(false)), "{away:#?}");
    assert_eq!(away.json()[0]["error"]["code"], "host_unreachable", "{away:#?}");
    let _relay = back(host.port, port);
    assert_eq!(bench.ok(["recover"])[0]["ok"], true);
    let record = only_snapshot(&bench);
    record.has(json!({"state": "failed", "replicas": []}));
    assert_eq!(bench.ok(["recover"]), json!([]), "a second one has nothing to do");
    works_now(&bench, "gone-source");
    bench.clear();
    bench.assert_unchanged(DOCKER, &before);
}

#[test]
#[ignore = "needs the lab (tests/lab/up)"]
fn a_host_that_is_lost_under_a_restore_has_no_part_of_it() {
    let (bench, host, halting, relay) = halting();
    let before = bench.snapshot(DOCKER);
    source(&bench, "relayed", "lost-source", 24);
    bench.ok(["snapshot", "lost-source", "--name", "base"]);
    let root = bench.workspace_root(DOCKER);
    let unpacks = |id: &str| largest(&root.join(format!("sbx-{id}/workspace.partial"))) > 1 << 20;
    let start = |name: &str| {
        halting.halt();
        let restore = bench.start(["restore", "base", "--name", name]);
        let record = bench.wait_for_record(|record| record["name"] == name);
        let id = text(&record["id"]);
        wait_until("it began", || unpacks(&id));
        (restore, id)
    };
    // The connection alone.
    let (restore, id) = start("cut");
    relay.cut();
    let error = restore.finish().error_with_hint("host_unreachable");
    halting.go_on();
    error.has(json!({"details.kind": "lost", "details.step": "extract", "details.leftovers": []}));
    assert_eq!(bench.get(&id)["state"], "failed");
    assert!(!root.join(format!("sbx-{id}")).exists());
    // And for good.
    let (restore, id) = start("gone");
    let port = relay.port;
    drop(relay);
    restore.finish().error_with_hint("host_unreachable");
    halting.go_on();
    let record = bench.get(&id);
    assert_eq!(record["state"], json!("failed"), "{record:#}");
    assert_eq!(record["leftovers"].as_array().map(Vec::len), Some(1), "{record:#}");
    let _relay = back(host.port, port);
    bench.ok(["destroy", &id]);
    assert!(!root.join(format!("sbx-{id}")).exists());
    // The snapshot is as it was.
    bench.ok(["snapshots", "verify", "base"]);
    bench.ok(["restore", "base", "--name", "whole"]);
    bench.clear();
    bench.assert_unchanged(DOCKER, &before);
}

#[test]
#[ignore = "needs the lab (tests/lab/up)"]
fn a_copy_whose_target_is_lost_leaves_nothing_there() {
    let (relay, bench) = relayed(PODMAN);
    let before = bench.snapshot(PODMAN);
    source(&bench, DOCKER, "target-source", 24);
    bench.ok(["snapshot", "target-source", "--name", "base"]);
    let copy = || {
        let copying = bench.start(["snapshots", "copy", "base", "--to", "relayed"]);
        wait_until("it began", || largest(&shelf(&bench, PODMAN)) > 1 << 20);
        copying
    };
    let copying = copy();
    relay.cut();
    copying.finish().error_with_hint("host_unreachable").has(json!({"details.kind": "lost"}));
    let record = only_snapshot(&bench);
    let listed = record["replicas"].as_array().map(Vec::len);
    assert_eq!((&record["state"], listed), (&json!("ready"), Some(1)), "{record:#}");
    bench.assert_unchanged(PODMAN, &before);

    let copying = copy();
    let port = relay.port;
    drop(relay);
    copying.finish().error_with_hint("host_unreachable").has(json!({"details.unremoved": true}));
    let record = only_snapshot(&bench);
    record.has(json!({"replicas.1.state": "arriving", "replicas.1.host": "relayed"}));
    assert_eq!(bench.run(["recover"]).status, Some(5));
    let _relay = back(port_of(PODMAN), port);
    assert_eq!(bench.ok(["recover"])[0]["ok"], true);
    bench.assert_unchanged(PODMAN, &before);
    let told = bench.ok(["snapshots", "copy", "base", "--to", "relayed"]);
    told.has(json!({"replicas.1.host": "relayed"}));
    bench.ok(["snapshots", "verify", "base"]);
    bench.clear();
    bench.assert_unchanged(PODMAN, &before);
}

#[test]
#[ignore = "needs the lab (tests/lab/up)"]
fn a_copy_whose_source_is_lost_leaves_nothing_at_the_target() {
    let (relay, bench) = relayed(DOCKER);
    let before = bench.snapshot(PODMAN);
    source(&bench, "relayed", "from-source", 24);
    bench.ok(["snapshot", "from-source", "--name", "base"]);
    let copying = bench.start(["snapshots", "copy", "base", "--to", PODMAN]);
    wait_until("it began", || largest(&shelf(&bench, PODMAN)) > 1 << 20);
    let port = relay.port;
    drop(relay);
    let error = copying.finish().error_with_hint("host_unreachable");
    assert!(text(&error["message"]).contains("relayed"), "it says which of them: {error:#}");
    let record = only_snapshot(&bench);
    let listed = record["replicas"].as_array().map(Vec::len);
    assert_eq!((&record["state"], listed), (&json!("ready"), Some(1)), "{record:#}");
    bench.assert_unchanged(PODMAN, &before);
    let _relay = back(port_of(DOCKER), port);
    assert_eq!(bench.ok(["recover"]), json!([]));
    bench.ok(["snapshots", "copy", "base", "--to", PODMAN]);
    bench.clear();
    bench.assert_unchanged(PODMAN, &before);
}
