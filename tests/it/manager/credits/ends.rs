//! How holds end beside a destroy: by the sweep, by a forget, over a clock that jumps, with an extension that cannot meter.

use std::collections::BTreeMap;

use sandboxer::domain::State;
use sandboxer::domain::request::DestroyRequest;
use sandboxer::domain::sandbox::Reason;
use sandboxer::domain::sweep::{SkipReason, SweepOutcome, SweepRequest};

use super::{HOUR, endless, entries, grant, hour, metered, usd};
use crate::test_env::script::Act;
use crate::test_env::{TestEnv, of};

async fn swept(house: &TestEnv) -> Vec<(String, String)> {
    let report = house.manager.sweep(&SweepRequest::default()).await.unwrap();
    let what = |one: &sandboxer::domain::sweep::SweepItem| {
        one.skipped.as_ref().map_or(one.outcome.to_string(), ToString::to_string)
    };
    report.items.iter().map(|one| (one.id.to_string(), what(one))).collect()
}

#[tokio::test]
async fn a_hold_without_a_deadline_is_renewed_hour_by_hour() {
    let house = metered(3 * HOUR).await;
    let one = house.made(endless(&house)).await;
    assert_eq!((one.expires_at, one.hold_usd), (None, Some(usd(HOUR))));
    assert_eq!(swept(&house).await, []);
    house.script.pass(3590);
    assert_eq!(swept(&house).await, []);
    house.script.pass(20);
    assert_eq!(swept(&house).await, [(one.id.to_string(), "renewed".to_owned())]);
    let renewed = house.record(&one.id).await;
    let held = renewed.hold_usd.unwrap().micros();
    assert!((2 * HOUR + 100..2 * HOUR + 1000).contains(&held), "{held}");
    assert_eq!(house.sums().await, (3 * HOUR - held, held));
    assert_eq!(swept(&house).await, [], "once an hour");
    house.costs(HOUR + 7);
    house.gone(&one).await;
    assert_eq!(house.sums().await, (2 * HOUR - 7, 0));
}

#[tokio::test]
async fn a_renewal_that_fails_is_told_and_ends_the_sandbox_after_ten_minutes() {
    let house = metered(HOUR + 10).await;
    let one = house.made(endless(&house)).await;
    house.script.pass(3601);
    assert_eq!(swept(&house).await, [(one.id.to_string(), "warned".to_owned())]);
    let warned = house.record(&one.id).await;
    assert!(warned.message.unwrap().contains("its credits ran out"));
    let events = house.events(&[]).await;
    let told: Vec<_> =
        events.iter().filter(|one| one.kind.as_str() == "sandbox.expiring").collect();
    assert_eq!((told.len(), &told[0].data["reason"]), (1, &"credits".into()));
    house.script.pass(500);
    assert_eq!(swept(&house).await, [(one.id.to_string(), SkipReason::Credits.to_string())]);
    // What it ran beyond its hold, nobody pays.
    house.costs(HOUR + 6_000);
    house.script.pass(101);
    assert_eq!(swept(&house).await, [(one.id.to_string(), SweepOutcome::Destroyed.to_string())]);
    let gone = house.record(&one.id).await;
    assert_eq!((gone.state, gone.reason), (State::Destroyed, Some(Reason::Credits)));
    assert_eq!(house.sums().await, (10, 0));
    let found = house.entries().await;
    assert_eq!(found, entries(&[("hold", HOUR), ("charge", HOUR), ("shortfall", 6_000)]));
}

#[tokio::test]
async fn credits_that_come_in_time_keep_it_and_a_protected_one_stays_without() {
    let house = metered(HOUR).await;
    let one = house.made(endless(&house)).await;
    house.script.pass(3601);
    swept(&house).await;
    house.script.pass(601);
    grant(&house.manager, 2 * HOUR).await;
    let found = swept(&house).await;
    assert_eq!(found, [(one.id.to_string(), "renewed".to_owned())], "even at the last moment");
    assert_eq!(house.record(&one.id).await.meter.unwrap().unpaid_since, None);
    let set = BTreeMap::from([("protect".to_owned(), "true".to_owned())]);
    let label = sandboxer::domain::request::LabelRequest { set, ..of(&one.id) };
    house.manager.label(label).await.unwrap();
    house.script.pass(3601);
    swept(&house).await;
    house.script.pass(700);
    assert_eq!(swept(&house).await, [(one.id.to_string(), SkipReason::Credits.to_string())]);
    assert_eq!(house.record(&one.id).await.state, State::Ready);
}

#[tokio::test]
async fn what_expires_is_charged_like_any_other() {
    let house = metered(HOUR).await;
    let one = house.made(hour()).await;
    house.script.pass(3601);
    assert_eq!(swept(&house).await, [(one.id.to_string(), SweepOutcome::Destroyed.to_string())]);
    assert_eq!(house.sums().await, (0, 0));
    let kinds: Vec<_> = house.entries().await.into_iter().map(|(kind, _)| kind).collect();
    assert_eq!(kinds, ["hold", "charge", "shortfall"], "a second more than was held for");
}

#[tokio::test]
async fn a_clock_that_is_set_back_charges_neither_nothing_nor_twice() {
    let house = metered(HOUR).await;
    let one = house.made(hour()).await;
    house.script.pass(600);
    house.script.jump(-7200);
    let cost = house.record(&one.id).await.cost_usd.unwrap().micros();
    assert!((6_000..6_500).contains(&cost), "{cost}");
    house.gone(&one).await;
    let charged = house.entries().await[1].clone();
    assert!(charged.0 == "charge" && (6_000..6_900).contains(&charged.1), "{charged:?}");
}

#[tokio::test]
async fn an_extension_that_cannot_meter_keeps_no_hold() {
    let house = metered(HOUR).await;
    let one = house.made(hour()).await;
    house.script.pass(1800);
    let fails = || Act::fails("the meter is broken");
    house.script.metered.push(fails());
    house.gone(&one).await;
    let (balance, held) = house.sums().await;
    assert_eq!(held, 0);
    assert!((HOUR / 2 - 500..=HOUR / 2).contains(&balance), "by its quote: {balance}");
}

#[tokio::test]
async fn a_forgotten_one_is_charged_at_once_and_what_it_cost_since_nobody_pays() {
    let house = metered(HOUR).await;
    let one = house.made(hour()).await;
    house.costs(400);
    let forget = DestroyRequest { forget: true, ..of(&one.id) };
    house.finished(house.manager.destroy(&forget).await).await;
    assert_eq!(house.sums().await, (HOUR - 400, 0));
    house.costs(900);
    swept(&house).await;
    assert_eq!(house.record(&one.id).await.state, State::Destroyed);
    assert_eq!(house.sums().await, (HOUR - 400, 0));
    let all = [("hold", HOUR), ("charge", 400), ("release", HOUR - 400), ("shortfall", 500)];
    assert_eq!(house.entries().await, entries(&all));
}

#[tokio::test]
async fn a_lost_one_costs_until_its_host_said_that_nothing_is_there() {
    let house = metered(HOUR).await;
    let one = house.made(hour()).await;
    house.script.pass(600);
    house.script.seen.set(sandboxer::domain::extension::Inspection::default());
    let seen = house.manager.observe(one.id.as_str()).await.unwrap();
    assert_eq!(seen.state, State::Lost);
    house.script.pass(1800);
    house.gone(&one).await;
    let charged = house.entries().await[1].clone();
    assert!(charged.0 == "charge" && (6_000..6_900).contains(&charged.1), "{charged:?}");
}
