//! Containers that a killed start or stop left half-way: a wake brings all of them to running.

use serde_json::json;

use crate::each_case::each_case;
use crate::lab::{Bench, DOCKER, PODMAN, on_engine, text};
use crate::sandboxes::scripts;

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
    on_engine(host, &[all, id])
}

/// Deeds on the containers of a sandbox that sleeps, as words of a script: `$1` engine, `$2` id, `$web` and `$deaf`.
const DEEDS: [(&str, &str); 2] = [
    ("paused", "$1 start $web $deaf >/dev/null; $1 pause $web $deaf >/dev/null"),
    ("one made anew", "$1 start $deaf >/dev/null"),
];

each_case! {
    a_wake_brings_every_state_of_a_container_to_running {
        on_docker: DOCKER, &DEEDS;
        on_podman: PODMAN, &DEEDS;
        after_a_start_or_stop_of_podman_that_was_killed: PODMAN, &[
            // A start that was killed before it began what it had made.
            ("made and not begun", "podman init $web $deaf >/dev/null"),
            ("one begun", "podman init $web >/dev/null; podman start $deaf >/dev/null"),
            // A stop that was killed while it waited.
            ("stopping", "podman start $web $deaf >/dev/null; podman stop -t 30 $deaf >/dev/null 2>&1 & until [ \"$(podman inspect -f '{{.State.Status}}' $deaf)\" = stopping ]; do :; done; kill -KILL $!; wait $! 2>/dev/null || :"),
        ];
        of_what_podman_did_not_write_down: PODMAN, &[
            // A start that was killed before podman wrote down what it had made: the runtime has it, and its port is taken.
            ("made and not written down", "differs() { runc list -q | grep -q $web && [ \"$(podman inspect -f '{{.State.Status}}' $web)\" = exited ]; }\ntries=100; until differs; do [ $tries -gt 0 ] || { echo 'podman wrote it down each time' >&2; exit 1; }; tries=$((tries - 1)); podman stop -t 0 $web >/dev/null 2>&1 || :; podman start $web >/dev/null 2>&1 & until [ -e /run/runc/$web ] || ! kill -0 $! 2>/dev/null; do :; done; kill -KILL $! 2>/dev/null || :; wait $! 2>/dev/null || :; done"),
        ];
    }
}

fn a_wake_brings_every_state_of_a_container_to_running(host: &str, deeds: &[(&str, &str)]) {
    let bench = Bench::watching(&[host]);
    let id = text(&bench.create_stack(host, &bench.stack("own", STACK), &[])["id"]);
    for (deed, words) in deeds {
        let half = || {
            let script = format!(
                "engine=$1 id=$2\nof() {{ $engine ps -aq --no-trunc --filter label=sandboxer.id=$id --filter label=com.docker.compose.service=$1; }}\nweb=$(of web) deaf=$(of deaf)\n$engine stop -t 0 $web $deaf >/dev/null 2>&1\n{words}"
            );
            on_engine(host, &[&script, &id]);
            stand(host, &id)
        };
        bench.ok(["sleep", &id]);
        let left = half();
        bench.ok(["wake", &id]);
        assert_eq!(stand(host, &id), "running running ", "{deed}: it was {left}");
        assert_eq!(bench.get(&id)["state"], json!("ready"), "{deed}");

        // The same under a console that died over the wake: recover finds it, and says how it stands.
        bench.ok(["sleep", &id]);
        bench.killed("wake.started", ["wake", &id]);
        let left = half();
        let found = bench.recovered();
        let state = text(&bench.get(&id)["state"]);
        let known = state == "sleeping" || state == "ready";
        assert!(found.contains_key(&id) && known, "{deed}: {found:?}");
        let now = stand(host, &id);
        match state.as_str() {
            "ready" => assert_eq!(now, "running running ", "{deed}: it was {left}"),
            _ => assert!(
                !now.contains("running") && !now.contains("ing "),
                "{deed}: it was {left}, and is {now}"
            ),
        }
        bench.ok(["wake", &id]);
        assert_eq!(stand(host, &id), "running running ", "{deed}: it was {left}");
    }
    bench.ok(["destroy", &id, "--yes"]);
    bench.assert_as_before();
}

/// An engine with containers as files, of which each says how it stands. `LAG` is how long a start or a stop takes.
const ENGINE: &str = r#"#!/bin/sh
verb=$1
for one; do :; done
case $verb in
  inspect) case $* in *Name*) echo "/sbx-$one" ;; *) cat "$one" ;; esac ;;
  start) [ ! -e "broken-$one" ] || { echo "no such file: /$one"; echo "Error: failed to start containers: $one"; exit 1; } >&2; : >"begun-$one"; sleep "${LAG:-0}"; echo running >"$one" ;;
  stop) : >"begun-$one"; sleep "${LAG:-0}"; echo exited >"$one" ;;
esac
"#;

/// Definitions for starts and stops, where two containers are stopped.
fn shell(lines: &str) -> String {
    let definitions = ". $src/extensions/compose_ssh/scripts/turn.sh\nstart() { set -- \"$PWD\" docker 1 \"$@\"; . $src/extensions/compose_ssh/scripts/start.sh; }";
    scripts::shell(ENGINE, "exited", definitions, lines)
}

#[test]
fn a_start_whose_script_is_killed_comes_to_its_end_and_is_waited_for() {
    let said = shell(
        r#"export LAG=2
(start aa bb) & pid=$!
until [ -f begun-aa ]; do sleep 0.05; done
kill -KILL "$pid"
client=$(sed -n 2p .turning | cut -d ' ' -f 1)
[ "$(cut -d ' ' -f 6 "/proc/$client/stat")" != "$client" ] || echo 'in a session of its own'
sbx_token=next; sbx_take_turn 30; cat aa bb"#,
    );
    assert_eq!(
        said, "in a session of its own\nrunning\nexited\n",
        "and the second was never begun"
    );
}

#[test]
fn the_first_that_cannot_be_started_is_named_with_its_state_and_why() {
    let said = shell(
        r#": >broken-bb; echo exited >cc
(start aa bb cc 2>words); echo "status $?"; cat words aa bb cc
[ ! -e begun-cc ] && [ ! -e .turning ] && echo 'it stopped there, and gave its turn back'"#,
    );
    let words = "sbx-bb cannot be started from the state exited: no such file: /bb";
    let after = "it stopped there, and gave its turn back";
    assert_eq!(said, format!("status 1\n{words}\nrunning\nexited\nexited\n{after}\n"));
}

#[test]
fn a_turn_that_was_taken_over_begins_nothing_more() {
    let said = shell(
        r#"export LAG=1
(start aa bb 2>words) & pid=$!
until [ -f begun-aa ]; do sleep 0.05; done
sbx_token=next; sbx_take_turn 30; wait "$pid"; cat words aa bb .turning"#,
    );
    assert_eq!(said, "something else was begun meanwhile\nrunning\nexited\nnext\n");
}

#[test]
fn what_a_turn_left_that_nobody_ends_is_said() {
    let said = shell(
        r#"sleep 60 & echo x >.turning; echo "$! $(sbx_started $!)" >>.turning; sbx_take_turn 1; kill $!"#,
    );
    assert!(said.starts_with("process "), "{said}");
    assert!(said.ends_with(" still starts or stops its containers\n"), "{said}");
}
