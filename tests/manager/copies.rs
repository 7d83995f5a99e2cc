//! Copies that do not arrive as they were sent: the archive that was sent is read, and what it proves to be decides.

use sandboxer::domain::request::SnapshotCopyRequest;
use sandboxer::domain::snapshot::SnapshotRecord;
use sandboxer::domain::{Code, Fault};

use crate::house::{House, house};
use crate::scripted::Act;
use crate::snapshots::source;

async fn copy(house: &House, to: &str, arrivals: &[Act], readings: &[Act]) -> Result<SnapshotRecord, Fault> {
    house.script.shelf.copy.lock().unwrap().extend(arrivals.iter().cloned());
    house.script.shelf.verify.lock().unwrap().extend(readings.iter().cloned());
    let id = house.manager.snapshot_view("my-env").await?.record.id.to_string();
    let request = SnapshotCopyRequest { id, host: to.to_owned() };
    let started = house.manager.copy_snapshot(&request).await?;
    house.manager.finish_snapshot(&started.operation.unwrap()).await
}

impl House {
    async fn damaged(&self) -> Vec<String> {
        let record = self.other.snapshot_view("my-env").await.unwrap().record;
        record.damage.iter().map(|damage| damage.host.to_string()).collect()
    }
}

#[tokio::test]
async fn a_sound_archive_is_not_blamed_for_what_became_of_it_on_the_way() {
    let house = house();
    let id = source(&house).await;
    house.snapshot(&id, "my-env").await.unwrap();
    let fault = copy(&house, "second", &[Act::Otherwise], &[Act::Well]).await.unwrap_err();
    assert_eq!(fault.code, Code::OperationFailed);
    assert!(fault.message.contains("did not arrive on second as it was sent"), "{fault}");
    assert!(fault.hint.unwrap().contains("the archive on local is what it was"));
    // Its host went away: nobody knows.
    let fault =
        copy(&house, "second", &[Act::Otherwise], &[Act::Fail(Code::HostUnreachable, "no route")]).await.unwrap_err();
    assert!(fault.hint.unwrap().contains("could not be told"));
    assert!(house.damaged().await.is_empty());
}

#[tokio::test]
async fn an_altered_archive_is_noted_and_the_copy_goes_on_from_the_next() {
    let house = house();
    let id = source(&house).await;
    house.snapshot(&id, "my-env").await.unwrap();
    let fault = copy(&house, "second", &[Act::Otherwise], &[Act::Altered]).await.unwrap_err();
    assert!(fault.message.contains("cut short"), "what the reading said: {fault}");
    assert!(fault.hint.unwrap().contains("snapshots verify"));
    assert_eq!(house.damaged().await, ["local"]);

    // It is the last that is asked, once there is a copy that nobody knows anything of.
    copy(&house, "second", &[Act::Well], &[]).await.unwrap();
    copy(&house, "third", &[Act::Otherwise, Act::Well], &[Act::Altered]).await.unwrap();
    let asked: Vec<String> = house.script.asked().into_iter().filter(|asked| asked.ends_with("to third")).collect();
    assert!(asked[0].contains("from second") && asked[1].contains("from local"), "{asked:?}");
    assert_eq!(asked.len(), 2);
    assert_eq!(house.damaged().await, ["local", "second"]);
}
