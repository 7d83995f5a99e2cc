//! What dies soon after its start is not ready; what died later is told as such.

use serde_json::{Value, json};

use crate::each_case::each_case;
use crate::lab::{Bench, DOCKER, PODMAN, on_engine, stack_args, text, wait_until};
use crate::support::json_assertions::JsonAssertions as _;

/// Only ready where a service counts before `settle` is over: nobody waits for that.
const LONG: &str = "settle: 10m\nready_timeout: 1m";

fn a_service_that_dies_soon_after_its_start_fails_the_create(host: &str) {
    let bench = Bench::watching(&[host]);
    // The time that a profile gives where it does not say.
    let profile = bench.profile("usual", "settle: 2s");
    let ran = bench.run(stack_args(&profile, host, &bench.case("dies-after-200ms"), &[]));
    ran.error_with_hint("operation_failed")
        .has(json!({"message": "service db ended with status 3"}));
    let record = &bench.stored()[0];
    assert_eq!(record["state"], "failed");
    let failure = &record["failure"];
    failure.has(json!({"step": "ready", "exit_status": 3}));
    assert!(text(&failure["output"]).contains("bad config"), "{failure:#}");
    bench.assert_as_before();

    // Started again and again: it is never ready, and its words are told, not those of `up`.
    let again = bench.case("dies-after-200ms").join("docker-compose.yml");
    let compose =
        std::fs::read_to_string(again).unwrap().replace("db: {", "db: {restart: always, ");
    let profile = bench.profile("hasty", "settle: 2s\nready_timeout: 5s");
    let ran = bench.run(stack_args(&profile, host, &bench.stack("again", &compose), &[]));
    ran.error_with_hint("timeout").says("service db");
    let stored = bench.stored();
    let record = stored.iter().find(|record| record["profile"]["id"] == "profile.hasty").unwrap();
    assert!(text(&record["failure"]["output"]).contains("bad config"), "{:#}", record["failure"]);
    bench.assert_as_before();
}

#[test]
#[ignore = "needs the lab (tests/lab/up)"]
fn a_health_check_that_passed_and_a_one_shot_that_ended_well_are_not_waited_for_on_docker() {
    let compose = r#"services:
  init: {image: "localhost/sbx-lab:1", command: ["true"]}
  web:
    image: localhost/sbx-lab:1
    command: ["sleep", "1000"]
    stop_signal: SIGKILL
    healthcheck: {test: ["CMD", "true"], interval: 1s}
"#;
    let bench = Bench::new();
    let profile = bench.profile("long", LONG);
    let record = bench.ok(stack_args(&profile, DOCKER, &bench.stack("healthy", compose), &[]));
    assert_eq!(record["state"], "ready");
}

#[test]
#[ignore = "needs the lab (tests/lab/up)"]
fn a_service_that_dies_soon_after_it_was_woken_fails_the_wake_and_the_next_one_starts_it_on_docker()
{
    a_service_that_dies_soon_after_it_was_woken(DOCKER);
}

#[test]
#[ignore = "needs the lab (tests/lab/up)"]
fn a_service_that_dies_soon_after_it_was_woken_fails_the_wake_and_the_next_one_starts_it_on_podman()
{
    a_service_that_dies_soon_after_it_was_woken(PODMAN);
}

fn a_service_that_dies_soon_after_it_was_woken(host: &str) {
    let compose = r#"services:
  db:
    image: localhost/sbx-lab:1
    command: ["sh", "-c", "[ ! -e /w/broken ] || { sleep 0.2; echo bad state; exit 4; }; exec sleep 1000"]
    stop_signal: SIGKILL
    volumes: [".:/w"]
  web: {image: "localhost/sbx-lab:1", command: ["sleep", "1000"], stop_signal: SIGKILL}
"#;
    let bench = Bench::new();
    let profile = bench.profile("usual", "settle: 2s");
    let id =
        text(&bench.ok(stack_args(&profile, host, &bench.stack("broken", compose), &[]))["id"]);
    bench.ok(["sleep", &id]);
    bench.ok(["exec", &id, "--", "touch", "broken"]);
    let error = bench.run(["wake", &id]).error("operation_failed");
    error.has(json!({"message": "service db ended with status 4"}));
    assert_eq!(bench.get(&id)["state"], "sleeping");
    bench.ok(["exec", &id, "--", "rm", "broken"]);
    let woken = bench.ok(["wake", &id]);
    assert_eq!(state_of(&woken, "db"), "running", "{woken:#}");
    assert_eq!(state_of(&woken, "web"), "running", "{woken:#}");
}

fn a_service_that_died_later_is_told_by_wait(host: &str) {
    let compose = r#"services:
  db: {image: "localhost/sbx-lab:1", command: ["sh", "-c", "until [ -e /w/end ]; do sleep 0.1; done; exit 3"], volumes: [".:/w"]}
  web: {image: "localhost/sbx-lab:1", command: ["sleep", "1000"], stop_signal: SIGKILL}
"#;
    let bench = Bench::new();
    let id = text(&bench.create_stack(host, &bench.stack("later", compose), &[])["id"]);
    assert_eq!(bench.ok(["wait", &id])["state"], "ready");
    bench.ok(["exec", &id, "--", "touch", "end"]);
    let ended = "$1 inspect --type container -f '{{.State.Status}}' $($1 ps -aq --filter label=sandboxer.id=$2 --filter label=com.docker.compose.service=db)";
    wait_until("db has ended", || on_engine(host, &[ended, &id]).contains("exited"));
    assert_eq!(state_of(&bench.get(&id), "db"), "running", "nobody has looked yet");
    bench.refused(["wait", &id, "--timeout", "1m"], "operation_failed").says("db exit 3");
    let record = bench.get(&id);
    assert_eq!(record["state"], "ready", "{record:#}");
    assert_eq!(state_of(&record, "db").as_str(), "exited", "{record:#}");
}

fn state_of(record: &Value, service: &str) -> String {
    let services = record["services"].as_array().unwrap();
    text(&services.iter().find(|of| of["name"] == service).unwrap()["state"])
}

each_case! {
    a_service_that_dies_soon_after_its_start_fails_the_create {
        on_docker: DOCKER;
        on_podman: PODMAN;
    }

    a_service_that_died_later_is_told_by_wait {
        on_docker: DOCKER;
        on_podman: PODMAN;
    }
}
