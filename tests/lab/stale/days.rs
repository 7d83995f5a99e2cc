//! Bad days of a reap: plans that are old or not true any more, consoles that are copies, hosts that die, change, are full or not
//! mounted, processes that are killed.

use std::fs;
use std::path::Path;
use std::process::Command;

use serde_json::{Value, json};

use super::{
    configure, drop_record, ended, expected, items, judged, owner, run_labelled, run_on, wait_past,
};
use crate::faults::{Relay, Tmpfs};
use crate::lab::{Bench, DOCKER, PODMAN, Way, on_engine, port_of, rooms, text, wait_until};
use crate::sandboxes::roots::Disk;
use crate::support::json_assertions::JsonAssertions as _;

const QUICK: &str = "stale: {failed_after: 1s, grace: 1s}";

/// A directory of this owner's, as its manifest says, whose time is over.
fn put_orphan(root: &Path, id: &str, owner: &str) {
    let folder = root.join(format!("sbx-{id}"));
    fs::create_dir_all(folder.join("workspace")).unwrap();
    fs::write(folder.join("workspace/file"), id).unwrap();
    let manifest = json!({
        "schema": 1, "id": id, "owner": owner, "profile": "profile.sandbox-canary",
        "created_at": "2026-01-01T00:00:00.000Z", "expires_at": "2026-01-01T01:00:00.000Z", "project": format!("sbx-{id}"),
        "sandbox": {"host_identity": {"machine_id": "0", "engine": null, "engine_id": null}}
    });
    fs::write(folder.join("manifest.json"), serde_json::to_string_pretty(&manifest).unwrap())
        .unwrap();
}

#[test]
#[ignore = "needs the lab (tests/lab/up)"]
fn a_plan_is_applied_to_what_is_still_so_and_to_nothing_else() {
    let bench = Bench::new();
    configure(&bench, QUICK);
    let create =
        |id: &str, ttl: &str| bench.ok(["create", "--id", id, "--host", DOCKER, "--ttl", ttl]);
    create("sdp-a", "1s");
    create("sdp-b", "1s");
    let stack =
        bench.create_stack(DOCKER, &bench.web_stack("x"), &["--id", "sdp-c", "--ttl", "2s"]);
    drop_record(&bench.data(), "sandboxes.json", "sdp-c");
    run_on(&bench, &bench.path("other"), &["create", "--id", "sdp-f", "--host", DOCKER]).ok();
    wait_past(&stack["expires_at"]);
    let plan = bench.ok(["reap-stale", "--dry-run", "--host", DOCKER]);
    let ids = ["sdp-a", "sdp-b", "sdp-c", "sdp-f"];
    assert_eq!(
        judged(&items(&plan["items"], &bench, &ids)),
        expected(&[
            ("sdp-a", "expired destroy"),
            ("sdp-b", "expired destroy"),
            ("sdp-c", "orphan_stack remove"),
            ("sdp-f", "foreign keep"),
        ])
    );
    // Somebody protects one, somebody works in another, somebody edits the plan.
    bench.ok(["label", "sdp-a", "protect=true"]);
    run_labelled(DOCKER, "sbx-sdp-c-late-1", "sdp-c", &owner(&bench.data()));
    let mut edited = plan.clone();
    for item in edited["items"].as_array_mut().unwrap() {
        if item["sandbox_id"] == "sdp-f" {
            item["class"] = json!("orphan_dir");
            item["action"] = json!("remove");
            item["possible"] = json!(["remove"]);
        }
    }
    let file = bench.path("plan.json");
    fs::write(&file, edited.to_string()).unwrap();
    let file = file.to_str().unwrap().to_owned();
    let done = bench.ok(["reap-stale", "--yes", "--plan", &file]);
    let did = items(&done, &bench, &ids);
    assert_eq!(
        ended(&did),
        expected(&[
            ("sdp-a", "expired skipped"),
            ("sdp-b", "expired removed"),
            ("sdp-c", "orphan_stack skipped"),
            ("sdp-f", "orphan_dir skipped"),
        ]),
        "{done:#}"
    );
    assert!(bench.directory(DOCKER, "sdp-a").exists() && bench.directory(DOCKER, "sdp-c").exists());
    assert!(bench.directory(DOCKER, "sdp-f").exists());
    // Applied twice, by its id, it skips everything; a day later, or unknown, it is refused.
    let again = bench.ok(["reap-stale", "--yes", "--plan", &text(&plan["id"])]);
    let again = items(&again, &bench, &ids);
    assert!(again.values().all(|item| item["outcome"] == "skipped"), "{again:#?}");
    let mut old = plan.clone();
    old["at"] = json!("2026-01-01T00:00:00.000Z");
    fs::write(&file, old.to_string()).unwrap();
    bench.refused(["reap-stale", "--yes", "--plan", &file], "conflict");
    bench.refused(["reap-stale", "--yes", "--plan", "plan-00000000"], "not_found");
    bench.refused(["reap-stale", "--yes", "--plan", "nothing-of-the-kind"], "invalid_input");
    bench.ok(["destroy", "sdp-a", "--force-protected", "--yes"]);
    run_on(&bench, &bench.path("other"), &["destroy", "sdp-f"]).ok();
    let named = bench.ok(["reap-stale", "--yes", "--host", DOCKER]);
    assert_eq!(ended(&items(&named, &bench, &ids)), expected(&[("sdp-c", "orphan_stack removed")]));
    assert_eq!(on_engine(DOCKER, &["$1 ps -aq --filter label=sandboxer.id=sdp-c"]), "");
}

#[test]
#[ignore = "needs the lab (tests/lab/up)"]
fn two_that_reap_at_once_remove_everything_once() {
    let bench = Bench::new();
    let made: Vec<Value> = (0..6)
        .map(|n| {
            bench.ok(["create", "--id", &format!("sdt-{n}"), "--host", "local", "--ttl", "1s"])
        })
        .collect();
    wait_past(&made[5]["expires_at"]);
    let plan = text(&bench.ok(["reap-stale", "--dry-run", "--host", "local"])["id"]);
    let one = bench.start(["reap-stale", "--yes", "--plan", &plan]);
    let two = bench.start(["reap-stale", "--yes", "--host", "local"]);
    for ran in [one.finish(), two.finish()] {
        // Who comes second is told that the first is at work, or finds nothing left.
        assert!(matches!(ran.status, Some(0 | 4)), "{ran:#?}");
    }
    bench.ok(["reap-stale", "--yes", "--host", "local"]);
    for n in 0..6 {
        let id = format!("sdt-{n}");
        assert_eq!(bench.get(&id)["state"], "destroyed");
        let kinds = bench.event_kinds(&id);
        let found = kinds.iter().filter(|kind| *kind == "sandbox.destroyed").count();
        assert_eq!(found, 1, "{kinds:?}");
    }
    assert_eq!(rooms(&bench.home().join("sandboxes")), Vec::<String>::new());
}

#[test]
#[ignore = "needs the lab (tests/lab/up)"]
fn a_directory_that_cannot_be_removed_stays_listed_with_the_reason() {
    let bench = Bench::new();
    bench.ok(["create", "--id", "sdm-x", "--host", DOCKER, "--ttl", "1s"]);
    drop_record(&bench.data(), "sandboxes.json", "sdm-x");
    configure(&bench, QUICK);
    let disk = Tmpfs::mount(bench.directory(DOCKER, "sdm-x").join("workspace/held"), "size=64k");
    wait_until("it is stale", || {
        let all = bench.ok(["inspect", "stale", "--host", DOCKER]);
        judged(&items(&all, &bench, &["sdm-x"]))
            .get("sdm-x")
            .is_some_and(|words| words == "orphan_dir remove")
    });
    let ran = bench.run(["reap-stale", "--yes", "--host", DOCKER]);
    let item = items(&ran.json(), &bench, &["sdm-x"]).remove("sdm-x").unwrap();
    item.has(json!({"outcome": "failed", "ok": false}));
    assert!(item.to_string().contains("mount point"), "{item:#}");
    assert_ne!(ran.status, Some(0));
    assert!(bench.directory(DOCKER, "sdm-x").join("manifest.json").exists());
    drop(disk);
    let done = bench.ok(["reap-stale", "--yes", "--host", DOCKER]);
    let found = items(&done, &bench, &["sdm-x"]);
    assert_eq!(ended(&found), expected(&[("sdm-x", "orphan_dir removed")]));
}

#[test]
#[ignore = "needs the lab (tests/lab/up)"]
fn a_restored_or_copied_data_directory_reaps_nothing() {
    let bench = Bench::new();
    configure(&bench, QUICK);
    bench.ok(["create", "--id", "sdr-early", "--host", DOCKER]);
    let yesterday = bench.path("yesterday");
    assert!(
        Command::new("cp").arg("-a").arg(bench.data()).arg(&yesterday).status().unwrap().success()
    );
    let late = bench.ok(["create", "--id", "sdr-late", "--host", DOCKER, "--ttl", "2s"]);
    wait_past(&late["expires_at"]);
    let plan = run_on(&bench, &yesterday, &["reap-stale", "--dry-run", "--host", DOCKER]).ok();
    assert_eq!(plan["held_back"]["reason"], "not_own", "{plan:#}");
    run_on(&bench, &yesterday, &["reap-stale", "--yes", "--host", DOCKER])
        .error_with_hint("conflict");
    assert!(bench.directory(DOCKER, "sdr-late").exists());
    assert!(bench.directory(DOCKER, "sdr-early").exists());
    let copy = bench.path("copy");
    assert!(Command::new("cp").arg("-a").arg(bench.data()).arg(&copy).status().unwrap().success());
    let mut owner: Value = serde_json::from_slice(&fs::read(copy.join("owner")).unwrap()).unwrap();
    owner["machine_id"] = json!("0123456789abcdef0123456789abcdef");
    fs::write(copy.join("owner"), owner.to_string()).unwrap();
    run_on(&bench, &copy, &["reap-stale", "--yes", "--host", DOCKER]).error_with_hint("conflict");
    assert!(bench.directory(DOCKER, "sdr-late").exists());
    let done = bench.ok(["reap-stale", "--yes", "--host", DOCKER]);
    let found = items(&done, &bench, &["sdr-late"]);
    assert_eq!(ended(&found), expected(&[("sdr-late", "expired removed")]));
    bench.ok(["destroy", "sdr-early"]);
}

#[test]
#[ignore = "needs the lab (tests/lab/up)"]
fn a_host_that_was_rebuilt_under_its_name_ends_the_pass() {
    let bench = Bench::new();
    configure(&bench, QUICK);
    let made = bench.ok(["create", "--id", "sdh-old", "--host", DOCKER, "--ttl", "1s"]);
    put_orphan(&bench.workspace_root(DOCKER), "sdh-lone", &owner(&bench.data()));
    wait_past(&made["expires_at"]);
    let path = bench.data().join("sandboxes.json");
    let ours = fs::read_to_string(&path).unwrap();
    let machine = text(&made["host_identity"]["machine_id"]);
    fs::write(&path, ours.replace(&machine, "00000000000000000000000000000000")).unwrap();
    let ran = bench.run(["inspect", "stale", "--host", DOCKER]);
    assert_eq!(ran.status, Some(5), "{ran:#?}");
    let kept = items(&ran.json(), &bench, &["sdh-old", "sdh-lone"]);
    assert_eq!(judged(&kept), expected(&[("sdh-old", "expired keep")]), "no orphan is seen there");
    let reaped = bench.run(["reap-stale", "--yes", "--host", DOCKER]);
    assert_eq!((reaped.status, reaped.json()), (Some(5), json!([])), "{reaped:#?}");
    assert!(
        bench.directory(DOCKER, "sdh-old").exists() && bench.directory(DOCKER, "sdh-lone").exists()
    );
    fs::write(&path, ours).unwrap();
    let done = bench.ok(["reap-stale", "--yes", "--host", DOCKER]);
    let done = items(&done, &bench, &["sdh-old", "sdh-lone"]);
    assert_eq!(
        ended(&done),
        expected(&[("sdh-old", "expired removed"), ("sdh-lone", "orphan_dir removed")])
    );
}

#[test]
#[ignore = "needs the lab (tests/lab/up)"]
fn a_root_that_is_not_mounted_loses_and_orphans_nothing() {
    let bench = Bench::new();
    let disk = Disk::new(&bench);
    bench.add_host("disky", &Way::to(DOCKER, port_of(DOCKER)), &disk.root());
    configure(&bench, QUICK);
    let made = bench.ok(["create", "--id", "sdu-over", "--host", "disky", "--ttl", "1s"]);
    bench.ok(["create", "--id", "sdu-fine", "--host", "disky"]);
    put_orphan(&disk.root(), "sdu-lone", &owner(&bench.data()));
    wait_past(&made["expires_at"]);
    disk.unmount();
    let ran = bench.run(["inspect", "stale", "--host", "disky"]);
    assert_eq!(ran.status, Some(5), "it is said: {ran:#?}");
    let seen = items(&ran.json(), &bench, &["sdu-over", "sdu-fine", "sdu-lone"]);
    assert!(!seen.contains_key("sdu-fine") && !seen.contains_key("sdu-lone"), "{seen:#?}");
    let reaped = bench.run(["reap-stale", "--yes", "--host", "disky"]);
    assert_ne!(reaped.status, Some(0), "{reaped:#?}");
    assert_eq!(bench.get("sdu-fine")["state"], "ready");
    assert_eq!(bench.get("sdu-over")["state"], "ready", "a refusal changes nothing");
    disk.mount();
    let done = bench.ok(["reap-stale", "--yes", "--host", "disky"]);
    let done = items(&done, &bench, &["sdu-over", "sdu-fine", "sdu-lone"]);
    assert_eq!(
        ended(&done),
        expected(&[("sdu-over", "expired removed"), ("sdu-lone", "orphan_dir removed")])
    );
    bench.ok(["destroy", "sdu-fine"]);
}

#[test]
#[ignore = "needs the lab (tests/lab/up)"]
fn what_was_made_behind_a_destroyed_record_is_an_orphan() {
    let bench = Bench::new();
    configure(&bench, QUICK);
    // Its time is not over: it is no wish of anybody's all the same.
    bench.ok(["create", "--id", "sdb-late", "--host", DOCKER]);
    let path = bench.data().join("sandboxes.json");
    let text = fs::read_to_string(&path).unwrap();
    fs::write(&path, text.replace("\"state\":\"ready\"", "\"state\":\"destroyed\"")).unwrap();
    wait_until("it is old enough", || {
        let all = bench.ok(["inspect", "stale", "--host", DOCKER]);
        items(&all, &bench, &["sdb-late"]).contains_key("sdb-late")
    });
    let done = bench.ok(["reap-stale", "--yes", "--host", DOCKER]);
    let found = items(&done, &bench, &["sdb-late"]);
    assert_eq!(ended(&found), expected(&[("sdb-late", "orphan_dir removed")]));
}

#[test]
#[ignore = "needs the lab (tests/lab/up)"]
fn of_300_on_three_hosts_one_that_dies_midway_holds_up_none_of_the_others() {
    let bench = Bench::new();
    bench.ok(["create", "--id", "sdx", "--host", "local"]);
    let us = owner(&bench.data());
    let relay = Relay::start(port_of(PODMAN), &[]);
    let far = bench.workspace_root(PODMAN);
    bench.add_host("dying", &Way::to(PODMAN, relay.port), &far);
    configure(&bench, QUICK);
    let (near, local) = (bench.workspace_root(DOCKER), bench.home().join("sandboxes"));
    for n in 0..100 {
        for (root, tag) in [(&far, "far"), (&near, "near"), (&local, "here")] {
            put_orphan(root, &format!("sdx-{tag}-{n}"), &us);
        }
    }
    let port = relay.port;
    let reap = bench.start([
        "reap-stale",
        "--yes",
        "--host",
        "dying",
        "--host",
        DOCKER,
        "--host",
        "local",
    ]);
    wait_until("it is in the middle", || rooms(&far).len() < 90);
    drop(relay);
    let ran = reap.finish();
    let left = rooms(&far).len();
    assert_eq!(ran.status, Some(8), "{left} left: {}", ran.stderr);
    let done = ran.json();
    let count = |host: &str, outcome: &str| {
        done.as_array()
            .unwrap()
            .iter()
            .filter(|item| item["host"] == host && item["outcome"] == outcome)
            .count()
    };
    assert_eq!((count(DOCKER, "removed"), count("local", "removed")), (100, 100));
    assert!(
        left > 0 && count("dying", "failed") > 0 && count("dying", "removed") > 0,
        "{left} left"
    );
    assert_eq!((rooms(&near).len(), rooms(&local)), (0, vec!["sbx-sdx".to_owned()]));
    let relay = Relay::start_at(port, port_of(PODMAN), &[]);
    bench.ok(["reap-stale", "--yes", "--host", "dying"]);
    assert_eq!(rooms(&far).len(), 0);
    drop(relay);
    bench.ok(["destroy", "sdx"]);
}

#[test]
#[ignore = "needs the lab (tests/lab/up)"]
fn a_host_that_is_down_or_full_is_no_reason_to_lose_anything() {
    let bench = Bench::new();
    let relay = Relay::start(port_of(DOCKER), &[]);
    let disk = Tmpfs::mount(bench.path("small"), "size=1m,mode=0700");
    bench.add_host("small", &Way::to(DOCKER, relay.port), &disk.path);
    configure(&bench, QUICK);
    let made = bench.ok(["create", "--id", "sdf-over", "--host", "small", "--ttl", "1s"]);
    put_orphan(&disk.path, "sdf-lone", &owner(&bench.data()));
    wait_past(&made["expires_at"]);
    let port = relay.port;
    drop(relay);
    let ran = bench.run(["reap-stale", "--yes", "--host", "small"]);
    assert_eq!((ran.status, ran.json()), (Some(5), json!([])), "{ran:#?}");
    assert_eq!(bench.get("sdf-over")["state"], "ready");
    let _relay = Relay::start_at(port, port_of(DOCKER), &[]);
    disk.fill();
    let done = bench.ok(["reap-stale", "--yes", "--host", "small"]);
    let done = items(&done, &bench, &["sdf-over", "sdf-lone"]);
    assert_eq!(
        ended(&done),
        expected(&[("sdf-over", "expired removed"), ("sdf-lone", "orphan_dir removed")])
    );
}

/// A copy of a data directory as it is now.
fn copy(from: &Path, to: &Path) {
    assert!(Command::new("cp").arg("-a").arg(from).arg(to).status().unwrap().success());
}

#[test]
#[ignore = "needs the lab (tests/lab/up)"]
fn a_copy_that_makes_something_first_is_behind_all_the_same() {
    let bench = Bench::new();
    configure(&bench, QUICK);
    let (old, new) = (bench.data(), bench.path("new"));
    bench.ok(["create", "--id", "sdc-base", "--host", DOCKER]);
    copy(&old, &new);
    // One is claimed, the other creates: by its number it would catch up with what the host counts.
    run_on(&bench, &new, &["doctor", "--claim"]);
    bench.ok(["create", "--id", "sdc-one", "--host", DOCKER]);
    let refused = bench.run(["destroy", "sdc-base"]);
    assert_eq!(refused.json()[0]["error"]["code"], "conflict", "{refused:#?}");
    run_on(&bench, &new, &["create", "--id", "sdc-two", "--host", DOCKER]).ok();
    // What the other one made meanwhile may live, and is adopted.
    run_on(&bench, &new, &["reap-stale", "--yes", "--host", DOCKER]);
    for id in ["sdc-base", "sdc-one", "sdc-two"] {
        assert!(bench.directory(DOCKER, id).exists(), "{id} lives");
    }
    // A create that failed leaves the smallest gap of all.
    run_on(&bench, &new, &["doctor", "--claim"]);
    let copied = bench.path("copied");
    copy(&new, &copied);
    let failing = bench
        .stack("failing", "services: {x: {image: localhost/sbx-lab:1, command: [\"false\"]}}\n");
    let repo = format!("repo={}", failing.display());
    run_on(
        &bench,
        &new,
        &["create", "--profile", "compose-e2e", "--host", DOCKER, "--input", &repo],
    );
    run_on(&bench, &copied, &["create", "--id", "sdc-three", "--host", DOCKER]).ok();
    let refused = run_on(&bench, &copied, &["destroy", "sdc-base"]);
    assert_eq!(refused.json()[0]["error"]["code"], "conflict", "{refused:#?}");
    for id in ["sdc-base", "sdc-one", "sdc-two", "sdc-three"] {
        for data in [&new, &old, &copied] {
            run_on(&bench, data, &["doctor", "--claim"]);
            run_on(&bench, data, &["destroy", id]);
        }
        assert!(!bench.directory(DOCKER, id).exists(), "{id} is gone");
    }
}

#[test]
#[ignore = "needs the lab (tests/lab/up)"]
fn a_copy_from_before_a_snapshot_or_an_adoption_reaps_none_of_it() {
    let bench = Bench::new();
    configure(&bench, QUICK);
    bench.ok(["create", "--id", "sda-source", "--host", DOCKER]);
    bench.ok(["create", "--id", "sda-lost", "--host", DOCKER]);
    drop_record(&bench.data(), "sandboxes.json", "sda-lost");
    let (before, between) = (bench.path("before"), bench.path("between"));
    copy(&bench.data(), &before);
    let taken = text(&bench.ok(["snapshot", "sda-source", "--name", "kept"])["id"]);
    copy(&bench.data(), &between);
    wait_until("it is old enough to be adopted", || {
        bench.run(["adopt", "--host", DOCKER]);
        bench.run(["get", "sda-lost"]).status == Some(0)
    });
    for data in [&before, &between] {
        let words =
            ["reap-stale", "--yes", "--host", DOCKER, "--snapshots", "--class", "orphan_dir"];
        run_on(&bench, data, &words).error("conflict");
    }
    bench.ok(["snapshots", "verify", &taken]);
    assert!(bench.directory(DOCKER, "sda-lost").exists());
    bench.ok(["snapshots", "delete", &taken]);
    for id in ["sda-lost", "sda-source"] {
        bench.ok(["destroy", id]);
    }
}

#[test]
#[ignore = "needs the lab (tests/lab/up)"]
fn a_console_whose_owner_was_adopted_loses_nothing_once_it_works_again() {
    let bench = Bench::new();
    configure(&bench, QUICK);
    let (first, second) = (bench.path("first"), bench.path("second"));
    run_on(&bench, &first, &["create", "--id", "sdo-one", "--host", DOCKER]).ok();
    let theirs = owner(&first);
    let adopted = ["adopt", "--owner", &theirs, "--host", DOCKER, "--yes"];
    run_on(&bench, &second, &adopted).ok();
    assert_eq!(run_on(&bench, &second, &["get", "sdo-one"]).ok()["owner"], json!(theirs));
    // The first console is the one behind, until it claims what is its own and goes on.
    run_on(&bench, &first, &["reap-stale", "--yes", "--host", DOCKER]).error("conflict");
    run_on(&bench, &first, &["doctor", "--claim"]);
    run_on(&bench, &first, &["create", "--id", "sdo-two", "--host", DOCKER]).ok();
    let path = second.join("sandboxes.json");
    let mut document: Value = serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
    document["records"][0]["expires_at"] = json!("2026-01-01T00:00:00.000Z");
    fs::write(&path, document.to_string()).unwrap();
    let words =
        ["reap-stale", "--yes", "--host", DOCKER, "--class", "expired", "--class", "orphan_dir"];
    let done = run_on(&bench, &second, &words).ok();
    assert_eq!(items(&done, &bench, &["sdo-one", "sdo-two"]).len(), 0, "{done:#}");
    let refused = run_on(&bench, &second, &["destroy", "sdo-one"]);
    assert_eq!(refused.json()[0]["error"]["code"], "conflict", "{refused:#?}");
    for id in ["sdo-one", "sdo-two"] {
        assert!(bench.directory(DOCKER, id).exists(), "{id} lives");
        run_on(&bench, &first, &["destroy", id]).ok();
    }
}

#[test]
#[ignore = "needs the lab (tests/lab/up)"]
fn a_reap_that_is_killed_is_finished_by_the_next() {
    let bench = Bench::watching(&[DOCKER]);
    for point in
        ["destroy.destroying", "compose.torn_down", "destroy.torn_down", "destroy.destroyed"]
    {
        let made = bench.ok(["create", "--host", DOCKER, "--ttl", "1s"]);
        let id = text(&made["id"]);
        wait_past(&made["expires_at"]);
        bench.killed(point, ["reap-stale", "--yes", "--host", DOCKER]);
        bench.ok(["reap-stale", "--yes", "--host", DOCKER]);
        assert_eq!(bench.get(&id)["state"], "destroyed", "{point}");
        bench.assert_as_before();
        let left = bench.ok(["reap-stale", "--dry-run", "--host", DOCKER]);
        assert_eq!(items(&left["items"], &bench, &[&id]).len(), 0, "{point}: {left:#}");
        let running = bench.ok(["recover"]);
        let ended = running.as_array().unwrap().iter().all(|item| item["ok"] == true);
        assert!(ended, "{point}: {running:#}");
    }
}
