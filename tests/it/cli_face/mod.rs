//! The command line from its arguments to its exit status, on a client without a manager.

mod checkpoint;
mod cli_client;
mod cli_shelf;
mod cli_world;
mod completions;
mod credits;
mod deep;
mod flush;
mod inside;
mod inspect;
mod patches;
mod reap;
mod snapshots;
mod stale;
mod sweep;
mod terminal;
mod upkeep;

use std::io;

use cli_client::{End, FakeClient};
use cli_world::*;
use insta::assert_snapshot;
use sandboxer::cli::{self, ParseOutcome};
use sandboxer::client::{Error, Update};
use sandboxer::domain::host_view::HostView;
use sandboxer::domain::sandbox::Failure;
use sandboxer::domain::teardown::Resource;
use sandboxer::domain::{Code, Event, EventKind, HostName, State};
use serde_json::{Value, json};

// --- help and usage

#[test]
fn every_help_text() {
    fn each(command: &clap::Command, path: &str, found: &mut Vec<(String, String)>) {
        // So that -h and --help say the same, which is what is reviewed here.
        assert!(command.get_arguments().all(|arg| arg.get_long_help().is_none()), "{path}");
        let mut command = command.clone().term_width(100);
        found.push((path.to_owned(), command.render_help().to_string()));
        for sub in command.get_subcommands().filter(|sub| sub.get_name() != "help") {
            each(sub, &format!("{path} {}", sub.get_name()), found);
        }
    }
    let mut root = cli::command().term_width(100);
    root.build();
    let mut found = Vec::new();
    each(&root, "sandboxer", &mut found);
    for (path, text) in found {
        assert_snapshot!(format!("help {path}").replace(' ', "_"), text);
    }
}

#[test]
fn every_command_has_examples_and_each_is_one_of_that_command() {
    fn each(command: &clap::Command, verbs: &str) {
        let lines = cli::examples::of(verbs);
        assert!(!lines.is_empty(), "{verbs:?} has no example");
        for line in lines {
            let typed = &line[line.find("sandboxer").unwrap()..];
            // Up to what the shell reads.
            let words: Vec<_> = shlex::split(typed)
                .unwrap()
                .into_iter()
                .take_while(|word| !["|", "<", ">"].contains(&word.as_str()))
                .collect();
            assert!(cli::parse(words.clone()).is_ok(), "{line}: {:?}", cli::parse(words).err());
            let path = format!("sandboxer {verbs}");
            let dashboard = verbs == "dashboard" && *line == "sandboxer";
            assert!(
                typed.starts_with(path.trim_end()) || dashboard,
                "{line} is no example of {path}"
            );
        }
        for sub in command.get_subcommands().filter(|sub| sub.get_name() != "help") {
            each(sub, format!("{verbs} {}", sub.get_name()).trim_start());
        }
    }
    each(&cli::command(), "");
}

#[tokio::test]
async fn a_verb_that_comes_later_is_named_as_that() {
    for line in ["serve", "extensions check ext.x"] {
        let ran = run(&FakeClient::default(), line).await;
        let verb = if line.contains("check") {
            line.split(' ').take(2).collect::<Vec<_>>().join(" ")
        } else {
            line.split(' ').next().unwrap().to_owned()
        };
        assert_eq!(ran.status, 2, "{line}: {ran}");
        assert!(
            ran.stderr.contains(&format!("`sandboxer {verb}` is not in this version yet")),
            "{line}: {ran}"
        );
        assert_eq!(
            run(&FakeClient::default(), &format!("{line} --json")).await.error()["code"],
            "usage",
            "{line}"
        );
    }
    assert!(run(&FakeClient::default(), "extensons list").await.stderr.contains("extensions"));
}

#[tokio::test]
async fn without_a_utf_8_locale_only_ascii_of_ours_is_written() {
    for line in ["list", "get my-env", "snapshots list", "hosts list"] {
        let world = World { plain_locale: true, width: Some(60), ..World::default() };
        let ran = run_in(world, &fleet(), line).await;
        assert!(ran.stdout.is_ascii() && ran.stderr.is_ascii(), "{line}: {ran}");
    }
}

#[tokio::test]
async fn help_and_version_end_well_and_on_stdout() {
    let fake = FakeClient::default();
    for line in
        ["--help", "-h", "create --help", "help", "help create", "hosts check --help", "--version"]
    {
        let ran = run(&fake, line).await;
        assert_eq!((ran.status, ran.stderr.as_str()), (0, ""), "{line}");
        assert!(!ran.stdout.is_empty() && !ran.stdout.contains('\u{1b}'), "{line}");
    }
}

#[tokio::test]
async fn wrong_usage_in_words_and_as_json() {
    let fake = FakeClient::default();
    let mut text = String::new();
    for line in [
        "",
        "lst",
        "hosts",
        "destroy",
        "get a b",
        "list --state redy",
        "list --stat ready",
        "create --input repo",
        "create --input repo=a --input repo=b",
        "create --no-wait",
        "wait x --timeout 10",
        "wait x --for ready,destroyed",
        "events --since yesterday",
        "events --kind sandbox.redy",
        "events --actor root",
        "--read-only list",
        "dashboard --json",
        "profiles validate",
        "$'\\x1b[2Jx'",
    ] {
        let line = line.replace("$'\\x1b[2Jx'", "'\u{1b}[2Jx'");
        let ran = run(&fake, &line).await;
        assert_eq!((ran.status, ran.stdout.as_str()), (2, ""), "{line}");
        assert!(!ran.stderr.contains('\u{1b}'), "{line}: {:?}", ran.stderr);
        if !line.is_empty() {
            text.push_str(&format!(
                "$ sandboxer {}\n{}\n",
                line.replace('\u{1b}', "ESC"),
                ran.stderr
            ));
        }
        let ran = run(&fake, &format!("--json {line}")).await;
        assert_eq!((ran.status, ran.stdout.as_str()), (2, ""), "{line}");
        assert_eq!(ran.error()["code"], "usage", "{line}");
    }
    assert_snapshot!("wrong_usage", text);
    assert!(fake.calls().is_empty());
}

#[cfg(unix)]
#[test]
fn arguments_that_are_not_utf8_are_wrong_usage() {
    use std::os::unix::ffi::OsStringExt as _;
    let bad = || std::ffi::OsString::from_vec(vec![b'a', 0xff, b'b']);
    for before in [
        vec!["get"],
        vec!["create", "--name"],
        vec!["create", "--input"],
        vec![],
        vec!["list", "--state"],
    ] {
        let args =
            std::iter::once("sandboxer").chain(before.clone()).map(Into::into).chain([bad()]);
        match cli::parse(args) {
            Err(ParseOutcome::Usage { problem, .. }) => {
                assert_eq!(problem.code, Code::Usage, "{before:?}");
            }
            other => panic!("{before:?}: {other:?}"),
        }
    }
    // A path may be any bytes.
    let args = ["sandboxer", "profiles", "validate"].map(Into::into).into_iter().chain([bad()]);
    assert!(cli::parse(args).is_ok());
}

#[test]
fn the_dashboard_is_asked_for_by_name_or_by_nothing_on_a_terminal() {
    for (line, interactive, read_only) in [
        ("", true, Some(false)),
        ("--read-only", true, Some(true)),
        ("dashboard", true, Some(false)),
        ("dashboard", false, None),
        ("dashboard --read-only --theme mono", true, Some(true)),
        ("--read-only dashboard", true, Some(true)),
        ("", false, None),
        ("list", true, None),
        ("--json", true, None),
    ] {
        let cli = cli::parse(words(line)).unwrap();
        let wants = cli.wants_dashboard(interactive).map(|args| args.read_only);
        assert_eq!(wants, read_only, "{line:?} {interactive}");
    }
}

#[tokio::test]
async fn a_server_is_not_there_yet() {
    let ran = run(&fleet(), "--server http://127.0.0.1:1 list --json").await;
    assert_eq!((ran.status, &ran.error()["code"]), (7, &json!("unsupported")));
}

// --- list and get

#[tokio::test]
async fn list_for_a_person_and_for_a_script() {
    assert_snapshot!("list", run(&fleet(), "list").await);
    let mut narrow = String::new();
    for width in [80, 60, 30] {
        let world = World { width: Some(width), ..on_terminal("") };
        narrow.push_str(&run_in(world, &fleet(), "list --no-color").await.stdout);
    }
    assert_snapshot!("list_narrow_without_colours", narrow);
    let colours = run_in(World { width: Some(120), ..on_terminal("") }, &fleet(), "list").await;
    assert_snapshot!("list_in_colours", colours.stdout.replace('\u{1b}', "␛"));
    let json = run(&fleet(), "list --json").await.json();
    assert_eq!(json.as_array().unwrap().len(), 5);
    assert_eq!(json[0]["reachability"]["endpoints"][0]["host_port"], 32768);
}

#[tokio::test]
async fn nothing_to_list() {
    let fake = FakeClient::default();
    assert_snapshot!(run(&fake, "list").await, @r"
    status 0
    --- stdout
    --- stderr
    no sandboxes; create one: sandboxer create --profile sandbox-canary
    ");
    assert_snapshot!(run(&fake, "list --state ready --label a=b").await, @r"
    status 0
    --- stdout
    --- stderr
    no sandbox matches
    ");
    let ran = run(&fake, "list --json").await;
    assert_eq!((ran.stdout.as_str(), ran.stderr.as_str()), ("[]\n", ""));
    assert_eq!(run(&fake, "list --quiet").await.stderr, "");
}

#[tokio::test]
async fn list_passes_every_filter_on() {
    let fake = fleet();
    let line = "list --state ready --state failed --host h --profile p --label a=b --label c= --all --json";
    assert_eq!(run(&fake, line).await.json().as_array().unwrap().len(), 4);
    let expected = json!({"states": ["ready", "failed"], "host": "h", "profile": "p", "labels": {"a": "b", "c": ""}, "all": true});
    let call = fake.calls()[0].clone();
    assert_eq!(serde_json::from_str::<Value>(call.trim_start_matches("list ")).unwrap(), expected);
}

#[tokio::test]
async fn get_for_a_person_and_for_a_script() {
    assert_snapshot!("get", run(&fleet(), "get my-env").await);
    assert_snapshot!("get_failed", run(&fleet(), "get e000").await);
    let json = run(&fleet(), "get a1b2c3d4 --json").await.json();
    let mut expected = serde_json::to_value(ready("a1b2c3d4")).unwrap();
    expected["lineage"] = json!({"ancestors": [], "snapshots": []});
    assert_eq!(json, expected);
    // The record is there, whatever else cannot be read.
    let broken = fleet();
    broken.lock().shelf.no_lineage =
        Some(Error::new(Code::StoreCorrupt, "snapshots.json cannot be read").hint("see doctor"));
    assert_snapshot!("get_without_lineage", run(&broken, "get my-env").await);
    let json = run(&broken, "get my-env --json").await.json();
    assert_eq!((&json["id"], &json["lineage"]), (&json!("a1b2c3d4"), &Value::Null));
    assert_eq!(json["unread"]["code"], "store_corrupt");
    let ran = run(&fleet(), "get nothing --json").await;
    assert_eq!(
        (ran.status, ran.stdout.as_str(), &ran.error()["code"]),
        (3, "", &json!("not_found"))
    );
}

#[tokio::test]
async fn text_of_others_never_moves_the_cursor() {
    let evil = "\u{1b}[2J\u{1b}]0;owned\u{7}\u{202e}\u{9b}31mx\r\ny";
    let mut record = ready("a1b2c3d4");
    record.name = Some(evil.into());
    record.labels = [(evil.into(), evil.into())].into();
    record.message = Some(evil.repeat(5000));
    record.host = HostName::new(evil);
    record.services[0].state = evil.into();
    record.failure = Some(Failure { step: evil.into(), exit_status: None, output: evil.into() });
    record.leftovers = vec![Resource { kind: evil.into(), id: evil.into() }];
    let fake = FakeClient::with(vec![record.clone()]);
    fake.lock().events =
        vec![Event { data: json!(evil), ..event(1, EventKind::Other(evil.into()), evil) }];
    fake.lock().hosts = vec![HostView { message: Some(evil.into()), ..host(evil, "up") }];
    fake.lock().profiles = vec![profile(evil, Some(evil))];
    for line in [
        "list",
        "get a1b2c3d4",
        "wait a1b2c3d4 --timeout 0s",
        "events",
        "hosts list",
        "hosts check",
        "profiles list",
    ] {
        let ran = run(&fake, line).await;
        for bad in ['\u{1b}', '\u{7}', '\u{9b}', '\u{202e}', '\r'] {
            assert!(!ran.stdout.contains(bad) && !ran.stderr.contains(bad), "{line}: {ran}");
        }
    }
    assert!(run(&fake, "list").await.stdout.lines().count() == 2);
    // Exact where a program reads it.
    assert_eq!(run(&fake, "get a1b2c3d4 --json").await.json()["name"], evil);
    let ran = run_in(on_terminal("n\n"), &fake, "destroy a1b2c3d4 --no-color").await;
    assert!(!ran.stderr.contains('\u{1b}'), "{ran}");
}

#[tokio::test]
async fn an_id_of_ten_thousand_characters() {
    let long = "x".repeat(10_000);
    for verb in ["get", "destroy", "wait", "recreate --yes", "events --sandbox"] {
        let ran = run(&fleet(), &format!("{verb} {long}")).await;
        assert_eq!(ran.status, 3, "{verb}");
        assert!(ran.stderr.len() < 3000, "{verb}: {}", ran.stderr.len());
    }
    assert_eq!(run(&fleet(), &format!("list --state {long}")).await.status, 2);
}

#[tokio::test]
async fn a_closed_pipe_ends_quietly_and_a_full_disk_does_not() {
    let closed = || World { stdout: Some(io::ErrorKind::BrokenPipe), ..World::default() };
    let fake = fleet();
    fake.lock().events = vec![event(1, EventKind::SandboxReady, "a1b2c3d4")];
    for line in [
        "list",
        "list --json",
        "get my-env",
        "events",
        "events --follow --since 0",
        "hosts list --json",
    ] {
        let ran = run_in(closed(), &fake, line).await;
        assert_eq!((ran.status, ran.stderr.as_str()), (0, ""), "{line}");
    }
    // What failed, failed, whether or not anybody read the list.
    assert_eq!(run_in(closed(), &fake, "destroy nothing").await.status, 3);
    let full = World { stdout: Some(io::ErrorKind::StorageFull), ..World::default() };
    let ran = run_in(full, &fake, "list --json").await;
    assert_eq!((ran.status, &ran.error()["code"]), (1, &json!("internal")));
}

// --- create

#[tokio::test]
async fn create_prints_how_to_get_there() {
    let fake = FakeClient::default().ends("a1b2c3d4", End::Well(Box::new(ready("a1b2c3d4"))));
    fake.lock().updates = vec![
        progress(1, "prepare"),
        progress(2, "transfer"),
        progress(2, "transfer"),
        progress(3, "start"),
    ];
    let line = "create --profile compose-e2e --input repo=. --input 'note=a=b' --host h --ttl 2h --name my-env --label a=b --keep-failed --yes";
    assert_snapshot!("create", run(&fake, line).await);
    assert_snapshot!("create_call", fake.calls().join("\n"));
    let quiet = run(&fake, &format!("{line} --quiet")).await;
    assert_eq!((quiet.status, quiet.stderr.as_str()), (0, ""));
    let ran = run(&fake, &format!("{line} --json")).await;
    assert_eq!(ran.json()["id"], "a1b2c3d4");
    let lines: Vec<Value> =
        ran.stderr.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(lines.len(), 4);
    assert_eq!(lines[3]["progress"]["message"], "\u{1b}[1mPulling\u{1b}[0m web");
    assert_eq!(run(&fake, &format!("{line} --json --quiet")).await.stderr, "");
}

#[tokio::test]
async fn a_repeated_create_prints_the_sandbox_as_it_is() {
    let fake = FakeClient::default();
    let ran = run(&fake, "create --idempotency-key k --json").await;
    assert_eq!((ran.status, &ran.json()["state"]), (0, &json!("requested")));
}

#[tokio::test]
async fn a_failed_create_shows_its_evidence() {
    let problem = Error::new(Code::OperationFailed, "the compose stack did not start");
    let mut left = failed("a1b2c3d4");
    let fake =
        FakeClient::default().ends("a1b2c3d4", End::Badly(problem.clone(), Box::new(left.clone())));
    assert_snapshot!("create_failed", run(&fake, "create").await);
    let ran = run(&fake, "create --json").await;
    assert_eq!((ran.status, ran.stdout.as_str()), (1, ""));
    assert_eq!(ran.error()["details"]["failure"]["output"], left.failure.clone().unwrap().output);
    left.leftovers = vec![Resource { kind: "network".into(), id: "sbx-a1b2c3d4_default".into() }];
    let fake = FakeClient::default().ends("a1b2c3d4", End::Badly(problem, Box::new(left)));
    assert_snapshot!("create_failed_with_leftovers", run(&fake, "create --quiet").await);
}

#[tokio::test]
async fn a_refused_create_keeps_its_code() {
    for (code, status) in [
        (Code::InvalidInput, 2),
        (Code::NotFound, 3),
        (Code::Conflict, 4),
        (Code::HostUnreachable, 5),
        (Code::InsufficientCredits, 6),
        (Code::Unsupported, 7),
        (Code::StoreCorrupt, 1),
        (Code::ReadOnly, 9),
    ] {
        let fake = FakeClient::default();
        fake.lock().refuses = Some(Error::new(code.clone(), "no"));
        let ran = run(&fake, "create --json").await;
        assert_eq!((ran.status, &ran.error()["code"]), (status, &json!(code)));
    }
}

#[tokio::test]
async fn a_dry_run_prints_the_decision_and_ends_like_the_create_would() {
    let fake = FakeClient::default();
    let mut text = String::new();
    for (refusals, placed, status) in [(0, true, 0), (2, true, 2), (0, false, 5)] {
        fake.lock().decision = Some(decision(refusals, placed));
        let ran = run(&fake, "create --dry-run").await;
        assert_eq!(ran.status, status);
        text.push_str(&format!("{ran}\n"));
        let ran = run(&fake, "create --dry-run --json").await;
        assert_eq!((ran.status, &ran.json()["ok"]), (status, &json!(status == 0)));
    }
    assert_snapshot!("dry_run", text);
    assert!(fake.calls().is_empty());
}

#[tokio::test]
async fn a_dry_run_of_a_routed_profile_has_the_verdict_on_each_candidate() {
    let fake = FakeClient::default();
    let mut text = String::new();
    for (taken, status) in [(true, 0), (false, 4)] {
        fake.lock().decision = Some(routed_decision(taken));
        text.push_str(&format!("{}\n", run(&fake, "create --dry-run").await));
        let ran = run(&fake, "create --dry-run --json").await;
        assert_eq!(ran.status, status);
        let candidates = &ran.json()["candidates"];
        assert_eq!(candidates[0]["condition"], "host-unreachable");
        assert_eq!(candidates[1]["quote_usd"], 0.72);
    }
    assert_snapshot!("dry_run_routed", text);
}

#[tokio::test]
async fn ctrl_c_rolls_back_and_says_what_remains() {
    let problem = Error::new(Code::Cancelled, "cancelled and rolled back");
    let mut left = record("a1b2c3d4", State::Failed);
    left.leftovers =
        vec![Resource { kind: "directory".into(), id: "/home/ops/sandboxes/sbx-a1b2c3d4".into() }];
    let end = End::OnCancel(Box::new(End::Badly(problem, Box::new(left))));
    let fake = FakeClient::default().ends("a1b2c3d4", end);
    let ran = run_in(World { presses: 1, ..World::default() }, &fake, "create").await;
    assert!(!ran.left_at_once);
    assert_snapshot!("create_cancelled", ran);
    assert!(fake.calls().contains(&"cancel op-a1b2c3d4".to_owned()));
}

#[tokio::test]
async fn a_second_ctrl_c_leaves_at_once() {
    let fake = FakeClient::default().ends("a1b2c3d4", End::Never);
    let ran = run_in(World { presses: 2, ..World::default() }, &fake, "create --json").await;
    assert!(ran.left_at_once);
    assert_eq!((ran.status, &ran.error()["code"]), (130, &json!("cancelled")));
    assert_snapshot!(run_in(World { presses: 2, ..World::default() }, &fake, "create").await, @r"
    status 130
    --- stdout
    --- stderr
    cancelling; Ctrl-C again leaves at once
    error: left before the cancel had ended: what it began may be half done
    hint: sandboxer destroy a1b2c3d4 removes what remains
    ");
}

// --- destroy and recreate

#[tokio::test]
async fn destroy_prints_an_array_in_the_order_given() {
    let problem = Error::new(Code::HostUnreachable, "coulombcore does not answer");
    let fake = fleet()
        .ends("c0000001", End::Badly(problem, Box::new(record("c0000001", State::Destroying))));
    let ran = run(&fake, "destroy d0000001 nothing c0000001 my-env d0000001 a1b2c3d4 --json").await;
    let items = ran.json();
    let short: Vec<String> = items
        .as_array()
        .unwrap()
        .iter()
        .map(|item| format!("{} {} {}", item["id"], item["ok"], item["error"]["code"]))
        .collect();
    assert_snapshot!(short.join("\n"), @r#"
    "d0000001" true null
    "nothing" false "not_found"
    "c0000001" false "host_unreachable"
    "a1b2c3d4" true null
    "#);
    assert_eq!((ran.status, &ran.error()["code"]), (8, &json!("partial")));
    let destroyed = fake.calls().iter().filter(|call| call.starts_with("destroy")).count();
    assert_eq!(destroyed, 3, "{:?}", fake.calls());
}

#[tokio::test]
async fn destroy_in_words() {
    let problem =
        Error::new(Code::HostUnreachable, "coulombcore does not answer").hint("try again later");
    let fake = fleet()
        .ends("c0000001", End::Badly(problem, Box::new(record("c0000001", State::Destroying))));
    assert_snapshot!("destroy", run(&fake, "destroy my-env nothing c0000001").await);
    assert_snapshot!("destroy_one_failed", run(&fake, "destroy c0000001").await);
}

#[tokio::test]
async fn a_bulk_verb_has_the_one_code_that_all_failures_have() {
    for (line, status) in [
        ("destroy a1b2c3d4", 0),
        ("destroy a1b2c3d4 b0000001", 0),
        ("destroy no-1 no-2", 3),
        ("destroy no-1 b0000001", 8),
        ("destroy no-1", 3),
    ] {
        assert_eq!(run(&fleet(), line).await.status, status, "{line}");
        assert_eq!(run(&fleet(), &format!("{line} --json")).await.status, status, "{line}");
    }
    let over = FakeClient::with(vec![record("a1b2c3d4", State::Destroyed)]);
    assert_eq!(run(&over, "destroy a1b2c3d4").await.status, 0);
}

#[tokio::test]
async fn never_destroyed_when_nobody_saw_it_gone() {
    let mut left = record("a1b2c3d4", State::Destroying);
    left.message = Some("coulombcore does not answer; tried again when it does".into());
    let fake = fleet().ends("a1b2c3d4", End::Well(Box::new(left)));
    let ran = run(&fake, "destroy a1b2c3d4 --json").await;
    assert_eq!((ran.status, &ran.json()[0]["ok"]), (1, &json!(false)));
    let fake = fleet().ends("a1b2c3d4", End::Well(Box::new(record("a1b2c3d4", State::Forgotten))));
    assert_eq!(run(&fake, "destroy a1b2c3d4 --forget --yes").await.status, 0);
}

#[tokio::test]
async fn off_a_terminal_only_what_is_beyond_doubt_proceeds() {
    for (line, status) in [
        ("destroy a1b2c3d4", 0),
        ("destroy my-env", 0),
        ("destroy a1b2", 2),
        ("destroy my-env c000", 2),
        ("destroy a1b2 --yes", 0),
        ("destroy my-env --force-protected", 2),
        ("destroy my-env --force-protected --yes", 0),
        ("recreate my-env", 2),
        ("recreate my-env --yes", 0),
    ] {
        let fake = fleet();
        let ran = run(&fake, line).await;
        assert_eq!(ran.status, status, "{line}: {ran}");
        assert_eq!(fake.calls().is_empty(), status == 2, "{line}: nothing is touched");
    }
    // Under --json nobody can be asked, terminal or not.
    let ran = run_in(on_terminal("y\n"), &fleet(), "recreate my-env --json").await;
    assert_eq!((ran.status, ran.tty.as_str()), (2, ""));
}

#[tokio::test]
async fn a_question_is_asked_on_the_terminal_wherever_stderr_leads() {
    for (types, status) in [("y\n", 0), ("y\r", 0), ("n\n", 130), ("y", 130), ("yes but\n", 130)] {
        for line in ["destroy my-env", "recreate my-env", "destroy a1b2c3d4 --forget"] {
            let fake = fleet();
            let world = World { stderr_to_file: true, ..on_terminal(types) };
            let ran = run_in(world, &fake, line).await;
            let asked = ran.tty.contains("this sandbox? [y/N] ") && !ran.stderr.contains("[y/N]");
            assert_eq!(
                (asked, fake.calls().is_empty()),
                (true, status != 0),
                "{types:?} {line}: {ran}"
            );
        }
    }
}

#[tokio::test]
async fn where_the_terminal_cannot_be_asked_on_nothing_is_destroyed() {
    for line in ["destroy a1b2c3d4", "destroy my-env", "recreate my-env", "destroy my-env --forget"]
    {
        let fake = fleet();
        let ran = run_in(World { no_tty: true, ..on_terminal("y\n") }, &fake, line).await;
        assert_eq!((ran.status, fake.calls().is_empty()), (2, true), "{line}: {ran}");
    }
    let fake = fleet();
    let ran = run_in(World { no_tty: true, ..on_terminal("") }, &fake, "destroy my-env").await;
    assert_snapshot!("destroy_without_a_tty", ran);
    assert_eq!(
        run_in(World { no_tty: true, ..on_terminal("") }, &fake, "destroy my-env --yes")
            .await
            .status,
        0
    );
}

#[tokio::test]
async fn on_a_terminal_it_asks_and_no_is_the_default() {
    for (types, status) in [("y\n", 0), ("YES\n", 0), ("n\n", 130), ("\n", 130), ("what\n", 130)] {
        for line in ["destroy my-env", "destroy a1b2 c000", "recreate my-env"] {
            let fake = fleet();
            let ran = run_in(on_terminal(types), &fake, line).await;
            assert_eq!(ran.status, status, "{types:?} {line}: {ran}");
            assert_eq!(fake.calls().is_empty(), status != 0, "{types:?} {line}");
        }
    }
    let mut protected = named("b1b2c3d4", "keep", State::Ready);
    protected.labels = [("protect".into(), "true".into())].into();
    let fake = FakeClient::with(vec![ready("a1b2c3d4"), protected]);
    let ran = run_in(on_terminal("n\n"), &fake, "destroy a1b2 keep nothing --no-color").await;
    assert_snapshot!("destroy_asks", ran);
    // Whoever was shown a record agreed to that revision.
    let fake = fleet();
    run_in(on_terminal("y\n"), &fake, "destroy my-env").await;
    assert!(fake.calls()[0].contains("\"revision\":7"), "{:?}", fake.calls());
}

#[tokio::test]
async fn ctrl_c_at_the_question_is_a_no() {
    let fake = fleet();
    let world = World { terminal: true, presses: 1, ..World::default() };
    let ran = run_in(world, &fake, "destroy my-env").await;
    assert_eq!(ran.status, 130);
    assert!(fake.calls().is_empty());
}

// --- wait

#[tokio::test]
async fn wait_ends_when_it_has_come_or_cannot_come() {
    for (state, what, status) in [
        (State::Ready, "ready", 0),
        (State::Failed, "ready", 1),
        (State::Lost, "ready", 1),
        (State::Destroyed, "ready", 4),
        (State::Destroying, "ready", 4),
        (State::Provisioning, "ready", 5),
        (State::Sleeping, "ready", 5),
        (State::Destroyed, "destroyed", 0),
        (State::Forgotten, "destroyed", 5),
        (State::Ready, "destroyed", 5),
        (State::Ready, "patched", 0),
    ] {
        let fake = FakeClient::with(vec![record("a1b2c3d4", state.clone())]);
        let ran = run(&fake, &format!("wait a1b2c3d4 --for {what} --timeout 0s")).await;
        assert_eq!(ran.status, status, "{state} for {what}: {ran}");
    }
    let fake = FakeClient::with(vec![record("a1b2c3d4", State::Provisioning)]);
    assert_snapshot!(run(&fake, "wait a1b2 --timeout 1s").await, @r"
    status 5
    --- stdout
    --- stderr
    error: a1b2c3d4 is not ready after 1s; it is provisioning
    ");
    assert_eq!(
        run_in(World { presses: 1, ..World::default() }, &fake, "wait a1b2").await.status,
        130
    );
}

#[tokio::test]
async fn wait_hears_what_happens() {
    let fake = FakeClient::with(vec![record("a1b2c3d4", State::Provisioning)]);
    let waiting = run(&fake, "wait a1b2c3d4 --json");
    let happening = async {
        tokio::time::sleep(std::time::Duration::from_millis(200)).await;
        fake.happens(
            ready("a1b2c3d4"),
            Update::Event(event(3, EventKind::SandboxReady, "a1b2c3d4")),
        );
    };
    let (ran, ()) = tokio::join!(waiting, happening);
    assert_eq!((ran.status, &ran.json()["state"]), (0, &json!("ready")));
}

/// Looks at a host find these states of its two services.
fn observed(fake: &FakeClient, looks: &[(&str, Option<i32>)]) {
    let look = |(state, exit_code): &(&str, Option<i32>)| {
        let mut seen = ready("a1b2c3d4");
        let services = json!([{"name": "web", "state": "running"}, {"name": "db", "state": state, "exit_code": exit_code}]);
        seen.services = serde_json::from_value(services).unwrap();
        Ok(seen)
    };
    fake.lock().observed = looks.iter().map(look).collect();
}

#[tokio::test]
async fn wait_asks_the_host_whether_it_is_still_ready() {
    let fake = FakeClient::with(vec![ready("a1b2c3d4")]);
    observed(&fake, &[("exited", Some(3)), ("exited", Some(3))]);
    let ran = run(&fake, "wait a1b2").await;
    assert_eq!((ran.status, ran.stdout.as_str()), (1, ""), "{ran}");
    assert!(ran.stderr.contains("my-env is not ready any more: db exit 3"), "{ran}");
    assert!(ran.stderr.contains("sandboxer logs a1b2c3d4"), "{ran}");
    // Engines that start it again say so, or that it ended, for a moment.
    observed(&fake, &[("exited", Some(3)), ("restarting", Some(3)), ("running", None)]);
    assert_eq!(run(&fake, "wait a1b2").await.status, 0);
    let again = [("restarting", Some(3)); 20];
    observed(&fake, &again);
    let ran = run(&fake, "wait a1b2 --timeout 1s").await;
    assert_eq!(ran.status, 5, "{ran}");
    assert!(
        ran.stderr.contains("is not ready after 1s; it is ready, degraded: db restarting (exit 3)"),
        "{ran}"
    );
}

#[tokio::test]
async fn wait_says_that_the_host_does_not_answer_when_its_time_is_over() {
    let fake = FakeClient::with(vec![ready("a1b2c3d4")]);
    let away = || {
        Err(Error { retryable: true, ..Error::new(Code::HostUnreachable, "no way to sandboxer01") })
    };
    fake.lock().observed = [away(), away()].into();
    assert_eq!(run(&fake, "wait a1b2 --json").await.error()["code"], "host_unreachable");
    fake.lock().observed = [away(), away()].into();
    assert_eq!(run(&fake, "wait a1b2 --timeout 20s").await.status, 0, "it was back in time");
    fake.lock().observed = std::iter::repeat_with(away).take(20).collect();
    assert_eq!(run(&fake, "wait a1b2 --timeout 1s").await.status, 5);
}

// --- events, hosts, profiles

#[tokio::test]
async fn events_that_are_kept() {
    let fake = fleet();
    fake.lock().events = vec![
        event(1, EventKind::SandboxRequested, "a1b2c3d4"),
        event(2, EventKind::SandboxReady, "a1b2c3d4"),
    ];
    assert_snapshot!("events", run(&fake, "events").await);
    let line = "events --since 1 --sandbox my-env --kind sandbox.ready --kind sandbox.failed --actor agt:x --json";
    assert_eq!(run(&fake, line).await.json().as_array().unwrap().len(), 1);
    run(&fake, "events --since 10m").await;
    assert_snapshot!("events_calls", fake.calls().join("\n"));
    assert_eq!(run(&FakeClient::default(), "events --json").await.stdout, "[]\n");
}

#[tokio::test]
async fn following_prints_each_event_once_and_no_progress() {
    let fake = fleet();
    fake.lock().events = vec![event(1, EventKind::SandboxRequested, "a1b2c3d4")];
    fake.lock().updates = vec![
        Update::Event(event(1, EventKind::SandboxRequested, "a1b2c3d4")),
        progress(1, "prepare"),
        Update::Event(event(2, EventKind::SandboxReady, "a1b2c3d4")),
        Update::Resync,
        Update::Event(event(3, EventKind::SandboxReady, "b0000001")),
    ];
    let world = || World { presses: 1, ..World::default() };
    let seqs = |ran: &Ran| -> Vec<u64> {
        ran.stdout
            .lines()
            .map(|line| serde_json::from_str::<Value>(line).unwrap()["seq"].as_u64().unwrap())
            .collect()
    };
    let ran = run_in(world(), &fake, "events --follow --since 0 --json").await;
    assert_eq!((ran.status, seqs(&ran), ran.stderr.as_str()), (130, vec![1, 2, 3], ""));
    let ran = run_in(world(), &fake, "events --follow --sandbox b0000001 --json").await;
    assert_eq!(seqs(&ran), [3]);
    let ran = run_in(world(), &fake, "events --follow --kind sandbox.ready --json").await;
    assert_eq!(seqs(&ran), [2, 3]);
}

#[tokio::test]
async fn hosts_that_answer_and_hosts_that_do_not() {
    let fake = FakeClient::default();
    fake.lock().hosts =
        vec![host("coulombcore", "up"), host("railiance01", "down"), host("prod", "forbidden")];
    assert_snapshot!("hosts_list", run(&fake, "hosts list").await);
    for (line, status) in [
        ("hosts list", 0),
        ("hosts check coulombcore", 0),
        ("hosts check COULOMBCORE coulombcore", 0),
        ("hosts check railiance01", 5),
        ("hosts check", 8),
        ("hosts check nowhere", 3),
        ("hosts check coulombcore nowhere", 8),
        ("hosts check prod", 9),
        ("hosts check prod railiance01", 5),
        ("hosts check prod coulombcore", 8),
    ] {
        assert_eq!(run(&fake, line).await.status, status, "{line}");
    }
    assert_snapshot!("hosts_check", run(&fake, "hosts check").await);
    assert_snapshot!(
        "hosts_check_each",
        run(&fake, "hosts check coulombcore prod nowhere railiance01").await
    );
    let ran = run(&fake, "hosts check prod --json").await;
    assert_eq!(
        (&ran.error()["code"], &ran.error()["retryable"]),
        (&json!("forbidden"), &json!(false))
    );
    let ran = run(&fake, "hosts check coulombcore nowhere --json").await;
    let error = ran.error();
    assert_eq!((&error["code"], ran.json().as_array().unwrap().len()), (&json!("partial"), 1));
    assert_eq!(error["details"]["failed"][0]["id"], "nowhere");
    let json = run(&fake, "hosts check --json").await.json();
    assert_eq!(json.as_array().unwrap().len(), 2, "a forbidden one is not even probed");
}

#[tokio::test]
async fn profiles_and_their_files() {
    let fake = FakeClient::default();
    let mut own = profile("profile.own", None);
    own.source = "operator".into();
    own.overrides_builtin = true;
    fake.lock().profiles = vec![
        profile("profile.compose-e2e", None),
        profile("profile.bad", Some("3:1: unknown key 'tll'")),
        own,
    ];
    assert_snapshot!("profiles_list", run(&fake, "profiles list").await);
    assert_snapshot!("profiles_show", run(&fake, "profiles show own").await);
    assert_eq!(run(&fake, "profiles show nothing").await.status, 3);
    assert_snapshot!("profiles_validate", run(&fake, "profiles validate good.yaml bad.yaml").await);
    for (line, status) in [
        ("profiles validate good.yaml", 0),
        ("profiles validate bad.yaml", 2),
        ("profiles validate bad.yaml worse.yaml", 2),
        ("profiles validate bad.yaml good.yaml", 8),
    ] {
        assert_eq!(run(&fake, line).await.status, status, "{line}");
    }
    let ran = run(&fake, "profiles validate bad.yaml --json").await;
    assert_eq!(ran.json()[0]["error"]["code"], "invalid_profile");
}

// --- schemas

/// Panics unless the document is what `docs/schemas` says.
fn fits(name: &str, document: &Value) {
    let path = format!("{}/docs/schemas/{name}.json", env!("CARGO_MANIFEST_DIR"));
    let schema: Value = serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
    let validator = jsonschema::validator_for(&schema).unwrap();
    let errors: Vec<String> =
        validator.iter_errors(document).map(|error| error.to_string()).collect();
    assert!(errors.is_empty(), "{name}: {errors:?}\n{document:#}");
}

#[tokio::test]
async fn every_document_fits_its_schema() {
    let problem = Error::new(Code::OperationFailed, "it did not start");
    let fake = fleet().ends("a1b2c3d5", End::Badly(problem, Box::new(failed("a1b2c3d5"))));
    fake.lock().events = vec![event(1, EventKind::SandboxReady, "a1b2c3d4")];
    fake.lock().hosts = vec![host("coulombcore", "up"), host("railiance01", "down")];
    fake.lock().profiles = vec![profile("profile.compose-e2e", None)];
    fake.lock().extensions = vec![extension()];
    fake.lock().decision = Some(decision(1, true));
    fake.lock().updates = vec![progress(1, "prepare")];
    for (line, schema) in [
        ("create --id new", "sandbox"),
        ("list", "sandboxes"),
        ("get my-env", "sandbox"),
        ("get my-env", "sandbox_detail"),
        ("wait my-env", "sandbox"),
        ("recreate my-env --yes", "sandbox"),
        ("destroy c0000001 nothing", "bulk"),
        ("create --dry-run", "decision"),
        ("events", "events"),
        ("hosts list", "hosts"),
        ("hosts check", "hosts"),
        ("profiles list", "profiles"),
        ("profiles show compose-e2e", "profile"),
        ("profiles validate good.yaml bad.yaml", "bulk"),
        ("extensions list", "extensions"),
        ("extensions show compose-ssh", "extension"),
    ] {
        let ran = run(&fake, &format!("{line} --json")).await;
        fits(schema, &ran.json());
        if ran.status != 0 {
            fits("error", &json!({"error": ran.error()}));
        }
    }
    let ran = run(&fake, "create --id a1b2c3d5 --json").await;
    let lines: Vec<Value> =
        ran.stderr.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    fits("progress", &lines[0]);
    fits("error", &lines[1]);
    let world = World { presses: 1, ..World::default() };
    let ran = run_in(world, &fake, "events --follow --since 0 --json").await;
    fits("event", &serde_json::from_str(ran.stdout.lines().next().unwrap()).unwrap());
}

#[tokio::test]
async fn extensions_in_words() {
    let fake = FakeClient::default();
    fake.lock().extensions = vec![extension()];
    assert_snapshot!("extensions_list", run(&fake, "extensions list").await);
    assert_snapshot!("extensions_show", run(&fake, "extensions show compose-ssh").await);
}
