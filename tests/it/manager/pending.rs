//! What a record says of the patches that its sandbox owes, whoever works on it when they come and go.

use std::time::Duration;

use futures_util::StreamExt as _;

use sandboxer::domain::patch::PatchState;
use sandboxer::domain::pending_patches::settled_state;
use sandboxer::domain::request::LabelRequest;
use sandboxer::domain::sandbox::State;
use sandboxer::domain::update::Update;
use sandboxer::domain::{OperationId, SandboxRecord};

use super::patches::patch;
use crate::test_env::script::{Act, Script};
use crate::test_env::{TestEnv, of, there, with_snapshot};

/// Operations of one sandbox, and what the extension is asked for when they are under way.
const OPERATIONS: [(&str, &str); 4] =
    [("snapshot", "snapshot"), ("sleep", "sleep"), ("wake", "wake"), ("recreate", "teardown")];

impl TestEnv {
    async fn begun(&self, verb: &str, id: &str) -> OperationId {
        let queue = match verb {
            "snapshot" => &self.script.shelf.capture,
            "sleep" => &self.script.sleep,
            "wake" => &self.script.wake,
            _ => &self.script.teardown,
        };
        queue.push(Act::Slow);
        let started = match verb {
            "snapshot" => return self.manager.snapshot(&of(id)).await.unwrap().operation.unwrap(),
            "sleep" => self.manager.sleep(&of(id)).await,
            "wake" => self.manager.wake(&of(id)).await,
            _ => self.manager.recreate(&of(id)).await,
        };
        started.unwrap().operation.unwrap()
    }

    /// An operation under way, and the sandbox that it works on.
    async fn under_way(&self, verb: &str, until: &str, id: &str) -> OperationId {
        if verb == "wake" {
            self.sleep(id).await.1.unwrap();
        }
        let before = self.script.asked().len();
        let operation = self.begun(verb, id).await;
        self.script.until_asked_since(until, before).await;
        operation
    }

    async fn record_after(&self, operation: &OperationId, id: &str) -> SandboxRecord {
        while self.manager.operation(operation.as_str()).await.unwrap().finished_at.is_none() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        self.record(id).await
    }

    async fn says_what_it_owes(&self, base: &str, id: &str) -> SandboxRecord {
        let record = self.record(id).await;
        let patches = self.manager.snapshot_view(base).await.unwrap().patches;
        assert_eq!(
            record.patch_state,
            settled_state(&record, &patches),
            "{:?}",
            record.applied_patches
        );
        record
    }
}

#[tokio::test]
async fn one_that_is_added_during_an_operation_is_owed_at_once_and_after_it() {
    for (verb, until) in OPERATIONS {
        let (house, base) = with_snapshot().await;
        house.add(&base, "one").await;
        let id = house.restored(&base).await.id.to_string();
        let operation = house.under_way(verb, until, &id).await;
        house.add(&base, "two").await;
        let during = house.record(&id).await;
        assert!(during.operation.is_some(), "{verb}: {during:?}");
        assert_eq!(during.patch_state, PatchState::Pending, "{verb}: {during:?}");
        let after = house.record_after(&operation, &id).await;
        // What runs a pass has applied it.
        let state = if matches!(verb, "wake" | "recreate") {
            PatchState::Applied
        } else {
            PatchState::Pending
        };
        assert_eq!(after.operation, None, "{verb}");
        assert_eq!(after.patch_state, state, "{verb}");
        assert_eq!(after.patch_error, None, "{verb}");
    }
}

#[tokio::test]
async fn one_that_is_added_while_its_pass_ends_is_owed() {
    let (house, base) = with_snapshot().await;
    house.add(&base, "one").await;
    let id = house.restored(&base).await.id.to_string();
    house.add(&base, "two").await;
    house.script.seen.set(there(true, false));
    // The look behind the pass takes its time.
    house.sleep(&id).await.1.unwrap();
    house.script(&[], &[Act::Well, Act::Slow], &[]);
    let before = house.script.asked().len();
    let operation = house.manager.wake(&of(&id)).await.unwrap().operation;
    house.script.until_asked_since("inspect", before).await;
    house.add(&base, "three").await;
    let after = house.record_after(&operation.unwrap(), &id).await;
    assert_eq!((house.ran(&id), after.last_patch_sequence), (vec![1, 2], 2));
    assert_eq!((&after.state, &after.patch_state), (&State::Ready, &PatchState::Pending));
}

#[tokio::test]
async fn what_was_said_of_one_that_is_taken_away_during_an_operation_goes_with_it() {
    for (verb, until) in OPERATIONS {
        let (house, base) = with_snapshot().await;
        house.add(&base, "bad").await;
        house.scripts(&[Script::Exits(7)]);
        let record = house.restored(&base).await;
        assert_eq!(record.patch_state, PatchState::Failed);
        let id = record.id.to_string();
        let operation = house.under_way(verb, until, &id).await;
        house.manager.remove_patch(&base, "1").await.unwrap();
        let record = house.record_after(&operation, &id).await;
        assert_eq!(record.patch_state, PatchState::None, "{verb}");
        assert_eq!(record.patch_error, None, "{verb}");
    }
}

/// What stands in the way stays so through whatever runs no pass, with what was said of it.
#[tokio::test]
async fn an_operation_that_fails_says_what_is_owed_too() {
    let (house, base) = with_snapshot().await;
    house.add(&base, "bad").await;
    house.scripts(&[Script::Exits(7)]);
    let record = house.restored(&base).await;
    let id = record.id.as_str();
    house.script.shelf.capture.push(Act::full());
    house.snapshot(id, "full").await.unwrap_err();
    let after = house.says_what_it_owes(&base, id).await;
    assert_eq!((after.patch_state, after.patch_error), (PatchState::Failed, record.patch_error));
    house.script.shelf.capture.push(Act::Panic);
    house.snapshot(id, "broken").await.unwrap_err();
    assert_eq!(house.says_what_it_owes(&base, id).await.patch_state, PatchState::Failed);
}

/// What could not be begun is said of until it is there, or gone, and of no other.
#[tokio::test]
async fn what_was_said_of_one_that_is_gone_is_not_said_of_the_next() {
    let (house, base) = with_snapshot().await;
    house.add(&base, "one").await;
    house.add(&base, "two").await;
    house.scripts(&[Script::NotBegun]);
    let record = house.restored(&base).await;
    let error = record.patch_error.clone().unwrap();
    assert_eq!(record.patch_state, PatchState::Pending, "{error}");
    assert!(error.contains("could not be begun"), "{error}");
    house.add(&base, "three").await;
    assert_eq!(house.record(&record.id).await.patch_error, Some(error));
    house.manager.remove_patch(&base, "1").await.unwrap();
    let record = house.record(&record.id).await;
    assert_eq!((record.patch_state, record.patch_error), (PatchState::Pending, None));
}

/// Whoever frees a record may have read the patches before one came.
#[tokio::test]
async fn one_that_comes_between_the_look_and_the_write_is_owed() {
    let (house, base) = with_snapshot().await;
    house.add(&base, "one").await;
    let id = house.restored(&base).await.id.to_string();
    let operation = house.under_way("snapshot", "snapshot", &id).await;
    house.script.list.push(Act::Slow);
    house.script.until_asked("patches read").await;
    house.other.add_patch(&patch(&base, "two")).await.unwrap();
    assert_eq!(house.record_after(&operation, &id).await.patch_state, PatchState::Pending);
}

/// Whoever adds a patch may meet others who change the record.
#[tokio::test]
async fn a_record_that_others_change_meanwhile_says_what_is_owed_too() {
    let (house, base) = with_snapshot().await;
    let id = house.restored(&base).await.id.to_string();
    house.script.list.push(Act::Slow);
    let labelling = async {
        house.script.until_asked("patches read").await;
        let set = [("team".to_owned(), "a".to_owned())].into();
        house.other.label(LabelRequest { set, ..of(&id) }).await.unwrap()
    };
    let (_, labelled) = tokio::join!(house.add(&base, "one"), labelling);
    assert_eq!(labelled.patch_state, PatchState::None, "it came between");
    let record = house.record(&id).await;
    assert_eq!((&record.patch_state, record.labels["team"].as_str()), (&PatchState::Pending, "a"));
}

/// The pass itself says what it ended with: of one that is gone by then it says nothing.
#[tokio::test]
async fn one_that_is_taken_away_while_its_script_runs_is_not_in_the_way() {
    let (house, base) = with_snapshot().await;
    let id = house.restored(&base).await.id.to_string();
    house.add(&base, "one").await;
    house.scripts(&[Script::Hangs]);
    let operation = house.manager.apply_patches(&of(&id)).await.unwrap().operation.unwrap();
    house.script.until_asked("patch 1").await;
    house.other.remove_patch(&base, "1").await.unwrap();
    assert_eq!(house.record(&id).await.patch_state, PatchState::Applying);
    house.manager.cancel(&operation).await.unwrap();
    let record = house.record_after(&operation, &id).await;
    assert_eq!((&record.patch_state, &record.patch_error), (&PatchState::None, &None));
    assert_eq!(record.applied_patches[0].state, PatchState::Unknown, "what ran, ran");
}

#[tokio::test]
async fn what_another_processs_patch_means_for_a_sandbox_is_told() {
    let (house, base) = with_snapshot().await;
    let id = house.restored(&base).await.id;
    let mut updates = house.manager.subscribe().await.unwrap();
    let mut told = async |state: PatchState| {
        let of_it = async {
            loop {
                if let Some(Update::Record(told)) = updates.next().await
                    && told.id == id
                    && told.patch_state == state
                {
                    return told;
                }
            }
        };
        tokio::time::timeout(Duration::from_secs(30), of_it).await.unwrap()
    };
    house.other.add_patch(&patch(&base, "echo 1")).await.unwrap();
    let pending = told(PatchState::Pending).await;
    // A verb on the record as it was told is not refused as one that changed since.
    let request = LabelRequest {
        revision: Some(pending.revision),
        set: [("a".to_owned(), "b".to_owned())].into(),
        ..of(&id)
    };
    house.manager.label(request).await.unwrap();
    house.other.remove_patch(&base, "1").await.unwrap();
    told(PatchState::None).await;
}
