//! The dashboard on a terminal, with the lab's two hosts behind it: a compose stack from `n` to its removal, and a
//! running create that is cancelled from the list of jobs.

#![allow(clippy::unwrap_used, clippy::expect_used, missing_docs)]

#[allow(dead_code, reason = "shared with tests/lab_sandboxes")]
#[path = "lab_sandboxes/lab.rs"]
mod lab;
#[allow(dead_code, reason = "shared with tests/dashboard_pty.rs")]
#[path = "support/pty.rs"]
mod pty;

use std::path::{Path, PathBuf};
use std::time::Duration;

use lab::{Bench, DOCKER, PODMAN, http_get, on_host, text};
use pty::Console;
use serde_json::{Value, json};

const DOWN: &str = "\u{1b}[B";

fn console(bench: &Bench) -> Console {
    let (config, data, home) = (bench.path("config.yaml"), bench.data(), bench.home());
    let profiles = bench.path("profiles");
    let env: [(&str, &Path); 3] = [("SANDBOXER_CONFIG", &config), ("SANDBOXER_DATA_DIR", &data), ("HOME", &home)];
    let mut console = Console::start(&["--profiles-dir", profiles.to_str().unwrap()], &env, 140, 44);
    console.wait_for("Sandboxes");
    console.keys("n");
    console.wait_for("which profile?");
    console
}

/// Moves to a profile in the picker, whose place depends on what else is there, and opens its form.
fn pick(console: &mut Console, profile: &str) {
    let title = format!("New sandbox: {profile}");
    console.keys("g");
    loop {
        let chosen = |text: &str| text.lines().find(|line| line.contains('▌')).map(str::to_owned);
        let row = chosen(&console.wait_until("a chosen profile", |text| chosen(text).is_some())).unwrap();
        if row.split_whitespace().any(|word| word == profile) {
            break;
        }
        console.keys("j");
        console.wait_until("the next profile", |text| chosen(text).is_some_and(|next| next != row));
    }
    console.keys("\r");
    console.wait_for(&title);
}

/// Fills the form: the repository, then the host.
fn fill(console: &mut Console, repo: &Path, host: &str) {
    field(console, "repo");
    console.keys(repo.to_str().unwrap());
    field(console, "host");
    console.keys(host);
    console.wait_for(&format!("✓ on {host}: named by --host"));
}

/// The line of the field that has the focus.
fn focused(text: &str) -> String {
    text.lines().find(|line| line.contains('▌')).unwrap_or_default().to_owned()
}

fn field(console: &mut Console, label: &str) {
    for _ in 0..12 {
        let row = focused(&console.text());
        if row.split('▌').nth(1).is_some_and(|rest| rest.trim_start().starts_with(label)) {
            return;
        }
        console.keys(DOWN);
        console.wait_until("another field", |text| focused(text) != row);
    }
    panic!("no field {label}:\n{}", console.text());
}

fn only(bench: &Bench) -> Value {
    let records = bench.stored();
    let alive: Vec<_> = records.into_iter().filter(|record| record["state"] != "destroyed").collect();
    assert_eq!(alive.len(), 1, "{alive:#?}");
    alive.into_iter().next().unwrap()
}

fn example() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/lab/example")
}

#[test]
#[ignore = "needs the lab (tests/lab/up)"]
fn a_stack_is_made_looked_at_and_destroyed_on_docker() {
    a_stack_is_made_looked_at_and_destroyed(DOCKER);
}

#[test]
#[ignore = "needs the lab (tests/lab/up)"]
fn a_stack_is_made_looked_at_and_destroyed_on_podman() {
    a_stack_is_made_looked_at_and_destroyed(PODMAN);
}

fn a_stack_is_made_looked_at_and_destroyed(host: &str) {
    let bench = Bench::new();
    let before = bench.snapshot(host);
    let mut console = console(&bench);
    pick(&mut console, "compose-e2e");
    fill(&mut console, &example(), host);
    console.keys("\r");
    console.wait_until("a ready row", |text| text.lines().any(|line| line.contains('●') && line.contains("ready")));
    let record = only(&bench);
    let id = text(&record["id"]);
    assert_eq!((&record["state"], &record["host"]), (&json!("ready"), &json!(host)));

    console.keys("\r");
    console.wait_for("Reach it");
    let url = text(&record["reachability"]["endpoints"][0]["url"]);
    console.wait_for(&url);
    http_get(&url);
    console.keys("\u{1b}");
    console.wait_until("the list", |text| !text.contains("Reach it"));

    console.keys("d");
    let dialog = console.wait_for("[ Cancel ]");
    assert!(dialog.contains(&id) && dialog.contains(host), "the dialog names its target:\n{dialog}");
    console.keys("\t\r");
    console.wait_until("destroyed", |text| text.contains("destroyed") && text.contains(&id));
    assert_eq!(bench.get(&id)["state"], "destroyed");
    // With a job still listed as running `q` would ask.
    console.wait_until("no running job", |text| !text.contains("1 running"));
    console.keys("q");
    assert_eq!(console.ended_within(Duration::from_secs(20)), 0);
    bench.assert_unchanged(host, &before);
}

#[test]
#[ignore = "needs the lab (tests/lab/up)"]
fn a_running_create_is_cancelled_from_the_jobs() {
    let bench = Bench::new();
    let before = bench.snapshot(DOCKER);
    let repo = bench.stack(
        "slow",
        "services:\n  first: {image: \"localhost/sbx-lab:1\", command: [\"sleep\", \"1000\"]}\n  second:\n    image: localhost/sbx-lab:1\n    command: [\"sleep\", \"1000\"]\n    depends_on: {first: {condition: service_completed_successfully}}\n",
    );
    let mut console = console(&bench);
    pick(&mut console, "compose-e2e");
    fill(&mut console, &repo, DOCKER);
    console.keys("\r");
    let record = bench.wait_for_record(Duration::from_secs(20), |record| record["state"] == "provisioning");
    let id = text(&record["id"]);
    console.wait_until("the list", |text| !text.contains("New sandbox"));
    console.keys("J");
    console.wait_for("Jobs  1 running");
    console.wait_until("the step `up`", |text| text.contains("up"));
    let script = "docker ps -q --filter label=com.docker.compose.project=sbx-$1";
    while on_host(DOCKER, &[script, &id]).is_empty() {
        std::thread::sleep(Duration::from_millis(100));
    }
    console.keys("c");
    console.wait_for("Roll back create");
    console.keys("\t\r");
    console.wait_for("rolled back");
    let record = bench.get(&id);
    assert_eq!((&record["state"], &record["reason"]), (&json!("failed"), &json!("cancelled")));
    assert_eq!(record["leftovers"], json!([]));
    bench.assert_unchanged(DOCKER, &before);
    console.keys("\u{1b}");
    console.wait_until("the list", |text| !text.contains("Jobs  "));
    // With a job still listed as running `q` would ask.
    console.wait_until("no running job", |text| !text.contains("1 running"));
    console.keys("q");
    assert_eq!(console.ended_within(Duration::from_secs(20)), 0);
}
