//! What every `SandboxStore` does, whatever it keeps its records in. Each function gets an empty store.

use std::sync::Arc;

use sandboxer::domain::error::{Code, Error};
use sandboxer::domain::event::{EventKind, PendingEvent, derived_event_id};
use sandboxer::domain::{SandboxRecord, State};
use sandboxer::store::SandboxStore;

use super::{by, id, moment, record};

/// Runs the contract on a store: `$fresh` makes an empty one and something that must live as long.
#[macro_export]
macro_rules! sandbox_store_contract {
    ($name:ident, $fresh:expr) => {
        sandbox_store_contract!($name, $fresh,
            a_new_record_is_there_at_revision_1, records_come_oldest_first, an_id_is_used_once,
            a_name_is_taken_while_its_sandbox_is_not_over, ids_and_names_never_mean_each_other,
            an_idempotency_key_is_used_once, an_update_wants_the_revision_it_saw, an_update_may_be_refused,
            a_state_makes_only_legal_moves, a_batch_is_one_write_and_each_of_it_is_judged_alone, what_is_destroyed_goes_to_the_history,
            words_of_a_newer_version_stay, no_update_is_lost, the_version_changes_with_every_write);
    };
    ($name:ident, $fresh:expr, $($test:ident),+) => {
        mod $name {
            $(#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
            async fn $test() {
                let (store, _keeps) = $fresh;
                $crate::stores::contract::$test(&*store).await;
            })+
        }
    };
}

fn named(id: &str, name: &str) -> SandboxRecord {
    SandboxRecord { name: Some(name.into()), ..record(id, 1) }
}

/// A change, as callers write it.
async fn set(
    store: &dyn SandboxStore,
    text: &str,
    change: impl FnOnce(&mut SandboxRecord) + Send,
) -> SandboxRecord {
    store.update(&id(text), None, by(change)).await.unwrap()
}

async fn destroy(store: &dyn SandboxStore, text: &str) {
    for state in [State::Destroying, State::Destroyed] {
        set(store, text, |record| record.state = state).await;
    }
}

fn taken(result: Result<SandboxRecord, Error>, field: &str, by: &str) {
    let fault = result.unwrap_err();
    assert_eq!(fault.code, Code::Conflict, "{fault}");
    assert_eq!(fault.details["field"], field, "{fault}");
    assert_eq!(fault.details["current"]["id"], by, "{fault}");
}

pub(crate) async fn a_new_record_is_there_at_revision_1(store: &dyn SandboxStore) {
    assert_eq!(store.get(&id("a")).await.unwrap(), None);
    assert_eq!(store.list().await.unwrap(), []);
    assert_eq!(store.history().await.unwrap(), []);
    let written = store.insert(SandboxRecord { revision: 77, ..record("a", 1) }).await.unwrap();
    assert_eq!(written.revision, 1);
    assert_eq!(store.get(&id("a")).await.unwrap(), Some(written.clone()));
    assert_eq!(store.list().await.unwrap(), [Arc::new(written)]);
}

pub(crate) async fn records_come_oldest_first(store: &dyn SandboxStore) {
    for (text, n) in [("c", 3), ("a", 1), ("b", 1), ("d", 2)] {
        store.insert(record(text, n)).await.unwrap();
    }
    let ids: Vec<_> =
        store.list().await.unwrap().into_iter().map(|record| record.id.to_string()).collect();
    assert_eq!(ids, ["a", "b", "d", "c"]);
}

pub(crate) async fn an_id_is_used_once(store: &dyn SandboxStore) {
    store.insert(record("a", 1)).await.unwrap();
    taken(store.insert(record("a", 2)).await, "id", "a");
    destroy(store, "a").await;
    taken(store.insert(record("a", 3)).await, "id", "a");
    assert_eq!(store.archive(moment(100)).await.unwrap(), 1);
    let fault = store.insert(record("a", 4)).await.unwrap_err();
    assert_eq!((fault.code, &fault.details["field"]), (Code::Conflict, &"id".into()));
    assert_eq!(store.list().await.unwrap(), []);
}

pub(crate) async fn a_name_is_taken_while_its_sandbox_is_not_over(store: &dyn SandboxStore) {
    store.insert(named("a", "web")).await.unwrap();
    taken(store.insert(named("b", "web")).await, "name", "a");
    store.insert(named("b", "db")).await.unwrap();
    let rename = store.update(&id("b"), None, by(|b| b.name = Some("web".into()))).await;
    taken(rename, "name", "a");
    destroy(store, "a").await;
    store.insert(named("c", "web")).await.unwrap();
    set(store, "b", |b| b.state = State::Forgotten).await;
    store.insert(named("d", "db")).await.unwrap();
}

pub(crate) async fn ids_and_names_never_mean_each_other(store: &dyn SandboxStore) {
    store.insert(named("a", "web")).await.unwrap();
    taken(store.insert(record("web", 2)).await, "id", "a");
    taken(store.insert(named("b", "a")).await, "name", "a");
    destroy(store, "a").await;
    store.insert(record("web", 3)).await.unwrap();
    // An id is one for ever.
    assert_eq!(store.archive(moment(100)).await.unwrap(), 1);
    let is_an_id = |result: Result<SandboxRecord, Error>| {
        let fault = result.unwrap_err();
        assert_eq!(fault.code.clone(), Code::Conflict, "{fault}");
        assert_eq!(fault.details["field"], "name", "{fault}");
    };
    is_an_id(store.insert(named("b", "a")).await);
    is_an_id(store.update(&id("web"), None, by(|web| web.name = Some("a".into()))).await);
}

pub(crate) async fn an_idempotency_key_is_used_once(store: &dyn SandboxStore) {
    let keyed =
        |text: &str| SandboxRecord { idempotency_key: Some("k".into()), ..named(text, "web") };
    store.insert(keyed("a")).await.unwrap();
    // The name is taken too, but a repeat must learn that it is one.
    taken(store.insert(keyed("b")).await, "idempotency_key", "a");
    destroy(store, "a").await;
    taken(store.insert(keyed("c")).await, "idempotency_key", "a");
    store.archive(moment(100)).await.unwrap();
    store.insert(keyed("d")).await.unwrap();
}

pub(crate) async fn an_update_wants_the_revision_it_saw(store: &dyn SandboxStore) {
    store.insert(record("a", 1)).await.unwrap();
    let mut seen = 0;
    let change = Box::new(|record: &mut SandboxRecord| {
        seen = record.revision;
        record.message = Some("first".into());
        // Not the caller's to set.
        record.revision = 50;
        Ok(())
    });
    let first = store.update(&id("a"), Some(1), change).await.unwrap();
    assert_eq!((seen, first.revision), (1, 2));
    let late =
        store.update(&id("a"), Some(1), Box::new(|_| panic!("not to be asked"))).await.unwrap_err();
    assert_eq!(late.code, Code::Conflict);
    assert_eq!(late.details["expected"], 1);
    let found = serde_json::from_value::<SandboxRecord>(late.details["current"].clone()).unwrap();
    assert_eq!(found, first);
    assert_eq!(store.get(&id("a")).await.unwrap(), Some(first));
    let absent = store.update(&id("b"), None, by(|_| ())).await.unwrap_err();
    assert_eq!(absent.code, Code::NotFound);
}

pub(crate) async fn an_update_may_be_refused(store: &dyn SandboxStore) {
    let before = store.insert(record("a", 1)).await.unwrap();
    let refuse = Box::new(|record: &mut SandboxRecord| {
        record.message = Some("half".into());
        Err(Error::new(Code::Busy, "no"))
    });
    assert_eq!(store.update(&id("a"), None, refuse).await.unwrap_err().code, Code::Busy);
    let rename = by(|record| record.id = id("b"));
    assert_eq!(store.update(&id("a"), None, rename).await.unwrap_err().code, Code::Internal);
    assert_eq!(store.list().await.unwrap(), [Arc::new(before)]);
}

pub(crate) async fn a_state_makes_only_legal_moves(store: &dyn SandboxStore) {
    store.insert(record("a", 1)).await.unwrap();
    let fault = store.update(&id("a"), None, by(|a| a.state = State::Sleeping)).await.unwrap_err();
    assert_eq!(fault.code, Code::Conflict);
    assert_eq!(fault.details["from"], "requested");
    assert_eq!(fault.details["to"], "sleeping");
    assert_eq!(fault.details["current"]["revision"], 1);
    for state in
        [State::Provisioning, State::Ready, State::Sleeping, State::Ready, State::Destroying]
    {
        set(store, "a", |a| a.state = state).await;
    }
    assert_eq!(store.get(&id("a")).await.unwrap().unwrap().revision, 6);
}

pub(crate) async fn a_batch_is_one_write_and_each_of_it_is_judged_alone(store: &dyn SandboxStore) {
    for text in ["a", "b", "c"] {
        store.insert(named(text, &format!("name-of-{text}"))).await.unwrap();
    }
    let before = store.version().await.unwrap();
    let batch = vec![
        (id("c"), Some(1), by(|c| c.state = State::Provisioning)),
        (id("a"), Some(7), by(|_| panic!("not to be asked"))),
        (id("none"), None, by(|_| panic!("not to be asked"))),
        (id("a"), Some(1), by(|a| a.state = State::Sleeping)),
        (id("a"), Some(1), by(|a| a.name = Some("free".into()))),
        // One sees what those before it did.
        (id("b"), Some(1), by(|b| b.name = Some("name-of-a".into()))),
        (id("a"), Some(1), by(|_| panic!("not to be asked"))),
        (id("c"), Some(2), by(|c| c.name = Some("free".into()))),
        (id("c"), Some(2), by(|c| c.message = Some("twice".into()))),
    ];
    let outcomes = store.update_many(batch).await.unwrap();
    let told: Vec<_> = outcomes
        .iter()
        .map(|one| one.as_ref().map(|r| (r.id.as_str(), r.revision)).map_err(|f| &f.code))
        .collect();
    let conflict = Err(&Code::Conflict);
    let wanted = [
        Ok(("c", 2)),
        conflict,
        Err(&Code::NotFound),
        conflict,
        Ok(("a", 2)),
        Ok(("b", 2)),
        conflict,
        conflict,
        Ok(("c", 3)),
    ];
    assert_eq!(told, wanted);
    let records = store.list().await.unwrap();
    let names: Vec<_> =
        records.iter().map(|record| (record.name.as_deref().unwrap(), record.revision)).collect();
    assert_eq!(names, [("free", 2), ("name-of-a", 2), ("name-of-c", 3)]);
    assert_eq!(records[2].message.as_deref(), Some("twice"));
    let after = store.version().await.unwrap();
    assert_ne!(after, before);
    let refused = store.update_many(vec![(id("a"), Some(1), by(|_| ()))]).await.unwrap();
    assert!(refused[0].is_err() && store.update_many(Vec::new()).await.unwrap().is_empty());
    assert_eq!(store.version().await.unwrap(), after, "nothing was written");
}

pub(crate) async fn what_is_destroyed_goes_to_the_history(store: &dyn SandboxStore) {
    for text in ["gone", "late", "pending", "forgotten", "alive"] {
        store.insert(record(text, 1)).await.unwrap();
    }
    for text in ["gone", "late", "pending"] {
        destroy(store, text).await;
    }
    set(store, "late", |late| late.since = moment(60)).await;
    set(store, "forgotten", |forgotten| forgotten.state = State::Forgotten).await;
    set(store, "pending", |record| {
        record.pending.push(PendingEvent {
            id: derived_event_id("pending", 4, &EventKind::SandboxDestroyed),
            time: moment(2),
            kind: EventKind::SandboxDestroyed,
            sandbox_id: Some(record.id.clone()),
            actor: record.actor.clone(),
            data: serde_json::Value::Null,
        });
    })
    .await;
    let gone = store.get(&id("gone")).await.unwrap().unwrap();
    assert_eq!(store.archive(moment(60)).await.unwrap(), 1);
    assert_eq!(store.history().await.unwrap(), [Arc::new(gone)]);
    assert_eq!(store.get(&id("gone")).await.unwrap(), None);
    assert_eq!(store.list().await.unwrap().len(), 4);
    assert_eq!(store.archive(moment(60)).await.unwrap(), 0);
    let told = derived_event_id("pending", 4, &EventKind::SandboxDestroyed);
    let before = store.get(&id("pending")).await.unwrap().unwrap();
    store.clear_pending(&[told].into()).await.unwrap();
    let after = store.get(&id("pending")).await.unwrap().unwrap();
    assert_eq!(after.pending.len(), 0, "what is told is no change to decide on");
    assert_eq!(after.revision, before.revision, "what is told is no change to decide on");
    assert_eq!(store.archive(moment(61)).await.unwrap(), 2);
    assert_eq!(store.history().await.unwrap().len(), 3);
}

pub(crate) async fn words_of_a_newer_version_stay(store: &dyn SandboxStore) {
    let state = State::from_word("hibernating");
    store.insert(SandboxRecord { state: state.clone(), ..record("a", 1) }).await.unwrap();
    let changed = set(store, "a", |a| a.message = Some("x".into())).await;
    assert_eq!(changed.state, state);
    assert_eq!(store.get(&id("a")).await.unwrap().unwrap().state, state);
    set(store, "a", |a| a.state = State::Destroying).await;
}

pub(crate) async fn no_update_is_lost(store: &dyn SandboxStore) {
    store.insert(record("a", 1)).await.unwrap();
    let one = async || {
        for _ in 0..25 {
            set(store, "a", |a| a.last_patch_sequence += 1).await;
        }
    };
    tokio::join!(one(), one(), one(), one());
    let end = store.get(&id("a")).await.unwrap().unwrap();
    assert_eq!((end.last_patch_sequence, end.revision), (100, 101));
}

pub(crate) async fn the_version_changes_with_every_write(store: &dyn SandboxStore) {
    let mut seen = std::collections::HashSet::from([store.version().await.unwrap()]);
    store.insert(record("a", 1)).await.unwrap();
    assert!(seen.insert(store.version().await.unwrap()));
    for _ in 0..50 {
        set(store, "a", |_| ()).await;
        assert!(seen.insert(store.version().await.unwrap()));
        assert!(!seen.insert(store.version().await.unwrap()), "the same while nothing changes");
    }
    destroy(store, "a").await;
    seen.insert(store.version().await.unwrap());
    store.archive(moment(100)).await.unwrap();
    assert!(seen.insert(store.version().await.unwrap()));
}
