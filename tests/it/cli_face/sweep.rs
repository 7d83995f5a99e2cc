//! `sweep`: for a person, a script and a timer; and the units that call it.

use insta::assert_snapshot;
use sandboxer::cli;
use sandboxer::client::{Error, SweepReport};
use sandboxer::domain::clock::ClockJump;
use sandboxer::domain::sweep::{HeldBack, HoldReason, SkipReason, SweepItem, SweepOutcome};
use sandboxer::domain::{Code, HostName};

use super::cli_client::{FakeClient, id, now};
use super::cli_world::*;

fn item(text: &str, name: Option<&str>, outcome: SweepOutcome, message: &str) -> SweepItem {
    SweepItem {
        id: id(text),
        name: name.map(str::to_owned),
        host: HostName::new("coulombcore"),
        outcome,
        skipped: None,
        message: message.into(),
        error: None,
    }
}

fn failed(text: &str) -> SweepItem {
    let error = Error::new(Code::HostUnreachable, "coulombcore does not answer\u{1b}[2J");
    SweepItem {
        error: Some(error),
        ..item(text, None, SweepOutcome::Failed, "coulombcore does not answer\u{1b}[2J")
    }
}

fn done(text: &str) -> SweepItem {
    item(text, Some("nightly"), SweepOutcome::Destroyed, "its time was over")
}

fn busy(text: &str) -> SweepItem {
    let message = "sandbox is busy: snapshot by process 4711 on box";
    SweepItem {
        skipped: Some(SkipReason::Busy),
        ..item(text, None, SweepOutcome::Skipped, message)
    }
}

fn sweeps(items: Vec<SweepItem>, held_back: Option<HeldBack>) -> FakeClient {
    let fake = fleet();
    fake.lock().swept = Some(SweepReport { at: now(), held_back, items });
    fake
}

#[tokio::test]
async fn sweep_ends_like_a_bulk_verb() {
    for (items, status) in [
        (vec![], 0),
        (vec![done("a0000001")], 0),
        (vec![busy("a0000001")], 0),
        (vec![done("a0000001"), failed("a0000002")], 8),
        (vec![busy("a0000001"), failed("a0000002")], 5),
        (vec![failed("a0000001"), failed("a0000002")], 5),
    ] {
        let ran = run(&sweeps(items.clone(), None), "sweep").await;
        assert_eq!(ran.status, status, "{ran}");
        assert!(!ran.stdout.contains('\u{1b}') && !ran.stderr.contains('\u{1b}'), "{ran}");
        let ran = run(&sweeps(items.clone(), None), "sweep --json").await;
        assert_eq!(ran.status, status, "{ran}");
        assert_eq!(ran.json()["items"].as_array().unwrap().len(), items.len());
        super::fits("sweep", &ran.json());
    }
    let items = vec![
        done("a0000001"),
        item(
            "a0000002",
            None,
            SweepOutcome::Warned,
            "its time is over at 2026-11-27T14:10:00.000Z",
        ),
        busy("a0000003"),
        failed("a0000004"),
    ];
    assert_snapshot!("sweep", run(&sweeps(items, None), "sweep").await);
}

#[tokio::test]
async fn a_sweep_with_nothing_to_do_is_quiet_off_a_terminal_and_wants_to_be_alone() {
    let fake = sweeps(vec![], None);
    let ran = run(&fake, "sweep").await;
    assert_eq!((ran.stdout.as_str(), ran.stderr.as_str()), ("", ""));
    assert_eq!(fake.calls(), ["sweep alone=true"]);
    assert_eq!(run(&sweeps(vec![done("a0000001")], None), "sweep --quiet").await.stderr, "");
}

#[tokio::test]
async fn a_sweep_that_holds_back_says_why() {
    let jump = HeldBack::over_jump(ClockJump::Forward(std::time::Duration::from_hours(1)));
    assert_snapshot!(run(&sweeps(vec![], Some(jump.clone())), "sweep").await, @r"
    status 0
    --- stdout
    --- stderr
    remark: this machine's clock went on 3600 s further than the machine ran: it was suspended, or its clock was set; nothing was ended; the next sweep judges by the clock as it is now
    ");
    let ran = run(&sweeps(vec![], Some(jump)), "sweep --json").await;
    assert_eq!((ran.status, &ran.json()["held_back"]["reason"]), (0, &"clock_jumped".into()));
    super::fits("sweep", &ran.json());
    let copy = HeldBack {
        reason: HoldReason::NotOwn,
        message: "nothing is ended from here: this is a copy".into(),
        hint: Some("`sandboxer doctor --claim`".into()),
    };
    assert_snapshot!(run(&sweeps(vec![], Some(copy.clone())), "sweep").await, @r"
    status 4
    --- stdout
    --- stderr
    error: nothing is ended from here: this is a copy
    hint: `sandboxer doctor --claim`
    ");
    let ran = run(&sweeps(vec![], Some(copy)), "sweep --json").await;
    assert_eq!((ran.status, &ran.error()["code"]), (4, &"conflict".into()));
}

#[tokio::test]
async fn ctrl_c_leaves_a_sweep() {
    let fake = fleet();
    fake.lock().recovers_for_ever = true;
    let ran = run_in(World { presses: 1, ..World::default() }, &fake, "sweep").await;
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
