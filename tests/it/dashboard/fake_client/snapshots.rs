//! Snapshots and patches of the fake client: in memory, by the domain's own rules about who owes what.

#![allow(
    clippy::needless_pass_by_value,
    clippy::assigning_clones,
    reason = "as the trait hands them over"
)]

use std::sync::Arc;

use sandboxer::client::{
    Error, ExtensionView, PatchRequest, PatchStanding, PatchStatus, RestoreRequest, RolloutItem,
    RolloutRequest, SnapshotDeleteRequest, SnapshotRequest, Update,
};
use sandboxer::domain::error::{Code, Kind};
use sandboxer::domain::extension::Capability;
use sandboxer::domain::lineage::SnapshotView;
use sandboxer::domain::manifest::ExtensionManifest;
use sandboxer::domain::name::{ExtensionId, OperationId, PatchId, SandboxId, SnapshotId};
use sandboxer::domain::operation::{CancelOutcome, OperationKind};
use sandboxer::domain::patch::{AppliedPatch, Patch, PatchState};
use sandboxer::domain::pending_patches::{pending_patches, settled_state};
use sandboxer::domain::profile::SnapshotMode;
use sandboxer::domain::request::{SnapshotStarted, Started as OnSandbox};
use sandboxer::domain::sandbox::{SandboxRecord, State};
use sandboxer::domain::snapshot::{
    ArchiveFacts, ArchiveFormat, Consistency, SnapshotKind, SnapshotRecord, SnapshotState,
};
use sandboxer::domain::update::Progress;
use sandboxer::domain::{EventKind, Time};
use tokio::sync::watch;

use super::{FakeClient, Scenario, operator, ready, record};

impl FakeClient {
    pub(super) fn all_snapshots(&self) -> Result<Vec<Arc<SnapshotView>>, Error> {
        if let Some(problem) = &self.scenario.snapshots_error {
            return Err(problem.clone());
        }
        let inner = self.inner.lock().unwrap();
        let mut all: Vec<SnapshotRecord> = inner.snapshots.values().cloned().collect();
        all.sort_by_key(|record| (record.created_at, record.id.clone()));
        let view = |record| SnapshotView::of(record, &inner.patches, inner.records.values(), &all);
        Ok(all.iter().map(|record| Arc::new(view(record))).collect())
    }

    pub(super) fn one_snapshot(&self, reference: &str) -> Result<SnapshotView, Error> {
        let all = self.all_snapshots()?;
        let found = all.iter().find(|view| view.record.id.as_str() == reference);
        let missing = || Error::new(Code::NotFound, format!("there is no snapshot {reference}"));
        found.map(|view| SnapshotView::clone(view)).ok_or_else(missing)
    }

    /// Changes a snapshot as another process would, and tells.
    pub fn change_snapshot(&self, id: &SnapshotId, change: impl FnOnce(&mut SnapshotRecord)) {
        if let Some(record) = self.inner.lock().unwrap().snapshots.get_mut(id) {
            record.revision += 1;
            change(record);
        }
        let _ = self.updates.send(Update::Snapshots);
    }

    pub(super) fn take_snapshot(&self, request: SnapshotRequest) -> Result<SnapshotStarted, Error> {
        let asked = format!(
            "snapshot {} {:?} {:?} {:?}",
            request.id, request.revision, request.name, request.mode
        );
        let source = self.checked(&request.id, request.revision)?;
        self.asked.lock().unwrap().push(asked);
        let next = {
            let mut inner = self.inner.lock().unwrap();
            if request.name.is_some()
                && inner.snapshots.values().any(|record| record.name == request.name)
            {
                let mut problem = Error::new(Code::Conflict, "the name is taken");
                problem.details = serde_json::json!({"field": "name"});
                return Err(problem);
            }
            inner.next += 1;
            inner.next
        };
        let mut record =
            snapshot_of(&source, &format!("snap-{next:08x}"), request.name.as_deref(), self.now());
        record.state = SnapshotState::Creating;
        let facts = std::mem::take(&mut record.archive);
        let id = record.id.clone();
        self.inner.lock().unwrap().snapshots.insert(id.clone(), record.clone());
        let _ = self.updates.send(Update::Snapshots);
        let source = source.id;
        let operation =
            self.spawn(id.to_string(), move |client, operation, cancelled| async move {
                client.capture(&id, &source, facts, &operation, cancelled).await
            });
        Ok(SnapshotStarted { operation: Some(operation), snapshot: record })
    }

    async fn capture(
        &self,
        id: &SnapshotId,
        source: &SandboxId,
        facts: ArchiveFacts,
        operation: &OperationId,
        cancelled: watch::Receiver<bool>,
    ) -> Result<(), Error> {
        for part in 0..10_u64 {
            if *cancelled.borrow() {
                self.change_snapshot(id, |record| record.state = SnapshotState::Failed);
                return Err(CancelOutcome::Undone.error("cancelled; nothing of it is left"));
            }
            let _ = self.updates.send(Update::Progress(Progress {
                operation: operation.clone(),
                kind: OperationKind::Snapshot,
                sandbox_id: Some(source.clone()),
                snapshot_id: Some(id.clone()),
                stage: "capture".to_owned(),
                step: 2,
                steps: 3,
                done: None,
                of: None,
                bytes: Some(part * 12_000_000),
                message: None,
            }));
            tokio::time::sleep(self.scenario.pace / 4).await;
        }
        if let Some(problem) = &self.scenario.operation_error {
            self.change_snapshot(id, |record| record.state = SnapshotState::Failed);
            return Err(problem.clone());
        }
        self.change_snapshot(id, |record| {
            record.state = SnapshotState::Ready;
            record.archive = facts;
        });
        Ok(())
    }

    pub(super) fn last_snapshot(&self, id: &str) -> Result<SnapshotRecord, Error> {
        if let Ok(view) = self.one_snapshot(id) {
            return Ok(view.record);
        }
        let gone = self.scenario.snapshots.iter().find(|record| record.id.as_str() == id).cloned();
        gone.ok_or_else(|| Error::new(Code::NotFound, format!("snapshot {id} is deleted")))
    }

    pub(super) fn begin_deletion(
        &self,
        request: SnapshotDeleteRequest,
    ) -> Result<SnapshotStarted, Error> {
        let view = self.shown_snapshot(&request.id, request.revision)?;
        let dependants = view.dependants();
        if request.force
            && request
                .dependants
                .is_some_and(|seen| dependants.iter().any(|one| !seen.contains(one)))
        {
            let message = format!("more depends on snapshot {} than was looked at", request.id);
            return Err(Error::new(Code::Conflict, message).of_kind(Kind::Stale));
        }
        self.asked.lock().unwrap().push(format!("delete {} force={}", request.id, request.force));
        if !request.force && !dependants.is_empty() {
            return Err(Error::new(
                Code::InUse,
                format!("{} is in use: {}", request.id, dependants.join(", ")),
            ));
        }
        let id = view.record.id.clone();
        let operation = self.spawn(request.id, move |client, _, _| async move {
            client.change_snapshot(&id, |record| record.state = SnapshotState::Deleting);
            tokio::time::sleep(client.scenario.pace).await;
            client.inner.lock().unwrap().snapshots.remove(&id);
            let _ = client.updates.send(Update::Snapshots);
            Ok(())
        });
        Ok(SnapshotStarted { operation: Some(operation), snapshot: view.record })
    }

    /// A snapshot at the revision that the asker saw.
    fn shown_snapshot(&self, id: &str, revision: Option<u64>) -> Result<SnapshotView, Error> {
        let view = self.one_snapshot(id)?;
        if revision.is_some_and(|seen| seen != view.record.revision) {
            let message = format!("snapshot {id} changed since it was looked at");
            return Err(Error::new(Code::Conflict, message).of_kind(Kind::Stale));
        }
        Ok(view)
    }

    pub(super) fn begin_restore(&self, request: RestoreRequest) -> Result<OnSandbox, Error> {
        let view = self.shown_snapshot(&request.snapshot, request.revision)?;
        self.asked.lock().unwrap().push(format!(
            "restore {} host={:?} ttl={:?} name={:?} strict={} patches={}",
            request.snapshot,
            request.host,
            request.ttl,
            request.name,
            request.strict,
            request.require_patches
        ));
        let next = {
            let mut inner = self.inner.lock().unwrap();
            if request.name.is_some()
                && inner.records.values().any(|record| record.name == request.name)
            {
                let mut problem = Error::new(Code::Conflict, "the name is taken");
                problem.details = serde_json::json!({"field": "name"});
                return Err(problem);
            }
            inner.next += 1;
            inner.next
        };
        let id = SandboxId::from_random(next.wrapping_mul(2_654_435_761));
        let host = request.host.unwrap_or_else(|| view.record.host.to_string());
        let (name, profile) = (request.name.as_deref(), view.record.profile.id.as_str());
        let mut made = record(id.as_str(), name, profile, &host, State::Requested, self.now());
        made.based_on_snapshot = Some(view.record.id.clone());
        self.insert(made.clone());
        let operation = self.start(OperationKind::Restore, &id);
        Ok(OnSandbox { operation: Some(operation), sandbox: made })
    }

    /// Sleeps, wakes, or applies patches.
    pub(super) async fn rest(&self, kind: OperationKind, id: &SandboxId) -> Result<(), Error> {
        tokio::time::sleep(self.scenario.pace).await;
        if let Some(problem) = &self.scenario.operation_error {
            return Err(problem.clone());
        }
        match kind {
            OperationKind::Sleep => {
                self.change(id, EventKind::SandboxSleeping, |record| {
                    record.state = State::Sleeping;
                });
            }
            OperationKind::Wake => {
                self.apply_owed(id);
                self.change(id, EventKind::SandboxWoken, |record| record.state = State::Ready);
            }
            _ => self.apply_owed(id),
        }
        Ok(())
    }

    /// Runs what a sandbox owes: a script that holds `exit 1` fails, and ends the pass.
    pub(super) fn apply_owed(&self, id: &SandboxId) {
        let patches = self.inner.lock().unwrap().patches.clone();
        self.change(id, EventKind::PatchApplied, |record| {
            let owes = pending_patches(record, &patches, false);
            let blocked = owes.blocked.is_some();
            let run: Vec<Patch> =
                if blocked { Vec::new() } else { owes.run.into_iter().cloned().collect() };
            record.patch_error = record.patch_error.take().filter(|_| blocked);
            for patch in run {
                let fails = patch.script.contains("exit 1");
                record.applied_patches.push(ran(&patch, !fails));
                if fails {
                    record.patch_error = Some(format!("patch {} failed (exit 1)", patch.sequence));
                    break;
                }
                record.last_patch_sequence = patch.sequence;
            }
            record.patch_state = settled_state(record, &patches);
        });
    }

    pub(super) fn attach(&self, request: PatchRequest) -> Result<Patch, Error> {
        self.asked.lock().unwrap().push(format!(
            "patch {} {:?} {:?}",
            request.snapshot, request.description, request.run_in
        ));
        let run_in = request.run_in.as_deref().unwrap_or("workspace");
        sandboxer::domain::patch::check(&request.script, run_in, request.description.as_deref())?;
        let added = {
            let mut inner = self.inner.lock().unwrap();
            let record = inner.snapshots.get_mut(&SnapshotId::new(request.snapshot.as_str()));
            let record =
                record.ok_or_else(|| Error::new(Code::NotFound, "there is no such snapshot"))?;
            let sequence = record.next_patch_sequence;
            record.next_patch_sequence += 1;
            record.revision += 1;
            let mut added = patch(&record.id.clone(), sequence, None, &request.script);
            added.description = request.description.clone();
            run_in.clone_into(&mut added.run_in);
            inner.patches.push(added.clone());
            added
        };
        let _ = self.updates.send(Update::Snapshots);
        Ok(added)
    }

    pub(super) fn detach(&self, snapshot: &str, reference: &str) -> Result<Patch, Error> {
        self.asked.lock().unwrap().push(format!("remove patch {snapshot} {reference}"));
        let mut inner = self.inner.lock().unwrap();
        let at = inner.patches.iter().position(|patch| patch.id.as_str() == reference);
        let removed = at.map(|at| inner.patches.remove(at));
        drop(inner);
        let _ = self.updates.send(Update::Snapshots);
        removed.ok_or_else(|| Error::new(Code::NotFound, format!("there is no patch {reference}")))
    }

    pub(super) fn how_patches_stand(&self, snapshot: &str) -> Result<Vec<PatchStatus>, Error> {
        let view = self.one_snapshot(snapshot)?;
        let inner = self.inner.lock().unwrap();
        let standing = |patch: &Patch, id: &SandboxId| {
            let record = inner.records.get(id)?;
            let run = record.applied_patches.iter().find(|run| run.id == patch.id).cloned();
            let state = run.as_ref().map_or(PatchState::Pending, |run| run.state.clone());
            let blocked = pending_patches(record, &inner.patches, false).blocked.is_some();
            let (id, name, host) = (id.clone(), record.name.clone(), record.host.clone());
            Some(PatchStanding { id, name, host, state, blocked, run })
        };
        let status = |patch: &Patch| PatchStatus {
            patch: patch.clone(),
            sandboxes: view
                .sandboxes
                .iter()
                .filter_map(|based| standing(patch, &based.id))
                .collect(),
        };
        Ok(view.patches.iter().map(status).collect())
    }

    pub(super) async fn roll_out_to_all(
        &self,
        request: RolloutRequest,
    ) -> Result<Vec<RolloutItem>, Error> {
        self.asked
            .lock()
            .unwrap()
            .push(format!("roll out {} canary={:?}", request.snapshot, request.canary));
        let view = self.one_snapshot(&request.snapshot)?;
        let mut items = Vec::new();
        for (at, based) in view.sandboxes.iter().enumerate() {
            tokio::time::sleep(self.scenario.pace).await;
            self.apply_owed(&based.id);
            let record = self.checked(based.id.as_str(), None)?;
            let failed =
                record.patch_error.clone().map(|error| Error::new(Code::OperationFailed, error));
            let canary = request.canary.is_some_and(|count| at < count as usize);
            let stop = failed.is_some();
            items.push(RolloutItem {
                id: based.id.clone(),
                ok: !stop,
                canary,
                applied: based.owes.clone(),
                reason: None,
                error: failed,
            });
            if stop {
                break;
            }
        }
        Ok(items)
    }
}

/// A snapshot of a sandbox, whole.
pub fn snapshot_of(
    source: &SandboxRecord,
    id: &str,
    name: Option<&str>,
    now: Time,
) -> SnapshotRecord {
    SnapshotRecord {
        id: SnapshotId::new(id),
        name: name.map(str::to_owned),
        kind: SnapshotKind::User,
        sandbox_id: source.id.clone(),
        sandbox_name: source.name.clone(),
        profile: source.profile.clone(),
        extension: source.extension.clone(),
        extension_version: Some("1.0.0".into()),
        host: source.host.clone(),
        host_identity: None,
        path: Some(format!("/home/ops/sandboxes/.snapshots/{id}")),
        state: SnapshotState::Ready,
        message: None,
        failure: None,
        created_at: now,
        imported_at: None,
        adopted_at: None,
        expires_at: None,
        undo: None,
        archive: ArchiveFacts {
            bytes: Some(120_000_000),
            content_bytes: Some(410_000_000),
            files: Some(20_412),
            sha256: Some("5f".repeat(32)),
            format: Some(ArchiveFormat::TarZst),
            mode: Some(SnapshotMode::Pause),
            consistency: Some(Consistency::Clean),
            ..ArchiveFacts::default()
        },
        parent_snapshot: source.based_on_snapshot.clone(),
        patch_level: source.last_patch_sequence,
        next_patch_sequence: 1,
        labels: source.labels.clone(),
        inputs: source.inputs.clone(),
        replicas: Vec::new(),
        copying_to: None,
        unremoved: false,
        verified_at: None,
        damage: Vec::new(),
        operation: None,
        actor: operator(),
        owner: source.owner.clone(),
        revision: 2,
        imported: None,
        pending: Vec::new(),
    }
}

/// A patch on a snapshot.
pub fn patch(
    snapshot: &SnapshotId,
    sequence: u64,
    description: Option<&str>,
    script: &str,
) -> Patch {
    Patch {
        id: PatchId::new(format!("pat-{:08x}", 0xa000 + sequence)),
        snapshot_id: snapshot.clone(),
        sequence,
        script: script.to_owned(),
        description: description.map(str::to_owned),
        run_in: "workspace".to_owned(),
        strategy: sandboxer::domain::patch::PatchStrategy::OnWake,
        created_at: Time::from_unix(1_795_780_000),
        actor: operator(),
        revision: 1,
        pending: Vec::new(),
    }
}

/// A patch that ran.
fn ran(patch: &Patch, well: bool) -> AppliedPatch {
    AppliedPatch {
        id: patch.id.clone(),
        sequence: patch.sequence,
        state: if well { PatchState::Applied } else { PatchState::Failed },
        started_at: Some(patch.created_at),
        took_ms: Some(4000),
        exit_status: Some(i32::from(!well)),
        output: Some(if well {
            "done".to_owned()
        } else {
            "migrating\nERROR: relation \"orders\" exists".to_owned()
        }),
    }
}

/// Two backends: one that can do all of it, one that can do none of it.
pub fn backends() -> Vec<ExtensionView> {
    let all = [
        Capability::Snapshots,
        Capability::Patches,
        Capability::Sleep,
        Capability::Exec,
        Capability::Logs,
    ];
    vec![extension("ext.compose-ssh", &all), extension("ext.bare", &[Capability::Adopt])]
}

/// A backend that can do this.
pub fn extension(id: &str, capabilities: &[Capability]) -> ExtensionView {
    ExtensionView {
        id: id.to_owned(),
        version: Some("1.0.0".to_owned()),
        available: true,
        unavailable: None,
        source: "builtin".to_owned(),
        path: None,
        overrides_builtin: false,
        error: None,
        place: None,
        manifest: Some(ExtensionManifest {
            id: ExtensionId::new(id),
            version: semver::Version::new(1, 0, 0),
            summary: String::new(),
            kind: sandboxer::domain::manifest::ExtensionKind::Builtin,
            command: Vec::new(),
            capabilities: capabilities.iter().cloned().collect(),
            config_schema: serde_json::json!({}),
            env: Vec::new(),
            rates: sandboxer::domain::manifest::Rates::default(),
        }),
    }
}

/// The picture of semantics 7, and some of what goes wrong: snapshot `my-env` with three patches, based on it sandbox 1
/// (two of them applied, the third failed) and sandbox 2 (asleep, with one); `my-env-2`, taken of 1, with sandbox 3 on it;
/// one that failed, one that is not all that it should be, one of before a removal.
pub fn lineage_world(now: Time) -> Scenario {
    let mut scenario = super::world(now);
    let made = |id: &str, name: &str, ago: u64| {
        let record = record(id, Some(name), "compose-checkpoint", "coulombcore", State::Ready, now);
        let mut record = ready(record, now.minus_seconds(ago));
        record.created_at = now.minus_seconds(ago);
        record
    };
    let source = made("50bac0de", "golden", 9000);
    let mut a = snapshot_of(&source, "snap-0000000a", Some("my-env"), now.minus_seconds(7300));
    a.next_patch_sequence = 4;
    let patches = vec![
        patch(&a.id, 1, Some("new certificates"), "cp certs/* /etc/ssl\n"),
        patch(&a.id, 2, Some("feature flags"), "echo on > flags\n"),
        patch(&a.id, 3, Some("migrate orders"), "./migrate\nexit 1\n"),
    ];
    let mut one = made("00000001", "one", 7000);
    one.based_on_snapshot = Some(a.id.clone());
    one.applied_patches =
        vec![ran(&patches[0], true), ran(&patches[1], true), ran(&patches[2], false)];
    (one.last_patch_sequence, one.patch_state) = (2, PatchState::Failed);
    one.patch_error =
        Some("patch 3 failed (exit 1); remove it and wake, or apply with retry".to_owned());
    let mut two = made("00000002", "two", 6000);
    two.based_on_snapshot = Some(a.id.clone());
    two.applied_patches = vec![ran(&patches[0], true)];
    (two.last_patch_sequence, two.patch_state, two.state) =
        (1, PatchState::Applied, State::Sleeping);
    two.services.clear();
    let b = snapshot_of(&one, "snap-0000000b", Some("my-env-2"), now.minus_seconds(3000));
    let mut three = made("00000003", "three", 2000);
    three.based_on_snapshot = Some(b.id.clone());
    let mut broken =
        snapshot_of(&source, "snap-0000000c", Some("nightly"), now.minus_seconds(1800));
    (broken.state, broken.unremoved) = (SnapshotState::Failed, true);
    broken.archive = ArchiveFacts::default();
    broken.message = Some("no space left on coulombcore".to_owned());
    let mut fuzzy = snapshot_of(&source, "snap-0000000d", None, now.minus_seconds(600));
    fuzzy.archive.bytes = Some(2_400_000_000);
    fuzzy.archive.consistency = Some(Consistency::Fuzzy);
    fuzzy.archive.not_captured = vec![sandboxer::domain::snapshot::NotCaptured {
        name: "cache".to_owned(),
        reason: "its driver keeps it on another machine".to_owned(),
    }];
    let mut undo = snapshot_of(&source, "snap-0000000e", None, now.minus_seconds(300));
    undo.kind = SnapshotKind::Undo;
    scenario.records.extend([source, one, two, three]);
    scenario.snapshots = vec![a, b, broken, fuzzy, undo];
    scenario.patches = patches;
    scenario.extensions = backends();
    scenario
}
