//! The smaller stores: operations, locks, the installation, profiles.

use std::collections::BTreeSet;
use std::fs;

use sandboxer::domain::{Code, HostName, Operation, OperationId, OperationState, State};
use sandboxer::store::catalogue::Catalogue;
use sandboxer::store::json::JsonStores;
use sandboxer::store::{
    Installation, Locks, OperationStore, Ownership, PinnedProfileStore, SandboxStore,
};

use super::{by, id, moment, record, stores};

pub(crate) fn operation(text: &str, n: i64) -> Operation {
    serde_json::from_value(serde_json::json!({
        "id": text, "kind": "create", "sandbox_id": "a", "state": "running", "started_at": moment(n), "pid": 1,
        "host": "here", "actor": {"type": "adm", "name": "ops"}
    }))
    .unwrap()
}

#[tokio::test]
async fn operations_are_kept_while_they_run_and_a_day_after() {
    let dir = tempfile::tempdir().unwrap();
    let store = stores(dir.path()).operations;
    let ended = |text: &str, n| Operation {
        state: OperationState::Succeeded,
        finished_at: Some(moment(n)),
        stage: Some("transfer".into()),
        done: Some(1),
        ..operation(text, n - 10)
    };
    store.put(operation("op-1", 0)).await.unwrap();
    store.put(operation("op-2", 5)).await.unwrap();
    store.put(ended("op-2", 15)).await.unwrap();
    store.put(ended("op-3", 20)).await.unwrap();
    let ids =
        async || store.list().await.unwrap().iter().map(|op| op.id.to_string()).collect::<Vec<_>>();
    assert_eq!(ids().await, ["op-1", "op-2", "op-3"]);
    let kept = store.get(&OperationId::new("op-2")).await.unwrap().unwrap();
    assert_eq!(kept.state, OperationState::Succeeded, "no progress");
    assert_eq!(kept.stage, None, "no progress");
    assert_eq!(kept.done, None, "no progress");
    store.put(ended("op-4", 24 * 3600 + 16)).await.unwrap();
    assert_eq!(ids().await, ["op-1", "op-3", "op-4"]);
    assert_eq!(store.get(&OperationId::new("op-2")).await.unwrap(), None);
}

#[tokio::test]
async fn an_operation_lock_has_one_holder_and_no_heir() {
    let dir = tempfile::tempdir().unwrap();
    let (locks, others) = (stores(dir.path()).locks, stores(dir.path()).locks);
    let held = locks.try_lock(&id("a")).await.unwrap().unwrap();
    assert!(others.try_lock(&id("a")).await.unwrap().is_none());
    assert!(others.try_lock(&id("b")).await.unwrap().is_some());
    // A child that outlives the holder must not keep it: the descriptor is not inherited.
    let mut child = std::process::Command::new("sleep").arg("30").spawn().unwrap();
    drop(held);
    assert!(others.try_lock(&id("a")).await.unwrap().is_some());
    // Nor must one that is just being started while it is freed.
    let starting = std::thread::spawn(|| {
        (0..100).for_each(|_| drop(std::process::Command::new("true").status()));
    });
    for _ in 0..300 {
        drop(locks.try_lock(&id("a")).await.unwrap().expect("nobody holds it"));
    }
    starting.join().unwrap();
    child.kill().unwrap();
    child.wait().unwrap();
    // Sandboxes may be called like our own files.
    for name in ["sandboxes", "events", "owner", "operations"] {
        let _held = locks.try_lock(&id(name)).await.unwrap().unwrap();
        let all = stores(dir.path());
        all.sandboxes.insert(record(name, 1)).await.unwrap();
        all.installation.next_stamp().await.unwrap();
    }
    // Somebody tidied up meanwhile: the lock that can be found counts.
    let held = locks.try_lock(&id("a")).await.unwrap().unwrap();
    fs::remove_file(dir.path().join("locks/a.lock")).unwrap();
    let second = others.try_lock(&id("a")).await.unwrap().unwrap();
    drop(held);
    assert!(locks.try_lock(&id("a")).await.unwrap().is_none());
    drop(second);
    let escape = locks.try_lock(&id("../escape")).await.err().unwrap();
    assert_eq!(escape.code, Code::InvalidInput);
}

#[tokio::test]
async fn lock_files_of_sandboxes_that_are_over_go_unless_somebody_holds_them() {
    let dir = tempfile::tempdir().unwrap();
    let all = stores(dir.path());
    all.sandboxes.insert(record("alive", 1)).await.unwrap();
    for name in ["alive", "gone"] {
        drop(all.locks.try_lock(&id(name)).await.unwrap().unwrap());
    }
    let _held = all.locks.try_lock(&id("busy")).await.unwrap().unwrap();
    all.locks.tidy([id("alive")].into()).await.unwrap();
    let mut left: Vec<String> = fs::read_dir(dir.path().join("locks"))
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .filter(|name| !name.starts_with('_'))
        .collect();
    left.sort();
    assert_eq!(left, ["alive.lock", "busy.lock"]);
    assert!(all.locks.try_lock(&id("gone")).await.unwrap().is_some(), "it can be made again");
}

#[tokio::test]
async fn a_host_that_saw_more_than_we_know_makes_us_an_old_copy_until_we_are_claimed() {
    let dir = tempfile::tempdir().unwrap();
    let open = || JsonStores::open_on(dir.path(), "m1").unwrap().installation;
    let ours = || async { open().ownership().await.unwrap() };
    open().next_stamp().await.unwrap();
    open().next_stamp().await.unwrap();
    let host = HostName::new("coulombcore");
    let found = open().seen_on(&host, 2).await.unwrap();
    assert_eq!(found, Ownership::Own, "a host may have the newest of our counters");
    let behind = Ownership::Behind { host: host.clone(), counter: 9 };
    assert_eq!(open().seen_on(&host, 9).await.unwrap(), behind);
    // Counting on past the host does not make the copy any younger.
    for _ in 0..8 {
        open().next_stamp().await.unwrap();
    }
    assert_eq!((open().stamp().await.unwrap().counter, ours().await), (10, behind));
    // Above what a host has: every other copy is the one behind.
    assert_eq!(open().claim(12).await.unwrap().counter, 1012);
    assert_eq!((open().stamp().await.unwrap().counter, ours().await), (1012, Ownership::Own));
    assert_eq!(open().next_stamp().await.unwrap().counter, 1013);
}

#[tokio::test]
async fn the_installation_keeps_its_id_and_counts() {
    let dir = tempfile::tempdir().unwrap();
    let open = |machine: &str| JsonStores::open_on(dir.path(), machine).unwrap().installation;
    let first = open("m1").next_stamp().await.unwrap();
    assert_eq!((first.counter, first.machine_id.as_str()), (1, "m1"));
    assert_eq!(first.owner.as_str().len(), 32);
    let second = open("m1").next_stamp().await.unwrap();
    assert_eq!((second.counter, &second.owner), (2, &first.owner));
    assert_eq!(open("m1").owners().await.unwrap(), std::slice::from_ref(&first.owner));
    // Fields of a newer version, and a second owner id.
    let file = dir.path().join("owner");
    let text = fs::read_to_string(&file).unwrap();
    let more = text
        .replace(r#""owners":["#, r#""later":[1],"owners":["#)
        .replace("],\"mach", ",\"other\"],\"mach");
    fs::write(&file, more).unwrap();
    assert_eq!(open("m1").ownership().await.unwrap(), Ownership::Own);
    let moved = open("m2");
    assert_eq!(moved.ownership().await.unwrap(), Ownership::Copied);
    assert_eq!(moved.next_stamp().await.unwrap().machine_id, "m2");
    assert_eq!(moved.ownership().await.unwrap(), Ownership::Copied, "counting is not claiming");
    moved.claim(0).await.unwrap();
    assert_eq!(moved.ownership().await.unwrap(), Ownership::Own);
    assert_eq!(open("m1").ownership().await.unwrap(), Ownership::Copied);
    assert_eq!(moved.owners().await.unwrap().len(), 2);
    let value: serde_json::Value = serde_json::from_slice(&fs::read(&file).unwrap()).unwrap();
    assert_eq!(
        (&value["later"][0], &value["schema"], &value["counter"]),
        (&1.into(), &1.into(), &1003.into())
    );
}

#[tokio::test]
async fn a_profile_is_kept_under_its_hash() {
    let dir = tempfile::tempdir().unwrap();
    let store = stores(dir.path()).pinned_profiles;
    let catalogue = Catalogue::load(None, None, &BTreeSet::from(["ext.compose-ssh"]));
    let profile = catalogue.usable_profile("profile.sandbox-canary").unwrap();
    assert_eq!(store.get(&profile.hash()).await.unwrap(), None);
    store.put(profile).await.unwrap();
    let file = dir.path().join(format!("pinned/{}.json", profile.hash()));
    let written = fs::metadata(&file).unwrap().modified().unwrap();
    store.put(profile).await.unwrap();
    assert_eq!(fs::metadata(&file).unwrap().modified().unwrap(), written, "written once");
    let read = store.get(&profile.hash()).await.unwrap().unwrap();
    assert_eq!((&read, read.hash()), (profile, profile.hash()));
    assert_eq!(store.get("../owner").await.unwrap(), None);
    fs::write(&file, "{").unwrap();
    assert_eq!(store.get(&profile.hash()).await.unwrap_err().code, Code::StoreCorrupt);
}

#[tokio::test]
async fn a_record_in_both_places_is_counted_once() {
    let dir = tempfile::tempdir().unwrap();
    let store = stores(dir.path()).sandboxes;
    store.insert(record("a", 1)).await.unwrap();
    for state in [State::Destroying, State::Destroyed] {
        store.update(&id("a"), None, by(|a| a.state = state)).await.unwrap();
    }
    // As if the process had died after the history's line, and another one within a line.
    let line = serde_json::to_string(&store.get(&id("a")).await.unwrap()).unwrap();
    fs::write(dir.path().join("history.jsonl"), format!("{line}\n{line}\n{}", &line[..30]))
        .unwrap();
    assert_eq!((store.list().await.unwrap().len(), store.history().await.unwrap().len()), (1, 0));
    let unreadable_lines = store.unreadable_lines().await.unwrap();
    assert!(unreadable_lines[0].file.ends_with("history.jsonl"), "{unreadable_lines:?}");
    assert_eq!(unreadable_lines[0].lines, [3], "{unreadable_lines:?}");
    assert_eq!(store.archive(moment(100)).await.unwrap(), 1);
    assert_eq!((store.list().await.unwrap().len(), store.history().await.unwrap().len()), (0, 1));
    // The next one's line is whole although the last one was not.
    store.insert(record("b", 2)).await.unwrap();
    for state in [State::Destroying, State::Destroyed] {
        store.update(&id("b"), None, by(|b| b.state = state)).await.unwrap();
    }
    assert_eq!(store.archive(moment(100)).await.unwrap(), 1);
    assert_eq!(store.history().await.unwrap().len(), 2);
    assert_eq!(store.insert(record("b", 2)).await.unwrap_err().code, Code::Conflict);
}
