//! Patches that run in a service's container.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::add;
use crate::lab::{Bench, DOCKER, PODMAN, engine, on_host, text};

const STACK: &str = r#"services:
  app:
    image: localhost/sbx-lab:1
    command: ["sleep", "100000"]
    stop_signal: SIGKILL
    environment: {WHO: app}
  ended:
    image: localhost/sbx-lab:1
    command: ["true"]
"#;

fn with_box(host: &'static str, test: impl Fn(&Bench, &str)) {
    let bench = if [DOCKER, PODMAN].contains(&host) { Bench::new() } else { Bench::with(&[host]) };
    // A busy machine takes a while to begin a command in a container.
    let lines = "patches: {timeout: 10s, pass_timeout: 30s}\n";
    let profile = bench.profile("patched", lines);
    let repo = bench.stack("app", STACK);
    bench.run(crate::lab::stack_args(&profile, host, &repo, &["--name", "source"])).ok();
    bench.run(["snapshot", "source", "--name", "base"]).ok();
    let id = text(&bench.run(["restore", "base", "--name", "box"]).ok()["id"]);
    test(&bench, &id);
}

fn runs(bench: &Bench, service: &str, script: &str) -> (Value, Duration) {
    let sequence = add(bench, "base", script, &["--run-in", service]);
    let began = Instant::now();
    bench.run(["patches", "apply", "box"]);
    let took = began.elapsed();
    let record = bench.get("box");
    let all = record["applied_patches"].as_array().unwrap();
    let run = all
        .iter()
        .find(|run| run["sequence"] == sequence)
        .unwrap_or_else(|| panic!("{record:#}"))
        .clone();
    bench.run(["patches", "remove", "base", &sequence.to_string(), "--yes"]).ok();
    (run, took)
}

fn in_a_service(host: &'static str) {
    with_box(host, |bench, id| {
        let (run, _) = runs(
            bench,
            "app",
            "echo $WHO $SANDBOXER_ID; echo err >&2; cat; echo it >/changed; exit 5",
        );
        assert_eq!((&run["state"], &run["exit_status"]), (&json!("failed"), &json!(5)));
        assert_eq!(text(&run["output"]), format!("app {id}\nerr\n"));
        let changed = bench.run(["exec", "box", "--service", "app", "--", "cat", "/changed"]).ok();
        assert_eq!(changed["stdout"], "it\n");

        let (run, took) = runs(bench, "app", "sleep 4741.5 & sleep 4742.5");
        assert_eq!(run["state"], "failed", "{run:#}");
        assert!(took < Duration::from_secs(90), "{took:?}");
        let inside = format!(
            "for c in $({0} ps -q --filter label=com.docker.compose.project=sbx-{id}); do {0} exec $c ps; done",
            engine(host)
        );
        let left = on_host(host, &[&inside]);
        assert!(!left.contains("sleep 474"), "ended inside the container too: {left}");

        let (run, took) = runs(bench, "app", "sleep 1000 & echo started");
        assert_eq!((&run["state"], &run["output"]), (&json!("applied"), &json!("started\n")));
        assert!(took < Duration::from_secs(90), "it waits for no more than the script: {took:?}");

        // It has a container, and that does not run.
        let (run, _) = runs(bench, "ended", "true");
        assert_eq!(
            (&run["state"], &run["exit_status"]),
            (&json!("failed"), &json!(125)),
            "{run:#}"
        );
        assert!(text(&run["output"]).contains("service ended"), "{run:#}");
        // One that no sandbox of the snapshot can have is not even added.
        let file = bench.path("nosuch.sh");
        std::fs::write(&file, "true").unwrap();
        let asked = [
            "patches",
            "add",
            "base",
            "--script-file",
            file.to_str().unwrap(),
            "--run-in",
            "nosuch",
        ];
        let error = bench.run(asked).error_with_hint("invalid_input");
        assert_eq!(error["details"]["field"], "run_in", "{error:#}");
        assert!(error["hint"].as_str().unwrap().contains("app, ended"), "{error:#}");
    });
}

#[test]
#[ignore = "needs the lab (tests/lab/up)"]
fn in_a_service_on_docker() {
    in_a_service(DOCKER);
}

#[test]
#[ignore = "needs the lab (tests/lab/up)"]
fn in_a_service_on_podman() {
    in_a_service(PODMAN);
}

#[test]
#[ignore = "needs the lab (tests/lab/up)"]
fn in_a_service_on_rootless_podman() {
    in_a_service("coulombcore-ops");
}

/// One service ends when the workspace says so, the other one stays.
const ENDS: &str = r#"services:
  app:
    image: localhost/sbx-lab:1
    command: ["sh", "-c", "while [ ! -e /flags/end ]; do sleep 0.1; done; exit 3"]
    stop_signal: SIGKILL
    volumes: ["./flags:/flags"]
  stays:
    image: localhost/sbx-lab:1
    command: ["sleep", "100000"]
    stop_signal: SIGKILL
"#;

/// What runs is looked at again behind the patches: a service that one of them ended is not told of as if it ran.
#[test]
#[ignore = "needs the lab (tests/lab/up)"]
fn a_service_that_a_patch_ended_is_shown_as_ended() {
    let bench = Bench::new();
    let repo = bench.repository("ends", &[("docker-compose.yml", ENDS), ("flags/keep", "")]);
    bench.create_stack(DOCKER, &repo, &["--name", "source"]);
    bench.run(["snapshot", "source", "--name", "base"]).ok();
    bench.run(["restore", "base", "--name", "woken"]).ok();
    let ended = "docker ps -a --filter label=sandboxer.id=$SANDBOXER_ID --filter label=com.docker.compose.service=app --filter exited=3 -q";
    add(
        &bench,
        "base",
        &format!("touch flags/end; until [ -n \"$({ended})\" ]; do sleep 0.2; done"),
        &[],
    );
    bench.run(["sleep", "woken"]).ok();
    for record in [
        bench.run(["wake", "woken"]).ok(),
        bench.run(["restore", "base", "--name", "restored"]).ok(),
    ] {
        assert_eq!(
            (&record["state"], &record["patch_state"]),
            (&json!("ready"), &json!("applied")),
            "{record:#}"
        );
        let all = record["services"].as_array().unwrap();
        let of = |name: &str| {
            all.iter().find(|one| one["name"] == name).unwrap_or_else(|| panic!("{record:#}"))
        };
        let app = of("app");
        assert_eq!((&app["state"], &app["exit_code"]), (&json!("exited"), &json!(3)), "{record:#}");
        assert_eq!(of("stays")["state"], "running", "{record:#}");
    }
}
