//! Undo on real hosts: what was removed comes back as it was, byte for byte, with its volumes and patches; a removal that is
//! killed over its undo snapshot leaves a sandbox that lives; a disk without room has none taken.

use std::fs;
use std::path::PathBuf;

use serde_json::{Value, json};

use crate::each_case::each_case;
use crate::faults::Tmpfs;
use crate::lab::{Bench, DOCKER, PODMAN, Way, port_of, stack_args, text, url_of, wait_until};
use crate::sandboxes::kills::id_of;
use crate::snapshots::place::{KEEPER, Place, Tree, there};
use crate::support::json_assertions::JsonAssertions as _;

/// A profile that keeps undo snapshots.
fn keeping(bench: &Bench, more: &str) -> String {
    bench.profile("kept", &format!("undo: true\n{more}"))
}

/// A sandbox with volumes, and everything odd in its workspace and one of them; based on a snapshot with a patch.
fn odd_sandbox(bench: &Bench, place: Place) -> String {
    let profile = keeping(bench, "");
    let repo = bench.repository("keeper", &[("docker-compose.yml", KEEPER), ("readme", "hello")]);
    let repo = format!("repo={}", repo.display());
    let host = place.host();
    let source = bench.ok(["create", "--profile", &profile, "--input", &repo, "--host", host]);
    let source = text(&source["id"]);
    bench.ok(["snapshot", &source, "--name", "base", "--mode", "stop"]);
    bench.ok(["destroy", &source, "--no-undo"]);
    patch(bench, "one");
    let made = bench.ok(["restore", "base", "--name", "odd"]);
    let id = text(&made["id"]);
    bench.ok(["label", &id, "team=blue"]);
    place.fill_below(&bench.directory(host, &id).join("workspace"));
    place.fill_below(&place.volume(&id, "kept"));
    id
}

fn patch(bench: &Bench, name: &str) {
    let file = bench.path(name);
    fs::write(&file, format!("echo {name} >> patched\n")).unwrap();
    bench.ok(["patches", "add", "base", "--script-file", file.to_str().unwrap()]);
}

/// What a sandbox is: its files, a volume of them, its patches.
fn all_of(bench: &Bench, place: Place, id: &str) -> (Tree, Tree, Vec<Value>) {
    let record = bench.get(id);
    let runs = record["applied_patches"].as_array().unwrap().iter();
    let runs = runs.map(|run| json!([run["id"], run["sequence"], run["state"]])).collect();
    let folder = bench.directory(place.host(), id).join("workspace");
    (place.tell(&folder), place.tell(&place.volume(id, "kept")), runs)
}

/// Removes a sandbox in this way.
fn removed(bench: &Bench, id: &str, verb: &str) {
    if verb == "sweep" {
        let soon = jiff::Timestamp::now() + jiff::SignedDuration::from_secs(2);
        let soon = soon.to_string();
        bench.ok(["extend", id, "--to", &soon, "--allow-shorten"]);
        wait_until("it expired", || jiff::Timestamp::now().to_string() > soon);
        bench.ok(["sweep"]).has(json!({"items.0.outcome": "destroyed"}));
    } else {
        let ended = bench.ok(["destroy", id]);
        assert!(text(&ended[0]["message"]).contains("sandboxer undo"), "{ended:#}");
    }
    assert_eq!(bench.get(id)["state"], "destroyed");
}

fn comes_back_as_it_was(place: Place, verb: &str, asleep: bool) {
    there(place);
    let bench = place.bench();
    let before = bench.snapshot(place.host());
    let id = odd_sandbox(&bench, place);
    let (tree, volume, patches) = all_of(&bench, place, &id);
    let base = bench.get(&id)["based_on_snapshot"].clone();
    if asleep {
        bench.ok(["sleep", &id]);
    }
    removed(&bench, &id, verb);
    let listed = bench.ok(["snapshots", "list"]);
    assert_eq!(listed.as_array().unwrap().len(), 1, "the undo snapshot is not shown: {listed:#}");

    let back = bench.ok(["undo"]);
    back.has(json!({"state": "ready", "undo_of": id, "name": "odd", "not_preserved": {}}));
    assert_eq!(back["labels"], json!({"team": "blue"}), "{back:#}");
    assert_eq!(back["based_on_snapshot"], base, "{back:#}");
    assert_eq!(back["last_patch_sequence"], json!(1), "{back:#}");
    let new = text(&back["id"]);
    let (again, again_volume, again_patches) = all_of(&bench, place, &new);
    again.assert_is(&tree.kept(), "the workspace");
    again_volume.assert_is(&volume.kept(), "the volume");
    assert_eq!(again_patches, patches);

    // A patch that came meanwhile is applied, the first one not again.
    bench.ok(["destroy", &new]);
    patch(&bench, "two");
    let twice = text(&bench.ok(["undo", &new])["id"]);
    let folder = bench.directory(place.host(), &twice).join("workspace");
    assert_eq!(fs::read_to_string(folder.join("patched")).unwrap(), "one\ntwo\n");
    bench.ok(["destroy", &twice, "--no-undo"]);
    bench.delete_snapshots();
    bench.assert_unchanged(place.host(), &before);
}

each_case! {
    comes_back_as_it_was {
        what_was_destroyed_comes_back_on_docker: Place::Root, "destroy", false;
        what_a_sweep_destroyed_comes_back_on_podman: Place::Podman, "sweep", false;
        what_slept_comes_back_where_others_own_its_files: Place::Dev, "destroy", true;
        what_was_destroyed_comes_back_without_root: Place::Rootless, "destroy", false;
    }
}

each_case! {
    a_removal_that_is_killed_over_its_undo_snapshot_leaves_it_alive {
        on_docker: DOCKER, &[
            ("undo.measured", "destroy"),
            ("snapshot.written", "destroy"),
            ("snapshot.captured", "recreate"),
            ("snapshot.sealed", "destroy"),
            ("snapshot.ready", "destroy"),
            ("snapshot.freed", "recreate"),
            ("undo.taken", "destroy"),
        ];
        on_podman: PODMAN, &[("snapshot.captured", "destroy")];
    }
}

/// Each sandbox lives, its containers run, and a second removal goes through.
fn a_removal_that_is_killed_over_its_undo_snapshot_leaves_it_alive(
    host: &str,
    points: &[(&str, &str)],
) {
    let bench = Bench::watching(&[host]);
    let profile = keeping(&bench, "");
    let repo = bench.web_stack("hello");
    for (point, verb) in points {
        let id = id_of(point);
        bench.ok(stack_args(&profile, host, &repo, &["--id", &id]));
        bench.killed(point, [verb, id.as_str(), "--yes"]);
    }
    bench.recovered();
    for (point, _) in points {
        let id = id_of(point);
        bench.ok(["wait", &id]);
        let record = bench.get(&id);
        record.has(json!({"state": "ready", "operation": null}));
        assert!(crate::lab::http_get(&url_of(&record)).contains("hello"), "{point}");
        // Nothing was removed: there is nothing to undo.
        bench.run(["undo", &id]).error("conflict");
        bench.ok(["destroy", &id]);
        let back = text(&bench.ok(["undo", &id])["id"]);
        bench.ok(["destroy", &back, "--no-undo"]);
    }
    bench.delete_snapshots();
    bench.assert_as_before();
}

#[test]
#[ignore = "needs the lab (tests/lab/up)"]
fn on_a_disk_that_is_nearly_full_none_is_taken_and_that_is_said() {
    let bench = Bench::new();
    keeping(&bench, "compose: {ports: ephemeral}\nconfig: {workspace_only: true}\ninputs: {}");
    let disk = Tmpfs::mount(bench.path("tiny"), "size=40m");
    bench.add_host("tiny", &Way::to(DOCKER, port_of(DOCKER)), &disk.path);
    let made = bench.ok(["create", "--profile", "kept", "--host", "tiny", "--name", "big"]);
    let file = PathBuf::from(text(&made["workdir"])).join("workspace/file");
    fs::write(&file, vec![7; 15 << 20]).unwrap();
    let ended = bench.ok(["destroy", "big"]);
    let said = text(&ended[0]["message"]);
    assert!(said.contains("no undo snapshot") && said.contains("twice its size"), "{said}");
    let none = bench.refused(["undo", "big"], "not_found");
    assert!(none["causes"].to_string().contains("twice its size"), "{none:#}");
    // With room it is taken, and one that finds the disk full in the middle stops who asked.
    let made = bench.ok(["create", "--profile", "kept", "--host", "tiny", "--name", "small"]);
    let file = PathBuf::from(text(&made["workdir"])).join("workspace/file");
    fs::write(&file, vec![7; 5 << 20]).unwrap();
    bench.ok(["destroy", "small"]);
    let back = bench.ok(["undo"]);
    let file = PathBuf::from(text(&back["workdir"])).join("workspace/file");
    assert_eq!(fs::read(file).unwrap(), vec![7; 5 << 20]);
    bench.ok(["destroy", "small", "--no-undo"]);
    bench.delete_snapshots();
}
