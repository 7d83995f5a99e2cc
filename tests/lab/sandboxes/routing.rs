//! Candidates of a route on real hosts: one that is down, full or lacks something is passed with its reason, and one that fails there
//! leaves nothing when the next one takes over.

use std::fs;

use serde_json::Value;

use crate::lab::{Bench, DOCKER, PODMAN, Way, free_port, text};
use crate::sandboxes::kills::id_of;

/// A service that podman's container ends, and Docker's does not: podman tells each that it is its.
const DOCKER_ONLY: &str = "services:\n  web:\n    image: localhost/sbx-lab:1\n    command: [sh, -c, 'test -z \"$$container\" && exec sleep 1000; exit 3']\n";

const HOOKED: &str =
    "services:\n  web:\n    image: localhost/sbx-lab:1\n    post_start: [{command: [\"true\"]}]\n";

/// Profile whose candidates are these hosts, in this order.
fn routed(bench: &Bench, first: &str, second: &str) -> String {
    let lines = format!(
        "routing:\n  candidates:\n    - {{extension: ext.compose-ssh, hosts: [{first}]}}\n    - {{extension: ext.compose-ssh, hosts: [{second}]}}"
    );
    bench.profile("routed", &lines)
}

fn create(profile: &str, repo: &std::path::Path, more: &[&str]) -> Vec<String> {
    let repo = format!("repo={}", repo.display());
    let words = ["create", "--profile", profile, "--input", &repo];
    words.iter().chain(more).map(|word| (*word).to_owned()).collect()
}

fn verdict(candidate: &Value) -> (bool, Option<&str>) {
    (candidate["ok"] == true, candidate["condition"].as_str())
}

#[test]
#[ignore = "needs the lab (tests/lab/up)"]
fn a_candidate_that_is_down_full_or_lacks_something_is_passed_with_its_reason() {
    let bench = Bench::new();
    bench.add_host("silent", &Way::to(DOCKER, free_port()), &bench.path("nowhere"));
    bench.add_host("full", &Way::to(PODMAN, crate::lab::port_of(PODMAN)), &bench.path("full"));
    let config = bench.path("config.yaml");
    let told = fs::read_to_string(&config).unwrap();
    let limited = told.replace("  full:\n", "  full:\n    max_sandboxes: 1\n");
    assert_ne!(told, limited);
    fs::write(&config, limited).unwrap();
    bench.ok(["create", "--host", "full", "--id", "only"]);
    let repo = bench.stack("hooked", HOOKED);
    for (first, condition, words) in [
        ("silent", "host-unreachable", "silent"),
        ("full", "saturated", "full"),
        (PODMAN, "unsupported", "post_start"),
    ] {
        let profile = routed(&bench, first, DOCKER);
        let plan = bench.ok(create(&profile, &repo, &["--dry-run"]));
        let candidates = plan["candidates"].as_array().unwrap();
        assert_eq!(verdict(&candidates[0]), (false, Some(condition)), "{plan:#}");
        assert_eq!(verdict(&candidates[1]), (true, None), "{plan:#}");
        assert!(text(&candidates[0]["reason"]).contains(words), "{plan:#}");
        let record = bench.ok(create(&profile, &repo, &["--id", &format!("r-{first}")]));
        assert_eq!((text(&record["host"]).as_str(), &record["state"]), (DOCKER, &"ready".into()));
        assert_eq!(verdict(&record["route"]["candidates"][0]), (false, Some(condition)));
        bench.ok(["destroy", &format!("r-{first}")]);
    }
    // Where both refuse: one error with both verdicts, and nothing written.
    let profile = routed(&bench, "silent", "full");
    let error = bench.run(create(&profile, &repo, &[])).error("conflict");
    let causes = error["causes"].as_array().unwrap();
    assert!(text(&causes[0]).starts_with("ext.compose-ssh (host-unreachable): "), "{error:#}");
    assert!(text(&causes[1]).starts_with("ext.compose-ssh (saturated): "), "{error:#}");
    bench.ok(["destroy", "only"]);
}

#[test]
#[ignore = "needs the lab (tests/lab/up)"]
fn a_candidate_that_fails_on_its_host_leaves_nothing_there_and_the_next_one_takes_over() {
    let bench = Bench::watching(&[PODMAN]);
    let repo = bench.stack("docker-only", DOCKER_ONLY);
    let profile = routed(&bench, PODMAN, DOCKER);
    let record = bench.ok(create(&profile, &repo, &["--id", "fell"]));
    assert_eq!((text(&record["host"]).as_str(), &record["state"]), (DOCKER, &"ready".into()));
    let attempts = record["attempts"].as_array().unwrap();
    let tried: Vec<&Value> = attempts.iter().filter(|one| !one["extension"].is_null()).collect();
    assert_eq!(
        (tried.len(), &tried[0]["host"], &tried[0]["ok"]),
        (2, &PODMAN.into(), &false.into())
    );
    assert!(tried[0]["failure"]["step"].is_string(), "{record:#}");
    bench.assert_as_before();
    bench.ok(["destroy", "fell"]);
}

/// Every step between two attempts.
#[test]
#[ignore = "needs the lab (tests/lab/up)"]
fn creates_that_are_killed_between_attempts_leave_nothing() {
    let points = ["rollback.torn_down", "fallback.noted", "fallback.held", "fallback.moved"];
    let bench = Bench::watching(&[PODMAN, DOCKER]);
    let repo = bench.stack("docker-only", DOCKER_ONLY);
    let profile = routed(&bench, PODMAN, DOCKER);
    for point in points {
        bench.killed(point, create(&profile, &repo, &["--id", &id_of(point)]));
    }
    let states = bench.recovered();
    for point in points {
        assert_eq!(states[&id_of(point)], "destroyed", "{point}");
    }
    bench.assert_as_before();
}
