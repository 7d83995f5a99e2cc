//! What copies leave that died, what is deleted under somebody's hands, and what the event log was not told.

use sandboxer::domain::event::EventKind;
use sandboxer::domain::record::Record;
use sandboxer::domain::request::{
    EventQuery, RecreateRequest, RestoreRequest, SnapshotCopyRequest, SnapshotDeleteRequest,
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
        let ended =
            self.manager.wait(&started.operation.unwrap()).await.and_then(Record::into_snapshot);
        ended.map(|_| ()).map_err(|fault| fault.code)
    }
}

#[tokio::test]
async fn what_a_dead_copy_left_is_taken_away_whatever_was_done_since() {
    for verified in [false, true] {
        let house = test_env();
        let snapshot = house.half_copied().await;
        if verified {
            house.verified(&snapshot).await;
            assert_eq!(house.copy(&snapshot, "third").await, Err(Code::Conflict));
        }
        let recovered = house.other.recover().await.unwrap();
        assert!(recovered.iter().all(|item| item.ok), "{recovered:?}");
        assert!(
            recovered
                .iter()
                .any(|item| item.message.contains("nothing of the copy is left on second")),
            "{recovered:?}"
        );
        assert_eq!(house.there(), [(format!("local/{snapshot}"), true)], "verified: {verified}");
        assert_eq!(house.copy(&snapshot, "third").await, Ok(()));
    }
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
    assert!(told.iter().any(|event| event.data["next_patch_sequence"] == 2), "{told:?}");
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
    assert_eq!(house.copy(&snapshot, "local").await, Err(Code::InvalidInput), "it is whole there");
    assert_eq!(house.copy(&snapshot, "second").await, Ok(()));
    house.script.shelf.lose("local");
    // Somebody dies over it, and it is known all the same that nothing is there.
    house.script.shelf.copy.lock().unwrap().push_back(Act::Hang);
    let request = SnapshotCopyRequest { id: snapshot.clone(), host: "local".to_owned() };
    killed(
        &house,
        "copy",
        |manager| async move { manager.copy_snapshot(&request).await.map(|_| ()) },
    );
    assert!(house.other.recover().await.unwrap().iter().all(|item| item.ok));
    assert_eq!(house.there(), [(format!("second/{snapshot}"), true)]);
    let record = house.manager.snapshot_view(&snapshot).await.unwrap().record.clone();
    assert_eq!((record.damage.len(), record.damage[0].host.as_str()), (1, "local"));
    assert_eq!(house.copy(&snapshot, "local").await, Ok(()));
    let record = house.manager.snapshot_view(&snapshot).await.unwrap().record.clone();
    let hosts: Vec<&str> = record.hosts().map(AsRef::as_ref).collect();
    assert_eq!(
        (hosts, record.damage.len()),
        (vec!["local", "second"], 0),
        "it is no copy of its own"
    );
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
async fn a_deletion_that_cannot_look_at_a_copy_removes_nothing() {
    for (host, force, way_out) in
        [("second", true, "out of the configuration"), ("gone", false, "--force")]
    {
        let house = test_env();
        let snapshot = house.with_a_copy_that_is_away(host).await;
        let fault = house.delete(&snapshot, force).await.unwrap_err();
        assert_eq!(fault.code, Code::HostUnreachable);
        let hint = fault.hint.unwrap();
        assert!(hint.contains("nothing was removed") && hint.contains(way_out), "{hint}");
        assert_eq!(house.listed().await, [("my-env".to_owned(), SnapshotState::Ready)]);
        assert_eq!(house.there().len(), 2);
        assert_eq!(house.other.recover().await.unwrap(), []);
        assert_eq!(house.restore(&snapshot).await.1, Ok(()), "it is what it was");
    }
}

#[tokio::test]
async fn a_copy_on_a_host_that_is_gone_for_good_is_given_up_by_force() {
    let house = test_env();
    let snapshot = house.with_a_copy_that_is_away("gone").await;
    house.delete(&snapshot, true).await.unwrap();
    assert_eq!(house.there(), [(format!("gone/{snapshot}"), true)], "what can be removed is");
    assert_eq!(house.listed().await, []);
    let kinds = vec![EventKind::SnapshotDeleted];
    let told = house.manager.events(&EventQuery { kinds, ..EventQuery::default() }).await.unwrap();
    let path = format!("/srv/snapshots/{snapshot}");
    assert_eq!(told[0].data["given_up"], serde_json::json!([{"host": "gone", "path": path}]));
}

#[tokio::test]
async fn what_was_given_up_is_named_to_who_deleted_it() {
    let house = test_env();
    let snapshot = house.with_a_copy_that_is_away("gone").await;
    let request = SnapshotDeleteRequest {
        id: snapshot.clone(),
        force: true,
        ..SnapshotDeleteRequest::default()
    };
    let started = house.manager.delete_snapshot(&request).await.unwrap();
    let deleted = house
        .manager
        .wait(&started.operation.unwrap())
        .await
        .and_then(Record::into_snapshot)
        .unwrap();
    assert!(deleted.message.unwrap().contains(&format!("/srv/snapshots/{snapshot} on gone")));
}

/// It may have removed something, and an archive is seen to be whole.
#[tokio::test]
async fn a_dead_deletion_whose_copy_is_away_is_ready_again() {
    let house = test_env();
    let snapshot = house.with_a_copy_that_is_away("second").await;
    house.script.shelf.away.lock().unwrap().clear();
    house.script.shelf.remove.lock().unwrap().push_back(Act::Hang);
    let request =
        SnapshotDeleteRequest { id: snapshot.clone(), ..SnapshotDeleteRequest::default() };
    killed(&house, "remove", |manager| async move {
        manager.delete_snapshot(&request).await.map(|_| ())
    });
    assert_eq!(house.listed().await, [("my-env".to_owned(), SnapshotState::Deleting)]);
    house.script.shelf.away.lock().unwrap().push("second");
    let recovered = house.other.recover().await.unwrap();
    assert!(!recovered[0].ok && recovered[0].message.contains("second"), "{recovered:?}");
    assert_eq!(house.listed().await, [("my-env".to_owned(), SnapshotState::Ready)]);
    assert_eq!(house.other.recover().await.unwrap(), []);
    assert_eq!(house.restore(&snapshot).await.1, Ok(()));

    // Where none is seen to be whole, it stays what it is.
    house.script.shelf.away.lock().unwrap().clear();
    house.script.shelf.remove.lock().unwrap().push_back(Act::Hang);
    let request = SnapshotDeleteRequest {
        id: snapshot.clone(),
        force: true,
        ..SnapshotDeleteRequest::default()
    };
    killed(&house, "remove", |manager| async move {
        manager.delete_snapshot(&request).await.map(|_| ())
    });
    house.script.shelf.away.lock().unwrap().extend(["local", "second"]);
    assert!(!house.other.recover().await.unwrap()[0].ok);
    assert_eq!(house.listed().await, [("my-env".to_owned(), SnapshotState::Deleting)]);
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
    let recovered = house.other.recover().await.unwrap();
    let error = recovered[0].error.as_ref().unwrap();
    assert!(
        error.hint.as_ref().unwrap().contains("a copy to another host"),
        "it may be back: {error:?}"
    );
    assert_eq!(house.copy(&snapshot, "third").await, Ok(()));
    let record = house.manager.snapshot_view(&snapshot).await.unwrap().record.clone();
    assert!(record.message.unwrap().contains("gone is not configured any more"));
    assert_eq!((record.copying_to, record.unremoved), (None, false));
    assert_eq!(house.other.recover().await.unwrap(), []);
}
