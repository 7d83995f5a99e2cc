//! What came to nothing stands in nobody's way: names, snapshots, hints.

use sandboxer::domain::Code;
use sandboxer::domain::request::CreateRequest;
use sandboxer::domain::sandbox::State;
use sandboxer::domain::snapshot::SnapshotState;

use crate::support::json_assertions::JsonAssertions as _;
use crate::test_env::script::Act;
use crate::test_env::{of, test_env, with_snapshot};

fn shop() -> CreateRequest {
    CreateRequest { name: Some("shop".into()), ..CreateRequest::default() }
}

#[tokio::test]
async fn a_create_that_failed_and_left_nothing_frees_its_name() {
    let house = test_env();
    house.script(&[], &[Act::Fail(Code::Timeout, "web is created")], &[]);
    let (failed, _) = house.create(shop()).await;
    assert_eq!(house.manager.get("shop").await.unwrap().id, failed.id, "it is still found by it");
    assert!(house.manager.plan_create(&shop()).await.unwrap().ok);
    let (made, ended) = house.create(shop()).await;
    assert_eq!((ended, &made.state), (Ok(()), &State::Ready));
    assert_eq!(house.manager.get("shop").await.unwrap().id, made.id);
    house.manager.create(shop()).await.unwrap_err().coded(Code::Conflict);
    // What takes it back is told that somebody else has it.
    house.manager.recreate(&of(&failed.id)).await.unwrap_err().coded(Code::Conflict).says("shop");
    assert_eq!(house.destroy(&failed.id).await.0.state, State::Destroyed);
    assert_eq!(house.manager.get("shop").await.unwrap().id, made.id);
}

#[tokio::test]
async fn a_create_that_failed_takes_its_name_again_when_it_is_made_again() {
    let house = test_env();
    house.script(&[], &[Act::Fail(Code::Timeout, "web is created")], &[]);
    let (failed, _) = house.create(shop()).await;
    house.finished(house.manager.recreate(&of(&failed.id)).await).await;
    house.manager.create(shop()).await.unwrap_err().coded(Code::Conflict);
}

#[tokio::test]
async fn what_may_have_left_something_keeps_its_name() {
    let house = test_env();
    house.script(&[Act::fails("no")], &[], &[Act::LeaveNetwork]);
    let (left, _) = house.create(shop()).await;
    assert!(!left.leftovers.is_empty());
    house.manager.create(shop()).await.unwrap_err().coded(Code::Conflict);
    house.script(&[Act::fails("no")], &[], &[]);
    let kept =
        CreateRequest { name: Some("kept".into()), keep_failed: true, ..CreateRequest::default() };
    house.create(kept.clone()).await.1.unwrap_err();
    house.manager.create(kept).await.unwrap_err().coded(Code::Conflict);
}

#[tokio::test]
async fn a_restore_that_came_to_nothing_does_not_pin_its_snapshot() {
    let (house, snapshot) = with_snapshot().await;
    house.script.shelf.restore.push(Act::Untouched(Code::MissingDependency));
    let (failed, _) = house.restore(&snapshot).await;
    assert_eq!(failed.state, State::Failed);
    assert_eq!(house.manager.snapshot_view(&snapshot).await.unwrap().sandboxes.len(), 0);
    let (ready, _) = house.restore(&snapshot).await;
    let found = house.delete(&snapshot, false).await.unwrap_err().code;
    assert_eq!(found, Code::InUse, "of that one it is");
    assert_eq!(house.destroy(&ready.id).await.1, Ok(()));
    house.delete(&snapshot, false).await.unwrap();
    assert_eq!(house.listed().await, Vec::<(String, SnapshotState)>::new());
    house.manager.recreate(&of(&failed.id)).await.unwrap_err().coded(Code::NotFound);
}

#[tokio::test]
async fn a_failed_record_says_what_was_rewritten() {
    let house = test_env();
    house.script(&[Act::fails("up failed")], &[], &[]);
    let (failed, _) = house.create(CreateRequest::default()).await;
    assert_eq!(failed.rewrites[0].path, "services.web.container_name");
}

#[tokio::test]
async fn no_hint_names_what_is_destroyed() {
    let house = test_env();
    let (made, _) = house.create(shop()).await;
    house.manager.get("shopp").await.unwrap_err().hints("shop?");
    assert_eq!(house.destroy(&made.id).await.1, Ok(()));
    let hint = house.manager.get("shopp").await.unwrap_err().hint.unwrap();
    assert!(!hint.contains("did you mean"), "{hint}");
}
