//! Names that lists take for something else, and paths that are too long to be made again: what is in an archive can be
//! restored, and what is not in it is told.

use std::fs;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{FileTypeExt as _, MetadataExt as _, chown};
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, SystemTime};

use serde_json::{Value, json};

use crate::each_case::each_case;
use crate::lab::{Bench, text};
use crate::snapshots::place::{KEEPER, Place, there};
use crate::support::json_assertions::JsonAssertions as _;

/// Devices: tar's lists have a name a line, and cut blanks off its end.
const DEVICES: [&str; 6] = ["plain", "null ", "tab\t", "two\nlines", "it's \"$x\" ", "back\\n "];
/// Files that are called as tar speaks of what it could not do. It speaks of them: they are of the future.
const FILES: [&str; 5] = [
    "null",
    "Removing leading",
    "x: No space left on device",
    "x: Cannot mknod: y",
    "x: Cannot change ownership to uid 0, gid 0: y",
];
const SOCKETS: usize = 100;

fn fill(folder: &Path) {
    for name in DEVICES {
        let made =
            Command::new("mknod").arg(folder.join(name)).args(["c", "1", "3"]).status().unwrap();
        assert!(made.success(), "{name:?}");
    }
    for name in FILES {
        let file = fs::File::create(folder.join(name)).unwrap();
        file.set_modified(SystemTime::now() + Duration::from_hours(100)).unwrap();
    }
    drop(UnixListener::bind(folder.join("x\nstatus: 2")).unwrap());
}

/// More sockets than are told, with names so long that what is told of them is more than the end of a stream.
fn crowd(folder: &Path) {
    let owner = fs::metadata(folder).unwrap();
    let deep = folder.join("\u{1}".repeat(200)).join("\u{1}".repeat(200));
    fs::create_dir_all(&deep).unwrap();
    // A socket is bound where its path is short, and moved.
    for n in 0..SOCKETS {
        let made = folder.join(n.to_string());
        drop(UnixListener::bind(&made).unwrap());
        fs::rename(&made, deep.join(n.to_string())).unwrap();
    }
    for made in [&deep, deep.parent().unwrap()] {
        chown(made, Some(owner.uid()), Some(owner.gid())).unwrap();
    }
}

fn names(folder: &Path) -> Vec<String> {
    let mut names: Vec<String> = fs::read_dir(folder)
        .unwrap()
        .map(|entry| String::from_utf8(entry.unwrap().file_name().as_bytes().to_vec()).unwrap())
        .filter(|name| !name.starts_with('\u{1}') && name != "docker-compose.yml")
        .collect();
    names.sort();
    names
}

fn source(place: Place, bench: &Bench, id: &str) -> [PathBuf; 2] {
    let repo = bench.repository("keeper", &[("docker-compose.yml", KEEPER)]);
    let made = bench.create_stack(place.host(), &repo, &["--id", id]);
    [workspace(&made), place.volume(id, "kept")]
}

fn workspace(record: &Value) -> PathBuf {
    PathBuf::from(text(&record["workdir"])).join("workspace")
}

fn names_are_taken_for_nothing_else(place: Place, id: &str) {
    there(place);
    let bench = place.bench();
    let before = bench.snapshot(place.host());
    let folders = source(place, &bench, id);
    for folder in &folders {
        fill(folder);
    }
    crowd(&folders[0]);

    // Rootless podman may not be able to pause.
    let taken = bench.ok(["snapshot", id, "--name", "base", "--mode", "live"]);
    taken.has(json!({"state": "ready", "consistency": "clean"}));
    assert!(!taken["mode"].is_null(), "{taken:#}");
    assert_eq!(taken["captured_volumes"], json!([{"name": "kept"}, {"name": "more"}]), "{taken:#}");
    let left_out = 2 * (DEVICES.len() + 1) + SOCKETS;
    taken.has(json!({"left_out_count": left_out, "not_captured": []}));
    let told = taken["left_out"].as_array().unwrap();
    assert_eq!(told.len(), 100, "{taken:#}");

    bench.ok(["snapshots", "verify", "base"]);
    let back = bench.ok(["restore", "base", "--strict", "--name", "back"]);
    back.has(json!({"state": "ready", "not_preserved": {}}));
    let mut files = FILES.map(str::to_owned);
    files.sort();
    for folder in [workspace(&back), place.volume(&text(&back["id"]), "kept")] {
        assert_eq!(names(&folder), files);
        let odd = |entry: &fs::DirEntry| {
            entry.file_type().is_ok_and(|kind| kind.is_char_device() || kind.is_socket())
        };
        assert_eq!(fs::read_dir(&folder).unwrap().flatten().filter(odd).count(), 0);
    }
    bench.ok(["destroy", id, &text(&back["id"])]);
    bench.ok(["snapshots", "delete", "base"]);
    bench.assert_unchanged(place.host(), &before);
}

each_case! {
    names_are_taken_for_nothing_else {
        with_docker: Place::Root, "names-root";
        with_rootless_podman: Place::Rootless, "names-rootless";
    }
}

/// What is deeper than any path can be is found and read all the same, and cannot be made anywhere.
#[test]
#[ignore = "needs the lab (tests/lab/up)"]
fn a_path_that_nobody_can_make_again_is_no_part_of_a_snapshot() {
    let (place, id) = (Place::Root, "names-deep");
    let bench = place.bench();
    let before = bench.snapshot(place.host());
    for folder in source(place, &bench, id) {
        let depth = "cd -P \"$1\" && for n in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21; do mkdir \"$2\" && cd -P \"./$2\" || exit; done";
        let made = Command::new("bash")
            .args(["-c", depth, "sh", folder.to_str().unwrap(), &"d".repeat(200)])
            .status();
        assert!(made.unwrap().success());
        bench.refused(["snapshot", id, "--name", "base"], "operation_failed").says("too long");
        bench.ok(["snapshots", "get", "base"]).has(json!({"state": "failed", "replicas": []}));
        assert!(!bench.workspace_root(place.host()).join("snapshots").exists());
        assert!(
            Command::new("rm")
                .arg("-rf")
                .arg(folder.join("d".repeat(200)))
                .status()
                .unwrap()
                .success()
        );
    }
    bench.ok(["snapshot", id, "--name", "base"]);
    bench.ok(["destroy", id]);
    bench.ok(["snapshots", "delete", "base"]);
    bench.assert_unchanged(place.host(), &before);
}
