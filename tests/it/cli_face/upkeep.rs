//! `operations`, `recover`, `doctor`, `completions`, `man`, `destroy --forget`: what looks after an installation.

use futures_util::future::join_all;
use insta::assert_snapshot;
use sandboxer::client::{Adopted, AdoptedKind, CreateRequest, Error};
use sandboxer::domain::extension::Inspection;
use sandboxer::domain::operation::{CancelOutcome, OperationKind};
use sandboxer::domain::reporter::Report;
use sandboxer::domain::sandbox::Attachment;
use sandboxer::domain::{Code, Operation, OperationId, OperationState, State};
use serde_json::{Value, json};

use super::cli_world::*;
use super::snapshot_records::family;
use crate::test_env::fixture::{Fixture, held};
use crate::test_env::hosts::Machine;
use crate::test_env::script::{Act, LogScript, Script};

fn operation(id: &str, state: &str) -> Operation {
    let ended = (state != "running").then(|| now().minus_seconds(30));
    let error = (state == "failed").then(|| {
        json!({"code": "operation_failed", "message": "it did not start", "causes": ["no such\nimage"], "hint": "look"})
    });
    let value = json!({
        "id": id, "kind": "create", "sandbox_id": "a1b2c3d4", "snapshot_id": null, "state": state,
        "stage": null, "done": null, "of": null, "bytes": null,
        "started_at": now().minus_seconds(100), "finished_at": ended, "pid": 4711, "host": "box\u{1b}[2J",
        "actor": {"type": "adm", "name": "tester"}, "error": error,
    });
    serde_json::from_value(value).unwrap()
}

/// Operations of another process: two that have ended, one that runs.
async fn busy() -> Console {
    let mut record = held(record("a1b2c3d4", State::Provisioning), OperationKind::Create, now());
    record.operation.as_mut().unwrap().id = OperationId::new("op-1a2b3c4d");
    let operations = vec![
        operation("op-00000001", "failed"),
        operation("op-00000002", "succeeded"),
        operation("op-1a2b3c4d", "running"),
    ];
    env_of(Fixture { records: vec![record], operations, ..Fixture::default() }).await
}

#[tokio::test]
async fn operations_in_words_and_as_json() {
    let console = busy().await;
    let (done, of, bytes) = (Some(1), Some(3), Some(1_500_000));
    *console.script.progress.lock().unwrap() =
        vec![Report { done, of, bytes, ..report(2, "transfer", None) }];
    console.script(&[Act::Hang], &[], &[]);
    let started = console.manager.create(CreateRequest::default()).await.unwrap();
    let running = started.operation.unwrap();
    while !console.script.asked().iter().any(|asked| asked.starts_with("provision")) {
        tokio::task::yield_now().await;
    }
    let shown = async |line: &str| {
        let pid = format!("process  {} ", std::process::id());
        run(&console, line).await.to_string().replace(&pid, "process  PID ")
    };
    assert_snapshot!("operations_list", shown("operations list").await);
    assert_snapshot!("operations_get_here", shown(&format!("operations get {running}")).await);
    assert_snapshot!("operations_get", run(&busy().await, "operations get op-1a2b").await);
    assert_snapshot!(
        "operations_get_failed",
        run(&busy().await, "operations get op-00000001").await
    );
    assert_eq!(document(&busy().await, "operations list").await.as_array().unwrap().len(), 3);
    assert_eq!(document(&busy().await, "operations get op-1a2b").await["id"], "op-1a2b3c4d");
    assert_eq!(exits(&busy().await, "operations get op-9999").await, 3);
    assert_eq!(exits(&busy().await, "operations").await, 2);
    let none = run(&fleet().await, "operations list").await;
    assert_eq!(none.all(), (0, "", "no operations in the last day\n"));
}

#[tokio::test]
async fn cancelling_asks_and_says_what_happens_next() {
    let console = busy().await;
    assert_snapshot!(run(&console, "operations cancel op-1a2b").await, @r"
    status 0
    --- stdout
    asked op-1a2b3c4d to end: what was made on the host is removed; the record stays as failed
    --- stderr
    process 4711 on box does it; `sandboxer operations get op-1a2b3c4d` shows whether it was undone, stopped or done anyway
    if that process is dead: sandboxer recover
    ");
    assert_eq!(console.last(), ("cancel".to_owned(), json!("op-1a2b3c4d")));
    let cancelled = console.manager.operation("op-1a2b3c4d").await.unwrap();
    assert!(cancelled.cancel_requested);
    let ran = run(&busy().await, "operations cancel op-1a2b --json").await;
    assert_eq!((ran.json()["cancel_requested"].clone(), ran.stderr.as_str()), (json!(true), ""));
}

#[tokio::test]
async fn cancelling_what_has_ended_is_nothing_to_do() {
    let console = busy().await;
    let ran = run(&console, "operations cancel op-00000001").await;
    assert_eq!(ran.out(), (0, "op-00000001 has ended already (failed): nothing to do\n"));
    assert!(console.calls().is_empty());
    // It ends while it is asked.
    let mut ended = operation("op-1a2b3c4d", "running");
    ended.state = OperationState::Cancelled;
    let console = busy().await.answers("operation op-1a2b3c4d", ended);
    let ran = run(&console, "operations cancel op-1a2b").await;
    assert_eq!(ran.out(), (0, "op-1a2b3c4d has ended already (cancelled): nothing to do\n"));
}

#[tokio::test]
async fn a_cancelled_operation_says_whether_it_was_undone_stopped_or_done_anyway() {
    let texts = [
        (
            OperationState::Cancelled,
            CancelOutcome::Undone,
            "undone: as before",
            "cancelled, undone",
        ),
        (
            OperationState::Cancelled,
            CancelOutcome::Stopped,
            "stopped: may be half done",
            "cancelled, stopped",
        ),
        (
            OperationState::Succeeded,
            CancelOutcome::Done,
            "done anyway",
            "succeeded, cancelled too late",
        ),
    ];
    for (state, outcome, words, short) in texts {
        let mut ended = operation("op-1a2b3c4d", "succeeded");
        (ended.state, ended.cancel_outcome) = (state, Some(outcome.clone()));
        let operations = vec![ended];
        let console = env_of(Fixture { operations, ..Fixture::default() }).await;
        let got = run(&console, "operations get op-1a2b").await.stdout;
        assert!(got.contains(&format!("cancel   {words}")), "{got}");
        assert!(run(&console, "operations list").await.stdout.contains(short));
        assert_eq!(
            document(&console, "operations get op-1a2b").await["cancel_outcome"],
            json!(outcome.as_str())
        );
    }
}

#[tokio::test]
async fn ctrl_c_says_how_it_left_things_and_what_to_look_at() {
    for json in ["", " --json"] {
        let console = family().await;
        console.script.patch.lock().unwrap().push_back(Script::Hangs);
        let ran = run_in(pressed(1, "patch "), &console, &format!("patches apply one{json}")).await;
        assert_eq!(ran.status, 130);
        if json.is_empty() {
            let said = "may be half done (stopped: may be half done)\nhint: look at what is there with `sandboxer shell b1b1b1b1`";
            assert!(ran.stderr.contains(said), "{ran}");
        } else {
            assert_eq!(ran.error()["details"]["cancel_outcome"], json!("stopped"));
        }
    }
    // It came to its end all the same.
    let console = with(vec![named("b2b2b2b2", "two", State::Ready)]).await;
    let asleep = Inspection { asleep: true, ready: false, ..there() };
    *console.script.seen.lock().unwrap() = asleep;
    console.script.sleep.lock().unwrap().push_back(Act::Hang);
    let ran = run_in(pressed(1, "sleep"), &console, "sleep two").await;
    assert_eq!(ran.status, 0, "{ran}");
    assert!(ran.stderr.contains("the cancel came too late: it is done"), "{ran}");
}

/// Sandboxes whose process was killed while it made them; on the hosts of some nobody answers.
async fn left_behind(answers: &[bool]) -> Console {
    let mut records = Vec::new();
    for (number, answers) in (0..).zip(answers) {
        let id = format!("a000000{number}");
        let mut record = held(record(&id, State::Provisioning), OperationKind::Create, now());
        let running = record.operation.as_mut().unwrap();
        (running.host, running.id) = ("here".to_owned(), OperationId::new(format!("op-{id}")));
        if !answers {
            record.host = "sandboxer01".into();
        }
        records.push(record);
    }
    let console = with(records).await;
    console.script.down.lock().unwrap().insert("sandboxer01");
    console
}

#[tokio::test]
async fn recover_ends_like_a_bulk_verb() {
    let cases = [
        (&[][..], 0),
        (&[true, true], 0),
        (&[true, false], 8),
        (&[false, false], 5),
        (&[false], 5),
    ];
    // Whoever does not answer is asked more than once: all at the same time.
    join_all(cases.map(|(answers, status)| async move {
        let ran = run(&left_behind(answers).await, "recover").await;
        assert_eq!(ran.status, status, "{answers:?}: {ran}");
        let ran = run(&left_behind(answers).await, "recover --json").await;
        super::fits("recovered", &ran.json());
        let items = ran.json().as_array().unwrap().len();
        assert_eq!((ran.status, items), (status, answers.len()), "{answers:?}");
    }))
    .await;
    assert_snapshot!("recover", run(&left_behind(&[true, false]).await, "recover").await);
    let ran = run(&nothing().await, "recover").await;
    assert_eq!((ran.stdout.as_str(), ran.stderr.as_str()), ("", "nothing was left behind\n"));
}

#[tokio::test]
async fn ctrl_c_leaves_adopt() {
    let console = fleet().await;
    console.script.machines.lock().unwrap().insert("coulombcore".to_owned(), Machine::Hangs);
    let ran = run_in(World { presses: 1, ..World::default() }, &console, "adopt").await;
    assert!(!ran.left_at_once);
    assert_eq!(ran.status, 130);
    assert!(ran.stderr.contains("sandboxer adopt goes on with the rest"), "{ran}");
}

#[tokio::test]
async fn what_adopt_only_lists_is_no_failure() {
    let thing = |id: &str, adopted| Adopted {
        id: id.into(),
        kind: AdoptedKind::Sandbox,
        ok: true,
        adopted,
        host: "coulombcore".into(),
        name: None,
        owner: Some("0f".into()),
        message: "as it is\u{1b}[2J".into(),
        error: None,
    };
    let failed = Adopted {
        ok: false,
        error: Some(Error::new(Code::HostUnreachable, "coulombcore does not answer")),
        ..thing("c", false)
    };
    for (things, status) in [
        (vec![thing("a", true), thing("b", false)], 0),
        (vec![thing("b", false), failed.clone()], 8),
        (vec![failed], 5),
    ] {
        let console = nothing().await.answers("adopt", things);
        let ran = run(&console, "adopt --dry-run --json").await;
        assert_eq!(ran.status, status, "{ran}");
        for item in ran.json().as_array().unwrap() {
            assert_eq!(item["ok"] == json!(true), item.get("error").is_none(), "{item}");
        }
        let ran = run(&console, "adopt --dry-run").await;
        assert!(ran.status == status && !ran.stdout.contains('\u{1b}'), "{ran}");
    }
}

#[tokio::test]
async fn ctrl_c_leaves_recover() {
    let console = left_behind(&[true]).await;
    console.script(&[], &[], &[Act::Hang]);
    let ran = run_in(pressed(1, "teardown"), &console, "recover").await;
    assert!(!ran.left_at_once);
    assert_eq!(ran.status, 130);
    assert!(ran.stderr.contains("sandboxer recover goes on with the rest"), "{ran}");
}

#[tokio::test]
async fn doctor_ends_with_1_when_a_check_failed() {
    assert_snapshot!("doctor", run(&fleet().await, "doctor").await);
    let ran = run(&fleet().await, "doctor --json").await;
    assert_eq!((ran.status, &ran.error()["message"]), (1, &json!("1 of 3 checks failed")));
    assert_eq!(ran.json()[2]["state"], "failed");
    let ran = run(&fleet().await, "doctor --claim --json").await;
    assert_eq!((ran.status, ran.json().as_array().unwrap().len(), ran.stderr.as_str()), (0, 1, ""));
    let closed = World { stdout: Some(std::io::ErrorKind::BrokenPipe), ..World::default() };
    assert_eq!(run_in(closed, &fleet().await, "doctor").await.status, 1);
}

#[tokio::test]
async fn completions_of_every_shell() {
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let ran = run(&fleet().await, &format!("completions {shell}")).await;
        assert_eq!(ran.said(), (0, ""), "{shell}");
        for word in ["operations", "force-protected", "completions"] {
            assert!(ran.stdout.contains(word), "{shell}: {word}");
        }
    }
    for (line, status) in
        [("completions tcsh", 2), ("completions", 2), ("completions bash --json", 2)]
    {
        assert_eq!(exits(&fleet().await, line).await, status, "{line}");
    }
}

#[tokio::test]
async fn the_manual_in_one_page_or_a_folder_of_them() {
    let ran = run(&fleet().await, "man").await;
    assert_eq!(ran.said(), (0, ""));
    assert_snapshot!("man", ran.stdout.replace(env!("CARGO_PKG_VERSION"), "VERSION"));
    let folder = tempfile::tempdir().unwrap();
    let dir = folder.path().join("man/man1");
    let ran = run(&fleet().await, &format!("man --dir {}", dir.display())).await;
    assert_eq!(ran.out(), (0, ""));
    for page in ["sandboxer.1", "sandboxer-exec.1", "sandboxer-operations-cancel.1"] {
        assert!(std::fs::read_to_string(dir.join(page)).unwrap().contains(".SH"), "{page}");
    }
    assert_eq!(exits(&fleet().await, "man --json").await, 2);
    std::fs::write(folder.path().join("file"), "").unwrap();
    let ran =
        run(&fleet().await, &format!("man --dir {}", folder.path().join("file").display())).await;
    assert_eq!(ran.status, 2, "{ran}");
}

/// The program itself, with this environment alone.
fn program(args: &[&str], environment: &[(&str, &std::path::Path)]) -> std::process::Output {
    let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_sandboxer"));
    command.args(args).env_clear().env("PATH", std::env::var_os("PATH").unwrap());
    command.envs(environment.iter().copied()).output().unwrap()
}

#[test]
fn what_needs_no_configuration_works_without_one() {
    // Without HOME nobody knows where anything is.
    for args in [["completions", "zsh"].as_slice(), &["man"], &["exec", "--help"]] {
        let output = program(args, &[]);
        assert!(
            output.status.success() && !output.stdout.is_empty() && output.stderr.is_empty(),
            "{args:?}: {output:?}"
        );
    }
    for (args, status) in
        [(["list"].as_slice(), 2), (&["exec", "x", "--", "ls"], 125), (&["doctor"], 1)]
    {
        let output = program(args, &[]);
        assert_eq!(output.status.code(), Some(status), "{args:?}: {output:?}");
        assert!(
            String::from_utf8_lossy(&[output.stdout, output.stderr].concat())
                .contains("HOME is not set"),
            "{args:?}"
        );
    }
}

#[test]
fn doctor_looks_on_where_a_store_is_broken_and_makes_nothing() {
    let home = tempfile::tempdir().unwrap();
    let (data, config) = (home.path().join("data"), home.path().join("config.yaml"));
    // Nothing of this machine is to be looked at, which takes its time.
    std::fs::write(&config, "hosts: {local: {forbid: not here}}").unwrap();
    let environment = [
        ("HOME", home.path()),
        ("SANDBOXER_CONFIG", config.as_path()),
        ("SANDBOXER_DATA_DIR", data.as_path()),
    ];
    let checks = |output: &std::process::Output| -> Value {
        serde_json::from_slice(&output.stdout).unwrap()
    };
    let state = |checks: &Value, name: &str| -> Value {
        checks.as_array().unwrap().iter().find(|check| check["name"] == name).unwrap()["state"]
            .clone()
    };
    let output = program(&["doctor", "--json"], &environment);
    assert!(output.status.success(), "{output:?}");
    assert_eq!(state(&checks(&output), "sandboxes"), "ok");
    assert!(!data.exists());
    std::fs::create_dir(&data).unwrap();
    std::fs::write(data.join("sandboxes.json"), "{").unwrap();
    let output = program(&["doctor", "--json"], &environment);
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    assert_eq!(state(&checks(&output), "sandboxes"), "failed");
    assert_eq!(state(&checks(&output), "events"), "ok");
    assert_eq!(std::fs::read(data.join("sandboxes.json")).unwrap(), b"{");
    std::fs::remove_file(data.join("sandboxes.json")).unwrap();
    // Each of the files (contract, section 1) has a check.
    for (file, check) in [
        ("snapshots.json", "snapshots"),
        ("patches.json", "patches"),
        ("operations.json", "operations"),
        ("owner", "installation"),
    ] {
        std::fs::write(data.join(file), "{").unwrap();
        let output = program(&["doctor", "--json"], &environment);
        assert_eq!(
            (output.status.code(), state(&checks(&output), check)),
            (Some(1), json!("failed")),
            "{output:?}"
        );
        std::fs::remove_file(data.join(file)).unwrap();
    }
    for (file, check) in [("history.jsonl", "history"), ("events.jsonl", "events")] {
        std::fs::create_dir(data.join(file)).unwrap();
        let output = program(&["doctor", "--json"], &environment);
        assert_eq!(
            (output.status.code(), state(&checks(&output), check)),
            (Some(1), json!("failed")),
            "{output:?}"
        );
        std::fs::remove_dir(data.join(file)).unwrap();
    }
}

#[tokio::test]
async fn forgetting_says_that_nobody_will_look() {
    let console = fleet().await;
    let line = "destroy my-env --forget";
    assert_eq!(run_in(on_terminal("n\n"), &console, line).await.status, 130);
    assert!(console.calls().is_empty());
    let ran = run_in(on_terminal("y\n"), &console, &format!("{line} --no-color")).await;
    assert_snapshot!("forget_asks", ran);
    assert!(!console.script.asked().iter().any(|asked| asked.starts_with("teardown")));
    for (line, status) in [
        ("destroy my-env --forget", 2),
        ("destroy a1b2c3d4 --forget", 2),
        ("destroy a1b2 --forget", 2),
        ("destroy a1b2 --forget --yes", 0),
        ("destroy my-env --forget --yes", 0),
    ] {
        let ran = run(&fleet().await, line).await;
        assert_eq!(ran.status, status, "{line}: {ran}");
        let forgotten = ran.stdout.ends_with("\nforgotten a1b2c3d4\n");
        assert_eq!((forgotten, ran.stdout.is_empty()), (status == 0, status != 0), "{line}: {ran}");
    }
}

#[tokio::test]
async fn services_that_died_and_attachments_are_shown() {
    let mut record = ready("a1b2c3d4");
    let mut service = |name: &str, state: &str, exit_code, restarts, health: Option<&str>| {
        let mut service = record.services[0].clone();
        (service.name, service.state) = (name.into(), state.into());
        (service.exit_code, service.restarts, service.health) =
            (exit_code, restarts, health.map(str::to_owned));
        record.services.push(service);
    };
    service("db", "exited", Some(137), Some(3), None);
    service("cache", "missing", None, None, None);
    service("init", "exited", Some(0), Some(0), None);
    service("api", "running", None, Some(1), Some("unhealthy"));
    record.reachability.as_mut().unwrap().attachments = vec![Attachment {
        provider: "ops-bridge".into(),
        id: "t-17".into(),
        local: "127.0.0.1:4000".into(),
        state: "up\u{1b}[2J".into(),
    }];
    let console = with(vec![record]).await;
    assert_snapshot!("get_degraded", run(&console, "get my-env").await);
    let listed = run(&console, "list").await.stdout;
    assert!(listed.contains("  degraded  "), "{listed}");
    assert!(listed.contains("  db exit 137, cache missing\n"), "{listed}");
}

#[tokio::test]
async fn every_document_of_these_verbs_fits_its_schema() {
    use sandboxer::domain::output::{ExecOutput, LogLine, Source};
    let console = busy().await;
    console.put(ready("b1b2c3d4")).await;
    *console.script.exec.lock().unwrap() =
        Some(vec![Ok(ExecOutput::Output(Source::Stdout, b"x".to_vec())), Ok(ExecOutput::Exit(3))]);
    let lines = [false, true].map(|cut| LogLine {
        service: "web".into(),
        source: Source::Stderr,
        bytes: b"x".to_vec(),
        cut,
    });
    *console.script.log.lock().unwrap() = LogScript::Ended(lines.to_vec());
    for (line, schema) in [
        ("exec my-env --json -- ls", "exec"),
        ("label my-env a=b --json", "sandbox"),
        ("operations list --json", "operations"),
        ("operations get op-1a2b --json", "operation"),
        ("operations cancel op-1a2b --json", "operation"),
        ("doctor --json", "checks"),
    ] {
        super::fits(schema, &run(&console, line).await.json());
    }
    let ran = run(&console, "logs my-env --json").await;
    for line in ran.stdout.lines() {
        super::fits("log", &serde_json::from_str::<Value>(line).unwrap());
    }
}
