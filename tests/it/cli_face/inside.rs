//! `exec`, `shell`, `logs`, `label`: the verbs that work in a sandbox.

#![allow(clippy::unnecessary_wraps, reason = "an item of a stream that may fail")]

use std::io;

use insta::assert_snapshot;
use sandboxer::client::Client as _;
use sandboxer::domain::Code;
use sandboxer::domain::error::Error;
use sandboxer::domain::output::{ExecOutput, LogLine, Source};
use serde_json::{Value, json};

use super::cli_world::*;
use crate::test_env::fixture::Fixture;
use crate::test_env::script::{Act, LogScript};

fn out(text: &[u8]) -> Result<ExecOutput, Error> {
    Ok(ExecOutput::Output(Source::Stdout, text.to_vec()))
}

fn err(text: &[u8]) -> Result<ExecOutput, Error> {
    Ok(ExecOutput::Output(Source::Stderr, text.to_vec()))
}

async fn runs(told: Vec<Result<ExecOutput, Error>>) -> Console {
    let console = fleet().await;
    *console.script.exec.lock().unwrap() = Some(told);
    console
}

fn ends(status: i32) -> Result<ExecOutput, Error> {
    Ok(ExecOutput::Exit(status))
}

/// The request of the last call.
fn asked(console: &Console) -> Value {
    console.last().1
}

#[tokio::test]
async fn exec_passes_bytes_on_and_ends_as_the_command_did() {
    let console =
        runs(vec![out(b"a\n\x1b[31mred\x00"), err(b"\xe2\x98\x83 no newline"), out(b"b"), ends(7)])
            .await;
    let ran = run(&console, "exec my-env -- make test").await;
    assert_eq!(ran.out(), (7, "a\n\u{1b}[31mred\0b"));
    assert_eq!(ran.stderr, "☃ no newline");
    assert_eq!(
        asked(&console),
        json!({"id": "a1b2c3d4", "command": ["make", "test"], "service": null})
    );
    for (status, seen) in [(0, 0), (130, 130), (137, 137), (255, 255)] {
        assert_eq!(run(&runs(vec![ends(status)]).await, "exec my-env true").await.status, seen);
    }
}

#[tokio::test]
async fn what_follows_the_commands_first_word_is_the_commands() {
    for (line, command, service) in [
        ("exec my-env ls -la --json", json!(["ls", "-la", "--json"]), Value::Null),
        (
            "exec my-env -- ls --service x -- y",
            json!(["ls", "--service", "x", "--", "y"]),
            Value::Null,
        ),
        ("exec my-env --service web -- -x --help", json!(["-x", "--help"]), json!("web")),
        ("exec --service web my-env sh -c 'a  b'", json!(["sh", "-c", "a  b"]), json!("web")),
    ] {
        let console = runs(vec![ends(0)]).await;
        let ran = run(&console, line).await;
        assert_eq!(ran.out(), (0, ""), "{line}: {ran}");
        assert_eq!(
            (&asked(&console)["command"], &asked(&console)["service"]),
            (&command, &service),
            "{line}"
        );
    }
}

#[tokio::test]
async fn only_with_i_does_a_command_read_standard_input() {
    for (line, read) in [
        ("exec my-env -i -- cat", Some("\0a\nb")),
        ("exec -i my-env cat", Some("\0a\nb")),
        ("exec -i --service web my-env --json -- cat", Some("\0a\nb")),
        ("exec my-env -- cat -i", None),
        ("exec my-env cat", None),
    ] {
        let console = runs(vec![ends(0)]).await;
        let ran = run_in(World { types: "\0a\nb", ..World::default() }, &console, line).await;
        assert_eq!(ran.status, 0, "{line}: {ran}");
        assert_eq!(
            console.script.read.lock().unwrap().as_deref(),
            read.map(str::as_bytes),
            "{line}"
        );
    }
}

#[tokio::test]
async fn failures_of_our_own_are_125() {
    for line in [
        "exec",
        "exec my-env",
        "exec my-env --",
        "exec --nosuch my-env ls",
        "exec nothing -- ls",
        "exec my-env -- ''",
        "exec my-env --servce web -- ls",
        "exec my-env -it -- sh",
    ] {
        let ran = run(&fleet().await, line).await;
        assert_eq!(ran.out(), (125, ""), "{line}: {ran}");
        assert!(ran.stderr.starts_with("error: "), "{line}: {ran}");
    }
    let broken = runs(vec![
        out(b"half"),
        Err(Error::new(Code::HostUnreachable, "coulombcore does not answer")),
    ])
    .await;
    let ran = run(&broken, "exec my-env -- ls").await;
    assert_eq!(ran.out(), (125, "half"));
    let ran = run(&broken, "exec my-env --json -- ls").await;
    assert_eq!(
        (ran.status, ran.stdout.as_str(), &ran.error()["code"]),
        (125, "", &json!("host_unreachable"))
    );
    let ran = run(&fleet().await, "--json exec").await;
    assert_eq!(ran.code(), (125, "usage".to_owned()));
    // Only of exec.
    assert_eq!(exits(&fleet().await, "get").await, 2);
    assert_eq!(exits(&fleet().await, "get exec --nosuch").await, 2);
}

#[tokio::test]
async fn exec_as_one_document() {
    let console = runs(vec![out(b"a\n\xff"), err(b"b"), out(b"c"), ends(3)]).await;
    let ran = run(&console, "exec my-env --json -- ls").await;
    assert_eq!(ran.said(), (3, ""));
    let expected =
        json!({"exit_status": 3, "stdout": "a\n\u{fffd}c", "stderr": "b", "truncated": false});
    assert_eq!(ran.json(), expected);
    let chunk = vec![b'x'; 1 << 20];
    let mut told: Vec<_> = (0..9).map(|_| out(&chunk)).collect();
    told.push(ends(0));
    let ran = run(&runs(told).await, "exec my-env --json -- yes").await;
    assert_eq!((ran.status, ran.json()["stdout"].as_str().unwrap().len()), (0, 8 << 20));
    assert_eq!(ran.json()["truncated"], true);
}

#[tokio::test]
async fn ctrl_c_ends_the_command() {
    let once = || pressed(1, "exec");
    let console = runs(vec![out(b"working\n")]).await;
    let ran = run_in(once(), &console, "exec my-env -- sleep 1000").await;
    assert_eq!(ran.all(), (130, "working\n", ""));
    let ran = run_in(once(), &console, "exec my-env --json -- sleep 1000").await;
    assert_eq!(ran.code(), (130, "cancelled".to_owned()));
    // Also while a reader that reads nothing is waited for.
    let stuck = World { takes: Some(|_| false), ..once() };
    let ran = run_in(stuck, &console, "exec my-env -- yes").await;
    assert_eq!(ran.out(), (130, ""));
}

#[tokio::test]
async fn a_reader_that_left_ends_the_command_and_is_no_success() {
    let world = |kind| World { stdout: Some(kind), ..World::default() };
    let console = runs(vec![out(b"a"), ends(0)]).await;
    let ran = run_in(world(io::ErrorKind::BrokenPipe), &console, "exec my-env -- yes").await;
    assert_eq!(ran.said(), (141, ""));
    let ran = run_in(world(io::ErrorKind::StorageFull), &console, "exec my-env -- yes").await;
    assert_eq!(ran.status, 125);
    assert!(ran.stderr.contains("standard output cannot be written"), "{ran}");
    // A document is printed after the end: the status is known.
    let console = runs(vec![ends(9)]).await;
    assert_eq!(
        run_in(world(io::ErrorKind::BrokenPipe), &console, "exec my-env --json -- x").await.status,
        9
    );
}

#[tokio::test]
async fn a_shell_has_the_terminal_and_its_status_is_ours() {
    for (script, status) in [("exit 0", 0), ("exit 42", 42), ("kill -9 $$", 137)] {
        let console = fleet().await;
        *console.script.shell.lock().unwrap() = vec!["sh", "-c", script];
        let ran = run_in(on_terminal(""), &console, "shell my-env --service web").await;
        assert_eq!(ran.all(), (status, "", ""), "{script}");
        assert_eq!(asked(&console), json!({"id": "a1b2c3d4", "service": "web"}));
    }
    let console = fleet().await;
    *console.script.shell.lock().unwrap() = vec!["no-such-program"];
    let ran = run_in(on_terminal(""), &console, "shell my-env").await;
    assert_eq!(ran.status, 7, "{ran}");
}

#[tokio::test]
async fn a_shell_needs_a_terminal() {
    let console = fleet().await;
    assert_snapshot!(run(&console, "shell my-env --service web").await, @r"
    status 2
    --- stdout
    --- stderr
    error: a shell needs a terminal as standard input and output
    hint: sandboxer exec my-env --service web -- CMD... runs one command
    ");
    let ran = run_in(on_terminal(""), &console, "shell my-env --json").await;
    assert_eq!(ran.code(), (2, "usage".to_owned()));
    assert!(console.calls().is_empty());
}

fn line(service: &str, text: &[u8]) -> LogLine {
    let (service, source) = (service.to_owned(), Source::Stdout);
    LogLine { service, source, bytes: text.to_vec(), cut: false }
}

/// Lines of two services.
fn chatter() -> Vec<LogLine> {
    let warned = LogLine { source: Source::Stderr, cut: true, ..line("database", b"warning \xff") };
    vec![line("web", b"GET /\t\x1b[31m500\x1b[0m"), warned, line("web", b"")]
}

/// A sandbox of two services with this log.
async fn chatty(log: LogScript) -> Console {
    let mut record = ready("a1b2c3d4");
    let mut db = record.services[0].clone();
    db.name = "database".into();
    record.services.push(db);
    let env = env_of(Fixture { records: vec![record], ..Fixture::default() }).await;
    *env.script.log.lock().unwrap() = log;
    env
}

#[tokio::test]
async fn logs_in_words_and_exact() {
    let env = chatty(LogScript::Ended(chatter())).await;
    assert_snapshot!(run(&env, "logs my-env").await, @r"
    status 0
    --- stdout
    web      | GET / 500
    database | warning � [the rest of this line is left out]
    web      | 
    --- stderr
    ");
    assert_eq!(run(&env, "logs my-env --service web --tail 3").await.stdout, "GET / 500\n\n");
    assert_eq!(env.script.asked().last().unwrap(), "logs a1b2c3d4 web last 3");
    let ran = run(&env, "logs my-env --json").await;
    let lines: Vec<Value> =
        ran.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let expected =
        json!({"service": "web", "stream": "stdout", "line": "GET /\t\u{1b}[31m500\u{1b}[0m"});
    assert_eq!(lines[0], expected);
    assert_eq!((&lines[1]["stream"], &lines[1]["cut"]), (&json!("stderr"), &json!(true)));
    assert_eq!(lines.len(), 3);
}

#[tokio::test]
async fn logs_that_are_empty_or_break_off() {
    let env = chatty(LogScript::Ended(Vec::new())).await;
    let ran = run(&env, "logs my-env").await;
    assert_eq!(ran.all(), (0, "", "nothing was written\n"));
    assert_eq!(run(&env, "logs my-env --json").await.stderr, "");
    let gone = Error::new(Code::HostUnreachable, "coulombcore does not answer");
    let env = chatty(LogScript::Broken(vec![line("web", b"last words")], gone)).await;
    let ran = run(&env, "logs my-env").await;
    assert_eq!(ran.out(), (5, "web      | last words\n"));
    for wrong in ["--tail many", "--tail -1", "--tail 1.5", "--tail"] {
        assert_eq!(exits(&env, &format!("logs my-env {wrong}")).await, 2, "{wrong}");
    }
}

#[tokio::test]
async fn following_ends_quietly() {
    let env = chatty(LogScript::Open(chatter())).await;
    let ran = run_in(pressed(1, "logs"), &env, "logs my-env --follow").await;
    assert_eq!((ran.status, ran.stdout.lines().count(), ran.stderr.as_str()), (130, 3, ""));
    let closed = World { stdout: Some(io::ErrorKind::BrokenPipe), ..World::default() };
    let ran = run_in(closed, &env, "logs my-env --follow").await;
    assert_eq!(ran.said(), (0, ""));
    let stuck = World { takes: Some(|_| false), ..pressed(1, "logs") };
    let ran = run_in(stuck, &env, "logs my-env").await;
    assert_eq!(ran.out(), (130, ""));
    // Nothing is written, and whoever read has left.
    let env = chatty(LogScript::Open(Vec::new())).await;
    let left = World { reader_left: Some(|| true), ..World::default() };
    assert_eq!(run_in(left, &env, "logs my-env --follow").await.status, 0);
}

#[tokio::test]
async fn labels_are_set_and_taken_away_together() {
    let console = fleet().await;
    run(&console, "label my-env old=x").await;
    let ran = run(&console, "label my-env team=web note=a=b empty= old- --json").await;
    let expected = json!({"team": "web", "note": "a=b", "empty": ""});
    assert_eq!((ran.status, &ran.json()["labels"]), (0, &expected));
    assert_eq!(
        asked(&console),
        json!({"id": "a1b2c3d4", "revision": null, "set": expected, "remove": ["old"]})
    );
    assert!(run(&console, "label my-env team-").await.stdout.contains("label      note=a=b\n"));
    for wrong in ["", "team", "-- -", "team=a team=b", "team=a team-", "=x"] {
        let console = fleet().await;
        let ran = run(&console, &format!("label my-env {wrong}")).await;
        assert_eq!((ran.status, console.calls().len()), (2, 0), "{wrong}: {ran}");
    }
    assert_eq!(exits(&fleet().await, "label nothing a=b").await, 3);
}

#[tokio::test]
async fn extend_takes_how_much_or_until_when() {
    let console = fleet().await;
    let ran = run(&console, "extend my-env --by 2h --json").await;
    assert_eq!((ran.status, asked(&console)["by_s"].as_u64()), (0, Some(7200)), "{ran}");
    assert_eq!(ran.json()["expires_at"], json!(now().plus_seconds(4 * 3600)));
    let ran = run(&console, "extend-ttl my-env --to 2026-03-14T13:00:00Z --allow-shorten").await;
    assert_eq!((ran.status, asked(&console)["allow_shorten"].as_bool()), (0, Some(true)), "{ran}");
    assert_eq!(
        console.client.get("my-env").await.unwrap().expires_at,
        Some(now().plus_seconds(3600))
    );
    console
        .script
        .dated
        .lock()
        .unwrap()
        .push_back(Act::Fail(Code::HostUnreachable, "its manifest does not say so"));
    let ran = run(&console, "extend my-env --by 2h").await;
    assert!(ran.status == 0 && ran.stderr.contains("its manifest does not say so"), "{ran}");
    for (wrong, why) in [
        ("--by -1h", "--to TIME --allow-shorten makes it an earlier one"),
        ("--by 0", "0 seconds are no extension"),
        ("--by 0s", "0 seconds are no extension"),
        ("--by 99999d", "'99999d' is longer than ten years"),
        ("--by -x", "'-x' is not a duration"),
        (
            "--to 9999-12-31T23:59:59Z",
            "the year 9999 is too late: a deadline is at most ten years ahead",
        ),
        ("--to 123456-01-01T00:00:00Z", "the year 123456 is too late"),
        ("--to 2026-13-01T00:00:00Z", "write a time such as"),
    ] {
        let console = fleet().await;
        let ran = run(&console, &format!("extend my-env {wrong}")).await;
        assert_eq!((ran.status, console.calls().len()), (2, 0), "{wrong}: {ran}");
        assert!(ran.stderr.contains(why), "{wrong}: {ran}");
    }
    for wrong in ["", "--by soon", "--to soon", "--by 1h --to 2026-12-31T14:00:00Z"] {
        let console = fleet().await;
        let ran = run(&console, &format!("extend my-env {wrong}")).await;
        assert_eq!((ran.status, console.calls().len()), (2, 0), "{wrong}: {ran}");
    }
}
