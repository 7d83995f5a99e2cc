//! `reap-stale`: for a person, a script and a timer; and the units that call it.

use insta::assert_snapshot;
use sandboxer::cli;
use sandboxer::client::{Client as _, Error, Started};
use sandboxer::domain::clock::ClockJump;
use sandboxer::domain::name::PlanId;
use sandboxer::domain::stale::{
    HostPass, PassState, ReapItem, ReapOutcome, ReapPlan, ReapReport, StaleItem,
};
use sandboxer::domain::sweep::HeldBack;
use sandboxer::domain::{Actor, Code, OperationId, OperationState, SandboxRecord, State};
use serde_json::json;

use super::cli_world::*;
use super::fits;
use super::stale::{a_copy, archive, expired, foreign, half_read, orphan, pass, read};
use super::sweep::unit;
use crate::test_env::fixture::ended;
use crate::test_env::script::Act;

fn a_jump() -> HeldBack {
    HeldBack::over_jump(ClockJump::Forward(std::time::Duration::from_hours(1)))
}

fn plan(items: Vec<StaleItem>, hosts: Vec<HostPass>, held_back: Option<HeldBack>) -> ReapPlan {
    ReapPlan {
        id: PlanId::new("plan-0000000a"),
        at: now(),
        valid_until: now().plus_seconds(3600),
        actor: Actor::parse("adm:tester").unwrap(),
        hosts,
        held_back,
        items,
    }
}

fn done(of: &StaleItem, outcome: ReapOutcome, message: &str) -> ReapItem {
    ReapItem {
        id: of.id().to_owned(),
        ok: outcome != ReapOutcome::Failed,
        class: of.class.clone(),
        host: of.host.clone(),
        action: of.action.clone(),
        error: (outcome == ReapOutcome::Failed).then(|| Error::new(Code::HostUnreachable, message)),
        outcome,
        message: message.into(),
    }
}

fn removed(of: &StaleItem) -> ReapItem {
    done(of, ReapOutcome::Removed, "destroyed")
}

fn failed(of: &StaleItem) -> ReapItem {
    done(of, ReapOutcome::Failed, "coulombcore does not answer\u{1b}[2J")
}

fn skipped(of: &StaleItem) -> ReapItem {
    done(of, ReapOutcome::Skipped, "it changed since the plan was made")
}

/// Plans this, and does that.
async fn reaps(plan: ReapPlan, items: Vec<ReapItem>) -> Console {
    let record = ReapReport { plan: plan.id.clone(), items }.into();
    let console = nothing().await.answers("plan_reap", plan);
    console.answers("start", Started { operation: None, record })
}

fn two() -> ReapPlan {
    plan(vec![expired(), orphan(), foreign()], read(), None)
}

/// A file with this text.
fn file(text: &str) -> tempfile::NamedTempFile {
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), text).unwrap();
    file
}

fn reaped(console: &Console) -> bool {
    console.calls().iter().any(|call| call.starts_with("reap "))
}

// --- the plan

#[tokio::test]
async fn off_a_terminal_without_yes_no_host_is_asked() {
    for line in ["reap-stale", "reap-stale --class expired", "reap-stale --plan plan-0000000a"] {
        let console = reaps(two(), vec![]).await;
        let ran = run(&console, line).await;
        assert_eq!(ran.out(), (2, ""), "{line}: {ran}");
        assert!(ran.stderr.contains("reap-stale needs --yes where nobody can be asked"), "{ran}");
        // Under --json nobody can be asked, terminal or not.
        let ran = run_in(on_terminal("y\n"), &console, &format!("{line} --json")).await;
        assert_eq!(ran.code(), (2, "usage".to_owned()), "{line}: {ran}");
        assert!(console.calls().is_empty(), "{line}: {:?}", console.calls());
    }
}

#[tokio::test]
async fn a_forbidden_host_is_no_failure_unless_it_is_asked_for_by_name() {
    let prod = || plan(vec![], vec![pass("prod", PassState::Forbidden)], None);
    for (line, status) in [("reap-stale --yes --host prod", 9), ("reap-stale --yes", 0)] {
        let ran = run(&reaps(prod(), vec![]).await, line).await;
        assert_eq!(ran.status, status, "{line}: {ran}");
    }
}

#[tokio::test]
async fn a_dry_run_shows_the_plan_and_does_nothing() {
    let console = reaps(two(), vec![]).await;
    let line = "reap-stale --dry-run --host coulombcore --class expired --snapshots";
    assert_snapshot!("reap_stale_dry_run", run(&console, line).await);
    let asked = json!({"hosts": ["coulombcore"], "classes": ["expired"], "snapshots": true});
    assert_eq!(console.client.calls(), [("plan_reap".to_owned(), asked)]);
    let ran = run(&reaps(two(), vec![]).await, "reap-stale --dry-run --json").await;
    assert_eq!((ran.status, &ran.json()["id"]), (0, &"plan-0000000a".into()));
    fits("reap_plan", &ran.json());
    // A plan that may not be applied is not recommended.
    let held = plan(vec![expired()], read(), Some(a_jump()));
    let ran = run(&reaps(held, vec![]).await, "reap-stale --dry-run").await;
    assert!(ran.status == 0 && ran.stderr.contains("remark: this machine's clock"), "{ran}");
    assert!(!ran.stderr.contains("does exactly this"), "{ran}");
    let half = plan(vec![expired()], half_read(), None);
    for line in ["reap-stale --dry-run", "reap-stale --dry-run --json"] {
        assert_eq!(run(&reaps(half.clone(), vec![]).await, line).await.status, 8, "{line}");
    }
}

#[tokio::test]
async fn on_a_terminal_every_item_is_shown_with_its_full_id_and_asked_about() {
    for (types, status) in [("y\n", 0), ("n\n", 130), ("\n", 130), ("y", 130)] {
        let console = reaps(two(), vec![removed(&expired()), removed(&orphan())]).await;
        let world = World { width: Some(60), ..on_terminal(types) };
        let ran = run_in(world, &console, "reap-stale --no-color").await;
        assert_eq!((ran.status, reaped(&console)), (status, status == 0), "{types:?}: {ran}");
        for id in ["a0000001", "a0000002", "b0000001"] {
            assert!(ran.tty.contains(id) || ran.stdout.contains(id), "{types:?} {id}: {ran}");
        }
    }
    let console = reaps(two(), vec![removed(&expired()), removed(&orphan())]).await;
    let ran = run_in(on_terminal("y\n"), &console, "reap-stale --no-color --no-undo").await;
    assert_snapshot!("reap_stale_asks", ran);
    // Exactly the plan that was shown, and others may reap meanwhile.
    let asked = json!({"plan": {"id": "plan-0000000a"}, "no_undo": true, "alone": false});
    assert_eq!(console.last(), ("reap".to_owned(), asked));
    let console = reaps(two(), vec![]).await;
    let ran = run_in(World { no_tty: true, ..on_terminal("y\n") }, &console, "reap-stale").await;
    assert_eq!((ran.status, reaped(&console)), (2, false), "{ran}");
    let world = World { terminal: true, presses: 1, ..World::default() };
    let ran = run_in(world, &console, "reap-stale").await;
    assert_eq!((ran.status, reaped(&console)), (130, false), "{ran}");
}

#[tokio::test]
async fn a_name_of_a_host_neither_moves_the_cursor_nor_hides_the_reason() {
    let long = StaleItem { name: Some("\u{1b}[2J\u{202e}long".repeat(200)), ..orphan() };
    let console = reaps(plan(vec![long], read(), None), vec![]).await;
    let ran = run_in(on_terminal("n\n"), &console, "reap-stale --no-color").await;
    assert!(!ran.to_string().contains(['\u{1b}', '\u{202e}']), "{ran}");
    assert!(ran.tty.contains("orphan_stack on coulombcore, no record knows it, and its"), "{ran}");
}

#[tokio::test]
async fn nobody_is_asked_about_a_plan_that_may_not_be_applied() {
    for held in [a_copy(), a_jump()] {
        let console = reaps(plan(vec![expired()], read(), Some(held.clone())), vec![]).await;
        let ran = run_in(on_terminal("y\n"), &console, "reap-stale").await;
        assert_eq!((ran.status, ran.tty.as_str(), reaped(&console)), (4, "", false), "{ran}");
        assert!(ran.stderr.contains(&held.message), "{ran}");
        let ran = run(&console, "reap-stale --yes --json").await;
        assert_eq!(ran.code(), (4, "conflict".to_owned()), "{ran}");
        assert!(!reaped(&console), "{ran}");
    }
    // A clock that jumped is no news where there is nothing to do; a copy is.
    for (held, status) in [(a_copy(), 4), (a_jump(), 0)] {
        let console = reaps(plan(vec![foreign()], read(), Some(held)), vec![]).await;
        let ran = run(&console, "reap-stale --yes --quiet").await;
        assert_eq!((ran.status, ran.stderr.is_empty()), (status, status == 0), "{ran}");
    }
}

#[tokio::test]
async fn where_there_is_nothing_to_do_nobody_is_asked() {
    let only_kept = || reaps(plan(vec![foreign(), archive()], read(), None), vec![]);
    let console = only_kept().await;
    assert_snapshot!(
        "reap_stale_nothing",
        run_in(on_terminal("y\n"), &console, "reap-stale --no-color").await
    );
    assert!(!reaped(&console));
    let ran = run(&only_kept().await, "reap-stale --yes --json").await;
    assert_eq!(ran.all(), (0, "[]\n", ""));
    let ran = run(&reaps(plan(vec![], read(), None), vec![]).await, "reap-stale --yes").await;
    assert_eq!((ran.stdout.as_str(), ran.stderr.as_str()), ("", "nothing is stale\n"));
}

#[tokio::test]
async fn a_plan_is_given_by_its_id_or_as_a_file() {
    let items = || vec![removed(&expired()), removed(&orphan())];
    let console = reaps(two(), items()).await;
    let ran = run(&console, "reap-stale --plan plan-0000000a --yes").await;
    assert_eq!(ran.status, 0, "{ran}");
    let asked = json!({"plan": {"id": "plan-0000000a"}, "no_undo": false, "alone": true});
    assert_eq!(console.client.calls(), [("reap".to_owned(), asked)]);
    // What a kept one says cannot be shown.
    let console = reaps(two(), items()).await;
    let ran = run_in(on_terminal("y\n"), &console, "reap-stale --plan plan-0000000a").await;
    assert_eq!((ran.status, console.calls().is_empty()), (2, true), "{ran}");
    assert!(ran.stderr.contains("a kept plan is applied with --yes only"), "{ran}");

    let printed = run(&reaps(two(), vec![]).await, "reap-stale --dry-run --json").await.stdout;
    let file = file(&printed);
    let line = format!("reap-stale --plan {}", file.path().display());
    let console = reaps(two(), items()).await;
    let ran = run_in(on_terminal("y\n"), &console, &line).await;
    assert!(ran.status == 0 && ran.tty.contains("Reap these 2 items? [y/N]"), "{ran}");
    assert!(
        console.calls().len() == 1 && console.calls()[0].contains("\"plan\":{\"plan\":{"),
        "{ran}"
    );
    let console = reaps(two(), items()).await;
    assert_eq!(exits(&console, &format!("{line} --yes")).await, 0);
    assert_eq!(console.calls().len(), 1, "no host is asked for a plan");
}

#[tokio::test]
async fn what_is_no_plan_is_refused() {
    let text = serde_json::to_string(&two()).unwrap();
    let (garbage, cut) = (file("\u{1b}[2J{}"), file(&text[..text.len() / 2]));
    let array = file("[]");
    for path in ["/nowhere/plan.json", "/", "plan-xyz", "/dev/null"]
        .map(str::to_owned)
        .into_iter()
        .chain([&garbage, &cut, &array].map(|file| file.path().display().to_string()))
    {
        let console = reaps(two(), vec![]).await;
        let ran = run(&console, &format!("reap-stale --yes --plan {path}")).await;
        assert_eq!((ran.status, console.calls().is_empty()), (2, true), "{path}: {ran}");
        assert!(ran.stderr.contains("is neither a plan's id nor a file with a plan"), "{ran}");
        assert!(!ran.stderr.contains('\u{1b}'), "{ran}");
    }
    // A device that has no end is not read to it.
    let ran = run(&fleet().await, "reap-stale --yes --plan /dev/zero").await;
    assert!(ran.status == 2 && ran.stderr.contains("more than 67108864 bytes"), "{ran}");
}

#[tokio::test]
async fn flags_that_do_not_go_together_are_wrong_usage() {
    for line in [
        "reap-stale --plan plan-0000000a --dry-run",
        "reap-stale --plan plan-0000000a --yes --class expired",
        "reap-stale --plan plan-0000000a --yes --host coulombcore",
        "reap-stale --plan plan-0000000a --yes --snapshots",
        "reap-stale --yes --class foreign",
        "reap-stale --yes --class unreadable",
        "reap-stale --yes --class expird",
        "reap-stale --yes coulombcore",
    ] {
        let console = reaps(two(), vec![]).await;
        let ran = run(&console, line).await;
        assert_eq!(ran.out(), (2, ""), "{line}: {ran}");
        assert!(console.calls().is_empty(), "{line}");
    }
    let ran = run(&fleet().await, "reap-stale --yes --class foreign").await;
    assert!(ran.stderr.contains("orphan_dir") && !ran.stderr.contains(", foreign"), "{ran}");
}

// --- what was done

#[tokio::test]
async fn a_reap_ends_like_a_bulk_verb() {
    let (a, b) = (expired(), orphan());
    let refused = |of: &StaleItem| ReapItem {
        error: Some(Error::new(Code::Conflict, "it is not as planned")),
        ..failed(of)
    };
    for (items, hosts, status) in [
        (vec![removed(&a)], read(), 0),
        (vec![skipped(&a), skipped(&b)], read(), 0),
        (vec![removed(&a), failed(&b)], read(), 8),
        (vec![skipped(&a), failed(&b)], read(), 8),
        (vec![failed(&a), failed(&b)], read(), 5),
        (vec![failed(&a)], read(), 5),
        (vec![failed(&a), refused(&b)], read(), 8),
        (vec![refused(&a), refused(&b)], read(), 4),
        (vec![removed(&a), removed(&b)], half_read(), 8),
        (vec![failed(&a), failed(&b)], half_read(), 8),
        (vec![], half_read(), 8),
        (vec![], vec![pass("sandboxer01", PassState::Unread)], 5),
    ] {
        let planned = if items.is_empty() { vec![] } else { vec![a.clone(), b.clone()] };
        let console = || reaps(plan(planned.clone(), hosts.clone(), None), items.clone());
        let ran = run(&console().await, "reap-stale --yes").await;
        assert_eq!(ran.status, status, "{items:?}: {ran}");
        assert!(!ran.to_string().contains('\u{1b}'), "{ran}");
        let ran = run(&console().await, "reap-stale --yes --json").await;
        assert_eq!((ran.status, ran.json().as_array().unwrap().len()), (status, items.len()));
        fits("reaped", &ran.json());
        for (item, shown) in items.iter().zip(ran.json().as_array().unwrap()) {
            assert_eq!((&shown["id"], &shown["ok"]), (&item.id.as_str().into(), &item.ok.into()));
            assert_eq!(shown.get("error").is_some(), !item.ok, "{shown}");
        }
        if status == 8 && hosts.len() == 2 {
            let causes = ran.error()["causes"].to_string();
            assert!(causes.contains("sandboxer01 does not answer"), "which host: {ran}");
        }
    }
    let items = vec![removed(&a), failed(&b)];
    let planned = plan(vec![a.clone(), b.clone(), foreign()], half_read(), None);
    assert_snapshot!(
        "reap_stale_partial",
        run(&reaps(planned, items).await, "reap-stale --yes").await
    );
    // A reader that went away hides no failure.
    let world = World { stdout: Some(std::io::ErrorKind::BrokenPipe), ..World::default() };
    let console = reaps(two(), vec![failed(&a), failed(&b)]).await;
    assert_eq!(run_in(world, &console, "reap-stale --yes").await.status, 5);
}

#[tokio::test]
async fn a_timer_hears_one_line_and_nothing_where_nothing_is_stale() {
    const LINE: &str = "reap-stale --yes --quiet --actor atm:systemd";
    for items in [vec![], vec![foreign(), archive()]] {
        let ran = run(&reaps(plan(items, read(), None), vec![]).await, LINE).await;
        assert_eq!(ran.all(), (0, "", ""));
    }
    let items = vec![removed(&expired()), skipped(&orphan())];
    let console = reaps(two(), items).await;
    let ran = run(&console, LINE).await;
    assert_eq!(ran.all(), (0, "2 found, 1 removed, 1 skipped, 0 failed\n", ""));
    assert!(console.calls()[1].contains("\"alone\":true"), "{:?}", console.calls());
    let outcomes = [
        ReapOutcome::Recovered,
        ReapOutcome::Closed,
        ReapOutcome::Adopted,
        ReapOutcome::Removed,
        ReapOutcome::Failed,
    ];
    let items = outcomes.map(|outcome| done(&expired(), outcome, "done")).to_vec();
    let ran = run(&reaps(two(), items).await, LINE).await;
    assert_eq!(
        ran.stdout,
        "5 found, 1 removed, 1 recovered, 1 closed, 1 adopted, 0 skipped, 1 failed\n"
    );
    assert_eq!(ran.said(), (8, "error: a0000001: done\n"));
}

#[tokio::test]
async fn ctrl_c_ends_a_reap_and_says_what_was_done() {
    // As many are removed at once as may be on one host; the others are not begun.
    let waits = async || {
        let over = |number: u64| {
            let expires_at = Some(now().minus_seconds(300));
            SandboxRecord { expires_at, ..record(&format!("a000000{number}"), State::Ready) }
        };
        let console = with((1..=8).map(over).collect()).await;
        console.script(&[], &[], &vec![Act::Slow; 6]);
        console
    };
    let once = || pressed(1, "teardown");
    let console = waits().await;
    let ran = run_in(once(), &console, "reap-stale --yes").await.to_string();
    // Which of them ends first is chance.
    let shown = ran.lines().filter(|line| !line.starts_with("1/1 reap 1/8: "));
    assert_snapshot!("reap_stale_cancelled", shown.collect::<Vec<_>>().join("\n"));
    assert!(console.calls().last().unwrap().starts_with("cancel "));
    let stays = console.client.get("a0000008").await.unwrap();
    assert_eq!((stays.state, stays.operation), (State::Ready, None));
    let ran = run_in(once(), &waits().await, "reap-stale --yes --json").await;
    assert_eq!(ran.code(), (130, "cancelled".to_owned()), "{ran}");
    assert_eq!(ran.json().as_array().unwrap().len(), 8, "{ran}");
    // It came to its end first.
    let ended = ended(&OperationId::new("op-1"), OperationState::Succeeded, now());
    let ran = run_in(once(), &waits().await.answers("operation", ended), "reap-stale --yes").await;
    assert!(ran.status == 0 && ran.stderr.contains("the cancel came too late"), "{ran}");
}

// --- units

#[test]
fn the_units_of_a_reap_call_a_command_that_there_is() {
    let service = unit("sandboxer-reap.service");
    let starts: Vec<_> = service.iter().filter(|(key, _)| key == "ExecStart").collect();
    let [(_, start)] = &starts[..] else { panic!("{starts:?}") };
    let words = shlex::split(start).unwrap();
    assert!(words[0].ends_with("/sandboxer"), "{start}");
    let parsed = cli::parse(words.iter().map(String::as_str)).unwrap();
    let Some(cli::args::Command::ReapStale(args)) = &parsed.command else { panic!("{start}") };
    assert!(args.yes && !args.snapshots && args.classes.is_empty(), "{start}");
    assert!(parsed.global.quiet && parsed.global.actor.is_some(), "{start}");
    assert!(service.contains(&("Type".into(), "oneshot".into())), "one at a time");
    // Both name each other by the name of the file.
    let timer = unit("sandboxer-reap.timer");
    assert!(timer.iter().any(|(key, _)| key == "OnUnitInactiveSec"), "{timer:?}");
    assert!(!timer.iter().any(|(key, _)| key == "Unit"), "{timer:?}");
}
