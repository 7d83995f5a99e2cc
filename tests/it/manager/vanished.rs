//! Sandboxes of which their host has nothing any more, many at once.

use sandboxer::domain::extension::Inspection;
use sandboxer::domain::{SandboxId, SandboxRecord, State};
use sandboxer::store::SandboxStore as _;
use sandboxer::store::json::JsonStores;

use crate::test_env::{TestEnv, test_env};

/// How often the file of the sandboxes was written.
fn writes(house: &TestEnv) -> u64 {
    let text = std::fs::read(house.folder.path().join("sandboxes.json")).unwrap();
    serde_json::from_slice::<serde_json::Value>(&text).unwrap()["revision"].as_u64().unwrap()
}

/// Records, so many, all of them ready.
async fn many(house: &TestEnv, count: usize) {
    let id = house.ready().await;
    let first = house.record(&id).await;
    let store = JsonStores::open(house.folder.path()).unwrap().sandboxes;
    for n in 1..count {
        let record =
            SandboxRecord { id: SandboxId::new(format!("more-{n}")), name: None, ..first.clone() };
        store.insert(SandboxRecord { idempotency_key: None, ..record }).await.unwrap();
    }
}

#[tokio::test]
async fn what_many_lost_is_written_down_at_once_with_an_event_for_each() {
    let house = test_env();
    many(&house, 60).await;
    house.script.nothing_there.set(true);
    house.script.seen.set(Inspection::default());
    let before = writes(&house);
    house.manager.doctor(false).await.unwrap();
    let lost = JsonStores::open(house.folder.path()).unwrap().sandboxes.list().await.unwrap();
    assert_eq!(lost.iter().filter(|record| record.state == State::Lost).count(), 60);
    assert_eq!(house.count_told("sandbox.lost").await, 60);
    let written = writes(&house) - before;
    assert_eq!(written, 1, "one write for all that was seen");
    assert!(lost.iter().all(|record| record.observed_at.is_some() && record.services.is_empty()));
    house.manager.doctor(false).await.unwrap();
    assert_eq!(house.count_told("sandbox.lost").await, 60, "each is told once");
}

#[tokio::test]
async fn what_dead_processes_left_pending_on_many_is_settled_with_one_write_and_told_once() {
    let house = test_env();
    many(&house, 40).await;
    let store = JsonStores::open(house.folder.path()).unwrap().sandboxes;
    let told = house.kinds().await.len();
    let pending: usize =
        store.list().await.unwrap().iter().map(|record| record.pending.len()).sum();
    assert!(pending >= 40, "each has the event of its last write: {pending}");
    let before = writes(&house);
    house.other.settle().await.unwrap();
    assert_eq!(writes(&house) - before, 1);
    assert!(store.list().await.unwrap().iter().all(|record| record.pending.is_empty()));
    assert_eq!(house.kinds().await.len(), told, "they were in the log already");
    house.other.settle().await.unwrap();
    assert_eq!(writes(&house) - before, 1, "nothing is left to be done");
}
