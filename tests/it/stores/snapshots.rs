//! What every `SnapshotStore` and `PatchStore` does, whatever it keeps its records in.

use sandboxer::domain::error::{Code, Error};
use sandboxer::domain::name::HostName;
use sandboxer::domain::snapshot::{ReplicaState, SnapshotRecord, SnapshotState};
use sandboxer::domain::{Patch, PatchId, SnapshotId, State};
use sandboxer::store::{Change, Locks, PatchStore, SandboxStore, SnapshotStore};

use super::{by, id, moment, record, stores};

fn snapshot(id: &str, n: i64) -> SnapshotRecord {
    serde_json::from_value(serde_json::json!({
        "id": id, "kind": "user", "sandbox_id": "a1b2c3d4", "profile": {"id": "profile.x", "version": "1.0.0", "hash": "00"},
        "extension": "ext.compose-ssh", "host": "local", "state": "creating", "created_at": moment(n), "patch_level": 0,
        "next_patch_sequence": 1, "actor": {"type": "adm", "name": "ops"}, "owner": "0123456789abcdef", "revision": 0
    }))
    .unwrap()
}

fn patch(id: &str, snapshot: &str, sequence: u64) -> Patch {
    serde_json::from_value(serde_json::json!({
        "id": id, "snapshot_id": snapshot, "sequence": sequence, "script": "true", "run_in": "workspace",
        "created_at": moment(0), "actor": {"type": "adm", "name": "ops"}, "revision": 0
    }))
    .unwrap()
}

fn snap(text: &str) -> SnapshotId {
    SnapshotId::new(text)
}

fn become_<'a>(state: SnapshotState) -> Change<'a, SnapshotRecord> {
    Box::new(move |record| {
        record.state = state;
        Ok(())
    })
}

fn field(result: Result<SnapshotRecord, Error>) -> String {
    let fault = result.unwrap_err();
    assert_eq!(fault.code, Code::Conflict, "{fault}");
    fault.details["field"].as_str().unwrap_or_default().to_owned()
}

#[tokio::test]
async fn a_snapshots_id_is_used_once_and_its_name_until_it_fails_or_goes() {
    let dir = tempfile::tempdir().unwrap();
    let store = stores(dir.path()).snapshots;
    let named = |id, n| SnapshotRecord { name: Some("my-env".into()), ..snapshot(id, n) };
    let first =
        store.insert(SnapshotRecord { revision: 0, ..named("snap-00000001", 5) }).await.unwrap();
    assert_eq!(first.revision, 1);
    assert_eq!(field(store.insert(snapshot("snap-00000001", 6)).await), "id");
    assert_eq!(field(store.insert(named("snap-00000002", 6)).await), "name");
    store.update(&snap("snap-00000001"), Some(1), become_(SnapshotState::Failed)).await.unwrap();
    // One that comes back goes on where it was.
    let back =
        store.insert(SnapshotRecord { revision: 9, ..named("snap-00000002", 1) }).await.unwrap();
    assert_eq!(back.revision, 10);
    let ids: Vec<String> =
        store.list().await.unwrap().iter().map(|record| record.id.to_string()).collect();
    assert_eq!(ids, ["snap-00000002", "snap-00000001"], "oldest first");
    assert_eq!(
        store.remove(&snap("snap-00000002"), None).await.unwrap().name.as_deref(),
        Some("my-env")
    );
    assert_eq!(store.get(&snap("snap-00000002")).await.unwrap(), None);
    assert_eq!(store.remove(&snap("snap-00000002"), None).await.unwrap_err().code, Code::NotFound);
}

#[tokio::test]
async fn a_sandboxs_id_is_no_snapshots_name() {
    let dir = tempfile::tempdir().unwrap();
    let all = stores(dir.path());
    let named = |id, name: &str| SnapshotRecord { name: Some(name.into()), ..snapshot(id, 1) };
    all.sandboxes.insert(record("web", 1)).await.unwrap();
    assert_eq!(field(all.snapshots.insert(named("snap-00000001", "web")).await), "name");
    all.snapshots.insert(named("snap-00000001", "before")).await.unwrap();
    for taken in ["before", "snap-00000001"] {
        let fault = all.sandboxes.insert(record(taken, 1)).await.unwrap_err();
        assert_eq!(fault.code, Code::Conflict, "{fault}");
        assert_eq!(fault.details["field"].as_str(), Some("id"), "{fault}");
        assert_eq!(fault.details["current"]["id"], "snap-00000001");
    }
    all.snapshots
        .update(&snap("snap-00000001"), None, become_(SnapshotState::Failed))
        .await
        .unwrap();
    all.sandboxes.insert(record("before", 1)).await.unwrap();
    // One that a random id of a snapshot meets is met as any other id is: the caller takes another.
    all.sandboxes.insert(record("snap-00000002", 1)).await.unwrap();
    assert_eq!(field(all.snapshots.insert(snapshot("snap-00000002", 1)).await), "id");
    for state in [State::Destroying, State::Destroyed] {
        all.sandboxes.update(&id("web"), None, by(|web| web.state = state)).await.unwrap();
    }
    assert_eq!(all.sandboxes.archive(moment(100)).await.unwrap(), 1);
    assert_eq!(field(all.snapshots.insert(named("snap-00000003", "web")).await), "name");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn of_a_sandbox_and_a_snapshot_that_want_one_word_at_once_one_gets_it() {
    let dir = tempfile::tempdir().unwrap();
    let (here, there) = (stores(dir.path()).sandboxes, stores(dir.path()).snapshots);
    for n in 0..60_u32 {
        let word = format!("word{n}");
        let (sandboxes, made) = (here.clone(), record(&word, 1));
        let taken = SnapshotRecord { name: Some(word), ..snapshot(&format!("snap-{n:08x}"), 1) };
        let snapshots = there.clone();
        let sandbox = tokio::spawn(async move { sandboxes.insert(made).await.is_ok() });
        let snapshot = tokio::spawn(async move { snapshots.insert(taken).await.is_ok() });
        assert_ne!(sandbox.await.unwrap(), snapshot.await.unwrap(), "word{n}");
    }
}

#[tokio::test]
async fn a_snapshots_update_wants_the_revision_it_saw_and_makes_only_legal_moves() {
    let dir = tempfile::tempdir().unwrap();
    let store = stores(dir.path()).snapshots;
    let before = store.version().await.unwrap();
    store.insert(snapshot("snap-00000001", 1)).await.unwrap();
    assert_ne!(store.version().await.unwrap(), before);
    let one = snap("snap-00000001");
    assert_eq!(
        store.update(&one, Some(1), become_(SnapshotState::Ready)).await.unwrap().revision,
        2
    );
    let found = field(store.update(&one, Some(1), become_(SnapshotState::Deleting)).await);
    assert_eq!(found, "revision");
    assert_eq!(field(store.update(&one, None, become_(SnapshotState::Creating)).await), "state");
    let refused = store.update(&one, None, Box::new(|_| Err(Error::new(Code::Busy, "no")))).await;
    assert_eq!(refused.unwrap_err().code, Code::Busy);
    assert_eq!(
        store.get(&one).await.unwrap().unwrap().revision,
        2,
        "a refused change changes nothing"
    );
    assert_eq!(store.remove(&one, Some(1)).await.unwrap_err().code, Code::Conflict);
}

#[tokio::test]
async fn a_batch_of_snapshots_is_one_write_and_each_of_it_is_judged_alone() {
    let dir = tempfile::tempdir().unwrap();
    let store = stores(dir.path()).snapshots;
    for (n, name) in [(1, "one"), (2, "two")] {
        let new = snapshot(&format!("snap-0000000{n}"), n);
        store.insert(SnapshotRecord { name: Some(name.into()), ..new }).await.unwrap();
    }
    let before = store.version().await.unwrap();
    let written = |dir: &std::path::Path| {
        let text = std::fs::read(dir.join("snapshots.json")).unwrap();
        serde_json::from_slice::<serde_json::Value>(&text).unwrap()["revision"].as_u64().unwrap()
    };
    let writes = written(dir.path());
    let (one, two) = (snap("snap-00000001"), snap("snap-00000002"));
    let call = |name: &'static str| -> Change<'_, SnapshotRecord> {
        Box::new(move |record: &mut SnapshotRecord| {
            record.name = Some(name.into());
            Ok(())
        })
    };
    let batch = vec![
        (two.clone(), Some(1), become_(SnapshotState::Ready)),
        (one.clone(), Some(7), become_(SnapshotState::Ready)),
        (snap("snap-00000009"), None, become_(SnapshotState::Ready)),
        (one.clone(), Some(1), call("free")),
        // One sees what those before it did.
        (two.clone(), Some(2), call("one")),
        (one.clone(), None, call("one")),
        (two.clone(), None, become_(SnapshotState::Creating)),
    ];
    let outcomes = store.update_many(batch).await.unwrap();
    let told: Vec<_> = outcomes
        .iter()
        .map(|one| one.as_ref().map(|record| record.revision).map_err(|fault| &fault.code))
        .collect();
    let conflict = Err(&Code::Conflict);
    assert_eq!(told, [Ok(2), conflict, Err(&Code::NotFound), Ok(2), Ok(3), conflict, conflict]);
    let names: Vec<_> = store.list().await.unwrap().into_iter().map(|one| one.name).collect();
    assert_eq!(names, [Some("free".to_owned()), Some("one".to_owned())]);
    assert_eq!(written(dir.path()), writes + 1, "one write");
    let after = store.version().await.unwrap();
    assert_ne!(after, before);
    let refused = vec![(one, Some(1), become_(SnapshotState::Ready))];
    assert!(store.update_many(refused).await.unwrap()[0].is_err());
    assert!(store.update_many(Vec::new()).await.unwrap().is_empty());
    assert_eq!(store.version().await.unwrap(), after, "nothing was written");
}

#[tokio::test]
async fn snapshots_come_in_the_order_in_which_they_were_inserted_whatever_their_time() {
    let dir = tempfile::tempdir().unwrap();
    let store = stores(dir.path()).snapshots;
    for (id, n) in [("snap-00000003", 9), ("snap-00000001", 5), ("snap-00000002", 7)] {
        store.insert(snapshot(id, n)).await.unwrap();
    }
    store.update(&snap("snap-00000003"), None, become_(SnapshotState::Ready)).await.unwrap();
    let ids = |records: &[SnapshotRecord]| {
        records.iter().map(|record| record.id.to_string()).collect::<Vec<_>>()
    };
    let came = ["snap-00000003", "snap-00000001", "snap-00000002"];
    assert_eq!(ids(&store.list_by_insertion().await.unwrap()), came);
    let found = ids(&store.list().await.unwrap());
    assert_eq!(found, ["snap-00000001", "snap-00000002", "snap-00000003"]);
    let change = |_: &mut SnapshotRecord, all: &[&SnapshotRecord]| {
        assert_eq!(all.iter().map(|record| record.id.as_str()).collect::<Vec<_>>(), came);
        Ok(())
    };
    store.update_among(&snap("snap-00000001"), Some(1), Box::new(change)).await.unwrap();
    assert_eq!(
        field(store.update_among(&snap("snap-00000001"), Some(1), Box::new(|_, _| Ok(()))).await),
        "revision"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn of_two_that_are_changed_only_while_the_other_is_ready_one_is() {
    let dir = tempfile::tempdir().unwrap();
    for n in 0..40_u32 {
        let ids = [format!("snap-{n:04}0001"), format!("snap-{n:04}0002")];
        let (here, there) = (stores(dir.path()).snapshots, stores(dir.path()).snapshots);
        for id in &ids {
            here.insert(snapshot(id, 1)).await.unwrap();
            here.update(&snap(id), None, become_(SnapshotState::Ready)).await.unwrap();
        }
        let delete = |store: std::sync::Arc<sandboxer::store::snapshots::SnapshotFile>,
                      one: usize| {
            let (id, other) = (snap(&ids[one]), snap(&ids[1 - one]));
            tokio::spawn(async move {
                let change = move |record: &mut SnapshotRecord, all: &[&SnapshotRecord]| {
                    if all
                        .iter()
                        .all(|known| known.id != other || known.state != SnapshotState::Ready)
                    {
                        return Err(Error::new(Code::Conflict, "it is the last one"));
                    }
                    record.state = SnapshotState::Deleting;
                    Ok(())
                };
                store.update_among(&id, None, Box::new(change)).await.is_ok()
            })
        };
        let (one, two) = (delete(here, 0), delete(there, 1));
        assert_ne!(one.await.unwrap(), two.await.unwrap(), "{n}");
    }
}

#[tokio::test]
async fn what_a_newer_version_wrote_beside_a_snapshots_fields_stays() {
    let dir = tempfile::tempdir().unwrap();
    stores(dir.path()).snapshots.insert(snapshot("snap-00000001", 1)).await.unwrap();
    let path = dir.path().join("snapshots.json");
    let text = std::fs::read_to_string(&path).unwrap().replacen(
        "\"kind\"",
        "\"encrypted\":true,\"kind\"",
        1,
    );
    std::fs::write(&path, text).unwrap();
    let again = stores(dir.path()).snapshots;
    again.update(&snap("snap-00000001"), None, become_(SnapshotState::Ready)).await.unwrap();
    assert!(std::fs::read_to_string(&path).unwrap().contains("\"encrypted\":true"));
}

#[tokio::test]
async fn a_patchs_place_on_its_snapshot_is_taken_once() {
    let dir = tempfile::tempdir().unwrap();
    let store = stores(dir.path()).patches;
    store.insert(patch("pat-00000002", "snap-00000001", 2)).await.unwrap();
    store.insert(patch("pat-00000001", "snap-00000001", 1)).await.unwrap();
    store.insert(patch("pat-00000003", "snap-00000002", 1)).await.unwrap();
    for (taken, by) in [
        (patch("pat-00000009", "snap-00000001", 2), "sequence"),
        (patch("pat-00000001", "snap-00000003", 1), "id"),
    ] {
        assert_eq!(store.insert(taken).await.unwrap_err().details["field"], by);
    }
    let ids = async || {
        store.list().await.unwrap().iter().map(|patch| patch.id.to_string()).collect::<Vec<_>>()
    };
    let found = ids().await;
    assert_eq!(found, ["pat-00000001", "pat-00000002", "pat-00000003"], "by snapshot and sequence");
    assert!(store.remove(&PatchId::new("pat-00000002")).await.unwrap().is_some());
    assert!(store.remove(&PatchId::new("pat-00000002")).await.unwrap().is_none());
    assert_eq!(ids().await, ["pat-00000001", "pat-00000003"]);
}

#[tokio::test]
async fn a_snapshots_lock_is_its_own_and_no_path() {
    let dir = tempfile::tempdir().unwrap();
    let (locks, others) = (stores(dir.path()).locks, stores(dir.path()).locks);
    let held = locks.try_lock_snapshot(&snap("snap-0badcafe")).await.unwrap().unwrap();
    assert!(others.try_lock_snapshot(&snap("snap-0badcafe")).await.unwrap().is_none());
    // A sandbox may be called like a snapshot.
    assert!(others.try_lock(&id("snap-0badcafe")).await.unwrap().is_some());
    drop(held);
    assert!(others.try_lock_snapshot(&snap("snap-0badcafe")).await.unwrap().is_some());
    for bad in ["../../x", "snap-", "snap-../../00", ""] {
        let found = locks.try_lock_snapshot(&snap(bad)).await.err().map(|fault| fault.code);
        assert_eq!(found, Some(Code::InvalidInput));
    }
}

/// Record as versions before the list of replicas wrote it: what it says of archives is taken over once.
#[tokio::test]
async fn a_record_of_an_earlier_version_is_changed_as_one_of_today() {
    let dir = tempfile::tempdir().unwrap();
    let mut record = serde_json::to_value(snapshot("snap-00000001", 5)).unwrap();
    let earlier = serde_json::json!({
        "state": "ready", "path": "/srv/snapshots/snap-00000001", "host_identity": null, "copying_to": "there",
        "unremoved": false, "later": 7, "replicas": [],
        "damage": [{"host": "local", "kind": "altered", "message": "was cut short", "found_at": moment(6)}],
    });
    record.as_object_mut().unwrap().extend(earlier.as_object().unwrap().clone());
    let file = dir.path().join("snapshots.json");
    let document = serde_json::json!({"schema": 1, "revision": 1, "records": [record]});
    std::fs::write(&file, document.to_string()).unwrap();
    let listed = |record: &SnapshotRecord| -> Vec<String> {
        record.replicas.iter().map(|one| format!("{} {}", one.host, one.state)).collect()
    };
    let id = snap("snap-00000001");
    for turn in 0..2 {
        let store = stores(dir.path()).snapshots;
        let record = store.get(&id).await.unwrap().unwrap();
        if turn == 0 {
            assert_eq!(listed(&record), ["local damaged", "there arriving"]);
        }
        let change: Change<'_, SnapshotRecord> = Box::new(|record| {
            record.mark_all(&ReplicaState::Ready);
            record.drop_replica(&HostName::new("there"));
            Ok(())
        });
        store.update(&id, None, change).await.unwrap();
        let record = stores(dir.path()).snapshots.get(&id).await.unwrap().unwrap();
        assert_eq!(listed(&record), ["local ready"]);
        let text = std::fs::read_to_string(&file).unwrap();
        for gone in ["copying_to", "damage\"", "unremoved"] {
            assert!(!text.contains(gone), "{gone}: {text}");
        }
        assert!(text.contains("\"later\":7"), "a newer version's field stays: {text}");
    }
}
