//! What dies soon after its start is not ready; what died later is told as such.

use serde_json::Value;

use crate::lab::{Bench, DOCKER, PODMAN, engine, on_host, stack_args, text, wait_until};

/// Only ready where a service counts before `settle` is over: nobody waits for that.
const LONG: &str = "settle: 10m\nready_timeout: 1m";

#[test]
#[ignore = "needs the lab (tests/lab/up)"]
fn a_service_that_dies_soon_after_its_start_fails_the_create_on_docker() {
    a_service_that_dies_soon_after_its_start_fails_the_create(DOCKER);
}

#[test]
#[ignore = "needs the lab (tests/lab/up)"]
fn a_service_that_dies_soon_after_its_start_fails_the_create_on_podman() {
    a_service_that_dies_soon_after_its_start_fails_the_create(PODMAN);
}

fn a_service_that_dies_soon_after_its_start_fails_the_create(host: &str) {
    let bench = Bench::new();
    let before = bench.snapshot(host);
    // The time that a profile gives where it does not say.
    let profile = bench.profile("usual", "settle: 2s");
    let ran = bench.run(stack_args(&profile, host, &bench.case("dies-after-200ms"), &[]));
    let error = ran.error_with_hint("operation_failed");
    assert_eq!(error["message"], "service db ended with status 3");
    let record = &bench.stored()[0];
    assert_eq!(record["state"], "failed");
    let failure = &record["failure"];
    assert_eq!(
        (&failure["step"], &failure["exit_status"]),
        (&"ready".into(), &3.into()),
        "{failure:#}"
    );
    assert!(text(&failure["output"]).contains("bad config"), "{failure:#}");
    bench.assert_unchanged(host, &before);

    // Started again and again: it is never ready, and its words are told, not those of `up`.
    let again = bench.case("dies-after-200ms").join("docker-compose.yml");
    let compose =
        std::fs::read_to_string(again).unwrap().replace("db: {", "db: {restart: always, ");
    let profile = bench.profile("hasty", "settle: 2s\nready_timeout: 5s");
    let ran = bench.run(stack_args(&profile, host, &bench.stack("again", &compose), &[]));
    let error = ran.error_with_hint("timeout");
    assert!(text(&error["message"]).contains("service db"), "{error:#}");
    let stored = bench.stored();
    let record = stored.iter().find(|record| record["profile"]["id"] == "profile.hasty").unwrap();
    assert!(text(&record["failure"]["output"]).contains("bad config"), "{:#}", record["failure"]);
    bench.assert_unchanged(host, &before);
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
    let record =
        bench.run(stack_args(&profile, DOCKER, &bench.stack("healthy", compose), &[])).ok();
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
    let id = text(
        &bench.run(stack_args(&profile, host, &bench.stack("broken", compose), &[])).ok()["id"],
    );
    bench.run(["sleep", &id]).ok();
    bench.run(["exec", &id, "--", "touch", "broken"]).ok();
    let error = bench.run(["wake", &id]).error("operation_failed");
    assert_eq!(error["message"], "service db ended with status 4", "{error:#}");
    assert_eq!(bench.get(&id)["state"], "sleeping");
    bench.run(["exec", &id, "--", "rm", "broken"]).ok();
    let woken = bench.run(["wake", &id]).ok();
    assert_eq!(state_of(&woken, "db"), "running", "{woken:#}");
    assert_eq!(state_of(&woken, "web"), "running", "{woken:#}");
}

#[test]
#[ignore = "needs the lab (tests/lab/up)"]
fn a_service_that_died_later_is_told_by_wait_on_docker() {
    a_service_that_died_later_is_told_by_wait(DOCKER);
}

#[test]
#[ignore = "needs the lab (tests/lab/up)"]
fn a_service_that_died_later_is_told_by_wait_on_podman() {
    a_service_that_died_later_is_told_by_wait(PODMAN);
}

fn a_service_that_died_later_is_told_by_wait(host: &str) {
    let compose = r#"services:
  db: {image: "localhost/sbx-lab:1", command: ["sh", "-c", "until [ -e /w/end ]; do sleep 0.1; done; exit 3"], volumes: [".:/w"]}
  web: {image: "localhost/sbx-lab:1", command: ["sleep", "1000"], stop_signal: SIGKILL}
"#;
    let bench = Bench::new();
    let id = text(&bench.create_stack(host, &bench.stack("later", compose), &[])["id"]);
    assert_eq!(bench.run(["wait", &id]).ok()["state"], "ready");
    bench.run(["exec", &id, "--", "touch", "end"]).ok();
    let ended = "$1 inspect --type container -f '{{.State.Status}}' $($1 ps -aq --filter label=sandboxer.id=$2 --filter label=com.docker.compose.service=db)";
    wait_until("db has ended", || on_host(host, &[ended, engine(host), &id]).contains("exited"));
    assert_eq!(state_of(&bench.get(&id), "db"), "running", "nobody has looked yet");
    let error = bench.run(["wait", &id, "--timeout", "1m"]).error_with_hint("operation_failed");
    assert!(text(&error["message"]).contains("db exit 3"), "{error:#}");
    let record = bench.get(&id);
    assert_eq!(
        (&record["state"], state_of(&record, "db").as_str()),
        (&"ready".into(), "exited"),
        "{record:#}"
    );
}

fn state_of(record: &Value, service: &str) -> String {
    let services = record["services"].as_array().unwrap();
    text(&services.iter().find(|of| of["name"] == service).unwrap()["state"])
}
