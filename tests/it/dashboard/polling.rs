//! How hosts are asked: each by itself, how often, and what follows from an answer that does not come.

use std::collections::BTreeMap;

use super::drive::{check, list};
use crate::test_env::fixture::host;
use sandboxer::client::Error;
use sandboxer::domain::Time;
use sandboxer::domain::error::Code;
use sandboxer::domain::host_view::{HostState, HostView};
use sandboxer::domain::name::{HostName, SandboxId};
use sandboxer::domain::telemetry::{HostSample, SandboxUse};
use sandboxer::tui::keymap::Keymap;
use sandboxer::tui::model::{Fetch, Host, Model, Sampling};
use sandboxer::tui::update::update;
use sandboxer::tui::{Effect, Msg, Timer};

const NOW: i64 = 1_795_788_202;

fn at(seconds: i64) -> Time {
    Time::from_unix(NOW + seconds)
}

fn sample(seconds: i64, load1: f64) -> HostSample {
    HostSample {
        at: at(seconds),
        latency_ms: Some(7),
        cpus: 2,
        load1,
        mem_total_bytes: 100,
        mem_available_bytes: 50,
        swap_total_bytes: 0,
        swap_free_bytes: 0,
        disk: None,
        uptime_s: None,
        clock_offset_s: None,
        sandboxes: BTreeMap::from([(
            SandboxId::new("aaaaaaaa"),
            SandboxUse { cpu_pct: Some(12.5), memory_bytes: 9, containers: 1 },
        )]),
        findings: Vec::new(),
    }
}

fn model(hosts: &[&str]) -> Model {
    let mut model = Model::new(at(0), Keymap::new(&BTreeMap::new()).unwrap());
    // What is stale is asked for beside all this.
    model.stale.reading = Fetch::Running;
    let hosts = hosts.iter().map(|name| host(name, HostState::Unknown, None)).collect();
    let effects = update(&mut model, Msg::Hosts(Ok(hosts)));
    assert!(effects.iter().all(|effect| matches!(effect, Effect::After(..))), "{effects:?}");
    model
}

fn seen<'a>(model: &'a Model, name: &str) -> &'a Host {
    model.hosts.get(name).unwrap()
}

fn sampled(model: &mut Model, name: &str, answer: Result<HostSample, Code>) -> Vec<Effect> {
    let answer = answer.map(Box::new).map_err(|code| Error::new(code, "no"));
    update(model, Msg::HostSampled(name.into(), answer))
}

fn up(name: &str) -> HostView {
    host(name, HostState::Up, Some(4))
}

/// Timers that were set, in whole seconds.
fn timers(effects: &[Effect]) -> Vec<(u64, Timer)> {
    let timers = effects.iter().filter_map(|effect| match effect {
        Effect::After(wait, timer) => Some((wait.as_secs(), Timer::clone(timer))),
        _ => None,
    });
    timers.collect()
}

fn samples(effects: &[Effect]) -> usize {
    effects.iter().filter(|effect| matches!(effect, Effect::SampleHost(_))).count()
}

fn checks(effects: &[Effect]) -> usize {
    effects.iter().filter(|effect| matches!(effect, Effect::CheckHost(_))).count()
}

#[test]
fn a_host_that_answers_is_sampled_at_its_own_pace_and_inventoried_every_half_minute() {
    let mut model = model(&["a", "b"]);
    let name: HostName = "a".into();
    assert_eq!(checks(&update(&mut model, Msg::Due(Timer::Host(name.clone())))), 1);
    let effects = check(&mut model, up("a"));
    assert_eq!(samples(&effects), 1);
    let set = timers(&effects);
    assert!((30..=33).contains(&set[0].0) && set[0].1 == Timer::Host(name.clone()), "{set:?}");
    let effects = sampled(&mut model, "a", Ok(sample(0, 1.0)));
    assert_eq!(timers(&effects), [(2, Timer::Sample(name.clone()))]);
    assert_eq!(model.hosts.used("a", &"aaaaaaaa".into()).unwrap().cpu_pct, Some(12.5));
    assert_eq!(seen(&model, "a").view.latency_ms, Some(7));
    // `b` has not answered yet, and nothing of the above waited for it.
    assert_eq!(seen(&model, "b").sampling, Sampling::Off);
    assert_eq!(samples(&update(&mut model, Msg::Due(Timer::Sample("b".into())))), 0);
    assert_eq!(samples(&update(&mut model, Msg::Due(Timer::Sample(name)))), 1);
}

#[test]
fn timers_that_come_late_all_at_once_lead_to_one_sample_a_host() {
    let mut model = model(&["a"]);
    update(&mut model, Msg::Due(Timer::Host("a".into())));
    check(&mut model, up("a"));
    sampled(&mut model, "a", Ok(sample(0, 1.0)));
    // Stopped for an hour, then everything that was due comes.
    update(&mut model, Msg::Tick(at(3600)));
    let mut effects = update(&mut model, Msg::Resumed);
    for _ in 0..5 {
        effects.extend(update(&mut model, Msg::Due(Timer::Sample("a".into()))));
        effects.extend(update(&mut model, Msg::Due(Timer::Host("a".into()))));
    }
    assert_eq!((samples(&effects), checks(&effects)), (1, 1));
}

#[test]
fn what_is_asked_beside_the_timer_sets_no_second_one() {
    let mut model = model(&["a"]);
    update(&mut model, Msg::Due(Timer::Host("a".into())));
    let mut set = timers(&check(&mut model, up("a")));
    sampled(&mut model, "a", Ok(sample(0, 1.0)));
    for _ in 0..4 {
        // Work on it ended.
        model.hosts.get_mut("a").unwrap().changed = true;
        model.now = Time::from_unix(model.now.unix() + 5);
        let now = model.now;
        let effects = update(&mut model, Msg::Tick(now));
        assert_eq!(checks(&effects), 1);
        assert_eq!(checks(&update(&mut model, Msg::Tick(now))), 0, "it is being asked");
        set.extend(timers(&check(&mut model, HostView { checked_at: Some(now), ..up("a") })));
    }
    let of_host = set.iter().filter(|(_, timer)| matches!(timer, Timer::Host(_))).count();
    assert_eq!(of_host, 1, "{set:?}");
}

#[test]
fn a_bulk_on_a_host_leads_to_an_inventory_when_it_has_settled() {
    let mut model = model(&["a"]);
    update(&mut model, Msg::Due(Timer::Host("a".into())));
    check(&mut model, HostView { checked_at: Some(at(0)), ..up("a") });
    for second in 1..3 {
        model.hosts.get_mut("a").unwrap().changed = true;
        assert_eq!(checks(&update(&mut model, Msg::Tick(at(second)))), 0);
    }
    assert_eq!(checks(&update(&mut model, Msg::Tick(at(3)))), 1);
}

#[test]
fn a_host_that_is_down_is_tried_ever_more_seldom_and_says_when() {
    let mut model = model(&["a"]);
    let mut waits = Vec::new();
    for _ in 0..6 {
        update(&mut model, Msg::Due(Timer::Host("a".into())));
        assert_eq!(seen(&model, "a").next, None, "it is being asked");
        let set = timers(&check(&mut model, host("a", HostState::Down, None)));
        assert_eq!(seen(&model, "a").next, Some(at(0).plus_seconds(set[0].0)));
        waits.push(set[0].0);
    }
    // A tenth may come on top, by its name.
    for (wait, least) in waits.iter().zip([5, 10, 20, 40, 60, 60]) {
        assert!((least..=least + least / 10).contains(wait), "{waits:?}");
    }
    update(&mut model, Msg::Due(Timer::Host("a".into())));
    check(&mut model, up("a"));
    update(&mut model, Msg::Due(Timer::Host("a".into())));
    let set = timers(&check(&mut model, host("a", HostState::Down, None)));
    assert_eq!(set[0].0, 5, "it had answered");
}

#[test]
fn a_sample_that_fails_has_its_host_asked_at_once() {
    let mut model = model(&["a"]);
    update(&mut model, Msg::Due(Timer::Host("a".into())));
    check(&mut model, up("a"));
    let effects = sampled(&mut model, "a", Err(Code::HostUnreachable));
    assert_eq!(checks(&effects), 1);
    let effects = check(&mut model, host("a", HostState::Down, None));
    assert_eq!((samples(&effects), seen(&model, "a").sampling), (0, Sampling::Off));
    assert_eq!(seen(&model, "a").view.state, HostState::Down);
    // Back again: samples go on by themselves.
    update(&mut model, Msg::Due(Timer::Host("a".into())));
    let effects = check(&mut model, up("a"));
    let set = timers(&effects);
    assert!(set.contains(&(4, Timer::Sample("a".into()))), "{set:?}");
    assert_eq!(samples(&update(&mut model, Msg::Due(Timer::Sample("a".into())))), 1);
    sampled(&mut model, "a", Ok(sample(0, 1.0)));
    assert_eq!(seen(&model, "a").failed_samples, 0);
}

#[test]
fn a_host_that_answers_checks_and_no_samples_is_not_asked_in_a_circle() {
    let mut model = model(&["a"]);
    update(&mut model, Msg::Due(Timer::Host("a".into())));
    check(&mut model, up("a"));
    let (mut asked, mut waits) = (0, Vec::new());
    for _ in 0..8 {
        let effects = sampled(&mut model, "a", Err(Code::OperationFailed));
        asked += checks(&effects);
        let mut set = timers(&effects);
        if checks(&effects) > 0 {
            set.extend(timers(&check(&mut model, up("a"))));
        }
        let wait = set.iter().find(|(_, timer)| matches!(timer, Timer::Sample(_))).unwrap().0;
        waits.push(wait);
        update(&mut model, Msg::Due(Timer::Sample("a".into())));
    }
    assert_eq!((asked, waits), (1, vec![4, 8, 16, 32, 64, 64, 64, 64]));
}

/// Nothing tells of a file that somebody mends by hand.
#[test]
fn a_list_that_could_not_be_read_is_read_again_with_the_next_refresh() {
    let mut model = model(&[]);
    let wait = i64::try_from(model.refresh.as_secs()).unwrap();
    let reads =
        |model: &mut Model, after: i64| update(model, Msg::Tick(at(after))).contains(&Effect::List);
    update(&mut model, Msg::Tick(at(0)));
    list(&mut model, Vec::new());
    assert!(!reads(&mut model, wait), "what was read is good for longer");
    update(&mut model, Msg::Listed(Err(Error::new(Code::StoreCorrupt, "it is broken"))));
    assert!(!reads(&mut model, 2 * wait - 1));
    assert!(reads(&mut model, 2 * wait));
}
