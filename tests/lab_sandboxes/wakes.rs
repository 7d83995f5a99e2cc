//! What a start or a stop that was killed half-way leaves of containers: a wake brings all of it to running.

use serde_json::json;

use crate::kills::{killed, recovered, words as words_of};
use crate::lab::{Bench, DOCKER, PODMAN, engine, on_host, text};

const STACK: &str = r#"services:
  web:
    image: localhost/sbx-lab:1
    command: ["httpd", "-f", "-p", "80"]
    stop_signal: SIGKILL
    ports: ["80"]
  deaf:
    image: localhost/sbx-lab:1
    command: ["sh", "-c", "trap '' TERM; while :; do sleep 1; done"]
"#;

/// How each of the two containers stands.
fn stand(host: &str, id: &str) -> String {
    let all = "$1 inspect --type container -f '{{.State.Status}}' $($1 ps -aq --filter label=sandboxer.id=$2) | sort | tr '\\n' ' '";
    on_host(host, &[all, engine(host), id])
}

/// What is done to the containers, as words of a script: `$1` engine, `$2` id, `$web` and `$deaf`.
const CASES: &[(&str, &str, &str)] = &[
    ("podman", "a start that was killed before it began what it had made", "podman init $web $deaf >/dev/null"),
    ("podman", "one of them was begun", "podman init $web >/dev/null; podman start $deaf >/dev/null"),
    (
        "podman",
        "a stop that was killed while it waited",
        "podman start $web $deaf >/dev/null; podman stop -t 30 $deaf >/dev/null 2>&1 & until [ \"$(podman inspect -f '{{.State.Status}}' $deaf)\" = stopping ]; do :; done; kill -KILL $!; wait $! 2>/dev/null || :",
    ),
    // What podman does not write down: the runtime has it, and its port is taken.
    (
        "podman",
        "a start that was killed before podman wrote down what it had made",
        "tries=60; until runc list -q | grep -q $web && [ \"$(podman inspect -f '{{.State.Status}}' $web)\" = exited ]; do podman stop -t 0 $web >/dev/null 2>&1; podman start $web >/dev/null 2>&1 & sleep 0.1$((tries % 10))$((tries % 7)); kill -KILL $! 2>/dev/null; wait $! 2>/dev/null; tries=$((tries - 1)); [ $tries -gt 0 ] || break; done; :",
    ),
    ("any", "somebody started and paused them", "$1 start $web $deaf >/dev/null; $1 pause $web $deaf >/dev/null"),
    ("any", "somebody made one of them anew", "$1 start $deaf >/dev/null"),
];

#[test]
#[ignore = "needs the lab (tests/lab/up)"]
fn a_wake_brings_every_state_of_a_container_to_running_on_docker() {
    a_wake_brings_every_state_of_a_container_to_running(DOCKER);
}

#[test]
#[ignore = "needs the lab (tests/lab/up)"]
fn a_wake_brings_every_state_of_a_container_to_running_on_podman() {
    a_wake_brings_every_state_of_a_container_to_running(PODMAN);
}

fn a_wake_brings_every_state_of_a_container_to_running(host: &str) {
    let bench = Bench::new();
    let before = bench.snapshot(host);
    let id = text(&bench.create_stack(host, &bench.stack("own", STACK), &[])["id"]);
    for (on, what, words) in CASES.iter().filter(|(on, ..)| *on == "any" || *on == engine(host)) {
        let half = |id: &str| {
            let script = format!(
                "engine=$1 id=$2\nof() {{ $engine ps -aq --no-trunc --filter label=sandboxer.id=$id --filter label=com.docker.compose.service=$1; }}\nweb=$(of web) deaf=$(of deaf)\n$engine stop -t 0 $web $deaf >/dev/null 2>&1\n{words}"
            );
            on_host(host, &[&script, engine(host), id]);
            stand(host, id)
        };
        bench.run(["sleep", &id]).ok();
        let left = half(&id);
        bench.run(["wake", &id]).ok();
        assert_eq!(stand(host, &id), "running running ", "{on}, {what}: it was {left}");
        assert_eq!(bench.get(&id)["state"], json!("ready"), "{what}");

        // The same under a console that died over the wake: recover finds it, and says how it stands.
        bench.run(["sleep", &id]).ok();
        killed(&bench, "wake.started", &words_of(&["wake", &id]));
        let left = half(&id);
        let found = recovered(&bench);
        let state = text(&bench.get(&id)["state"]);
        assert!(found.contains_key(&id) && (state == "sleeping" || state == "ready"), "{what}: {found:?}");
        let now = stand(host, &id);
        match state.as_str() {
            "ready" => assert_eq!(now, "running running ", "{what}: it was {left}"),
            _ => assert!(!now.contains("running") && !now.contains("ing "), "{what}: it was {left}, and is {now}"),
        }
        bench.run(["wake", &id]).ok();
        assert_eq!(stand(host, &id), "running running ", "{what}: it was {left}");
    }
    bench.run(["destroy", &id, "--yes"]).ok();
    bench.assert_unchanged(host, &before);
}
