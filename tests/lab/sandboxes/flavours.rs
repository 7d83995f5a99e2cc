//! The compose tools: each is found, certified for what it is, and runs a stack that is gone afterwards.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;

use serde_json::{Value, json};

use crate::each_case::each_case;
use crate::lab::{
    Bench, DOCKER, IMAGE, PODMAN, Started, WEB_STACK, http_get, stack_args, text, url_of,
};

const V1: &str = "sandboxer01-v1";
const V5: &str = "sandboxer01-v5";
const NEW: &str = "coulombcore-new";

/// A one-shot, a service that waits for its end, two containers of one service, and a port.
fn stack() -> String {
    format!(
        "name: shop\n{WEB_STACK}    depends_on: {{init: {{condition: service_completed_successfully, required: true}}}}\n  init:\n    image: localhost/sbx-lab:1\n    pull_policy: missing\n    command: [\"sh\", \"-c\", \"echo done > /data/word\"]\n    volumes: [\"data:/data\"]\n  twice:\n    image: localhost/sbx-lab:1\n    command: [\"sleep\", \"600\"]\n    stop_signal: SIGKILL\n    deploy: {{replicas: 2}}\nvolumes:\n  data: {{}}\n"
    )
}

fn a_stack_runs(host: &'static str) {
    let bench = Bench::with(&[host]).and_watches(&[host]);
    let repo = bench
        .repository("shop", &[("docker-compose.yml", &stack()), ("www/index.html", "any flavour")]);
    let made = bench.create_stack(host, &repo, &[]);
    let id = text(&made["id"]);
    let url = url_of(&made);
    assert!(http_get(&url).contains("any flavour"));
    let mut states: Vec<(String, String)> = made["services"]
        .as_array()
        .unwrap()
        .iter()
        .map(|s| (text(&s["name"]), text(&s["state"])))
        .collect();
    states.sort();
    let want = [("init", "exited"), ("twice", "running"), ("web", "running")];
    assert_eq!(states, want.map(|(name, state)| (name.to_owned(), state.to_owned())));
    assert_eq!(bench.ok(["recreate", &id, "--yes"])["state"], "ready");
    bench.ok(["destroy", &id, "--yes"]);
    bench.assert_as_before();

    // Whatever its exit status is worth, a stack that did not start is not called started, and is gone.
    let broken = bench.stack(
        "broken",
        "services:\n  a: {image: 'localhost/no-such-image:0', pull_policy: never}\n",
    );
    let failed = bench.try_stack(host, &broken, &[]);
    assert_eq!(failed.error("operation_failed")["details"]["leftovers"], json!([]));
    bench.assert_as_before();
}

each_case! {
    a_stack_runs {
        docker_compose_1_29_runs_a_stack: V1;
        docker_compose_5_runs_a_stack: V5;
        podman_compose_1_6_runs_a_stack: NEW;
    }
}

/// The certificate of a canary made with these variables set.
fn certificate(bench: &Bench, host: &str, variables: &[(&str, &str)]) -> Value {
    let mut command =
        bench.command(["create", "--profile", "profile.sandbox-canary", "--host", host]);
    command.envs(variables.iter().copied());
    let made = Started::spawn(command).finish().ok();
    bench.ok(["destroy", &text(&made["id"]), "--yes"]);
    made["certificate"].clone()
}

#[track_caller]
fn assert_certified(certificate: &Value, runtime: [&str; 4], trusted: bool, ps: &str) {
    let [flavour, version, engine, chosen] = runtime;
    let found = &certificate["runtime"];
    assert_eq!(found["flavour"], flavour, "{certificate:#}");
    assert!(text(&found["version"]).starts_with(version), "{certificate:#}");
    assert_eq!(found["engine"], json!(engine), "{certificate:#}");
    assert_eq!(found["chosen"], json!(chosen), "{certificate:#}");
    assert_eq!(certificate["exit_codes_trusted"], trusted, "{certificate:#}");
    assert_eq!(certificate["ps_format"], ps, "{certificate:#}");
}

#[test]
#[ignore = "needs the lab (tests/lab/up)"]
fn each_docker_compose_is_detected_and_certified() {
    let bench = Bench::with(&[V1, V5]).and_watches(&[V1]);
    for (host, flavour, version, ps) in [
        (V1, "docker-compose-v1", "1.29.", "none"),
        (DOCKER, "docker-compose-v2", "2.26.", "json-lines"),
        (V5, "docker-compose-v2", "5.", "json-lines"),
    ] {
        let certificate = certificate(&bench, host, &[]);
        assert_certified(&certificate, [flavour, version, "docker", "detected"], true, ps);
    }
    bench.assert_as_before();
}

#[test]
#[ignore = "needs the lab (tests/lab/up)"]
fn each_podman_compose_is_certified() {
    let bench = Bench::with(&[NEW, "coulombcore-ops"]).and_watches(&[NEW]);
    let new = certificate(&bench, NEW, &[]);
    assert_certified(&new, ["podman-compose", "1.6.", "podman", "override"], true, "json-array");
    for (host, rootless) in [(PODMAN, false), ("coulombcore-ops", true)] {
        let old = certificate(&bench, host, &[]);
        assert_certified(&old, ["podman-compose", "1.0.", "podman", "detected"], false, "none");
        assert_eq!(old["runtime"]["rootless"], rootless);
        assert!(old["findings"].to_string().contains("network"), "{old:#}");
        assert!(old["findings"].to_string().contains("CVE-2024-1753"), "{old:#}");
    }
    bench.assert_as_before();
}

#[test]
#[ignore = "needs the lab (tests/lab/up)"]
fn the_environment_chooses_before_detection_and_after_the_host() {
    let bench = Bench::with(&[NEW]);
    let named = [("SANDBOXER_COMPOSE_CMD", "docker-compose")];
    let chosen = certificate(&bench, DOCKER, &named);
    assert_certified(&chosen, ["docker-compose-v1", "1.29.", "docker", "override"], true, "none");
    let named = [("SANDBOXER_COMPOSE_CMD", "podman-compose")];
    let chosen = certificate(&bench, NEW, &named);
    assert_certified(&chosen, ["podman-compose", "1.6.", "podman", "override"], true, "json-array");
    // A command that is not there is not quietly replaced by one that is.
    let mut command =
        bench.command(stack_args("profile.compose-e2e", DOCKER, &bench.web_stack("x"), &[]));
    command.env("SANDBOXER_COMPOSE_CMD", "no-such-compose");
    Started::spawn(command).finish().error_with_hint("missing_dependency");
}

/// A compose command whose `up` fails as often as is said, with these words, and is the real one then.
fn stumbling(bench: &Bench, host: &str, times: u32, words: &str) -> (String, std::path::PathBuf) {
    let (program, count) =
        (bench.path(format!("compose-{times}")), bench.path(format!("count-{times}")));
    let real = if host == DOCKER { "docker compose" } else { "podman-compose" };
    let script = format!(
        r#"#!/bin/sh
case " $* " in *" up "*) echo >>{count}; [ "$(wc -l <{count})" -gt {times} ] || {{ echo '{words}' >&2; exit 125; }} ;; esac
exec {real} "$@"
"#,
        count = count.display(),
    );
    fs::write(&program, script).unwrap();
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
    (program.display().to_string(), count)
}

/// Where one sandbox is made while another one is removed, podman may not find an interface that it has just seen.
#[test]
#[ignore = "needs the lab (tests/lab/up)"]
fn an_engine_that_stumbled_over_somebody_elses_network_is_asked_again() {
    let vanished = "Error: route ip+net: no such network interface";
    // Docker never says this: what says it there is the stack's own.
    let on_podman = [(2, vanished, None), (9, vanished, Some(3)), (8, "Error: no space", Some(1))];
    for (host, cases) in [(DOCKER, &[(2, vanished, Some(1))][..]), (PODMAN, &on_podman[..])] {
        let bench = Bench::watching(&[host]);
        let repo = bench.web_stack("x");
        for &(times, words, tries) in cases {
            let (program, count) = stumbling(&bench, host, times, words);
            let mut command = bench.command(stack_args("profile.compose-e2e", host, &repo, &[]));
            command.env("SANDBOXER_COMPOSE_CMD", program);
            let ran = Started::spawn(command).finish();
            let Some(tries) = tries else {
                let made = ran.ok();
                assert_eq!(made["state"], "ready");
                bench.ok(["destroy", &text(&made["id"]), "--yes"]);
                continue;
            };
            let error = ran.error("operation_failed");
            assert!(error.to_string().contains(words), "{error:#}");
            assert_eq!(fs::read_to_string(count).unwrap().lines().count(), tries, "{words}");
        }
        bench.assert_as_before();
    }
}

/// Writes a repository whose two images have one word in them; all its files are of one moment.
fn with_word(bench: &Bench, name: &str, word: &str) -> std::path::PathBuf {
    let service = "command: [sleep, \"600\"]\n    stop_signal: SIGKILL";
    let compose = format!(
        "services:\n  web:\n    build: .\n    {service}\n  deep:\n    build: {{context: ./a/b, dockerfile: ../../D}}\n    {service}\n"
    );
    let image = format!("FROM {IMAGE}\nCOPY word /word\n");
    let files = [
        ("docker-compose.yml", compose.as_str()),
        ("Dockerfile", &image),
        ("D", &image),
        ("word", word),
        ("a/b/word", word),
    ];
    let repo = bench.repository(name, &files);
    let moment = std::time::SystemTime::UNIX_EPOCH + std::time::Duration::from_secs(1_700_000_000);
    for (file, _) in files {
        fs::File::options()
            .append(true)
            .open(repo.join(file))
            .unwrap()
            .set_modified(moment)
            .unwrap();
    }
    repo
}

fn a_build_takes_nothing_that_was_sent_before(host: &'static str) {
    let bench = if host == DOCKER { Bench::new() } else { Bench::with(&[host]) };
    let words = |id: &str| {
        ["web", "deep"].map(|service| {
            text(&bench.ok(["exec", id, "--service", service, "--", "cat", "/word"])["stdout"])
        })
    };
    let first = text(&bench.create_stack(host, &with_word(&bench, "first", "first"), &[])["id"]);
    assert_eq!(words(&first), ["first", "first"]);
    bench.ok(["destroy", &first]);
    let repo = with_word(&bench, "other", "other");
    let other = text(&bench.create_stack(host, &repo, &[])["id"]);
    assert_eq!(words(&other), ["other", "other"]);
    with_word(&bench, "other", "again");
    bench.ok(["recreate", &other, "--yes"]);
    assert_eq!(words(&other), ["again", "again"]);
    bench.ok(["destroy", &other]);
}

each_case! {
    a_build_takes_nothing_that_was_sent_before {
        docker_compose_2_builds_from_what_is_there: DOCKER;
        docker_compose_1_29_builds_from_what_is_there: V1;
        docker_compose_5_builds_from_what_is_there: V5;
    }
}
