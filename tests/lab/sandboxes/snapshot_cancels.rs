//! Ctrl-C while a snapshot holds containers still: once the command is over they run, and they go on running.

use std::io::{BufRead, BufReader};
use std::process::Command;
use std::time::Duration;

use crate::each_case::each_case;
use crate::held::held_and;
use crate::lab::{Bench, DOCKER, PODMAN, signal, text};
use crate::sandboxes::snapshot_kills::{all_run, statuses};
use crate::support::json_assertions::JsonAssertions as _;
use serde_json::json;

const CROWD: &str = r#"services:
  web:
    image: "localhost/sbx-lab:1"
    command: ["sleep", "100000"]
    stop_signal: SIGKILL
  worker:
    image: "localhost/sbx-lab:1"
    command: ["sleep", "100000"]
    stop_signal: SIGKILL
  queue:
    image: "localhost/sbx-lab:1"
    command: ["sleep", "100000"]
    stop_signal: SIGKILL
"#;

/// Starts a snapshot and interrupts it so long after it said that it is at a stage. Its exit status.
fn interrupted(bench: &Bench, id: &str, mode: &str, stage: &str, later: Duration) -> i32 {
    let quiet = bench.command(["snapshot", id, "--mode", mode]);
    let mut command = Command::new(quiet.get_program());
    command.args(quiet.get_args().filter(|word| *word != "--quiet")).env_clear();
    command.envs(quiet.get_envs().filter_map(|(name, value)| Some((name, value?))));
    command
        .stdin(std::process::Stdio::null())
        .stdout(std::process::Stdio::null())
        .stderr(std::process::Stdio::piped());
    let mut child = command.spawn().unwrap();
    let mut told = BufReader::new(child.stderr.take().unwrap()).lines().map_while(Result::ok);
    let stage = format!("\"{stage}\"");
    assert!(told.by_ref().any(|line| line.contains(&stage)), "it says that it is at {stage}");
    std::thread::sleep(later);
    signal(child.id(), "INT");
    for _ in told {}
    child.wait().unwrap().code().unwrap()
}

fn containers_run_again_after_a_cancelled_snapshot(host: &str) {
    let bench = Bench::new();
    let before = bench.snapshot(host);
    let repo = bench.stack("crowd", CROWD);
    let id = text(&bench.create_stack(host, &repo, &[])["id"]);
    let runs = || assert!(all_run(host, &id, 3), "{:?}", statuses(host, &id));
    // From before the host has begun, until they are held.
    let paused = [("prepare", 0), ("prepare", 150), ("pause", 0), ("pause", 30)];
    let paused = paused.map(|(stage, later)| ("pause", stage, later));
    for (mode, stage, later) in paused.into_iter().chain([("stop", "pause", 100)]) {
        // One that came too late to be cancelled is whole.
        let status = interrupted(&bench, &id, mode, stage, Duration::from_millis(later));
        assert!(matches!(status, 130 | 0), "{mode} {later} ms after {stage}: {status}");
        runs();
    }
    std::thread::sleep(Duration::from_secs(2));
    runs();
    assert_eq!(bench.ok(["recover"]), json!([]), "there is nothing to bring into order");
    bench.clear();
    bench.assert_unchanged(host, &before);
}

each_case! {
    containers_run_again_after_a_cancelled_snapshot {
        on_docker: DOCKER;
        on_podman: PODMAN;
    }
}

/// A terminal that is closed says so twice: its shell does, and it does. Neither is a second thought about the rollback.
#[test]
#[ignore = "needs the lab (tests/lab/up)"]
fn a_snapshot_whose_terminal_is_closed_rolls_back() {
    let bench = Bench::watching(&[DOCKER]);
    let repo = bench.stack("crowd", CROWD);
    let id = text(&bench.create_stack(DOCKER, &repo, &[])["id"]);
    let command = bench.command(["snapshot", &id, "--name", "hung-up", "--mode", "pause"]);
    // So that it is in the middle of it, and that the way back takes a while, too.
    let (snapshot, gate) =
        held_and(&bench, "snapshot.captured", ";snapshot.cleared=sleep(500)", command);
    let shelf = bench.workspace_root(DOCKER).join("snapshots");
    for _ in 0..2 {
        snapshot.signal("HUP");
        std::thread::sleep(Duration::from_millis(300));
    }
    gate.open();
    let ran = snapshot.finish();
    assert_eq!(ran.status, Some(130), "{ran:#?}");
    bench.ok(["snapshots", "get", "hung-up"]).has(json!({"state": "failed", "replicas": []}));
    assert!(all_run(DOCKER, &id, 3), "{:?}", statuses(DOCKER, &id));
    assert!(!shelf.exists(), "nothing of it is left");
    assert_eq!(bench.ok(["recover"]), json!([]), "there is nothing to bring into order");
    bench.ok(["destroy", &id]);
    bench.ok(["snapshots", "delete", "hung-up"]);
    bench.assert_as_before();
}
