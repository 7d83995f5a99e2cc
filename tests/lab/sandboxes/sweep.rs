//! `sweep` on real hosts: what expired is gone from its host, whatever befell the sweep before, on a full disk too.

use serde_json::{Value, json};

use crate::faults::Tmpfs;
use crate::lab::{Bench, DOCKER, PODMAN, rooms, text, wait_until};
use crate::points::each_point;
use crate::sandboxes::kills::{killed, words};

/// Sweeps until the sandbox's time is over and something is done about it; that item.
fn swept(bench: &Bench, id: &str) -> Value {
    let mut found = Value::Null;
    wait_until("its time is over", || {
        let report = bench.run(["sweep"]).ok();
        assert_eq!(report["held_back"], Value::Null, "{report:#}");
        let items = report["items"].as_array().unwrap();
        let item = items.iter().find(|item| item["id"] == id && item["outcome"] != "warned");
        found = item.cloned().unwrap_or_default();
        item.is_some()
    });
    found
}

fn an_expired_stack_is_gone(host: &str) {
    let bench = Bench::new();
    let before = bench.snapshot(host);
    let made = bench.create_stack(host, &bench.web_stack("brief"), &["--ttl", "3s"]);
    let remarks = made["route"]["remarks"].to_string();
    assert!(remarks.contains("nothing has swept yet"), "{remarks}");
    let id = text(&made["id"]);
    let item = swept(&bench, &id);
    assert_eq!((&item["outcome"], &item["host"]), (&json!("destroyed"), &json!(host)), "{item:#}");
    let record = bench.get(&id);
    assert_eq!((&record["state"], &record["reason"]), (&json!("destroyed"), &json!("ttl_expired")));
    let kinds = bench.event_kinds(&id);
    let expiring = kinds.iter().filter(|kind| *kind == "sandbox.expiring").count();
    assert!(expiring <= 1 && kinds.last().unwrap() == "sandbox.destroyed", "{kinds:?}");
    bench.assert_unchanged(host, &before);
    assert_eq!(bench.run(["sweep"]).ok()["items"], json!([]));
}

#[test]
#[ignore = "needs the lab (tests/lab/up)"]
fn an_expired_stack_is_gone_from_docker() {
    an_expired_stack_is_gone(DOCKER);
}

#[test]
#[ignore = "needs the lab (tests/lab/up)"]
fn an_expired_stack_is_gone_from_podman() {
    an_expired_stack_is_gone(PODMAN);
}

each_point! {
    a_sweep_that_is_killed_is_finished_by_the_next = a_killed_sweep_is_finished(DOCKER) {
        destroy_destroying: "destroy.destroying";
        destroy_torn_down: "destroy.torn_down";
    }
}

fn a_killed_sweep_is_finished(host: &str, point: &str) {
    let bench = Bench::new();
    let before = bench.snapshot(host);
    let made = bench.run(["create", "--host", host, "--ttl", "1s"]).ok();
    let id = text(&made["id"]);
    let expires = text(&made["expires_at"]);
    wait_until("its time is over", || jiff::Timestamp::now() > expires.parse().unwrap());
    killed(&bench, point, &words(&["sweep"]));
    let item = swept(&bench, &id);
    assert_eq!(item["error"], Value::Null, "{item:#}");
    let record = bench.get(&id);
    assert_eq!((&record["state"], &record["reason"]), (&json!("destroyed"), &json!("ttl_expired")));
    bench.assert_unchanged(host, &before);
}

#[test]
#[ignore = "needs the lab (tests/lab/up)"]
fn what_expired_is_ended_on_a_full_disk() {
    let bench = Bench::new();
    let disk = Tmpfs::mount(bench.data(), "size=512k,mode=0700");
    let made = bench.run_base(["create", "--id", "brief", "--ttl", "1s"]).ok();
    let kept = bench.run_base(["create", "--id", "kept", "--ttl", "2h"]).ok();
    let expires = text(&made["expires_at"]);
    wait_until("its time is over", || jiff::Timestamp::now() > expires.parse().unwrap());
    disk.fill();
    let report = bench.run_base(["sweep"]).ok();
    let items = report["items"].as_array().unwrap();
    assert_eq!((items.len(), &items[0]["outcome"]), (1, &json!("destroyed")), "{report:#}");
    assert_eq!(bench.get("brief")["reason"], "ttl_expired");
    assert_eq!(bench.get("kept")["state"], kept["state"]);
    assert_eq!(rooms(&bench.home().join("sandboxes")), ["sbx-kept"]);
    bench.run_base(["destroy", "kept"]).ok();
}
