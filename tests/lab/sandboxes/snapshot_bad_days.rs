//! Bad days of snapshots: a full disk, a file that shrinks while it is read, very many files.

use std::fs;

use serde_json::json;

use crate::faults::{Halting, Tmpfs};
use crate::held::held;
use crate::lab::{Bench, DOCKER, Way, rooms, text};
use crate::sandboxes::broken::Sshd;
use crate::support::json_assertions::JsonAssertions as _;

/// A workspace alone on a small disk of a host like the Docker host.
fn on_small_disk(bench: &Bench, host: &Sshd, size: &str) -> (Tmpfs, std::path::PathBuf) {
    let disk = Tmpfs::mount(bench.path("small"), &format!("size={size}"));
    bench.add_host("small", &Way::to(DOCKER, host.port), &disk.path);
    let made = bench.ok(["create", "--host", "small", "--id", "source"]);
    (disk, std::path::PathBuf::from(text(&made["workdir"])).join("workspace"))
}

#[test]
#[ignore = "needs the lab (tests/lab/up)"]
fn a_full_disk_leaves_no_part_of_a_snapshot_or_restore() {
    let bench = Bench::new();
    let halting = Halting::new(&bench);
    let host = Sshd::start(&bench, "halting", &[("PATH", &halting.path())]);
    let (disk, workspace) = on_small_disk(&bench, &host, "24m");
    let kept = || fs::read_dir(disk.path.join("snapshots")).map_or(0, Iterator::count);
    fs::write(workspace.join("big"), noise(14 << 20)).unwrap();
    let error = bench.refused(["snapshot", "source", "--name", "early"], "operation_failed");
    let told = text(&error["message"]);
    assert!(told.contains("no room"), "refused before anything is written: {error:#}");
    assert_eq!(kept(), 0);
    // It fits when the archive is begun, and not any more in the middle.
    fs::write(workspace.join("big"), noise(10 << 20)).unwrap();
    halting.halt();
    let snapshot = bench.start(["snapshot", "source", "--name", "late"]);
    halting.wait();
    let hog = disk.fill();
    halting.go_on();
    snapshot.finish().error_with_hint("operation_failed");
    assert_eq!(kept(), 0, "no part of it stays");
    fs::remove_file(&hog).unwrap();
    assert_eq!(bench.get("source")["operation"], json!(null));

    bench.ok(["snapshot", "source", "--name", "whole"]);
    bench.refused(["restore", "whole", "--name", "too-much"], "operation_failed").says("no room");
    bench.ok(["destroy", "too-much"]);
    bench.ok(["snapshots", "delete", "whole"]);
    bench.ok(["destroy", "source"]);
    assert!(rooms(&disk.path).is_empty());
}

/// What compresses to nothing smaller.
fn noise(size: usize) -> Vec<u8> {
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state
    };
    (0..size / 8).flat_map(|_| next().to_le_bytes()).collect()
}

#[test]
#[ignore = "needs the lab (tests/lab/up)"]
fn a_file_that_shrinks_while_it_is_read_makes_a_fuzzy_snapshot() {
    let bench = Bench::new();
    let halting = Halting::new(&bench);
    let _host = Sshd::start(&bench, "halting", &[("PATH", &halting.path())]);
    let made = bench.ok(["create", "--host", "halting", "--id", "shrinks"]);
    let workspace = std::path::PathBuf::from(text(&made["workdir"])).join("workspace");
    let file = workspace.join("file");
    fs::write(&file, noise(64 << 20)).unwrap();
    halting.halt();
    let snapshot = bench.start(["snapshot", "shrinks", "--name", "torn"]);
    halting.wait();
    fs::File::options().write(true).open(&file).unwrap().set_len(1000).unwrap();
    halting.go_on();
    snapshot.finish().ok().has(json!({"state": "ready", "consistency": "fuzzy"}));
    bench.ok(["snapshots", "verify", "torn"]);
    assert_eq!(
        bench.ok(["restore", "torn", "--name", "back"])["state"],
        "ready",
        "what is listed can be restored"
    );
    bench.ok(["destroy", "back", "shrinks"]);
    bench.ok(["snapshots", "delete", "torn"]);
}

#[test]
#[ignore = "needs the lab (tests/lab/up)"]
fn very_many_small_files_and_none_at_all_come_back() {
    let bench = Bench::new();
    let made = bench.ok(["create", "--host", DOCKER, "--id", "many"]);
    let workspace = std::path::PathBuf::from(text(&made["workdir"])).join("workspace");
    bench.ok(["snapshot", "many", "--name", "empty"]);
    for folder in 0..100 {
        let folder = workspace.join(format!("{folder}"));
        fs::create_dir(&folder).unwrap();
        for file in 0..1000 {
            fs::write(folder.join(format!("{file}")), "").unwrap();
        }
    }
    let taken = bench.ok(["snapshot", "many", "--name", "full"]);
    assert_eq!(taken["files"], 100_101, "each of them, the folders, and the workspace");
    for (name, entries) in [("empty", 0), ("full", 100)] {
        let back = bench.ok(["restore", name, "--name", &format!("back-{name}")]);
        let there = std::path::PathBuf::from(text(&back["workdir"])).join("workspace");
        assert_eq!(fs::read_dir(there).unwrap().count(), entries, "{name}");
    }
    let differs = bench.ok(["snapshots", "diff", "full", "back-full"]);
    assert_eq!(
        [&differs["added"], &differs["removed"], &differs["changed"]],
        [0, 0, 0],
        "{differs:#}"
    );
    bench.ok(["destroy", "many", "back-empty", "back-full"]);
    bench.ok(["snapshots", "delete", "empty", "full"]);
}

#[test]
#[ignore = "needs the lab (tests/lab/up)"]
fn of_two_deletions_at_once_the_rule_leaves_the_last_snapshot() {
    let bench = Bench::new();
    bench.run_base(["create", "--id", "work", "--host", "local"]).ok();
    for name in ["one", "two"] {
        bench.ok(["snapshot", "work", "--name", name]);
    }
    // It has judged, and not begun yet.
    let (prune, gate) =
        held(&bench, "delete.judged", &["snapshots", "prune", "--keep", "1", "--yes"]);
    bench.ok(["snapshots", "delete", "two"]);
    gate.open();
    let item = prune.finish().ok()[0].clone();
    item.has(json!({
        "name": "one", "ok": false, "error": null,
        "reason": "kept, it is the newest of sandbox work",
    }));
    assert_eq!(bench.ok(["snapshots", "verify", "one"])["state"], "ready");
}
