//! What somebody was shown is what is acted on.

use crate::support::json_assertions::JsonAssertions as _;
use crate::test_env::{from_snapshot, of, with_sandbox, with_snapshot};
use sandboxer::domain::Code;
use sandboxer::domain::request::{RestoreRequest, SnapshotDeleteRequest};
use sandboxer::domain::snapshot::SnapshotState;

#[tokio::test]
async fn whoever_insists_deletes_only_from_under_what_was_seen() {
    let (house, snapshot) = with_snapshot().await;
    let first = house.restore(&snapshot).await.0.id;
    let seen = house.manager.snapshot_view(&snapshot).await.unwrap();
    let insist = |dependants: Vec<String>| SnapshotDeleteRequest {
        revision: Some(seen.record.revision),
        force: true,
        dependants: Some(dependants),
        ..of(&snapshot)
    };
    let second = house.restore(&snapshot).await.0.id;
    let fault = house.manager.delete_snapshot(&insist(seen.dependants())).await.unwrap_err();
    fault.coded(Code::Conflict);
    assert!(fault.message.contains(second.as_str()), "{fault}");
    assert!(!fault.message.contains(first.as_str()), "{fault}");
    assert_eq!(house.listed().await, [("my-env".into(), SnapshotState::Ready)]);
    // One that is gone again is no reason.
    house.destroy(&first).await.1.unwrap();
    let now = vec![format!("sandbox {first}"), format!("sandbox {second}")];
    house.delete_as(&insist(now)).await.unwrap();
    assert!(house.listed().await.is_empty());
}

#[tokio::test]
async fn a_restore_wants_the_revision_that_was_seen() {
    let (house, id) = with_sandbox().await;
    let record = house.snapshot(&id, "my-env").await.unwrap();
    let request = |revision| RestoreRequest { revision, ..from_snapshot(&record.id) };
    let fault = house.manager.restore(&request(Some(record.revision + 1))).await.unwrap_err();
    fault.coded(Code::Conflict).says("changed since it was looked at");
    let (operation, _) =
        house.finished(house.manager.restore(&request(Some(record.revision))).await).await;
    assert_eq!(operation.error, None);
}
