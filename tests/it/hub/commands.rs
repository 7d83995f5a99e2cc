//! Commands of the real program, each a process of its own, and a hub beside them.

use std::path::PathBuf;
use std::process::{Command, Output};

use serde_json::Value;

use super::server::AUTHORITY;
use super::*;
use crate::support::busy_machine::LIMITS;

/// Where a command finds everything, with a hub in its configuration.
struct Place {
    folder: tempfile::TempDir,
    hub: TestHub,
    /// Variables beside the usual.
    env: Vec<(&'static str, String)>,
}

const TOKEN: &str = "t0k3n-that-nobody-may-see";

impl Place {
    fn new(hub: TestHub) -> Self {
        let place = Self {
            folder: tempfile::tempdir().unwrap(),
            hub,
            env: vec![("STATE_HUB_TOKEN", TOKEN.to_owned())],
        };
        let url = place.hub.url();
        let config = format!(
            "hosts:\n  local:\n{LIMITS}state_hub: {{url: '{url}', token_env: STATE_HUB_TOKEN}}\n"
        );
        std::fs::write(place.file("config.yaml"), config).unwrap();
        place
    }

    fn file(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn data(&self) -> PathBuf {
        self.file("data")
    }

    fn run(&self, args: &[&str]) -> Output {
        self.run_with(args, &[])
    }

    fn run_with(&self, args: &[&str], env: &[(&str, &str)]) -> Output {
        let mut command = Command::new(env!("CARGO_BIN_EXE_sandboxer"));
        let path = std::env::var_os("PATH").unwrap();
        command.env_clear().env("PATH", path).env("HOME", self.folder.path());
        command.envs(self.env.iter().map(|(name, value)| (*name, value)));
        command.envs(env.iter().copied());
        command.arg("--config").arg(self.file("config.yaml")).arg("--data-dir").arg(self.data());
        command.arg("--log-file").arg(self.file("log")).args(args).output().unwrap()
    }

    fn json(&self, args: &[&str]) -> Value {
        let output = self.run(args);
        serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{args:?}: {output:?}"))
    }

    fn waiting(&self) -> u64 {
        let checks = self.json(&["doctor", "--json"]);
        let check = checks.as_array().unwrap().iter().find(|check| check["name"] == "hub backlog");
        let message = check.unwrap()["message"].as_str().unwrap();
        message.split(' ').next().unwrap().parse().unwrap_or(0)
    }
}

const CANARY: &[&str] = &["create", "--host", "local", "--json", "--quiet"];

#[test]
fn a_command_tells_the_hub_what_it_changed_and_a_look_tells_nothing() {
    let place = Place::new(TestHub::start());
    let made = place.json(CANARY);
    let id = made["id"].as_str().unwrap();
    let kinds = |hub: &TestHub| -> Vec<String> {
        let kinds = hub.taken().into_iter().map(|m| m.body["type"].as_str().unwrap().to_owned());
        kinds.map(|kind| kind.trim_start_matches("dev.coulomb.sandboxer.").to_owned()).collect()
    };
    let of_create = ["sandbox.requested", "sandbox.provisioning", "sandbox.ready"];
    let told = kinds(&place.hub);
    assert!(of_create.iter().all(|kind| told.iter().any(|told| told == kind)), "{told:?}");
    assert!(place.hub.taken().iter().all(|message| message.subject() == id));
    assert_eq!(place.waiting(), 0);
    let before = place.hub.messages().len();
    for args in [&["list"][..], &["get", id], &["events"], &["doctor"]] {
        assert!(place.run(args).status.success());
    }
    assert_eq!(place.hub.messages().len(), before);
    assert!(place.run(&["destroy", id]).status.success());
    assert_eq!(kinds(&place.hub).last().unwrap(), "sandbox.destroyed");
    assert_in_order(&place.hub.messages());
}

#[test]
fn a_create_ends_while_a_silent_hub_holds_the_connection_still() {
    let place = Place::new(TestHub::start());
    place.hub.answers(|_, _| Act::Hold);
    let output = place.run(CANARY);
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    let made: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(made["state"], "ready");
    // It was asked once, and never answered.
    assert_eq!((place.hub.messages().len(), place.hub.taken().len()), (1, 0));
    assert!(output.stderr.is_empty(), "{output:?}");
    let waiting = place.waiting();
    assert!(waiting >= 3, "{waiting}");
    // Where a backoff runs, it is not even asked; and each command ends with its own status. A minute of the clock is nobody's to
    // wait for here, so the wait is as long as the longest.
    let cursor = place.data().join("outbox/cursor.json");
    let mut text: Value = serde_json::from_slice(&std::fs::read(&cursor).unwrap()).unwrap();
    let soon = jiff::Timestamp::now() + jiff::SignedDuration::from_secs(200);
    text["backoff"]["next_try_at"] = soon.to_string().into();
    std::fs::write(&cursor, text.to_string()).unwrap();
    let id = made["id"].as_str().unwrap();
    assert_eq!(place.run(&["label", id, "a=b"]).status.code(), Some(0));
    assert_eq!(place.run(&["get", "nothing"]).status.code(), Some(3));
    assert_eq!(place.run(&["destroy", id, "--json"]).status.code(), Some(0));
    assert_eq!(place.hub.messages().len(), 1);
    // `flush` asks all the same, and whoever asks it gets all.
    place.hub.answers(|_, _| Act::Status(204));
    let report = place.json(&["events", "flush", "--json"]);
    assert_eq!((&report["error"], &report["backlog"]["waiting"]), (&Value::Null, &0.into()));
    assert_eq!(report["delivered"].as_u64().unwrap() as usize, place.hub.taken().len());
    assert_in_order(&place.hub.messages());
}

#[test]
fn a_command_that_fails_tells_too_and_keeps_its_status() {
    let place = Place::new(TestHub::start());
    place.hub.answers(|_, _| Act::Status(400));
    let output = place.run(&["create", "--host", "local", "--input", "nothing=1", "--json"]);
    assert_eq!((output.status.code(), place.hub.messages().len()), (Some(2), 0), "{output:?}");
    let made = place.run(CANARY);
    assert_eq!(made.status.code(), Some(0), "{made:?}");
    assert!(place.hub.messages().len() >= 3);
    let checks = place.json(&["doctor", "--json"]);
    let dead = checks.as_array().unwrap().iter().find(|check| check["name"] == "hub dead letter");
    assert_eq!(dead.unwrap()["state"], "warning", "{checks}");
}

#[test]
fn who_dies_between_the_answer_and_the_cursor_has_it_told_again_under_the_same_id() {
    let place = Place::new(TestHub::start());
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(happen(&place.data(), 1..=20, 4));
    place.hub.answers(|message, _| match message.sequence() {
        3 => Act::Status(410),
        _ => Act::Status(204),
    });
    let mut killed = 0;
    for point in ["outbox.delivered", "outbox.given_up"] {
        let output =
            place.run_with(&["events", "flush"], &[("FAILPOINTS", &format!("{point}=return"))]);
        killed += usize::from(output.status.code().is_none());
    }
    assert_eq!(killed, 2, "each was killed at its point");
    let output = place.run(&["events", "flush", "--json"]);
    assert_eq!(output.status.code(), Some(8), "some went to the dead letter: {output:?}");
    let messages = place.hub.messages();
    assert_in_order(&messages);
    assert_all_came(&messages, 20);
    assert!(messages.len() > 20 && messages[0].id() == messages[1].id());
    // It stands there at least once, and each time under its id.
    let letters = std::fs::read_to_string(place.data().join("outbox/dead.jsonl")).unwrap();
    assert!(letters.lines().all(|line| line.contains("event-000003")), "{letters}");
    assert_eq!(place.run(&["events", "flush"]).status.code(), Some(0));
    assert_eq!(place.hub.messages().len(), messages.len());
}

#[test]
fn a_sweep_delivers_whether_or_not_something_was_due() {
    let place = Place::new(TestHub::start());
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(happen(&place.data(), 1..=20, 4));
    let output = place.run(&["sweep"]);
    assert_eq!((output.status.code(), output.stdout.len()), (Some(0), 0), "{output:?}");
    assert_all_came(&place.hub.taken(), 20);
    assert_eq!(place.waiting(), 0);
    // A silent hub is asked once, and the next sweep knows.
    runtime.block_on(happen(&place.data(), 21..=22, 4));
    place.hub.answers(|_, _| Act::Hold);
    assert_eq!(place.run(&["sweep"]).status.code(), Some(0));
    let cursor = std::fs::read_to_string(place.data().join("outbox/cursor.json")).unwrap();
    assert!(cursor.contains("gave no answer in time"), "{cursor}");
    assert_eq!(place.hub.messages().len(), 21);
}

#[test]
fn the_token_is_shown_nowhere() {
    let place = Place::new(TestHub::start());
    place.hub.answers(|message, _| {
        Act::answer(403, "", &format!("wrong: {}", message.headers["authorization"]))
    });
    let mut said = Vec::new();
    said.push(place.run_with(CANARY, &[("SANDBOXER_LOG", "trace")]));
    assert!(place.hub.messages()[0].headers["authorization"].contains(TOKEN));
    place.hub.answers(|message, _| {
        Act::answer(500, "", &format!("wrong: {}", message.headers["authorization"]))
    });
    let id = serde_json::from_slice::<Value>(&said[0].stdout).unwrap()["id"].clone();
    let env = [("SANDBOXER_LOG", "trace"), ("RUST_BACKTRACE", "1")];
    for args in [
        &["label", id.as_str().unwrap(), "a=b"][..],
        &["events", "flush"],
        &["events", "flush", "--json"],
        &["doctor"],
        &["doctor", "--json"],
    ] {
        said.push(place.run_with(args, &env));
    }
    // Nor is a token that cannot be sent.
    said.push(
        place.run_with(&["events", "flush"], &[("STATE_HUB_TOKEN", &format!("{TOKEN}\u{7}"))]),
    );
    let shown = said.iter().flat_map(|output| [&output.stdout, &output.stderr]);
    let files = ["log", "data/outbox/dead.jsonl", "data/outbox/cursor.json"];
    let files: Vec<Vec<u8>> =
        files.iter().map(|name| std::fs::read(place.file(name)).unwrap()).collect();
    for text in shown.chain(&files) {
        let text = String::from_utf8_lossy(text);
        assert!(!text.contains(TOKEN), "{text}");
    }
    assert!(String::from_utf8_lossy(&files[1]).contains("wrong: Bearer [token]"));
}

#[test]
fn no_command_has_the_token_in_its_environment() {
    let place = Place::new(TestHub::start());
    let id = place.json(CANARY)["id"].as_str().unwrap().to_owned();
    let env = [("SANDBOXER_TOKEN", TOKEN), ("SBX_KEPT", "kept")];
    let output = place.run_with(&["exec", &id, "--", "env"], &env);
    let text = String::from_utf8([output.stdout, output.stderr].concat()).unwrap();
    assert_eq!(output.status.code(), Some(0), "{text}");
    assert!(!text.contains(TOKEN) && !text.contains("STATE_HUB_TOKEN"), "{text}");
    // What else the console has in its environment is the command's too.
    assert!(text.contains("SBX_KEPT=kept"), "{text}");
}

#[test]
fn a_certificate_is_verified() {
    let mut place = Place::new(TestHub::start_with_tls());
    assert_eq!(place.run(CANARY).status.code(), Some(0));
    let output = place.run(&["events", "flush", "--json"]);
    assert_eq!(output.status.code(), Some(5), "{output:?}");
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(report["error"]["code"], "server_unreachable");
    assert!(report["error"]["causes"].to_string().contains("certificate"), "{report}");
    assert_eq!(place.hub.messages().len(), 0, "nothing was sent, the token least of all");
    place.env.push(("SSL_CERT_FILE", AUTHORITY.to_owned()));
    let report = place.json(&["events", "flush", "--json"]);
    assert_eq!((&report["error"], &report["backlog"]["waiting"]), (&Value::Null, &0.into()));
    assert!(report["delivered"].as_u64().unwrap() >= 3);
}

#[test]
fn flush_says_what_it_did() {
    let mut place = Place::new(TestHub::start());
    let said = |output: &Output| {
        let text = [output.stdout.as_slice(), &output.stderr].concat();
        (output.status.code(), String::from_utf8(text).unwrap())
    };
    let nothing = place.run(&["events", "flush"]);
    assert_eq!(said(&nothing), (Some(0), "nothing waits for the State Hub\n".into()));
    assert_eq!(place.run(CANARY).status.code(), Some(0));
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(happen(&place.data(), 1..=5, 2));
    assert_eq!(said(&place.run(&["events", "flush"])), (Some(0), "5 events delivered\n".into()));
    runtime.block_on(happen(&place.data(), 6..=8, 2));
    place.hub.stop();
    let (status, text) = said(&place.run(&["events", "flush"]));
    assert_eq!(status, Some(5));
    assert!(text.starts_with("0 events delivered, 3 still waiting\nerror: the State Hub did not"));
    std::fs::write(place.file("config.yaml"), "{}\n").unwrap();
    let (status, text) = said(&place.run(&["events", "flush"]));
    assert_eq!(status, Some(2));
    assert!(text.contains("no State Hub is configured in") && text.contains("hint:"), "{text}");
}
