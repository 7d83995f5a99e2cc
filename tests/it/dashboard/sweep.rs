//! The dashboard's sweep: begun by the clock, shown, told of, and not begun where it must not be.

use std::collections::BTreeMap;
use std::time::Duration;

use sandboxer::client::{Client as _, Error, SweepReport};
use sandboxer::domain::clock::ClockJump;
use sandboxer::domain::error::Code;
use sandboxer::domain::name::{HostName, SandboxId};
use sandboxer::domain::sweep::{HeldBack, SweepItem, SweepOutcome};
use sandboxer::domain::{State, Time};
use sandboxer::tui::effects::Effects;
use sandboxer::tui::keymap::Keymap;
use sandboxer::tui::model::{Leaving, Model, Sweep};
use sandboxer::tui::update::{Timer, start, update};
use sandboxer::tui::{Effect, Msg};
use tokio::sync::mpsc;

use super::drive::now;
use crate::test_env::TestEnv;
use crate::test_env::fixture::{Fixture, ready, record};

const INTERVAL: Duration = Duration::from_secs(5);

fn model(interval: Option<Duration>) -> Model {
    let mut model = Model::new(now(), Keymap::new(&BTreeMap::new()).unwrap());
    model.sweeps.interval = interval;
    update(&mut model, Msg::Resize(120, 36));
    model
}

fn report(destroyed: &[(&str, Option<&str>)], held_back: Option<HeldBack>) -> SweepReport {
    let item = |(id, name): &(&str, Option<&str>)| SweepItem {
        id: SandboxId::new(*id),
        name: name.map(str::to_owned),
        host: HostName::new("local"),
        outcome: SweepOutcome::Destroyed,
        skipped: None,
        message: "its time was over".into(),
        error: None,
    };
    SweepReport { at: now(), held_back, items: destroyed.iter().map(item).collect() }
}

fn swept(model: &mut Model, number: u64, answer: Result<SweepReport, Error>) -> String {
    model.toast = None;
    assert_eq!(update(model, Msg::Swept(number, answer.map(Box::new))), []);
    model.toast.as_ref().map(|toast| toast.text.clone()).unwrap_or_default()
}

#[test]
fn the_clock_begins_a_sweep_and_the_next_whether_or_not_it_ended() {
    let mut model = model(Some(INTERVAL));
    let timer = |effects: &[Effect]| {
        let found = effects.iter().filter_map(|effect| match effect {
            Effect::After(wait, timer) if **timer == Timer::Sweep => Some(*wait),
            _ => None,
        });
        found.collect::<Vec<_>>()
    };
    assert_eq!(timer(&start(&model)), [Duration::from_secs(1)]);
    for number in 1..4 {
        let effects = update(&mut model, Msg::Due(Timer::Sweep));
        assert_eq!(timer(&effects), [INTERVAL]);
        assert!(effects.contains(&Effect::Sweep(number)), "{effects:?}");
    }
    // Somebody who leaves waits for nothing new.
    model.leaving = Some(Leaving::Waiting);
    let effects = update(&mut model, Msg::Due(Timer::Sweep));
    assert!(!effects.iter().any(|effect| matches!(effect, Effect::Sweep(_))), "{effects:?}");
}

#[test]
fn a_console_that_is_told_not_to_never_sweeps() {
    let mut model = model(None);
    let is_timer =
        |effect: &Effect| matches!(effect, Effect::After(_, timer) if **timer == Timer::Sweep);
    assert!(!start(&model).iter().any(is_timer));
    assert_eq!(update(&mut model, Msg::Due(Timer::Sweep)), []);
    assert_eq!(model.sweep, Sweep::Off);
}

#[test]
fn what_was_destroyed_is_told_and_why_it_holds_back() {
    let mut model = model(Some(INTERVAL));
    for _ in 0..9 {
        update(&mut model, Msg::Due(Timer::Sweep));
    }
    assert_eq!(swept(&mut model, 1, Ok(report(&[], None))), "");
    assert_eq!(model.sweep, Sweep::On);
    let one = report(&[("0b1c2d3e", Some("nightly\u{1b}[2J"))], None);
    let told = swept(&mut model, 2, Ok(one));
    assert!(told.starts_with("destroyed nightly") && told.ends_with(": its time was over"));
    assert!(!told.contains('\u{1b}'), "{told:?}");
    let several = report(&[("0b1c2d3e", None), ("1b1c2d3e", None)], None);
    assert_eq!(swept(&mut model, 3, Ok(several)), "destroyed 2 sandboxes: their time was over");

    let jump = HeldBack::over_jump(ClockJump::Back(Duration::from_hours(1)));
    let words = "this machine's clock was set back by 3600 s";
    let told = swept(&mut model, 4, Ok(report(&[], Some(jump.clone()))));
    assert_eq!(told, format!("sweep paused: {words}"));
    assert_eq!(model.sweep, Sweep::Paused(words.into()));
    assert_eq!(swept(&mut model, 5, Ok(report(&[], Some(jump)))), "", "told once");
    // An earlier one that waited for a silent host says nothing of how things are now.
    let late = report(&[("0b1c2d3e", None)], None);
    assert_eq!(swept(&mut model, 3, Ok(late)), "destroyed 0b1c2d3e: its time was over");
    assert_eq!(model.sweep, Sweep::Paused(words.into()));
    let broken = Error::new(Code::StoreCorrupt, "sandboxes.json is damaged");
    assert_eq!(swept(&mut model, 6, Err(broken)), "sweep paused: sandboxes.json is damaged");
    swept(&mut model, 7, Ok(report(&[], None)));
    assert_eq!(model.sweep, Sweep::On);
}

#[tokio::test]
async fn nothing_is_swept_once_nothing_is_begun_any_more() {
    let env = TestEnv::of(&Fixture::default()).await;
    let (queue, mut inbox) = mpsc::channel(8);
    let effects = Effects::new(env.client.clone(), queue, None);
    let expired = async |id: &str| {
        let now = Time::new(jiff::Timestamp::now());
        let record = record(id, None, "compose-e2e", "local", State::Ready, now);
        let mut record = ready(record, now.minus_seconds(90));
        record.expires_at = Some(now.minus_seconds(60));
        env.put(record).await;
    };
    expired("aaaaaaaa").await;
    effects.run(Effect::Sweep(1));
    assert!(matches!(inbox.recv().await, Some(Msg::Swept(1, Ok(_)))));
    assert_eq!(env.client.get("aaaaaaaa").await.unwrap().state, State::Destroyed);
    expired("bbbbbbbb").await;
    effects.begin_nothing();
    effects.run(Effect::Sweep(2));
    assert!(matches!(inbox.recv().await, Some(Msg::Swept(2, Err(_)))));
    assert_eq!(env.client.get("bbbbbbbb").await.unwrap().state, State::Ready);
}
