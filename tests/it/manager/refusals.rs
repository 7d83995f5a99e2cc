//! A refusal changes nothing: record, events and operations are as before it.

use sandboxer::domain::extension::Inspection;
use sandboxer::domain::record::Record;
use sandboxer::domain::request::{DestroyRequest, EventQuery, RecreateRequest, SnapshotRequest};
use sandboxer::domain::sandbox::State;
use sandboxer::domain::snapshot::SnapshotState;
use sandboxer::domain::teardown::{TeardownLine, TeardownOutcome};
use sandboxer::domain::{Code, OperationState, SandboxRecord};

use super::recover::killed;
use super::snapshots::source;
use crate::test_env::script::Act;
use crate::test_env::{TestEnv, test_env};

/// All of a record but what counts its writes.
fn content(record: &SandboxRecord) -> SandboxRecord {
    SandboxRecord { revision: 0, pending: Vec::new(), ..record.clone() }
}

impl TestEnv {
    async fn assert_as_before(&self, before: &SandboxRecord, events: usize) {
        assert_eq!(content(&self.other.get(before.id.as_str()).await.unwrap()), content(before));
        assert_eq!(self.event_count().await, events);
        let operations = self.manager.operations().await.unwrap();
        assert!(
            operations.iter().all(|operation| operation.state != OperationState::Running),
            "{operations:?}"
        );
    }

    /// How many events of sandboxes there are.
    async fn event_count(&self) -> usize {
        self.sandbox_kinds().await.len()
    }

    /// Kinds of the events of sandboxes, the oldest first: that a host is another one is told of the host alone.
    async fn sandbox_kinds(&self) -> Vec<String> {
        let events = self.manager.events(&EventQuery::default()).await.unwrap();
        let of_sandboxes = events.iter().filter(|event| event.sandbox_id.is_some());
        of_sandboxes.map(|event| event.kind.as_str().to_owned()).collect()
    }
}

#[tokio::test]
async fn a_destroy_that_is_refused_changes_nothing() {
    for code in [Code::HostChanged, Code::Conflict, Code::OperationFailed] {
        let house = test_env();
        let id = source(&house).await;
        let (before, events) = (house.manager.get(&id).await.unwrap(), house.event_count().await);
        house.script(&[], &[], &[Act::Untouched(code.clone())]);
        assert_eq!(house.destroy(&id).await.1, Err(code));
        house.assert_as_before(&before, events).await;
        assert_eq!(house.other.recover().await.unwrap(), []);
        assert_eq!(house.destroy(&id).await.0.state, State::Destroyed);
        assert_eq!(
            house.sandbox_kinds().await[events..],
            ["sandbox.destroying", "sandbox.destroyed"]
        );
    }
}

#[tokio::test]
async fn a_destroy_from_an_old_copy_changes_nothing() {
    let house = test_env();
    let id = source(&house).await;
    let (before, events) = (house.manager.get(&id).await.unwrap(), house.event_count().await);
    *house.script.host_counter.lock().unwrap() = 40;
    // The host says so at first; then it is known.
    assert_eq!(house.destroy(&id).await.1, Err(Code::Conflict));
    house.assert_as_before(&before, events).await;
    let request = DestroyRequest { id: id.clone(), ..DestroyRequest::default() };
    assert_eq!(house.manager.destroy(&request).await.unwrap_err().code, Code::Conflict);
    house.assert_as_before(&before, events).await;
}

#[tokio::test]
async fn a_destroy_that_broke_off_after_it_began_is_not_put_back() {
    let house = test_env();
    let id = source(&house).await;
    house.script(&[], &[], &[Act::Fail(Code::HostChanged, "in the middle")]);
    assert_eq!(house.destroy(&id).await.0.state, State::Destroying);
}

#[tokio::test]
async fn a_destroy_that_is_refused_leaves_what_a_dead_process_left() {
    let house = test_env();
    let id = source(&house).await;
    house.script(&[], &[], &[Act::Hang]);
    let request = DestroyRequest { id: id.clone(), ..DestroyRequest::default() };
    killed(
        &house,
        "teardown",
        |manager| async move { manager.destroy(&request).await.map(|_| ()) },
    );
    let before = house.manager.get(&id).await.unwrap();
    assert!(before.operation.is_some());
    house.script(&[], &[], &[Act::Untouched(Code::HostChanged)]);
    assert_eq!(house.destroy(&id).await.1, Err(Code::HostChanged));
    assert_eq!(content(&house.manager.get(&id).await.unwrap()), content(&before));
    assert!(house.other.recover().await.unwrap()[0].ok);
    assert_eq!(house.manager.get(&id).await.unwrap().state, State::Destroyed);
}

#[tokio::test]
async fn a_recreate_that_is_refused_changes_nothing() {
    let house = test_env();
    let id = source(&house).await;
    let (before, events) = (house.manager.get(&id).await.unwrap(), house.event_count().await);
    let request = RecreateRequest { id: id.clone(), ..RecreateRequest::default() };
    let recreate = async || {
        let started = house.manager.recreate(&request).await.unwrap();
        house
            .manager
            .finish(&started.operation.unwrap())
            .await
            .unwrap()
            .0
            .error
            .map(|error| error.code)
    };
    house.script(&[], &[Act::Fail(Code::HostChanged, "another machine")], &[]);
    assert_eq!(recreate().await, Some(Code::HostChanged));
    house.assert_as_before(&before, events).await;
    let resource =
        sandboxer::domain::teardown::Resource { kind: "volume".into(), id: "sbx-x_data".into() };
    let line = TeardownLine { resource, outcome: TeardownOutcome::Foreign, reason: None };
    *house.script.seen.lock().unwrap() =
        Inspection { foreign: vec![line], ..Inspection::default() };
    assert_eq!(recreate().await, Some(Code::Conflict));
    house.assert_as_before(&before, events).await;
    *house.script.seen.lock().unwrap() = Inspection::default();
    house.script(&[], &[], &[Act::Untouched(Code::HostChanged)]);
    assert_eq!(recreate().await, Some(Code::HostChanged));
    house.assert_as_before(&before, events).await;
    assert_eq!(recreate().await, None);
    assert_eq!(house.sandbox_kinds().await[events], "sandbox.destroying");
}

#[tokio::test]
async fn a_sleep_and_a_wake_that_are_refused_change_nothing() {
    let house = test_env();
    let id = source(&house).await;
    let (before, events) = (house.manager.get(&id).await.unwrap(), house.event_count().await);
    house.script.sleep.lock().unwrap().push_back(Act::Untouched(Code::HostChanged));
    assert_eq!(house.sleep(&id).await.1, Err(Code::HostChanged));
    house.assert_as_before(&before, events).await;
    house.sleep(&id).await.1.unwrap();
    let (before, events) = (house.manager.get(&id).await.unwrap(), house.event_count().await);
    house.script.wake.lock().unwrap().push_back(Act::Untouched(Code::HostChanged));
    assert_eq!(house.wake(&id).await.1, Err(Code::HostChanged));
    house.assert_as_before(&before, events).await;
}

#[tokio::test]
async fn a_snapshot_that_is_refused_leaves_no_record() {
    let house = test_env();
    let id = source(&house).await;
    let (before, events) = (house.manager.get(&id).await.unwrap(), house.event_count().await);
    for code in [Code::HostChanged, Code::Unsupported] {
        house.script.shelf.capture.lock().unwrap().push_back(Act::Untouched(code.clone()));
        let request = SnapshotRequest { id: id.clone(), ..SnapshotRequest::default() };
        let started = house.manager.snapshot(&request).await.unwrap();
        let fault = house
            .manager
            .wait(&started.operation.unwrap())
            .await
            .and_then(Record::into_snapshot)
            .unwrap_err();
        assert_eq!((fault.code, house.listed().await), (code, Vec::new()));
        house.assert_as_before(&before, events).await;
    }
}

#[tokio::test]
async fn a_deletion_that_is_refused_leaves_the_snapshot_as_it_was() {
    let house = test_env();
    let id = source(&house).await;
    let before = house.snapshot(&id, "my-env").await.unwrap();
    let events = house.event_count().await;
    // What is there names another snapshot, or another installation.
    house.script.shelf.remove.lock().unwrap().push_back(Act::Refuse);
    let fault = house.delete(before.id.as_str(), false).await.unwrap_err();
    assert_eq!(fault.code, Code::OperationFailed);
    let after = house.manager.snapshot_view("my-env").await.unwrap().record.clone();
    assert_eq!(
        (&after.state, &after.message, &after.operation),
        (&SnapshotState::Ready, &before.message, &None)
    );
    assert_eq!(
        (house.event_count().await, house.other.recover().await.unwrap()),
        (events, Vec::new())
    );
    house.delete(before.id.as_str(), false).await.unwrap();
    assert!(house.listed().await.is_empty());
}
