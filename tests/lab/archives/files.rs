//! Snapshots as files, from one installation to another.

use std::fs;

use serde_json::{Value, json};

use crate::archives::source::{assert_whole, folder, sha256_inside, snapshot, through};
use crate::lab::{Bench, DOCKER, PODMAN, text};
use crate::support::json_assertions::JsonAssertions as _;

#[test]
#[ignore = "needs the lab (tests/lab/up)"]
fn an_export_is_a_snapshot_elsewhere() {
    let (from, to) = (Bench::new(), Bench::new());
    let before = to.snapshot(PODMAN);
    let source = snapshot(&from, DOCKER, "file-source");
    let file = to.path("base.tar");
    let path = file.to_str().unwrap();
    from.run(["snapshots", "export", "base", path]).ok();

    // Any tar opens it.
    let listed = String::from_utf8(through(&["tar", "-tf", path], b"")).unwrap();
    assert_eq!(listed, format!("manifest.json\narchive.{}\n", text(&source["format"])));

    let imported = to.run(["snapshots", "import", path, "--host", PODMAN]).ok();
    imported.has(json!({"state": "ready", "name": "base"}));
    for same in ["files", "profile", "sandbox_id", "captured_volumes"] {
        assert_eq!(imported[same], source[same], "{same}");
    }
    assert_ne!(imported["owner"], source["owner"]);
    let id = text(&imported["id"]);
    let archive = folder(&to, PODMAN, &id).join(format!("archive.{}", text(&imported["format"])));
    // It is written anew on its way.
    assert_eq!(sha256_inside(&archive), text(&imported["sha256"]));
    let manifest: Value =
        serde_json::from_slice(&fs::read(folder(&to, PODMAN, &id).join("manifest.json")).unwrap())
            .unwrap();
    manifest.has(json!({
        "id": imported["id"], "owner": imported["owner"], "snapshot.bytes": imported["bytes"],
    }));
    to.run(["snapshots", "verify", &id]).ok();

    let back = to.run(["restore", &id]).ok();
    assert_whole(&to, &text(&back["id"]));

    // Once more: its name is taken, its content is not.
    to.run(["snapshots", "import", path, "--host", PODMAN]).error_with_hint("conflict");
    let second = to.run(["snapshots", "import", path, "--host", PODMAN, "--name", "second"]).ok();
    assert_ne!(second["id"], imported["id"]);
    to.clear();
    to.assert_unchanged(PODMAN, &before);
    from.clear();
}

#[test]
#[ignore = "needs the lab (tests/lab/up)"]
fn an_export_of_ones_own_comes_back_under_an_id_of_its_own() {
    let bench = Bench::watching(&[DOCKER]);
    let source = snapshot(&bench, DOCKER, "back-source");
    let file = bench.path("base.tar");
    let path = file.to_str().unwrap();
    bench.ok(["snapshots", "export", "base", path]);
    bench.ok(["snapshots", "delete", "base"]);
    let back = bench.ok(["snapshots", "import", path, "--host", DOCKER]);
    assert_ne!(back["id"], source["id"]);
    back.has(json!({"imported_from": source["id"], "name": "base"}));
    bench.ok(["snapshots", "verify", "base"]);
    bench.clear();
    bench.assert_as_before();
}

#[test]
#[ignore = "needs the lab (tests/lab/up)"]
fn a_file_that_is_cut_off_is_refused_and_leaves_nothing() {
    let bench = Bench::new();
    snapshot(&bench, DOCKER, "cut-source");
    let before = bench.snapshot(PODMAN);
    let file = bench.path("base.tar");
    bench.ok(["snapshots", "export", "base", file.to_str().unwrap()]);
    let whole = fs::read(&file).unwrap();
    let listed = bench.ok(["snapshots", "list", "--all"]);
    let cut = bench.path("cut.tar");
    for length in [0, 100, 600, whole.len() / 2, whole.len() - 20_000] {
        fs::write(&cut, &whole[..length]).unwrap();
        let words =
            ["snapshots", "import", cut.to_str().unwrap(), "--host", PODMAN, "--name", "cut"];
        bench.run(words).error("invalid_input");
        assert_eq!(bench.ok(["snapshots", "list", "--all"]), listed, "{length}");
        bench.assert_unchanged(PODMAN, &before);
    }
    bench.clear();
}
