//! `sweep` on real hosts: what expired is gone from its host, whatever befell the sweep before, on a full disk too.

use serde_json::{Value, json};

use crate::each_case::each_case;
use crate::faults::Tmpfs;
use crate::lab::{Bench, DOCKER, PODMAN, rooms, text, wait_until};
use crate::support::json_assertions::JsonAssertions as _;

/// Sweeps until the sandbox's time is over and something is done about it; that item.
fn swept(bench: &Bench, id: &str) -> Value {
    let mut found = Value::Null;
    wait_until("its time is over", || {
        let report = bench.ok(["sweep"]);
        assert_eq!(report["held_back"], Value::Null, "{report:#}");
        let items = report["items"].as_array().unwrap();
        let item = items.iter().find(|item| item["id"] == id && item["outcome"] != "warned");
        found = item.cloned().unwrap_or_default();
        item.is_some()
    });
    found
}

fn an_expired_stack_is_gone(host: &str) {
    let bench = Bench::watching(&[host]);
    let made = bench.create_stack(host, &bench.web_stack("brief"), &["--ttl", "3s"]);
    let remarks = made["route"]["remarks"].to_string();
    assert!(remarks.contains("nothing has swept yet"), "{remarks}");
    let id = text(&made["id"]);
    let item = swept(&bench, &id);
    item.has(json!({"outcome": "destroyed", "host": host}));
    bench.get(&id).has(json!({"state": "destroyed", "reason": "ttl_expired"}));
    let kinds = bench.event_kinds(&id);
    let expiring = kinds.iter().filter(|kind| *kind == "sandbox.expiring").count();
    assert!(expiring <= 1 && kinds.last().unwrap() == "sandbox.destroyed", "{kinds:?}");
    bench.assert_as_before();
    assert_eq!(bench.ok(["sweep"])["items"], json!([]));
}

each_case! {
    an_expired_stack_is_gone {
        from_docker: DOCKER;
        from_podman: PODMAN;
    }
}

#[test]
#[ignore = "needs the lab (tests/lab/up)"]
fn a_sweep_that_is_killed_is_finished_by_the_next() {
    let bench = Bench::watching(&[DOCKER]);
    for point in ["destroy.destroying", "destroy.torn_down"] {
        let made = bench.ok(["create", "--host", DOCKER, "--ttl", "1s"]);
        let id = text(&made["id"]);
        let expires = text(&made["expires_at"]);
        wait_until("its time is over", || jiff::Timestamp::now() > expires.parse().unwrap());
        bench.killed(point, ["sweep"]);
        let item = swept(&bench, &id);
        assert_eq!(item["error"], Value::Null, "{point}: {item:#}");
        bench.get(&id).has(json!({"state": "destroyed", "reason": "ttl_expired"}));
        bench.assert_as_before();
    }
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
