//! Several processes on one data directory, some of them killed.

use std::fs;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use sandboxer::domain::actor::Actor;
use sandboxer::domain::credit::EntryKind;
use sandboxer::domain::event::{EventKind, PendingEvent};
use sandboxer::domain::{Code, EventId, State};
use sandboxer::store::{
    CreditStore, EventFilter, EventLog, Installation, Locks, OperationStore, SandboxStore,
};

use super::{by, id, moment, record, small, stores};

const VERB: &str = "SANDBOXER_TEST_VERB";
const DIR: &str = "SANDBOXER_TEST_DIR";
const COUNT: &str = "SANDBOXER_TEST_COUNT";

/// This test program again, as another process that does `verb` in `dir`.
pub(crate) fn child(verb: &str, dir: &Path, count: u64, umask: Option<&str>) -> Command {
    let mut command = match umask {
        Some(umask) => {
            let mut shell = Command::new("sh");
            shell
                .args(["-c", &format!("umask {umask}; exec \"$0\" \"$@\"")])
                .arg(std::env::current_exe().unwrap());
            shell
        }
        None => Command::new(std::env::current_exe().unwrap()),
    };
    command.args(["--exact", "stores::processes::the_other_process", "--ignored", "--nocapture"]);
    command.env(VERB, verb).env(DIR, dir).env(COUNT, count.to_string()).stdout(Stdio::null());
    command
}

#[tokio::test]
#[ignore = "the other tests run it as a process of its own"]
async fn the_other_process() {
    let Ok(verb) = std::env::var(VERB) else { return };
    let all = stores(Path::new(&std::env::var(DIR).unwrap()));
    let count: u64 = std::env::var(COUNT).unwrap().parse().unwrap();
    let store = &all.sandboxes;
    match verb.as_str() {
        "update" => {
            for _ in 0..count {
                store.update(&id("a"), None, by(|a| a.last_patch_sequence += 1)).await.unwrap();
            }
        }
        // Compare-and-set, as a careful caller does it.
        "race" => {
            for _ in 0..count {
                loop {
                    let seen = store.get(&id("a")).await.unwrap().unwrap();
                    let next = seen.last_patch_sequence + 1;
                    let change = by(|a| a.last_patch_sequence = next);
                    if store.update(&id("a"), Some(seen.revision), change).await.is_ok() {
                        break;
                    }
                }
            }
        }
        "append" => {
            for n in 0..count {
                all.events
                    .append(vec![event(u64::from(std::process::id()) << 32 | n)])
                    .await
                    .unwrap();
            }
        }
        "stamp" => {
            for _ in 0..count {
                all.installation.next_stamp().await.unwrap();
            }
        }
        "hold" => {
            let _held = all.locks.try_lock(&id("a")).await.unwrap().unwrap();
            fs::write(Path::new(&std::env::var(DIR).unwrap()).join("held"), "").unwrap();
            tokio::time::sleep(Duration::from_mins(1)).await;
        }
        "credits" => {
            for n in 0..count {
                let key = format!("{}-{n}", std::process::id());
                let hold = super::credits::entry(&key, EntryKind::Hold, Some("a"), 1);
                if let Err(error) = all.credits.append(vec![hold]).await {
                    assert_eq!(error.code, Code::InsufficientCredits);
                }
            }
        }
        "everything" => everything(&all).await,
        other => panic!("no such verb: {other}"),
    }
}

/// Makes every file there is.
async fn everything(all: &sandboxer::store::json::JsonStores) {
    for n in 0..2 {
        all.sandboxes.insert(record(&format!("s{n}"), n)).await.unwrap();
        all.events.append(vec![event(u64::try_from(n).unwrap())]).await.unwrap();
        all.operations.put(small::operation(&format!("op-{n}"), n)).await.unwrap();
        all.installation.next_stamp().await.unwrap();
    }
    for state in [State::Destroying, State::Destroyed] {
        all.sandboxes.update(&id("s0"), None, by(|s| s.state = state)).await.unwrap();
    }
    assert_eq!(all.sandboxes.archive(moment(100)).await.unwrap(), 1);
    assert!(all.locks.try_lock(&id("a")).await.unwrap().is_some());
}

pub(crate) fn event(n: u64) -> PendingEvent {
    PendingEvent {
        id: EventId::new(format!("event-{n:020}")),
        time: moment(0),
        kind: EventKind::HostUp,
        sandbox_id: None,
        actor: Actor::parse("atm:test").unwrap(),
        data: serde_json::Value::Null,
    }
}

fn started(verb: &str, dir: &Path, count: u64) -> Child {
    child(verb, dir, count, None).spawn().unwrap()
}

/// Reads the file as another program would, until `done`.
fn valid_at_every_moment(dir: &Path, mut done: impl FnMut() -> bool) {
    let mut last = 0;
    let mut reads = 0;
    while !done() {
        let text = fs::read(dir.join("sandboxes.json")).expect("there at every moment");
        let value: serde_json::Value =
            serde_json::from_slice(&text).expect("whole at every moment");
        let revision = value["revision"].as_u64().unwrap();
        assert!(revision >= last, "{revision} after {last}");
        last = revision;
        reads += 1;
    }
    assert!(reads > 100, "{reads}");
}

#[tokio::test(flavor = "multi_thread")]
async fn eight_processes_lose_no_update() {
    for verb in ["update", "race"] {
        let dir = tempfile::tempdir().unwrap();
        let store = stores(dir.path()).sandboxes;
        store.insert(record("a", 1)).await.unwrap();
        store.insert(record("b", 1)).await.unwrap();
        let mut children: Vec<_> = (0..8).map(|_| started(verb, dir.path(), 100)).collect();
        valid_at_every_moment(dir.path(), || {
            children.iter_mut().all(|child| child.try_wait().unwrap().is_some())
        });
        assert!(children.iter_mut().all(|child| child.wait().unwrap().success()));
        let end = store.get(&id("a")).await.unwrap().unwrap();
        assert_eq!((end.last_patch_sequence, end.revision), (800, 801));
    }
}

#[tokio::test]
async fn numbers_and_counters_are_given_once() {
    let dir = tempfile::tempdir().unwrap();
    let verbs = ["append", "append", "append", "append", "stamp", "stamp", "stamp"];
    let mut children: Vec<_> = verbs.iter().map(|verb| started(verb, dir.path(), 50)).collect();
    assert!(children.iter_mut().all(|child| child.wait().unwrap().success()));
    let all = stores(dir.path());
    let seqs: Vec<_> = all
        .events
        .read(&EventFilter::default())
        .await
        .unwrap()
        .iter()
        .map(|event| event.seq)
        .collect();
    assert_eq!(seqs, (1..=200).collect::<Vec<_>>());
    assert_eq!(all.installation.next_stamp().await.unwrap().counter, 151);
}

#[tokio::test]
async fn a_killed_writer_leaves_whole_files() {
    let dir = tempfile::tempdir().unwrap();
    let all = stores(dir.path());
    all.sandboxes.insert(record("a", 1)).await.unwrap();
    let mut revision = 1;
    let file = dir.path().join("sandboxes.json");
    for round in 0..25 {
        let before = fs::read(&file).unwrap();
        let mut writers =
            [started("update", dir.path(), 100_000), started("append", dir.path(), 100_000)];
        // In the middle of its writing: to start takes it a while, and a busy machine a long one.
        while fs::read(&file).unwrap() == before {
            assert!(writers[0].try_wait().unwrap().is_none(), "it ended before it wrote");
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        tokio::time::sleep(Duration::from_millis(round * 7)).await;
        for writer in &mut writers {
            assert!(
                writer.try_wait().unwrap().is_none(),
                "it was to be killed, and ended by itself"
            );
            // SIGKILL: nothing of it runs any more.
            writer.kill().unwrap();
            writer.wait().unwrap();
        }
        serde_json::from_slice::<serde_json::Value>(&fs::read(&file).unwrap()).unwrap();
        let record = all.sandboxes.get(&id("a")).await.unwrap().unwrap();
        assert!(record.revision >= revision);
        assert_eq!(record.last_patch_sequence + round + 1, record.revision);
        revision = all
            .sandboxes
            .update(&id("a"), Some(record.revision), by(|_| ()))
            .await
            .unwrap()
            .revision;
        all.events.append(vec![event(round)]).await.unwrap();
    }
    let seqs: Vec<_> = all
        .events
        .read(&EventFilter::default())
        .await
        .unwrap()
        .iter()
        .map(|event| event.seq)
        .collect();
    assert!(seqs.windows(2).all(|pair| pair[0] < pair[1]), "each number once");
    assert!(revision > 50, "the writers were killed before they wrote: {revision}");
    let litter = fs::read_dir(dir.path())
        .unwrap()
        .filter(|e| e.as_ref().unwrap().path().extension() == Some("tmp".as_ref()));
    assert!(litter.count() <= 1, "each first write tidies up");
}

#[tokio::test]
async fn a_dead_holder_frees_its_lock() {
    let dir = tempfile::tempdir().unwrap();
    let mut holder = started("hold", dir.path(), 1);
    while !dir.path().join("held").exists() {
        assert!(holder.try_wait().unwrap().is_none());
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    let locks = stores(dir.path()).locks;
    assert!(locks.try_lock(&id("a")).await.unwrap().is_none());
    holder.kill().unwrap();
    holder.wait().unwrap();
    assert!(locks.try_lock(&id("a")).await.unwrap().is_some());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_dropped_call_writes_all_or_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let store = stores(dir.path()).sandboxes;
    store.insert(record("a", 1)).await.unwrap();
    let a = id("a");
    for n in 0..200 {
        let update = store.update(&a, None, by(|a| a.last_patch_sequence += 1));
        let _ = tokio::time::timeout(Duration::from_micros(n * 20), update).await;
    }
    // What was begun ends by itself; nothing stays locked.
    let end = store.update(&id("a"), None, by(|_| ())).await.unwrap();
    assert_eq!(end.last_patch_sequence + 2, end.revision);
    assert!(end.revision > 2, "some were left to finish");
}
