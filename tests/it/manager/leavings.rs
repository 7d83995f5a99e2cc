//! What copies leave that died, what is deleted under somebody's hands, and what the event log was not told.

use sandboxer::domain::event::EventKind;
use sandboxer::domain::request::{RestoreRequest, SnapshotCopyRequest};
use sandboxer::domain::sandbox::State;
use sandboxer::domain::snapshot::SnapshotState;
use sandboxer::domain::{Code, OperationState};

use super::recover::killed;
use crate::support::json_assertions::JsonAssertions as _;
use crate::test_env::script::Act;
use crate::test_env::{TestEnv, from_snapshot, of, test_env, with_snapshot};

impl TestEnv {
    /// A snapshot of which a dead process has left a part of a copy on `second`.
    async fn half_copied(&self) -> String {
        let snapshot = self.base("my-env").await;
        self.script.shelf.copy.push(Act::Hang);
        self.killed_copy(&snapshot, "second", "copy");
        assert_eq!(
            self.there(),
            [(format!("local/{snapshot}"), true), (format!("second/{snapshot}"), false)]
        );
        snapshot
    }
}

#[tokio::test]
async fn what_a_dead_copy_left_is_taken_away_whatever_was_done_since() {
    let house = test_env();
    let snapshot = house.half_copied().await;
    house.verify(&snapshot).await.unwrap();
    house.copy(&snapshot, "third").await.unwrap();
    assert_eq!(house.replicas(&snapshot).await, ["local ready", "second arriving", "third ready"]);
    let recovered = house.recover().await;
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
    house.copy(&snapshot, "second").await.unwrap();
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
    let (house, snapshot) = with_snapshot().await;
    house.script.shelf.verify.push(Act::Hang);
    let of_it = snapshot.clone();
    killed(&house, "verify", |manager| async move { manager.verify_snapshot(&of_it).await });
    let recovered = house.other.recover().await.unwrap();
    assert_eq!(recovered[0].message, "ready as before");
}

#[tokio::test]
async fn what_a_sandbox_is_made_again_from_is_deleted_by_nobody() {
    let (house, snapshot) = with_snapshot().await;
    let (record, _) = house.restore(&snapshot).await;
    house.script.shelf.verify.push(Act::Slow);
    let operation = house.manager.recreate(&of(&record.id)).await.unwrap().operation.unwrap();
    let during = house.other.get(record.id.as_str()).await.unwrap();
    assert_eq!(during.state, State::Ready, "its archive is still read");
    house.delete(&snapshot, true).await.unwrap_err().coded(Code::Busy);
    let (operation, record) = house.manager.finish(&operation).await.unwrap();
    assert_eq!((operation.state, record.unwrap().state), (OperationState::Succeeded, State::Ready));
}

impl TestEnv {
    /// Takes the event log away, so that nobody can write it; what gives it back.
    fn take_log(&self) -> impl FnOnce() {
        let [log, away] = ["events.jsonl", "away"].map(|name| self.folder.path().join(name));
        std::fs::rename(&log, &away).unwrap();
        std::fs::create_dir(&log).unwrap();
        move || {
            std::fs::remove_dir(&log).unwrap();
            std::fs::rename(&away, &log).unwrap();
        }
    }
}

/// The log cannot be written for a while: nothing that it was to be told goes with the record.
#[tokio::test]
async fn a_deletion_is_told_or_is_not_done() {
    let (house, snapshot) = with_snapshot().await;
    let patch = house.add(&snapshot, "one").await;
    house.manager.remove_patch(&snapshot, patch.id.as_str()).await.unwrap();
    let give_back = house.take_log();
    house.delete(&snapshot, false).await.unwrap_err();
    assert_eq!(house.listed().await, [("my-env".to_owned(), SnapshotState::Deleting)]);
    give_back();
    house.delete(&snapshot, false).await.unwrap();
    let told = house.events(&[EventKind::SnapshotDeleted]).await;
    assert!(told.iter().any(|event| event.snapshot_id() == Some(&snapshot)), "{told:?}");
}

#[tokio::test]
async fn a_patch_that_goes_is_told_of_though_its_coming_was_not_yet() {
    let (house, snapshot) = with_snapshot().await;
    let give_back = house.take_log();
    let patch = house.add(&snapshot, "one").await;
    house.manager.remove_patch(&snapshot, patch.id.as_str()).await.unwrap();
    give_back();
    house.add(&snapshot, "two").await;
    house.verify(&snapshot).await.unwrap();
    let told = house.events(&[EventKind::PatchAdded, EventKind::PatchRemoved]).await;
    let mut told: Vec<String> =
        told.iter().map(|event| format!("{} {}", event.kind, event.data["sequence"])).collect();
    told.sort();
    assert_eq!(told, ["patch.added 1", "patch.added 2", "patch.removed 1"]);
}

/// A restore onto another host waits for who has the snapshot, and hears another process that calls it off.
#[tokio::test]
async fn a_restore_that_waits_for_its_snapshot_can_be_called_off() {
    let (house, snapshot) = with_snapshot().await;
    house.script.shelf.copy.push(Act::Hang);
    let copy = SnapshotCopyRequest { id: snapshot.clone(), host: "third".to_owned() };
    house.other.copy_snapshot(&copy).await.unwrap();
    let request = RestoreRequest { host: Some("second".to_owned()), ..from_snapshot(snapshot) };
    let operation = house.manager.restore(&request).await.unwrap().operation.unwrap();
    house.other.cancel(&operation).await.unwrap();
    let (ended, record) = house.manager.finish(&operation).await.unwrap();
    assert_eq!((ended.state, record.unwrap().state), (OperationState::Cancelled, State::Failed));
}

#[tokio::test]
async fn an_archive_that_is_lost_where_it_was_made_is_brought_back_from_a_copy() {
    let (house, snapshot) = with_snapshot().await;
    house.script.shelf.lose("local");
    house.copy(&snapshot, "local").await.unwrap_err().coded(Code::NotFound);
    let snapshot = house.base("second").await;
    house.copy(&snapshot, "local").await.unwrap();
    house.copy(&snapshot, "second").await.unwrap();
    house.script.shelf.lose("local");
    // Somebody dies over it.
    house.script.shelf.copy.push(Act::Hang);
    house.killed_copy(&snapshot, "local", "copy");
    house.recover().await;
    assert_eq!(house.there(), [(format!("second/{snapshot}"), true)]);
    assert_eq!(house.replicas(&snapshot).await, ["second ready"]);
    house.copy(&snapshot, "local").await.unwrap();
    assert_eq!(house.replicas(&snapshot).await, ["second ready", "local ready"]);
    let (_, ended) = house.restore(&snapshot).await;
    assert_eq!(ended, Ok(()));
}

/// What is found wrong with it may be wrong, and it is all that there is.
#[tokio::test]
async fn an_archive_that_is_called_altered_is_not_taken_away_before_there_is_a_better_one() {
    let (house, snapshot) = with_snapshot().await;
    house.copy(&snapshot, "second").await.unwrap();
    house.script.shelf.verify.push(Act::Altered);
    house.verify(&snapshot).await.unwrap_err();
    house.script.shelf.lose("second");
    house.script.shelf.verify.push(Act::Altered);
    house.copy(&snapshot, "local").await.unwrap_err();
    assert_eq!(house.there(), [(format!("local/{snapshot}"), true)], "the copy is gone, too");
}

/// The only other one is damaged, too: what is there may be the last good bytes.
#[tokio::test]
async fn an_archive_is_not_replaced_by_one_that_is_damaged() {
    let (house, snapshot) = with_snapshot().await;
    house.copy(&snapshot, "second").await.unwrap();
    let both = house.there();
    // What is on `second` is read, and is none; so is what it would come from.
    house.script.shelf.verify.extend([Act::Altered, Act::Altered]);
    house.verify(&snapshot).await.unwrap_err();
    house.script.shelf.verify.extend([Act::Altered, Act::Altered]);
    house.copy(&snapshot, "second").await.unwrap_err();
    assert_eq!(house.there(), both);
    assert_eq!(house.replicas(&snapshot).await, ["local damaged", "second damaged"]);
}

/// An old copy of the data directory removes nothing, whatever for.
#[tokio::test]
async fn a_copied_data_directory_replaces_no_archive() {
    let (house, snapshot) = with_snapshot().await;
    house.copy(&snapshot, "second").await.unwrap();
    let both = house.there();
    house.script.shelf.verify.extend([Act::Well, Act::Altered]);
    house.verify(&snapshot).await.unwrap_err();
    house.copy_from_elsewhere();
    let copied = crate::test_env::manager(house.folder.path(), &house.script);
    house.script.shelf.verify.push(Act::Altered);
    let request = SnapshotCopyRequest { id: snapshot, host: "second".to_owned() };
    let started = copied.copy_snapshot(&request).await.unwrap();
    copied.wait(&started.operation.unwrap()).await.unwrap_err().hints("--claim");
    assert_eq!(house.there(), both);
}

impl TestEnv {
    /// A snapshot with a copy on this host, which does not answer any more.
    async fn with_a_copy_that_is_away(&self, host: &'static str) -> String {
        let snapshot = self.base("my-env").await;
        self.copy(&snapshot, host).await.unwrap();
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
        fault.coded(Code::HostUnreachable).hints("recover").hints("--force");
        let left = || async {
            assert_eq!(house.there(), [(format!("second/{snapshot}"), true)]);
            assert_eq!(house.replicas(&snapshot).await, ["second removing"]);
            assert_eq!(house.listed().await, [("my-env".to_owned(), SnapshotState::Deleting)]);
        };
        left().await;
        assert!(!house.other.recover().await.unwrap()[0].ok);
        left().await;
        house.manager.restore(&from_snapshot(&snapshot)).await.unwrap_err().coded(Code::Conflict);
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
    let told = house.events(&[EventKind::SnapshotDeleted]).await;
    assert_eq!(told[0].data["given_up"], serde_json::json!([{"host": "second", "path": path}]));
}

/// A refusal changes nothing; one that comes after something was removed does.
#[tokio::test]
async fn a_deletion_that_every_host_refuses_leaves_the_snapshot_as_it_was() {
    let (house, snapshot) = with_snapshot().await;
    house.script.shelf.remove.push(Act::Refuse);
    house.delete(&snapshot, false).await.unwrap_err().coded(Code::OperationFailed);
    assert_eq!(house.listed().await, [("my-env".to_owned(), SnapshotState::Ready)]);
    assert_eq!(house.replicas(&snapshot).await, ["local ready"]);
    house.copy(&snapshot, "second").await.unwrap();
    // The copy goes first.
    house.script.shelf.remove.extend([Act::Well, Act::Refuse]);
    let fault = house.delete(&snapshot, false).await.unwrap_err();
    assert!(fault.causes.iter().any(|cause| cause.contains("somebody else's")), "{fault:?}");
    assert_eq!(house.replicas(&snapshot).await, ["local removing"]);
    house.delete(&snapshot, false).await.unwrap();
    assert!(house.there().is_empty());
}

#[tokio::test]
async fn what_a_dead_copy_left_on_a_host_that_is_gone_stands_in_nobodys_way() {
    let (house, snapshot) = with_snapshot().await;
    house.script.shelf.copy.push(Act::Hang);
    house.killed_copy(&snapshot, "gone", "copy");
    house.script.shelf.away.lock().unwrap().push("gone");
    house.copy(&snapshot, "third").await.unwrap();
    house.recover().await[0].says("gone is not configured any more");
    assert_eq!(house.replicas(&snapshot).await, ["local ready", "third ready"]);
    assert_eq!(house.other.recover().await.unwrap(), []);
}
