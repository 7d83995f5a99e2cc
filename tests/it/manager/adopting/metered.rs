//! Adoption of what costs something: it is paid for from then on, or not adopted.

use sandboxer::domain::credit::GrantRequest;
use sandboxer::domain::event::derived_event_id;
use sandboxer::domain::request::{CreateRequest, EventQuery, ListQuery};
use sandboxer::domain::{Code, EventKind, Usd};

use super::{Orphaned, verdict};
use crate::test_env::of;

#[tokio::test]
async fn an_adopted_one_is_held_for_until_its_deadline_or_left_where_it_is() {
    let world = Orphaned::new();
    world.house.script.price.set(Some(10));
    let grant = |micros| GrantRequest { usd: Usd::from_micros(micros), note: None };
    world.house.manager.grant_credits(grant(100_000)).await.unwrap();
    let request = CreateRequest { ttl: Some("2h".into()), ..CreateRequest::default() };
    let sandbox = world.living(request).await;
    world.house.script.pass(3600);
    let console = world.console(&["local"]);
    console.grant_credits(grant(30_000)).await.unwrap();
    let refused = [(sandbox.id.to_string(), false, Some(Code::InsufficientCredits))];
    assert_eq!(verdict(&world.adopt(false).await), refused);
    assert_eq!(console.list(&ListQuery::default()).await.unwrap(), []);
    assert_eq!(console.credits().await.unwrap().held_usd, Usd::ZERO);
    console.grant_credits(grant(30_000)).await.unwrap();
    assert_eq!(verdict(&world.adopt(false).await), [(sandbox.id.to_string(), true, None)]);
    let adopted = console.get(sandbox.id.as_str()).await.unwrap();
    let held = adopted.hold_usd.unwrap().micros();
    assert!((35_000..=36_000).contains(&held), "for the hour that is left: {held}");
    // It pays for its own time alone.
    world.house.script.pass(600);
    let destroy = of(&sandbox.id);
    let started = console.destroy(&destroy).await.unwrap();
    let (_, gone) = console.finish(&started.operation.unwrap()).await.unwrap();
    let cost = gone.unwrap().cost_usd.unwrap().micros();
    assert!((6_000..6_500).contains(&cost), "{cost}");
    let sums = console.credits().await.unwrap();
    assert_eq!((sums.balance_usd.micros(), sums.held_usd), (60_000 - cost, Usd::ZERO));
    // Its revisions began anew: an entry of its earlier life in the same ledger is another one.
    let events = console.events(&EventQuery::default()).await.unwrap();
    let charge = events.iter().find(|event| event.kind == EventKind::CreditsCharged).unwrap();
    let earlier = |revision| derived_event_id(sandbox.id.as_str(), revision, &charge.kind);
    assert!((1..100).all(|revision| charge.id != earlier(revision)));
}
