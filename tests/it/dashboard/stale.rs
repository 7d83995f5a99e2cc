//! Stale things: marks, counts, the way to them.

use std::time::Duration;

use insta::assert_snapshot;
use sandboxer::client::StaleReport;
use sandboxer::domain::OperationKind;
use sandboxer::domain::name::SandboxId;
use sandboxer::domain::stale::{ReapAction, StaleClass};

use sandboxer::tui::model::{Model, Pane};
use sandboxer::tui::update::{Timer, update};
use sandboxer::tui::{Effect, Msg};

use super::drive::{check, draw, list, model_of, now, press, screen, text, toast};
use crate::test_env::fixture::{held, stale_item, stale_world, world};

/// The small world with twelve stale things, judged.
fn judged() -> Model {
    let world = stale_world(now());
    let report = world.stale.clone().unwrap();
    let mut model = model_of(world);
    update(&mut model, Msg::Stale(Ok(Box::new(report))));
    model
}

fn is_question(effect: &Effect) -> bool {
    matches!(effect, Effect::After(_, timer) if **timer == Timer::Stale)
}

#[test]
fn stale_rows_are_marked_and_counted() {
    let mut model = judged();
    let seen = screen(&mut model, (120, 36));
    assert!(seen.lines().next().unwrap().contains("8 stale"), "{seen}");
    assert_snapshot!("stale_list", seen);
    model.appearance.ascii = true;
    let seen = text(&draw(&mut model, (120, 36)));
    assert!(seen.lines().any(|line| line.contains("@x nightly")), "{seen}");
}

#[test]
fn a_stale_row_says_why_and_what_a_reap_does() {
    let mut model = judged();
    for (id, words) in [
        ("0b1c2d3e", "failed 26h ago: reap takes it"),
        ("e1e1e1e1", "expired 1h33 ago: reap takes it"),
        ("57c57c57", "its create's process 4711 on desk-2 is dead: reap recovers it"),
        ("1057aaaa", "coulombcore has nothing of it: reap closes its record"),
    ] {
        model.sandboxes.point_at(SandboxId::new(id));
        let seen = screen(&mut model, (120, 36));
        let strip = seen.lines().skip_while(|line| !line.contains('├')).collect::<String>();
        assert!(strip.contains(words), "{id}: {seen}");
        assert!(strip.contains("X reap"), "{id}: {seen}");
    }
}

#[test]
fn the_next_trouble_is_what_is_stale_too() {
    let mut model = judged();
    let mut seen = Vec::new();
    for _ in 0..model.sandboxes.len() {
        press(&mut model, "F");
        seen.push(model.sandboxes.selected().unwrap().record.id.to_string());
    }
    for id in ["0b1c2d3e", "1057aaaa", "e1e1e1e1", "57c57c57"] {
        assert!(seen.iter().any(|shown| shown == id), "{id}: {seen:?}");
    }
}

#[test]
fn an_orphan_without_a_row_is_counted_told_and_on_its_host() {
    let mut calm = world(now());
    calm.records.retain(|record| record.id.as_str() == "a1b2c3d4");
    calm.hosts.retain(|host| host.name.as_str() == "coulombcore");
    let mut model = model_of(calm);
    let orphan = stale_item(
        StaleClass::OrphanStack,
        ReapAction::Remove,
        ("0a0a0a02", Some("left\u{1b}[31mover"), "coulombcore"),
        "no record knows it",
        now(),
    );
    let report = StaleReport { at: now(), hosts: Vec::new(), held_back: None, items: vec![orphan] };
    update(&mut model, Msg::Stale(Ok(Box::new(report))));
    assert!(screen(&mut model, (120, 36)).lines().next().unwrap().contains("1 stale"));
    press(&mut model, "F");
    let told = toast(&mut model);
    assert_eq!(told, "1 stale thing is on hosts, in no row: X opens the plan");
    model.focus_on(Pane::Hosts);
    assert!(screen(&mut model, (120, 36)).contains(", 1 stale"));
    press(&mut model, "enter");
    let seen = screen(&mut model, (120, 36));
    assert!(seen.contains("◷ 0a0a0a02 left") && !seen.contains("[31m"), "{seen}");
    assert!(seen.contains("no record knows it: reap takes it"), "{seen}");
}

#[test]
fn looks_at_many_hosts_are_one_question() {
    let mut model = judged();
    let views: Vec<_> = model.hosts.list.iter().map(|host| host.view.clone()).collect();
    model.stale.reading = sandboxer::tui::model::Fetch::Idle;
    let asked = |model: &mut Model| {
        views.iter().flat_map(|view| check(model, view.clone())).filter(is_question).count()
    };
    assert_eq!(asked(&mut model), 1, "gathered");
    assert_eq!(update(&mut model, Msg::Due(Timer::Stale)), [Effect::Stale]);
    assert_eq!(asked(&mut model), 0, "one is under way");
    let report = Box::new(model.stale.report().unwrap().clone());
    let again = update(&mut model, Msg::Stale(Ok(report)));
    assert_eq!(again.iter().filter(|effect| is_question(effect)).count(), 1, "news came meanwhile");
    let wait = again.iter().find_map(|effect| match effect {
        Effect::After(wait, _) => Some(*wait),
        _ => None,
    });
    assert!(wait.unwrap() >= Duration::from_secs(1));
}

#[test]
fn what_is_stale_stays_while_it_cannot_be_judged_or_the_display_is_frozen() {
    let mut model = judged();
    let error = sandboxer::client::Error::internal("the store is gone");
    update(&mut model, Msg::Stale(Err(error)));
    assert_eq!(model.stale.count(), 8);
    press(&mut model, "f");
    let same = model.stale.report().unwrap().clone();
    update(&mut model, Msg::Stale(Ok(Box::new(same.clone()))));
    assert_eq!(model.frozen, Some(0), "nothing changed");
    update(&mut model, Msg::Stale(Ok(Box::new(StaleReport { items: Vec::new(), ..same }))));
    assert_eq!((model.frozen, model.stale.count()), (Some(1), 8));
    let thawed = press(&mut model, "f");
    assert!(thawed.iter().any(is_question), "{thawed:?}");
}

#[test]
fn a_sandbox_that_is_worked_on_is_running_not_stale() {
    let world = stale_world(now());
    let mut records = world.records.clone();
    let mut model = judged();
    let over = records.iter_mut().find(|record| record.id.as_str() == "e1e1e1e1").unwrap();
    *over = held(over.clone(), OperationKind::Destroy, now());
    over.revision += 1;
    list(&mut model, records);
    model.sandboxes.point_at(SandboxId::new("e1e1e1e1"));
    let seen = screen(&mut model, (120, 36));
    assert!(seen.contains("destroy for 40s"), "{seen}");
}
