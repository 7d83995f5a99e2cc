//! How a cancelled operation was left: undone, stopped (maybe half done), or done anyway; for every kind, whoever asks.

use std::time::Duration;

use sandboxer::domain::error::Code;
use sandboxer::domain::extension::Inspection;
use sandboxer::domain::operation::CancelOutcome;
use sandboxer::domain::request::{
    ApplyRequest, CreateRequest, DestroyRequest, RecreateRequest, RestoreRequest, SleepRequest,
    SnapshotCopyRequest, SnapshotDeleteRequest, SnapshotRequest,
};
use sandboxer::domain::sandbox::State;
use sandboxer::domain::teardown::Resource;
use sandboxer::domain::{Operation, OperationId, OperationState};

use super::snapshots::source;
use crate::test_env::script::{Act, Script};
use crate::test_env::{TestEnv, test_env};

/// Cancels an operation once the script was asked for something, by this process and by another; the operation as it ended.
async fn cancelled(
    house: &TestEnv,
    operation: Option<OperationId>,
    asked: &str,
    elsewhere: bool,
) -> Operation {
    let operation = operation.unwrap();
    tokio::time::timeout(Duration::from_secs(20), async {
        asked_more(house, asked, 0).await;
        let by = if elsewhere { &house.other } else { &house.manager };
        by.cancel(&operation).await.unwrap();
        // Its lock is free behind that.
        house.manager.finish(&operation).await.unwrap();
        house.other.operation(operation.as_str()).await.unwrap()
    })
    .await
    .unwrap_or_else(|_| panic!("{asked} did not end: {:?}", house.script.asked()))
}

fn count(house: &TestEnv, asked: &str) -> usize {
    house.script.asked().iter().filter(|one| one.starts_with(asked)).count()
}

/// Returns once the script was asked for something more often than that.
async fn asked_more(house: &TestEnv, asked: &str, before: usize) {
    while count(house, asked) <= before {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

/// The state, the outcome, and what to look at.
fn left(operation: &Operation) -> (OperationState, Option<CancelOutcome>, String) {
    assert!(operation.cancel_requested, "{operation:?}");
    let error = operation.error.as_ref();
    let told = error.and_then(|error| error.cancel_outcome());
    assert_eq!(told, operation.cancel_outcome.clone().filter(|_| error.is_some()), "{operation:?}");
    (
        operation.state.clone(),
        operation.cancel_outcome.clone(),
        error.and_then(|e| e.hint.clone()).unwrap_or_default(),
    )
}

#[track_caller]
fn undone(operation: &Operation) {
    let (state, outcome, _) = left(operation);
    assert_eq!(
        (state, outcome),
        (OperationState::Cancelled, Some(CancelOutcome::Undone)),
        "{operation:?}"
    );
}

#[track_caller]
fn stopped(operation: &Operation, look: &str) {
    let (state, outcome, hint) = left(operation);
    assert_eq!(
        (state, outcome),
        (OperationState::Cancelled, Some(CancelOutcome::Stopped)),
        "{operation:?}"
    );
    assert!(hint.contains(look), "{hint:?} does not lead to {look:?}");
}

fn there(ready: bool, asleep: bool) -> Inspection {
    let resources = vec![Resource { kind: "directory".into(), id: "/srv/sbx".into() }];
    Inspection { resources, ready, asleep, ..Inspection::default() }
}

#[tokio::test]
async fn a_create_is_undone_unless_something_of_it_is_left() {
    for elsewhere in [false, true] {
        let house = test_env();
        house.script(&[Act::Hang, Act::Hang], &[], &[Act::Well, Act::LeaveNetwork]);
        let started = house.manager.create(CreateRequest::default()).await.unwrap();
        let ended = cancelled(&house, started.operation, "provision", elsewhere).await;
        undone(&ended);
        assert!(ended.error.unwrap().message.contains("nothing of it is left on local"));
        let started = house.manager.create(CreateRequest::default()).await.unwrap();
        asked_more(&house, "provision", 1).await;
        let ended = cancelled(&house, started.operation, "provision", elsewhere).await;
        stopped(&ended, &format!("`sandboxer destroy {}` tries again", started.sandbox.id));
    }
}

#[tokio::test]
async fn a_restore_and_a_recreate_say_whether_the_old_one_is_there() {
    let house = test_env();
    let base = house.base("my-env").await;
    house.script(&[Act::Hang], &[], &[]);
    let request = RestoreRequest { snapshot: base.clone(), ..RestoreRequest::default() };
    let started = house.manager.restore(&request).await.unwrap();
    undone(&cancelled(&house, started.operation, "restore", false).await);
    // Before anything is removed: the archive is read.
    let record = house.restored(&base).await;
    house.script.shelf.verify.lock().unwrap().push_back(Act::Hang);
    let again = RecreateRequest { id: record.id.to_string(), ..RecreateRequest::default() };
    let started = house.manager.recreate(&again).await.unwrap();
    undone(&cancelled(&house, started.operation, "verify", false).await);
    assert_eq!(house.manager.get(record.id.as_str()).await.unwrap().state, State::Ready);
    // In the middle of the removal, and after it.
    let id = source(&house).await;
    let again = RecreateRequest { id: id.clone(), ..RecreateRequest::default() };
    house.script(&[], &[], &[Act::Hang]);
    let before = count(&house, "teardown");
    let started = house.manager.recreate(&again).await.unwrap();
    asked_more(&house, "teardown", before).await;
    stopped(
        &cancelled(&house, started.operation, "teardown", true).await,
        &format!("`sandboxer recreate {id}`"),
    );
    house.script(&[Act::Hang], &[], &[]);
    let before = count(&house, "provision");
    let started = house.manager.recreate(&again).await.unwrap();
    asked_more(&house, "provision", before).await;
    let ended = cancelled(&house, started.operation, "provision", false).await;
    stopped(&ended, &format!("`sandboxer recreate {id}` makes it again"));
}

#[tokio::test]
async fn a_destroy_that_is_cut_off_is_stopped_and_one_that_waits_for_another_says_whom_it_ended() {
    let house = test_env();
    let id = source(&house).await;
    house.script(&[], &[], &[Act::Hang]);
    let request = DestroyRequest { id: id.clone(), ..DestroyRequest::default() };
    let started = house.manager.destroy(&request).await.unwrap();
    stopped(&cancelled(&house, started.operation, "teardown", true).await, "`sandboxer destroy");
    // The other one takes its time to end.
    let id = source(&house).await;
    house.script.sleep.lock().unwrap().push_back(Act::Hang);
    house.script(&[], &[Act::Slow], &[]);
    house.manager.sleep(&SleepRequest { id: id.clone(), ..SleepRequest::default() }).await.unwrap();
    asked_more(&house, "sleep", 0).await;
    let request = DestroyRequest { id: id.clone(), ..DestroyRequest::default() };
    let started = house.other.destroy(&request).await.unwrap();
    house.other.cancel(started.operation.as_ref().unwrap()).await.unwrap();
    let (ended, _) = house.other.finish(started.operation.as_ref().unwrap()).await.unwrap();
    match ended.cancel_outcome.clone().unwrap() {
        // It was asked before it looked.
        CancelOutcome::Undone => undone(&ended),
        _ => stopped(&ended, &format!("`sandboxer get {id}`")),
    }
}

/// Whoever cancels it before the host begins keeps the sandbox as it was: no sweep takes it for a removal that began.
#[tokio::test]
async fn a_removal_that_waits_in_line_for_its_host_is_undone() {
    for elsewhere in [false, true] {
        let house = test_env();
        let id = source(&house).await;
        let before = house.manager.get(&id).await.unwrap();
        let as_before = async || {
            let now = house.manager.get(&id).await.unwrap();
            assert_eq!((&now.state, &now.reason), (&before.state, &before.reason));
            assert_eq!((now.since, &now.operation), (before.since, &None));
        };
        house.script(&[], &[], &[Act::InLine, Act::InLine]);
        let request = DestroyRequest { id: id.clone(), ..DestroyRequest::default() };
        let started = house.manager.destroy(&request).await.unwrap();
        undone(&cancelled(&house, started.operation, "teardown", elsewhere).await);
        as_before().await;
        let again = RecreateRequest { id: id.clone(), ..RecreateRequest::default() };
        let started = house.manager.recreate(&again).await.unwrap();
        asked_more(&house, "teardown", 1).await;
        undone(&cancelled(&house, started.operation, "teardown", elsewhere).await);
        as_before().await;
    }
}

/// A host that was lost in the middle may have begun.
#[tokio::test]
async fn a_removal_whose_host_was_lost_before_it_was_cancelled_is_stopped() {
    let house = test_env();
    let id = source(&house).await;
    house.script(&[], &[], &[Act::Fail(Code::HostUnreachable, "lost"), Act::InLine]);
    let request = DestroyRequest { id: id.clone(), ..DestroyRequest::default() };
    let started = house.manager.destroy(&request).await.unwrap();
    asked_more(&house, "teardown", 1).await;
    stopped(&cancelled(&house, started.operation, "teardown", false).await, "`sandboxer destroy");
    assert_eq!(house.manager.get(&id).await.unwrap().state, State::Destroying);
}

#[tokio::test]
async fn a_sleep_is_undone_stopped_or_done_by_what_the_host_says() {
    for (seen, outcome, state) in [
        (there(true, false), CancelOutcome::Undone, State::Ready),
        (there(false, false), CancelOutcome::Stopped, State::Ready),
        (there(false, true), CancelOutcome::Done, State::Sleeping),
    ] {
        let house = test_env();
        let id = source(&house).await;
        *house.script.seen.lock().unwrap() = seen;
        house.script.sleep.lock().unwrap().push_back(Act::Hang);
        let started = house
            .manager
            .sleep(&SleepRequest { id: id.clone(), ..SleepRequest::default() })
            .await
            .unwrap();
        let ended = cancelled(&house, started.operation, "sleep", true).await;
        assert_eq!(ended.cancel_outcome, Some(outcome.clone()));
        match outcome {
            CancelOutcome::Done => {
                assert_eq!((&ended.state, &ended.error), (&OperationState::Succeeded, &None));
            }
            CancelOutcome::Undone => undone(&ended),
            _ => stopped(&ended, &format!("`sandboxer get {id}`")),
        }
        assert_eq!(house.manager.get(&id).await.unwrap().state, state);
    }
}

#[tokio::test]
async fn a_wake_is_undone_unless_a_script_was_cut_off() {
    let house = test_env();
    let base = house.base("my-env").await;
    let record = house.restored(&base).await;
    *house.script.seen.lock().unwrap() = there(false, true);
    let request = SleepRequest { id: record.id.to_string(), ..SleepRequest::default() };
    house.sleep(record.id.as_str()).await.1.unwrap();
    house.script.wake.lock().unwrap().push_back(Act::Hang);
    let started = house.manager.wake(&request).await.unwrap();
    undone(&cancelled(&house, started.operation, "wake", false).await);
    house.add(&base, "one").await;
    house.scripts(&[Script::Hangs]);
    let started = house.manager.wake(&request).await.unwrap();
    stopped(&cancelled(&house, started.operation, "patch 1", true).await, "--retry` runs it again");
}

#[tokio::test]
async fn a_patch_is_stopped_and_one_that_was_not_begun_is_as_before() {
    for elsewhere in [false, true] {
        let house = test_env();
        let base = house.base("my-env").await;
        let record = house.restored(&base).await;
        house.add(&base, "one").await;
        house.scripts(&[Script::Hangs]);
        let request = ApplyRequest { id: record.id.to_string(), ..ApplyRequest::default() };
        let started = house.manager.apply_patches(&request).await.unwrap();
        let ended = cancelled(&house, started.operation, "patch 1", elsewhere).await;
        stopped(&ended, &format!("`sandboxer shell {}`", record.id));
        assert!(ended.error.unwrap().message.contains("may be half done"));
    }
    let house = test_env();
    let base = house.base("my-env").await;
    let record = house.restored(&base).await;
    house.add(&base, "one").await;
    let request = ApplyRequest { id: record.id.to_string(), ..ApplyRequest::default() };
    // Whoever reads the patches is slow: the cancel comes before the script.
    house.script.list.lock().unwrap().push_back(Act::Slow);
    let started = house.manager.apply_patches(&request).await.unwrap();
    let ended = cancelled(&house, started.operation, "patches read", false).await;
    undone(&ended);
    let after = house.manager.get(record.id.as_str()).await.unwrap();
    assert_eq!((after.applied_patches, house.ran(record.id.as_str())), (Vec::new(), Vec::new()));
}

#[tokio::test]
async fn work_on_a_snapshot_is_undone_or_says_what_may_be_left() {
    for elsewhere in [false, true] {
        let house = test_env();
        let id = source(&house).await;
        let take = SnapshotRequest {
            id: id.clone(),
            name: Some("first".into()),
            ..SnapshotRequest::default()
        };
        house.script.shelf.capture.lock().unwrap().push_back(Act::Hang);
        let started = house.manager.snapshot(&take).await.unwrap();
        undone(&cancelled(&house, started.operation, "snapshot", elsewhere).await);

        let snapshot = house.snapshot(&id, "my-env").await.unwrap().id.to_string();
        house.script.shelf.verify.lock().unwrap().push_back(Act::Hang);
        let started = house.manager.verify_snapshot(&snapshot).await.unwrap();
        undone(&cancelled(&house, started.operation, "verify", elsewhere).await);

        let request = SnapshotCopyRequest { id: snapshot.clone(), host: "second".to_owned() };
        house.script.shelf.copy.lock().unwrap().push_back(Act::Hang);
        let started = house.manager.copy_snapshot(&request).await.unwrap();
        undone(&cancelled(&house, started.operation, "copy", elsewhere).await);

        house.script.shelf.remove.lock().unwrap().push_back(Act::Hang);
        let request =
            SnapshotDeleteRequest { id: snapshot.clone(), ..SnapshotDeleteRequest::default() };
        let before = count(&house, "remove");
        let started = house.manager.delete_snapshot(&request).await.unwrap();
        asked_more(&house, "remove", before).await;
        let look =
            format!("`sandboxer recover` or `sandboxer snapshots delete {snapshot}` goes on");
        stopped(&cancelled(&house, started.operation, "remove", elsewhere).await, &look);
    }
    let house = test_env();
    let id = source(&house).await;
    house.script.shelf.capture.lock().unwrap().push_back(Act::Hang);
    house
        .script
        .shelf
        .remove
        .lock()
        .unwrap()
        .push_back(Act::Fail(sandboxer::domain::Code::HostUnreachable, "no route"));
    let take = SnapshotRequest { id, ..SnapshotRequest::default() };
    let started = house.manager.snapshot(&take).await.unwrap();
    stopped(
        &cancelled(&house, started.operation, "snapshot", false).await,
        "`sandboxer recover` looks again",
    );
}

#[tokio::test]
async fn whoever_listens_hears_that_another_process_began_and_ended_something() {
    use futures_util::StreamExt as _;
    let house = test_env();
    let base = house.base("my-env").await;
    let record = house.restored(&base).await;
    house.add(&base, "one").await;
    let go_on = std::sync::Arc::new(tokio::sync::Notify::new());
    house.scripts(&[Script::Until(std::sync::Arc::clone(&go_on))]);
    let mut updates = house.manager.subscribe().await.unwrap();
    let request = ApplyRequest { id: record.id.to_string(), ..ApplyRequest::default() };
    let operation = house.other.apply_patches(&request).await.unwrap().operation.unwrap();
    let mut heard = async |state: OperationState| {
        while let Some(update) = updates.next().await {
            let now = house.manager.operation(operation.as_str()).await.unwrap().state;
            if update == sandboxer::domain::update::Update::Operations && now == state {
                return;
            }
        }
    };
    heard(OperationState::Running).await;
    go_on.notify_one();
    heard(OperationState::Succeeded).await;
}
