//! The dashboard on a terminal, with the lab's two hosts behind it: a compose stack from `n` to its removal, and a
//! running create that is cancelled from the list of jobs.

use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::lab::{self, Bench, DOCKER, http_get, on_host, text, url_of};
use crate::support::json_assertions::JsonAssertions as _;
use crate::support::pty::{Console, Owned};
use serde_json::{Value, json};

const DOWN: &str = "\u{1b}[B";

fn console(bench: &Bench) -> Console {
    let mut console = plain_console(bench);
    console.keys("n");
    console.wait_for("which profile?");
    console
}

fn plain_console(bench: &Bench) -> Console {
    let (config, data, home) = (bench.path("config.yaml"), bench.data(), bench.home());
    let profiles = bench.path("profiles");
    let env: [(&str, &Path); 3] =
        [("SANDBOXER_CONFIG", &config), ("SANDBOXER_DATA_DIR", &data), ("HOME", &home)];
    let console = Console::start(&["--profiles-dir", profiles.to_str().unwrap()], &env, 140, 44);
    console.wait_for("Sandboxes");
    console
}

/// Moves to a profile in the picker, whose place depends on what else is there, and opens its form.
fn pick(console: &mut Console, profile: &str) {
    let title = format!("New sandbox: {profile}");
    loop {
        let chosen = |text: &str| text.lines().find(|line| line.contains('▌')).map(str::to_owned);
        let row =
            chosen(&console.wait_until("a chosen profile", |text| chosen(text).is_some())).unwrap();
        if row.split_whitespace().any(|word| word == profile) {
            break;
        }
        console.keys(DOWN);
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

/// The label of the field that has the focus. What is typed into the field changes while it is looked at; that does not.
fn focused(text: &str) -> Option<String> {
    let row = text.lines().find_map(|line| Some(line.split_once('▌')?.1))?;
    row.split_whitespace().next().map(str::to_owned)
}

fn field(console: &mut Console, label: &str) {
    let mut before = None;
    for _ in 0..12 {
        let at = |text: &str| focused(text).filter(|now| Some(now) != before.as_ref());
        let now = at(&console.wait_until("another field", |text| at(text).is_some()));
        if now.as_deref().is_some_and(|now| now.starts_with(label)) {
            return;
        }
        before = now;
        console.keys(DOWN);
    }
    panic!("no field {label}:\n{}", console.text());
}

fn only(bench: &Bench) -> Value {
    let records = bench.stored();
    let alive: Vec<_> =
        records.into_iter().filter(|record| record["state"] != "destroyed").collect();
    assert_eq!(alive.len(), 1, "{alive:#?}");
    alive.into_iter().next().unwrap()
}

fn example() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/lab/example")
}

#[test]
#[ignore = "needs the lab (tests/lab/up)"]
fn a_stack_is_made_looked_at_and_destroyed() {
    let host = DOCKER;
    let bench = Bench::watching(&[host]);
    let mut console = console(&bench);
    pick(&mut console, "compose-e2e");
    fill(&mut console, &example(), host);
    console.keys("\r");
    console.wait_until("a ready row", |text| {
        text.lines().any(|line| {
            line.contains("compose-e2e") && line.contains(" ready ") && !line.contains("creating")
        })
    });
    let record = only(&bench);
    let id = text(&record["id"]);
    record.has(json!({"state": "ready", "host": host}));

    console.keys("\r");
    console.wait_for("Reach it");
    let url = url_of(&record);
    console.wait_for(&url);
    http_get(&url);
    console.keys("\u{1b}");
    console.wait_until("the list", |text| !text.contains("Reach it"));

    console.keys("d");
    let dialog = console.wait_for("[ Cancel ]");
    assert!(dialog.contains(&id), "the dialog names its target:\n{dialog}");
    assert!(dialog.contains(host), "the dialog names its target:\n{dialog}");
    console.keys("\t\r");
    console.wait_until("destroyed", |text| text.contains(&format!("✓ destroy {id}")));
    assert_eq!(bench.get(&id)["state"], "destroyed");
    // With a job still listed as running `q` would ask.
    console.wait_until("no running job", |text| !text.contains("1 running"));
    console.keys("q");
    assert_eq!(console.ended_within(Duration::from_mins(1)), 0);
    bench.assert_as_before();
}

#[test]
#[ignore = "needs the lab (tests/lab/up)"]
fn a_running_create_is_cancelled_from_the_jobs() {
    let bench = Bench::watching(&[DOCKER]);
    let repo = bench.stack(
        "slow",
        "services:\n  first: {image: \"localhost/sbx-lab:1\", command: [\"sleep\", \"1000\"]}\n  second:\n    image: localhost/sbx-lab:1\n    command: [\"sleep\", \"1000\"]\n    depends_on: {first: {condition: service_completed_successfully}}\n",
    );
    let mut console = console(&bench);
    pick(&mut console, "compose-e2e");
    fill(&mut console, &repo, DOCKER);
    console.keys("\r");
    let record = bench.wait_for_record(|record| record["state"] == "provisioning");
    let id = text(&record["id"]);
    console.wait_until("the list", |text| !text.contains("New sandbox"));
    console.keys("J");
    console.wait_for("Jobs  1 running");
    console.wait_until("the step `up`", |text| text.contains("up"));
    let script = "docker ps -q --filter label=com.docker.compose.project=sbx-$1";
    lab::wait_until("its container", || !on_host(DOCKER, &[script, &id]).is_empty());
    console.keys("c");
    console.wait_for("Cancel create");
    console.keys("\t\r");
    console.wait_for("undone after");
    bench.get(&id).has(json!({"state": "failed", "reason": "cancelled", "leftovers": []}));
    bench.assert_as_before();
    console.keys("\u{1b}");
    console.wait_until("the list", |text| !text.contains("Jobs  "));
    // With a job still listed as running `q` would ask.
    console.wait_until("no running job", |text| !text.contains("1 running"));
    console.keys("q");
    assert_eq!(console.ended_within(Duration::from_mins(1)), 0);
}

#[test]
#[ignore = "needs the lab (tests/lab/up)"]
fn logs_shells_labels_and_a_dead_service() {
    let host = DOCKER;
    let bench = Bench::new();
    let record = bench.create_stack(host, &example(), &["--name", "app"]);
    let id = text(&record["id"]);
    let mut console = plain_console(&bench);
    console.wait_until("the row", |text| text.contains("app") && text.contains("ready"));

    // The worker says something every five seconds: more than was there at first must come.
    console.keys("l");
    console.wait_for("● following");
    let lines = |text: &str| text.lines().filter(|line| line.contains("worker")).count();
    let first = lines(&console.wait_until("a line", |text| lines(text) > 1));
    console.wait_until("another line", |text| lines(text) > first);
    console.keys("\u{1b}");
    console.wait_until("the list", |text| !text.contains("following"));

    // Over ssh, all in one write: the key, the place, and what the shell is to do.
    console.keys("!\recho here-$((40+2)) in $OLDPWD; exit\r");
    console.wait_for("the shell in app ended");
    // The lab's `.bashrc` goes elsewhere; it came from the workspace.
    let came_from = format!("here-42 in {}", text(&record["reachability"]["workdir"]));
    assert!(console.raw().contains(&came_from), "{came_from}: {}", console.raw());

    // In a container.
    let services = record["services"].as_array().unwrap();
    let web = services.iter().position(|service| service["name"] == "web").unwrap();
    console.keys("!");
    console.wait_for("where?");
    console.keys(&format!("{}\r", "j".repeat(web + 1)));
    console.keys("echo inside-$((40+2)) $(ls /www)\r");
    console.wait_until("the container's answer", |_| console_has(&console, "inside-42 index.html"));
    console.keys("exit\r");
    console.wait_for("the shell in app web ended");

    console.keys("L");
    console.wait_for("add, remove");
    console.keys("\tteam=core");
    console.wait_for("+ team = core");
    console.keys("\r");
    console.wait_for("are written");
    assert_eq!(bench.get(&id)["labels"]["team"], "core");

    let engine = lab::engine(host);
    let script = format!(
        "{engine} kill $({engine} ps -q --filter label=com.docker.compose.project=sbx-$1 --filter label=com.docker.compose.service=web)"
    );
    on_host(host, &[&script, &id]);
    let shown = console.wait_until("the mark", |text| text.contains("1 degraded"));
    let row = shown.lines().find(|line| line.contains("app")).unwrap();
    assert!(row.contains('⚠') && row.contains("web exit 137"), "{row}");
    console.keys("q");
    assert_eq!(console.ended_within(Duration::from_mins(1)), 0);
    bench.ok(["destroy", &id]);
}

#[test]
#[ignore = "needs the lab (tests/lab/up)"]
fn a_lost_terminal_finishes_a_destroy_over_ssh() {
    let bench = Bench::watching(&[DOCKER]);
    let record = bench.create_stack(DOCKER, &example(), &["--name", "app"]);
    let id = text(&record["id"]);
    let (config, data, home) = (bench.path("config.yaml"), bench.data(), bench.home());
    let env: [(&str, &Path); 3] =
        [("SANDBOXER_CONFIG", &config), ("SANDBOXER_DATA_DIR", &data), ("HOME", &home)];
    let mut dashboard = Owned::start(&[], &env);
    dashboard.wait_for("app");
    dashboard.keys("d");
    dashboard.wait_for("[ Cancel ]");
    dashboard.keys("\t\r");
    bench.wait_for_record(|record| record["state"] == "destroying");
    dashboard.lose();
    dashboard.wait_for_end();
    bench.get(&id).has(json!({"state": "destroyed", "leftovers": []}));
    bench.assert_as_before();
}

fn console_has(console: &Console, what: &str) -> bool {
    console.raw().contains(what)
}
