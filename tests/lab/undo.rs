//! Undo on real hosts: what was removed comes back as it was, byte for byte, with its volumes and patches; a removal that is
//! killed over its undo snapshot leaves a sandbox that lives; a disk without room has none taken.

use std::fs;
use std::path::PathBuf;

use serde_json::{Value, json};

use crate::faults::Tmpfs;
use crate::lab::{Bench, DOCKER, PODMAN, Way, port_of, text, wait_until};
use crate::points::each_point;
use crate::snapshots::place::{KEEPER, Place, Tree, there};

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
    let source =
        bench.run(["create", "--profile", &profile, "--input", &repo, "--host", host]).ok();
    let source = text(&source["id"]);
    bench.run(["snapshot", &source, "--name", "base", "--mode", "stop"]).ok();
    bench.run(["destroy", &source, "--no-undo"]).ok();
    patch(bench, "one");
    let made = bench.run(["restore", "base", "--name", "odd"]).ok();
    let id = text(&made["id"]);
    bench.run(["label", &id, "team=blue"]).ok();
    place.fill_below(&bench.directory(host, &id).join("workspace"));
    place.fill_below(&place.volume(&id, "kept"));
    id
}

fn patch(bench: &Bench, name: &str) {
    let file = bench.path(name);
    fs::write(&file, format!("echo {name} >> patched\n")).unwrap();
    bench.run(["patches", "add", "base", "--script-file", file.to_str().unwrap()]).ok();
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
        bench.run(["extend", id, "--to", &soon, "--allow-shorten"]).ok();
        wait_until("it expired", || jiff::Timestamp::now().to_string() > soon);
        let swept = bench.run(["sweep"]).ok();
        assert_eq!(swept["items"][0]["outcome"], "destroyed", "{swept:#}");
    } else {
        let ended = bench.run(["destroy", id]).ok();
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
        bench.run(["sleep", &id]).ok();
    }
    removed(&bench, &id, verb);
    let listed = bench.run(["snapshots", "list"]).ok();
    assert_eq!(listed.as_array().unwrap().len(), 1, "the undo snapshot is not shown: {listed:#}");

    let back = bench.run(["undo"]).ok();
    assert_eq!(
        (&back["state"], &back["undo_of"], &back["name"], &back["not_preserved"]),
        (&json!("ready"), &json!(id), &json!("odd"), &json!({})),
        "{back:#}"
    );
    assert_eq!(
        (&back["labels"], &back["based_on_snapshot"], &back["last_patch_sequence"]),
        (&json!({"team": "blue"}), &base, &json!(1)),
        "{back:#}"
    );
    let new = text(&back["id"]);
    let (again, again_volume, again_patches) = all_of(&bench, place, &new);
    again.assert_is(&tree.kept(), "the workspace");
    again_volume.assert_is(&volume.kept(), "the volume");
    assert_eq!(again_patches, patches);

    // A patch that came meanwhile is applied, the first one not again.
    bench.run(["destroy", &new]).ok();
    patch(&bench, "two");
    let twice = text(&bench.run(["undo", &new]).ok()["id"]);
    let folder = bench.directory(place.host(), &twice).join("workspace");
    assert_eq!(fs::read_to_string(folder.join("patched")).unwrap(), "one\ntwo\n");
    bench.run(["destroy", &twice, "--no-undo"]).ok();
    clear(&bench);
    bench.assert_unchanged(place.host(), &before);
}

/// Deletes every snapshot.
fn clear(bench: &Bench) {
    let all = bench.run(["snapshots", "list", "--all"]).ok();
    let ids: Vec<String> = all.as_array().unwrap().iter().map(|one| text(&one["id"])).collect();
    if !ids.is_empty() {
        let args = ["snapshots", "delete", "--force", "--yes"].map(str::to_owned);
        bench.run(args.into_iter().chain(ids)).ok();
    }
}

#[test]
#[ignore = "needs the lab (tests/lab/up)"]
fn what_was_destroyed_comes_back_on_docker() {
    comes_back_as_it_was(Place::Root, "destroy", false);
}

#[test]
#[ignore = "needs the lab (tests/lab/up)"]
fn what_a_sweep_destroyed_comes_back_on_podman() {
    comes_back_as_it_was(Place::Podman, "sweep", false);
}

#[test]
#[ignore = "needs the lab (tests/lab/up)"]
fn what_slept_comes_back_where_others_own_its_files() {
    comes_back_as_it_was(Place::Dev, "destroy", true);
}

#[test]
#[ignore = "needs the lab (tests/lab/up)"]
fn what_was_destroyed_comes_back_without_root() {
    comes_back_as_it_was(Place::Rootless, "destroy", false);
}

each_point! {
    killed_over_its_undo_snapshot_on_docker = a_killed_removal_leaves_it_alive(DOCKER) {
        measured: "undo.measured", "destroy";
        written: "snapshot.written", "destroy";
        captured: "snapshot.captured", "recreate";
        sealed: "snapshot.sealed", "destroy";
        ready: "snapshot.ready", "destroy";
        freed: "snapshot.freed", "recreate";
        taken: "undo.taken", "destroy";
    }
    killed_over_its_undo_snapshot_on_podman = a_killed_removal_leaves_it_alive(PODMAN) {
        captured: "snapshot.captured", "destroy";
    }
}

/// The sandbox lives, its containers run, and a second removal goes through.
fn a_killed_removal_leaves_it_alive(host: &str, point: &str, verb: &str) {
    let bench = Bench::new();
    let before = bench.snapshot(host);
    let profile = keeping(&bench, "");
    let repo = format!("repo={}", bench.web_stack("hello").display());
    let made = bench.run(["create", "--profile", &profile, "--input", &repo, "--host", host]).ok();
    let id = text(&made["id"]);
    let ran = bench.run_failing(&format!("{point}=return"), [verb, &id, "--yes"]);
    assert_eq!(ran.status, None, "{point}: killed by a signal: {ran:#?}");
    for item in bench.run(["recover"]).ok().as_array().unwrap() {
        assert_eq!(item["ok"], true, "{item:#}");
    }
    assert_eq!(bench.run(["recover"]).ok(), json!([]), "a second one has nothing to do");
    bench.run(["wait", &id]).ok();
    let record = bench.get(&id);
    assert_eq!((&record["state"], &record["operation"]), (&json!("ready"), &Value::Null));
    let url = text(&record["reachability"]["endpoints"][0]["url"]);
    assert!(crate::lab::http_get(&url).contains("hello"));
    // Nothing was removed: there is nothing to undo.
    bench.run(["undo", &id]).error("conflict");
    bench.run(["destroy", &id]).ok();
    let back = text(&bench.run(["undo", &id]).ok()["id"]);
    bench.run(["destroy", &back, "--no-undo"]).ok();
    clear(&bench);
    bench.assert_unchanged(host, &before);
}

#[test]
#[ignore = "needs the lab (tests/lab/up)"]
fn on_a_disk_that_is_nearly_full_none_is_taken_and_that_is_said() {
    let bench = Bench::new();
    keeping(&bench, "compose: {ports: ephemeral}\nconfig: {workspace_only: true}\ninputs: {}");
    let disk = Tmpfs::mount(bench.path("tiny"), "size=40m");
    bench.add_host("tiny", &Way::to(DOCKER, port_of(DOCKER)), &disk.path);
    let made = bench.run(["create", "--profile", "kept", "--host", "tiny", "--name", "big"]).ok();
    let file = PathBuf::from(text(&made["workdir"])).join("workspace/file");
    fs::write(&file, vec![7; 15 << 20]).unwrap();
    let ended = bench.run(["destroy", "big"]).ok();
    let said = text(&ended[0]["message"]);
    assert!(said.contains("no undo snapshot") && said.contains("twice its size"), "{said}");
    let none = bench.run(["undo", "big"]).error_with_hint("not_found");
    assert!(none["causes"].to_string().contains("twice its size"), "{none:#}");
    // With room it is taken, and one that finds the disk full in the middle stops who asked.
    let made = bench.run(["create", "--profile", "kept", "--host", "tiny", "--name", "small"]).ok();
    let file = PathBuf::from(text(&made["workdir"])).join("workspace/file");
    fs::write(&file, vec![7; 5 << 20]).unwrap();
    bench.run(["destroy", "small"]).ok();
    let back = bench.run(["undo"]).ok();
    let file = PathBuf::from(text(&back["workdir"])).join("workspace/file");
    assert_eq!(fs::read(file).unwrap(), vec![7; 5 << 20]);
    bench.run(["destroy", "small", "--no-undo"]).ok();
    clear(&bench);
}
