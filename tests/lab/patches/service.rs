//! Patches that run in a service's container.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::add;
use crate::each_case::each_case;
use crate::lab::{Bench, DOCKER, PODMAN, engine, on_host, text};
use crate::support::json_assertions::JsonAssertions as _;

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
    bench.ok(crate::lab::stack_args(&profile, host, &repo, &["--name", "source"]));
    bench.ok(["snapshot", "source", "--name", "base"]);
    let id = text(&bench.ok(["restore", "base", "--name", "box"])["id"]);
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
    bench.ok(["patches", "remove", "base", &sequence.to_string(), "--yes"]);
    (run, took)
}

fn in_a_service(host: &'static str) {
    with_box(host, |bench, id| {
        let (run, _) = runs(
            bench,
            "app",
            "echo $WHO $SANDBOXER_ID; echo err >&2; cat; echo it >/changed; exit 5",
        );
        run.has(json!({"state": "failed", "exit_status": 5, "output": format!("app {id}\nerr\n")}));
        let changed = bench.ok(["exec", "box", "--service", "app", "--", "cat", "/changed"]);
        assert_eq!(changed["stdout"], "it\n");

        // What it is made of stands in no list of processes: that of the host has those of the container, and everybody reads it.
        let script =
            "sleep 1 & ps -o args | sort; true well-hidden; env | grep -c SBX_TEXT; echo \"$0\"";
        let (run, _) = runs(bench, "app", script);
        let output = text(&run["output"]);
        assert!(output.contains("sleep 1") && output.ends_with("\n0\npatch\n"), "{run:#}");
        assert!(!output.contains("well-hidden"), "{run:#}");

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
        run.has(json!({"state": "applied", "output": "started\n"}));
        assert!(took < Duration::from_secs(90), "it waits for no more than the script: {took:?}");

        // It has a container, and that does not run.
        let (run, _) = runs(bench, "ended", "true");
        run.has(json!({"state": "failed", "exit_status": 125}));
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
        let error = bench.refused(asked, "invalid_input");
        assert_eq!(error["details"]["field"], "run_in", "{error:#}");
        error.hints("app, ended");
    });
}

each_case! {
    in_a_service {
        on_docker: DOCKER;
        on_podman: PODMAN;
        on_rootless_podman: "coulombcore-ops";
    }
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
    bench.ok(["snapshot", "source", "--name", "base"]);
    bench.ok(["restore", "base", "--name", "woken"]);
    let ended = "docker ps -a --filter label=sandboxer.id=$SANDBOXER_ID --filter label=com.docker.compose.service=app --filter exited=3 -q";
    add(
        &bench,
        "base",
        &format!("touch flags/end; until [ -n \"$({ended})\" ]; do sleep 0.2; done"),
        &[],
    );
    bench.ok(["sleep", "woken"]);
    for record in [bench.ok(["wake", "woken"]), bench.ok(["restore", "base", "--name", "restored"])]
    {
        record.has(json!({"state": "ready", "patch_state": "applied"}));
        let all = record["services"].as_array().unwrap();
        let of = |name: &str| {
            all.iter().find(|one| one["name"] == name).unwrap_or_else(|| panic!("{record:#}"))
        };
        let app = of("app");
        assert_eq!((&app["state"], &app["exit_code"]), (&json!("exited"), &json!(3)), "{record:#}");
        assert_eq!(of("stays")["state"], "running", "{record:#}");
    }
}
