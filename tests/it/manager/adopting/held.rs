//! Adoption beside somebody who works on the same things, and from a host that is another one.

use sandboxer::domain::Code;
use sandboxer::domain::adoption::{AdoptRequest, AdoptedKind};
use sandboxer::domain::extension::Inspection;
use sandboxer::domain::request::CreateRequest;
use sandboxer::store::Locks as _;
use sandboxer::store::json::JsonStores;
use serde_json::json;

use super::{Orphaned, verdict};

#[tokio::test]
async fn what_somebody_works_on_is_neither_looked_at_nor_adopted() {
    let world = Orphaned::new();
    let sandbox = world.living(CreateRequest::default()).await;
    let snapshot = world.taken(&sandbox, "base").await;
    world.shelve(&snapshot, &sandbox);
    let console = world.console(&["local"]);
    let locks = JsonStores::open(world.lost.path()).unwrap().locks;
    let held = (
        locks.try_lock(&sandbox.id).await.unwrap().unwrap(),
        locks.try_lock_snapshot(&snapshot.id).await.unwrap().unwrap(),
    );
    world.house.script.asked.lock().unwrap().clear();
    let items = console.adopt(&AdoptRequest::default()).await.unwrap();
    assert_eq!(
        verdict(&items),
        [
            (snapshot.id.to_string(), false, Some(Code::Busy)),
            (sandbox.id.to_string(), false, Some(Code::Busy)),
        ]
    );
    let asked = world.house.script.asked();
    assert!(
        !asked.iter().any(|call| call.starts_with("adopt") || call.starts_with("look")),
        "{asked:?}"
    );
    drop(held);
    let items = console.adopt(&AdoptRequest::default()).await.unwrap();
    assert!(items.len() == 2 && items.iter().all(|item| item.adopted), "{items:?}");
}

#[tokio::test]
async fn what_got_a_record_while_an_adoption_was_at_it_keeps_that() {
    let world = Orphaned::new();
    let before = world.living(CreateRequest::default()).await;
    let (one, other) = (world.console(&["local"]), world.console(&["local"]));
    let meanwhile = async move {
        other.adopt(&AdoptRequest::default()).await.unwrap();
    };
    world.house.script.before_lock.push(Box::pin(meanwhile));
    let items = one.adopt(&AdoptRequest::default()).await.unwrap();
    assert_eq!(verdict(&items), [(before.id.to_string(), false, Some(Code::Conflict))]);
    let looks = world.house.script.asked();
    assert_eq!(looks.iter().filter(|call| call.starts_with("adopt")).count(), 1, "{looks:?}");
}

#[tokio::test]
async fn what_a_snapshot_may_hold_stays_paused_and_the_record_says_so() {
    let world = Orphaned::new();
    let before = world.living(CreateRequest::default()).await;
    let paused = serde_json::from_value(json!({"name": "web", "state": "paused"})).unwrap();
    world.house.script.seen.set(Inspection { services: vec![paused], ..Inspection::default() });
    world.house.script.asked.lock().unwrap().clear();
    let items = world.adopt(false).await;
    assert_eq!(verdict(&items), [(before.id.to_string(), true, None)]);
    assert!(!world.house.script.asked().contains(&"resume".to_owned()));
    let record = world.console(&["local"]).get(before.id.as_str()).await.unwrap();
    let said = record.message.unwrap();
    assert!(said.contains("are paused") && said.contains("sandboxer wake"), "{said}");
}

#[tokio::test]
async fn nothing_is_adopted_from_a_host_that_is_another_than_records_name() {
    let world = Orphaned::new();
    let lost = world.living(CreateRequest::default()).await;
    let console = world.console(&["local"]);
    let theirs = CreateRequest { host: Some("local".into()), ..CreateRequest::default() };
    let started = console.create(theirs).await.unwrap();
    console.finish(&started.operation.unwrap()).await.unwrap();
    // The scripted extension proves another machine than this one.
    let items = world.adopt(false).await;
    assert_eq!(verdict(&items), [("local".to_owned(), false, Some(Code::HostChanged))]);
    assert_eq!(items[0].kind, AdoptedKind::Host);
    // A record of a machine without an id proves nothing against it.
    world.forget_machines();
    assert_eq!(verdict(&world.adopt(false).await), [(lost.id.to_string(), true, None)]);
}
