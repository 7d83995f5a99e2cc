//! Records are written short, and read whole; those of an earlier version are written anew.

use std::fs;
use std::path::Path;

use sandboxer::domain::event::PendingEvent;
use sandboxer::domain::sandbox::{Route, Verdict};
use sandboxer::domain::{SandboxRecord, State};
use sandboxer::store::SandboxStore;
use serde_json::{Value, json};

use super::{by, id, record, stores};

/// A file that version 0.1.0 wrote: a canary, and a stack of three services.
const OLD: &str = include_str!("fixtures/sandboxes-0.1.0.json");
/// Most that the record of a compose sandbox with three services takes, and a canary's.
const MOST: [(&str, usize); 2] = [("canary", 2048), ("stack", 2400)];

fn file(dir: &Path) -> Value {
    serde_json::from_str(&fs::read_to_string(dir.join("sandboxes.json")).unwrap()).unwrap()
}

fn old(dir: &Path) -> Value {
    fs::write(dir.join("sandboxes.json"), OLD).unwrap();
    file(dir)
}

async fn listed(store: &dyn SandboxStore) -> Vec<Value> {
    let records = store.list().await.unwrap();
    records.iter().map(|record| serde_json::to_value(&**record).unwrap()).collect()
}

#[tokio::test]
async fn a_record_is_written_without_what_is_empty_and_read_with_every_field() {
    let dir = tempfile::tempdir().unwrap();
    let store = stores(dir.path()).sandboxes;
    let verdict = Verdict { host: "local".into(), ok: true, reason: "up".into() };
    let route = Route {
        host: "local".into(),
        reason: "named".into(),
        verdicts: vec![verdict.clone()],
        remarks: Vec::new(),
        candidates: Vec::new(),
    };
    let request_hash = Some("00".into());
    let attempts = vec![verdict.into()];
    let new = SandboxRecord { route: Some(route), attempts, request_hash, ..record("a", 1) };
    let written = store.insert(new).await.unwrap();
    assert_eq!(written.request_hash, None, "nobody asks for it without a key");
    let on_disk = file(dir.path())["records"][0].clone();
    for field in ["name", "labels", "attempts", "handle", "services", "pending", "request_hash"] {
        assert_eq!(on_disk.get(field), None, "{field} in {on_disk}");
    }
    // Another process reads it.
    let other = stores(dir.path()).sandboxes;
    assert_eq!(other.get(&id("a")).await.unwrap().unwrap(), written);
    assert_eq!(listed(&*other).await, [serde_json::to_value(&written).unwrap()]);
    let keyed = by(|a| (a.idempotency_key, a.request_hash) = (Some("k".into()), Some("01".into())));
    let written = store.update(&id("a"), None, keyed).await.unwrap();
    assert_eq!(written.request_hash.as_deref(), Some("01"));
}

#[tokio::test]
async fn nulls_of_an_extensions_handle_and_of_events_stay() {
    let dir = tempfile::tempdir().unwrap();
    let store = stores(dir.path()).sandboxes;
    let event: PendingEvent = serde_json::from_value(json!({
        "id": "86dd339a-be03-52d1-b0d7-0962105717f6", "time": "2026-11-29T15:27:48Z", "kind": "sandbox.ready",
        "sandbox_id": "a", "actor": {"type": "adm", "name": "ops"}, "data": {"snapshot_id": null}
    }))
    .unwrap();
    let handle = json!({"runtime": null, "built": [], "kept": {"n": null}});
    let new = SandboxRecord {
        handle: Some(handle.clone()),
        pending: vec![event.clone()],
        ..record("a", 1)
    };
    store.insert(new).await.unwrap();
    let read = stores(dir.path()).sandboxes.get(&id("a")).await.unwrap().unwrap();
    assert_eq!((read.handle, read.pending), (Some(handle), vec![event]));
    store.update(&id("a"), None, by(|a| a.handle = Some(json!({})))).await.unwrap();
    let read = stores(dir.path()).sandboxes.get(&id("a")).await.unwrap().unwrap();
    assert_eq!(read.handle, Some(json!({})), "there is one");
}

#[tokio::test]
async fn an_old_file_is_read_and_each_write_of_a_record_makes_it_short() {
    let dir = tempfile::tempdir().unwrap();
    let before = old(dir.path());
    let store = stores(dir.path()).sandboxes;
    let [canary, stack] = &store.list().await.unwrap()[..] else { panic!("two records") };
    let written =
        store.update(&stack.id, Some(stack.revision), by(|stack| stack.pending.clear())).await;
    let written = written.unwrap();
    assert_eq!(file(dir.path())["records"][0], before["records"][0], "untouched");
    assert_eq!(canary.pending.len(), 1);
    let after = SandboxRecord {
        revision: stack.revision + 1,
        pending: Vec::new(),
        request_hash: None,
        handle: written.handle.clone(),
        ..SandboxRecord::clone(stack)
    };
    assert_eq!(written, after);
    let handle = written.handle.unwrap();
    assert_eq!(handle["services"], before["records"][1]["handle"]["services"]);
    assert_eq!(handle["runtime"], before["records"][1]["handle"]["runtime"]);
    assert_eq!(handle.get("up_output"), None);
    assert_eq!(stores(dir.path()).sandboxes.get(&stack.id).await.unwrap().unwrap(), after);
}

#[tokio::test]
async fn an_old_file_is_written_anew_at_once_and_loses_nothing_that_a_user_needs() {
    let dir = tempfile::tempdir().unwrap();
    let before = old(dir.path());
    let store = stores(dir.path()).sandboxes;
    let shown = listed(&*store).await;
    assert_eq!(store.renew().await.unwrap(), 2);
    let version = store.version().await.unwrap();
    assert_eq!(store.renew().await.unwrap(), 0);
    assert_eq!(store.version().await.unwrap(), version, "nothing is left to be done");
    for (mut new, mut old) in listed(&*stores(dir.path()).sandboxes).await.into_iter().zip(shown) {
        for record in [&mut new, &mut old] {
            let fields = record.as_object_mut().unwrap();
            fields["handle"].as_object_mut().unwrap().shift_remove("up_output");
            fields["request_hash"] = Value::Null;
            // What is left of them in the record; all of them are in `hosts.json`.
            let facts = &fields["telemetry"];
            if facts.is_object() {
                let facts =
                    ["hostname", "kernel", "mem_total_bytes"].map(|name| facts[name].clone());
                fields["telemetry"] = json!(facts);
            }
        }
        assert_eq!(new, old);
    }
    let records = store.list().await.unwrap();
    let told = records.iter().flat_map(|record| record.pending.iter().map(|e| e.id.clone()));
    store.clear_pending(&told.collect()).await.unwrap();
    for (now, was) in file(dir.path())["records"]
        .as_array()
        .unwrap()
        .iter()
        .zip(before["records"].as_array().unwrap())
    {
        assert_eq!(now["revision"], was["revision"], "whoever read it before may still write it");
        let (_, most) = MOST.iter().find(|(name, _)| now["name"] == *name).unwrap();
        let len = now.to_string().len();
        assert!(len <= *most, "{len} bytes: {now}");
    }
}

#[tokio::test]
async fn a_record_that_cannot_be_read_holds_up_no_other() {
    let dir = tempfile::tempdir().unwrap();
    let mut file = old(dir.path());
    file["records"][0]["state"] = 7.into();
    fs::write(dir.path().join("sandboxes.json"), file.to_string()).unwrap();
    let store = stores(dir.path()).sandboxes;
    assert_eq!(store.renew().await.unwrap(), 1);
    let after: Value = self::file(dir.path());
    assert_eq!(after["records"][0], file["records"][0]);
    let moved =
        store.update(&id("833b3690"), None, by(|stack| stack.state = State::Sleeping)).await;
    assert_eq!(moved.unwrap().state, State::Sleeping);
}
