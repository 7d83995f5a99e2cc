//! What a record says of the patches that its sandbox owes, whoever works on it when they come and go.

use std::time::Duration;

use futures_util::StreamExt as _;

use sandboxer::domain::extension::Inspection;
use sandboxer::domain::patch::PatchState;
use sandboxer::domain::pending_patches::settled_state;
use sandboxer::domain::request::{
    ApplyRequest, LabelRequest, RecreateRequest, SleepRequest, SnapshotRequest,
};
use sandboxer::domain::sandbox::State;
use sandboxer::domain::teardown::Resource;
use sandboxer::domain::update::Update;
use sandboxer::domain::{Code, OperationId, SandboxRecord};

use super::patches::patch;
use crate::test_env::script::{Act, Script};
use crate::test_env::{TestEnv, test_env};

/// Operations of one sandbox, and what the extension is asked for when they are under way.
const OPERATIONS: [(&str, &str); 4] =
    [("snapshot", "snapshot"), ("sleep", "sleep"), ("wake", "wake"), ("recreate", "teardown")];

impl TestEnv {
    async fn begun(&self, verb: &str, id: &str) -> OperationId {
        let of = SleepRequest { id: id.to_owned(), ..SleepRequest::default() };
        let queue = match verb {
            "snapshot" => &self.script.shelf.capture,
            "sleep" => &self.script.sleep,
            "wake" => &self.script.wake,
            _ => &self.script.teardown,
        };
        queue.lock().unwrap().push_back(Act::Slow);
        let started = match verb {
            "snapshot" => {
                let request = SnapshotRequest { id: id.to_owned(), ..SnapshotRequest::default() };
                return self.manager.snapshot(&request).await.unwrap().operation.unwrap();
            }
            "sleep" => self.manager.sleep(&of).await,
            "wake" => self.manager.wake(&of).await,
            _ => {
                self.manager
                    .recreate(&RecreateRequest { id: id.to_owned(), ..RecreateRequest::default() })
                    .await
            }
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
        self.asked_for_since(until, before).await;
        operation
    }

    /// Returns when the extension, behind its first `before` questions, was asked for something.
    async fn asked_for_since(&self, what: &str, before: usize) {
        while !self.script.asked()[before..].iter().any(|asked| asked.starts_with(what)) {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }

    async fn record_after(&self, operation: &OperationId, id: &str) -> SandboxRecord {
        while self.manager.operation(operation.as_str()).await.unwrap().finished_at.is_none() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        self.manager.get(id).await.unwrap()
    }

    async fn says_what_it_owes(&self, base: &str, id: &str) -> SandboxRecord {
        let record = self.manager.get(id).await.unwrap();
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

fn there() -> Inspection {
    let resources = vec![Resource { kind: "directory".into(), id: "/srv/sbx".into() }];
    Inspection { resources, ready: true, ..Inspection::default() }
}

#[tokio::test]
async fn one_that_is_added_during_an_operation_is_owed_at_once_and_after_it() {
    for (verb, until) in OPERATIONS {
        let house = test_env();
        let base = house.base("my-env").await;
        house.add(&base, "one").await;
        let id = house.restored(&base).await.id.to_string();
        let operation = house.under_way(verb, until, &id).await;
        house.add(&base, "two").await;
        let during = house.manager.get(&id).await.unwrap();
        assert!(
            during.operation.is_some() && during.patch_state == PatchState::Pending,
            "{verb}: {during:?}"
        );
        let after = house.record_after(&operation, &id).await;
        // What runs a pass has applied it.
        let state = if matches!(verb, "wake" | "recreate") {
            PatchState::Applied
        } else {
            PatchState::Pending
        };
        assert_eq!(
            (&after.operation, &after.patch_state, &after.patch_error),
            (&None, &state, &None),
            "{verb}"
        );
    }
}

#[tokio::test]
async fn one_that_is_added_while_its_pass_ends_is_owed() {
    let house = test_env();
    let base = house.base("my-env").await;
    house.add(&base, "one").await;
    let id = house.restored(&base).await.id.to_string();
    house.add(&base, "two").await;
    *house.script.seen.lock().unwrap() = there();
    // The look behind the pass takes its time.
    house.sleep(&id).await.1.unwrap();
    house.script(&[], &[Act::Well, Act::Slow], &[]);
    let before = house.script.asked().len();
    let operation = house
        .manager
        .wake(&SleepRequest { id: id.clone(), ..SleepRequest::default() })
        .await
        .unwrap()
        .operation;
    house.asked_for_since("inspect", before).await;
    house.add(&base, "three").await;
    let after = house.record_after(&operation.unwrap(), &id).await;
    assert_eq!((house.ran(&id), after.last_patch_sequence), (vec![1, 2], 2));
    assert_eq!((&after.state, &after.patch_state), (&State::Ready, &PatchState::Pending));
}

#[tokio::test]
async fn what_was_said_of_one_that_is_taken_away_during_an_operation_goes_with_it() {
    for (verb, until) in OPERATIONS {
        let house = test_env();
        let base = house.base("my-env").await;
        house.add(&base, "bad").await;
        house.scripts(&[Script::Exits(7)]);
        let record = house.restored(&base).await;
        assert_eq!(record.patch_state, PatchState::Failed);
        let id = record.id.to_string();
        let operation = house.under_way(verb, until, &id).await;
        house.manager.remove_patch(&base, "1").await.unwrap();
        let record = house.record_after(&operation, &id).await;
        assert_eq!(
            (&record.patch_state, &record.patch_error),
            (&PatchState::None, &None),
            "{verb}"
        );
    }
}

/// What stands in the way stays so through whatever runs no pass, with what was said of it.
#[tokio::test]
async fn an_operation_that_fails_says_what_is_owed_too() {
    let house = test_env();
    let base = house.base("my-env").await;
    house.add(&base, "bad").await;
    house.scripts(&[Script::Exits(7)]);
    let record = house.restored(&base).await;
    let id = record.id.as_str();
    house
        .script
        .shelf
        .capture
        .lock()
        .unwrap()
        .push_back(Act::Fail(Code::OperationFailed, "No space left on device"));
    house.snapshot(id, "full").await.unwrap_err();
    let after = house.says_what_it_owes(&base, id).await;
    assert_eq!((after.patch_state, after.patch_error), (PatchState::Failed, record.patch_error));
    house.script.shelf.capture.lock().unwrap().push_back(Act::Panic);
    house.snapshot(id, "broken").await.unwrap_err();
    assert_eq!(house.says_what_it_owes(&base, id).await.patch_state, PatchState::Failed);
}

/// What could not be begun is said of until it is there, or gone, and of no other.
#[tokio::test]
async fn what_was_said_of_one_that_is_gone_is_not_said_of_the_next() {
    let house = test_env();
    let base = house.base("my-env").await;
    house.add(&base, "one").await;
    house.add(&base, "two").await;
    house.scripts(&[Script::NotBegun]);
    let record = house.restored(&base).await;
    let error = record.patch_error.clone().unwrap();
    assert!(
        record.patch_state == PatchState::Pending && error.contains("could not be begun"),
        "{error}"
    );
    house.add(&base, "three").await;
    assert_eq!(house.manager.get(record.id.as_str()).await.unwrap().patch_error, Some(error));
    house.manager.remove_patch(&base, "1").await.unwrap();
    let record = house.manager.get(record.id.as_str()).await.unwrap();
    assert_eq!((record.patch_state, record.patch_error), (PatchState::Pending, None));
}

/// Whoever frees a record may have read the patches before one came.
#[tokio::test]
async fn one_that_comes_between_the_look_and_the_write_is_owed() {
    let house = test_env();
    let base = house.base("my-env").await;
    house.add(&base, "one").await;
    let id = house.restored(&base).await.id.to_string();
    let operation = house.under_way("snapshot", "snapshot", &id).await;
    house.script.list.lock().unwrap().push_back(Act::Slow);
    house.asked_for_since("patches read", 0).await;
    house.other.add_patch(&patch(&base, "two")).await.unwrap();
    assert_eq!(house.record_after(&operation, &id).await.patch_state, PatchState::Pending);
}

/// Whoever adds a patch may meet others who change the record.
#[tokio::test]
async fn a_record_that_others_change_meanwhile_says_what_is_owed_too() {
    let house = test_env();
    let base = house.base("my-env").await;
    let id = house.restored(&base).await.id.to_string();
    house.script.list.lock().unwrap().push_back(Act::Slow);
    let labelling = async {
        house.asked_for_since("patches read", 0).await;
        let set = [("team".to_owned(), "a".to_owned())].into();
        house
            .other
            .label(LabelRequest { id: id.clone(), set, ..LabelRequest::default() })
            .await
            .unwrap()
    };
    let (_, labelled) = tokio::join!(house.add(&base, "one"), labelling);
    assert_eq!(labelled.patch_state, PatchState::None, "it came between");
    let record = house.manager.get(&id).await.unwrap();
    assert_eq!((&record.patch_state, record.labels["team"].as_str()), (&PatchState::Pending, "a"));
}

/// The pass itself says what it ended with: of one that is gone by then it says nothing.
#[tokio::test]
async fn one_that_is_taken_away_while_its_script_runs_is_not_in_the_way() {
    let house = test_env();
    let base = house.base("my-env").await;
    let id = house.restored(&base).await.id.to_string();
    house.add(&base, "one").await;
    house.scripts(&[Script::Hangs]);
    let request = ApplyRequest { id: id.clone(), ..ApplyRequest::default() };
    let operation = house.manager.apply_patches(&request).await.unwrap().operation.unwrap();
    house.asked_for_since("patch 1", 0).await;
    house.other.remove_patch(&base, "1").await.unwrap();
    assert_eq!(house.manager.get(&id).await.unwrap().patch_state, PatchState::Applying);
    house.manager.cancel(&operation).await.unwrap();
    let record = house.record_after(&operation, &id).await;
    assert_eq!((&record.patch_state, &record.patch_error), (&PatchState::None, &None));
    assert_eq!(record.applied_patches[0].state, PatchState::Unknown, "what ran, ran");
}

#[tokio::test]
async fn what_another_processs_patch_means_for_a_sandbox_is_told() {
    let house = test_env();
    let base = house.base("my-env").await;
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
        id: id.to_string(),
        revision: Some(pending.revision),
        set: [("a".to_owned(), "b".to_owned())].into(),
        ..LabelRequest::default()
    };
    house.manager.label(request).await.unwrap();
    house.other.remove_patch(&base, "1").await.unwrap();
    told(PatchState::None).await;
}
