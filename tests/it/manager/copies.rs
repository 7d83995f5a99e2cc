//! Copies that do not arrive as they were sent: the archive that was sent is read, and what it proves to be decides. And what is
//! where a copy is to come: it is taken as it is, or left alone, and never taken for what the copy made.

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
    async fn damaged(&self) -> Vec<String> {
        let record = self.other.snapshot_view("my-env").await.unwrap().record;
        record.damage.iter().map(|damage| damage.host.to_string()).collect()
    }
}

#[tokio::test]
async fn a_sound_archive_is_not_blamed_for_what_became_of_it_on_the_way() {
    let house = test_env();
    let id = source(&house).await;
    house.snapshot(&id, "my-env").await.unwrap();
    let fault = copy(&house, "second", &[Act::Otherwise], &[Act::Well]).await.unwrap_err();
    assert_eq!(fault.code, Code::OperationFailed);
    assert!(fault.message.contains("did not arrive on second as it was sent"), "{fault}");
    assert!(fault.hint.unwrap().contains("the archive on local is what it was"));
    // Its host went away: nobody knows.
    let fault =
        copy(&house, "second", &[Act::Otherwise], &[Act::Fail(Code::HostUnreachable, "no route")])
            .await
            .unwrap_err();
    assert!(fault.hint.unwrap().contains("could not be told"));
    assert!(house.damaged().await.is_empty());
}

#[tokio::test]
async fn an_altered_archive_is_noted_and_the_copy_goes_on_from_the_next() {
    let house = test_env();
    let id = source(&house).await;
    house.snapshot(&id, "my-env").await.unwrap();
    let fault = copy(&house, "second", &[Act::Otherwise], &[Act::Altered]).await.unwrap_err();
    assert!(fault.message.contains("cut short"), "what the reading said: {fault}");
    assert!(fault.hint.unwrap().contains("snapshots verify"));
    assert_eq!(house.damaged().await, ["local"]);

    // It is the last that is asked, once there is a copy that nobody knows anything of.
    copy(&house, "second", &[Act::Well], &[]).await.unwrap();
    copy(&house, "third", &[Act::Otherwise, Act::Well], &[Act::Altered]).await.unwrap();
    let asked: Vec<String> =
        house.script.asked().into_iter().filter(|asked| asked.ends_with("to third")).collect();
    assert!(asked[0].contains("from second") && asked[1].contains("from local"), "{asked:?}");
    assert_eq!(asked.len(), 2);
    assert_eq!(house.damaged().await, ["local", "second"]);
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
        stored["records"][0]["replicas"] = serde_json::json!([]);
        std::fs::write(&file, stored.to_string()).unwrap();
        snapshot
    }

    fn on_both(&self, snapshot: &str) {
        let both = [(format!("local/{snapshot}"), true), (format!("second/{snapshot}"), true)];
        assert_eq!(self.script.shelf.there(), both);
    }

    async fn hosts(&self) -> Vec<String> {
        let record = self.other.snapshot_view("my-env").await.unwrap().record;
        assert_eq!(
            (record.state, record.copying_to, record.operation),
            (SnapshotState::Ready, None, None)
        );
        let hosts = std::iter::once(record.host)
            .chain(record.replicas.into_iter().map(|replica| replica.host));
        hosts.map(|host| host.to_string()).collect()
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
