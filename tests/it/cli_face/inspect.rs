//! `inspect host`: what is known of hosts, in words and as JSON; one that is silent holds nobody up.

use insta::assert_snapshot;
use sandboxer::domain::host_view::{HostState, HostView};
use serde_json::json;

use super::cli_world::*;
use super::fits;
use crate::test_env::fixture::{Fixture, host};

/// A host that is looked at closely: little of it is left, and its clock is wrong.
fn full(name: &str) -> HostView {
    let mut view = serde_json::to_value(host(name, HostState::Up, Some(12))).unwrap();
    let at = |seconds: u64| now().minus_seconds(seconds);
    view["limits"] = json!({"disk_used_pct": 90.0, "mem_used_pct": 90.0, "load_per_core": 4.0});
    view["facts"] = json!({
        "at": now(), "machine_id": "m", "hostname": "vm", "kernel": "Linux 6.1.0", "os": "Debian GNU/Linux 12",
        "user": "ops", "uid": 1000, "cpus": 2, "load1": 9.0, "mem_total_bytes": 1, "mem_available_bytes": 1,
        "disk": null, "workspace_root": "/home/ops/sandboxes", "clock_offset_s": null,
        "engines": [
            {"program": "docker", "version": "20.10.24", "id": "D", "rootless": false},
            {"program": "podman", "version": null, "id": "P", "rootless": true},
        ],
        "runtimes": [{
            "flavour": "docker-compose-v2", "version": "2.26.1", "command": ["docker", "compose"], "engine": "docker",
            "engine_version": "20.10.24", "engine_id": "D", "rootless": false, "chosen": "detected",
        }],
        "findings": ["docker-compose: does not run: \u{1b}[2Jno such file"],
        "inventory": {
            "networks": [
                {"engine": "docker", "used": 29, "left": 2}, {"engine": "podman", "used": 1, "left": null},
            ],
            "sizes_at": at(130),
            "sandboxes": [
                {"sandbox_id": "a1b2c3d4", "owner": "own-1", "directory": "/home/ops/sandboxes/sbx-a1b2c3d4",
                 "containers": ["w", "d"], "networks": ["n"], "volumes": [], "profile": "profile.compose-e2e",
                 "created_at": at(7200), "expires_at": now().plus_seconds(3600), "bytes": 1_288_490_188_u64},
                {"sandbox_id": "x\u{1b}[2J", "owner": null, "directory": null, "containers": ["w"],
                 "expires_at": at(300)},
            ],
            "archives": [
                {"snapshot_id": "snap-0000000a", "sandbox_id": "a1b2c3d4", "owner": "own-1", "directory": "/d",
                 "created_at": at(86_400), "bytes": 120_000_000},
            ],
        },
    });
    view["sample"] = json!({
        "at": now(), "latency_ms": 12, "cpus": 2, "load1": 9.0, "mem_total_bytes": 2_147_483_648_u64,
        "mem_available_bytes": 107_374_182, "swap_total_bytes": 0, "swap_free_bytes": 0,
        "disk": {"path": "/home", "total_bytes": 1_099_511_627_776_u64, "used_bytes": 1_044_536_046_388_u64, "available_bytes": 54_975_581_388_u64,
                 "inodes": 1000, "inodes_free": 50},
        "uptime_s": 273_600, "clock_offset_s": -600.25,
        "sandboxes": {"a1b2c3d4": {"cpu_pct": null, "memory_bytes": 734_003_200, "containers": 2}},
        "findings": ["the workspace root's file system did not answer in 2 s"],
    });
    serde_json::from_value(view).unwrap()
}

async fn fleet() -> Console {
    let hosts = vec![
        host("sandboxer01", HostState::Up, Some(12)),
        host("railiance01", HostState::Down, None),
        host("prod", HostState::Forbidden, None),
    ];
    let console = env_of(Fixture { hosts, ..Fixture::default() }).await;
    let full = full("sandboxer01");
    console
        .answers("inspect_host sandboxer01", full.clone())
        .answers("check_host sandboxer01", full)
}

#[tokio::test]
async fn hosts_are_inspected_in_words() {
    assert_snapshot!("inspect_host", run(&fleet().await, "inspect host").await);
    assert_snapshot!("inspect_host_down", run(&fleet().await, "inspect host railiance01").await);
}

#[tokio::test]
async fn the_status_of_inspect_host_is_that_of_hosts_check() {
    for (names, status) in [
        ("sandboxer01", 0),
        ("SANDBOXER01 sandboxer01", 0),
        ("railiance01", 5),
        ("", 8),
        ("nowhere", 3),
        ("sandboxer01 nowhere", 8),
        ("prod", 9),
        ("prod railiance01", 5),
    ] {
        for verb in ["inspect host", "hosts check"] {
            let line = format!("{verb} {names}");
            assert_eq!(exits(&fleet().await, line.trim()).await, status, "{line}");
        }
    }
}

#[tokio::test]
async fn as_json_it_is_an_array_of_hosts_by_name_with_the_last_sample() {
    let ran = run(&fleet().await, "inspect host sandboxer01 railiance01 --json").await;
    let views = ran.json();
    fits("hosts", &views);
    let names: Vec<&str> =
        views.as_array().unwrap().iter().map(|view| view["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["railiance01", "sandboxer01"]);
    assert_eq!(views[1]["sample"]["sandboxes"]["a1b2c3d4"]["containers"], 2);
    assert_eq!(views[1]["facts"]["inventory"]["networks"][0]["left"], 2);
    let one = run(&fleet().await, "inspect host sandboxer01 --json").await;
    assert_eq!((one.status, one.json().as_array().unwrap().len()), (0, 1));
}
