//! Bad days of snapshots: a full disk, a file that shrinks while it is read, very many files.

use std::fs;

use serde_json::{Value, json};

use crate::faults::{Halting, Tmpfs};
use crate::held::held;
use crate::lab::{Bench, DOCKER, Way, rooms, text};
use crate::sandboxes::broken::Sshd;

/// A workspace alone on a small disk of a host like the Docker host.
fn on_small_disk(bench: &Bench, host: &Sshd, size: &str) -> (Tmpfs, std::path::PathBuf) {
    let disk = Tmpfs::mount(bench.path("small"), &format!("size={size}"));
    bench.add_host("small", &Way::to(DOCKER, host.port), &disk.path);
    let made = bench.run(["create", "--host", "small", "--id", "source"]).ok();
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
    let error =
        bench.run(["snapshot", "source", "--name", "early"]).error_with_hint("operation_failed");
    assert!(
        text(&error["message"]).contains("no room"),
        "refused before anything is written: {error:#}"
    );
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

    bench.run(["snapshot", "source", "--name", "whole"]).ok();
    let error =
        bench.run(["restore", "whole", "--name", "too-much"]).error_with_hint("operation_failed");
    assert!(text(&error["message"]).contains("no room"), "{error:#}");
    bench.run(["destroy", "too-much"]).ok();
    bench.run(["snapshots", "delete", "whole"]).ok();
    bench.run(["destroy", "source"]).ok();
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
    let made = bench.run(["create", "--host", "halting", "--id", "shrinks"]).ok();
    let workspace = std::path::PathBuf::from(text(&made["workdir"])).join("workspace");
    let file = workspace.join("file");
    fs::write(&file, noise(64 << 20)).unwrap();
    halting.halt();
    let snapshot = bench.start(["snapshot", "shrinks", "--name", "torn"]);
    halting.wait();
    fs::File::options().write(true).open(&file).unwrap().set_len(1000).unwrap();
    halting.go_on();
    let taken = snapshot.finish().ok();
    assert_eq!(
        (&taken["state"], &taken["consistency"]),
        (&json!("ready"), &json!("fuzzy")),
        "{taken:#}"
    );
    bench.run(["snapshots", "verify", "torn"]).ok();
    assert_eq!(
        bench.run(["restore", "torn", "--name", "back"]).ok()["state"],
        "ready",
        "what is listed can be restored"
    );
    bench.run(["destroy", "back", "shrinks"]).ok();
    bench.run(["snapshots", "delete", "torn"]).ok();
}

#[test]
#[ignore = "needs the lab (tests/lab/up)"]
fn very_many_small_files_and_none_at_all_come_back() {
    let bench = Bench::new();
    let made = bench.run(["create", "--host", DOCKER, "--id", "many"]).ok();
    let workspace = std::path::PathBuf::from(text(&made["workdir"])).join("workspace");
    bench.run(["snapshot", "many", "--name", "empty"]).ok();
    for folder in 0..100 {
        let folder = workspace.join(format!("{folder}"));
        fs::create_dir(&folder).unwrap();
        for file in 0..1000 {
            fs::write(folder.join(format!("{file}")), "").unwrap();
        }
    }
    let taken = bench.run(["snapshot", "many", "--name", "full"]).ok();
    assert_eq!(taken["files"], 100_101, "each of them, the folders, and the workspace");
    for (name, entries) in [("empty", 0), ("full", 100)] {
        let back = bench.run(["restore", name, "--name", &format!("back-{name}")]).ok();
        let there = std::path::PathBuf::from(text(&back["workdir"])).join("workspace");
        assert_eq!(fs::read_dir(there).unwrap().count(), entries, "{name}");
    }
    let differs = bench.run(["snapshots", "diff", "full", "back-full"]).ok();
    assert_eq!(
        [&differs["added"], &differs["removed"], &differs["changed"]],
        [0, 0, 0],
        "{differs:#}"
    );
    bench.run(["destroy", "many", "back-empty", "back-full"]).ok();
    bench.run(["snapshots", "delete", "empty", "full"]).ok();
}

#[test]
#[ignore = "needs the lab (tests/lab/up)"]
fn of_two_deletions_at_once_the_rule_leaves_the_last_snapshot() {
    let bench = Bench::new();
    bench.run_base(["create", "--id", "work", "--host", "local"]).ok();
    for name in ["one", "two"] {
        bench.run(["snapshot", "work", "--name", name]).ok();
    }
    // It has judged, and not begun yet.
    let (prune, gate) =
        held(&bench, "delete.judged", &["snapshots", "prune", "--keep", "1", "--yes"]);
    bench.run(["snapshots", "delete", "two"]).ok();
    gate.open();
    let item = prune.finish().ok()[0].clone();
    assert_eq!(
        (&item["name"], &item["ok"], &item["error"]),
        (&"one".into(), &false.into(), &Value::Null),
        "{item:#}"
    );
    assert_eq!(item["reason"], "kept, it is the newest of sandbox work");
    assert_eq!(bench.run(["snapshots", "verify", "one"]).ok()["state"], "ready");
}
