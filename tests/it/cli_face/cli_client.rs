//! A client without a manager, for the tests of the command line: records in memory, operations that end as told.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use futures_util::stream::{self, BoxStream};
use futures_util::{StreamExt as _, TryStreamExt};
use sandboxer::client::{
    Client, CreateRequest, Credits, Decision, DestroyRequest, Error, EventQuery, ExecRequest,
    ExtendRequest, Extended, ExtensionView, FlushReport, GrantRequest, HistoryEntry, LabelRequest,
    ListQuery, LogsRequest, PatchRequest, PatchStatus, ProfileView, PruneItem, PruneRequest,
    Record, Recovered, RecreateRequest, Request, RestoreRequest, RolloutItem, RolloutRequest,
    ShellRequest, SnapshotDiff, SnapshotDiffRequest, SnapshotImportRequest, SnapshotQuery, Started,
    Update,
};
use sandboxer::domain::adoption::{AdoptRequest, Adopted, ImportRequest};
use sandboxer::domain::host_view::HostView;
use sandboxer::domain::lineage::{Lineage, SnapshotView};
use sandboxer::domain::output::{ExecOutput, Interactive, LogLine};
use sandboxer::domain::patch::Patch;
use sandboxer::domain::request::Started as OnSandbox;
use sandboxer::domain::snapshot::{SnapshotRecord, SnapshotState};
use sandboxer::domain::stale::{
    PlanRequest, ReapPlan, ReapReport, ReapStarted, StaleQuery, StaleReport,
};
use sandboxer::domain::sweep::{SweepReport, SweepRequest};
use sandboxer::domain::telemetry::HostSample;
use sandboxer::domain::undo::UndoRequest;
use sandboxer::domain::{
    Actor, Code, Event, Operation, OperationId, OperationState, SandboxId, SandboxRecord,
    SnapshotId, State, Time,
};
use tokio::sync::{Notify, broadcast};

use super::cli_shelf::Shelf;

/// How an operation on a sandbox ends.
#[derive(Clone)]
pub enum End {
    /// Well, with this record.
    Well(Box<SandboxRecord>),
    /// With this problem; the record becomes this one.
    Badly(Error, Box<SandboxRecord>),
    /// Never, until it is cancelled; then as told.
    OnCancel(Box<End>),
    /// Never, whatever is asked.
    Never,
}

#[derive(Default)]
pub struct Inner {
    pub records: Vec<SandboxRecord>,
    /// By sandbox id.
    pub ends: HashMap<String, End>,
    /// What `create` answers before anything is written.
    pub refuses: Option<Error>,
    pub decision: Option<Decision>,
    pub profiles: Vec<ProfileView>,
    pub extensions: Vec<ExtensionView>,
    pub hosts: Vec<HostView>,
    /// Whether a deep check goes on until it is cancelled.
    pub deep_checks_wait: bool,
    pub events: Vec<Event>,
    pub credits: Credits,
    pub ledger: Vec<HistoryEntry>,
    pub operations: Vec<Operation>,
    /// What `cancel` does to an operation that runs, at once.
    pub cancel_ends: Option<OperationState>,
    pub recovered: Vec<Recovered>,
    /// What each look at a host finds of a sandbox, before it is what is recorded.
    pub observed: VecDeque<Result<SandboxRecord, Error>>,
    /// What `sweep` answers; none: nothing was due.
    pub swept: Option<SweepReport>,
    pub flushed: Option<FlushReport>,
    pub stale: Option<StaleReport>,
    pub plan: Option<ReapPlan>,
    pub reaped: Option<ReapReport>,
    /// Whether a reap goes on until it is cancelled.
    pub reap_waits: bool,
    pub adopted: Vec<Adopted>,
    /// Whether `recover`, `adopt`, `sweep` and a look at what is stale never end.
    pub recovers_for_ever: bool,
    /// What `exec` tells; it goes on for ever where that has no end.
    pub exec: Vec<Result<ExecOutput, Error>>,
    /// What the last `exec` was given to read.
    pub read: Option<Vec<u8>>,
    /// What `logs` tells; with `follow` it goes on for ever.
    pub logs: Vec<Result<LogLine, Error>>,
    /// Why the host's manifest says another deadline behind `extend`.
    pub unwritten: Option<Error>,
    /// The words of a shell.
    pub shell: Vec<String>,
    /// Sent to whoever subscribes, at once.
    pub updates: Vec<Update>,
    /// What was asked, in order.
    pub calls: Vec<String>,
    pub shelf: Shelf,
    cancelled: Vec<OperationId>,
}

/// The client; clones share their state.
#[derive(Clone)]
pub struct FakeClient {
    inner: Arc<Mutex<Inner>>,
    wake: Arc<Notify>,
    live: broadcast::Sender<Update>,
}

impl Default for FakeClient {
    fn default() -> Self {
        Self { inner: Arc::default(), wake: Arc::default(), live: broadcast::channel(64).0 }
    }
}

impl FakeClient {
    pub fn with(records: Vec<SandboxRecord>) -> Self {
        let fake = Self::default();
        fake.lock().records = records;
        fake
    }

    pub fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn ends(self, id: &str, end: End) -> Self {
        self.lock().ends.insert(id.to_owned(), end);
        self
    }

    pub fn calls(&self) -> Vec<String> {
        self.lock().calls.clone()
    }

    /// Something happens now.
    pub fn happens(&self, record: SandboxRecord, update: Update) {
        self.put(record);
        let _ = self.live.send(update);
    }

    fn put(&self, record: SandboxRecord) {
        let mut inner = self.lock();
        match inner.records.iter_mut().find(|known| known.id == record.id) {
            Some(known) => *known = record,
            None => inner.records.push(record),
        }
    }

    fn start(&self, call: String, record: SandboxRecord) -> OnSandbox {
        self.lock().calls.push(call);
        self.begin(record)
    }

    fn begin(&self, record: SandboxRecord) -> OnSandbox {
        let operation = OperationId::new(format!("op-{}", record.id));
        self.put(record.clone());
        OnSandbox { operation: Some(operation), sandbox: record }
    }

    fn called(&self, verb: &str, request: &impl serde::Serialize) -> MutexGuard<'_, Inner> {
        let mut inner = self.lock();
        inner.calls.push(format!("{verb} {}", serde_json::to_string(request).unwrap()));
        inner
    }

    /// What changes a sandbox that stays; nothing to do where it is in that state already.
    fn change(
        &self,
        verb: &str,
        id: &str,
        request: &impl serde::Serialize,
        already: State,
    ) -> Result<OnSandbox, Error> {
        if let Some(problem) = self.called(verb, request).shelf.refuses.clone() {
            return Err(problem);
        }
        let record = self.find(id)?;
        if record.state == already {
            return Ok(OnSandbox { operation: None, sandbox: record });
        }
        Ok(OnSandbox { operation: Some(OperationId::new(format!("op-{id}"))), sandbox: record })
    }

    fn find(&self, reference: &str) -> Result<SandboxRecord, Error> {
        let inner = self.lock();
        let exact = |record: &&SandboxRecord| {
            record.id.as_str() == reference || record.name.as_deref() == Some(reference)
        };
        if let Some(record) = inner.records.iter().find(exact) {
            return Ok(record.clone());
        }
        let prefixed = |record: &&SandboxRecord| {
            reference.len() >= 4 && record.id.as_str().starts_with(reference)
        };
        let found: Vec<_> = inner.records.iter().filter(prefixed).collect();
        match found.as_slice() {
            [one] => Ok((*one).clone()),
            [] => Err(Error::new(Code::NotFound, format!("no sandbox '{reference}'"))
                .hint("sandboxer list")),
            _ => Err(Error::new(
                Code::Conflict,
                format!("'{reference}' is the beginning of several ids"),
            )),
        }
    }
}

impl FakeClient {
    fn create(&self, request: CreateRequest) -> Result<OnSandbox, Error> {
        if let Some(problem) = self.lock().refuses.clone() {
            return Err(problem);
        }
        let id = request.id.clone().unwrap_or_else(|| "a1b2c3d4".to_owned());
        let mut record = super::record(&id, State::Requested);
        record.name.clone_from(&request.name);
        let mut started =
            self.start(format!("create {}", serde_json::to_string(&request).unwrap()), record);
        if request.idempotency_key.is_some() {
            started.operation = None;
        }
        Ok(started)
    }

    fn destroy(&self, request: DestroyRequest) -> Result<OnSandbox, Error> {
        let mut record = self.find(&request.id)?;
        let call = format!("destroy {}", serde_json::to_string(&request).unwrap());
        if record.state == State::Destroyed {
            self.lock().calls.push(call);
            return Ok(OnSandbox { operation: None, sandbox: record });
        }
        record.state = State::Destroying;
        Ok(self.start(call, record))
    }

    fn recreate(&self, request: RecreateRequest) -> Result<OnSandbox, Error> {
        let mut record = self.find(&request.id)?;
        record.state = State::Provisioning;
        Ok(self.start(format!("recreate {}", serde_json::to_string(&request).unwrap()), record))
    }

    fn restore(&self, request: RestoreRequest) -> Result<OnSandbox, Error> {
        if let Some(problem) = self.called("restore", &request).shelf.refuses.clone() {
            return Err(problem);
        }
        let mut made = super::record("r0000001", State::Provisioning);
        made.name.clone_from(&request.name);
        made.based_on_snapshot = Some(SnapshotId::new(request.snapshot));
        Ok(self.begin(made))
    }

    fn undo(&self, request: &UndoRequest) -> Result<OnSandbox, Error> {
        drop(self.called("undo", request));
        let removed =
            self.lock().records.iter().rfind(|one| one.state == State::Destroyed).cloned();
        let removed = removed.ok_or_else(|| {
            Error::new(
                Code::NotFound,
                "there is nothing to undo: nothing is kept of any removed sandbox",
            )
        })?;
        let mut made = super::record("r0000001", State::Provisioning);
        (made.name, made.undo_of) = (removed.name, Some(removed.id));
        Ok(self.begin(made))
    }

    async fn sandbox_ended(&self, operation: &OperationId) -> Result<SandboxRecord, Error> {
        let id = operation.as_str().trim_start_matches("op-").to_owned();
        let mut end = self.lock().ends.get(&id).cloned();
        loop {
            match end {
                Some(End::Well(record)) => {
                    self.put((*record).clone());
                    return Ok(*record);
                }
                Some(End::Badly(problem, record)) => {
                    self.put(*record);
                    return Err(problem);
                }
                Some(End::Never) => std::future::pending().await,
                Some(End::OnCancel(then)) => {
                    while !self.lock().cancelled.contains(operation) {
                        self.wake.notified().await;
                    }
                    end = Some(*then);
                }
                None => {
                    let mut record = self.find(&id)?;
                    record.state = if record.state == State::Destroying {
                        State::Destroyed
                    } else {
                        State::Ready
                    };
                    end = Some(End::Well(Box::new(record)));
                }
            }
        }
    }

    async fn snapshot_ended(&self, operation: &OperationId) -> Result<SnapshotRecord, Error> {
        while self.lock().shelf.waits && !self.lock().cancelled.contains(operation) {
            self.wake.notified().await;
        }
        self.lock().shelf.end(operation)
    }

    async fn reap_ended(&self, operation: &OperationId) -> Result<ReapReport, Error> {
        while !self.lock().cancelled.contains(operation) {
            self.wake.notified().await;
        }
        let report = self.lock().reaped.clone();
        report.ok_or_else(|| Error::new(Code::Internal, "the fake has no report"))
    }

    async fn check_ended(&self, operation: &OperationId) -> Result<HostView, Error> {
        while self.lock().deep_checks_wait && !self.lock().cancelled.contains(operation) {
            self.wake.notified().await;
        }
        self.check_host(operation.as_str().trim_start_matches("op-")).await
    }
}

#[async_trait]
impl Client for FakeClient {
    async fn credits(&self) -> Result<Credits, Error> {
        Ok(self.lock().credits.clone())
    }

    async fn credit_history(&self) -> Result<Vec<HistoryEntry>, Error> {
        Ok(self.lock().ledger.clone())
    }

    async fn grant_credits(&self, request: GrantRequest) -> Result<Credits, Error> {
        let mut inner = self.called("grant", &request);
        inner.credits.balance_usd += request.usd;
        Ok(inner.credits.clone())
    }

    async fn start(&self, request: Request) -> Result<Started, Error> {
        Ok(match request {
            Request::Create(request) => self.create(*request)?.into(),
            Request::Destroy(request) => self.destroy(request)?.into(),
            Request::Recreate(request) => self.recreate(request)?.into(),
            Request::Sleep(request) => {
                self.change("sleep", &request.id, &request, State::Sleeping)?.into()
            }
            Request::Wake(request) => {
                self.change("wake", &request.id, &request, State::Ready)?.into()
            }
            Request::ApplyPatches(request) => {
                self.change("apply", &request.id, &request, State::Requested)?.into()
            }
            Request::Snapshot(request) => {
                self.called("snapshot", &request).shelf.snapshot(&request)?.into()
            }
            Request::Restore(request) => self.restore(request)?.into(),
            Request::VerifySnapshot(request) => {
                let record = self.snapshot_view(&request.id).await?.record;
                self.called("verify", &request.id).shelf.start(record)?.into()
            }
            Request::CopySnapshot(request) => {
                let record = self.snapshot_view(&request.id).await?.record;
                self.called("copy", &request).shelf.start(record)?.into()
            }
            Request::DeleteSnapshot(request) => {
                let mut inner = self.called("delete", &request);
                let records = inner.records.clone();
                inner.shelf.delete(&request, &records)?.into()
            }
            Request::CheckHost(request) => {
                self.lock().calls.push(format!("deep_check {}", request.host));
                let host = self.check_host(&request.host).await?;
                let operation = OperationId::new(format!("op-{}", host.name));
                Started { operation: Some(operation), record: host.into() }
            }
            Request::Reap(request) => {
                self.lock().calls.push(format!("reap {request:?}"));
                let report = self.lock().reaped.clone();
                let report =
                    report.ok_or_else(|| Error::new(Code::NotFound, "there is no such plan"))?;
                let operation = self.lock().reap_waits.then(|| OperationId::new("op-reap"));
                ReapStarted { operation, report }.into()
            }
            Request::Undo(request) => self.undo(&request)?.into(),
        })
    }

    async fn wait(&self, operation: &OperationId) -> Result<Record, Error> {
        let of = operation.as_str().trim_start_matches("op-").to_owned();
        if of.starts_with("snap-") {
            return self.snapshot_ended(operation).await.map(Record::from);
        }
        if of == "reap" {
            return self.reap_ended(operation).await.map(Record::from);
        }
        if self.lock().hosts.iter().any(|host| host.name.same(&of)) {
            return self.check_ended(operation).await.map(Record::from);
        }
        self.sandbox_ended(operation).await.map(Record::from)
    }

    async fn plan_create(&self, _: CreateRequest) -> Result<Decision, Error> {
        self.lock()
            .decision
            .clone()
            .ok_or_else(|| Error::new(Code::NotFound, "no profile 'profile.x'"))
    }

    async fn list(&self, query: ListQuery) -> Result<Vec<Arc<SandboxRecord>>, Error> {
        let mut inner = self.lock();
        inner.calls.push(format!("list {}", serde_json::to_string(&query).unwrap()));
        let wanted = |record: &&SandboxRecord| {
            query.states.is_empty() || query.states.contains(&record.state)
        };
        Ok(inner.records.iter().filter(wanted).cloned().map(Arc::new).collect())
    }

    async fn get(&self, reference: &str) -> Result<SandboxRecord, Error> {
        self.find(reference)
    }

    async fn snapshots(&self, query: SnapshotQuery) -> Result<Vec<Arc<SnapshotView>>, Error> {
        let inner = self.lock();
        let views = inner.shelf.views(&inner.records).into_iter();
        let shown = |view: &SnapshotView| query.all || view.record.state != SnapshotState::Failed;
        Ok(views.filter(shown).map(Arc::new).collect())
    }

    async fn snapshot_view(&self, reference: &str) -> Result<SnapshotView, Error> {
        let inner = self.lock();
        inner.shelf.find(reference, &inner.records)
    }

    async fn export_snapshot(
        &self,
        id: &str,
    ) -> Result<BoxStream<'static, Result<Vec<u8>, Error>>, Error> {
        let inner = self.called("export", &id);
        let told = stream::iter(inner.shelf.exported.clone());
        Ok(if inner.shelf.exports_for_ever {
            told.chain(stream::pending()).boxed()
        } else {
            told.boxed()
        })
    }

    async fn import_snapshot(
        &self,
        request: SnapshotImportRequest,
        mut source: BoxStream<'static, Result<Vec<u8>, Error>>,
    ) -> Result<Started, Error> {
        drop(self.called("import", &request));
        while let Some(piece) = source.next().await {
            self.lock().shelf.imported.extend(piece?);
        }
        let made = super::cli_shelf::snapshot("snap-0000000e", request.name.as_deref(), "a1b2c3d4");
        Ok(self.lock().shelf.start(made)?.into())
    }

    async fn diff_snapshot(&self, request: SnapshotDiffRequest) -> Result<SnapshotDiff, Error> {
        let inner = self.called("diff", &request);
        inner
            .shelf
            .diff
            .clone()
            .ok_or_else(|| Error::new(Code::Conflict, "there is nothing to compare it with"))
    }

    async fn prune_snapshots(&self, request: PruneRequest) -> Result<Vec<PruneItem>, Error> {
        Ok(self.called("prune", &request).shelf.prune.clone())
    }

    async fn add_patch(&self, request: PatchRequest) -> Result<Patch, Error> {
        Ok(self.called("patch", &request).shelf.add(&request))
    }

    async fn remove_patch(&self, snapshot: &str, patch: &str) -> Result<Patch, Error> {
        self.called("unpatch", &(snapshot, patch)).shelf.remove(patch)
    }

    async fn patch_status(&self, _: &str) -> Result<Vec<PatchStatus>, Error> {
        Ok(self.lock().shelf.status.clone())
    }

    async fn roll_out(&self, request: RolloutRequest) -> Result<Vec<RolloutItem>, Error> {
        drop(self.called("rollout", &request));
        while self.lock().shelf.waits && self.lock().cancelled.is_empty() {
            self.wake.notified().await;
        }
        Ok(self.lock().shelf.rollout.clone())
    }

    async fn lineage(&self, id: &str) -> Result<Lineage, Error> {
        let record = self.find(id)?;
        let lineage = Lineage::of(&record, &self.lock().shelf.snapshots);
        self.lock().shelf.no_lineage.clone().map_or(Ok(lineage), Err)
    }

    async fn cancel(&self, operation: &OperationId) -> Result<(), Error> {
        let mut inner = self.lock();
        inner.calls.push(format!("cancel {operation}"));
        inner.cancelled.push(operation.clone());
        let end = inner.cancel_ends.clone();
        for known in inner.operations.iter_mut().filter(|known| known.id == *operation) {
            known.cancel_requested = true;
            known.state = end.clone().unwrap_or(OperationState::Running);
        }
        drop(inner);
        self.wake.notify_waiters();
        self.wake.notify_one();
        Ok(())
    }

    async fn operations(&self) -> Result<Vec<Operation>, Error> {
        Ok(self.lock().operations.clone())
    }

    async fn operation(&self, reference: &str) -> Result<Operation, Error> {
        let found = self
            .lock()
            .operations
            .iter()
            .find(|one| one.id.as_str().starts_with(reference))
            .cloned();
        found
            .ok_or_else(|| Error::new(Code::NotFound, format!("there is no operation {reference}")))
    }

    async fn exec(
        &self,
        request: ExecRequest,
        input: Option<BoxStream<'static, Result<Vec<u8>, Error>>>,
    ) -> Result<BoxStream<'static, Result<ExecOutput, Error>>, Error> {
        let read = futures_util::future::OptionFuture::from(input.map(TryStreamExt::try_concat))
            .await
            .transpose()?;
        let mut inner = self.lock();
        inner.read = read;
        inner.calls.push(format!("exec {}", serde_json::to_string(&request).unwrap()));
        let told = inner.exec.clone();
        let ended = matches!(told.last(), Some(Ok(ExecOutput::Exit(_)) | Err(_)));
        let told = stream::iter(told);
        Ok(if ended { told.boxed() } else { told.chain(stream::pending()).boxed() })
    }

    async fn logs(
        &self,
        request: LogsRequest,
    ) -> Result<BoxStream<'static, Result<LogLine, Error>>, Error> {
        let mut inner = self.lock();
        inner.calls.push(format!("logs {}", serde_json::to_string(&request).unwrap()));
        let told = stream::iter(inner.logs.clone());
        Ok(if request.follow { told.chain(stream::pending()).boxed() } else { told.boxed() })
    }

    async fn shell(&self, request: ShellRequest) -> Result<Interactive, Error> {
        let mut inner = self.lock();
        inner.calls.push(format!("shell {}", serde_json::to_string(&request).unwrap()));
        Ok(Interactive { words: inner.shell.iter().map(Into::into).collect(), folder: None })
    }

    async fn extend(&self, request: ExtendRequest) -> Result<Extended, Error> {
        let mut record = self.find(&request.id)?;
        self.lock().calls.push(format!("extend {}", serde_json::to_string(&request).unwrap()));
        record.expires_at = request.to.or(record.expires_at);
        self.put(record.clone());
        Ok(Extended { sandbox: record, unwritten: self.lock().unwritten.clone() })
    }

    async fn label(&self, request: LabelRequest) -> Result<SandboxRecord, Error> {
        let mut record = self.find(&request.id)?;
        self.lock().calls.push(format!("label {}", serde_json::to_string(&request).unwrap()));
        record.labels.retain(|key, _| !request.remove.contains(key));
        record.labels.extend(request.set);
        self.put(record.clone());
        Ok(record)
    }

    async fn sweep(&self, request: SweepRequest) -> Result<SweepReport, Error> {
        self.lock().calls.push(format!("sweep alone={}", request.alone));
        if self.lock().recovers_for_ever {
            std::future::pending::<()>().await;
        }
        let swept = self.lock().swept.clone();
        Ok(swept.unwrap_or_else(|| SweepReport { at: now(), held_back: None, items: Vec::new() }))
    }

    async fn stale(&self, query: StaleQuery) -> Result<StaleReport, Error> {
        self.lock().calls.push(format!("stale {query:?}"));
        if self.lock().recovers_for_ever {
            std::future::pending::<()>().await;
        }
        let stale = self.lock().stale.clone();
        let none =
            || StaleReport { at: now(), hosts: Vec::new(), held_back: None, items: Vec::new() };
        Ok(stale.unwrap_or_else(none))
    }

    async fn plan_reap(&self, request: PlanRequest) -> Result<ReapPlan, Error> {
        self.lock().calls.push(format!("plan_reap {request:?}"));
        let plan = self.lock().plan.clone();
        plan.ok_or_else(|| Error::new(Code::Unsupported, "the fake has no plan"))
    }

    async fn adopt(&self, request: AdoptRequest) -> Result<Vec<Adopted>, Error> {
        self.lock().calls.push(format!("adopt {request:?}"));
        if self.lock().recovers_for_ever {
            std::future::pending::<()>().await;
        }
        Ok(self.lock().adopted.clone())
    }

    async fn import(&self, request: ImportRequest) -> Result<Vec<Adopted>, Error> {
        self.lock().calls.push(format!("import {request:?}"));
        Ok(self.lock().adopted.clone())
    }

    async fn recover(&self) -> Result<Vec<Recovered>, Error> {
        if self.lock().recovers_for_ever {
            std::future::pending::<()>().await;
        }
        Ok(self.lock().recovered.clone())
    }

    async fn observe(&self, id: &str) -> Result<SandboxRecord, Error> {
        let next = self.lock().observed.pop_front();
        match next {
            Some(seen) => seen,
            None => self.get(id).await,
        }
    }

    async fn refresh_services(&self, _: &str) -> Result<(), Error> {
        Ok(())
    }

    async fn profiles(&self) -> Result<Vec<ProfileView>, Error> {
        Ok(self.lock().profiles.clone())
    }

    async fn profile(&self, id: &str) -> Result<ProfileView, Error> {
        let found = self.lock().profiles.iter().find(|view| view.id.ends_with(id)).cloned();
        found.ok_or_else(|| Error::new(Code::NotFound, format!("no profile '{id}'")))
    }

    async fn extensions(&self) -> Result<Vec<ExtensionView>, Error> {
        Ok(self.lock().extensions.clone())
    }

    async fn extension(&self, id: &str) -> Result<ExtensionView, Error> {
        let found = self.lock().extensions.iter().find(|view| view.id.ends_with(id)).cloned();
        found.ok_or_else(|| Error::new(Code::NotFound, format!("no extension '{id}'")))
    }

    async fn hosts(&self) -> Result<Vec<HostView>, Error> {
        Ok(self.lock().hosts.clone())
    }

    async fn check_host(&self, name: &str) -> Result<HostView, Error> {
        let found = self.lock().hosts.iter().find(|view| view.name.same(name)).cloned();
        found.ok_or_else(|| Error::new(Code::NotFound, format!("no host '{name}'")))
    }

    async fn inspect_host(&self, name: &str) -> Result<HostView, Error> {
        self.check_host(name).await
    }

    async fn sample_host(&self, name: &str) -> Result<HostSample, Error> {
        Err(Error::new(Code::HostUnreachable, format!("{name} is not sampled here")))
    }

    async fn events(&self, query: EventQuery) -> Result<Vec<Event>, Error> {
        let mut inner = self.lock();
        inner.calls.push(format!("events {}", serde_json::to_string(&query).unwrap()));
        let after = query.after_seq.unwrap_or_default();
        Ok(inner.events.iter().filter(|event| event.seq > after).cloned().collect())
    }

    async fn flush_events(&self) -> Result<FlushReport, Error> {
        if self.lock().recovers_for_ever {
            std::future::pending::<()>().await;
        }
        Ok(self.lock().flushed.clone().unwrap_or_default())
    }

    async fn subscribe(&self) -> Result<BoxStream<'static, Update>, Error> {
        let first = stream::iter(self.lock().updates.clone());
        let live = self.live.subscribe();
        let live = stream::unfold(live, |mut live| async {
            live.recv().await.ok().map(|update| (update, live))
        });
        Ok(first.chain(live).boxed())
    }

    fn actor(&self) -> Actor {
        Actor::parse("adm:tester").unwrap()
    }

    async fn close(&self) {}
}

/// The moment at which every test takes place.
pub fn now() -> Time {
    "2026-03-14T12:00:00Z".parse().unwrap()
}

/// An id as a type.
pub fn id(text: &str) -> SandboxId {
    SandboxId::new(text)
}
