//! A refusal changes nothing: record, events and operations are as before it.

use sandboxer::domain::extension::Inspection;
use sandboxer::domain::request::{CreateRequest, ListQuery};
use sandboxer::domain::sandbox::State;
use sandboxer::domain::snapshot::SnapshotState;
use sandboxer::domain::teardown::{TeardownLine, TeardownOutcome};
use sandboxer::domain::{Code, SandboxRecord};

use super::recover::killed;
use crate::support::json_assertions::JsonAssertions as _;
use crate::test_env::script::Act;
use crate::test_env::{TestEnv, of, with_restored, with_sandbox};

/// All of a record but what counts its writes.
fn content(record: &SandboxRecord) -> SandboxRecord {
    SandboxRecord { revision: 0, pending: Vec::new(), ..record.clone() }
}

impl TestEnv {
    async fn assert_as_before(&self, before: &SandboxRecord, events: usize) {
        assert_eq!(content(&self.other.get(before.id.as_str()).await.unwrap()), content(before));
        assert_eq!(self.event_count().await, events);
        self.assert_nothing_runs().await;
    }

    /// How many events of sandboxes there are.
    async fn event_count(&self) -> usize {
        self.sandbox_kinds().await.len()
    }

    /// Kinds of the events of sandboxes, the oldest first: that a host is another one is told of the host alone.
    async fn sandbox_kinds(&self) -> Vec<String> {
        let events = self.events(&[]).await;
        let of_sandboxes = events.iter().filter(|event| event.sandbox_id.is_some());
        of_sandboxes.map(|event| event.kind.as_str().to_owned()).collect()
    }
}

#[tokio::test]
async fn a_destroy_that_is_refused_changes_nothing() {
    for code in [Code::HostChanged, Code::Conflict, Code::OperationFailed] {
        let (house, id) = with_sandbox().await;
        let (before, events) = (house.record(&id).await, house.event_count().await);
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
async fn what_could_not_be_written_down_to_its_end_is_not_begun() {
    for name in ["snapshots.json", "patches.json"] {
        let (house, _, record) = with_restored().await;
        let (before, events) = (house.record(record.id.as_str()).await, house.event_count().await);
        let file = house.folder.path().join(name);
        let kept = std::fs::read(&file).ok();
        std::fs::write(&file, "{").unwrap();
        let teardowns = house.script.count("teardown");
        let error = house.manager.recreate(&of(&record.id)).await.unwrap_err();
        assert_eq!(error.code, Code::StoreCorrupt, "{error}");
        assert!(error.hint.unwrap().starts_with("nothing of the sandbox was touched; "));
        assert_eq!(house.script.count("teardown"), teardowns);
        if name == "snapshots.json" {
            let error = house.manager.create(CreateRequest::default()).await.unwrap_err();
            assert_eq!(error.code, Code::StoreCorrupt, "{error}");
        }
        match kept {
            Some(kept) => std::fs::write(&file, kept).unwrap(),
            None => std::fs::remove_file(&file).unwrap(),
        }
        house.assert_as_before(&before, events).await;
        assert_eq!(house.other.list(&ListQuery::default()).await.unwrap().len(), 2, "{name}");
    }
}

#[tokio::test]
async fn a_destroy_from_an_old_copy_changes_nothing() {
    let (house, id) = with_sandbox().await;
    let (before, events) = (house.record(&id).await, house.event_count().await);
    house.script.host_counter.set(40);
    // The host says so at first; then it is known.
    assert_eq!(house.destroy(&id).await.1, Err(Code::Conflict));
    house.assert_as_before(&before, events).await;
    house.manager.destroy(&of(&id)).await.unwrap_err().coded(Code::Conflict);
    house.assert_as_before(&before, events).await;
}

#[tokio::test]
async fn a_destroy_that_broke_off_after_it_began_is_not_put_back() {
    let (house, id) = with_sandbox().await;
    house.script(&[], &[], &[Act::Fail(Code::HostChanged, "in the middle")]);
    assert_eq!(house.destroy(&id).await.0.state, State::Destroying);
}

#[tokio::test]
async fn a_destroy_that_is_refused_leaves_what_a_dead_process_left() {
    let (house, id) = with_sandbox().await;
    house.script(&[], &[], &[Act::Hang]);
    let request = of(&id);
    killed(&house, "teardown", |manager| async move { manager.destroy(&request).await });
    let before = house.record(&id).await;
    assert!(before.operation.is_some());
    house.script(&[], &[], &[Act::Untouched(Code::HostChanged)]);
    assert_eq!(house.destroy(&id).await.1, Err(Code::HostChanged));
    assert_eq!(content(&house.record(&id).await), content(&before));
    assert!(house.other.recover().await.unwrap()[0].ok);
    assert_eq!(house.record(&id).await.state, State::Destroyed);
}

#[tokio::test]
async fn a_recreate_that_is_refused_changes_nothing() {
    let (house, id) = with_sandbox().await;
    let (before, events) = (house.record(&id).await, house.event_count().await);
    house.script(&[], &[Act::Fail(Code::HostChanged, "another machine")], &[]);
    assert_eq!(house.recreate(&id).await.1, Err(Code::HostChanged));
    house.assert_as_before(&before, events).await;
    let resource =
        sandboxer::domain::teardown::Resource { kind: "volume".into(), id: "sbx-x_data".into() };
    let line = TeardownLine { resource, outcome: TeardownOutcome::Foreign, reason: None };
    house.script.seen.set(Inspection { foreign: vec![line], ..Inspection::default() });
    assert_eq!(house.recreate(&id).await.1, Err(Code::Conflict));
    house.assert_as_before(&before, events).await;
    house.script.seen.set(Inspection::default());
    house.script(&[], &[], &[Act::Untouched(Code::HostChanged)]);
    assert_eq!(house.recreate(&id).await.1, Err(Code::HostChanged));
    house.assert_as_before(&before, events).await;
    assert_eq!(house.recreate(&id).await.1, Ok(()));
    assert_eq!(house.sandbox_kinds().await[events], "sandbox.destroying");
}

#[tokio::test]
async fn a_sleep_and_a_wake_that_are_refused_change_nothing() {
    let (house, id) = with_sandbox().await;
    let (before, events) = (house.record(&id).await, house.event_count().await);
    house.script.sleep.push(Act::Untouched(Code::HostChanged));
    assert_eq!(house.sleep(&id).await.1, Err(Code::HostChanged));
    house.assert_as_before(&before, events).await;
    house.sleep(&id).await.1.unwrap();
    let (before, events) = (house.record(&id).await, house.event_count().await);
    house.script.wake.push(Act::Untouched(Code::HostChanged));
    assert_eq!(house.wake(&id).await.1, Err(Code::HostChanged));
    house.assert_as_before(&before, events).await;
}

#[tokio::test]
async fn a_snapshot_that_is_refused_leaves_no_record() {
    let (house, id) = with_sandbox().await;
    let (before, events) = (house.record(&id).await, house.event_count().await);
    for code in [Code::HostChanged, Code::Unsupported] {
        house.script.shelf.capture.push(Act::Untouched(code.clone()));
        let fault = house.snapshot(&id, "my-env").await.unwrap_err();
        assert_eq!((fault.code, house.listed().await), (code, Vec::new()));
        house.assert_as_before(&before, events).await;
    }
}

#[tokio::test]
async fn a_deletion_that_is_refused_leaves_the_snapshot_as_it_was() {
    let (house, id) = with_sandbox().await;
    let before = house.snapshot(&id, "my-env").await.unwrap();
    let events = house.event_count().await;
    // What is there names another snapshot, or another installation.
    house.script.shelf.remove.push(Act::Refuse);
    house.delete(&before.id, false).await.unwrap_err().coded(Code::OperationFailed);
    let after = house.manager.snapshot_view("my-env").await.unwrap().record.clone();
    assert_eq!(
        (&after.state, &after.message, &after.operation),
        (&SnapshotState::Ready, &before.message, &None)
    );
    assert_eq!(house.event_count().await, events);
    assert_eq!(house.other.recover().await.unwrap(), Vec::new());
    house.delete(&before.id, false).await.unwrap();
    assert!(house.listed().await.is_empty());
}
