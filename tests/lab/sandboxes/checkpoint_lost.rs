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
use crate::sandboxes::checkpoint_kills::statuses;

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

/// The only container runs, and nothing holds it.
fn runs(host: &str, id: &str) -> bool {
    let stand = statuses(host, id);
    stand.len() == 1 && stand[0].starts_with("Up") && !stand[0].contains("Paused")
}

/// A snapshot that is listed can be restored; one that came to nothing says so and is in nobody's way.
fn works_now(bench: &Bench, id: &str) {
    bench.run(["snapshot", id, "--name", "again"]).ok();
    bench.run(["snapshots", "verify", "again"]).ok();
    let record = bench.run(["restore", "again", "--name", "one"]).ok();
    let read = bench
        .run(["exec", &text(&record["id"]), "--service", "keeper", "--", "cat", "/kept/first"])
        .ok();
    assert_eq!(text(&read["stdout"]), "in the volume\n");
}

fn clear(bench: &Bench) {
    for record in bench.stored().iter().filter(|record| record["state"] != "destroyed") {
        bench.run(["destroy", &text(&record["id"])]).ok();
    }
    for record in bench.run(["snapshots", "list", "--all"]).ok().as_array().unwrap() {
        bench.run(["snapshots", "delete", &text(&record["id"])]).ok();
    }
}

/// The only snapshot that there is.
fn only_snapshot(bench: &Bench) -> Value {
    let listed = bench.run(["snapshots", "list", "--all"]).ok();
    assert_eq!(listed.as_array().unwrap().len(), 1, "{listed:#}");
    bench.run(["snapshots", "get", &text(&listed[0]["id"])]).ok()
}

#[test]
#[ignore = "needs the lab (tests/lab/up)"]
fn a_connection_that_breaks_under_a_snapshot_leaves_nothing_of_it() {
    let (bench, _host, halting, relay) = halting();
    let before = bench.snapshot(DOCKER);
    source(&bench, "relayed", "cut-source", 160);
    halting.halt();
    let snapshot = bench.start(["snapshot", "cut-source", "--name", "base"]);
    wait_until("it began", || largest(&shelf(&bench, DOCKER)) > 1 << 20);
    relay.cut();
    let error = snapshot.finish().error_with_hint("host_unreachable");
    halting.go_on();
    assert_eq!(
        (&error["details"]["kind"], &error["details"]["step"]),
        (&json!("lost"), &json!("archive")),
        "{error:#}"
    );
    assert_eq!(error["details"]["unremoved"], false, "{error:#}");
    let record = only_snapshot(&bench);
    assert_eq!(
        (&record["state"], &record["replicas"]),
        (&json!("failed"), &json!([])),
        "{record:#}"
    );
    assert_eq!(record["failure"]["step"], "archive", "{record:#}");
    assert!(runs(DOCKER, "cut-source"), "it is not paused: {:?}", statuses(DOCKER, "cut-source"));
    assert!(!shelf(&bench, DOCKER).exists(), "nothing of it stays");
    let source = bench.get("cut-source");
    assert_eq!(
        (&source["state"], &source["operation"]),
        (&json!("ready"), &Value::Null),
        "{source:#}"
    );
    assert_eq!(bench.run(["recover"]).ok(), json!([]));
    works_now(&bench, "cut-source");
    clear(&bench);
    bench.assert_unchanged(DOCKER, &before);
}

#[test]
#[ignore = "needs the lab (tests/lab/up)"]
fn a_host_that_is_gone_under_a_snapshot_clears_up_by_itself() {
    let (bench, host, halting, relay) = halting();
    let before = bench.snapshot(DOCKER);
    source(&bench, "relayed", "gone-source", 160);
    halting.halt();
    let snapshot = bench.start(["snapshot", "gone-source", "--name", "base"]);
    wait_until("it began", || largest(&shelf(&bench, DOCKER)) > 1 << 20);
    let port = relay.port;
    drop(relay);
    let error = snapshot.finish().error_with_hint("host_unreachable");
    assert_eq!(
        (&error["details"]["unremoved"], &error["details"]["paused"]),
        (&json!(true), &json!(true)),
        "{error:#}"
    );
    assert!(text(&error["hint"]).contains("recover"), "{error:#}");
    let record = only_snapshot(&bench);
    assert_eq!(
        (&record["state"], &record["replicas"][0]["state"]),
        (&json!("failed"), &json!("removing")),
        "{record:#}"
    );
    // Nobody comes back to it: the host notices.
    let until = Instant::now() + BY_ITSELF;
    while !runs(DOCKER, "gone-source") || shelf(&bench, DOCKER).exists() {
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
    assert_eq!(bench.run(["recover"]).ok()[0]["ok"], true);
    let record = only_snapshot(&bench);
    assert_eq!(
        (&record["state"], &record["replicas"]),
        (&json!("failed"), &json!([])),
        "{record:#}"
    );
    assert_eq!(bench.run(["recover"]).ok(), json!([]), "a second one has nothing to do");
    works_now(&bench, "gone-source");
    clear(&bench);
    bench.assert_unchanged(DOCKER, &before);
}

#[test]
#[ignore = "needs the lab (tests/lab/up)"]
fn a_host_that_is_lost_under_a_restore_has_no_part_of_it() {
    let (bench, host, halting, relay) = halting();
    let before = bench.snapshot(DOCKER);
    source(&bench, "relayed", "lost-source", 128);
    bench.run(["snapshot", "lost-source", "--name", "base"]).ok();
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
    assert_eq!(
        (&error["details"]["kind"], &error["details"]["step"]),
        (&json!("lost"), &json!("extract")),
        "{error:#}"
    );
    assert_eq!(error["details"]["leftovers"], json!([]), "{error:#}");
    assert_eq!(bench.get(&id)["state"], "failed");
    assert!(!root.join(format!("sbx-{id}")).exists());
    // And for good.
    let (restore, id) = start("gone");
    let port = relay.port;
    drop(relay);
    restore.finish().error_with_hint("host_unreachable");
    halting.go_on();
    let record = bench.get(&id);
    assert_eq!(
        (&record["state"], record["leftovers"].as_array().map(Vec::len)),
        (&json!("failed"), Some(1)),
        "{record:#}"
    );
    let _relay = back(host.port, port);
    bench.run(["destroy", &id]).ok();
    assert!(!root.join(format!("sbx-{id}")).exists());
    // The snapshot is as it was.
    bench.run(["snapshots", "verify", "base"]).ok();
    bench.run(["restore", "base", "--name", "whole"]).ok();
    clear(&bench);
    bench.assert_unchanged(DOCKER, &before);
}

#[test]
#[ignore = "needs the lab (tests/lab/up)"]
fn a_copy_whose_target_is_lost_leaves_nothing_there() {
    let (relay, bench) = relayed(PODMAN);
    let before = bench.snapshot(PODMAN);
    source(&bench, DOCKER, "target-source", 48);
    bench.run(["snapshot", "target-source", "--name", "base"]).ok();
    let copy = || {
        let copying = bench.start(["snapshots", "copy", "base", "--to", "relayed"]);
        wait_until("it began", || largest(&shelf(&bench, PODMAN)) > 1 << 20);
        copying
    };
    let copying = copy();
    relay.cut();
    let error = copying.finish().error_with_hint("host_unreachable");
    assert_eq!(error["details"]["kind"], "lost", "{error:#}");
    let record = only_snapshot(&bench);
    let listed = record["replicas"].as_array().map(Vec::len);
    assert_eq!((&record["state"], listed), (&json!("ready"), Some(1)), "{record:#}");
    bench.assert_unchanged(PODMAN, &before);

    let copying = copy();
    let port = relay.port;
    drop(relay);
    let error = copying.finish().error_with_hint("host_unreachable");
    assert_eq!(error["details"]["unremoved"], true, "{error:#}");
    let record = only_snapshot(&bench);
    assert_eq!(
        (&record["replicas"][1]["state"], &record["replicas"][1]["host"]),
        (&json!("arriving"), &json!("relayed")),
        "{record:#}"
    );
    assert_eq!(bench.run(["recover"]).status, Some(5));
    let _relay = back(port_of(PODMAN), port);
    assert_eq!(bench.run(["recover"]).ok()[0]["ok"], true);
    bench.assert_unchanged(PODMAN, &before);
    let copied = bench.run(["snapshots", "copy", "base", "--to", "relayed"]).ok();
    assert_eq!(copied["replicas"][1]["host"], "relayed", "{copied:#}");
    bench.run(["snapshots", "verify", "base"]).ok();
    clear(&bench);
    bench.assert_unchanged(PODMAN, &before);
}

#[test]
#[ignore = "needs the lab (tests/lab/up)"]
fn a_copy_whose_source_is_lost_leaves_nothing_at_the_target() {
    let (relay, bench) = relayed(DOCKER);
    let before = bench.snapshot(PODMAN);
    source(&bench, "relayed", "from-source", 48);
    bench.run(["snapshot", "from-source", "--name", "base"]).ok();
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
    assert_eq!(bench.run(["recover"]).ok(), json!([]));
    bench.run(["snapshots", "copy", "base", "--to", PODMAN]).ok();
    clear(&bench);
    bench.assert_unchanged(PODMAN, &before);
}
