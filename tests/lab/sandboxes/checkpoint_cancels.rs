//! Ctrl-C while a snapshot holds containers still: once the command is over they run, and they go on running.

use std::io::{BufRead, BufReader};
use std::process::Command;
use std::time::Duration;

use crate::held::held_and;
use crate::lab::{Bench, DOCKER, PODMAN, signal, text};
use crate::sandboxes::checkpoint_kills::statuses;

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

fn run_again(host: &str) {
    let bench = Bench::new();
    let before = bench.snapshot(host);
    let repo = bench.stack("crowd", CROWD);
    let id = text(&bench.create_stack(host, &repo, &[])["id"]);
    let runs = || {
        let all = statuses(host, &id);
        assert!(
            all.len() == 3
                && all.iter().all(|one| one.starts_with("Up") && !one.contains("Paused")),
            "{all:?}"
        );
    };
    // From before the host has begun, until they are held.
    let moments = [
        ("pause", "prepare", 0),
        ("pause", "prepare", 150),
        ("pause", "pause", 0),
        ("pause", "pause", 30),
    ];
    for (mode, stage, later) in moments.into_iter().chain([("stop", "pause", 100)]) {
        // One that came too late to be cancelled is whole.
        let status = interrupted(&bench, &id, mode, stage, Duration::from_millis(later));
        assert!(matches!(status, 130 | 0), "{mode} {later} ms after {stage}: {status}");
        runs();
    }
    std::thread::sleep(Duration::from_secs(2));
    runs();
    let recovered = bench.run(["recover"]).ok();
    assert_eq!(recovered["items"].as_array().map_or(0, Vec::len), 0, "{recovered:#}");
    for snapshot in bench.run(["snapshots", "list", "--all"]).ok().as_array().unwrap() {
        bench.run(["snapshots", "delete", &text(&snapshot["id"])]).ok();
    }
    bench.run(["destroy", &id]).ok();
    bench.assert_unchanged(host, &before);
}

#[test]
#[ignore = "needs the lab (tests/lab/up)"]
fn containers_run_again_after_a_cancelled_snapshot_on_docker() {
    run_again(DOCKER);
}

#[test]
#[ignore = "needs the lab (tests/lab/up)"]
fn containers_run_again_after_a_cancelled_snapshot_on_podman() {
    run_again(PODMAN);
}

/// A terminal that is closed says so twice: its shell does, and it does. Neither is a second thought about the rollback.
#[test]
#[ignore = "needs the lab (tests/lab/up)"]
fn a_snapshot_whose_terminal_is_closed_rolls_back() {
    let bench = Bench::new();
    let before = bench.snapshot(DOCKER);
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
    let record = bench.run(["snapshots", "get", "hung-up"]).ok();
    assert_eq!(
        (&record["state"], &record["replicas"]),
        (&"failed".into(), &serde_json::json!([])),
        "{record:#}"
    );
    let all = statuses(DOCKER, &id);
    assert!(
        all.len() == 3 && all.iter().all(|one| one.starts_with("Up") && !one.contains("Paused")),
        "{all:?}"
    );
    assert!(!shelf.exists(), "nothing of it is left");
    assert_eq!(
        bench.run(["recover"]).ok(),
        serde_json::json!([]),
        "there is nothing to bring into order"
    );
    bench.run(["destroy", &id]).ok();
    bench.run(["snapshots", "delete", "hung-up"]).ok();
    bench.assert_unchanged(DOCKER, &before);
}
