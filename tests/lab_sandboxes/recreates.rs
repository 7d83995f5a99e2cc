//! A recreate that cannot come to its end is refused while the sandbox that is there still runs.

use std::fs;

use serde_json::Value;

use crate::lab::{Bench, DOCKER, PODMAN, engine, on_host, stack_args, text};

const V1: &str = "sandboxer01-v1";
const NEW: &str = "coulombcore-new";

/// A service that writes a word into its volume once.
const KEEPER: &str = r#"services:
  keeper:
    image: localhost/sbx-lab:1
    command: ["sh", "-c", "[ -e /data/word ] || echo first >/data/word; exec sleep 600"]
    stop_signal: SIGKILL
    volumes: ["data:/data"]
volumes: {data: {}}
"#;

/// Its containers with when they were started, and the word in its volume.
fn there(host: &str, id: &str) -> String {
    let script = r#"for c in $($1 ps -aq --filter label=com.docker.compose.project=sbx-$2); do
  $1 inspect --format '{{.Id}} {{.State.Status}} {{.State.StartedAt}}' $c; $1 exec $c cat /data/word
done; $1 volume ls -q | grep "sbx-${2}_""#;
    on_host(host, &[script, engine(host), id])
}

/// The record without what every writing of it changes.
fn told(record: &Value) -> Value {
    let mut record = record.clone();
    for key in ["revision", "observed_at", "pending"] {
        record.as_object_mut().unwrap().remove(key);
    }
    record
}

/// The recreate of a sandbox whose file was changed is refused with this code and these words, and nothing is touched.
fn costs_nothing(host: &'static str, changes: &[(&str, &str, &str, &str)]) {
    let bench = Bench::with(&[V1, NEW]);
    let before = bench.snapshot(host);
    let profile = bench.profile("keeper", "compose: {ports: ephemeral, allow: [builds]}");
    let repo =
        bench.repository("keeper", &[("docker-compose.yml", KEEPER), ("Dockerfile", "FROM localhost/sbx-nowhere:1\n")]);
    let made = bench.run(stack_args(&profile, host, &repo, &[])).ok();
    let id = text(&made["id"]);
    let (was, record) = (there(host, &id), told(&bench.get(&id)));
    assert!(was.contains("running") && was.contains("first"), "{was}");
    for (from, to, code, words) in changes {
        fs::write(repo.join("docker-compose.yml"), KEEPER.replace(from, to)).unwrap();
        let error = bench.run(["recreate", &id, "--yes"]).error_with_hint(code);
        assert!(error.to_string().contains(words), "{to}: {error:#}");
        assert!(text(&error["hint"]).contains("nothing of the sandbox was touched"), "{error:#}");
        assert_eq!(there(host, &id), was, "{to}");
        assert_eq!(told(&bench.get(&id)), record, "{to}");
    }
    fs::write(repo.join("docker-compose.yml"), KEEPER).unwrap();
    assert_eq!(bench.run(["recreate", &id, "--yes"]).ok()["state"], "ready");
    assert_ne!(there(host, &id), was, "it was made again");
    bench.run(["destroy", &id]).ok();
    bench.assert_unchanged(host, &before);
}

/// Lines of the file, what they become, and what is said to that.
const IMAGE: (&str, &str, &str, &str) = (
    "image: localhost/sbx-lab:1",
    "image: localhost/sbx-nowhere:1",
    "operation_failed",
    "localhost/sbx-nowhere:1 of services.keeper.image, which cannot be pulled",
);
const NEVER: (&str, &str, &str, &str) = (
    "image: localhost/sbx-lab:1",
    "image: localhost/sbx-nowhere:1\n    pull_policy: never",
    "operation_failed",
    "which is never pulled",
);
const BASE: (&str, &str, &str, &str) = (
    "image: localhost/sbx-lab:1",
    "build: .",
    "operation_failed",
    "localhost/sbx-nowhere:1 of services.keeper.build, which cannot be pulled",
);
const HOOK: (&str, &str, &str, &str) = (
    "stop_signal: SIGKILL",
    "stop_signal: SIGKILL\n    post_start: [{command: [\"true\"]}]",
    "invalid_input",
    "services.keeper.post_start",
);
const SUBNET: (&str, &str, &str, &str) = (
    "volumes: {data: {}}",
    "volumes: {data: {}}\nnetworks: {default: {ipam: {config: [{subnet: 'fd00::/64'}]}}}",
    "invalid_input",
    "the host has a route to fd00::/64",
);

#[test]
#[ignore = "needs the lab (tests/lab/up)"]
fn a_recreate_that_cannot_end_well_costs_nothing_on_docker() {
    costs_nothing(DOCKER, &[IMAGE, NEVER, BASE, SUBNET]);
}

#[test]
#[ignore = "needs the lab (tests/lab/up)"]
fn a_recreate_that_cannot_end_well_costs_nothing_with_docker_compose_1_29() {
    costs_nothing(V1, &[HOOK, IMAGE]);
}

#[test]
#[ignore = "needs the lab (tests/lab/up)"]
fn a_recreate_that_cannot_end_well_costs_nothing_on_podman() {
    costs_nothing(PODMAN, &[HOOK, IMAGE, NEVER, BASE]);
}

#[test]
#[ignore = "needs the lab (tests/lab/up)"]
fn a_recreate_that_cannot_end_well_costs_nothing_with_podman_compose_1_6() {
    costs_nothing(NEW, &[HOOK, IMAGE, BASE, SUBNET]);
}

/// What it is made from is an archive; the image is not in it.
fn a_restored_one_costs_nothing(host: &'static str) {
    let bench = Bench::new();
    let before = bench.snapshot(host);
    let image = format!("localhost/sbx-once-{}:1", std::process::id());
    let tag = |words: &str| on_host(host, &[&format!("$1 {words} >/dev/null"), engine(host), &image]);
    tag("tag localhost/sbx-lab:1 $2");
    let repo = bench.stack("once", &KEEPER.replace("localhost/sbx-lab:1", &image));
    let made = bench.create_stack(host, &repo, &[]);
    let taken = bench.run(["snapshot", &text(&made["id"]), "--mode", "stop"]).ok();
    let restored = bench.run(["restore", &text(&taken["id"])]).ok();
    let id = text(&restored["id"]);
    bench.run(["destroy", &text(&made["id"])]).ok();
    let (was, record) = (there(host, &id), told(&bench.get(&id)));
    tag("rmi $2");
    let error = bench.run(["recreate", &id, "--yes"]).error_with_hint("operation_failed");
    assert!(text(&error["message"]).contains(&image), "{error:#}");
    assert_eq!((there(host, &id), told(&bench.get(&id))), (was.clone(), record));
    tag("tag localhost/sbx-lab:1 $2");
    assert_eq!(bench.run(["recreate", &id, "--yes"]).ok()["state"], "ready");
    assert_ne!(there(host, &id), was, "it was made again");
    bench.run(["destroy", &id]).ok();
    bench.run(["snapshots", "delete", &text(&taken["id"])]).ok();
    tag("rmi $2");
    bench.assert_unchanged(host, &before);
}

#[test]
#[ignore = "needs the lab (tests/lab/up)"]
fn a_recreate_from_an_archive_whose_image_is_nowhere_costs_nothing_on_docker() {
    a_restored_one_costs_nothing(DOCKER);
}

#[test]
#[ignore = "needs the lab (tests/lab/up)"]
fn a_recreate_from_an_archive_whose_image_is_nowhere_costs_nothing_on_podman() {
    a_restored_one_costs_nothing(PODMAN);
}
