//! A disk that fills up while an archive is read or written: what could not be written down is no answer about the archive.

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use serde_json::json;

use crate::faults::Tmpfs;
use crate::held::held;
use crate::lab::{Bench, DOCKER, PODMAN, Way, port_of, text};
use crate::support::json_assertions::JsonAssertions as _;

/// Free space in bytes.
fn free(folder: &std::path::Path) -> usize {
    let said = Command::new("df").arg("-Pk").arg(folder).output().unwrap();
    let said = String::from_utf8(said.stdout).unwrap();
    said.lines().last().unwrap().split_whitespace().nth(3).unwrap().parse::<usize>().unwrap() * 1024
}

#[test]
#[ignore = "needs the lab (tests/lab/up)"]
fn a_disk_that_fills_during_a_restore_says_nothing_against_the_archive() {
    let bench = Bench::new();
    let disk = Tmpfs::mount(bench.path("tiny"), "size=32m");
    bench.add_host("tiny", &Way::to(DOCKER, port_of(DOCKER)), &disk.path);
    let made =
        bench.ok(["create", "--profile", "sandbox-canary", "--host", "tiny", "--name", "source"]);
    let random =
        Command::new("head").args(["-c", "6000000", "/dev/urandom"]).output().unwrap().stdout;
    fs::write(PathBuf::from(text(&made["workdir"])).join("workspace/random"), &random).unwrap();
    bench.ok(["snapshot", "source", "--name", "base"]);
    bench.ok(["destroy", "source"]);

    // Room for a third of it, and nothing then: neither for tar's words nor for the hash.
    let (restoring, gate) =
        held(&bench, "restore.prepared", &["restore", "base", "--name", "back", "--host", "tiny"]);
    let filler = disk.path.join("filler");
    fs::write(&filler, vec![0; free(&disk.path) - 2_000_000]).unwrap();
    gate.open();
    let error = restoring.finish().error_with_hint("operation_failed");
    assert_eq!(error["details"]["kind"], "full", "{error:#}");
    assert!(error["causes"].to_string().contains("No space left on device"), "{error:#}");
    bench.ok(["snapshots", "get", "base"]).has(json!({"replicas.0.state": "ready"}));

    fs::remove_file(&filler).unwrap();
    bench.ok(["snapshots", "verify", "base"]);
    let back = bench.ok(["restore", "base", "--name", "again", "--host", "tiny"]);
    assert!(
        fs::read(PathBuf::from(text(&back["workdir"])).join("workspace/random")).unwrap() == random
    );
    bench.ok(["destroy", "back", "again"]);
    bench.ok(["snapshots", "delete", "base"]);
}

/// What zstd finds again far behind, gzip writes anew: the copy is many times as large as the archive that it is made of.
#[test]
#[ignore = "needs the lab (tests/lab/up)"]
fn a_copy_that_is_compressed_anew_goes_only_where_it_has_room() {
    let bench = Bench::new();
    let disk = Tmpfs::mount(bench.path("tiny"), "size=6m");
    bench.add_host("tiny", &Way::to(PODMAN, port_of(PODMAN)), &disk.path);
    let made = bench
        .run(["create", "--profile", "sandbox-canary", "--host", DOCKER, "--name", "source"])
        .ok();
    let random =
        Command::new("head").args(["-c", "1000000", "/dev/urandom"]).output().unwrap().stdout;
    fs::write(PathBuf::from(text(&made["workdir"])).join("workspace/again"), random.repeat(8))
        .unwrap();
    let taken = bench.run(["snapshot", "source", "--name", "base"]).ok();
    assert_eq!(taken["format"], "tar.zst", "{taken:#}");
    assert!(taken["bytes"].as_u64().unwrap() < 2_000_000, "{taken:#}");
    let copy = bench.run(["snapshots", "copy", "base", "--to", "tiny"]);
    let error = copy.error_with_hint("operation_failed");
    assert!(error["causes"].to_string().contains("KiB are needed"), "{error:#}");
    assert!(!disk.path.join("snapshots").exists(), "nothing was begun");
    bench.run(["destroy", "source"]).ok();
    bench.run(["snapshots", "delete", "base"]).ok();
}
