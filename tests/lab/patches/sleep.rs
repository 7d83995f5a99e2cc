//! Sleep and wake with each compose tool: what ran runs again and nothing else, and is reached where it is now.

use serde_json::{Value, json};

use crate::each_case::each_case;
use crate::lab::{Bench, DOCKER, PODMAN, engine, http_get, on_host, text, url_of, wait_until};
use crate::support::json_assertions::JsonAssertions as _;

/// A port, a one-shot that counts how often it ran, two containers of one service that write down their starts, and one that
/// ends by itself when it is told to.
const STACK: &str = r#"services:
  web:
    image: localhost/sbx-lab:1
    command: ["httpd", "-f", "-p", "80", "-h", "/www"]
    stop_signal: SIGKILL
    ports: ["18080:80"]
    volumes: ["./www:/www:ro"]
    depends_on: {init: {condition: service_completed_successfully, required: true}}
  init:
    image: localhost/sbx-lab:1
    command: ["sh", "-c", "echo ran >>/data/init"]
    volumes: ["data:/data"]
  twice:
    image: localhost/sbx-lab:1
    command: ["sh", "-c", "trap 'exit 0' TERM; echo start >>/data/twice; while :; do sleep 0.2; done"]
    volumes: ["data:/data"]
    deploy: {replicas: 2}
  ends:
    image: localhost/sbx-lab:1
    command: ["sh", "-c", "echo start >>/data/ends; while [ ! -e /data/end ]; do sleep 0.2; done; exit 3"]
    volumes: ["data:/data"]
volumes:
  data: {}
"#;

fn states(record: &Value) -> Vec<(String, String)> {
    let all = record["services"].as_array().unwrap().iter();
    let mut found: Vec<_> = all.map(|s| (text(&s["name"]), text(&s["state"]))).collect();
    found.sort();
    found
}

fn pairs(list: &[(&str, &str)]) -> Vec<(String, String)> {
    list.iter().map(|(name, state)| ((*name).to_owned(), (*state).to_owned())).collect()
}

fn lines(bench: &Bench, id: &str, file: &str) -> usize {
    let file = format!("/data/{file}");
    text(&bench.ok(["exec", id, "--service", "twice", "--", "cat", &file])["stdout"])
        .lines()
        .count()
}

/// What the engine says of a sandbox's containers: name and state.
fn containers(host: &str, id: &str) -> String {
    let script = format!(
        "{} ps -a --filter label=com.docker.compose.project=sbx-{id} --format '{{{{.Names}}}} {{{{.Status}}}}' | sort",
        engine(host)
    );
    on_host(host, &[&script])
}

fn sleeps_and_wakes(host: &'static str) {
    let bench = if [DOCKER, PODMAN].contains(&host) { Bench::new() } else { Bench::with(&[host]) };
    let before = bench.snapshot(host);
    let repo = bench
        .repository("shop", &[("docker-compose.yml", STACK), ("www/index.html", "still here")]);
    let made = bench.create_stack(host, &repo, &[]);
    let id = text(&made["id"]);
    let url = url_of(&made);
    assert!(http_get(&url).contains("still here"));

    let asleep = bench.ok(["sleep", &id]);
    asleep.has(json!({"state": "sleeping", "reachability": null}));
    let all_end = [("ends", "exited"), ("init", "exited"), ("twice", "exited"), ("web", "exited")];
    assert_eq!(states(&asleep), pairs(&all_end));
    assert!(!containers(host, &id).contains("Up"), "{}", containers(host, &id));
    assert_eq!(bench.ok(["sleep", &id])["state"], "sleeping", "once is enough");

    let awake = bench.ok(["wake", &id]);
    awake.has(json!({"state": "ready", "expires_at": made["expires_at"]}));
    let runs = [("ends", "running"), ("init", "exited"), ("twice", "running"), ("web", "running")];
    assert_eq!(states(&awake), pairs(&runs));
    assert!(http_get(&url_of(&awake)).contains("still here"));
    assert_eq!(awake["reachability"]["endpoints"].as_array().unwrap().len(), 1);
    // What runs writes that down in its own time.
    wait_until("both of them have started twice", || lines(&bench, &id, "twice") >= 4);
    assert_eq!(lines(&bench, &id, "init"), 1, "a one-shot runs once");
    assert_eq!(lines(&bench, &id, "twice"), 4, "a one-shot runs once");

    // What had died is not brought to life by a sleep, and does not keep it from waking.
    bench.ok(["exec", &id, "--service", "twice", "--", "touch", "/data/end"]);
    on_host(
        host,
        &[
            "i=0; while :; do case $(sh -c \"$1\") in *Exited*3*) exit 0 ;; esac; i=$((i + 1)); [ $i -lt 300 ] || exit 1; sleep 0.2; done",
            &format!(
                "{} ps -a --filter label=com.docker.compose.project=sbx-{id} --filter label=com.docker.compose.service=ends --format '{{{{.Status}}}}'",
                engine(host)
            ),
        ],
    );
    bench.ok(["sleep", &id]);
    let awake = bench.ok(["wake", &id]);
    assert_eq!(states(&awake)[0], ("ends".into(), "exited".into()));
    assert_eq!((lines(&bench, &id, "ends"), lines(&bench, &id, "init")), (2, 1));
    let kinds = bench.event_kinds(&id);
    let turns: Vec<&str> = kinds
        .iter()
        .map(String::as_str)
        .filter(|kind| matches!(*kind, "sandbox.sleeping" | "sandbox.woken"))
        .collect();
    assert_eq!(turns, ["sandbox.sleeping", "sandbox.woken", "sandbox.sleeping", "sandbox.woken"]);

    // From sleep it is destroyed like from anywhere.
    bench.ok(["sleep", &id]);
    bench.ok(["destroy", &id, "--yes"]);
    bench.assert_unchanged(host, &before);
}

each_case! {
    sleeps_and_wakes {
        docker_compose_2_26: DOCKER;
        docker_compose_1_29: "sandboxer01-v1";
        docker_compose_5_6: "sandboxer01-v5";
        podman_compose_1_0_3: PODMAN;
        podman_compose_1_6: "coulombcore-new";
        rootless_podman: "coulombcore-ops";
    }
}

each_case! {
    what_is_gone_is_said_and_nothing_is_started = what_is_gone_is_said {
        on_docker: DOCKER;
        on_podman: PODMAN;
    }
}

fn what_is_gone_is_said(host: &'static str) {
    let bench = Bench::new();
    let repo = bench.web_stack("x");
    let id = text(&bench.create_stack(host, &repo, &[])["id"]);
    bench.ok(["sleep", &id]);
    let remove = format!(
        "{0} rm $({0} ps -aq --filter label=com.docker.compose.project=sbx-{id})",
        engine(host)
    );
    on_host(host, &[&remove]);
    let error = bench.refused(["wake", &id], "operation_failed");
    error.says(&format!("sbx-{id}")).hints("recreate");
    bench.get(&id).has(json!({"state": "sleeping", "operation": null})).says("not on");
    // Asked again it says so again.
    bench.refused(["wake", &id], "operation_failed").has(json!({"message": error["message"]}));
    assert_eq!(bench.get(&id)["state"], "sleeping");
    assert_eq!(bench.ok(["recreate", &id, "--yes"])["state"], "ready");
}

// A service that had died before its sandbox went to sleep leaves none that is awake.
each_case! {
    one_that_was_dead_when_it_went_to_sleep_runs_when_it_is_woken_or_says_so = a_dead_one_runs_when_it_is_woken {
        on_docker: DOCKER;
        on_podman: PODMAN;
    }
}

fn a_dead_one_runs_when_it_is_woken(host: &'static str) {
    let bench = Bench::new();
    let repo = bench.web_stack("x");
    let id = text(&bench.create_stack(host, &repo, &[])["id"]);
    let on_all = |verb: &str| {
        let all = format!(
            "$({} ps -aq --filter label=com.docker.compose.project=sbx-{id})",
            engine(host)
        );
        on_host(host, &[&format!("{} {verb} {all}", engine(host))]);
    };
    on_all("kill");
    on_all("wait");
    bench.ok(["sleep", &id]);
    let awake = bench.ok(["wake", &id]);
    assert_eq!(states(&awake), pairs(&[("web", "running")]), "{awake:#}");
    on_all("kill");
    on_all("wait");
    on_all("rm");
    bench.ok(["sleep", &id]);
    for _ in 0..2 {
        bench.refused(["wake", &id], "operation_failed").hints("recreate");
        assert_eq!(bench.get(&id)["state"], "sleeping");
    }
    bench.ok(["destroy", &id]);
}

/// A service that cannot run any more when it is woken.
#[test]
#[ignore = "needs the lab (tests/lab/up)"]
fn a_wake_that_fails_sleeps_on_and_can_be_tried_again() {
    let stack = r#"services:
  fragile:
    image: localhost/sbx-lab:1
    command: ["sh", "-c", "cat /shared/needed || exit 9; exec sleep 1000"]
    stop_signal: SIGKILL
    volumes: ["./work:/shared"]
  solid:
    image: localhost/sbx-lab:1
    command: ["sleep", "1000"]
    stop_signal: SIGKILL
"#;
    for host in [DOCKER, PODMAN] {
        let bench = Bench::new();
        let repo = bench
            .repository("fragile", &[("docker-compose.yml", stack), ("work/needed", "here\n")]);
        let id = text(&bench.create_stack(host, &repo, &[])["id"]);
        bench.ok(["sleep", &id]);
        bench.ok(["exec", &id, "--", "mv", "work/needed", "work/away"]);
        bench.run(["wake", &id]).error("operation_failed").says("fragile ended with status 9");
        bench.get(&id).has(json!({"state": "sleeping", "operation": null}));
        assert!(!containers(host, &id).contains("Up"), "nothing of it was left running");
        bench.ok(["exec", &id, "--", "mv", "work/away", "work/needed"]);
        let awake = bench.ok(["wake", &id]);
        assert_eq!(states(&awake), pairs(&[("fragile", "running"), ("solid", "running")]));
    }
}

#[test]
#[ignore = "needs the lab (tests/lab/up)"]
fn a_workspace_alone_sleeps_too() {
    let bench = Bench::new();
    for host in [DOCKER, "local"] {
        let made = bench.ok(["create", "--host", host]);
        let id = text(&made["id"]);
        bench.ok(["sleep", &id]);
        assert_eq!(bench.ok(["wake", &id])["state"], "ready");
        bench.ok(["sleep", &id]);
        std::fs::remove_dir_all(text(&made["workdir"])).unwrap();
        bench.run(["wake", &id]).error("conflict");
        assert_eq!(bench.get(&id)["state"], "lost", "its host has nothing of it any more");
    }
}
