//! Copies on further hosts: what arrives is what was sent, or nothing.

use std::fs;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::archives::source::{archive, assert_whole, folder, replicas, sha256_inside, snapshot};
use crate::lab::{Bench, DOCKER, PODMAN, text, wait_until};
use crate::support::json_assertions::JsonAssertions as _;

/// An account of Docker's host that is not root.
const DEV: &str = "sandboxer01-dev";
/// Podman's host by another name.
const PODMAN_TOO: &str = "coulombcore-new";

fn record(bench: &Bench) -> Value {
    bench.ok(["snapshots", "get", "base"])
}

#[test]
#[ignore = "needs the lab (tests/lab/up)"]
fn a_copy_is_the_same_tar_however_it_is_compressed() {
    let bench = Bench::with(&[DEV]);
    let before = [DOCKER, PODMAN, DEV].map(|host| bench.snapshot(host));
    let source = snapshot(&bench, DOCKER, "copy-source");
    let id = text(&source["id"]);

    // To a host without zstd, and to one with it.
    bench
        .ok(["snapshots", "copy", "base", "--to", PODMAN])
        .has(json!({"replicas.1.host": PODMAN, "replicas.1.format": "tar.gz"}));
    let copied = bench.ok(["snapshots", "copy", "base", "--to", DEV]);
    copied.has(json!({"replicas.2.format": source["format"], "operation": null}));
    for replica in copied["replicas"].as_array().unwrap() {
        let host = text(&replica["host"]);
        let shelf = folder(&bench, &host, &id);
        let file = archive(&bench, &host, &json!({"id": id, "format": replica["format"]}));
        let found = fs::metadata(&file).unwrap().len();
        assert_eq!(found, replica["bytes"].as_u64().unwrap(), "{replica:#}");
        assert_eq!(sha256_inside(&file), text(&source["sha256"]), "{host}");
        let mut names: Vec<_> =
            fs::read_dir(&shelf).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        names.sort();
        assert_eq!(names.len(), 2, "{names:?}");
        let manifest: Value =
            serde_json::from_slice(&fs::read(shelf.join("manifest.json")).unwrap()).unwrap();
        manifest
            .has(json!({"snapshot.format": replica["format"], "snapshot.bytes": replica["bytes"]}));
    }

    // There is nothing left to do.
    let again = bench.ok(["snapshots", "copy", "base", "--to", DEV]);
    assert_eq!(again["replicas"].as_array().unwrap().len(), 3);
    assert_eq!(again["revision"], copied["revision"]);
    bench.ok(["snapshots", "verify", "base"]);
    let kinds: Vec<String> = bench.event_kinds("copy-source");
    assert_eq!(kinds.iter().filter(|kind| *kind == "snapshot.copied").count(), 2, "{kinds:?}");

    // What is wrong with a copy is told, and where.
    let gz = folder(&bench, PODMAN, &id).join("archive.tar.gz");
    let whole = fs::read(&gz).unwrap();
    fs::write(&gz, &whole[..1000]).unwrap();
    bench.refused(["snapshots", "verify", "base"], "operation_failed").says(PODMAN);
    fs::write(&gz, &whole).unwrap();

    // One deletion takes all of them away.
    bench.clear();
    for (host, before) in [DOCKER, PODMAN, DEV].iter().zip(&before) {
        bench.assert_unchanged(host, before);
    }
}

#[test]
#[ignore = "needs the lab (tests/lab/up)"]
fn a_copy_can_be_restored_where_it_is_and_brings_back_what_is_lost() {
    let bench = Bench::watching(&[DOCKER, PODMAN]);
    let source = snapshot(&bench, DOCKER, "there-source");
    bench.ok(["snapshots", "copy", "base", "--to", PODMAN]);
    bench.ok(["destroy", "there-source"]);
    let there = bench.ok(["restore", "base", "--host", PODMAN, "--name", "there"]);
    assert_eq!(there["host"], PODMAN);
    assert_whole(&bench, &text(&there["id"]));

    // Somebody empties the folder on the snapshot's own host.
    let own = folder(&bench, DOCKER, &text(&source["id"]));
    fs::remove_file(own.join("manifest.json")).unwrap();
    bench.refused(["restore", "base", "--name", "here"], "operation_failed");
    let brought = bench.ok(["snapshots", "copy", "base", "--to", DOCKER]);
    assert_eq!(brought["host"], DOCKER);
    assert_eq!(replicas(&brought), [format!("{DOCKER} ready"), format!("{PODMAN} ready")]);
    bench.ok(["snapshots", "verify", "base"]);
    let here = bench.ok(["restore", "base", "--name", "back"]);
    assert_eq!(here["host"], DOCKER);
    assert_whole(&bench, &text(&here["id"]));
    bench.clear();
    bench.assert_as_before();
}

#[test]
#[ignore = "needs the lab (tests/lab/up)"]
fn a_host_by_another_name_uses_the_archive_where_it_is() {
    let bench = Bench::with(&[PODMAN_TOO]).and_watches(&[PODMAN]);
    let source = snapshot(&bench, PODMAN, "alias-source");
    let shelf = folder(&bench, PODMAN, &text(&source["id"]));
    let error = bench.refused(["snapshots", "copy", "base", "--to", PODMAN_TOO], "invalid_input");
    error.says("another name of coulombcore");
    let there = bench.ok(["restore", "base", "--host", PODMAN_TOO, "--name", "there"]);
    assert_eq!(there["host"], PODMAN_TOO);
    assert_whole(&bench, &text(&there["id"]));
    bench.ok(["recreate", "there", "--yes"]);
    let after = record(&bench);
    assert_eq!(replicas(&after), [format!("{PODMAN} ready")], "{after:#}");
    let mut names: Vec<_> =
        fs::read_dir(&shelf).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    names.sort();
    assert_eq!(names, [format!("archive.{}", text(&source["format"])).as_str(), "manifest.json"]);
    bench.ok(["snapshots", "verify", "base"]);
    bench.clear();
    bench.assert_as_before();
}

#[test]
#[ignore = "needs the lab (tests/lab/up)"]
fn a_copy_that_comes_to_nothing_leaves_nothing() {
    let bench = Bench::with(&[DEV]);
    let source = snapshot(&bench, DOCKER, "fail-source");
    // The source stays: the account's engine is the same one.
    let before = [PODMAN, DEV].map(|host| bench.snapshot(host));
    let id = text(&source["id"]);
    bench.run(["snapshots", "copy", "base", "--to", "no-such-host"]).error("host_unreachable");
    let there = bench.ok(["snapshots", "copy", "base", "--to", DOCKER]);
    assert_eq!(there["revision"], source["revision"], "nothing to do");

    // The source is not what it was: seen on the way, however it is compressed there.
    let file = archive(&bench, DOCKER, &source);
    let whole = fs::read(&file).unwrap();
    let mut flipped = whole.clone();
    let middle = flipped.len() / 2;
    flipped[middle] ^= 1;
    fs::write(&file, &flipped).unwrap();
    for host in [PODMAN, DEV] {
        bench.run(["snapshots", "copy", "base", "--to", host]).error("operation_failed");
    }
    fs::write(&file, &whole).unwrap();

    // Somebody else has something of that name there.
    let theirs = folder(&bench, PODMAN, &id);
    fs::create_dir_all(&theirs).unwrap();
    fs::write(
        theirs.join("manifest.json"),
        "{\n  \"id\": \"x\",\n  \"owner\": \"y\",\n  \"z\": 0\n}\n",
    )
    .unwrap();
    bench.run(["snapshots", "copy", "base", "--to", PODMAN]).error("conflict");
    assert!(theirs.join("manifest.json").exists());
    fs::remove_dir_all(theirs.parent().unwrap()).unwrap();

    let after = record(&bench);
    assert_eq!(after["state"], "ready", "{after:#}");
    assert_eq!(replicas(&after), [format!("{DOCKER} ready")], "{after:#}");
    assert_eq!(bench.ok(["recover"]), json!([]));
    for (host, before) in [PODMAN, DEV].iter().zip(&before) {
        bench.assert_unchanged(host, before);
    }
    bench.clear();
}

#[test]
#[ignore = "needs the lab (tests/lab/up)"]
fn a_copy_is_called_off_at_once_from_another_process() {
    let bench = Bench::watching(&[PODMAN]);
    let source = snapshot(&bench, DOCKER, "cancel-source");
    bench.ok(["exec", "cancel-source", "--", "sh", "-c", "head -c 200000000 /dev/urandom >much"]);
    bench.ok(["snapshots", "delete", &text(&source["id"])]);
    let source = bench.ok(["snapshot", "cancel-source", "--name", "base"]);
    let copying = bench.start(["snapshots", "copy", "base", "--to", PODMAN]);
    let part = folder(&bench, PODMAN, &text(&source["id"])).join("archive.tar.gz.partial");
    wait_until("it has begun", || fs::metadata(&part).map_or(0, |part| part.len()) >= 1_000_000);
    let operation = text(&record(&bench)["operation"]["id"]);
    let began = Instant::now();
    bench.ok(["operations", "cancel", &operation]);
    copying.finish().error("cancelled");
    assert!(began.elapsed() < Duration::from_secs(20), "{:?}", began.elapsed());
    let after = record(&bench);
    assert_eq!(after["operation"], Value::Null, "{after:#}");
    assert_eq!(replicas(&after), [format!("{DOCKER} ready")], "{after:#}");
    bench.assert_as_before();
    bench.clear();
}
