//! Many processes on one data directory and one host at once.

use std::fs;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use serde_json::{Value, json};

use crate::lab::{Bench, rooms, text};
use crate::support::json_assertions::JsonAssertions as _;

/// Processes that work at the same time.
const AT_ONCE: usize = 8;

/// Sandboxes that each of them makes one after another. `SANDBOXER_CROWD=100` is the long run.
fn rounds() -> usize {
    std::env::var("SANDBOXER_CROWD").ok().and_then(|text| text.parse().ok()).unwrap_or(4)
}

/// Reads the files over and over until told to stop: each time they are whole. Answers how often.
fn watch(bench: &Bench, stop: &AtomicBool) -> usize {
    let mut looks = 0;
    while !stop.load(Ordering::Relaxed) {
        for name in ["sandboxes.json", "operations.json", "owner"] {
            let Ok(bytes) = fs::read(bench.data().join(name)) else { continue };
            let document: Value =
                serde_json::from_slice(&bytes).unwrap_or_else(|error| panic!("{name}: {error}"));
            assert_eq!(document["schema"], 1, "{name}");
        }
        looks += 1;
        std::thread::sleep(Duration::from_millis(2));
    }
    looks
}

/// One process after another: create, label, destroy.
fn work(bench: &Bench, worker: usize, rounds: usize, made: &AtomicUsize) {
    for round in 0..rounds {
        let id = format!("w{worker}-{round}");
        assert_eq!(bench.run_base(["create", "--id", &id]).ok()["state"], "ready", "{id}");
        bench
            .run_base(["label", &id, &format!("worker=w{worker}"), &format!("round=r{round}")])
            .ok()
            .has(json!({"labels": {"worker": format!("w{worker}"), "round": format!("r{round}")}}));
        assert_eq!(bench.run_base(["destroy", &id]).ok(), json!([{"id": id, "ok": true}]));
        made.fetch_add(1, Ordering::Relaxed);
    }
}

#[test]
#[ignore = "needs the lab (tests/lab/up)"]
fn eight_processes_at_once_lose_no_update() {
    let bench = Bench::new();
    let (stop, made, rounds) = (AtomicBool::new(false), AtomicUsize::new(0), rounds());
    bench.base_path();
    std::thread::scope(|scope| {
        let watcher = scope.spawn(|| watch(&bench, &stop));
        let workers: Vec<_> = (0..AT_ONCE)
            .map(|worker| {
                scope.spawn({
                    let (bench, made) = (&bench, &made);
                    move || work(bench, worker, rounds, made)
                })
            })
            .collect();
        let ended: Vec<_> = workers.into_iter().map(|worker| worker.join().is_ok()).collect();
        stop.store(true, Ordering::Relaxed);
        assert!(watcher.join().unwrap() > rounds, "the files were looked at");
        assert!(ended.iter().all(|well| *well), "{ended:?}");
    });
    assert_eq!(made.load(Ordering::Relaxed), AT_ONCE * rounds);

    let all = bench.run_base(["list", "--all"]).ok();
    let all = all.as_array().unwrap();
    assert_eq!(all.len(), AT_ONCE * rounds, "no record is lost");
    for record in all {
        let id = text(&record["id"]);
        let (worker, round) = id.split_once('-').unwrap();
        record.has(json!({
            "labels": {"worker": worker, "round": format!("r{round}")}, "state": "destroyed",
            "operation": null,
        }));
    }
    let events = bench.run_base(["events"]).ok();
    let events = events.as_array().unwrap();
    for (number, event) in events.iter().enumerate() {
        assert_eq!(event["seq"], json!(number + 1), "no event is lost or numbered twice");
    }
    let wanted = ["requested", "provisioning", "ready", "labelled", "destroying", "destroyed"];
    for record in all {
        let of: Vec<String> = events
            .iter()
            .filter(|event| event["sandbox_id"] == record["id"])
            .map(|event| text(&event["kind"]).trim_start_matches("sandbox.").to_owned())
            .collect();
        assert_eq!(of, wanted, "{}", record["id"]);
    }
    let operations = bench.run_base(["operations", "list"]).ok();
    let operations = operations.as_array().unwrap();
    assert_eq!(operations.len(), 2 * AT_ONCE * rounds);
    assert!(operations.iter().all(|operation| operation["state"] == "succeeded"));
    assert_eq!(bench.run_base(["recover"]).ok(), json!([]), "nothing is left to do");
    assert!(rooms(&bench.home().join("sandboxes")).is_empty());
}

#[test]
#[ignore = "needs the lab (tests/lab/up)"]
fn a_host_takes_no_more_than_its_maximum_however_many_ask_at_once() {
    let bench = Bench::new();
    let config = bench.path("config.yaml");
    let text = fs::read_to_string(&config).unwrap();
    let text = text.replace("  local:\n", "  local:\n    max_sandboxes: 3\n");
    fs::write(&config, text).unwrap();
    bench.base_path();
    let ran: Vec<_> = std::thread::scope(|scope| {
        let creates: Vec<_> =
            (0..AT_ONCE).map(|_| scope.spawn(|| bench.run_base(["create"]))).collect();
        creates.into_iter().map(|create| create.join().unwrap()).collect()
    });
    assert_eq!(ran.iter().filter(|ran| ran.status == Some(0)).count(), 3);
    for refused in ran.iter().filter(|ran| ran.status != Some(0)) {
        refused.error_with_hint("conflict").says("full: 3 of 3");
    }
    assert_eq!(bench.stored().len(), 3, "what was refused left no record");
}
