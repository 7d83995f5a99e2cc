//! What copies leave that died, what is deleted under somebody's hands, and what the event log was not told.

use sandboxer::domain::event::EventKind;
use sandboxer::domain::record::Record;
use sandboxer::domain::request::{
    EventQuery, RecreateRequest, RestoreRequest, SnapshotCopyRequest,
};
use sandboxer::domain::sandbox::State;
use sandboxer::domain::snapshot::SnapshotState;
use sandboxer::domain::{Code, OperationState};

use super::recover::killed;
use super::snapshots::source;
use crate::test_env::script::Act;
use crate::test_env::{TestEnv, test_env};

impl TestEnv {
    /// A snapshot of which a dead process has left a part of a copy on `second`.
    async fn half_copied(&self) -> String {
        let id = source(self).await;
        let snapshot = self.snapshot(&id, "my-env").await.unwrap().id.to_string();
        self.script.shelf.copy.lock().unwrap().push_back(Act::Hang);
        let request = SnapshotCopyRequest { id: snapshot.clone(), host: "second".to_owned() };
        killed(
            self,
            "copy",
            |manager| async move { manager.copy_snapshot(&request).await.map(|_| ()) },
        );
        assert_eq!(
            self.there(),
            [(format!("local/{snapshot}"), true), (format!("second/{snapshot}"), false)]
        );
        snapshot
    }

    async fn verified(&self, snapshot: &str) {
        let started = self.manager.verify_snapshot(snapshot).await.unwrap();
        self.manager
            .wait(&started.operation.unwrap())
            .await
            .and_then(Record::into_snapshot)
            .unwrap();
    }

    async fn copy(&self, snapshot: &str, host: &str) -> Result<(), Code> {
        let request = SnapshotCopyRequest { id: snapshot.to_owned(), host: host.to_owned() };
        let started = self.manager.copy_snapshot(&request).await.map_err(|fault| fault.code)?;
        let Some(operation) = started.operation else { return Ok(()) };
        let ended = self.manager.wait(&operation).await.and_then(Record::into_snapshot);
        ended.map(|_| ()).map_err(|fault| fault.code)
    }
}

#[tokio::test]
async fn what_a_dead_copy_left_is_taken_away_whatever_was_done_since() {
    let house = test_env();
    let snapshot = house.half_copied().await;
    house.verified(&snapshot).await;
    assert_eq!(house.copy(&snapshot, "third").await, Ok(()), "it is in nobody's way");
    assert_eq!(house.replicas(&snapshot).await, ["local ready", "second arriving", "third ready"]);
    let recovered = house.other.recover().await.unwrap();
    assert!(recovered.iter().all(|item| item.ok), "{recovered:?}");
    assert!(
        recovered.iter().any(|item| item.message.contains("nothing of the copy is left on second")),
        "{recovered:?}"
    );
    assert_eq!(house.replicas(&snapshot).await, ["local ready", "third ready"]);
    assert_eq!(house.there().len(), 2);
}

#[tokio::test]
async fn a_copy_to_where_a_dead_one_left_a_part_replaces_that() {
    let house = test_env();
    let snapshot = house.half_copied().await;
    assert_eq!(house.copy(&snapshot, "second").await, Ok(()));
    assert_eq!(house.replicas(&snapshot).await, ["local ready", "second ready"]);
    assert!(house.there().iter().all(|(_, is_whole)| *is_whole));
}

#[tokio::test]
async fn a_snapshot_goes_with_what_a_dead_copy_left_of_it() {
    let house = test_env();
    let snapshot = house.half_copied().await;
    house.delete(&snapshot, false).await.unwrap();
    assert_eq!(house.there(), [], "nobody would know of it any more");
}

#[tokio::test]
async fn a_dead_verify_proves_nothing() {
    let house = test_env();
    let id = source(&house).await;
    let snapshot = house.snapshot(&id, "my-env").await.unwrap().id.to_string();
    house.script.shelf.verify.lock().unwrap().push_back(Act::Hang);
    let of = snapshot.clone();
    killed(
        &house,
        "verify",
        |manager| async move { manager.verify_snapshot(&of).await.map(|_| ()) },
    );
    let recovered = house.other.recover().await.unwrap();
    assert_eq!(recovered[0].message, "ready as before");
}

#[tokio::test]
async fn what_a_sandbox_is_made_again_from_is_deleted_by_nobody() {
    let house = test_env();
    let id = source(&house).await;
    let snapshot = house.snapshot(&id, "my-env").await.unwrap().id.to_string();
    let (record, _) = house.restore(&snapshot).await;
    house.script.shelf.verify.lock().unwrap().push_back(Act::Slow);
    let again = RecreateRequest { id: record.id.to_string(), ..RecreateRequest::default() };
    let operation = house.manager.recreate(&again).await.unwrap().operation.unwrap();
    let during = house.other.get(record.id.as_str()).await.unwrap();
    assert_eq!(during.state, State::Ready, "its archive is still read");
    assert_eq!(house.delete(&snapshot, true).await.unwrap_err().code, Code::Busy);
    let (operation, record) = house.manager.finish(&operation).await.unwrap();
    assert_eq!((operation.state, record.unwrap().state), (OperationState::Succeeded, State::Ready));
}

/// The log cannot be written for a while: nothing that it was to be told goes with the record.
#[tokio::test]
async fn a_deletion_is_told_or_is_not_done() {
    let house = test_env();
    let id = source(&house).await;
    let snapshot = house.snapshot(&id, "my-env").await.unwrap().id.to_string();
    let patch = house.add(&snapshot, "one").await;
    house.manager.remove_patch(&snapshot, patch.id.as_str()).await.unwrap();
    let log = house.folder.path().join("events.jsonl");
    let away = house.folder.path().join("away");
    std::fs::rename(&log, &away).unwrap();
    std::fs::create_dir(&log).unwrap();
    house.delete(&snapshot, false).await.unwrap_err();
    assert_eq!(house.listed().await, [("my-env".to_owned(), SnapshotState::Deleting)]);
    std::fs::remove_dir(&log).unwrap();
    std::fs::rename(&away, &log).unwrap();
    house.delete(&snapshot, false).await.unwrap();
    let kinds = vec![EventKind::SnapshotDeleted];
    let told = house.manager.events(&EventQuery { kinds, ..EventQuery::default() }).await.unwrap();
    assert!(told.iter().any(|event| event.snapshot_id() == Some(&snapshot)), "{told:?}");
}

#[tokio::test]
async fn a_patch_that_goes_is_told_of_though_its_coming_was_not_yet() {
    let house = test_env();
    let id = source(&house).await;
    let snapshot = house.snapshot(&id, "my-env").await.unwrap().id.to_string();
    let log = house.folder.path().join("events.jsonl");
    let away = house.folder.path().join("away");
    std::fs::rename(&log, &away).unwrap();
    std::fs::create_dir(&log).unwrap();
    let patch = house.add(&snapshot, "one").await;
    house.manager.remove_patch(&snapshot, patch.id.as_str()).await.unwrap();
    std::fs::remove_dir(&log).unwrap();
    std::fs::rename(&away, &log).unwrap();
    house.add(&snapshot, "two").await;
    house.verified(&snapshot).await;
    let kinds = vec![EventKind::PatchAdded, EventKind::PatchRemoved];
    let told = house.manager.events(&EventQuery { kinds, ..EventQuery::default() }).await.unwrap();
    let mut told: Vec<String> =
        told.iter().map(|event| format!("{} {}", event.kind, event.data["sequence"])).collect();
    told.sort();
    assert_eq!(told, ["patch.added 1", "patch.added 2", "patch.removed 1"]);
}

/// A restore onto another host waits for who has the snapshot, and hears another process that calls it off.
#[tokio::test]
async fn a_restore_that_waits_for_its_snapshot_can_be_called_off() {
    let house = test_env();
    let id = source(&house).await;
    let snapshot = house.snapshot(&id, "my-env").await.unwrap().id.to_string();
    house.script.shelf.copy.lock().unwrap().push_back(Act::Hang);
    let copy = SnapshotCopyRequest { id: snapshot.clone(), host: "third".to_owned() };
    house.other.copy_snapshot(&copy).await.unwrap();
    let request =
        RestoreRequest { snapshot, host: Some("second".to_owned()), ..RestoreRequest::default() };
    let operation = house.manager.restore(&request).await.unwrap().operation.unwrap();
    house.other.cancel(&operation).await.unwrap();
    let (ended, record) = house.manager.finish(&operation).await.unwrap();
    assert_eq!((ended.state, record.unwrap().state), (OperationState::Cancelled, State::Failed));
}

#[tokio::test]
async fn an_archive_that_is_lost_where_it_was_made_is_brought_back_from_a_copy() {
    let house = test_env();
    let id = source(&house).await;
    let snapshot = house.snapshot(&id, "my-env").await.unwrap().id.to_string();
    house.script.shelf.lose("local");
    assert_eq!(house.copy(&snapshot, "local").await, Err(Code::NotFound), "there is no other one");
    let snapshot = house.snapshot(&id, "second").await.unwrap().id.to_string();
    assert_eq!(house.copy(&snapshot, "local").await, Ok(()), "it is there: nothing to do");
    assert_eq!(house.copy(&snapshot, "second").await, Ok(()));
    house.script.shelf.lose("local");
    // Somebody dies over it.
    house.script.shelf.copy.lock().unwrap().push_back(Act::Hang);
    let request = SnapshotCopyRequest { id: snapshot.clone(), host: "local".to_owned() };
    killed(
        &house,
        "copy",
        |manager| async move { manager.copy_snapshot(&request).await.map(|_| ()) },
    );
    assert!(house.other.recover().await.unwrap().iter().all(|item| item.ok));
    assert_eq!(house.there(), [(format!("second/{snapshot}"), true)]);
    assert_eq!(house.replicas(&snapshot).await, ["second ready"]);
    assert_eq!(house.copy(&snapshot, "local").await, Ok(()));
    assert_eq!(house.replicas(&snapshot).await, ["second ready", "local ready"]);
    let (_, ended) = house.restore(&snapshot).await;
    assert_eq!(ended, Ok(()));
}

/// What is found wrong with it may be wrong, and it is all that there is.
#[tokio::test]
async fn an_archive_that_is_called_altered_is_not_taken_away_before_there_is_a_better_one() {
    let house = test_env();
    let id = source(&house).await;
    let snapshot = house.snapshot(&id, "my-env").await.unwrap().id.to_string();
    assert_eq!(house.copy(&snapshot, "second").await, Ok(()));
    house.script.shelf.verify.lock().unwrap().push_back(Act::Altered);
    let started = house.manager.verify_snapshot(&snapshot).await.unwrap();
    house
        .manager
        .wait(&started.operation.unwrap())
        .await
        .and_then(Record::into_snapshot)
        .unwrap_err();
    house.script.shelf.lose("second");
    house.script.shelf.verify.lock().unwrap().push_back(Act::Altered);
    house.copy(&snapshot, "local").await.unwrap_err();
    assert_eq!(house.there(), [(format!("local/{snapshot}"), true)], "the copy is gone, too");
}

/// The only other one is damaged, too: what is there may be the last good bytes.
#[tokio::test]
async fn an_archive_is_not_replaced_by_one_that_is_damaged() {
    let house = test_env();
    let id = source(&house).await;
    let snapshot = house.snapshot(&id, "my-env").await.unwrap().id.to_string();
    assert_eq!(house.copy(&snapshot, "second").await, Ok(()));
    let both = house.there();
    // What is on `second` is read, and is none; so is what it would come from.
    house.script.shelf.verify.lock().unwrap().extend([Act::Altered, Act::Altered]);
    let started = house.manager.verify_snapshot(&snapshot).await.unwrap();
    house.manager.wait(&started.operation.unwrap()).await.unwrap_err();
    house.script.shelf.verify.lock().unwrap().extend([Act::Altered, Act::Altered]);
    house.copy(&snapshot, "second").await.unwrap_err();
    assert_eq!(house.there(), both);
    assert_eq!(house.replicas(&snapshot).await, ["local damaged", "second damaged"]);
}

/// An old copy of the data directory removes nothing, whatever for.
#[tokio::test]
async fn a_copied_data_directory_replaces_no_archive() {
    let house = test_env();
    let id = source(&house).await;
    let snapshot = house.snapshot(&id, "my-env").await.unwrap().id.to_string();
    assert_eq!(house.copy(&snapshot, "second").await, Ok(()));
    let both = house.there();
    house.script.shelf.verify.lock().unwrap().extend([Act::Well, Act::Altered]);
    let started = house.manager.verify_snapshot(&snapshot).await.unwrap();
    house.manager.wait(&started.operation.unwrap()).await.unwrap_err();
    house.copy_from_elsewhere();
    let copied = crate::test_env::manager(house.folder.path(), &house.script);
    house.script.shelf.verify.lock().unwrap().push_back(Act::Altered);
    let request = SnapshotCopyRequest { id: snapshot, host: "second".to_owned() };
    let started = copied.copy_snapshot(&request).await.unwrap();
    let fault = copied.wait(&started.operation.unwrap()).await.unwrap_err();
    assert!(fault.hint.as_ref().is_some_and(|hint| hint.contains("--claim")), "{fault:?}");
    assert_eq!(house.there(), both);
}

impl TestEnv {
    /// A snapshot with a copy on this host, which does not answer any more.
    async fn with_a_copy_that_is_away(&self, host: &'static str) -> String {
        let id = source(self).await;
        let snapshot = self.snapshot(&id, "my-env").await.unwrap().id.to_string();
        assert_eq!(self.copy(&snapshot, host).await, Ok(()));
        self.script.shelf.away.lock().unwrap().push(host);
        snapshot
    }
}

#[tokio::test]
async fn a_deletion_removes_what_answers_and_keeps_the_rest_until_that_is_back() {
    for further in [false, true] {
        let house = test_env();
        let snapshot = house.with_a_copy_that_is_away("second").await;
        let fault = house.delete(&snapshot, false).await.unwrap_err();
        assert_eq!(fault.code, Code::HostUnreachable);
        let hint = fault.hint.unwrap();
        assert!(hint.contains("recover") && hint.contains("--force"), "{hint}");
        let left = || async {
            assert_eq!(house.there(), [(format!("second/{snapshot}"), true)]);
            assert_eq!(house.replicas(&snapshot).await, ["second removing"]);
            assert_eq!(house.listed().await, [("my-env".to_owned(), SnapshotState::Deleting)]);
        };
        left().await;
        assert!(!house.other.recover().await.unwrap()[0].ok);
        left().await;
        let request = RestoreRequest { snapshot: snapshot.clone(), ..RestoreRequest::default() };
        assert_eq!(house.manager.restore(&request).await.unwrap_err().code, Code::Conflict);
        house.script.shelf.away.lock().unwrap().clear();
        if further {
            house.delete(&snapshot, false).await.unwrap();
        } else {
            assert!(house.other.recover().await.unwrap()[0].ok);
        }
        assert!(house.there().is_empty() && house.listed().await.is_empty());
    }
}

#[tokio::test]
async fn what_does_not_answer_is_given_up_by_force_and_named() {
    let house = test_env();
    let snapshot = house.with_a_copy_that_is_away("second").await;
    house.delete(&snapshot, false).await.unwrap_err();
    let deleted = house.delete(&snapshot, true).await.unwrap();
    let path = format!("/srv/snapshots/{snapshot}");
    assert!(deleted.message.unwrap().contains(&format!("{path} on second")));
    assert_eq!(house.there(), [(format!("second/{snapshot}"), true)], "what can be removed is");
    assert_eq!(house.listed().await, []);
    let kinds = vec![EventKind::SnapshotDeleted];
    let told = house.manager.events(&EventQuery { kinds, ..EventQuery::default() }).await.unwrap();
    assert_eq!(told[0].data["given_up"], serde_json::json!([{"host": "second", "path": path}]));
}

/// A refusal changes nothing; one that comes after something was removed does.
#[tokio::test]
async fn a_deletion_that_every_host_refuses_leaves_the_snapshot_as_it_was() {
    let house = test_env();
    let id = source(&house).await;
    let snapshot = house.snapshot(&id, "my-env").await.unwrap().id.to_string();
    house.script.shelf.remove.lock().unwrap().push_back(Act::Refuse);
    assert_eq!(house.delete(&snapshot, false).await.unwrap_err().code, Code::OperationFailed);
    assert_eq!(house.listed().await, [("my-env".to_owned(), SnapshotState::Ready)]);
    assert_eq!(house.replicas(&snapshot).await, ["local ready"]);
    assert_eq!(house.copy(&snapshot, "second").await, Ok(()));
    // The copy goes first.
    house.script.shelf.remove.lock().unwrap().extend([Act::Well, Act::Refuse]);
    let fault = house.delete(&snapshot, false).await.unwrap_err();
    assert!(fault.causes.iter().any(|cause| cause.contains("somebody else's")), "{fault:?}");
    assert_eq!(house.replicas(&snapshot).await, ["local removing"]);
    house.delete(&snapshot, false).await.unwrap();
    assert!(house.there().is_empty());
}

#[tokio::test]
async fn what_a_dead_copy_left_on_a_host_that_is_gone_stands_in_nobodys_way() {
    let house = test_env();
    let id = source(&house).await;
    let snapshot = house.snapshot(&id, "my-env").await.unwrap().id.to_string();
    house.script.shelf.copy.lock().unwrap().push_back(Act::Hang);
    let request = SnapshotCopyRequest { id: snapshot.clone(), host: "gone".to_owned() };
    killed(
        &house,
        "copy",
        |manager| async move { manager.copy_snapshot(&request).await.map(|_| ()) },
    );
    house.script.shelf.away.lock().unwrap().push("gone");
    assert_eq!(house.copy(&snapshot, "third").await, Ok(()));
    let recovered = house.other.recover().await.unwrap();
    assert!(
        recovered[0].ok && recovered[0].message.contains("gone is not configured any more"),
        "{recovered:?}"
    );
    assert_eq!(house.replicas(&snapshot).await, ["local ready", "third ready"]);
    assert_eq!(house.other.recover().await.unwrap(), []);
}
