//! The fake client's snapshots and patches, and records to put there.

use std::collections::HashMap;

use sandboxer::client::{
    Error, PatchRequest, PatchStatus, PruneItem, RolloutItem, SnapshotDeleteRequest, SnapshotDiff,
    SnapshotRequest,
};
use sandboxer::domain::lineage::SnapshotView;
use sandboxer::domain::patch::PatchState;
use sandboxer::domain::request::SnapshotStarted;
use sandboxer::domain::sandbox::Failure;
use sandboxer::domain::snapshot::{ReplicaState, SnapshotRecord, SnapshotState};
use sandboxer::domain::{Code, OperationId, Patch, SandboxRecord, SnapshotId, State};
use serde_json::{Value, json};

use super::cli_client::{FakeClient, now};
use super::cli_world::{named, ready};

#[derive(Default)]
pub struct Shelf {
    /// Why nobody can say where a sandbox comes from.
    pub no_lineage: Option<Error>,
    pub snapshots: Vec<SnapshotRecord>,
    pub patches: Vec<Patch>,
    /// What every verb that starts something answers instead.
    pub refuses: Option<Error>,
    /// How operations end that do not end well, by the snapshot's id, and the record then.
    pub ends: HashMap<String, (Error, SnapshotRecord)>,
    /// What a snapshot that ends well is then.
    pub becomes: Option<SnapshotRecord>,
    /// Whether operations on snapshots only end when they are cancelled.
    pub waits: bool,
    pub diff: Option<SnapshotDiff>,
    pub prune: Vec<PruneItem>,
    pub rollout: Vec<RolloutItem>,
    pub status: Vec<PatchStatus>,
    pub exported: Vec<Result<Vec<u8>, Error>>,
    /// Whether an export never ends.
    pub exports_for_ever: bool,
    /// What came to an import.
    pub imported: Vec<u8>,
}

impl Shelf {
    fn view(&self, record: &SnapshotRecord, sandboxes: &[SandboxRecord]) -> SnapshotView {
        SnapshotView::of(record, &self.patches, sandboxes, &self.snapshots)
    }

    pub fn views(&self, sandboxes: &[SandboxRecord]) -> Vec<SnapshotView> {
        self.snapshots.iter().map(|record| self.view(record, sandboxes)).collect()
    }

    pub fn find(
        &self,
        reference: &str,
        sandboxes: &[SandboxRecord],
    ) -> Result<SnapshotView, Error> {
        let known = |record: &&SnapshotRecord| {
            let name = record.name.as_deref() == Some(reference);
            name || reference.len() >= 9 && record.id.as_str().starts_with(reference)
        };
        let found = self.snapshots.iter().find(known).map(|record| self.view(record, sandboxes));
        found.ok_or_else(|| {
            Error::new(Code::NotFound, format!("there is no snapshot {reference:?}"))
        })
    }

    fn put(&mut self, record: SnapshotRecord) {
        self.snapshots.retain(|known| known.id != record.id);
        self.snapshots.push(record);
    }

    pub fn start(&mut self, record: SnapshotRecord) -> Result<SnapshotStarted, Error> {
        if let Some(problem) = self.refuses.clone() {
            return Err(problem);
        }
        self.put(record.clone());
        Ok(SnapshotStarted {
            operation: Some(OperationId::new(format!("op-{}", record.id))),
            snapshot: record,
        })
    }

    pub fn snapshot(&mut self, request: &SnapshotRequest) -> Result<SnapshotStarted, Error> {
        let mut made = snapshot("snap-0000000f", request.name.as_deref(), &request.id);
        made.state = SnapshotState::Creating;
        self.start(made)
    }

    pub fn delete(
        &mut self,
        request: &SnapshotDeleteRequest,
        sandboxes: &[SandboxRecord],
    ) -> Result<SnapshotStarted, Error> {
        let view = self.find(&request.id, sandboxes)?;
        let depends = view.dependants();
        if !depends.is_empty() && !request.force {
            let message =
                format!("snapshot {} is in use: {}", view.record.title(), depends.join(", "));
            return Err(Error::new(Code::InUse, message).hint("destroy or remove those first"));
        }
        self.start(SnapshotRecord { state: SnapshotState::Deleting, ..view.record })
    }

    pub fn end(&mut self, operation: &OperationId) -> Result<SnapshotRecord, Error> {
        let id = operation.as_str().trim_start_matches("op-").to_owned();
        if let Some((problem, record)) = self.ends.get(&id).cloned() {
            self.put(record);
            return Err(problem);
        }
        let mut record =
            self.becomes.clone().map_or_else(|| self.find(&id, &[]).map(|view| view.record), Ok)?;
        match record.state {
            SnapshotState::Deleting => self.snapshots.retain(|known| known.id != record.id),
            _ => record.state = SnapshotState::Ready,
        }
        Ok(record)
    }

    pub fn add(&mut self, request: &PatchRequest) -> Patch {
        let sequence = self.patches.len() as u64 + 1;
        let added =
            patch(sequence, &request.snapshot, &request.script, request.description.as_deref());
        self.patches.push(added.clone());
        added
    }

    pub fn remove(&mut self, reference: &str) -> Result<Patch, Error> {
        let found = sandboxer::domain::patch::find(&self.patches, reference).cloned();
        let gone = found
            .ok_or_else(|| Error::new(Code::NotFound, format!("there is no patch {reference}")))?;
        self.patches.retain(|known| known.id != gone.id);
        Ok(gone)
    }
}

/// A snapshot that is ready, three hours old.
pub fn snapshot(id: &str, name: Option<&str>, of: &str) -> SnapshotRecord {
    let value = json!({
        "id": id, "name": name, "kind": "user", "sandbox_id": of, "sandbox_name": "my-env",
        "profile": {"id": "profile.compose-checkpoint", "version": "1.0.0", "hash": "00"},
        "extension": "ext.compose-ssh", "host": "coulombcore", "replicas": [{"host": "coulombcore",
            "path": format!("/home/ops/sandboxes/snapshots/{id}"), "state": "ready", "format": "tar.zst", "bytes": 1_500_000,
            "created_at": now().minus_seconds(10_800)}],
        "state": "ready", "created_at": now().minus_seconds(10_800), "expires_at": null, "bytes": 1_500_000,
        "content_bytes": 9_000_000, "files": 1203, "sha256": "ab".repeat(32), "format": "tar.zst", "mode": "pause",
        "consistency": "clean", "volumes_bytes": 512, "captured_volumes": [{"name": "data"}], "parent_snapshot": null,
        "patch_level": 0, "next_patch_sequence": 1, "actor": {"type": "adm", "name": "tester"},
        "owner": "0123456789ab", "revision": 3,
    });
    serde_json::from_value(value).unwrap()
}

pub fn patch(sequence: u64, snapshot: &str, script: &str, description: Option<&str>) -> Patch {
    let value = json!({
        "id": format!("pat-0000000{sequence}"), "snapshot_id": snapshot, "sequence": sequence, "script": script,
        "description": description, "run_in": "workspace", "created_at": now().minus_seconds(60),
        "actor": {"type": "adm", "name": "tester"}, "revision": 1,
    });
    serde_json::from_value(value).unwrap()
}

pub const A: &str = "snap-0000000a";
pub const B: &str = "snap-0000000b";

pub fn based(id: &str, name: &str, on: &str) -> SandboxRecord {
    SandboxRecord { based_on_snapshot: Some(SnapshotId::new(on)), ..named(id, name, State::Ready) }
}

/// The picture of semantics 7: A of my-env; one and two are based on A; B is taken of one; three is based on B.
pub fn family() -> FakeClient {
    let mut one = based("b1b1b1b1", "one", A);
    one.applied_patches = vec![
        serde_json::from_value(
            json!({"id": "pat-00000001", "sequence": 1, "state": "applied", "started_at": now(),
            "took_ms": 75_000, "exit_status": 0, "output": ""}),
        )
        .unwrap(),
    ];
    one.last_patch_sequence = 1;
    one.patch_state = PatchState::Pending;
    let records =
        vec![ready("a1b2c3d4"), one, based("b2b2b2b2", "two", A), based("b3b3b3b3", "three", B)];
    let fake = FakeClient::with(records);
    let mut shelf = fake.lock();
    let mut b = snapshot(B, None, "b1b1b1b1");
    (b.sandbox_name, b.parent_snapshot, b.patch_level) =
        (Some("one".into()), Some(SnapshotId::new(A)), 1);
    shelf.shelf.snapshots = vec![snapshot(A, Some("base"), "a1b2c3d4"), b];
    shelf.shelf.patches = vec![
        patch(1, A, "true", Some("newer certificates\u{1b}[2J")),
        patch(2, A, "make fix", None),
    ];
    drop(shelf);
    fake
}

/// The last call, and its request.
pub fn last(fake: &FakeClient) -> (String, Value) {
    let call = fake.calls().last().cloned().unwrap();
    let (verb, request) = call.split_once(' ').unwrap();
    (verb.to_owned(), serde_json::from_str(request).unwrap())
}

/// One that did not come to be, or not whole.
pub fn badly(state: SnapshotState, unremoved: bool) -> SnapshotRecord {
    let mut record = snapshot("snap-0000000f", None, "a1b2c3d4");
    record.state = state;
    record.mark_all(&ReplicaState::Removing);
    record.replicas.retain(|_| unremoved);
    record.failure = Some(Failure {
        step: "archive".into(),
        exit_status: Some(2),
        output: "tar: \u{1b}[31mNo space left on device\u{1b}[0m".into(),
    });
    record
}
