//! The command line from its arguments to its exit status, on the real client of a scripted world.

mod cli_client;
mod cli_world;
mod completions;
mod credits;
mod deep;
mod flush;
mod inside;
mod inspect;
mod patches;
mod reap;
mod snapshot_records;
mod snapshot_restore;
mod snapshots;
mod stale;
mod sweep;
mod terminal;
mod upkeep;

use std::io;
use std::sync::Arc;

use cli_world::*;
use futures_util::StreamExt as _;
use insta::assert_snapshot;
use sandboxer::cli::{self, ParseOutcome};
use sandboxer::client::{Client as _, CreateRequest, Error, LabelRequest, Started, Update};
use sandboxer::domain::error::Code;
use sandboxer::domain::event::{EventKind, PendingEvent};
use sandboxer::domain::extension::{MeterQuote, Preview, Refusal};
use sandboxer::domain::host_view::HostState;
use sandboxer::domain::name::EventId;
use sandboxer::domain::reporter::Report;
use sandboxer::domain::sandbox::{Failure, Service};
use sandboxer::domain::teardown::Resource;
use sandboxer::domain::{HostName, SandboxId, State, Usd};
use sandboxer::store::EventLog as _;
use serde_json::{Value, json};

use crate::test_env::fixture::{Fixture, decision, host, service};
use crate::test_env::hosts::Machine;
use crate::test_env::script::{Act, Scripted};

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
        let ran = run(&nothing().await, line).await;
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
            run(&nothing().await, &format!("{line} --json")).await.error()["code"],
            "usage",
            "{line}"
        );
    }
    assert!(run(&nothing().await, "extensons list").await.stderr.contains("extensions"));
}

#[tokio::test]
async fn without_a_utf_8_locale_only_ascii_of_ours_is_written() {
    for line in ["list", "get my-env", "snapshots list", "hosts list"] {
        let world = World { plain_locale: true, width: Some(60), ..World::default() };
        let ran = run_in(world, &fleet().await, line).await;
        assert!(ran.stdout.is_ascii() && ran.stderr.is_ascii(), "{line}: {ran}");
    }
}

#[tokio::test]
async fn help_and_version_end_well_and_on_stdout() {
    let console = nothing().await;
    for line in
        ["--help", "-h", "create --help", "help", "help create", "hosts check --help", "--version"]
    {
        let ran = run(&console, line).await;
        assert_eq!(ran.said(), (0, ""), "{line}");
        assert!(!ran.stdout.is_empty() && !ran.stdout.contains('\u{1b}'), "{line}");
    }
}

#[tokio::test]
async fn an_output_that_is_full_fails_help_and_leaves_a_create_done() {
    let full = || World { stdout: Some(io::ErrorKind::StorageFull), ..World::default() };
    let ran = run_in(full(), &nothing().await, "--help").await;
    assert_eq!(ran.status, 1, "{ran}");
    assert!(ran.stderr.contains("standard output cannot be written"), "{ran}");
    let left = World { stdout: Some(io::ErrorKind::BrokenPipe), ..World::default() };
    assert_eq!(run_in(left, &nothing().await, "--help").await.said(), (0, ""));

    let console = nothing().await;
    let ran = run_in(full(), &console, "create --json --quiet").await;
    assert_eq!(ran.code(), (1, "internal".to_owned()));
    assert!(ran.stderr.contains("stays changed: `sandboxer list`"), "{ran}");
    assert_eq!(run(&console, "list --json").await.json().as_array().unwrap().len(), 1);
}

#[tokio::test]
async fn wrong_usage_in_words_and_as_json() {
    let console = nothing().await;
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
        let ran = run(&console, &line).await;
        assert_eq!(ran.out(), (2, ""), "{line}");
        assert!(!ran.stderr.contains('\u{1b}'), "{line}: {:?}", ran.stderr);
        if !line.is_empty() {
            text.push_str(&format!(
                "$ sandboxer {}\n{}\n",
                line.replace('\u{1b}', "ESC"),
                ran.stderr
            ));
        }
        let ran = run(&console, &format!("--json {line}")).await;
        assert_eq!(ran.out(), (2, ""), "{line}");
        assert_eq!(ran.error()["code"], "usage", "{line}");
    }
    assert_snapshot!("wrong_usage", text);
    assert!(console.calls().is_empty());
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
    let ran = run(&fleet().await, "--server http://127.0.0.1:1 list --json").await;
    assert_eq!(ran.code(), (7, "unsupported".to_owned()));
}

// --- list and get

#[tokio::test]
async fn list_for_a_person_and_for_a_script() {
    assert_snapshot!("list", run(&fleet().await, "list").await);
    let mut narrow = String::new();
    for width in [80, 60, 30] {
        let world = World { width: Some(width), ..on_terminal("") };
        narrow.push_str(&run_in(world, &fleet().await, "list --no-color").await.stdout);
    }
    assert_snapshot!("list_narrow_without_colours", narrow);
    let colours =
        run_in(World { width: Some(120), ..on_terminal("") }, &fleet().await, "list").await;
    assert_snapshot!("list_in_colours", colours.stdout.replace('\u{1b}', "␛"));
    let json = document(&fleet().await, "list").await;
    assert_eq!(json.as_array().unwrap().len(), 5);
    assert_eq!(json[0]["reachability"]["endpoints"][0]["host_port"], 32768);
}

#[tokio::test]
async fn nothing_to_list() {
    let console = nothing().await;
    assert_snapshot!(run(&console, "list").await, @r"
    status 0
    --- stdout
    --- stderr
    no sandboxes; create one: sandboxer create --profile sandbox-canary
    ");
    assert_snapshot!(run(&console, "list --state ready --label a=b").await, @r"
    status 0
    --- stdout
    --- stderr
    no sandbox matches
    ");
    let ran = run(&console, "list --json").await;
    assert_eq!((ran.stdout.as_str(), ran.stderr.as_str()), ("[]\n", ""));
    assert_eq!(run(&console, "list --quiet").await.stderr, "");
}

#[tokio::test]
async fn list_passes_every_filter_on() {
    let console = fleet().await;
    let line = "list --state ready --state failed --host h --profile p --label a=b --label c= --all --json";
    assert_eq!(run(&console, line).await.stdout, "[]\n");
    let expected = json!({"states": ["ready", "failed"], "host": "h", "profile": "p", "labels": {"a": "b", "c": ""}, "all": true});
    let call = console.calls()[0].clone();
    assert_eq!(serde_json::from_str::<Value>(call.trim_start_matches("list ")).unwrap(), expected);
}

#[tokio::test]
async fn get_for_a_person_and_for_a_script() {
    let console = fleet().await;
    assert_snapshot!("get", run(&console, "get my-env").await);
    assert_snapshot!("get_failed", run(&console, "get e000").await);
    let json = document(&console, "get a1b2c3d4").await;
    let mut expected = serde_json::to_value(console.client.get("a1b2c3d4").await.unwrap()).unwrap();
    expected["lineage"] = json!({"ancestors": [], "snapshots": []});
    assert_eq!(json, expected);
    let ran = run(&console, "get nothing --json").await;
    assert_eq!(
        (ran.status, ran.stdout.as_str(), &ran.error()["code"]),
        (3, "", &json!("not_found"))
    );
    // The record is there, whatever else cannot be read.
    std::fs::write(console.folder.path().join("snapshots.json"), "{").unwrap();
    let ran = run(&console, "get my-env").await.to_string();
    assert_snapshot!(
        "get_without_lineage",
        ran.replace(&console.folder.path().display().to_string(), "DATA")
    );
    let json = document(&console, "get my-env").await;
    assert_eq!((&json["id"], &json["lineage"]), (&json!("a1b2c3d4"), &Value::Null));
    assert_eq!(json["unread"]["code"], "store_corrupt");
}

/// An event of a sandbox, as another process writes it down.
async fn happened(console: &Console, kind: EventKind, sandbox: &str, data: Value) {
    let events = console.stores().events;
    events
        .append(vec![PendingEvent {
            id: EventId::new(format!(
                "00000000-0000-4000-8000-{:012}",
                events.last_seq().await.unwrap()
            )),
            time: now(),
            kind,
            sandbox_id: Some(SandboxId::new(sandbox)),
            actor: tester(),
            data,
        }])
        .await
        .unwrap();
}

fn on_the_host() -> Value {
    json!({"host": "coulombcore\u{1b}[2J"})
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
    let hosts = vec![host(evil, HostState::Down, None)];
    let console = env_of(Fixture { records: vec![record], hosts, ..Fixture::default() }).await;
    happened(&console, EventKind::Other(evil.into()), evil, json!(evil)).await;
    let profiles = console.folder.path().join("profiles");
    std::fs::create_dir(&profiles).unwrap();
    std::fs::write(profiles.join("evil.yaml"), format!("id: profile.evil\n{evil:?}: {evil:?}\n"))
        .unwrap();
    for line in [
        "list",
        "get a1b2c3d4",
        "wait a1b2c3d4 --timeout 0s",
        "events",
        "hosts list",
        "hosts check",
        "profiles list",
    ] {
        let ran = run(&console, line).await;
        assert!(ran.stdout.len() + ran.stderr.len() > 0, "{line}");
        for bad in ['\u{1b}', '\u{7}', '\u{9b}', '\u{202e}', '\r'] {
            assert!(!ran.stdout.contains(bad) && !ran.stderr.contains(bad), "{line}: {ran}");
        }
    }
    assert!(run(&console, "list").await.stdout.lines().count() == 2);
    // Exact where a program reads it.
    assert_eq!(document(&console, "get a1b2c3d4").await["name"], evil);
    let ran = run_in(on_terminal("n\n"), &console, "destroy a1b2c3d4 --no-color").await;
    assert!(!ran.stderr.contains('\u{1b}'), "{ran}");
}

#[tokio::test]
async fn an_id_of_ten_thousand_characters() {
    let long = "x".repeat(10_000);
    for verb in ["get", "destroy", "wait", "recreate --yes", "events --sandbox"] {
        let ran = run(&fleet().await, &format!("{verb} {long}")).await;
        assert_eq!(ran.status, 3, "{verb}");
        assert!(ran.stderr.len() < 3000, "{verb}: {}", ran.stderr.len());
    }
    assert_eq!(exits(&fleet().await, &format!("list --state {long}")).await, 2);
}

#[tokio::test]
async fn a_closed_pipe_ends_quietly_and_a_full_disk_does_not() {
    let closed = || World { stdout: Some(io::ErrorKind::BrokenPipe), ..World::default() };
    let console = fleet().await;
    happened(&console, EventKind::SandboxReady, "a1b2c3d4", on_the_host()).await;
    for line in [
        "list",
        "list --json",
        "get my-env",
        "events",
        "events --follow --since 0",
        "hosts list --json",
    ] {
        let ran = run_in(closed(), &console, line).await;
        assert_eq!(ran.said(), (0, ""), "{line}");
    }
    // What failed, failed, whether or not anybody read the list.
    assert_eq!(run_in(closed(), &console, "destroy nothing").await.status, 3);
    let full = World { stdout: Some(io::ErrorKind::StorageFull), ..World::default() };
    let ran = run_in(full, &console, "list --json").await;
    assert_eq!(ran.code(), (1, "internal".to_owned()));
}

// --- create

#[tokio::test]
async fn create_prints_how_to_get_there() {
    let console = nothing().await;
    *console.script.readiness.lock().unwrap() = Some(readiness());
    let moved = Report { bytes: Some(3 << 20), ..report(2, "transfer", None) };
    let pulls = report(3, "start", Some("\u{1b}[1mPulling\u{1b}[0m web"));
    *console.script.progress.lock().unwrap() =
        vec![report(1, "prepare", None), moved.clone(), moved, pulls];
    let line = "create --profile compose-e2e --input repo=/tmp --input 'compose_file=a=b' --host coulombcore --ttl 2h --label a=b --keep-failed --yes";
    assert_snapshot!("create", run(&console, &format!("{line} --name my-env")).await);
    assert_snapshot!("create_call", console.calls().join("\n"));
    let quiet = run(&console, &format!("{line} --quiet")).await;
    assert_eq!(quiet.said(), (0, ""));
    let ran = run(&console, &format!("{line} --json --name other")).await;
    assert_eq!(ran.json()["name"], "other");
    let lines: Vec<Value> =
        ran.stderr.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let said =
        lines.iter().filter(|line| line["progress"]["message"] == "\u{1b}[1mPulling\u{1b}[0m web");
    assert_eq!(said.count(), 1, "{lines:?}");
    assert_eq!(run(&console, &format!("{line} --json --quiet")).await.stderr, "");
}

#[tokio::test]
async fn a_repeated_create_prints_the_sandbox_as_it_is() {
    let console = nothing().await;
    let first = run(&console, "create --idempotency-key k --json").await;
    let ran = run(&console, "create --idempotency-key k --json").await;
    assert_eq!((ran.status, &ran.json()), (0, &first.json()));
    assert_eq!(document(&console, "list").await.as_array().unwrap().len(), 1);
}

#[tokio::test]
async fn a_failed_create_shows_its_evidence() {
    let console = nothing().await;
    let said = report(3, "start", Some("\u{1b}[31mno such image\u{1b}[0m"));
    *console.script.progress.lock().unwrap() = vec![said];
    let broken = || Act::Fail(Code::OperationFailed, "the compose stack did not start");
    console.script(
        &[broken(), broken(), broken()],
        &[],
        &[Act::Well, Act::Well, Act::LeaveNetwork],
    );
    assert_snapshot!("create_failed", run(&console, "create --quiet").await);
    let ran = run(&console, "create --json").await;
    assert_eq!(ran.out(), (1, ""));
    let evidence = "\u{1b}[31mno such image\u{1b}[0m\nthe compose stack did not start";
    assert_eq!(ran.error()["details"]["failure"]["output"], evidence);
    assert_snapshot!("create_failed_with_leftovers", run(&console, "create --quiet").await);
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
        let console = nothing().await;
        console.client.answers::<Started>("start", Err(Error::new(code.clone(), "no")));
        let ran = run(&console, "create --json").await;
        assert_eq!((ran.status, &ran.error()["code"]), (status, &json!(code)));
    }
}

#[tokio::test]
async fn a_dry_run_prints_the_decision_and_ends_like_the_create_would() {
    let mut text = String::new();
    let placed = hosts();
    let down = vec![
        host("coulombcore", HostState::Down, None),
        host("sandboxer01", HostState::Down, None),
    ];
    for (refused, hosts, status) in [(false, &placed, 0), (true, &placed, 2), (false, &down, 5)] {
        let console = env_of(Fixture { hosts: hosts.clone(), ..Fixture::default() }).await;
        let refusal = |number: u32| Refusal {
            path: format!("services.web{number}.privileged"),
            message: "a privileged container leaves the sandbox".into(),
            allow: Some("privileged".into()),
        };
        let refusals = if refused { vec![refusal(0), refusal(1)] } else { Vec::new() };
        *console.script.previewed.lock().unwrap() = Preview { refusals, ..decision().preview };
        let line = "create --dry-run --profile compose-e2e --input repo=/tmp";
        let ran = run(&console, line).await;
        assert_eq!(ran.status, status, "{ran}");
        text.push_str(&format!("{ran}\n"));
        let ran = run(&console, &format!("{line} --json")).await;
        assert_eq!((ran.status, &ran.json()["ok"]), (status, &json!(status == 0)));
        assert!(console.calls().is_empty() && run(&console, "list").await.stdout.is_empty());
    }
    assert_snapshot!("dry_run", text);
}

#[tokio::test]
async fn a_dry_run_of_a_routed_profile_has_the_verdict_on_each_candidate() {
    let mut text = String::new();
    for (micros, status) in [(720_000, 0), (7_200_000, 4)] {
        let paid = Scripted::default();
        *paid.place.lock().unwrap() = Some("stub".into());
        *paid.quote.lock().unwrap() =
            Some(MeterQuote { usd: Usd::from_micros(micros), basis: "an hour".to_owned() });
        let script = script();
        *script.paid.lock().unwrap() = Some(Arc::new(paid));
        let down = vec![
            host("coulombcore", HostState::Down, None),
            host("sandboxer01", HostState::Down, None),
        ];
        let console = env_with(Fixture { hosts: down, ..Fixture::default() }, script).await;
        run(&console, "credits grant 50").await;
        let line = "create --dry-run --profile burst-sandbox --input repo=/tmp";
        text.push_str(&format!("{}\n", run(&console, line).await));
        let ran = run(&console, &format!("{line} --json")).await;
        assert_eq!(ran.status, status, "{ran}");
        let candidates = &ran.json()["candidates"];
        assert_eq!(candidates[0]["condition"], "host-unreachable");
        assert_eq!(candidates[1]["quote_usd"].as_f64(), Some(micros as f64 / 1e6));
    }
    assert_snapshot!("dry_run_routed", text);
}

#[tokio::test]
async fn ctrl_c_rolls_back_and_says_what_remains() {
    let console = nothing().await;
    console.script(&[Act::Hang], &[], &[Act::LeaveNetwork]);
    let ran = run_in(pressed(1, "provision"), &console, "create").await;
    assert!(!ran.left_at_once);
    assert_snapshot!("create_cancelled", ran);
    assert!(console.calls().iter().any(|call| call.starts_with("cancel ")));
}

#[tokio::test]
async fn a_second_ctrl_c_leaves_at_once() {
    let console = nothing().await;
    console.script(&[Act::Hang, Act::Hang], &[], &[Act::Hang, Act::Hang]);
    let ran = run_in(pressed(2, "provision"), &console, "create --json").await;
    assert!(ran.left_at_once);
    assert_eq!(ran.code(), (130, "cancelled".to_owned()));
    assert_snapshot!(run_in(pressed(2, "provision"), &console, "create --quiet").await, @r"
    status 130
    --- stdout
    --- stderr
    error: left before the cancel had ended: what it began may be half done
    hint: sandboxer destroy 538453d7 removes what remains
    ");
}

// --- destroy and recreate

/// The fleet, and the machine of `c0000001` does not answer.
async fn half_there() -> Console {
    let console = fleet().await;
    console.script.down.lock().unwrap().insert("sandboxer01");
    console
}

#[tokio::test]
async fn destroy_prints_an_array_in_the_order_given() {
    let console = half_there().await;
    let ran =
        run(&console, "destroy d0000001 nothing c0000001 my-env d0000001 a1b2c3d4 --json").await;
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
    assert_eq!(ran.code(), (8, "partial".to_owned()));
    let destroyed = console.calls().iter().filter(|call| call.starts_with("destroy")).count();
    assert_eq!(destroyed, 3, "{:?}", console.calls());
}

#[tokio::test]
async fn destroy_in_words() {
    let console = half_there().await;
    assert_snapshot!("destroy", run(&console, "destroy my-env nothing c0000001").await);
    assert_snapshot!("destroy_one_failed", run(&console, "destroy c0000001").await);
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
        let console = fleet().await;
        assert_eq!(exits(&console, line).await, status, "{line}");
        // What is destroyed already is no failure.
        assert_eq!(exits(&console, &format!("{line} --json")).await, status, "{line}");
    }
}

#[tokio::test]
async fn never_destroyed_when_nobody_saw_it_gone() {
    let console = half_there().await;
    let ran = run(&console, "destroy c0000001 --json").await;
    assert_eq!((ran.status, &ran.json()[0]["ok"]), (5, &json!(false)));
    let ran = run(&console, "destroy c0000001").await;
    assert!(ran.status == 5 && !ran.stdout.contains("destroyed"), "{ran}");
    assert_eq!(console.client.get("c0000001").await.unwrap().state, State::Destroying);
    assert_eq!(exits(&console, "destroy c0000001 --forget --yes").await, 0);
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
        let console = fleet().await;
        let ran = run(&console, line).await;
        assert_eq!(ran.status, status, "{line}: {ran}");
        assert_eq!(console.calls().is_empty(), status == 2, "{line}: nothing is touched");
    }
    // Under --json nobody can be asked, terminal or not.
    let ran = run_in(on_terminal("y\n"), &fleet().await, "recreate my-env --json").await;
    assert_eq!((ran.status, ran.tty.as_str()), (2, ""));
}

#[tokio::test]
async fn a_question_is_asked_on_the_terminal_wherever_stderr_leads() {
    for (types, status) in [("y\n", 0), ("y\r", 0), ("n\n", 130), ("y", 130), ("yes but\n", 130)] {
        for line in ["destroy my-env", "recreate my-env", "destroy a1b2c3d4 --forget"] {
            let console = fleet().await;
            let world = World { stderr_to_file: true, ..on_terminal(types) };
            let ran = run_in(world, &console, line).await;
            let asked = ran.tty.contains("this sandbox? [y/N] ") && !ran.stderr.contains("[y/N]");
            assert_eq!(
                (asked, console.calls().is_empty()),
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
        let console = fleet().await;
        let ran = run_in(World { no_tty: true, ..on_terminal("y\n") }, &console, line).await;
        assert_eq!((ran.status, console.calls().is_empty()), (2, true), "{line}: {ran}");
    }
    let console = fleet().await;
    let ran = run_in(World { no_tty: true, ..on_terminal("") }, &console, "destroy my-env").await;
    assert_snapshot!("destroy_without_a_tty", ran);
    assert_eq!(
        run_in(World { no_tty: true, ..on_terminal("") }, &console, "destroy my-env --yes")
            .await
            .status,
        0
    );
}

#[tokio::test]
async fn on_a_terminal_it_asks_and_no_is_the_default() {
    for (types, status) in [("y\n", 0), ("YES\n", 0), ("n\n", 130), ("\n", 130), ("what\n", 130)] {
        for line in ["destroy my-env", "destroy a1b2 c000", "recreate my-env"] {
            let console = fleet().await;
            let ran = run_in(on_terminal(types), &console, line).await;
            assert_eq!(ran.status, status, "{types:?} {line}: {ran}");
            assert_eq!(console.calls().is_empty(), status != 0, "{types:?} {line}");
        }
    }
    let mut protected = named("b1b2c3d4", "keep", State::Ready);
    protected.labels = [("protect".into(), "true".into())].into();
    let console = with(vec![ready("a1b2c3d4"), protected]).await;
    let ran = run_in(on_terminal("n\n"), &console, "destroy a1b2 keep nothing --no-color").await;
    assert_snapshot!("destroy_asks", ran);
    // Whoever was shown a record agreed to that revision.
    let console = fleet().await;
    run_in(on_terminal("y\n"), &console, "destroy my-env").await;
    assert!(console.calls()[0].contains("\"revision\":1"), "{:?}", console.calls());
}

#[tokio::test]
async fn ctrl_c_at_the_question_is_a_no() {
    let console = fleet().await;
    let world = World { terminal: true, presses: 1, ..World::default() };
    let ran = run_in(world, &console, "destroy my-env").await;
    assert_eq!(ran.status, 130);
    assert!(console.calls().is_empty());
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
        let console = with(vec![record("a1b2c3d4", state.clone())]).await;
        let ran = run(&console, &format!("wait a1b2c3d4 --for {what} --timeout 0s")).await;
        assert_eq!(ran.status, status, "{state} for {what}: {ran}");
    }
    let console = with(vec![record("a1b2c3d4", State::Provisioning)]).await;
    assert_snapshot!(run(&console, "wait a1b2 --timeout 1s").await, @r"
    status 5
    --- stdout
    --- stderr
    error: a1b2c3d4 is not ready after 1s; it is provisioning
    ");
    assert_eq!(
        run_in(World { presses: 1, ..World::default() }, &console, "wait a1b2").await.status,
        130
    );
}

#[tokio::test]
async fn wait_hears_what_happens() {
    let console = nothing().await;
    let made = Arc::new(tokio::sync::Notify::new());
    console.script(&[Act::Until(Arc::clone(&made))], &[], &[]);
    let started = console.manager.create(CreateRequest::default()).await.unwrap();
    let line = format!("wait {} --json", started.sandbox.id);
    let happening = async {
        tokio::time::sleep(std::time::Duration::from_millis(200)).await;
        made.notify_one();
    };
    let (ran, ()) = tokio::join!(run(&console, &line), happening);
    assert_eq!((ran.status, &ran.json()["state"]), (0, &json!("ready")), "{ran}");
}

/// Looks at a host find these states of its two services; the last one from then on.
fn observed(console: &Console, looks: &[(&str, Option<i32>)]) {
    let look = |(state, exit_code): &(&str, Option<i32>)| {
        let service = |name, state, exit| Service { restarts: None, ..service(name, state, exit) };
        vec![service("web", "running", None), service("db", state, *exit_code)]
    };
    let looks: Vec<Vec<Service>> = looks.iter().map(look).collect();
    let stays = looks.last().unwrap().clone();
    console.script.services.lock().unwrap().insert(SandboxId::new("a1b2c3d4"), stays);
    *console.script.looks.lock().unwrap() = looks.into();
}

#[tokio::test]
async fn wait_asks_the_host_whether_it_is_still_ready() {
    let console = with(vec![ready("a1b2c3d4")]).await;
    observed(&console, &[("exited", Some(3)), ("exited", Some(3))]);
    let ran = run(&console, "wait a1b2").await;
    assert_eq!(ran.out(), (1, ""), "{ran}");
    assert!(ran.stderr.contains("my-env is not ready any more: db exit 3"), "{ran}");
    assert!(ran.stderr.contains("sandboxer logs a1b2c3d4"), "{ran}");
    // Engines that start it again say so, or that it ended, for a moment.
    observed(&console, &[("exited", Some(3)), ("restarting", Some(3)), ("running", None)]);
    assert_eq!(exits(&console, "wait a1b2").await, 0);
    observed(&console, &[("restarting", Some(3))]);
    let ran = run(&console, "wait a1b2 --timeout 1s").await;
    assert_eq!(ran.status, 5, "{ran}");
    assert!(
        ran.stderr.contains("is not ready after 1s; it is ready, degraded: db restarting (exit 3)"),
        "{ran}"
    );
}

#[tokio::test]
async fn wait_says_that_the_host_does_not_answer_when_its_time_is_over() {
    let console = with(vec![ready("a1b2c3d4")]).await;
    let away = |looks| {
        console.script(
            &[],
            &vec![Act::Fail(Code::HostUnreachable, "no way to sandboxer01"); looks],
            &[],
        )
    };
    away(1);
    assert_eq!(run(&console, "wait a1b2 --json").await.error()["code"], "host_unreachable");
    away(2);
    assert_eq!(exits(&console, "wait a1b2 --timeout 20s").await, 0, "it was back in time");
    away(20);
    assert_eq!(exits(&console, "wait a1b2 --timeout 1s").await, 5);
}

// --- events, hosts, profiles

#[tokio::test]
async fn events_that_are_kept() {
    let console = fleet().await;
    happened(&console, EventKind::SandboxRequested, "a1b2c3d4", on_the_host()).await;
    happened(&console, EventKind::SandboxReady, "a1b2c3d4", on_the_host()).await;
    assert_snapshot!("events", run(&console, "events").await);
    let line = "events --since 1 --sandbox my-env --kind sandbox.ready --kind sandbox.failed --actor adm:tester --json";
    assert_eq!(run(&console, line).await.json().as_array().unwrap().len(), 1);
    run(&console, "events --since 10m").await;
    assert_snapshot!("events_calls", console.calls().join("\n"));
    assert_eq!(run(&nothing().await, "events --json").await.stdout, "[]\n");
}

#[tokio::test]
async fn following_prints_each_event_once_and_no_progress() {
    let seqs = |ran: &Ran| -> Vec<u64> {
        ran.stdout
            .lines()
            .map(|line| serde_json::from_str::<Value>(line).unwrap()["seq"].as_u64().unwrap())
            .collect()
    };
    for (line, expected) in [
        ("events --follow --since 0 --json", vec![1, 2, 3]),
        ("events --follow --sandbox b0000001 --json", vec![3]),
        ("events --follow --kind sandbox.labelled --json", vec![2, 3]),
        ("events --follow --kind sandbox.ready --json", vec![]),
    ] {
        let console = fleet().await;
        happened(&console, EventKind::SandboxRequested, "a1b2c3d4", on_the_host()).await;
        let mut heard = console.client.subscribe().await.unwrap();
        let heard_of_all = Arc::new(tokio::sync::Notify::new());
        let happening = async {
            tokio::time::sleep(std::time::Duration::from_millis(200)).await;
            for id in ["a1b2c3d4", "b0000001"] {
                let set = [("team".to_owned(), "web".to_owned())].into();
                let request = LabelRequest { id: id.to_owned(), set, ..LabelRequest::default() };
                console.manager.label(request).await.unwrap();
            }
            while !matches!(heard.next().await, Some(Update::Event(event)) if event.seq == 3) {}
            heard_of_all.notify_one();
        };
        let world =
            World { presses: 1, after: Some(Arc::clone(&heard_of_all)), ..World::default() };
        let (ran, ()) = tokio::join!(run_in(world, &console, line), happening);
        assert_eq!((ran.status, seqs(&ran), ran.stderr.as_str()), (130, expected, ""), "{line}");
    }
}

#[tokio::test]
async fn hosts_that_answer_and_hosts_that_do_not() {
    let hosts = vec![
        host("coulombcore", HostState::Up, Some(12)),
        host("railiance01", HostState::Down, None),
        host("prod", HostState::Forbidden, None),
    ];
    let console = env_of(Fixture { hosts, ..Fixture::default() }).await;
    run(&console, "hosts check").await;
    assert_snapshot!("hosts_list", run(&console, "hosts list").await);
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
        assert_eq!(exits(&console, line).await, status, "{line}");
    }
    assert_snapshot!("hosts_check", run(&console, "hosts check").await);
    assert_snapshot!(
        "hosts_check_each",
        run(&console, "hosts check coulombcore prod nowhere railiance01").await
    );
    let ran = run(&console, "hosts check prod --json").await;
    assert_eq!(
        (&ran.error()["code"], &ran.error()["retryable"]),
        (&json!("forbidden"), &json!(false))
    );
    let ran = run(&console, "hosts check coulombcore nowhere --json").await;
    let error = ran.error();
    assert_eq!((&error["code"], ran.json().as_array().unwrap().len()), (&json!("partial"), 1));
    assert_eq!(error["details"]["failed"][0]["id"], "nowhere");
    let json = document(&console, "hosts check").await;
    assert_eq!(json.as_array().unwrap().len(), 3, "a forbidden one is not even probed");
}

#[tokio::test]
async fn profiles_and_their_files() {
    let console = nothing().await;
    console.profile("sandbox-canary", "sandbox-canary", str::to_owned);
    console.profile("bad", "sandbox-canary", |text| text.replace("ttl:", "tll:"));
    let masked = async |line: &str| {
        let ran = run(&console, line).await.to_string();
        let hash = console.client.profile("sandbox-canary").await.unwrap().hash.unwrap();
        let ran = ran.replace(&console.folder.path().display().to_string(), "DATA");
        ran.replace(&hash, "HASH")
    };
    assert_snapshot!("profiles_list", masked("profiles list").await);
    assert_snapshot!("profiles_show", masked("profiles show sandbox-canary").await);
    assert_eq!(exits(&console, "profiles show nothing").await, 3);
    assert_snapshot!(
        "profiles_validate",
        run(&console, "profiles validate good.yaml bad.yaml").await
    );
    for (line, status) in [
        ("profiles validate good.yaml", 0),
        ("profiles validate bad.yaml", 2),
        ("profiles validate bad.yaml worse.yaml", 2),
        ("profiles validate bad.yaml good.yaml", 8),
    ] {
        assert_eq!(exits(&console, line).await, status, "{line}");
    }
    let ran = run(&console, "profiles validate bad.yaml --json").await;
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
    let console = fleet().await;
    happened(&console, EventKind::SandboxReady, "a1b2c3d4", on_the_host()).await;
    console.script.machines.lock().unwrap().insert("sandboxer01".to_owned(), Machine::Silent);
    console.script.preview.lock().unwrap().extend([Act::Well, Act::Well, Act::Refuse]);
    run(&console, "hosts check coulombcore").await;
    for (line, schema) in [
        ("create --id a1b2c3d5", "sandbox"),
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
        let ran = run(&console, &format!("{line} --json")).await;
        fits(schema, &ran.json());
        if ran.status != 0 {
            fits("error", &json!({"error": ran.error()}));
        }
    }
    *console.script.progress.lock().unwrap() = vec![report(1, "start", None)];
    console.script(&[Act::Fail(Code::OperationFailed, "it did not start")], &[], &[]);
    let ran = run(&console, "create --json").await;
    let lines: Vec<Value> =
        ran.stderr.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    fits("progress", &lines[0]);
    fits("error", lines.last().unwrap());
    let world = World { presses: 1, ..World::default() };
    let ran = run_in(world, &console, "events --follow --since 0 --json").await;
    fits("event", &serde_json::from_str(ran.stdout.lines().next().unwrap()).unwrap());
}

#[tokio::test]
async fn extensions_in_words() {
    let console = nothing().await;
    assert_snapshot!("extensions_list", run(&console, "extensions list").await);
    assert_snapshot!("extensions_show", run(&console, "extensions show compose-ssh").await);
}
