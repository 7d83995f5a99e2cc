//! Copies that do not arrive as they were sent, and what is where a copy is to come: it is taken as it is, or left alone, and
//! never taken for what the copy made.

use sandboxer::domain::Code;
use sandboxer::domain::request::{RestoreRequest, SnapshotCopyRequest};
use sandboxer::domain::snapshot::SnapshotState;

use crate::support::json_assertions::JsonAssertions as _;
use crate::test_env::script::Act;
use crate::test_env::{TestEnv, from_snapshot, test_env, with_snapshot};

#[tokio::test]
async fn a_copy_that_arrives_otherwise_leaves_nothing_and_says_who_tells_why() {
    let (house, snapshot) = with_snapshot().await;
    house.script.shelf.copy.push(Act::Otherwise);
    let fault = house.copy(&snapshot, "second").await.unwrap_err();
    fault.coded(Code::OperationFailed).says("did not arrive on second as it was sent");
    fault.hints("sent by local").hints("snapshots verify");
    assert_eq!(house.replicas("my-env").await, ["local ready"], "only a verify says more");
    assert_eq!(house.there(), [(format!("local/{snapshot}"), true)]);
}

#[tokio::test]
async fn a_damaged_archive_is_the_last_that_is_copied() {
    let (house, snapshot) = with_snapshot().await;
    house.copy(&snapshot, "second").await.unwrap();
    house.script.shelf.verify.push(Act::Altered);
    house.verify(&snapshot).await.unwrap_err().hints("the one on second is whole");
    assert_eq!(house.replicas("my-env").await, ["local damaged", "second ready"]);
    house.copy(&snapshot, "third").await.unwrap();
    let asked = house.script.asked();
    assert!(asked.contains(&format!("copy {snapshot} from second to third")), "{asked:?}");
    // It is replaced from where it is whole, and is one of them again.
    house.script.shelf.verify.push(Act::Altered);
    house.copy(&snapshot, "local").await.unwrap();
    assert_eq!(house.replicas("my-env").await, ["local ready", "second ready", "third ready"]);
}

impl TestEnv {
    /// A snapshot of which `second` has a whole archive that its record does not list.
    async fn unlisted(&self) -> String {
        let snapshot = self.base("my-env").await;
        self.copy(&snapshot, "second").await.unwrap();
        self.edit("snapshots.json", |stored| {
            stored["records"][0]["replicas"].as_array_mut().unwrap().truncate(1);
        });
        snapshot
    }

    fn on_both(&self, snapshot: &str) {
        let both = [(format!("local/{snapshot}"), true), (format!("second/{snapshot}"), true)];
        assert_eq!(self.there(), both);
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
    house.script.shelf.verify.push(Act::Hang);
    let request = SnapshotCopyRequest { id: snapshot.clone(), host: "second".to_owned() };
    let operation = house.manager.copy_snapshot(&request).await.unwrap().operation.unwrap();
    house.script.until_asked("verify").await;
    house.manager.cancel(&operation).await.unwrap();
    house.manager.wait(&operation).await.unwrap_err().coded(Code::Cancelled);
    house.on_both(&snapshot);
    assert_eq!(house.hosts().await, ["local"]);

    house.script.shelf.verify.push(Act::Hang);
    house.killed_copy(&snapshot, "second", "verify");
    house.recover().await;
    house.on_both(&snapshot);

    // Nobody could read it: that proves nothing.
    house.script.shelf.verify.push(Act::no_route());
    house.copy(&snapshot, "second").await.unwrap_err();
    house.on_both(&snapshot);
    house.copy(&snapshot, "second").await.unwrap();
    assert_eq!(house.hosts().await, ["local", "second"]);
    assert_eq!(house.script.count("copy"), 1, "it was there");
}

#[tokio::test]
async fn a_copy_whose_process_died_over_a_whole_archive_is_listed() {
    let (house, snapshot) = with_snapshot().await;
    house.script.shelf.copied.push(Act::Hang);
    house.killed_copy(&snapshot, "second", "sealed");
    house.recover().await[0].says("its copy on second is whole");
    house.on_both(&snapshot);
    assert_eq!(house.hosts().await, ["local", "second"]);
}

#[tokio::test]
async fn a_host_by_another_name_has_the_archive_and_no_copy_of_it() {
    let (house, snapshot) = with_snapshot().await;
    house.script.shelf.name("local", "second");
    let fault = house.copy(&snapshot, "second").await.unwrap_err();
    fault.coded(Code::InvalidInput).says("second is another name of local");
    let request = RestoreRequest { host: Some("second".to_owned()), ..from_snapshot(&snapshot) };
    let (operation, record) = house.finished(house.manager.restore(&request).await).await;
    assert_eq!((operation.error, record.host.as_str()), (None, "second"));
    assert_eq!(house.hosts().await, ["local"]);
    assert_eq!((house.script.count("copy"), house.script.count("remove")), (0, 0));
    assert_eq!(house.there(), [(format!("local/{snapshot}"), true)]);
}

/// Two hosts came to be one after the copy: an archive does not stand in for itself.
#[tokio::test]
async fn an_altered_archive_is_not_replaced_by_itself() {
    let (house, snapshot) = with_snapshot().await;
    house.copy(&snapshot, "second").await.unwrap();
    house.script.shelf.lose("second");
    house.script.shelf.name("local", "second");
    house.script.shelf.verify.push(Act::Altered);
    house.verify(&snapshot).await.unwrap_err();
    house.script.shelf.verify.push(Act::Altered);
    house.copy(&snapshot, "local").await.unwrap_err();
    assert_eq!(house.there(), [(format!("local/{snapshot}"), true)], "it is all that there is");
}
