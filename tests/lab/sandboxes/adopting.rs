//! `adopt` on real hosts: an empty data directory gets the same list and snapshots back, but for what only the lost store knew; and
//! the console that they came from is the one behind.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;

use serde_json::{Value, json};

use crate::lab::{Bench, DOCKER, PODMAN, Started, text};

/// Fields of a sandbox's record that only the store knows, or that say when it was looked at.
const LOST_OF_SANDBOXES: [&str; 16] = [
    "adopted_at",
    "attempts",
    "certificate",
    "idempotency_key",
    "message",
    "observed_at",
    "pending",
    "reason",
    "request_hash",
    "revision",
    "rewrites",
    "route",
    "since",
    "teardown",
    "telemetry",
    "patch_error",
];

/// Fields of a snapshot's record of which the same holds. An archive proves the machine that it is on, and no engine.
const LOST_OF_SNAPSHOTS: [&str; 6] =
    ["adopted_at", "message", "pending", "replicas", "revision", "verified_at"];

fn by_id(list: &Value) -> BTreeMap<String, Value> {
    let records = list.as_array().unwrap().iter();
    records.map(|record| (text(&record["id"]), record.clone())).collect()
}

/// Fields in which two lists of records differ, each with an example.
fn differing(before: &Value, after: &Value) -> BTreeMap<String, String> {
    let (before, after) = (by_id(before), by_id(after));
    assert_eq!(before.keys().collect::<Vec<_>>(), after.keys().collect::<Vec<_>>());
    let mut fields = BTreeMap::new();
    for (id, one) in &before {
        let other = &after[id];
        let keys: BTreeSet<&String> =
            [one, other].iter().flat_map(|record| record.as_object().unwrap().keys()).collect();
        for key in keys.into_iter().filter(|key| one.get(*key) != other.get(*key)) {
            fields.insert(key.clone(), format!("{id}: {} became {}", one[key], other[key]));
        }
    }
    fields
}

fn unexpected(found: &BTreeMap<String, String>, expected: &[&str]) -> Vec<String> {
    let new = found.iter().filter(|(field, _)| !expected.contains(&field.as_str()));
    new.map(|(field, how)| format!("{field}: {how}")).collect()
}

fn an_empty_data_directory_gets_everything_back(host: &str, other: &str) {
    let bench = Bench::new();
    let (host_before, other_before) = (bench.snapshot(host), bench.snapshot(other));
    let stack =
        bench.create_stack(host, &bench.web_stack("mine"), &["--name", "web", "--label", "team=a"]);
    let id = text(&stack["id"]);
    bench.run(["snapshot", &id, "--name", "base"]).ok();
    bench.run(["snapshots", "copy", "base", "--to", other]).ok();
    let restored = text(&bench.run(["restore", "base", "--name", "second"]).ok()["id"]);
    bench.run(["sleep", &restored]).ok();
    let canary = text(&bench.run(["create", "--host", host, "--ttl", "5h"]).ok()["id"]);
    bench.run(["label", &id, "late=yes"]).ok();
    let lists = || (bench.run(["list"]).ok(), bench.run(["snapshots", "list"]).ok());
    let before = lists();
    let owner = text(&stack["owner"]);
    let lost = bench.path("lost");
    fs::rename(bench.data(), &lost).unwrap();

    let planned = bench.run(["adopt", "--owner", &owner, "--dry-run"]).ok();
    assert_eq!(lists(), (json!([]), json!([])), "a dry run makes no record");
    let refused = bench.run(["adopt", "--owner", &owner]);
    assert_eq!(refused.status, Some(2), "nobody can be asked: {refused:?}");
    let done = bench.run(["adopt", "--owner", &owner, "--yes"]).ok();
    let ids = |items: &Value| -> BTreeSet<String> {
        let things = items.as_array().unwrap().iter();
        let things = things.filter(|item| item["ok"] == true && item["kind"] != "owner");
        things.map(|item| text(&item["id"])).collect()
    };
    assert_eq!(ids(&planned), ids(&done));
    assert_eq!(ids(&done).len(), 4, "{done:#}");

    let after = lists();
    let found = differing(&before.0, &after.0);
    assert_eq!(unexpected(&found, &LOST_OF_SANDBOXES), Vec::<String>::new());
    let found = differing(&before.1, &after.1);
    assert_eq!(unexpected(&found, &LOST_OF_SNAPSHOTS), Vec::<String>::new());
    let hosts: BTreeSet<String> = after.1[0]["replicas"]
        .as_array()
        .unwrap()
        .iter()
        .map(|replica| text(&replica["host"]))
        .collect();
    assert_eq!(hosts, BTreeSet::from([host.to_owned(), other.to_owned()]), "{:#}", after.1);
    let again = bench.run(["adopt"]).ok();
    assert!(ids(&again).is_empty(), "{again:#}");

    // The console that they came from is behind, and removes nothing.
    let mut old = bench.command(["destroy", &canary]);
    old.env("SANDBOXER_DATA_DIR", &lost);
    let old = Started::spawn(old).finish();
    assert!(old.status == Some(4) && old.stderr.contains("old copy"), "{old:?}");

    let page = bench.run(["exec", &id, "--", "cat", "www/index.html"]).ok();
    assert_eq!(page["stdout"], "mine");
    bench.run(["wake", &restored]).ok();
    bench.run(["snapshots", "verify", "base"]).ok();
    for id in [&id, &restored, &canary] {
        bench.run(["destroy", id]).ok();
    }
    bench.run(["snapshots", "delete", "base", "--yes"]).ok();
    bench.assert_unchanged(host, &host_before);
    bench.assert_unchanged(other, &other_before);
}

#[test]
#[ignore = "needs the lab (tests/lab/up)"]
fn an_empty_data_directory_gets_everything_back_from_docker() {
    an_empty_data_directory_gets_everything_back(DOCKER, PODMAN);
}

#[test]
#[ignore = "needs the lab (tests/lab/up)"]
fn an_empty_data_directory_gets_everything_back_from_podman() {
    an_empty_data_directory_gets_everything_back(PODMAN, DOCKER);
}

/// A manifest that somebody in the sandbox rewrote: nothing of another's is named, run or removed.
#[test]
#[ignore = "needs the lab (tests/lab/up)"]
fn a_rewritten_manifest_names_nothing_of_anybody_else() {
    let bench = Bench::new();
    let before = bench.snapshot(DOCKER);
    let made = bench.create_stack(DOCKER, &bench.web_stack("mine"), &[]);
    let id = text(&made["id"]);
    let file = bench.directory(DOCKER, &id).join("manifest.json");
    let mut manifest: Value = serde_json::from_str(&fs::read_to_string(&file).unwrap()).unwrap();
    let record = &mut manifest["sandbox"];
    record["handle"]["built"] = json!([crate::lab::IMAGE, "sbx-other-built:web"]);
    record["handle"]["runtime"]["command"] = json!(["/bin/sh", "-c", "touch /tmp/sbx-evil"]);
    record["handle"]["runtime"]["engine"] = json!("podman");
    record["host_identity"]["engine_id"] = json!("another");
    record["workdir"] = json!("/etc");
    record["name"] = json!("$(reboot)");
    record["profile"] = json!({"id": "profile.compose-e2e", "version": "9.9.9", "hash": "0"});
    manifest["recipe"]["compose"]["allow"] = json!(["privileged", "bind-mounts"]);
    fs::write(&file, serde_json::to_string_pretty(&manifest).unwrap()).unwrap();
    fs::rename(bench.data(), bench.path("lost")).unwrap();
    let owner = text(&made["owner"]);
    let done = bench.run(["adopt", "--owner", &owner, "--host", DOCKER, "--yes"]).ok();
    let item = done.as_array().unwrap().iter().find(|item| item["id"] == json!(id)).unwrap();
    let message = text(&item["message"]);
    for said in ["2 images", "the catalogue's", "the name"] {
        assert!(message.contains(said), "{said}: {message}");
    }
    let record = bench.get(&id);
    assert_eq!((&record["state"], &record["name"]), (&json!("ready"), &Value::Null));
    assert_eq!(record["handle"]["built"], Value::Null);
    assert_eq!(record["handle"]["runtime"], made["handle"]["runtime"]);
    assert_eq!(record["host_identity"], made["host_identity"]);
    assert_eq!(record["workdir"], made["workdir"]);
    assert_eq!(record["profile"]["hash"], made["profile"]["hash"]);
    bench.run(["destroy", &id]).ok();
    bench.assert_unchanged(DOCKER, &before);
}
