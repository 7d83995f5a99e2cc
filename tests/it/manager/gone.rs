//! What came to nothing stands in nobody's way: names, snapshots, hints.

use sandboxer::domain::Code;
use sandboxer::domain::request::{CreateRequest, RecreateRequest};
use sandboxer::domain::sandbox::State;
use sandboxer::domain::snapshot::SnapshotState;

use super::snapshots::source;
use crate::test_env::script::Act;
use crate::test_env::test_env;

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
    assert_eq!(house.manager.create(shop()).await.unwrap_err().code, Code::Conflict);
    // What takes it back is told that somebody else has it.
    let again = RecreateRequest { id: failed.id.to_string(), ..RecreateRequest::default() };
    let fault = house.manager.recreate(&again).await.unwrap_err();
    assert!(fault.code == Code::Conflict && fault.message.contains("shop"), "{fault}");
    assert_eq!(house.destroy(failed.id.as_str()).await.0.state, State::Destroyed);
    assert_eq!(house.manager.get("shop").await.unwrap().id, made.id);
}

#[tokio::test]
async fn a_create_that_failed_takes_its_name_again_when_it_is_made_again() {
    let house = test_env();
    house.script(&[], &[Act::Fail(Code::Timeout, "web is created")], &[]);
    let (failed, _) = house.create(shop()).await;
    let again = RecreateRequest { id: failed.id.to_string(), ..RecreateRequest::default() };
    let started = house.manager.recreate(&again).await.unwrap();
    house.manager.finish(&started.operation.unwrap()).await.unwrap();
    assert_eq!(house.manager.create(shop()).await.unwrap_err().code, Code::Conflict);
}

#[tokio::test]
async fn what_may_have_left_something_keeps_its_name() {
    let house = test_env();
    house.script(&[Act::Fail(Code::OperationFailed, "no")], &[], &[Act::LeaveNetwork]);
    let (left, _) = house.create(shop()).await;
    assert!(!left.leftovers.is_empty());
    assert_eq!(house.manager.create(shop()).await.unwrap_err().code, Code::Conflict);
    house.script(&[Act::Fail(Code::OperationFailed, "no")], &[], &[]);
    let kept =
        CreateRequest { name: Some("kept".into()), keep_failed: true, ..CreateRequest::default() };
    house.create(kept.clone()).await.1.unwrap_err();
    assert_eq!(house.manager.create(kept).await.unwrap_err().code, Code::Conflict);
}

#[tokio::test]
async fn a_restore_that_came_to_nothing_does_not_pin_its_snapshot() {
    let house = test_env();
    let id = source(&house).await;
    let snapshot = house.snapshot(&id, "my-env").await.unwrap().id.to_string();
    house.script.shelf.restore.lock().unwrap().push_back(Act::Untouched(Code::MissingDependency));
    let (failed, _) = house.restore(&snapshot).await;
    assert_eq!(failed.state, State::Failed);
    assert_eq!(house.manager.snapshot_view(&snapshot).await.unwrap().sandboxes.len(), 0);
    let (ready, _) = house.restore(&snapshot).await;
    assert_eq!(
        house.delete(&snapshot, false).await.unwrap_err().code,
        Code::InUse,
        "of that one it is"
    );
    assert_eq!(house.destroy(ready.id.as_str()).await.1, Ok(()));
    house.delete(&snapshot, false).await.unwrap();
    assert_eq!(house.listed().await, Vec::<(String, SnapshotState)>::new());
    let again = RecreateRequest { id: failed.id.to_string(), ..RecreateRequest::default() };
    assert_eq!(house.manager.recreate(&again).await.unwrap_err().code, Code::NotFound);
}

#[tokio::test]
async fn a_failed_record_says_what_was_rewritten() {
    let house = test_env();
    house.script(&[Act::Fail(Code::OperationFailed, "up failed")], &[], &[]);
    let (failed, _) = house.create(CreateRequest::default()).await;
    assert_eq!(failed.rewrites[0].path, "services.web.container_name");
}

#[tokio::test]
async fn no_hint_names_what_is_destroyed() {
    let house = test_env();
    let (made, _) = house.create(shop()).await;
    assert!(house.manager.get("shopp").await.unwrap_err().hint.unwrap().contains("shop?"));
    assert_eq!(house.destroy(made.id.as_str()).await.1, Ok(()));
    let hint = house.manager.get("shopp").await.unwrap_err().hint.unwrap();
    assert!(!hint.contains("did you mean"), "{hint}");
}
