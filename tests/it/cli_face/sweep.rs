//! `sweep`: for a person, a script and a timer; and the units that call it.

use futures_util::future::join_all;
use insta::assert_snapshot;
use sandboxer::cli;
use sandboxer::client::{Client as _, ListQuery};
use sandboxer::domain::operation::OperationKind;
use sandboxer::domain::{Code, State};
use sandboxer::store::{Installation as _, Locks as _, SweepStore as _};

use super::cli_world::*;
use crate::test_env::fixture::{self, Fixture};
use crate::test_env::script::Act;

/// Due removal of a sandbox, and how it goes.
#[derive(Clone, Copy)]
enum Due {
    /// Its time is over.
    Done,
    /// The same, and somebody works on it.
    Busy,
    /// The same, and its host does not answer.
    Failed,
    /// Its time is over soon.
    Warned,
}

use Due::{Busy, Done, Failed, Warned};

/// Sandboxes of which this is due.
async fn due(items: &[Due]) -> Console {
    let mut fixture = Fixture::default();
    for (number, due) in (1..).zip(items) {
        let mut record = named(&format!("a000000{number}"), "nightly", State::Ready);
        record.name = matches!(due, Done).then(|| "nightly".to_owned());
        record.expires_at = Some(match due {
            Done | Busy | Failed => now().minus_seconds(60),
            Warned => now().plus_seconds(60),
        });
        match due {
            Busy => record = fixture::held(record, OperationKind::Snapshot, now()),
            Failed => record.host = "railiance01".into(),
            Done | Warned => {}
        }
        fixture.records.push(record);
    }
    let env = env_of(fixture).await;
    for (record, due) in env.client.list(ListQuery::default()).await.unwrap().iter().zip(items) {
        if matches!(due, Busy) {
            // The lock of another process, which ends with the test's.
            std::mem::forget(env.stores().locks.try_lock(&record.id).await.unwrap().unwrap());
        }
    }
    *env.script.lives.lock().unwrap() = true;
    env.script.down.lock().unwrap().insert("railiance01");
    env
}

#[tokio::test]
async fn sweep_ends_like_a_bulk_verb() {
    let cases = [
        (&[][..], 0),
        (&[Done], 0),
        (&[Busy], 0),
        (&[Done, Failed], 8),
        (&[Busy, Failed], 5),
        (&[Failed, Failed], 5),
    ];
    // Whoever does not answer is asked more than once: all at the same time.
    join_all(cases.map(|(items, status)| async move {
        let ran = run(&due(items).await, "sweep").await;
        assert_eq!(ran.status, status, "{ran}");
        let ran = run(&due(items).await, "sweep --json").await;
        assert_eq!(ran.status, status, "{ran}");
        assert_eq!(ran.json()["items"].as_array().unwrap().len(), items.len());
        super::fits("sweep", &ran.json());
    }))
    .await;
    let ran = run(&due(&[Done, Warned, Busy, Failed]).await, "sweep").await;
    assert_snapshot!("sweep", ran);
}

#[tokio::test]
async fn text_of_others_in_a_sweep_never_moves_the_cursor() {
    let env = due(&[Done]).await;
    env.script.teardown.lock().unwrap().push_back(Act::Fail(Code::OperationFailed, "no\u{1b}[2J"));
    let ran = run(&env, "sweep").await;
    assert!(ran.status == 1 && !ran.to_string().contains('\u{1b}'), "{ran}");
}

#[tokio::test]
async fn a_sweep_with_nothing_to_do_is_quiet_off_a_terminal_and_wants_to_be_alone() {
    let env = due(&[]).await;
    let ran = run(&env, "sweep").await;
    assert_eq!((ran.stdout.as_str(), ran.stderr.as_str()), ("", ""));
    let _another = env.stores().sweeps.try_lock().await.unwrap().unwrap();
    let ran = run(&env, "sweep --json").await;
    assert_ne!(ran.json()["held_back"], serde_json::Value::Null, "another one sweeps: {ran}");
    assert_eq!(run(&due(&[Done]).await, "sweep --quiet").await.stderr, "");
}

#[tokio::test]
async fn a_sweep_that_holds_back_says_why() {
    let env = due(&[Done]).await;
    assert_eq!(exits(&env, "sweep").await, 0);
    env.script.jump(3600);
    let ran = run(&env, "sweep").await;
    let words = "remark: this machine's clock went on 3600 s further than the machine ran: it was suspended, or its clock was set; nothing was ended; the next sweep judges by the clock as it is now\n";
    assert_eq!(ran.all(), (0, "", words));
    env.script.jump(3600);
    let ran = run(&env, "sweep --json").await;
    assert_eq!((ran.status, &ran.json()["held_back"]["reason"]), (0, &"clock_jumped".into()));
    super::fits("sweep", &ran.json());
    // A host has seen a later state of this directory.
    let copy = due(&[Done]).await;
    copy.stores().installation.seen_on(&"coulombcore".into(), 1_000_000).await.unwrap();
    let ran = run(&copy, "sweep").await;
    assert!(ran.status == 4 && ran.stderr.contains("`sandboxer doctor --claim`"), "{ran}");
    let ran = run(&copy, "sweep --json").await;
    assert_eq!(ran.code(), (4, "conflict".to_owned()));
    assert_eq!(copy.client.get("a0000001").await.unwrap().state, State::Ready);
}

#[tokio::test]
async fn ctrl_c_leaves_a_sweep() {
    let env = due(&[Done]).await;
    env.script.teardown.lock().unwrap().push_back(Act::Hang);
    let ran = run_in(pressed(1, "teardown"), &env, "sweep").await;
    assert_eq!((ran.status, ran.left_at_once), (130, false));
    assert!(ran.stderr.contains("sandboxer sweep goes on with the rest"), "{ran}");
}

/// Each `KEY=VALUE` of a unit.
pub(super) fn unit(name: &str) -> Vec<(String, String)> {
    let path = format!("{}/assets/systemd/{name}", env!("CARGO_MANIFEST_DIR"));
    let text = std::fs::read_to_string(path).unwrap();
    let lines = text.lines().filter(|line| !line.starts_with('#'));
    lines
        .filter_map(|line| line.split_once('='))
        .map(|(key, value)| (key.to_owned(), value.to_owned()))
        .collect()
}

#[test]
fn the_units_call_a_command_that_there_is() {
    let service = unit("sandboxer-sweep.service");
    let starts: Vec<_> = service.iter().filter(|(key, _)| key == "ExecStart").collect();
    let [(_, start)] = &starts[..] else { panic!("{starts:?}") };
    let words = shlex::split(start).unwrap();
    assert!(words[0].ends_with("/sandboxer"), "{start}");
    let parsed = cli::parse(words.iter().map(String::as_str)).unwrap();
    assert!(matches!(parsed.command, Some(cli::args::Command::Sweep)), "{start}");
    assert!(service.contains(&("Type".into(), "oneshot".into())), "one at a time");
    // Both name each other by the name of the file.
    let timer = unit("sandboxer-sweep.timer");
    assert!(timer.iter().any(|(key, _)| key == "OnUnitInactiveSec"), "{timer:?}");
    assert!(!timer.iter().any(|(key, _)| key == "Unit"), "{timer:?}");
}
