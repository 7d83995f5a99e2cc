//! Verbs of a world, each to its end; situations that many tests begin with, and what they wait for.

use std::fmt::Display;
use std::fs;
use std::time::Duration;

use sandboxer::domain::extension::Inspection;
use sandboxer::domain::record::Record;
use sandboxer::domain::request::{
    ApplyRequest, CreateRequest, EventQuery, RestoreRequest, SnapshotCopyRequest,
    SnapshotDeleteRequest, SnapshotQuery, SnapshotRequest, SnapshotStarted, Started,
};
use sandboxer::domain::sandbox::{SandboxRecord, Service};
use sandboxer::domain::snapshot::{SnapshotRecord, SnapshotState};
use sandboxer::domain::teardown::Resource;
use sandboxer::domain::{Code, Error, Event, EventKind, Operation, OperationState};
use sandboxer::manager::SandboxManager;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::script::Scripted;
use super::{TestEnv, test_env};

/// Request about one thing, with nothing else said.
pub(crate) fn of<R: DeserializeOwned>(id: impl Display) -> R {
    serde_json::from_value(json!({"id": id.to_string()})).unwrap()
}

/// Request to restore a snapshot, with nothing else said.
pub(crate) fn from_snapshot(id: impl Display) -> RestoreRequest {
    RestoreRequest { snapshot: id.to_string(), ..RestoreRequest::default() }
}

/// Request of a snapshot with this name.
pub(crate) fn named(id: impl Display, name: &str) -> SnapshotRequest {
    SnapshotRequest { name: Some(name.to_owned()), ..of(id) }
}

/// A world with a sandbox; its id.
pub(crate) async fn with_sandbox() -> (TestEnv, String) {
    let house = test_env();
    let id = house.ready().await;
    (house, id)
}

/// A world with the snapshot `my-env` of a sandbox; its id.
pub(crate) async fn with_snapshot() -> (TestEnv, String) {
    let house = test_env();
    let snapshot = house.base("my-env").await;
    (house, snapshot)
}

/// A world with that snapshot, and a sandbox that is based on it.
pub(crate) async fn with_restored() -> (TestEnv, String, SandboxRecord) {
    let (house, snapshot) = with_snapshot().await;
    let record = house.restored(&snapshot).await;
    (house, snapshot, record)
}

/// What a host says of a sandbox that is there.
pub(crate) fn there(ready: bool, asleep: bool) -> Inspection {
    let resources = vec![Resource { kind: "directory".into(), id: "/srv/sbx".into() }];
    let service = Service {
        name: "web".into(),
        state: if ready { "running" } else { "exited" }.into(),
        exit_code: (!ready).then_some(143),
        restarts: None,
        health: None,
    };
    Inspection { resources, ready, asleep, services: vec![service], ..Inspection::default() }
}

/// Waits for what a manager began: the operation as it ended, and its sandbox then.
pub(crate) async fn finished(
    manager: &SandboxManager,
    started: Result<Started, Error>,
) -> (Operation, SandboxRecord) {
    let (operation, record) = manager.finish(&started.unwrap().operation.unwrap()).await.unwrap();
    (operation, record.unwrap())
}

impl Scripted {
    /// How often it was asked for something.
    pub(crate) fn count(&self, what: &str) -> usize {
        self.asked().iter().filter(|asked| asked.starts_with(what)).count()
    }

    /// Waits until it was asked for something.
    pub(crate) async fn until_asked(&self, what: &str) {
        self.until_asked_since(what, 0).await;
    }

    /// The same, behind its first `before` questions.
    pub(crate) async fn until_asked_since(&self, what: &str, before: usize) {
        while !self.asked()[before..].iter().any(|asked| asked.starts_with(what)) {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }
}

impl TestEnv {
    pub(crate) async fn finished(
        &self,
        started: Result<Started, Error>,
    ) -> (Operation, SandboxRecord) {
        finished(&self.manager, started).await
    }

    async fn ended(&self, started: Result<Started, Error>) -> (SandboxRecord, Result<(), Code>) {
        let (operation, record) = self.finished(started).await;
        (record, operation.error.map_or(Ok(()), |error| Err(error.code)))
    }

    pub(crate) async fn create(&self, request: CreateRequest) -> (SandboxRecord, Result<(), Code>) {
        self.ended(self.manager.create(request).await).await
    }

    /// A sandbox that became ready.
    pub(crate) async fn made(&self, request: CreateRequest) -> SandboxRecord {
        let (record, ended) = self.create(request).await;
        assert_eq!(ended, Ok(()));
        record
    }

    /// The id of a sandbox that became ready.
    pub(crate) async fn ready(&self) -> String {
        self.made(CreateRequest::default()).await.id.to_string()
    }

    pub(crate) async fn destroy(&self, id: impl Display) -> (SandboxRecord, Result<(), Code>) {
        self.ended(self.manager.destroy(&of(id)).await).await
    }

    pub(crate) async fn recreate(&self, id: impl Display) -> (SandboxRecord, Result<(), Code>) {
        self.ended(self.manager.recreate(&of(id)).await).await
    }

    pub(crate) async fn sleep(&self, id: impl Display) -> (SandboxRecord, Result<(), Code>) {
        self.ended(self.manager.sleep(&of(id)).await).await
    }

    pub(crate) async fn wake(&self, id: impl Display) -> (SandboxRecord, Result<(), Code>) {
        self.ended(self.manager.wake(&of(id)).await).await
    }

    pub(crate) async fn restore(
        &self,
        snapshot: impl Display,
    ) -> (SandboxRecord, Result<(), Code>) {
        self.ended(self.manager.restore(&from_snapshot(snapshot)).await).await
    }

    pub(crate) async fn apply(
        &self,
        id: impl Display,
        retry: bool,
    ) -> (SandboxRecord, Result<(), Code>) {
        let request = ApplyRequest { retry, ..of(id) };
        self.ended(self.manager.apply_patches(&request).await).await
    }

    /// Waits for what was begun with a snapshot: its record then.
    async fn snapshot_after(
        &self,
        started: Result<SnapshotStarted, Error>,
    ) -> Result<SnapshotRecord, Error> {
        let started = started?;
        let Some(operation) = started.operation else { return Ok(started.snapshot) };
        self.manager.wait(&operation).await.and_then(Record::into_snapshot)
    }

    pub(crate) async fn snapshot(
        &self,
        id: impl Display,
        name: &str,
    ) -> Result<SnapshotRecord, Error> {
        self.snapshot_after(self.manager.snapshot(&named(id, name)).await).await
    }

    /// A snapshot by this name, of a sandbox of its own.
    pub(crate) async fn base(&self, name: &str) -> String {
        let id = self.ready().await;
        Box::pin(self.snapshot(&id, name)).await.unwrap().id.to_string()
    }

    pub(crate) async fn verify(&self, id: impl Display) -> Result<SnapshotRecord, Error> {
        self.snapshot_after(self.manager.verify_snapshot(&id.to_string()).await).await
    }

    pub(crate) async fn copy(&self, id: impl Display, host: &str) -> Result<SnapshotRecord, Error> {
        let request = SnapshotCopyRequest { id: id.to_string(), host: host.to_owned() };
        self.snapshot_after(self.manager.copy_snapshot(&request).await).await
    }

    pub(crate) async fn delete(
        &self,
        id: impl Display,
        force: bool,
    ) -> Result<SnapshotRecord, Error> {
        self.delete_as(&SnapshotDeleteRequest { force, ..of(id) }).await
    }

    pub(crate) async fn delete_as(
        &self,
        request: &SnapshotDeleteRequest,
    ) -> Result<SnapshotRecord, Error> {
        self.snapshot_after(self.manager.delete_snapshot(request).await).await
    }

    /// Names of all snapshots, with their states.
    pub(crate) async fn listed(&self) -> Vec<(String, SnapshotState)> {
        let views = self.manager.snapshots(&SnapshotQuery { all: true }).await.unwrap();
        let listed = views.iter().map(|view| &view.record);
        listed.map(|record| (record.title().to_owned(), record.state.clone())).collect()
    }

    pub(crate) fn there(&self) -> Vec<(String, bool)> {
        self.script.shelf.there()
    }

    /// Its replicas, as `host state`.
    pub(crate) async fn replicas(&self, snapshot: impl Display) -> Vec<String> {
        let record = self.other.snapshot_view(&snapshot.to_string()).await.unwrap().record;
        record.replicas.iter().map(|it| format!("{} {}", it.host, it.state)).collect()
    }

    pub(crate) async fn record(&self, id: impl Display) -> SandboxRecord {
        self.manager.get(&id.to_string()).await.unwrap()
    }

    /// Events of these kinds; of all, where none is named.
    pub(crate) async fn events(&self, kinds: &[EventKind]) -> Vec<Event> {
        let query = EventQuery { kinds: kinds.to_vec(), ..EventQuery::default() };
        self.manager.events(&query).await.unwrap()
    }

    pub(crate) async fn kinds(&self) -> Vec<String> {
        let events = self.events(&[]).await;
        let follow = |pair: &[Event]| pair[0].seq + 1 == pair[1].seq;
        assert!(events.windows(2).all(follow), "numbers have gaps: {events:?}");
        events.iter().map(|event| event.kind.to_string()).collect()
    }

    /// How many events of a kind there are.
    pub(crate) async fn count_told(&self, kind: &str) -> usize {
        self.kinds().await.iter().filter(|told| *told == kind).count()
    }

    pub(crate) fn teardowns(&self) -> usize {
        self.script.count("teardown")
    }

    /// No operation runs.
    pub(crate) async fn assert_nothing_runs(&self) {
        let all = self.manager.operations().await.unwrap();
        assert!(all.iter().all(|one| one.state != OperationState::Running), "{all:#?}");
    }

    /// Changes a file of the data directory, as somebody else may.
    pub(crate) fn edit(&self, file: &str, change: impl FnOnce(&mut Value)) {
        let file = self.folder.path().join(file);
        let mut document: Value = serde_json::from_slice(&fs::read(&file).unwrap()).unwrap();
        change(&mut document);
        fs::write(&file, document.to_string()).unwrap();
    }
}
