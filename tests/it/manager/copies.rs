//! Copies that do not arrive as they were sent, and what is where a copy is to come: it is taken as it is, or left alone, and
//! never taken for what the copy made.

use sandboxer::domain::record::Record;
use sandboxer::domain::request::{RestoreRequest, SnapshotCopyRequest};
use sandboxer::domain::snapshot::{SnapshotRecord, SnapshotState};
use sandboxer::domain::{Code, Error};

use super::recover::killed;
use super::snapshots::source;
use crate::test_env::script::Act;
use crate::test_env::{TestEnv, test_env};

async fn copy(
    house: &TestEnv,
    to: &str,
    arrivals: &[Act],
    readings: &[Act],
) -> Result<SnapshotRecord, Error> {
    house.script.shelf.copy.lock().unwrap().extend(arrivals.iter().cloned());
    house.script.shelf.verify.lock().unwrap().extend(readings.iter().cloned());
    let id = house.manager.snapshot_view("my-env").await?.record.id.to_string();
    let request = SnapshotCopyRequest { id, host: to.to_owned() };
    let started = house.manager.copy_snapshot(&request).await?;
    house.manager.wait(&started.operation.unwrap()).await.and_then(Record::into_snapshot)
}

impl TestEnv {
    /// Its replicas, as `host state`.
    pub(crate) async fn replicas(&self, snapshot: &str) -> Vec<String> {
        let record = self.other.snapshot_view(snapshot).await.unwrap().record;
        record.replicas.iter().map(|it| format!("{} {}", it.host, it.state)).collect()
    }
}

#[tokio::test]
async fn a_copy_that_arrives_otherwise_leaves_nothing_and_says_who_tells_why() {
    let house = test_env();
    let id = source(&house).await;
    let snapshot = house.snapshot(&id, "my-env").await.unwrap().id.to_string();
    let fault = copy(&house, "second", &[Act::Otherwise], &[]).await.unwrap_err();
    assert_eq!(fault.code, Code::OperationFailed);
    assert!(fault.message.contains("did not arrive on second as it was sent"), "{fault}");
    let hint = fault.hint.unwrap();
    assert!(hint.contains("sent by local") && hint.contains("snapshots verify"), "{hint}");
    assert_eq!(house.replicas("my-env").await, ["local ready"], "only a verify says more");
    assert_eq!(house.script.shelf.there(), [(format!("local/{snapshot}"), true)]);
}

#[tokio::test]
async fn a_damaged_archive_is_the_last_that_is_copied() {
    let house = test_env();
    let id = source(&house).await;
    let snapshot = house.snapshot(&id, "my-env").await.unwrap().id.to_string();
    copy(&house, "second", &[], &[]).await.unwrap();
    house.script.shelf.verify.lock().unwrap().push_back(Act::Altered);
    let started = house.manager.verify_snapshot(&snapshot).await.unwrap();
    let ended = house.manager.wait(&started.operation.unwrap()).await;
    let fault = ended.and_then(Record::into_snapshot).unwrap_err();
    assert!(fault.hint.unwrap().contains("the one on second is whole"));
    assert_eq!(house.replicas("my-env").await, ["local damaged", "second ready"]);
    copy(&house, "third", &[], &[]).await.unwrap();
    let asked = house.script.asked();
    assert!(asked.contains(&format!("copy {snapshot} from second to third")), "{asked:?}");
    // It is replaced from where it is whole, and is one of them again.
    copy(&house, "local", &[], &[Act::Altered]).await.unwrap();
    assert_eq!(house.replicas("my-env").await, ["local ready", "second ready", "third ready"]);
}

impl TestEnv {
    /// A snapshot of which `second` has a whole archive that its record does not list.
    async fn unlisted(&self) -> String {
        let id = source(self).await;
        let snapshot = self.snapshot(&id, "my-env").await.unwrap().id.to_string();
        copy(self, "second", &[], &[]).await.unwrap();
        let file = self.folder.path().join("snapshots.json");
        let mut stored: serde_json::Value =
            serde_json::from_slice(&std::fs::read(&file).unwrap()).unwrap();
        stored["records"][0]["replicas"].as_array_mut().unwrap().truncate(1);
        std::fs::write(&file, stored.to_string()).unwrap();
        snapshot
    }

    fn on_both(&self, snapshot: &str) {
        let both = [(format!("local/{snapshot}"), true), (format!("second/{snapshot}"), true)];
        assert_eq!(self.script.shelf.there(), both);
    }

    async fn hosts(&self) -> Vec<String> {
        let record = self.other.snapshot_view("my-env").await.unwrap().record;
        assert_eq!((&record.state, &record.operation), (&SnapshotState::Ready, &None));
        assert!(!record.has_remains());
        record.hosts().map(ToString::to_string).collect()
    }
}

#[tokio::test]
async fn what_was_there_before_a_copy_outlives_its_end() {
    let house = test_env();
    let snapshot = house.unlisted().await;
    house.script.shelf.verify.lock().unwrap().push_back(Act::Hang);
    let request = SnapshotCopyRequest { id: snapshot.clone(), host: "second".to_owned() };
    let operation = house.manager.copy_snapshot(&request).await.unwrap().operation.unwrap();
    while !house.script.asked().iter().any(|asked| asked.starts_with("verify")) {
        tokio::time::sleep(std::time::Duration::from_millis(5)).await;
    }
    house.manager.cancel(&operation).await.unwrap();
    assert_eq!(
        house.manager.wait(&operation).await.and_then(Record::into_snapshot).unwrap_err().code,
        Code::Cancelled
    );
    house.on_both(&snapshot);
    assert_eq!(house.hosts().await, ["local"]);

    house.script.shelf.verify.lock().unwrap().push_back(Act::Hang);
    killed(
        &house,
        "verify",
        |manager| async move { manager.copy_snapshot(&request).await.map(|_| ()) },
    );
    let recovered = house.other.recover().await.unwrap();
    assert!(recovered.iter().all(|item| item.ok), "{recovered:?}");
    house.on_both(&snapshot);

    // Nobody could read it: that proves nothing.
    copy(&house, "second", &[], &[Act::Fail(Code::HostUnreachable, "no route")]).await.unwrap_err();
    house.on_both(&snapshot);
    copy(&house, "second", &[], &[]).await.unwrap();
    assert_eq!(house.hosts().await, ["local", "second"]);
    assert_eq!(
        house.script.asked().iter().filter(|asked| asked.starts_with("copy")).count(),
        1,
        "it was there"
    );
}

#[tokio::test]
async fn a_copy_whose_process_died_over_a_whole_archive_is_listed() {
    let house = test_env();
    let id = source(&house).await;
    let snapshot = house.snapshot(&id, "my-env").await.unwrap().id.to_string();
    house.script.shelf.copied.lock().unwrap().push_back(Act::Hang);
    let request = SnapshotCopyRequest { id: snapshot.clone(), host: "second".to_owned() };
    killed(
        &house,
        "sealed",
        |manager| async move { manager.copy_snapshot(&request).await.map(|_| ()) },
    );
    let recovered = house.other.recover().await.unwrap();
    assert!(
        recovered[0].ok && recovered[0].message.contains("its copy on second is whole"),
        "{recovered:?}"
    );
    house.on_both(&snapshot);
    assert_eq!(house.hosts().await, ["local", "second"]);
}

#[tokio::test]
async fn a_host_by_another_name_has_the_archive_and_no_copy_of_it() {
    let house = test_env();
    let id = source(&house).await;
    let snapshot = house.snapshot(&id, "my-env").await.unwrap().id.to_string();
    house.script.shelf.name("local", "second");
    let fault = copy(&house, "second", &[], &[]).await.unwrap_err();
    assert_eq!(fault.code, Code::InvalidInput);
    assert!(fault.message.contains("second is another name of local"), "{fault}");
    let request = RestoreRequest {
        snapshot: snapshot.clone(),
        host: Some("second".to_owned()),
        ..RestoreRequest::default()
    };
    let started = house.manager.restore(&request).await.unwrap();
    let (operation, record) = house.manager.finish(&started.operation.unwrap()).await.unwrap();
    assert_eq!((operation.error, record.unwrap().host.as_str()), (None, "second"));
    assert_eq!(house.hosts().await, ["local"]);
    let asked = house.script.asked();
    assert!(
        !asked.iter().any(|asked| ["copy", "remove"].iter().any(|verb| asked.starts_with(verb))),
        "{asked:?}"
    );
    assert_eq!(house.script.shelf.there(), [(format!("local/{snapshot}"), true)]);
}

/// Two hosts came to be one after the copy: an archive does not stand in for itself.
#[tokio::test]
async fn an_altered_archive_is_not_replaced_by_itself() {
    let house = test_env();
    let id = source(&house).await;
    let snapshot = house.snapshot(&id, "my-env").await.unwrap().id.to_string();
    copy(&house, "second", &[], &[]).await.unwrap();
    house.script.shelf.lose("second");
    house.script.shelf.name("local", "second");
    house.script.shelf.verify.lock().unwrap().push_back(Act::Altered);
    let started = house.manager.verify_snapshot(&snapshot).await.unwrap();
    house
        .manager
        .wait(&started.operation.unwrap())
        .await
        .and_then(Record::into_snapshot)
        .unwrap_err();
    copy(&house, "local", &[], &[Act::Altered]).await.unwrap_err();
    assert_eq!(
        house.script.shelf.there(),
        [(format!("local/{snapshot}"), true)],
        "it is all that there is"
    );
}
