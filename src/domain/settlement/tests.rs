use serde_json::json;

use super::*;
use crate::domain::tests as examples;

fn record(hold: Option<i64>) -> SandboxRecord {
    let mut record = examples::sandbox(json!({"revision": 3, "ttl_s": 60}));
    if let Some(usd) = hold {
        let told = note_hold(&mut record, Usd::from_micros(usd));
        assert_eq!(told.len(), usize::from(usd > 0));
    }
    record
}

/// Kinds of events with their amounts in micro-dollars.
fn told(events: &[CreditEvent]) -> Vec<(&str, i64)> {
    let amount = |value: &Value| (value["usd"].as_f64().unwrap() * 1e6).round();
    #[allow(clippy::cast_possible_truncation, reason = "amounts of a test")]
    events.iter().map(|(kind, data)| (kind.as_str(), amount(data) as i64)).collect()
}

#[test]
fn a_hold_ends_as_charge_and_release_and_once() {
    let mut one = record(Some(100));
    assert_eq!(held_by(&one).micros(), 100);
    let events = settle(&mut one, Usd::from_micros(30), After::Over);
    assert_eq!(told(&events), [("credits.charged", 30), ("credits.released", 70)]);
    assert_eq!(
        (one.hold_usd, one.meter.clone(), one.cost_usd),
        (None, None, Some(Usd::from_micros(30)))
    );
    assert_eq!(settle(&mut one, Usd::from_micros(30), After::Over), [], "it is settled");
    // A second run adds to what it cost.
    note_hold(&mut one, Usd::from_micros(50));
    let events = settle(&mut one, Usd::from_micros(80), After::Over);
    assert_eq!(told(&events), [("credits.charged", 50), ("credits.shortfall", 30)]);
    assert_eq!(one.cost_usd, Some(Usd::from_micros(80)));
}

#[test]
fn a_recreate_holds_for_the_next_run_and_gives_it_back_where_it_does_not_begin() {
    let mut one = record(Some(100));
    note_next_hold(&mut one, Usd::from_micros(40));
    let events = note_next_hold(&mut one, Usd::from_micros(45));
    assert_eq!(told(&events), [("credits.held", 45), ("credits.released", 40)], "a dead one's");
    assert_eq!(held_by(&one).micros(), 145);
    let mut kept = one.clone();
    assert_eq!(told(&release_next(&mut kept)), [("credits.released", 45)]);
    assert_eq!(release_next(&mut kept), []);
    assert_eq!(held_by(&kept).micros(), 100);
    let events = settle(&mut one, Usd::from_micros(10), After::Next);
    assert_eq!(told(&events), [("credits.charged", 10), ("credits.released", 90)]);
    assert_eq!((held_by(&one).micros(), one.quote_usd), (45, Some(Usd::from_micros(45))));
    // A record whose run is settled has only what the next one begins with.
    let mut failed = record(None);
    note_next_hold(&mut failed, Usd::from_micros(5));
    release_next(&mut failed);
    assert_eq!(failed.meter, None);
}

#[test]
fn what_a_destroyed_one_held_for_another_run_is_released_with_the_rest() {
    let mut one = record(Some(100));
    note_next_hold(&mut one, Usd::from_micros(40));
    let events = settle(&mut one, Usd::from_micros(100), After::Next);
    assert_eq!(told(&events), [("credits.charged", 100)]);
    note_next_hold(&mut one, Usd::from_micros(7));
    let events = settle(&mut one, Usd::ZERO, After::Over);
    assert_eq!(told(&events), [("credits.released", 47)]);
    assert_eq!(held_by(&one), Usd::ZERO);
}

#[test]
fn what_a_forgotten_one_costs_beyond_its_charge_nobody_pays() {
    let mut one = record(Some(100));
    let events = settle(&mut one, Usd::from_micros(60), After::Forgotten);
    assert_eq!(told(&events), [("credits.charged", 60), ("credits.released", 40)]);
    assert_eq!(held_by(&one), Usd::ZERO);
    let events = settle(&mut one, Usd::from_micros(90), After::Over);
    assert_eq!(told(&events), [("credits.shortfall", 30)]);
    assert_eq!((one.meter, one.cost_usd), (None, Some(Usd::from_micros(60))));
}
