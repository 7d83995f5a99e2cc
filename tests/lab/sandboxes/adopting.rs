//! `adopt` on real hosts: an empty data directory gets the same list and snapshots back, but for what only the lost store knew; and
//! the console that they came from is the one behind.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;

use serde_json::{Value, json};

use crate::each_case::each_case;
use crate::lab::{Bench, DOCKER, PODMAN, Started, text};
use crate::support::json_assertions::JsonAssertions as _;

/// Fields of a sandbox's record that only the store knows, or that say when it was looked at.
const LOST_OF_SANDBOXES: &str = "adopted_at attempts certificate idempotency_key message observed_at patch_error pending \
    reason request_hash revision rewrites route since teardown telemetry";

/// Fields of a snapshot's record of which the same holds. An archive proves the machine that it is on, and no engine.
const LOST_OF_SNAPSHOTS: &str = "adopted_at message pending replicas revision verified_at";

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

fn unexpected(found: &BTreeMap<String, String>, expected: &str) -> Vec<String> {
    let new = found.iter().filter(|(field, _)| !expected.split(' ').any(|name| name == *field));
    new.map(|(field, how)| format!("{field}: {how}")).collect()
}

fn an_empty_data_directory_gets_everything_back(host: &str, other: &str) {
    let bench = Bench::new();
    let (host_before, other_before) = (bench.snapshot(host), bench.snapshot(other));
    let stack =
        bench.create_stack(host, &bench.web_stack("mine"), &["--name", "web", "--label", "team=a"]);
    let id = text(&stack["id"]);
    bench.ok(["snapshot", &id, "--name", "base"]);
    bench.ok(["snapshots", "copy", "base", "--to", other]);
    let restored = text(&bench.ok(["restore", "base", "--name", "second"])["id"]);
    bench.ok(["sleep", &restored]);
    let canary = text(&bench.ok(["create", "--host", host, "--ttl", "5h"])["id"]);
    bench.ok(["label", &id, "late=yes"]);
    let lists = || (bench.ok(["list"]), bench.ok(["snapshots", "list"]));
    let before = lists();
    let owner = text(&stack["owner"]);
    let lost = bench.path("lost");
    fs::rename(bench.data(), &lost).unwrap();

    let planned = bench.ok(["adopt", "--owner", &owner, "--dry-run"]);
    assert_eq!(lists(), (json!([]), json!([])), "a dry run makes no record");
    let refused = bench.run(["adopt", "--owner", &owner]);
    assert_eq!(refused.status, Some(2), "nobody can be asked: {refused:?}");
    let done = bench.ok(["adopt", "--owner", &owner, "--yes"]);
    let ids = |items: &Value| -> BTreeSet<String> {
        let things = items.as_array().unwrap().iter();
        let things = things.filter(|item| item["ok"] == true && item["kind"] != "owner");
        things.map(|item| text(&item["id"])).collect()
    };
    assert_eq!(ids(&planned), ids(&done));
    assert_eq!(ids(&done).len(), 4, "{done:#}");

    let after = lists();
    let found = differing(&before.0, &after.0);
    assert_eq!(unexpected(&found, LOST_OF_SANDBOXES), Vec::<String>::new());
    let found = differing(&before.1, &after.1);
    assert_eq!(unexpected(&found, LOST_OF_SNAPSHOTS), Vec::<String>::new());
    let all = after.1[0]["replicas"].as_array().unwrap().iter();
    let hosts: BTreeSet<String> = all.map(|replica| text(&replica["host"])).collect();
    assert_eq!(hosts, BTreeSet::from([host.to_owned(), other.to_owned()]), "{:#}", after.1);
    let again = bench.ok(["adopt"]);
    assert!(ids(&again).is_empty(), "{again:#}");

    // The console that they came from is behind, and removes nothing.
    let mut old = bench.command(["destroy", &canary]);
    old.env("SANDBOXER_DATA_DIR", &lost);
    let old = Started::spawn(old).finish();
    assert!(old.status == Some(4) && old.stderr.contains("old copy"), "{old:?}");

    bench.ok(["exec", &id, "--", "cat", "www/index.html"]).has(json!({"stdout": "mine"}));
    bench.ok(["wake", &restored]);
    bench.ok(["snapshots", "verify", "base"]);
    for id in [&id, &restored, &canary] {
        bench.ok(["destroy", id]);
    }
    bench.ok(["snapshots", "delete", "base", "--yes"]);
    bench.assert_unchanged(host, &host_before);
    bench.assert_unchanged(other, &other_before);
}

each_case! {
    an_empty_data_directory_gets_everything_back {
        from_docker: DOCKER, PODMAN;
        from_podman: PODMAN, DOCKER;
    }
}

/// A manifest that somebody in the sandbox rewrote: nothing of another's is named, run or removed.
#[test]
#[ignore = "needs the lab (tests/lab/up)"]
fn a_rewritten_manifest_names_nothing_of_anybody_else() {
    let bench = Bench::watching(&[DOCKER]);
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
    let done = bench.ok(["adopt", "--owner", &owner, "--host", DOCKER, "--yes"]);
    let item = done.as_array().unwrap().iter().find(|item| item["id"] == json!(id)).unwrap();
    let message = text(&item["message"]);
    for said in ["2 images", "the catalogue's", "the name"] {
        assert!(message.contains(said), "{said}: {message}");
    }
    bench.get(&id).has(json!({
        "state": "ready", "name": null, "handle.built": null,
        "handle.runtime": made["handle"]["runtime"], "host_identity": made["host_identity"],
        "workdir": made["workdir"], "profile.hash": made["profile"]["hash"],
    }));
    bench.ok(["destroy", &id]);
    bench.assert_as_before();
}
