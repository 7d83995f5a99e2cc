//! What fails or is broken off leaves evidence on the record and nothing on the host.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::each_case::each_case;
use crate::lab::{
    Bench, DOCKER, PODMAN, Ran, Started, on_engine, rooms, stack_args, text, wait_until,
};
use crate::sandboxes::kills::id_of;
use crate::support::json_assertions::JsonAssertions as _;

pub(crate) const MISSING_IMAGE: &str =
    "services:\n  web: {image: \"localhost/sbx-no-such-image:1\"}\n";

pub(crate) const ENDS_AT_ONCE: &str = r#"services:
  fine: {image: "localhost/sbx-lab:1", command: ["sleep", "1000"], stop_signal: SIGKILL}
  web: {image: "localhost/sbx-lab:1", command: ["sh", "-c", "echo it went boom >&2; exit 3"]}
"#;

/// Its container is forever between two starts.
const NEVER_STAYS_UP: &str = r#"services:
  web: {image: "localhost/sbx-lab:1", restart: always, command: ["sh", "-c", "exit 1"]}
"#;

/// `up` of compose v2 does not come back before `first` has ended.
const UP_TAKES_LONG: &str = r#"services:
  first: {image: "localhost/sbx-lab:1", command: ["sleep", "1000"]}
  second:
    image: localhost/sbx-lab:1
    command: ["sleep", "1000"]
    depends_on: {first: {condition: service_completed_successfully}}
"#;

/// A stack whose create takes long: in `up` with compose v2, in the wait for readiness with podman-compose. A container
/// that ignores SIGTERM makes its removal take as long as the profile's grace.
pub(crate) fn slow_stack(host: &str) -> String {
    let up = if host == DOCKER { UP_TAKES_LONG } else { NEVER_STAYS_UP };
    format!("{up}  stubborn: {{image: \"localhost/sbx-lab:1\", command: [\"sleep\", \"1000\"]}}\n")
}

each_case! {
    a_failed_create_leaves_evidence_and_nothing_else {
        on_docker: DOCKER;
        on_podman: PODMAN;
    }
}

fn a_failed_create_leaves_evidence_and_nothing_else(host: &str) {
    let bench = Bench::new();
    let before = bench.snapshot(host);
    let profile = bench.profile("hasty", "ready_timeout: 60s");

    let missing = fail(&bench, &profile, host, MISSING_IMAGE, "operation_failed", &before);
    assert_eq!(missing["failure"]["step"], "up", "{missing:#}");
    assert!(text(&missing["failure"]["output"]).contains("web"), "{:#}", missing["failure"]);

    let ended = fail(&bench, &profile, host, ENDS_AT_ONCE, "operation_failed", &before);
    ended.has(json!({"failure.step": "ready", "failure.exit_status": 3}));
    assert!(text(&ended["failure"]["output"]).contains("it went boom"), "{ended:#}");
    ended.says("web");

    // Time enough to start the containers, however busy the machine is, and not to be ready.
    let impatient = bench.profile("impatient", "ready_timeout: 15s\nsettle: 2s");
    let slow = if host == DOCKER { UP_TAKES_LONG } else { NEVER_STAYS_UP };
    let started = Instant::now();
    let late = fail(&bench, &impatient, host, slow, "timeout", &before);
    // `up` itself is bounded, and its words are the evidence.
    let step = if host == DOCKER { "up" } else { "ready" };
    assert_eq!(late["failure"]["step"], step, "{late:#}");
    let evidence = text(&late["failure"]["output"]);
    assert!(evidence.contains(if host == DOCKER { "Started" } else { "web" }), "{evidence}");
    assert!(
        started.elapsed() < Duration::from_secs(90),
        "ready_timeout is 15 s: {:?}",
        started.elapsed()
    );
}

/// Creates a stack that cannot become ready; its record, after checking that nothing else is left.
fn fail(
    bench: &Bench,
    profile: &str,
    host: &str,
    compose: &str,
    code: &str,
    before: &BTreeSet<String>,
) -> Value {
    let repo = bench.stack("failing", compose);
    let ran = bench.run(stack_args(profile, host, &repo, &[]));
    assert_eq!(ran.stdout, "", "no record on stdout: {ran:#?}");
    let error = ran.error_with_hint(code);
    let id = text(&error["details"]["sandbox_id"]);
    let record = check_failed(bench, &id, "provision_failed");
    error.has(json!({"details.failure": record["failure"], "details.leftovers": []}));
    bench.assert_unchanged(host, before);
    bench.run(["wait", &id, "--timeout", "5s"]).error("operation_failed");
    destroy(bench, &id);
    record
}

pub(crate) fn check_failed(bench: &Bench, id: &str, reason: &str) -> Value {
    let record = bench.get(id);
    for (key, value) in [
        ("state", json!("failed")),
        ("reason", json!(reason)),
        ("operation", Value::Null),
        ("leftovers", json!([])),
    ] {
        assert_eq!(record[key], value, "{key}: {record:#}");
    }
    assert!(!text(&record["message"]).is_empty());
    assert!(record["failure"]["step"].is_string(), "{record:#}");
    assert!(record["failure"]["output"].is_string(), "{record:#}");
    assert!(!record["teardown"].as_array().unwrap().is_empty(), "{record:#}");
    assert_eq!(bench.event_kinds(id).last().map(String::as_str), Some("sandbox.failed"));
    record
}

pub(crate) fn destroy(bench: &Bench, id: &str) -> Ran {
    let ran = bench.run(["destroy", id]);
    assert_eq!(ran.ok(), json!([{"id": id, "ok": true}]));
    bench.get(id).has(json!({"state": "destroyed", "operation": null}));
    ran
}

#[test]
#[ignore = "needs the lab (tests/lab/up)"]
fn a_kept_failure_stays_until_it_is_destroyed() {
    let host = DOCKER;
    let bench = Bench::watching(&[host]);
    let repo = bench.stack("failing", ENDS_AT_ONCE);
    let ran = bench.try_stack(host, &repo, &["--keep-failed", "--ttl", "8h"]);
    let error = ran.error_with_hint("operation_failed");
    let id = text(&error["details"]["sandbox_id"]);
    error.hints("destroy");
    let record = bench.get(&id);
    record.has(json!({"state": "failed", "reason": "provision_failed"}));
    assert_eq!(containers(host, &id), 2, "the corpse is there");
    assert!(
        bench.workspace_root(host).join(format!("sbx-{id}/workspace/docker-compose.yml")).is_file()
    );
    let deadline = text(&record["expires_at"]).parse::<jiff::Timestamp>().unwrap();
    let left = deadline.as_second() - jiff::Timestamp::now().as_second();
    assert!((3500..=3600).contains(&left), "an hour from now, not the ttl: {left} s");
    destroy(&bench, &id);
    bench.assert_as_before();
}

/// How many containers a sandbox has.
pub(crate) fn containers(host: &str, id: &str) -> usize {
    let script = r#"$1 ps -aq --filter "label=com.docker.compose.project=sbx-$2""#;
    on_engine(host, &[script, id]).lines().count()
}

/// Starts a create that takes long, and waits until its containers are there.
fn start_slow_create(bench: &Bench, host: &str, grace: &str) -> (Started, String) {
    let profile = bench.profile("slow", &format!("ready_timeout: 300s\nstop_grace: {grace}"));
    let repo = bench.stack("slow", &slow_stack(host));
    let started = bench.start(stack_args(&profile, host, &repo, &[]));
    let id = text(&bench.wait_for_record(|record| record["state"] == "provisioning")["id"]);
    wait_until("its containers", || containers(host, &id) >= 2);
    (started, id)
}

#[test]
#[ignore = "needs the lab (tests/lab/up)"]
fn ctrl_c_rolls_back_and_a_second_one_leaves_at_once() {
    for host in [DOCKER, PODMAN] {
        let bench = Bench::new();
        let before = bench.snapshot(host);
        let (create, id) = start_slow_create(&bench, host, "1s");
        create.signal("INT");
        let ran = create.finish();
        ran.error("cancelled").has(json!({"details.sandbox_id": id}));
        let record = check_failed(&bench, &id, "cancelled");
        // What `up` said until then is the evidence.
        let evidence = text(&record["failure"]["output"]);
        assert!(host == PODMAN || evidence.contains(&format!("Container sbx-{id}")), "{evidence}");
        bench.assert_unchanged(host, &before);
    }

    let bench = Bench::watching(&[DOCKER]);
    let (create, id) = start_slow_create(&bench, DOCKER, "20s");
    create.signal("INT");
    std::thread::sleep(Duration::from_millis(700));
    let second = Instant::now();
    create.signal("INT");
    let ran = create.finish();
    // The rollback would take as long as the grace.
    assert!(second.elapsed() < Duration::from_secs(15), "{:?}", second.elapsed());
    ran.error("cancelled");
    // What it left is found again and removed.
    destroy(&bench, &id);
    bench.assert_as_before();
}

#[test]
#[ignore = "needs the lab (tests/lab/up)"]
fn destroy_cancels_a_create_of_another_process() {
    let host = DOCKER;
    let bench = Bench::watching(&[host]);
    let (create, id) = start_slow_create(&bench, host, "1s");
    // Other verbs do not wait.
    bench.run(["recreate", &id, "--yes"]).error("busy").has(json!({"details.pid": create.pid()}));
    let ran = destroy(&bench, &id);
    assert!(ran.took < Duration::from_secs(50), "{:?}", ran.took);
    create.finish().error("cancelled");
    bench.assert_as_before();
    let kinds = bench.event_kinds(&id);
    let expected = ["requested", "provisioning", "failed", "destroying", "destroyed"];
    assert_eq!(kinds, expected.map(|word| format!("sandbox.{word}")));
}

each_case! {
    what_a_killed_process_left_is_destroyed {
        on_docker: DOCKER, &[
            "compose.prepared",
            "compose.transferred",
            "compose.up",
            "create.provisioned",
            "create.dated",
            "create.ready",
        ];
        on_podman: PODMAN, &["compose.up", "create.provisioned"];
    }
}

fn what_a_killed_process_left_is_destroyed(host: &str, points: &[&str]) {
    let bench = Bench::watching(&[host]);
    let repo = bench.web_stack("x");
    for point in points {
        let args = stack_args("profile.compose-e2e", host, &repo, &["--idempotency-key", point]);
        bench.killed(point, &args);
        let is_left = |record: &Value| record["state"] != "destroyed";
        let left = bench.stored().into_iter().find(is_left).unwrap();
        let id = text(&left["id"]);
        let state = if *point == "create.ready" { "ready" } else { "provisioning" };
        assert_eq!(left["state"], state, "{point}");
        // The key finds it again, and says how it stands: nothing else is made.
        if state == "ready" {
            bench.ok(&args).has(json!({"id": left["id"], "state": left["state"]}));
        } else {
            let error = bench.refused(&args, "operation_failed");
            let details = &error["details"];
            assert_eq!(details["sandbox_id"], left["id"], "{point}: {error:#}");
            assert_eq!(details["state"], left["state"], "{point}: {error:#}");
            error.hints("recover");
        }
        assert_eq!(bench.stored().into_iter().filter(is_left).count(), 1, "{point}");
        destroy(&bench, &id);
        assert_destroyed_once(&bench, &id);
    }
    bench.assert_as_before();
}

/// On this machine, with nothing but Debian's base; a rollback that is killed is taken up by the destroy, too.
#[test]
#[ignore = "needs the lab (tests/lab/up)"]
fn a_kill_at_any_point_loses_no_record_and_no_event() {
    let bench = Bench::new();
    for (verb, point) in [
        ("create", "create.requested"),
        ("create", "create.provisioning"),
        ("create", "create.started"),
        ("destroy", "destroy.destroying"),
        ("destroy", "compose.torn_down"),
        ("destroy", "destroy.torn_down"),
        ("destroy", "destroy.destroyed"),
        ("recreate", "recreate.begin"),
        ("recreate", "recreate.torn_down"),
    ] {
        let id = &format!("lost-{}", id_of(point));
        let args: &[&str] = match verb {
            "create" => &["create", "--id", id],
            "destroy" => &["destroy", id],
            _ => &["recreate", id, "--yes"],
        };
        if verb != "create" {
            bench.run_base(["create", "--id", id]).ok();
        }
        let mut command = bench.base_command(args);
        command.env("FAILPOINTS", format!("{point}=return"));
        let ran = Started::spawn(command).finish();
        assert_eq!(ran.status, None, "{point}: killed by a signal: {ran:#?}");
        assert_eq!(bench.run_base(["destroy", id]).ok(), json!([{"id": id, "ok": true}]));
        assert_eq!(bench.run_base(["get", id]).ok()["state"], "destroyed", "{point}");
        assert!(rooms(&bench.home().join("sandboxes")).is_empty(), "{point}");
        assert_destroyed_once(&bench, id);
    }
}

/// Of its events the first and the last are there, and that it was destroyed is told once.
#[track_caller]
fn assert_destroyed_once(bench: &Bench, id: &str) {
    let kinds = bench.event_kinds(id);
    assert_eq!(kinds.first().map(String::as_str), Some("sandbox.requested"), "{id}: {kinds:?}");
    assert_eq!(kinds.last().map(String::as_str), Some("sandbox.destroyed"), "{id}: {kinds:?}");
    let destroyed = kinds.iter().filter(|kind| *kind == "sandbox.destroyed").count();
    assert_eq!(destroyed, 1, "{id}: {kinds:?}");
}

/// A removal whose console was killed goes on for a moment, and may do the last step just before the next one does.
#[test]
#[ignore = "needs the lab (tests/lab/up)"]
fn a_destroy_whose_last_step_another_one_did_ends_well() {
    let bench = Bench::new();
    for (id, program, script) in [
        ("last-rmdir", "rmdir", "rmdir -- \"$@\" 2>/dev/null; exec rmdir \"$@\""),
        (
            "last-rm",
            "rm",
            "case $* in *./manifest.json) rm \"$@\"; exec rmdir \"$PWD\";; esac; exec rm \"$@\"",
        ),
    ] {
        bench.run_base(["create", "--id", id]).ok();
        let first = bench.path(program);
        fs::create_dir(&first).unwrap();
        // The base's programs, and one that another removal is ahead of.
        let base = bench.base_path();
        let tool = first.join(program);
        let base = base.to_str().unwrap();
        fs::write(&tool, format!("#!/bin/sh\nPATH={base}\n{script}\n")).unwrap();
        fs::set_permissions(&tool, fs::Permissions::from_mode(0o755)).unwrap();
        let mut command = bench.base_command(["destroy", id]);
        command.env("PATH", format!("{}:{base}", first.display()));
        assert_eq!(Started::spawn(command).finish().ok(), json!([{"id": id, "ok": true}]));
        assert_eq!(bench.run_base(["get", id]).ok()["state"], "destroyed");
    }
    assert!(rooms(&bench.home().join("sandboxes")).is_empty());
}

#[test]
#[ignore = "needs the lab (tests/lab/up)"]
fn a_killed_rollback_loses_no_record_and_no_event() {
    let bench = Bench::new();
    let repo = bench
        .stack("none", "services: {a: {image: localhost/sbx-nowhere:1, pull_policy: never}}\n");
    for point in ["rollback.begin", "rollback.torn_down"] {
        let id = format!("back-{}", id_of(point));
        bench.killed(point, stack_args("profile.compose-e2e", DOCKER, &repo, &["--id", &id]));
        destroy(&bench, &id);
        assert!(rooms(&bench.workspace_root(DOCKER)).is_empty(), "{point}");
        assert_destroyed_once(&bench, &id);
    }
}
