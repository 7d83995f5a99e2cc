//! Activity: a row for each operation, whoever runs it; what has none; what happened while nobody looked.

use std::sync::Arc;

use super::drive::{
    self, confirm, model_of, now, press, progress, screen, shows, toast, type_text,
};
use crate::test_env::fixture::{ended, world};
use sandboxer::client::{Error, Update};
use sandboxer::domain::OperationKind;
use sandboxer::domain::actor::{Actor, ActorType};
use sandboxer::domain::error::Code;
use sandboxer::domain::event::Event;
use sandboxer::domain::host_view::HostState;
use sandboxer::domain::name::OperationId;
use sandboxer::domain::operation::{Operation, OperationState, Subject};
use sandboxer::domain::sandbox::{Failure, State};
use sandboxer::domain::update::Progress;
use sandboxer::tui::keymap::Mode;
use sandboxer::tui::model::{ActivityRow, Entry, JobId, LastLook, Model, Overlay};
use sandboxer::tui::update::{start, update};
use sandboxer::tui::{Effect, Msg};

/// The small world without the host that is down, which is a row too.
fn calm() -> Model {
    let mut world = world(now());
    world.hosts.retain(|host| host.state != HostState::Down);
    model_of(world)
}

/// An event of `agt:nightly` so many seconds ago.
fn event(seq: u64, kind: &str, sandbox: Option<&str>, ago: u64, data: serde_json::Value) -> Event {
    let actor = Actor { kind: ActorType::Agt, name: "nightly".to_owned() };
    Event { time: now().minus_seconds(ago), actor, data, ..drive::event(seq, kind, sandbox) }
}

fn hear(model: &mut Model, event: Event) -> Vec<Effect> {
    drive::hear(model, Update::Event(event))
}

/// A create of another process that began so many seconds ago.
fn create(number: u32, name: &str, ago: u64) -> Operation {
    Operation {
        kind: OperationKind::Create,
        subject: Subject::Sandbox(format!("{number:08x}").as_str().into()),
        name: Some(name.to_owned()),
        pid: 4711,
        host: "desk-2".to_owned(),
        actor: Actor { kind: ActorType::Agt, name: "nightly".to_owned() },
        started_at: now().minus_seconds(ago),
        finished_at: None,
        ..ended(&OperationId::from_random(number), OperationState::Running, now())
    }
}

fn done(operation: Operation, ago: u64) -> Operation {
    Operation {
        state: OperationState::Succeeded,
        finished_at: Some(now().minus_seconds(ago)),
        ..operation
    }
}

fn failed(operation: Operation, ago: u64) -> Operation {
    let error = Error::new(Code::OperationFailed, "the stack could not be started").step("up");
    Operation {
        state: OperationState::Failed,
        finished_at: Some(now().minus_seconds(ago)),
        error: Some(Box::new(error)),
        ..operation
    }
}

fn read(model: &mut Model, operations: &[Operation]) -> Vec<Effect> {
    update(model, Msg::Operations(Ok(operations.to_vec())))
}

fn rows(model: &Model) -> Vec<String> {
    let of_job = |id: JobId| model.jobs.get(id).unwrap().what();
    let row = |row: &ActivityRow| match row {
        ActivityRow::SinceLastLook => model.activity.since.as_ref().unwrap().text.clone(),
        ActivityRow::Job(id) => of_job(*id),
        ActivityRow::Line(number) => model.activity.line(*number).unwrap().text.clone(),
    };
    model.activity.rows().iter().map(row).collect()
}

fn later(model: &mut Model, seconds: u64) {
    update(model, Msg::Tick(now().plus_seconds(seconds)));
}

fn told(effects: &[Effect]) -> Vec<String> {
    let text = |effect: &Effect| match effect {
        Effect::Notify(text) => Some(text.clone()),
        _ => None,
    };
    effects.iter().filter_map(text).collect()
}

// ---- one row an operation ------------------------------------------------------------------------------------------

#[test]
fn an_operation_of_another_process_is_one_row_from_its_begin_to_its_end() {
    let mut model = calm();
    let (id, none) = ("00000007", serde_json::json!({}));
    for (seq, kind) in [(1, "sandbox.requested"), (2, "sandbox.provisioning")] {
        hear(&mut model, event(seq, kind, Some(id), 0, none.clone()));
    }
    assert!(rows(&model).is_empty(), "its operation is about to be read");
    read(&mut model, &[create(7, "shop-7", 0)]);
    assert_eq!(rows(&model), ["create shop-7"]);
    shows(&mut model, (120, 36), &["◐ create shop-7", "by agt:nightly"]);
    hear(&mut model, event(3, "sandbox.ready", Some(id), 0, none));
    read(&mut model, &[done(create(7, "shop-7", 3), 0)]);
    later(&mut model, 5);
    assert_eq!(rows(&model), ["create shop-7"], "its events are a part of it");
    shows(&mut model, (120, 36), &["✓ create shop-7", "3.0s"]);
}

#[test]
fn an_event_whose_operation_is_told_of_late_is_folded_into_it() {
    let mut model = calm();
    hear(&mut model, event(1, "sandbox.failed", Some("00000007"), 0, serde_json::json!({})));
    later(&mut model, 3);
    assert_eq!(rows(&model), ["failed 00000007  by agt:nightly"], "nobody tells of an operation");
    read(&mut model, &[failed(create(7, "shop-7", 1), 0)]);
    assert_eq!(rows(&model), ["create shop-7"]);
}

#[test]
fn what_has_no_operation_is_a_row_of_its_own_by_its_name() {
    let mut model = calm();
    for (kind, sandbox, data, says) in [
        (
            "sandbox.labelled",
            Some("a1b2c3d4"),
            serde_json::json!({"set": {"zone": "home"}, "removed": ["old"]}),
            "labelled e2e-core  zone=home old-  by agt:nightly",
        ),
        ("sandbox.lost", Some("a1b2c3d4"), serde_json::json!({}), "lost e2e-core"),
        (
            "patch.added",
            Some("a1b2c3d4"),
            serde_json::json!({"sequence": 3, "snapshot_name": "my-env", "snapshot_id": "snap-0000000a"}),
            "patch added 3 on my-env  by agt:nightly",
        ),
        (
            "host.changed",
            None,
            serde_json::json!({"host": "elsewhere"}),
            "host elsewhere is another machine than before",
        ),
    ] {
        let seq = model.activity.last_seq() + 1;
        hear(&mut model, event(seq, kind, sandbox, 0, data));
        assert_eq!(rows(&model)[0], says);
    }
    assert_eq!(rows(&model).len(), 4);
    // The same once more, as a resync reads it.
    let again = event(1, "sandbox.labelled", Some("a1b2c3d4"), 0, serde_json::json!({}));
    update(&mut model, Msg::Events(None, Ok(vec![again])));
    assert_eq!(rows(&model).len(), 4);
}

#[test]
fn what_runs_is_on_top_then_failures_nobody_looked_at_then_the_newest() {
    let mut model = calm();
    let operations = [
        failed(create(1, "first", 900), 800),
        done(create(2, "second", 700), 600),
        failed(create(3, "third", 500), 400),
        done(create(4, "fourth", 300), 200),
        create(5, "fifth", 100),
    ];
    read(&mut model, &operations);
    hear(&mut model, event(1, "sandbox.lost", Some("a1b2c3d4"), 300, serde_json::json!({})));
    let all = [
        "create fifth",
        "create third",
        "create first",
        "create fourth",
        "lost e2e-core",
        "create second",
    ];
    assert_eq!(rows(&model), all);
    insta::assert_snapshot!("activity_120x36", screen(&mut model, (120, 36)));
    insta::assert_snapshot!("activity_80x24", screen(&mut model, (80, 24)));
    // Looked at, it goes where it belongs; the cursor goes with it.
    press(&mut model, "5 g j enter");
    assert!(matches!(model.overlays.last(), Some(Overlay::Error(..))));
    press(&mut model, "esc");
    let looked = [
        "create fifth",
        "create first",
        "create fourth",
        "lost e2e-core",
        "create third",
        "create second",
    ];
    assert_eq!(rows(&model), looked);
    assert_eq!(model.activity.index, 4);
    // What went well on the same sandbox afterwards has mended the other one.
    let mended = Operation {
        id: OperationId::from_random(9),
        kind: OperationKind::Recreate,
        ..done(create(1, "first", 50), 40)
    };
    let mut more = operations.to_vec();
    more.push(mended);
    read(&mut model, &more);
    assert_eq!(rows(&model)[..2], ["create fifth", "recreate first"]);
    assert_eq!(rows(&model).last().unwrap(), "create first");
}

#[test]
fn one_that_nobody_tells_of_any_more_is_let_go() {
    let mut model = calm();
    read(&mut model, &[create(5, "fifth", 100)]);
    read(&mut model, &[]);
    assert!(rows(&model).is_empty(), "how it ended is not known");
    assert_eq!(model.jobs.list().len(), 0);
}

// ---- notifications -------------------------------------------------------------------------------------------------

#[test]
fn a_failure_of_another_process_is_told_once_and_by_its_name() {
    let mut model = calm();
    model.started = now().minus_seconds(60);
    read(&mut model, &[create(7, "shop-7", 10)]);
    let heard =
        hear(&mut model, event(1, "sandbox.failed", Some("00000007"), 0, serde_json::json!({})));
    assert_eq!(told(&heard), Vec::<String>::new());
    let ended = read(&mut model, &[failed(create(7, "shop-7", 10), 0)]);
    assert_eq!(told(&ended), ["create shop-7  failed: the stack could not be started"]);
    later(&mut model, 10);
    assert_eq!(
        told(&read(&mut model, &[failed(create(7, "shop-7", 10), 0)])),
        Vec::<String>::new()
    );
    // One that began and ended between two reads, and one from before this console.
    let short = failed(create(8, "short", 2), 1);
    let old = failed(create(9, "old", 3000), 2000);
    assert_eq!(told(&read(&mut model, &[old, short])).len(), 1);
}

#[test]
fn what_one_started_and_looks_at_is_not_told() {
    for looks in [false, true] {
        let mut model = calm();
        let job = model.jobs.start(OperationKind::Create, None, "mine".to_owned(), model.now);
        if looks {
            press(&mut model, "5 g enter");
            assert!(matches!(model.overlays.last(), Some(Overlay::Output(id, _)) if *id == job));
        }
        let problem = Error::new(Code::OperationFailed, "it failed");
        let effects = update(&mut model, Msg::Ended(job, Err(problem), None));
        assert_eq!(told(&effects).is_empty(), looks, "{effects:?}");
    }
}

#[test]
fn a_failure_that_no_operation_tells_of_is_told_too() {
    let mut model = calm();
    hear(&mut model, event(1, "sandbox.failed", Some("a1b2c3d4"), 0, serde_json::json!({})));
    let effects = update(&mut model, Msg::Tick(now().plus_seconds(3)));
    assert_eq!(told(&effects), ["sandbox e2e-core failed"]);
    let soon =
        hear(&mut model, event(2, "sandbox.expiring", Some("a1b2c3d4"), 0, serde_json::json!({})));
    assert_eq!(told(&soon), ["sandbox e2e-core is about to expire"]);
}

// ---- since the last look -------------------------------------------------------------------------------------------

#[test]
fn what_happened_since_the_last_look_is_on_top_until_a_key_is_pressed_there() {
    for keys in ["5 j", "5 enter"] {
        let mut model = calm();
        assert!(
            !start(&model).iter().any(|effect| matches!(effect, Effect::SinceLastLook(..))),
            "nobody has looked yet"
        );
        let look = LastLook { seq: 10, at: now().minus_seconds(3600) };
        model.looked_before = Some(look);
        assert!(start(&model).contains(&Effect::SinceLastLook(look, look.at)));
        let events = vec![
            event(10, "sandbox.destroyed", Some("00000001"), 4000, serde_json::json!({})),
            event(11, "sandbox.destroyed", Some("00000002"), 600, serde_json::json!({})),
            event(12, "sandbox.failed", Some("a1b2c3d4"), 500, serde_json::json!({})),
        ];
        update(&mut model, Msg::SinceLastLook(look, Ok(events)));
        read(&mut model, &[create(5, "fifth", 100)]);
        let says = "since you last looked: 1 failed by agt:nightly, 1 destroyed by agt:nightly";
        assert_eq!(rows(&model), [says, "create fifth"]);
        assert!(screen(&mut model, (120, 36)).contains("since you last looked: 1 failed"));
        press(&mut model, keys);
        assert_eq!(rows(&model), ["create fifth"], "{keys}");
        assert_eq!(model.activity.index, 0, "{keys}");
        if keys.ends_with("enter") {
            let shown = shows(&mut model, (120, 36), &["failed e2e-core", "destroyed 00000002"]);
            assert!(!shown.contains("00000001"), "that was seen: {shown}");
        }
    }
}

#[test]
fn the_last_look_is_that_of_the_last_event_seen() {
    let mut model = calm();
    assert_eq!(model.saved_state().last_look, None, "there was nothing to be seen");
    let before = LastLook { seq: 10, at: now().minus_seconds(3600) };
    model.looked_before = Some(before);
    assert_eq!(model.saved_state().last_look, Some(LastLook { at: now(), ..before }));
    hear(&mut model, event(12, "sandbox.lost", Some("a1b2c3d4"), 0, serde_json::json!({})));
    assert_eq!(model.saved_state().last_look, Some(LastLook { seq: 12, at: now() }));
}

// ---- keys ----------------------------------------------------------------------------------------------------------

#[test]
fn a_key_acts_on_the_sandbox_of_the_row() {
    let mut model = calm();
    hear(&mut model, event(1, "sandbox.labelled", Some("a1b2c3d4"), 0, serde_json::json!({})));
    press(&mut model, "5 g d");
    let [target] = confirm(&model).targets() else { panic!("{:?}", model.overlays) };
    assert_eq!(target.id.as_str(), "a1b2c3d4");
    // Marks belong to the list.
    press(&mut model, "esc 1 * 5 B");
    assert_eq!(confirm(&model).targets().len(), 1);
    press(&mut model, "esc L");
    assert_eq!(model.mode(), Mode::Form);
    // Of one that is over there is a record, and nothing to be done.
    let mut model = calm();
    read(&mut model, &[done(create(7, "shop-7", 20), 10)]);
    for key in ["d", "B", "L", "z", "!"] {
        press(&mut model, &format!("5 g {key}"));
        assert!(model.overlays.is_empty(), "{key}");
        let said = toast(&mut model);
        assert!(said.contains("shop-7 is destroyed: enter shows its record"), "{key}: {said}");
    }
    assert_eq!(press(&mut model, "enter"), [Effect::Get("00000007".into())]);
}

#[test]
fn the_output_of_the_row_is_one_key_away() {
    let mut model = calm();
    let mut record = model.sandboxes.get(&"0b1c2d3e".into()).unwrap().record.as_ref().clone();
    record.revision += 1;
    record.state = State::Failed;
    record.since = now().minus_seconds(30);
    record.failure = Some(Failure {
        step: "up".to_owned(),
        exit_status: Some(125),
        output: "pulling\nError: pinging container registry: connection refused".to_owned(),
    });
    drive::hear(&mut model, Update::Record(Box::new(record)));
    let of_it = Operation {
        subject: Subject::Sandbox("0b1c2d3e".into()),
        ..failed(create(1, "nightly", 60), 30)
    };
    read(&mut model, &[of_it]);
    let shown = screen(&mut model, (200, 36));
    assert!(
        shown.contains("✗ create nightly")
            && shown.contains("up: pinging container registry: connection refused"),
        "why, without a key: {shown}"
    );
    press(&mut model, "5 g l");
    assert!(matches!(model.overlays.last(), Some(Overlay::Text(_))), "{:?}", model.overlays);
    // Of what runs here, what it wrote so far.
    let mut model = calm();
    let progress = Progress {
        done: Some(45),
        of: Some(100),
        message: Some("src/main.rs".to_owned()),
        ..progress(OperationKind::Recreate, "a1b2c3d4", "transfer", 3)
    };
    drive::hear(&mut model, Update::Progress(progress));
    assert_eq!(rows(&model), ["recreate e2e-core"]);
    let shown = screen(&mut model, (160, 36));
    let row = shown.lines().find(|line| line.contains("◐ recreate e2e-core")).unwrap();
    assert!(
        row.contains("3/6 transfer") && row.contains("45%") && row.contains("src/main.rs"),
        "{row}"
    );
    press(&mut model, "5 g l");
    assert!(matches!(model.overlays.last(), Some(Overlay::Output(..))), "{:?}", model.overlays);
}

// ---- destroyed ones ------------------------------------------------------------------------------------------------

#[test]
fn destroyed_ones_are_read_when_asked_for_and_are_neither_counted_nor_acted_on() {
    let mut model = calm();
    let before = model.sandboxes.len();
    press(&mut model, "/");
    let effects = type_text(&mut model, "state:destroyed");
    assert_eq!(effects, [Effect::ListDestroyed(now().minus_seconds(86_400))]);
    press(&mut model, "enter");
    let mut gone = model.sandboxes.get(&"a1b2c3d4".into()).unwrap().record.as_ref().clone();
    gone.id = "00000007".into();
    gone.name = Some("gone".to_owned());
    gone.state = State::Destroyed;
    let entry = Arc::new(Entry::new(gone.clone()));
    update(&mut model, Msg::ListedDestroyed(Ok(vec![entry])));
    let shown = screen(&mut model, (120, 36));
    assert!(shown.contains("gone") && !shown.contains("e2e-core  "), "{shown}");
    assert_eq!(model.sandboxes.len(), before, "it is not counted");
    for key in ["d", "B", "z", "L", "s", "e"] {
        assert_eq!(press(&mut model, key), [], "{key}");
        assert!(model.overlays.is_empty(), "{key}: {:?}", model.overlays.last());
    }
    press(&mut model, "space * V");
    assert!(model.sandboxes.marks.is_empty());
    assert_eq!(press(&mut model, "enter"), [Effect::Get("00000007".into())]);
    update(&mut model, Msg::Got("00000007".into(), Ok(Box::new(Entry::new(gone)))));
    assert!(matches!(model.overlays.last(), Some(Overlay::Details(_))));
    press(&mut model, "esc");
    // One more goes meanwhile.
    let effects =
        hear(&mut model, event(1, "sandbox.destroyed", Some("00000008"), 0, serde_json::json!({})));
    assert!(effects.iter().any(|effect| matches!(effect, Effect::ListDestroyed(_))), "{effects:?}");
    press(&mut model, "esc");
    assert_eq!(model.sandboxes.shown().len(), before);
    let shown = screen(&mut model, (120, 36));
    assert!(!shown.contains("gone"), "{shown}");
}
