//! The reap plan: shown, changed, applied after a question, and what comes of it.

use insta::assert_snapshot;
use sandboxer::client::{
    Client as _, Error, PlanSource, ReapPlan, Request, StaleItem, StaleReport, Update,
};
use sandboxer::domain::error::Code;
use sandboxer::domain::name::{OperationId, SandboxId};
use sandboxer::domain::operation::CancelOutcome;
use sandboxer::domain::sandbox::State;
use sandboxer::domain::stale::{ReapReport, StaleClass};
use sandboxer::domain::sweep::{HeldBack, HoldReason};
use sandboxer::domain::teardown::Resource;
use sandboxer::tui::model::{JobId, JobState, Judged, Model, Overlay, Reap, ReapRow};
use sandboxer::tui::update::update;
use sandboxer::tui::{Effect, Msg};

use super::drive::{
    Drive, confirm, draw, hear, list, model_of, now, press, refused, screen, text, toast, type_text,
};
use crate::test_env::fixture::{Fixture, done, stale_world};
use crate::test_env::script::Scripted;

/// The plan of the small world.
fn plan() -> ReapPlan {
    stale_world(now()).plan.unwrap()
}

/// A model with a plan open, and on the screen.
fn opened(plan: ReapPlan) -> Model {
    let mut model = model_of(stale_world(now()));
    let effects = press(&mut model, "X");
    assert_eq!(effects, [Effect::PlanReap(1)]);
    answer(&mut model, 1, Ok(Judged::Plan(Box::new(plan))));
    model
}

fn answer(model: &mut Model, number: u64, answer: Result<Judged, Error>) {
    update(model, Msg::ReapPlanned(number, answer));
    update(model, Msg::Drawn);
}

/// The cursor on the item of this id.
fn point_at(model: &mut Model, id: &str) {
    let at = model.reap.items().iter().position(|item| item.id() == id).unwrap();
    let row = model.reap.rows().iter().position(|row| *row == ReapRow::Item(at)).unwrap();
    model.reap.go(row);
}

/// `destroy e1e1e1e1`: what is chosen and to be done, in the plan's order.
fn to_do(model: &Model) -> Vec<String> {
    let to_do = model.reap.to_do();
    to_do.map(|(at, item)| format!("{} {}", model.reap.choice(at), item.id())).collect()
}

/// The plan of the effect that begins a reap.
fn begun(effects: &[Effect]) -> Option<(JobId, ReapPlan)> {
    effects.iter().find_map(|effect| match effect {
        Effect::Start(job, Request::Reap(request)) => match &request.plan {
            PlanSource::Plan(plan) => Some((*job, (**plan).clone())),
            PlanSource::Id(_) => None,
        },
        _ => None,
    })
}

#[test]
fn the_plan_shows_every_item_with_its_reason_at_every_size() {
    let mut model = opened(plan());
    for size in [(120, 36), (80, 24), (60, 15), (40, 10)] {
        let name = format!("reap_plan_{}x{}", size.0, size.1);
        assert_snapshot!(name, screen(&mut model, size));
    }
    press(&mut model, "G");
    assert_snapshot!("reap_plan_end", screen(&mut model, (120, 36)));
    model.appearance.ascii = true;
    let ascii = text(&draw(&mut model, (120, 36)));
    assert!(ascii.is_ascii(), "{ascii}");
}

#[test]
fn loading_empty_and_error_are_told_apart() {
    let mut model = model_of(stale_world(now()));
    press(&mut model, "X");
    assert!(screen(&mut model, (80, 24)).contains("looking at the hosts"));
    let error = Error::new(Code::StoreCorrupt, "sandboxes.json cannot be parsed").hint("repair it");
    answer(&mut model, 1, Err(error));
    let seen = screen(&mut model, (80, 24));
    assert!(seen.contains("✗ sandboxes.json cannot be parsed"), "{seen}");
    assert!(seen.contains("repair it") && seen.contains("r asks again"), "{seen}");
    press(&mut model, "A");
    assert_eq!(toast(&mut model), "there is no plan yet");
    assert_eq!(press(&mut model, "r"), [Effect::PlanReap(2)]);
    let empty = ReapPlan { items: Vec::new(), hosts: Vec::new(), ..plan() };
    answer(&mut model, 2, Ok(Judged::Plan(Box::new(empty))));
    assert!(screen(&mut model, (80, 24)).contains("nothing is stale"));
    press(&mut model, "A");
    assert_eq!(toast(&mut model), "there is nothing to do in it");
}

#[test]
fn items_are_unticked_adopted_removed_and_what_is_never_reaped_stays() {
    let mut model = opened(plan());
    point_at(&mut model, "e1e1e1e1");
    press(&mut model, "space");
    point_at(&mut model, "0a0a0a01");
    press(&mut model, "x");
    point_at(&mut model, "snap-0badcafe");
    press(&mut model, "space");
    let chosen = to_do(&model);
    let wanted = [
        "destroy 0b1c2d3e",
        "recover 57c57c57",
        "close 1057aaaa",
        "remove 0a0a0a01",
        "remove 0a0a0a02",
        "remove 0a0a0a03",
        // A tick on what the plan leaves takes nothing away.
        "adopt snap-0badcafe",
    ];
    assert_eq!(chosen, wanted);
    for id in ["f0f0f0f0", "????", "0a0a0a04"] {
        point_at(&mut model, id);
        for key in ["space", "a", "x"] {
            press(&mut model, key);
            assert!(!toast(&mut model).is_empty(), "{id} {key}");
        }
    }
    press(&mut model, "*");
    assert_eq!(to_do(&model).len(), 8, "all that the plan does are ticked again");
    press(&mut model, "*");
    assert_eq!(to_do(&model), ["adopt snap-0badcafe"]);
}

#[test]
fn choices_and_cursor_follow_their_item_into_a_new_plan() {
    let mut model = opened(plan());
    point_at(&mut model, "0b1c2d3e");
    press(&mut model, "space");
    point_at(&mut model, "0a0a0a01");
    press(&mut model, "x");
    press(&mut model, "r");
    let mut newer = plan();
    newer.items.reverse();
    newer.items.retain(|item| item.id() != "1057aaaa");
    answer(&mut model, 2, Ok(Judged::Plan(Box::new(newer))));
    assert_eq!(model.reap.pointed().unwrap().id(), "0a0a0a01");
    let chosen = to_do(&model);
    assert!(chosen.contains(&"remove 0a0a0a01".to_owned()), "{chosen:?}");
    assert!(!chosen.iter().any(|item| item.contains("0b1c2d3e")), "{chosen:?}");
    // The answer to an older question is dropped.
    answer(&mut model, 1, Err(Error::internal("late")));
    assert!(!model.reap.rows().is_empty());
}

#[test]
fn a_class_alone_hides_the_others_and_says_that_they_are_done_too() {
    let mut model = opened(plan());
    point_at(&mut model, "0b1c2d3e");
    press(&mut model, "tab tab");
    assert_eq!(model.reap.class, Some(StaleClass::Failed));
    assert_eq!(model.reap.pointed().unwrap().id(), "0b1c2d3e");
    let seen = screen(&mut model, (120, 36));
    assert!(seen.contains("only failed; 6 to do are not shown, and are done too"), "{seen}");
    press(&mut model, "backtab backtab");
    assert_eq!(model.reap.class, None);
    assert_eq!(model.reap.rows().len(), 13);
}

#[test]
fn a_search_goes_to_an_item() {
    let mut model = opened(plan());
    press(&mut model, "/");
    type_text(&mut model, "0badcafe");
    press(&mut model, "enter");
    assert_eq!(model.reap.pointed().unwrap().id(), "snap-0badcafe");
}

#[test]
fn applying_asks_with_sums_and_the_count_and_cancel_has_the_focus() {
    let mut model = opened(plan());
    press(&mut model, "A");
    assert_snapshot!("reap_question", screen(&mut model, (120, 36)));
    assert_snapshot!("reap_question_40x10", screen(&mut model, (40, 10)));
    press(&mut model, "enter");
    assert!(matches!(model.overlays.as_slice(), [Overlay::Reap]), "cancel has the focus");
    press(&mut model, "A tab enter");
    assert_eq!(toast(&mut model), "type their number first");
    type_text(&mut model, "7");
    let effects = press(&mut model, "enter");
    let (_, sent) = begun(&effects).expect("a reap");
    assert_eq!(sent.id, plan().id);
    assert_eq!(sent.to_do().count(), 7);
    assert_eq!(sent.items.len(), 12, "what is kept is in it too");
    // It runs: what was applied is not changed any more, and applied once.
    press(&mut model, "space");
    assert!(toast(&mut model).contains("applied as it is"));
    press(&mut model, "A");
    assert!(toast(&mut model).contains("this plan was applied"));
}

#[test]
fn keys_before_the_plan_or_its_question_was_on_the_screen_do_nothing() {
    let mut model = model_of(stale_world(now()));
    let key =
        |model: &mut Model, word: &str| update(model, Msg::Key(super::drive::key_event(word)));
    key(&mut model, "X");
    update(&mut model, Msg::ReapPlanned(1, Ok(Judged::Plan(Box::new(plan())))));
    let before = to_do(&model);
    for word in ["space", "x", "A"] {
        key(&mut model, word);
    }
    assert_eq!(to_do(&model), before);
    assert!(matches!(model.overlays.as_slice(), [Overlay::Reap]));
    update(&mut model, Msg::Drawn);
    for word in ["A", "tab", "enter", "7"] {
        key(&mut model, word);
    }
    assert_eq!((confirm(&model).focus, confirm(&model).typed.value()), (0, ""));
}

#[test]
fn what_the_plan_would_not_take_away_asks_for_the_count_however_few_they_are() {
    let mut model = opened(plan());
    press(&mut model, "*");
    assert_eq!(to_do(&model).len(), 0);
    point_at(&mut model, "0a0a0a02");
    press(&mut model, "space A");
    assert_eq!(confirm(&model).demand, None, "one that the plan takes");
    press(&mut model, "esc");
    point_at(&mut model, "snap-0badcafe");
    press(&mut model, "x A");
    let demand = confirm(&model).demand.as_ref();
    assert_eq!(demand.map(|(wanted, _)| wanted.as_str()), Some("2"));
    assert!(screen(&mut model, (120, 36)).contains("1 of them the plan would not take away"));
}

#[test]
fn an_item_that_changed_since_says_so_and_is_left_out() {
    let mut model = opened(plan());
    // Its record was written.
    let mut records = stale_world(now()).records;
    let expired = records.iter_mut().find(|record| record.id.as_str() == "e1e1e1e1").unwrap();
    expired.revision += 1;
    // It is in the list no more.
    records.retain(|record| record.id.as_str() != "1057aaaa");
    list(&mut model, records);
    // Hosts say something else, or nothing, of what no record knows.
    let mut later = StaleReport {
        at: now().plus_seconds(9),
        hosts: plan().hosts,
        held_back: None,
        items: plan().items,
    };
    later.items.retain(|item| item.id() != "0a0a0a02");
    let orphan = later.items.iter_mut().find(|item| item.id() == "0a0a0a03").unwrap();
    orphan.identity = "sha256:another".to_owned();
    update(&mut model, Msg::Stale(Ok(Box::new(later))));
    assert_snapshot!("reap_changed", screen(&mut model, (120, 36)));
    press(&mut model, "A tab");
    let seen = screen(&mut model, (120, 36));
    assert!(seen.contains("4 left out: changed since the plan was made"), "{seen}");
    let effects = press(&mut model, "enter");
    let (_, sent) = begun(&effects).expect("a reap");
    let sent: Vec<&str> = sent.to_do().map(StaleItem::id).collect();
    assert_eq!(sent, ["0b1c2d3e", "57c57c57", "0a0a0a01"]);
}

#[test]
fn what_changes_while_it_is_asked_is_said_in_the_question() {
    let mut model = opened(plan());
    press(&mut model, "A");
    let mut records = stale_world(now()).records;
    records.iter_mut().find(|record| record.id.as_str() == "0b1c2d3e").unwrap().revision += 1;
    list(&mut model, records);
    let seen = screen(&mut model, (120, 50));
    assert!(seen.contains("changed since: its record is another one, failed now"), "{seen}");
}

#[test]
fn a_record_that_the_list_does_not_have_yet_as_the_plan_has_it_is_no_change() {
    let mut newer = plan();
    newer.items[0].identity = "revision 99".to_owned();
    let model = opened(newer);
    assert_eq!(model.reap_change(0), None);
}

#[test]
fn a_plan_that_is_too_old_is_not_applied() {
    let mut model = opened(plan());
    press(&mut model, "A tab");
    type_text(&mut model, "7");
    update(&mut model, Msg::Tick(now().plus_seconds(3600)));
    assert_eq!(begun(&press(&mut model, "enter")), None);
    assert!(toast(&mut model).contains("too old to be applied: r makes a new one"));
    assert!(screen(&mut model, (120, 36)).contains("⚠ this plan is too old"));
    press(&mut model, "A");
    assert!(toast(&mut model).contains("too old"));
}

#[test]
fn a_copied_data_directory_says_why_nothing_is_reaped_and_what_to_do() {
    let held = HeldBack {
        reason: HoldReason::NotOwn,
        message: "this data directory is a copy: another one has acted since".to_owned(),
        hint: Some(
            "`sandboxer doctor` says which; `--new-owner` makes it one of its own".to_owned(),
        ),
    };
    let mut model = opened(ReapPlan { held_back: Some(held), ..plan() });
    assert_snapshot!("reap_held_back", screen(&mut model, (80, 24)));
    press(&mut model, "A");
    assert!(toast(&mut model).contains("this data directory is a copy"));
}

#[test]
fn a_silent_host_asks_again() {
    let mut far = plan();
    far.items[0].host = sandboxer::domain::name::HostName::new("vm-haskell");
    let mut model = opened(far);
    press(&mut model, "A tab");
    type_text(&mut model, "7");
    assert_eq!(begun(&press(&mut model, "enter")), None);
    assert!(screen(&mut model, (120, 40)).contains("although the host is silent"));
    assert!(begun(&press(&mut model, "tab enter")).is_some());
}

#[test]
fn a_console_that_only_looks_shows_what_is_stale_and_applies_nothing() {
    let mut model = model_of(stale_world(now()));
    model.read_only = true;
    assert_eq!(press(&mut model, "X"), [Effect::InspectStale(1)]);
    let report = stale_world(now()).stale.unwrap();
    answer(&mut model, 1, Ok(Judged::Report(Box::new(report))));
    assert_snapshot!("reap_read_only", screen(&mut model, (80, 24)));
    refused(&mut model, "space a x * A");
    assert!(matches!(model.overlays.as_slice(), [Overlay::Reap]));
}

#[test]
fn each_result_is_shown_as_it_comes_and_the_overlay_may_be_closed_meanwhile() {
    let mut model = opened(plan());
    press(&mut model, "A tab");
    type_text(&mut model, "7");
    let (job, sent) = begun(&press(&mut model, "enter")).unwrap();
    let operation = OperationId::from_random(5);
    let items: Vec<_> = sent.to_do().map(done).collect();
    let reaped = |model: &mut Model, at: usize| {
        let item = Box::new(items[at].clone());
        hear(model, Update::Reaped(operation.clone(), item))
    };
    // Before the start was answered.
    reaped(&mut model, 0);
    let report = ReapReport { plan: sent.id.clone(), items: Vec::new() };
    let started = sandboxer::client::Started {
        operation: Some(operation.clone()),
        record: report.clone().into(),
    };
    update(&mut model, Msg::Started(job, Ok(Box::new(started))));
    reaped(&mut model, 1);
    press(&mut model, "esc");
    assert!(model.overlays.is_empty());
    let seen = screen(&mut model, (120, 36));
    assert!(seen.contains("◐ reap 7 stale items") && seen.contains("0/7"), "{seen}");
    reaped(&mut model, 2);
    (3..6).for_each(|at| drop(reaped(&mut model, at)));
    assert_eq!(press(&mut model, "X"), [], "the one that runs");
    assert_snapshot!("reap_running", screen(&mut model, (120, 36)));
    let other = OperationId::from_random(6);
    let last = Box::new(items[6].clone());
    hear(&mut model, Update::Reaped(other, last));
    assert_eq!(model.reap.done_count(), 6, "another reap's");
    press(&mut model, "r");
    assert!(toast(&mut model).contains("being applied"));
    let report = ReapReport { items, ..report };
    update(&mut model, Msg::Ended(job, Ok(report.into()), None));
    assert_snapshot!("reap_done", screen(&mut model, (120, 36)));
    let job = model.jobs.get(job).unwrap();
    assert_eq!(job.state, JobState::Succeeded);
    assert!(matches!(press(&mut model, "r").as_slice(), [Effect::PlanReap(2)]));
}

#[test]
fn a_reap_that_was_cancelled_says_what_is_left() {
    let mut model = opened(plan());
    press(&mut model, "A tab");
    type_text(&mut model, "7");
    let (job, sent) = begun(&press(&mut model, "enter")).unwrap();
    let item = Box::new(done(sent.to_do().next().unwrap()));
    hear(&mut model, Update::Reaped(OperationId::from_random(5), item));
    press(&mut model, "c");
    let seen = screen(&mut model, (120, 36));
    assert!(
        seen.contains("what is begun comes to its end; the rest of the plan is left"),
        "{seen}"
    );
    press(&mut model, "tab enter");
    assert_eq!(model.jobs.get(job).unwrap().state, JobState::Cancelling);
    let error = CancelOutcome::Stopped.error("cancelled; 6 items are left as they were");
    update(&mut model, Msg::Ended(job, Err(error), None));
    let seen = screen(&mut model, (120, 36));
    assert!(seen.contains("1 removed; cancelled; 6 items are left as they were"), "{seen}");
}

#[test]
fn text_of_hosts_is_cleaned() {
    let mut wicked = plan();
    wicked.items[6].name = Some("a\u{1b}]0;x\u{7}b\u{202e}c".to_owned());
    wicked.items[6].why = "line one\nline \u{1b}[2Jtwo".to_owned();
    wicked.items[6].owner = Some("own\r\n".to_owned());
    let mut model = opened(wicked);
    point_at(&mut model, "0a0a0a03");
    for size in [(120, 36), (80, 24), (40, 10)] {
        let seen = screen(&mut model, size);
        assert!(!seen.contains('\u{1b}') && !seen.contains('\u{202e}'), "{seen}");
        assert_eq!(seen.split('\n').count(), usize::from(size.1));
    }
    press(&mut model, "enter");
    assert!(matches!(model.overlays.last(), Some(Overlay::Text(_))));
}

#[test]
fn enter_opens_a_recorded_ones_details_and_the_palette_knows_reap_and_stale() {
    let mut model = opened(plan());
    point_at(&mut model, "0b1c2d3e");
    press(&mut model, "enter");
    assert!(matches!(model.overlays.last(), Some(Overlay::Details(_))));
    let mut model = model_of(stale_world(now()));
    for name in ["reap", "stale"] {
        press(&mut model, ":");
        type_text(&mut model, name);
        assert!(matches!(press(&mut model, "enter").as_slice(), [Effect::PlanReap(_)]), "{name}");
        press(&mut model, "esc");
        model.reap = Reap::default();
    }
}

/// Items that records alone tell of: four that are expired, three that dead processes left, one that is lost.
fn stale_records() -> Fixture {
    let mut world = stale_world(now());
    for number in 2..5 {
        let mut more =
            world.records.iter().find(|one| one.id.as_str() == "e1e1e1e1").unwrap().clone();
        (more.id, more.name) =
            (SandboxId::new(format!("e{number}e{number}e{number}e{number}")), None);
        world.records.push(more);
    }
    world
}

#[tokio::test]
async fn a_reap_runs_to_its_end_on_a_client() {
    let script = Scripted { standing: Some(now()).into(), ..Scripted::default() };
    let there = Resource { kind: "directory".into(), id: "/home/ops/sandboxes/sbx".into() };
    script.seen.lock().unwrap().resources.push(there);
    script.gone.lock().unwrap().insert("1057aaaa".into());
    let mut drive = Drive::scripted(stale_records(), script).await;
    drive.until("what is stale", |model| model.stale.count() == 8).await;
    drive.press("X");
    drive.until("the plan", |model| !model.reap.rows().is_empty()).await;
    drive.take(Msg::Drawn);
    drive.press("A tab");
    drive.type_text("8");
    drive.press("enter");
    let job = |model: &Model| model.reap.job.and_then(|id| model.jobs.get(id)).cloned();
    drive.until("its end", |model| job(model).is_some_and(|job| !job.is_running())).await;
    assert_eq!(drive.model.reap.done_count(), 8);
    let mut removed: Vec<_> = drive.model.reap.removed().to_vec();
    removed.sort();
    assert_eq!(removed, ["e1e1e1e1", "e2e2e2e2", "e3e3e3e3", "e4e4e4e4"]);
    for id in removed {
        assert_eq!(drive.env.client.get(id.as_str()).await.unwrap().state, State::Destroyed);
    }
    let is_gone = |model: &Model| model.sandboxes.get(&SandboxId::new("e1e1e1e1")).is_none();
    drive.until("what was destroyed to go", is_gone).await;
}
