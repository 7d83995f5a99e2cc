//! How a cancelled operation was left: undone, stopped (maybe half done), or done anyway; for every kind, whoever asks.

use std::time::Duration;

use futures_util::future::LocalBoxFuture;
use sandboxer::domain::Error;
use sandboxer::domain::error::Code;
use sandboxer::domain::operation::CancelOutcome;
use sandboxer::domain::request::{CreateRequest, SnapshotCopyRequest, SnapshotStarted, Started};
use sandboxer::domain::sandbox::State;
use sandboxer::domain::{Operation, OperationId, OperationState};

use crate::support::json_assertions::JsonAssertions as _;
use crate::test_env::script::{Act, Script};
use crate::test_env::{
    TestEnv, from_snapshot, named, of, test_env, there, with_restored, with_sandbox, with_snapshot,
};

/// What was begun, with its operation.
trait Begun {
    fn operation(self) -> OperationId;
}

impl Begun for Started {
    fn operation(self) -> OperationId {
        self.operation.unwrap()
    }
}

impl Begun for SnapshotStarted {
    fn operation(self) -> OperationId {
        self.operation.unwrap()
    }
}

/// Begins something and cancels it once the script was asked for its step, by this process or by another; the operation as it
/// ended.
fn cancelled<'a>(
    house: &'a TestEnv,
    begin: impl Future<Output = Result<impl Begun, Error>> + 'a,
    step: &'a str,
    elsewhere: bool,
) -> LocalBoxFuture<'a, Operation> {
    let before = house.script.asked().len();
    let ended = async move {
        let operation = begin.await.unwrap().operation();
        house.script.until_asked_since(step, before).await;
        let by = if elsewhere { &house.other } else { &house.manager };
        by.cancel(&operation).await.unwrap();
        // Its lock is free behind that.
        house.manager.finish(&operation).await.unwrap();
        house.other.operation(operation.as_str()).await.unwrap()
    };
    let ended = tokio::time::timeout(Duration::from_secs(20), ended);
    Box::pin(async move {
        let late = |_| panic!("{step} did not end: {:?}", house.script.asked());
        ended.await.unwrap_or_else(late)
    })
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
    assert_eq!(state, OperationState::Cancelled, "{operation:?}");
    assert_eq!(outcome, Some(CancelOutcome::Undone), "{operation:?}");
}

#[track_caller]
fn stopped(operation: &Operation, look: &str) {
    let (state, outcome, hint) = left(operation);
    assert_eq!(state, OperationState::Cancelled, "{operation:?}");
    assert_eq!(outcome, Some(CancelOutcome::Stopped), "{operation:?}");
    assert!(hint.contains(look), "{hint:?} does not lead to {look:?}");
}

#[tokio::test]
async fn a_create_is_undone_unless_something_of_it_is_left() {
    for elsewhere in [false, true] {
        let house = test_env();
        house.script(&[Act::Hang, Act::Hang], &[], &[Act::Well, Act::LeaveNetwork]);
        let create = || house.manager.create(CreateRequest::default());
        let ended = cancelled(&house, create(), "provision", elsewhere).await;
        undone(&ended);
        ended.error.unwrap().says("nothing of it is left on local");
        let ended = cancelled(&house, create(), "provision", elsewhere).await;
        let id = ended.subject.sandbox().unwrap();
        stopped(&ended, &format!("`sandboxer destroy {id}` tries again"));
    }
}

#[tokio::test]
async fn a_restore_and_a_recreate_say_whether_the_old_one_is_there() {
    let (house, base) = with_snapshot().await;
    house.script(&[Act::Hang], &[], &[]);
    let restore = from_snapshot(&base);
    undone(&cancelled(&house, house.manager.restore(&restore), "restore", false).await);
    // Before anything is removed: the archive is read.
    let record = house.restored(&base).await;
    house.script.shelf.verify.push(Act::Hang);
    let recreate = of(&record.id);
    undone(&cancelled(&house, house.manager.recreate(&recreate), "verify", false).await);
    assert_eq!(house.record(&record.id).await.state, State::Ready);
    // In the middle of the removal, and after it.
    let id = house.ready().await;
    let recreate = of(&id);
    house.script(&[], &[], &[Act::Hang]);
    let ended = cancelled(&house, house.manager.recreate(&recreate), "teardown", true).await;
    stopped(&ended, &format!("`sandboxer recreate {id}`"));
    house.script(&[Act::Hang], &[], &[]);
    let ended = cancelled(&house, house.manager.recreate(&recreate), "provision", false).await;
    stopped(&ended, &format!("`sandboxer recreate {id}` makes it again"));
}

#[tokio::test]
async fn a_destroy_that_is_cut_off_is_stopped_and_one_that_waits_for_another_says_whom_it_ended() {
    let (house, id) = with_sandbox().await;
    house.script(&[], &[], &[Act::Hang]);
    let ended = cancelled(&house, house.manager.destroy(&of(&id)), "teardown", true).await;
    stopped(&ended, "`sandboxer destroy");
    // The other one takes its time to end.
    let id = house.ready().await;
    house.script.sleep.push(Act::Hang);
    house.script(&[], &[Act::Slow], &[]);
    house.manager.sleep(&of(&id)).await.unwrap();
    house.script.until_asked("sleep").await;
    let operation = house.other.destroy(&of(&id)).await.unwrap().operation.unwrap();
    house.other.cancel(&operation).await.unwrap();
    let (ended, _) = house.other.finish(&operation).await.unwrap();
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
        let (house, id) = with_sandbox().await;
        let before = house.record(&id).await;
        let as_before = async || {
            let now = house.record(&id).await;
            assert_eq!((&now.state, &now.reason), (&before.state, &before.reason));
            assert_eq!((now.since, &now.operation), (before.since, &None));
        };
        house.script(&[], &[], &[Act::InLine, Act::InLine]);
        undone(&cancelled(&house, house.manager.destroy(&of(&id)), "teardown", elsewhere).await);
        as_before().await;
        undone(&cancelled(&house, house.manager.recreate(&of(&id)), "teardown", elsewhere).await);
        as_before().await;
    }
}

/// A host that was lost in the middle may have begun.
#[tokio::test]
async fn a_removal_whose_host_was_lost_before_it_was_cancelled_is_stopped() {
    let (house, id) = with_sandbox().await;
    house.script(&[], &[], &[Act::Fail(Code::HostUnreachable, "lost"), Act::InLine]);
    let destroy_tries_twice = async {
        let started = house.manager.destroy(&of(&id)).await;
        while house.teardowns() < 2 {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        started
    };
    let ended = cancelled(&house, destroy_tries_twice, "teardown", false).await;
    stopped(&ended, "`sandboxer destroy");
    assert_eq!(house.record(&id).await.state, State::Destroying);
}

#[tokio::test]
async fn a_sleep_is_undone_stopped_or_done_by_what_the_host_says() {
    for (seen, outcome, state) in [
        (there(true, false), CancelOutcome::Undone, State::Ready),
        (there(false, false), CancelOutcome::Stopped, State::Ready),
        (there(false, true), CancelOutcome::Done, State::Sleeping),
    ] {
        let (house, id) = with_sandbox().await;
        house.script.seen.set(seen);
        house.script.sleep.push(Act::Hang);
        let ended = cancelled(&house, house.manager.sleep(&of(&id)), "sleep", true).await;
        assert_eq!(ended.cancel_outcome, Some(outcome.clone()));
        match outcome {
            CancelOutcome::Done => {
                assert_eq!((&ended.state, &ended.error), (&OperationState::Succeeded, &None));
            }
            CancelOutcome::Undone => undone(&ended),
            _ => stopped(&ended, &format!("`sandboxer get {id}`")),
        }
        assert_eq!(house.record(&id).await.state, state);
    }
}

#[tokio::test]
async fn a_wake_is_undone_unless_a_script_was_cut_off() {
    let (house, base, record) = with_restored().await;
    house.script.seen.set(there(false, true));
    house.sleep(&record.id).await.1.unwrap();
    house.script.wake.push(Act::Hang);
    let wake = of(&record.id);
    undone(&cancelled(&house, house.manager.wake(&wake), "wake", false).await);
    house.add(&base, "one").await;
    house.scripts(&[Script::Hangs]);
    let ended = cancelled(&house, house.manager.wake(&wake), "patch 1", true).await;
    stopped(&ended, "--retry` runs it again");
}

#[tokio::test]
async fn a_patch_is_stopped_and_one_that_was_not_begun_is_as_before() {
    for elsewhere in [false, true] {
        let (house, base, record) = with_restored().await;
        house.add(&base, "one").await;
        house.scripts(&[Script::Hangs]);
        let apply = of(&record.id);
        let passing = house.manager.apply_patches(&apply);
        let ended = cancelled(&house, passing, "patch 1", elsewhere).await;
        stopped(&ended, &format!("`sandboxer shell {}`", record.id));
        ended.error.unwrap().says("may be half done");
    }
    let (house, base, record) = with_restored().await;
    house.add(&base, "one").await;
    // Whoever reads the patches is slow: the cancel comes before the script.
    house.script.list.push(Act::Slow);
    let apply = of(&record.id);
    let passing = house.manager.apply_patches(&apply);
    undone(&cancelled(&house, passing, "patches read", false).await);
    let after = house.record(&record.id).await;
    assert_eq!((after.applied_patches, house.ran(&record.id)), (Vec::new(), Vec::new()));
}

#[tokio::test]
async fn work_on_a_snapshot_is_undone_or_says_what_may_be_left() {
    for elsewhere in [false, true] {
        let (house, id) = with_sandbox().await;
        let shelf = &house.script.shelf;
        shelf.capture.push(Act::Hang);
        let take = named(&id, "first");
        undone(&cancelled(&house, house.manager.snapshot(&take), "snapshot", elsewhere).await);
        assert_eq!((house.there(), house.record(&id).await.operation), (Vec::new(), None));

        let snapshot = house.snapshot(&id, "my-env").await.unwrap().id.to_string();
        shelf.verify.push(Act::Hang);
        let reading = house.manager.verify_snapshot(&snapshot);
        undone(&cancelled(&house, reading, "verify", elsewhere).await);

        let to_second = SnapshotCopyRequest { id: snapshot.clone(), host: "second".to_owned() };
        shelf.copy.push(Act::Hang);
        let copying = house.manager.copy_snapshot(&to_second);
        undone(&cancelled(&house, copying, "copy", elsewhere).await);

        shelf.remove.push(Act::Hang);
        let delete = of(&snapshot);
        let deleting = house.manager.delete_snapshot(&delete);
        let ended = cancelled(&house, deleting, "remove", elsewhere).await;
        let look =
            format!("`sandboxer recover` or `sandboxer snapshots delete {snapshot}` goes on");
        stopped(&ended, &look);
    }
    let (house, id) = with_sandbox().await;
    house.script.shelf.capture.push(Act::Hang);
    house.script.shelf.remove.push(Act::no_route());
    let ended = cancelled(&house, house.manager.snapshot(&of(id)), "snapshot", false).await;
    stopped(&ended, "`sandboxer recover` looks again");
}

#[tokio::test]
async fn whoever_listens_hears_that_another_process_began_and_ended_something() {
    use futures_util::StreamExt as _;
    let (house, base, record) = with_restored().await;
    house.add(&base, "one").await;
    let go_on = std::sync::Arc::new(tokio::sync::Notify::new());
    house.scripts(&[Script::Until(std::sync::Arc::clone(&go_on))]);
    let mut updates = house.manager.subscribe().await.unwrap();
    let operation = house.other.apply_patches(&of(&record.id)).await.unwrap().operation.unwrap();
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
