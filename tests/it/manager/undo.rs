//! Undo: what is kept of a sandbox before it is removed, when it is not, and the way back.

mod back;
mod held;

use std::collections::BTreeMap;
use std::fmt::Display;

use sandboxer::domain::record::Record;
use sandboxer::domain::request::{CreateRequest, DestroyRequest, SnapshotQuery};
use sandboxer::domain::snapshot::{SnapshotKind, SnapshotRecord, SnapshotState};
use sandboxer::domain::sweep::{SweepReport, SweepRequest};
use sandboxer::domain::undo::{Footprint, UndoRequest, UndoSettings};
use sandboxer::domain::{Code, Error, SandboxRecord, State};

use crate::support::json_assertions::JsonAssertions as _;
use crate::test_env::script::Act;
use crate::test_env::{TestEnv, of, test_env};

const GIB: u64 = 1 << 30;

/// A house whose profile `profile.kept` is kept for undo.
pub(super) fn keeping() -> TestEnv {
    keeping_within(UndoSettings::default())
}

fn keeping_within(settings: UndoSettings) -> TestEnv {
    let before = test_env();
    before.script.undo.set(settings);
    let TestEnv { folder, script, .. } = before;
    let profiles = folder.path().join("profiles");
    std::fs::create_dir(&profiles).unwrap();
    let text = include_str!("../../../profiles/sandbox-canary.yaml")
        .replace("profile.sandbox-canary", "profile.kept");
    std::fs::write(profiles.join("kept.yaml"), format!("{text}undo: true\n")).unwrap();
    TestEnv::in_folder(folder, script, Vec::new())
}

pub(super) fn kept(name: Option<&str>) -> CreateRequest {
    CreateRequest {
        profile: Some("profile.kept".into()),
        name: name.map(str::to_owned),
        labels: BTreeMap::from([("team".to_owned(), "blue".to_owned())]),
        ttl: Some("30m".into()),
        ..CreateRequest::default()
    }
}

impl TestEnv {
    async fn keep_one(&self, name: Option<&str>) -> SandboxRecord {
        self.made(kept(name)).await
    }

    async fn removed(&self, request: DestroyRequest) -> Result<SandboxRecord, Error> {
        let started = self.manager.destroy(&request).await?;
        self.manager.wait(&started.operation.unwrap()).await.and_then(Record::into_sandbox)
    }

    async fn remade(&self, id: impl Display) -> Result<SandboxRecord, Error> {
        let started = Box::pin(self.manager.recreate(&of(id))).await?;
        self.manager.wait(&started.operation.unwrap()).await.and_then(Record::into_sandbox)
    }

    async fn undo(&self, id: Option<&str>) -> Result<SandboxRecord, Error> {
        let request = UndoRequest { id: id.map(str::to_owned) };
        let started = self.manager.undo(&request).await?;
        self.manager.wait(&started.operation.unwrap()).await.and_then(Record::into_sandbox)
    }

    /// Undo snapshots that are whole.
    async fn undos(&self) -> Vec<SnapshotRecord> {
        let views = self.manager.snapshots(&SnapshotQuery { all: true }).await.unwrap();
        let records = views.iter().map(|view| view.record.clone());
        records
            .filter(|one| one.kind == SnapshotKind::Undo && one.state == SnapshotState::Ready)
            .collect()
    }

    async fn sweep(&self) -> SweepReport {
        self.manager.sweep(&SweepRequest::default()).await.unwrap()
    }

    fn did(&self, from: usize) -> Vec<String> {
        let asked = self.script.asked();
        let verb = |asked: &String| asked.split(' ').next().unwrap().to_owned();
        asked[from..].iter().map(verb).collect()
    }

    fn fail_capture(&self) {
        let full = Act::full();
        self.script.shelf.capture.push(full);
    }
}

/// As it was, but for its count of writes and the events that are in the log by now.
#[track_caller]
fn assert_as_it_was(now: &SandboxRecord, before: &SandboxRecord) {
    let plain = |record: &SandboxRecord| SandboxRecord {
        revision: 0,
        pending: Vec::new(),
        ..record.clone()
    };
    assert_eq!(plain(now), plain(before));
}

#[tokio::test]
async fn a_destroy_keeps_a_snapshot_for_a_while_and_says_so() {
    let house = keeping();
    let record = house.keep_one(Some("shop")).await;
    let from = house.script.asked().len();
    let gone = house.removed(of(&record.id)).await.unwrap();
    assert_eq!(gone.state, State::Destroyed);
    assert_eq!(house.did(from), ["measure", "snapshot", "teardown"]);
    let undos = house.undos().await;
    let [undo] = undos.as_slice() else { panic!("{undos:?}") };
    assert_eq!((undo.sandbox_id.as_str(), &undo.name), (record.id.as_str(), &None));
    let window = undo.expires_at.unwrap().since(undo.created_at).as_secs();
    assert_eq!(window.div_ceil(60), 24 * 60, "{window}");
    let said = gone.message.unwrap();
    assert!(said.contains(undo.id.as_str()) && said.contains("sandboxer undo"), "{said}");
    let facts = undo.undo.as_deref().unwrap();
    assert_eq!((facts.before.as_str(), facts.ttl_s), ("destroy", Some(1800)));
    let shown = house.manager.snapshots(&SnapshotQuery::default()).await.unwrap();
    assert_eq!(shown.len(), 0, "only --all lists it");
    let operations = house.manager.operations().await.unwrap();
    let kinds: Vec<_> = operations.iter().map(|operation| operation.kind.as_str()).collect();
    assert_eq!(kinds, ["create", "destroy", "snapshot"], "it is an operation of its own");
}

#[tokio::test]
async fn nothing_is_kept_where_nobody_asked_for_it_or_there_is_nothing() {
    let house = keeping();
    // A profile without undo.
    let (plain, _) = house.create(CreateRequest::default()).await;
    assert_eq!(house.removed(of(&plain.id)).await.unwrap().message, None);
    // Somebody wants none.
    let record = house.keep_one(None).await;
    let gone = house.removed(DestroyRequest { no_undo: true, ..of(&record.id) }).await.unwrap();
    assert!(gone.message.unwrap().contains("--no-undo"));
    // One that never was, kept to be looked at.
    house.script(&[Act::fails("no image")], &[], &[]);
    let (failed, _) = house.create(CreateRequest { keep_failed: true, ..kept(None) }).await;
    assert_eq!(failed.state, State::Failed);
    assert_eq!(house.removed(of(&failed.id)).await.unwrap().message, None);
    // One that is given up.
    let record = house.keep_one(None).await;
    house.removed(DestroyRequest { forget: true, ..of(&record.id) }).await.unwrap();
    assert_eq!(house.undos().await, []);
    assert!(!house.did(0).contains(&"measure".to_owned()), "{:?}", house.did(0));
}

#[tokio::test]
async fn one_that_sleeps_is_kept_too() {
    let house = keeping();
    let record = house.keep_one(None).await;
    house.sleep(&record.id).await.1.unwrap();
    house.removed(of(&record.id)).await.unwrap();
    assert_eq!(house.undos().await.len(), 1);
    assert_eq!(house.undo(None).await.unwrap().state, State::Ready);
}

#[tokio::test]
async fn none_is_taken_where_there_is_no_room_and_that_is_said() {
    let house = keeping();
    for (seen, why) in [
        (Footprint { bytes: 2 * GIB, free_bytes: 100 * GIB, disk_used_pct: 1.0 }, "max_bytes"),
        (Footprint { bytes: GIB, free_bytes: 2 * GIB - 1, disk_used_pct: 1.0 }, "are free"),
        (Footprint { bytes: 1, free_bytes: GIB, disk_used_pct: 95.0 }, "its limit is 90 %"),
    ] {
        house.script.footprint.set(seen);
        let record = house.keep_one(None).await;
        let gone = house.removed(of(&record.id)).await.unwrap();
        let said = gone.message.unwrap();
        assert!(said.contains("no undo snapshot") && said.contains(why), "{said}");
        let none = house.undo(Some(record.id.as_str())).await.unwrap_err();
        none.coded(Code::NotFound);
        assert!(none.causes[0].contains(why), "{none:?}");
        let record = house.keep_one(None).await;
        let made = house.remade(&record.id).await.unwrap();
        assert!(made.message.unwrap().contains(why));
        house.removed(DestroyRequest { no_undo: true, ..of(&record.id) }).await.unwrap();
        let record = house.keep_one(None).await;
        house.script.pass(3600);
        let report = house.sweep().await;
        assert_eq!(report.items[0].id, record.id);
        assert!(report.items[0].message.contains(why), "{report:?}");
    }
    assert_eq!(house.undos().await, []);
    assert!(!house.did(0).contains(&"snapshot".to_owned()));
}

#[tokio::test]
async fn one_that_fails_stops_who_is_there_to_decide() {
    let house = keeping();
    let record = house.keep_one(Some("shop")).await;
    for measured in [false, true] {
        let full = Act::full();
        if measured {
            house.script.shelf.capture.push(full.clone());
            house.script.shelf.capture.push(full);
        } else {
            house.script.measure.push(full.clone());
            house.script.measure.push(full);
        }
        for stopped in [house.removed(of(&record.id)).await, house.remade(&record.id).await] {
            let error = stopped.unwrap_err();
            error.coded(Code::OperationFailed).says("is not removed");
            assert_eq!(error.causes[0], "No space left on device");
            error.hints("--no-undo");
            assert_as_it_was(&house.record(&record.id).await, &record);
        }
    }
    assert_eq!((house.teardowns(), house.undos().await), (0, vec![]));
    assert!(house.there().is_empty());
    let gone = house.removed(DestroyRequest { no_undo: true, ..of(&record.id) }).await.unwrap();
    assert_eq!(gone.state, State::Destroyed);
}

#[tokio::test]
async fn one_that_fails_never_stops_a_sweep_which_says_so() {
    let house = keeping();
    let record = house.keep_one(None).await;
    house.script.pass(3600);
    house.fail_capture();
    let report = house.sweep().await;
    assert_eq!(report.items[0].outcome.as_str(), "destroyed");
    let said = &report.items[0].message;
    assert!(said.contains("No space left on device"), "{said}");
    let gone = house.record(&record.id).await;
    assert_eq!(gone.state, State::Destroyed);
    assert!(gone.message.unwrap().contains("no undo snapshot"));
}

#[tokio::test]
async fn on_a_host_that_is_away_nothing_begins_that_could_not_be_taken_back() {
    let house = keeping();
    let record = house.keep_one(None).await;
    house.script.down.lock().unwrap().insert("local");
    let fault = house.removed(of(&record.id)).await.unwrap_err();
    fault.coded(Code::HostUnreachable).hints("--no-undo");
    assert_as_it_was(&house.record(&record.id).await, &record);
    house.script.pass(3600);
    assert_eq!(house.sweep().await.items[0].error.as_ref().unwrap().code, Code::HostUnreachable);
    assert_eq!(house.record(&record.id).await.state, State::Ready);
    // Once it is back.
    house.script.down.lock().unwrap().clear();
    house.script.pass(3600);
    assert_eq!(house.sweep().await.items[0].outcome.as_str(), "destroyed");
    assert_eq!(house.undos().await.len(), 1);
}

#[tokio::test]
async fn a_removal_that_is_refused_leaves_nothing_behind() {
    let house = keeping();
    let record = house.keep_one(None).await;
    house.script(&[], &[], &[Act::Untouched(Code::HostChanged)]);
    house.removed(of(&record.id)).await.unwrap_err().coded(Code::HostChanged);
    assert_as_it_was(&house.record(&record.id).await, &record);
    assert_eq!((house.undos().await, house.there()), (vec![], vec![]));
    house.script(&[], &[], &[Act::Untouched(Code::HostChanged)]);
    house.remade(&record.id).await.unwrap_err();
    assert_eq!((house.undos().await, house.there()), (vec![], vec![]));
}

#[tokio::test]
async fn a_removal_that_breaks_off_says_that_there_is_a_way_back() {
    let house = keeping();
    let record = house.keep_one(None).await;
    house.script(&[], &[], &[Act::LeaveNetwork]);
    house.removed(of(&record.id)).await.unwrap_err().hints("sandboxer undo snap-");
    let record = house.keep_one(None).await;
    house.script(&[Act::fails("no image")], &[], &[]);
    house.remade(&record.id).await.unwrap_err().hints("sandboxer undo snap-");
    assert_eq!(house.undo(Some(record.id.as_str())).await.unwrap().state, State::Ready);
}
