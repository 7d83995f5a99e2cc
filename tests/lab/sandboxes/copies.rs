//! Data directories that are somebody else's or of another day, and names that lead elsewhere: nothing is removed.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::{Value, json};

use crate::lab::{Bench, DOCKER, PODMAN, Ran, Way, port_of, text};
use crate::sandboxes::rollback::destroy;
use crate::support::json_assertions::JsonAssertions as _;

/// A copy of the bench's data directory as it is now.
fn copy(bench: &Bench, name: &str) -> PathBuf {
    let copy = bench.path(name);
    let copied = Command::new("cp").arg("-a").arg(bench.data()).arg(&copy).status().unwrap();
    assert!(copied.success());
    copy
}

fn run_on(bench: &Bench, data: &Path, words: &[&str]) -> Ran {
    let mut args = vec!["--data-dir".to_owned(), data.display().to_string()];
    args.extend(words.iter().map(|word| (*word).to_owned()));
    bench.run(args)
}

/// Everything that removes is refused, with a way out, and changes nothing on the host.
fn refuses_to_remove(bench: &Bench, data: &Path, id: &str, says: &str) {
    let before = bench.snapshot(DOCKER);
    let refused = run_on(bench, data, &["destroy", id]);
    let error = &refused.json()[0]["error"];
    assert_eq!((refused.status, &error["code"]), (Some(4), &json!("conflict")), "{refused:#?}");
    for error in [error, &run_on(bench, data, &["recover"]).error("conflict")] {
        error.says(says).hints("doctor --claim");
    }
    run_on(bench, data, &["recreate", id, "--yes"]).error("conflict");
    bench.assert_unchanged(DOCKER, &before);
    let doctor = run_on(bench, data, &["doctor"]);
    let checks = doctor.json();
    let named = |check: &&Value| check["name"] == "installation";
    let check = checks.as_array().unwrap().iter().find(named).unwrap();
    assert_eq!((doctor.status, &check["state"]), (Some(1), &json!("failed")), "{check:#}");
    check.says(says);
}

#[test]
#[ignore = "needs the lab (tests/lab/up)"]
fn a_copy_from_another_machine_removes_nothing_until_it_is_claimed() {
    let bench = Bench::new();
    bench.ok(["create", "--id", "mine", "--host", DOCKER]);
    let data = copy(&bench, "copy");
    let file = data.join("owner");
    let mut owner: Value = serde_json::from_slice(&fs::read(&file).unwrap()).unwrap();
    owner["machine_id"] = json!("0123456789abcdef0123456789abcdef");
    fs::write(&file, owner.to_string()).unwrap();
    refuses_to_remove(&bench, &data, "mine", "another machine");
    assert_eq!(run_on(&bench, &data, &["get", "mine"]).ok()["state"], "ready");
    run_on(&bench, &data, &["doctor", "--claim"]);
    // The host counts more than the original knows: that is the one behind from here on.
    refuses_to_remove(&bench, &bench.data(), "mine", "old copy");
    let found = run_on(&bench, &data, &["destroy", "mine"]).ok();
    assert_eq!(found, json!([{"id": "mine", "ok": true}]));
    bench.run(["doctor", "--claim"]);
    destroy(&bench, "mine");
}

#[test]
#[ignore = "needs the lab (tests/lab/up)"]
fn a_restored_backup_removes_nothing_until_it_is_claimed() {
    let bench = Bench::new();
    bench.ok(["create", "--id", "early", "--host", DOCKER]);
    let backup = copy(&bench, "backup");
    bench.ok(["create", "--id", "late", "--host", DOCKER]);
    // The host is asked before anything is removed, and what it said is remembered.
    refuses_to_remove(&bench, &backup, "early", "old copy");
    assert_eq!(
        run_on(&bench, &backup, &["get", "early"]).ok()["state"],
        "ready",
        "a refusal changes nothing"
    );
    run_on(&bench, &backup, &["doctor", "--claim"]);
    let found = run_on(&bench, &backup, &["destroy", "early"]).ok();
    assert_eq!(found, json!([{"id": "early", "ok": true}]));
    refuses_to_remove(&bench, &bench.data(), "late", "old copy");
    bench.run(["doctor", "--claim"]);
    destroy(&bench, "early");
    destroy(&bench, "late");
}

/// A copy without the file that says whose it is gets a new one, of which no host counts anything.
#[test]
#[ignore = "needs the lab (tests/lab/up)"]
fn a_copy_without_its_owner_removes_nothing_until_it_is_claimed() {
    let bench = Bench::new();
    bench.ok(["create", "--id", "mine", "--host", DOCKER]);
    let data = copy(&bench, "copy");
    for name in ["owner", "owner.bak"] {
        fs::remove_file(data.join(name)).unwrap();
    }
    refuses_to_remove(&bench, &data, "mine", "does not name");
    bench.ok(["exec", "mine", "--", "true"]);
    run_on(&bench, &data, &["doctor", "--claim"]);
    refuses_to_remove(&bench, &bench.data(), "mine", "old copy");
    assert_eq!(
        run_on(&bench, &data, &["destroy", "mine"]).ok(),
        json!([{"id": "mine", "ok": true}])
    );
    bench.run(["doctor", "--claim"]);
    destroy(&bench, "mine");
}

#[test]
#[ignore = "needs the lab (tests/lab/up)"]
fn a_name_that_leads_to_another_engine_now_removes_nothing() {
    let bench = Bench::new();
    bench.add_host("moved", &Way::to(PODMAN, port_of(PODMAN)), &bench.workspace_root(PODMAN));
    let before = bench.snapshot(PODMAN);
    let id = text(&bench.create_stack("moved", &bench.web_stack("x"), &[])["id"]);
    let there = bench.snapshot(PODMAN);
    let told = bench.event_kinds(&id);
    let config = bench.path("ssh-moved");
    let ours = fs::read_to_string(&config).unwrap();
    // Another account's podman keeps everything elsewhere.
    fs::write(&config, ours.replace("User root", "User ops")).unwrap();
    let changed = bench.run(["destroy", &id]);
    let error = &changed.json()[0]["error"];
    assert_eq!((changed.status, &error["code"]), (Some(5), &json!("host_changed")), "{changed:#?}");
    error.hints("nothing was touched");
    assert!(!error["causes"].as_array().unwrap().is_empty(), "which engine it is: {error:#}");
    assert_eq!(bench.ok(["recover"]), json!([]), "nothing was begun");
    bench.assert_unchanged(PODMAN, &there);
    assert_eq!(bench.event_kinds(&id), told);
    bench.get(&id).has(json!({"state": "ready", "operation": null}));
    let told = bench.ok(["events", "--kind", "host.changed"]);
    assert_eq!(told.as_array().unwrap().len(), 1, "once: {told:#}");
    told.has(json!({"0.data.host": "moved", "0.sandbox_id": null}));
    fs::write(&config, ours).unwrap();
    assert_eq!(bench.ok(["destroy", &id]), json!([{"id": id, "ok": true}]));
    bench.assert_unchanged(PODMAN, &before);
}
