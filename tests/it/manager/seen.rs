//! What somebody was shown is what is acted on.

use sandboxer::domain::Code;
use sandboxer::domain::record::Record;
use sandboxer::domain::request::{RestoreRequest, SnapshotDeleteRequest};
use sandboxer::domain::snapshot::SnapshotState;

use super::snapshots::source;
use crate::test_env::test_env;

#[tokio::test]
async fn whoever_insists_deletes_only_from_under_what_was_seen() {
    let house = test_env();
    let id = source(&house).await;
    let snapshot = house.snapshot(&id, "my-env").await.unwrap().id.to_string();
    let first = house.restore(&snapshot).await.0.id;
    let seen = house.manager.snapshot_view(&snapshot).await.unwrap();
    let insist = |dependants: Vec<String>| SnapshotDeleteRequest {
        id: snapshot.clone(),
        revision: Some(seen.record.revision),
        force: true,
        dependants: Some(dependants),
        ..SnapshotDeleteRequest::default()
    };
    let second = house.restore(&snapshot).await.0.id;
    let fault = house.manager.delete_snapshot(&insist(seen.dependants())).await.unwrap_err();
    assert_eq!(fault.code, Code::Conflict, "{fault}");
    assert!(
        fault.message.contains(second.as_str()) && !fault.message.contains(first.as_str()),
        "{fault}"
    );
    assert_eq!(house.listed().await, [("my-env".into(), SnapshotState::Ready)]);
    // One that is gone again is no reason.
    house.destroy(first.as_str()).await.1.unwrap();
    let now = vec![format!("sandbox {first}"), format!("sandbox {second}")];
    let started = house.manager.delete_snapshot(&insist(now)).await.unwrap();
    house.manager.wait(&started.operation.unwrap()).await.and_then(Record::into_snapshot).unwrap();
    assert!(house.listed().await.is_empty());
}

#[tokio::test]
async fn a_restore_wants_the_revision_that_was_seen() {
    let house = test_env();
    let id = source(&house).await;
    let record = house.snapshot(&id, "my-env").await.unwrap();
    let request = |revision| RestoreRequest {
        snapshot: record.id.to_string(),
        revision,
        ..RestoreRequest::default()
    };
    let fault = house.manager.restore(&request(Some(record.revision + 1))).await.unwrap_err();
    assert!(
        fault.code == Code::Conflict && fault.message.contains("changed since it was looked at"),
        "{fault}"
    );
    let started = house.manager.restore(&request(Some(record.revision))).await.unwrap();
    let (operation, _) = house.manager.finish(&started.operation.unwrap()).await.unwrap();
    assert_eq!(operation.error, None);
}
