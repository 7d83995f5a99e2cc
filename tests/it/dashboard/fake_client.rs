//! A client without a manager: records in memory, operations that take their time, hosts that answer as told.
//!
//! The dashboard's tests and a developer's look at the screen run on it.

mod credits;
mod snapshots;
mod stale;

use std::collections::BTreeMap;
use std::future::Future;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use futures_util::StreamExt;
use futures_util::stream::BoxStream;
use tokio::sync::{broadcast, watch};

use sandboxer::client::{
    ApplyRequest, Client, CreateRequest, Credits, Decision, Error, EventQuery, ExecRequest,
    ExtendRequest, Extended, ExtensionView, GrantRequest, HistoryEntry, HubBacklog, LabelRequest,
    ListQuery, LogsRequest, PatchRequest, PatchStatus, ProfileView, PruneItem, PruneRequest,
    Record, Recovered, RecreateRequest, Request, RolloutItem, RolloutRequest, ShellRequest,
    SleepRequest, SnapshotDiff, SnapshotDiffRequest, SnapshotImportRequest, SnapshotQuery, Started,
    Update,
};
use sandboxer::domain::actor::{Actor, ActorType};
use sandboxer::domain::adoption::{AdoptRequest, Adopted, ImportRequest};
use sandboxer::domain::canary::CanaryTelemetry;
use sandboxer::domain::error::{Code, Kind};
use sandboxer::domain::event::Event;
use sandboxer::domain::extension::{Preview, Refusal};
use sandboxer::domain::facts::HostFacts;
use sandboxer::domain::host_view::{HostState, HostView};
use sandboxer::domain::lineage::{Lineage, SnapshotView};
use sandboxer::domain::name::{
    EventId, ExtensionId, HostName, OperationId, OwnerId, PatchId, PlanId, ProfileId, SandboxId,
    SnapshotId, check_name,
};
use sandboxer::domain::operation::{
    CancelOutcome, Operation, OperationKind, OperationState, Subject,
};
use sandboxer::domain::output::{ExecOutput, Interactive, LogLine, Source};
use sandboxer::domain::patch::Patch;
use sandboxer::domain::profile::{InputKind, InputSpec, Inputs, Profile, Seconds};
use sandboxer::domain::raw_json::RawJson;
use sandboxer::domain::request::Started as OnSandbox;
use sandboxer::domain::sandbox::{
    Endpoint, Failure, ProfileRef, Reachability, Reason, Route, Running, SandboxRecord, Service,
    State, Verdict,
};
use sandboxer::domain::snapshot::SnapshotRecord;
use sandboxer::domain::stale::{
    PlanRequest, PlanSource, ReapPlan, ReapReport, ReapStarted, StaleQuery, StaleReport,
};
use sandboxer::domain::sweep::{SweepReport, SweepRequest};
use sandboxer::domain::teardown::{Resource, TeardownLine, TeardownOutcome};
use sandboxer::domain::telemetry::HostSample;
use sandboxer::domain::update::Progress;
use sandboxer::domain::{EventKind, Time};

pub use credits::{ledger_entry, metered, metered_world};
pub use snapshots::{lineage_world, snapshot_of};
pub use stale::{done, stale_item, stale_world};

/// What the fake does.
#[derive(Debug, Clone)]
pub struct Scenario {
    pub records: Vec<SandboxRecord>,
    pub events: Vec<Event>,
    pub hosts: Vec<HostView>,
    pub profiles: Vec<ProfileView>,
    /// How long each step of an operation takes.
    pub pace: Duration,
    /// How long a host takes to answer.
    pub host_delay: Duration,
    /// Every list fails with this.
    pub list_error: Option<Error>,
    /// Every create fails with this.
    pub create_error: Option<Error>,
    /// Every create panics.
    pub create_panics: bool,
    /// Operations end with this error.
    pub operation_error: Option<Error>,
    /// What a log does.
    pub log: LogScript,
    /// What opens a shell.
    pub shell: Result<Interactive, Error>,
    /// What other processes do.
    pub operations: Vec<Operation>,
    /// Services cannot be asked for.
    pub services_error: Option<Error>,
    /// What each sweep answers; none: nothing was due.
    pub swept: Option<Result<SweepReport, Error>>,
    pub stale: Option<StaleReport>,
    pub plan: Option<ReapPlan>,
    pub plan_error: Option<Error>,
    /// What there is to restore.
    pub snapshots: Vec<SnapshotRecord>,
    /// What is on it.
    pub patches: Vec<Patch>,
    /// Every read of the snapshots fails with this.
    pub snapshots_error: Option<Error>,
    /// What every comparison answers.
    pub diff: Result<SnapshotDiff, Error>,
    /// Credits, and what became of them, oldest first.
    pub credits: Result<(Credits, Vec<HistoryEntry>), Error>,
    /// Every grant fails with this.
    pub grant_error: Option<Error>,
    /// Backlog of the State Hub.
    pub hub: Result<Option<HubBacklog>, Error>,
    /// What backends there are.
    pub extensions: Vec<ExtensionView>,
    pub clock: fn() -> Time,
}

/// What a log does.
#[derive(Debug, Clone)]
pub enum LogScript {
    /// Writes these lines, then nothing, until it is dropped.
    Open(Vec<LogLine>),
    /// Writes these lines and ends.
    Ended(Vec<LogLine>),
    /// Cannot be opened.
    Refused(Error),
    /// Writes these lines and breaks.
    Broken(Vec<LogLine>, Error),
    /// Writes this line for ever, as fast as it is taken.
    Flood(LogLine),
}

impl Default for Scenario {
    fn default() -> Self {
        Self {
            records: Vec::new(),
            events: Vec::new(),
            hosts: vec![host("local", HostState::Up, None)],
            profiles: profiles(),
            pace: Duration::from_millis(600),
            host_delay: Duration::from_millis(50),
            list_error: None,
            create_error: None,
            create_panics: false,
            operation_error: None,
            log: LogScript::Open(log_lines()),
            shell: Ok(Interactive { words: vec!["true".into()], folder: None }),
            operations: Vec::new(),
            services_error: None,
            swept: None,
            stale: None,
            plan: None,
            plan_error: None,
            snapshots: Vec::new(),
            patches: Vec::new(),
            snapshots_error: None,
            diff: Err(Error::new(
                Code::NotFound,
                "the sandbox it was taken of is gone, and it has no parent",
            )),
            credits: Ok((Credits::default(), Vec::new())),
            grant_error: None,
            hub: Ok(None),
            extensions: Vec::new(),
            clock: || Time::new(jiff::Timestamp::now()),
        }
    }
}

/// An operation: how it is cancelled, how it ended, on which sandbox or snapshot.
type Work = (watch::Sender<bool>, watch::Receiver<Option<Result<(), Error>>>, String);

struct Inner {
    records: BTreeMap<SandboxId, SandboxRecord>,
    events: Vec<Event>,
    snapshots: BTreeMap<SnapshotId, SnapshotRecord>,
    patches: Vec<Patch>,
    operations: BTreeMap<OperationId, Work>,
    next: u32,
    reap: ReapReport,
    credits: Result<(Credits, Vec<HistoryEntry>), Error>,
    hub: Result<Option<HubBacklog>, Error>,
}

/// The client. Clones work on the same world.
#[derive(Clone)]
pub struct FakeClient {
    pub scenario: Arc<Scenario>,
    inner: Arc<Mutex<Inner>>,
    updates: broadcast::Sender<Update>,
    /// Every verb that was asked and is more than a look, in order.
    pub asked: Arc<Mutex<Vec<String>>>,
    /// Logs that are open.
    pub open_logs: Arc<()>,
    /// Lines that logs handed out.
    pub log_lines: Arc<std::sync::atomic::AtomicU64>,
}

impl FakeClient {
    pub fn new(scenario: Scenario) -> Self {
        let inner = Inner {
            records: scenario
                .records
                .iter()
                .map(|record| (record.id.clone(), record.clone()))
                .collect(),
            events: scenario.events.clone(),
            snapshots: scenario
                .snapshots
                .iter()
                .map(|record| (record.id.clone(), record.clone()))
                .collect(),
            patches: scenario.patches.clone(),
            operations: BTreeMap::new(),
            next: 1,
            reap: ReapReport { plan: PlanId::new(""), items: Vec::new() },
            credits: scenario.credits.clone(),
            hub: scenario.hub.clone(),
        };
        Self {
            scenario: Arc::new(scenario),
            inner: Arc::new(Mutex::new(inner)),
            updates: broadcast::channel(1024).0,
            asked: Arc::default(),
            open_logs: Arc::default(),
            log_lines: Arc::default(),
        }
    }

    fn now(&self) -> Time {
        (self.scenario.clock)()
    }

    /// Changes a record as another process would, and tells.
    pub fn change(&self, id: &SandboxId, kind: EventKind, change: impl FnOnce(&mut SandboxRecord)) {
        let now = self.now();
        let event = {
            let mut inner = self.inner.lock().unwrap();
            let Some(record) = inner.records.get_mut(id) else { return };
            record.revision += 1;
            record.observed_at = Some(now);
            let before = record.state.clone();
            change(record);
            if record.state != before {
                record.since = now;
            }
            let (revision, actor) = (record.revision, record.actor.clone());
            let message = record.message.clone();
            let seq = inner.events.last().map_or(1, |event| event.seq + 1);
            let event = Event {
                seq,
                sandbox_seq: Some(revision),
                id: EventId::new(format!("event-{seq}")),
                time: now,
                kind,
                sandbox_id: Some(id.clone()),
                actor,
                data: serde_json::json!({"message": message}),
            };
            inner.events.push(event.clone());
            event
        };
        let _ = self.updates.send(Update::Event(event));
    }

    /// Adds a record as another process would.
    pub fn insert(&self, record: SandboxRecord) {
        let id = record.id.clone();
        self.inner.lock().unwrap().records.insert(id.clone(), record);
        self.change(&id, EventKind::SandboxRequested, |_| {});
    }

    fn start(&self, kind: OperationKind, id: &SandboxId) -> OperationId {
        let id = id.clone();
        self.spawn(id.as_str().to_owned(), move |client, operation, cancelled| async move {
            match kind {
                OperationKind::Sleep | OperationKind::Wake | OperationKind::Patch => {
                    client.rest(kind, &id).await
                }
                _ => client.work(kind, &id, &operation, cancelled).await,
            }
        })
    }

    /// Runs an operation on something.
    fn spawn<F>(
        &self,
        on: String,
        work: impl FnOnce(Self, OperationId, watch::Receiver<bool>) -> F + Send + 'static,
    ) -> OperationId
    where
        F: Future<Output = Result<(), Error>> + Send,
    {
        let (cancel, cancelled) = watch::channel(false);
        let (end, ended) = watch::channel(None);
        let operation = {
            let mut inner = self.inner.lock().unwrap();
            inner.next += 1;
            let operation = OperationId::from_random(inner.next);
            inner.operations.insert(operation.clone(), (cancel, ended, on));
            operation
        };
        let (client, op) = (self.clone(), operation.clone());
        tokio::spawn(async move {
            let outcome = work(client, op, cancelled).await;
            let _ = end.send(Some(outcome));
        });
        operation
    }

    /// Waits for an operation's end; what it was on.
    async fn ended(&self, operation: &OperationId) -> Result<String, Error> {
        let (mut ended, on) = {
            let inner = self.inner.lock().unwrap();
            let (_, ended, on) = inner.operations.get(operation).expect("a known operation");
            (ended.clone(), on.clone())
        };
        let outcome =
            ended.wait_for(Option::is_some).await.expect("the work tells its end").clone();
        outcome.expect("it was waited for")?;
        Ok(on)
    }

    fn begin(
        &self,
        kind: OperationKind,
        id: &str,
        revision: Option<u64>,
        patches: Option<Vec<PatchId>>,
    ) -> Result<OnSandbox, Error> {
        let record = self.checked(id, revision)?;
        self.check_patches(&record, patches)?;
        self.asked.lock().unwrap().push(format!("{kind} {id} {revision:?}"));
        let operation = self.start(kind, &record.id);
        Ok(OnSandbox { operation: Some(operation), sandbox: record })
    }

    /// As the manager does.
    fn check_patches(
        &self,
        record: &SandboxRecord,
        shown: Option<Vec<PatchId>>,
    ) -> Result<(), Error> {
        let Some(shown) = shown else { return Ok(()) };
        let inner = self.inner.lock().unwrap();
        let there = inner
            .patches
            .iter()
            .filter(|patch| record.based_on_snapshot.as_ref() == Some(&patch.snapshot_id));
        if there.map(|patch| &patch.id).eq(&shown) {
            return Ok(());
        }
        let message =
            format!("the patches of sandbox {} changed since it was looked at", record.id);
        Err(Error::new(Code::Conflict, message).of_kind(Kind::Stale))
    }

    async fn work(
        &self,
        kind: OperationKind,
        id: &SandboxId,
        operation: &OperationId,
        cancelled: watch::Receiver<bool>,
    ) -> Result<(), Error> {
        let making = kind != OperationKind::Destroy;
        let stages: &[&str] = if making {
            &["prepare", "transfer", "render", "start", "wait"]
        } else {
            &["stop", "remove", "verify"]
        };
        let (kind_event, state) = if making {
            (EventKind::SandboxProvisioning, State::Provisioning)
        } else {
            (EventKind::SandboxDestroying, State::Destroying)
        };
        self.change(id, kind_event, |record| record.state = state);
        for (step, stage) in stages.iter().enumerate() {
            let parts: u64 = if *stage == "transfer" { 20 } else { 1 };
            for part in 0..parts {
                if *cancelled.borrow() {
                    self.change(id, EventKind::SandboxFailed, |record| {
                        record.state = State::Failed;
                        record.reason = Some(Reason::Cancelled);
                        record.message = Some("cancelled; nothing is left on the host".to_owned());
                    });
                    return Err(
                        CancelOutcome::Undone.error("cancelled; nothing is left on the host")
                    );
                }
                let moved = (*stage == "transfer").then_some(part * 1_600_000);
                let _ = self.updates.send(Update::Progress(Progress {
                    operation: operation.clone(),
                    kind: kind.clone(),
                    sandbox_id: Some(id.clone()),
                    snapshot_id: None,
                    stage: (*stage).to_owned(),
                    step: u32::try_from(step).unwrap() + 1,
                    steps: u32::try_from(stages.len()).unwrap(),
                    done: moved,
                    of: moved.map(|_| 32_000_000),
                    bytes: moved,
                    message: (part == 0).then(|| format!("{stage}: {id} goes on")),
                }));
                tokio::time::sleep(self.scenario.pace / u32::try_from(parts.min(6)).unwrap()).await;
            }
        }
        if let Some(problem) = &self.scenario.operation_error {
            self.change(id, EventKind::SandboxFailed, |record| {
                record.state = State::Failed;
                record.reason = Some(Reason::ProvisionFailed);
                record.message = Some(problem.message.clone());
                record.failure = Some(Failure {
                    step: "start".to_owned(),
                    exit_status: Some(1),
                    output: "service web: image not found\nexit status 1".to_owned(),
                });
            });
            return Err(problem.clone());
        }
        if making {
            let now = self.now();
            self.change(id, EventKind::SandboxReady, |record| {
                *record = ready(record.clone(), now);
            });
            self.apply_owed(id);
        } else {
            self.change(id, EventKind::SandboxDestroyed, |record| record.state = State::Destroyed);
        }
        Ok(())
    }

    fn checked(&self, id: &str, revision: Option<u64>) -> Result<SandboxRecord, Error> {
        let inner = self.inner.lock().unwrap();
        let record = inner.records.get(&SandboxId::new(id)).cloned();
        let record = record
            .ok_or_else(|| Error::new(Code::NotFound, format!("there is no sandbox {id}")))?;
        match revision {
            Some(seen) if seen != record.revision => {
                let state = &record.state;
                let message = format!("{id} changed since it was looked at; it is {state} now");
                Err(Error::new(Code::Conflict, message).of_kind(Kind::Stale))
            }
            _ => Ok(record),
        }
    }
}

impl FakeClient {
    async fn create(&self, request: CreateRequest) -> Result<OnSandbox, Error> {
        self.asked
            .lock()
            .unwrap()
            .push(format!("create {}", request.profile.as_deref().unwrap_or_default()));
        assert!(!self.scenario.create_panics, "the fake was told to panic");
        tokio::time::sleep(self.scenario.pace / 4).await;
        if let Some(problem) = &self.scenario.create_error {
            return Err(problem.clone());
        }
        if let Some(name) = &request.name {
            check_name(name)?;
            if self
                .inner
                .lock()
                .unwrap()
                .records
                .values()
                .any(|record| record.name.as_ref() == Some(name))
            {
                let mut problem = Error::new(Code::Conflict, format!("the name '{name}' is taken"));
                problem.details = serde_json::json!({"field": "name"});
                return Err(problem);
            }
        }
        let next = {
            let mut inner = self.inner.lock().unwrap();
            inner.next += 1;
            inner.next
        };
        let id = SandboxId::from_random(next.wrapping_mul(2_654_435_761));
        let profile = request.profile.unwrap_or_default();
        let mut record = record(
            id.as_str(),
            request.name.as_deref(),
            &profile,
            request.host.as_deref().unwrap_or("local"),
            State::Requested,
            self.now(),
        );
        record.labels = request.labels;
        record.inputs = request.inputs;
        self.insert(record.clone());
        let operation = self.start(OperationKind::Create, &id);
        Ok(OnSandbox { operation: Some(operation), sandbox: record })
    }
}

#[async_trait]
impl Client for FakeClient {
    async fn start(&self, request: Request) -> Result<Started, Error> {
        let cannot = |what: &dyn std::fmt::Debug| {
            Err(Error::new(Code::Unsupported, format!("{what:?}: the fake cannot")))
        };
        Ok(match request {
            Request::Create(request) => self.create(*request).await?.into(),
            Request::Destroy(request) => {
                self.begin(OperationKind::Destroy, &request.id, request.revision, None)?.into()
            }
            Request::Recreate(RecreateRequest { id, revision, patches, .. }) => {
                self.begin(OperationKind::Recreate, &id, revision, patches)?.into()
            }
            Request::Sleep(SleepRequest { id, revision, patches }) => {
                self.begin(OperationKind::Sleep, &id, revision, patches)?.into()
            }
            Request::Wake(SleepRequest { id, revision, patches }) => {
                self.begin(OperationKind::Wake, &id, revision, patches)?.into()
            }
            Request::ApplyPatches(ApplyRequest { id, revision, retry, patches }) => {
                self.asked.lock().unwrap().push(format!("apply {id} retry={retry}"));
                self.begin(OperationKind::Patch, &id, revision, patches)?.into()
            }
            Request::Snapshot(request) => self.take_snapshot(request)?.into(),
            Request::Restore(request) => self.begin_restore(request)?.into(),
            Request::DeleteSnapshot(request) => self.begin_deletion(request)?.into(),
            Request::VerifySnapshot(request) => return cannot(&request),
            Request::CopySnapshot(request) => return cannot(&request),
            Request::CheckHost(request) => return cannot(&request),
            Request::Reap(request) => self.begin_reap(&request)?.into(),
            Request::Undo(request) => self.begin_undo(&request)?.into(),
        })
    }

    async fn wait(&self, operation: &OperationId) -> Result<Record, Error> {
        let on = self.ended(operation).await?;
        if on == "reap" {
            return Ok(self.inner.lock().unwrap().reap.clone().into());
        }
        if on.starts_with("snap-") {
            self.last_snapshot(&on).map(Record::from)
        } else {
            self.get(&on).await.map(Record::from)
        }
    }

    async fn plan_create(&self, request: CreateRequest) -> Result<Decision, Error> {
        tokio::time::sleep(self.scenario.host_delay).await;
        let repo = request.inputs.get("repo").cloned().unwrap_or_default();
        if repo.starts_with("/nowhere") {
            let mut problem =
                Error::new(Code::InvalidInput, format!("input 'repo': {repo} is not there"));
            problem.details = serde_json::json!({"field": "repo"});
            return Err(problem);
        }
        let refused = repo.contains("bad");
        let verdicts: Vec<Verdict> = self
            .scenario
            .hosts
            .iter()
            .map(|host| Verdict {
                host: host.name.clone(),
                ok: host.state != HostState::Down,
                reason: host.message.clone().unwrap_or_else(|| "has room for 18 more".to_owned()),
            })
            .collect();
        let chosen = request
            .host
            .map(HostName::new)
            .or_else(|| verdicts.iter().find(|v| v.ok).map(|v| v.host.clone()));
        Ok(Decision {
            error: None,
            profile: request.profile.unwrap_or_default(),
            version: "1.0.0".to_owned(),
            extension: "ext.compose-ssh".to_owned(),
            inputs: request.inputs,
            route: chosen.map(|host| Route {
                host,
                reason: "first that qualifies".to_owned(),
                verdicts: verdicts.clone(),
                remarks: Vec::new(),
                candidates: Vec::new(),
            }),
            verdicts,
            candidates: Vec::new(),
            quote_usd: None,
            missing_usd: None,
            ttl_s: Some(14_400),
            preview: Preview {
                bytes: if repo.is_empty() { 0 } else { 12_400_000 },
                files: if repo.is_empty() { 0 } else { 812 },
                rewrites: Vec::new(),
                refusals: if refused {
                    vec![Refusal {
                        path: "services.web.privileged".to_owned(),
                        message: "privileged containers leave the sandbox".to_owned(),
                        allow: Some("privileged".to_owned()),
                    }]
                } else {
                    Vec::new()
                },
                services: if repo.is_empty() {
                    Vec::new()
                } else {
                    vec!["web".to_owned(), "db".to_owned()]
                },
            },
            ok: !refused,
        })
    }

    async fn list(&self, query: ListQuery) -> Result<Vec<Arc<SandboxRecord>>, Error> {
        if let Some(problem) = &self.scenario.list_error {
            return Err(problem.clone());
        }
        let inner = self.inner.lock().unwrap();
        let shown = inner.records.values().filter(|record| query.all || !record.state.is_over());
        Ok(shown.cloned().map(Arc::new).collect())
    }

    async fn get(&self, reference: &str) -> Result<SandboxRecord, Error> {
        self.checked(reference, None)
    }

    async fn credits(&self) -> Result<Credits, Error> {
        self.ledger().map(|(sums, _)| sums)
    }

    async fn credit_history(&self) -> Result<Vec<HistoryEntry>, Error> {
        self.ledger().map(|(_, history)| history)
    }

    async fn grant_credits(&self, request: GrantRequest) -> Result<Credits, Error> {
        self.grant(request)
    }

    async fn hub_backlog(&self) -> Result<Option<HubBacklog>, Error> {
        self.inner.lock().unwrap().hub.clone()
    }

    async fn snapshots(&self, _query: SnapshotQuery) -> Result<Vec<Arc<SnapshotView>>, Error> {
        self.all_snapshots()
    }

    async fn snapshot_view(&self, reference: &str) -> Result<SnapshotView, Error> {
        self.one_snapshot(reference)
    }

    async fn export_snapshot(
        &self,
        id: &str,
    ) -> Result<BoxStream<'static, Result<Vec<u8>, Error>>, Error> {
        Err(Error::new(Code::Unsupported, format!("export_snapshot {id:?}: the fake cannot")))
    }

    async fn import_snapshot(
        &self,
        request: SnapshotImportRequest,
        _source: BoxStream<'static, Result<Vec<u8>, Error>>,
    ) -> Result<Started, Error> {
        Err(Error::new(Code::Unsupported, format!("import_snapshot {request:?}: the fake cannot")))
    }

    async fn diff_snapshot(&self, request: SnapshotDiffRequest) -> Result<SnapshotDiff, Error> {
        self.asked.lock().unwrap().push(format!("diff {}", request.a));
        tokio::time::sleep(self.scenario.pace / 4).await;
        self.scenario.diff.clone()
    }

    async fn prune_snapshots(&self, request: PruneRequest) -> Result<Vec<PruneItem>, Error> {
        Err(Error::new(Code::Unsupported, format!("prune_snapshots {request:?}: the fake cannot")))
    }

    async fn add_patch(&self, request: PatchRequest) -> Result<Patch, Error> {
        self.attach(request)
    }

    async fn remove_patch(&self, snapshot: &str, patch: &str) -> Result<Patch, Error> {
        self.detach(snapshot, patch)
    }

    async fn patch_status(&self, snapshot: &str) -> Result<Vec<PatchStatus>, Error> {
        self.how_patches_stand(snapshot)
    }

    async fn roll_out(&self, request: RolloutRequest) -> Result<Vec<RolloutItem>, Error> {
        self.roll_out_to_all(request).await
    }

    async fn lineage(&self, id: &str) -> Result<Lineage, Error> {
        let _ = id;
        Ok(Lineage::default())
    }

    async fn cancel(&self, operation: &OperationId) -> Result<(), Error> {
        self.asked.lock().unwrap().push(format!("cancel {operation}"));
        let inner = self.inner.lock().unwrap();
        match inner.operations.get(operation) {
            Some((cancel, _, _)) => drop(cancel.send(true)),
            // Another process's: it hears of it some time.
            None => assert!(
                self.scenario.operations.iter().any(|known| known.id == *operation),
                "a known operation"
            ),
        }
        Ok(())
    }

    async fn operations(&self) -> Result<Vec<Operation>, Error> {
        Ok(self.scenario.operations.clone())
    }

    async fn operation(&self, reference: &str) -> Result<Operation, Error> {
        // A snapshot's: 3.14 s.
        let id = OperationId::new(reference);
        if self.inner.lock().unwrap().operations.contains_key(&id) {
            let began = Time::from_unix(1_795_788_202);
            let over = Time::new(began.timestamp() + jiff::SignedDuration::from_millis(3140));
            return Ok(Operation {
                finished_at: Some(over),
                ..ended(&id, OperationState::Succeeded, began)
            });
        }
        Err(Error::new(Code::NotFound, format!("there is no operation {reference}")))
    }

    async fn exec(
        &self,
        _: ExecRequest,
        _: Option<BoxStream<'static, Result<Vec<u8>, Error>>>,
    ) -> Result<BoxStream<'static, Result<ExecOutput, Error>>, Error> {
        Err(Error::new(Code::Unsupported, "the fake runs nothing"))
    }

    async fn logs(
        &self,
        request: LogsRequest,
    ) -> Result<BoxStream<'static, Result<LogLine, Error>>, Error> {
        let wanted = request.service.clone();
        self.asked.lock().unwrap().push(format!(
            "logs {} {}",
            request.id,
            wanted.as_deref().unwrap_or("all")
        ));
        let (open, count) = (Arc::clone(&self.open_logs), Arc::clone(&self.log_lines));
        let passes =
            move |line: &LogLine| wanted.as_ref().is_none_or(|service| line.service == *service);
        let some = |lines: &[LogLine]| {
            lines.iter().filter(|line| passes(line)).cloned().map(Ok).collect::<Vec<_>>()
        };
        let stream = match &self.scenario.log {
            LogScript::Refused(problem) => return Err(problem.clone()),
            LogScript::Ended(lines) => futures_util::stream::iter(some(lines)).boxed(),
            LogScript::Open(lines) => futures_util::stream::iter(some(lines))
                .chain(futures_util::stream::pending())
                .boxed(),
            LogScript::Broken(lines, problem) => {
                let end = futures_util::stream::iter([Err(problem.clone())]);
                futures_util::stream::iter(some(lines)).chain(end).boxed()
            }
            LogScript::Flood(line) => futures_util::stream::iter(std::iter::repeat_with({
                let line = line.clone();
                move || Ok(line.clone())
            }))
            .boxed(),
        };
        let counted = stream.inspect(move |_| {
            let _ = &open;
            count.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        });
        Ok(counted.boxed())
    }

    async fn shell(&self, request: ShellRequest) -> Result<Interactive, Error> {
        self.asked.lock().unwrap().push(format!("shell {} {:?}", request.id, request.service));
        self.scenario.shell.clone()
    }

    async fn extend(&self, request: ExtendRequest) -> Result<Extended, Error> {
        self.asked.lock().unwrap().push(format!("extend {} by {:?}", request.id, request.by_s));
        let record = self.checked(&request.id, None)?;
        self.change(&record.id, EventKind::SandboxExtended, |record| {
            let by = request.by_s.unwrap_or_default();
            record.expires_at = record.expires_at.map(|at| at.plus_seconds(by));
        });
        let sandbox = self.get(&request.id).await?;
        Ok(Extended { sandbox, unwritten: None })
    }

    async fn label(&self, request: LabelRequest) -> Result<SandboxRecord, Error> {
        self.asked
            .lock()
            .unwrap()
            .push(format!("label {} {:?} {:?}", request.id, request.set, request.remove));
        let record = self.checked(&request.id, request.revision)?;
        self.change(&record.id, EventKind::SandboxLabelled, |record| {
            record.labels.extend(request.set);
            record.labels.retain(|key, _| !request.remove.contains(key));
        });
        self.get(&request.id).await
    }

    async fn stale(&self, query: StaleQuery) -> Result<StaleReport, Error> {
        if !query.as_last_seen {
            self.asked.lock().unwrap().push("stale".to_owned());
        }
        let none = || StaleReport {
            at: self.now(),
            hosts: Vec::new(),
            held_back: None,
            items: Vec::new(),
        };
        Ok(self.scenario.stale.clone().unwrap_or_else(none))
    }

    async fn plan_reap(&self, request: PlanRequest) -> Result<ReapPlan, Error> {
        self.asked.lock().unwrap().push(format!("plan_reap {request:?}"));
        if let Some(error) = &self.scenario.plan_error {
            return Err(error.clone());
        }
        let now = self.now();
        let none = || ReapPlan {
            id: PlanId::from_random(1),
            at: now,
            valid_until: now.plus_seconds(3600),
            actor: operator(),
            hosts: Vec::new(),
            held_back: None,
            items: Vec::new(),
        };
        Ok(self.scenario.plan.clone().unwrap_or_else(none))
    }

    async fn adopt(&self, _: AdoptRequest) -> Result<Vec<Adopted>, Error> {
        Ok(Vec::new())
    }

    async fn import(&self, _: ImportRequest) -> Result<Vec<Adopted>, Error> {
        Ok(Vec::new())
    }

    async fn recover(&self) -> Result<Vec<Recovered>, Error> {
        Ok(Vec::new())
    }

    async fn sweep(&self, _: SweepRequest) -> Result<SweepReport, Error> {
        self.asked.lock().unwrap().push("sweep".to_owned());
        self.scenario.swept.clone().unwrap_or_else(|| {
            Ok(SweepReport { at: self.now(), held_back: None, items: Vec::new() })
        })
    }

    async fn observe(&self, id: &str) -> Result<SandboxRecord, Error> {
        self.get(id).await
    }

    async fn refresh_services(&self, host: &str) -> Result<(), Error> {
        self.asked.lock().unwrap().push(format!("services {host}"));
        tokio::time::sleep(self.scenario.host_delay).await;
        self.scenario.services_error.clone().map_or(Ok(()), Err)
    }

    async fn profiles(&self) -> Result<Vec<ProfileView>, Error> {
        Ok(self.scenario.profiles.clone())
    }

    async fn profile(&self, id: &str) -> Result<ProfileView, Error> {
        let found = self.scenario.profiles.iter().find(|view| view.id.ends_with(id)).cloned();
        found.ok_or_else(|| Error::new(Code::NotFound, format!("there is no profile {id}")))
    }

    async fn extensions(&self) -> Result<Vec<ExtensionView>, Error> {
        Ok(self.scenario.extensions.clone())
    }

    async fn extension(&self, id: &str) -> Result<ExtensionView, Error> {
        Err(Error::new(Code::NotFound, format!("there is no extension {id}")))
    }

    async fn hosts(&self) -> Result<Vec<HostView>, Error> {
        let unseen = |host: &HostView| HostView {
            state: if host.state == HostState::Forbidden {
                HostState::Forbidden
            } else {
                HostState::Unknown
            },
            latency_ms: None,
            checked_at: None,
            facts: None,
            message: None,
            ..host.clone()
        };
        Ok(self.scenario.hosts.iter().map(unseen).collect())
    }

    async fn check_host(&self, name: &str) -> Result<HostView, Error> {
        tokio::time::sleep(self.scenario.host_delay).await;
        let found = self.scenario.hosts.iter().find(|host| host.name.same(name)).cloned();
        let mut view =
            found.ok_or_else(|| Error::new(Code::NotFound, format!("there is no host {name}")))?;
        view.checked_at = Some(self.now());
        Ok(view)
    }

    async fn inspect_host(&self, name: &str) -> Result<HostView, Error> {
        self.check_host(name).await
    }

    async fn sample_host(&self, name: &str) -> Result<HostSample, Error> {
        tokio::time::sleep(self.scenario.host_delay).await;
        let found = self.scenario.hosts.iter().find(|host| host.name.same(name));
        let found =
            found.ok_or_else(|| Error::new(Code::NotFound, format!("there is no host {name}")))?;
        match (&found.state, &found.sample) {
            (HostState::Up | HostState::Slow, Some(sample)) => {
                Ok(HostSample { at: self.now(), ..sample.clone() })
            }
            _ => Err(Error::new(Code::HostUnreachable, found.message.clone().unwrap_or_default())),
        }
    }

    async fn events(&self, query: EventQuery) -> Result<Vec<Event>, Error> {
        let inner = self.inner.lock().unwrap();
        let wanted = |event: &&Event| {
            query.sandbox.as_ref().is_none_or(|id| event.sandbox_id.as_ref() == Some(id))
                && query.since.is_none_or(|since| event.time >= since)
        };
        let mut events: Vec<Event> = inner.events.iter().filter(wanted).cloned().collect();
        let newest = query.newest.unwrap_or(usize::MAX);
        events.drain(..events.len().saturating_sub(newest));
        Ok(events)
    }

    async fn subscribe(&self) -> Result<BoxStream<'static, Update>, Error> {
        let receiver = self.updates.subscribe();
        let stream = futures_util::stream::unfold(receiver, |mut receiver| async move {
            match receiver.recv().await {
                Ok(update) => Some((update, receiver)),
                Err(broadcast::error::RecvError::Lagged(_)) => Some((Update::Resync, receiver)),
                Err(broadcast::error::RecvError::Closed) => None,
            }
        });
        Ok(stream.boxed())
    }

    fn actor(&self) -> Actor {
        operator()
    }

    async fn close(&self) {}
}

/// A line of a log.
pub fn log_line(service: &str, source: Source, text: &str) -> LogLine {
    LogLine { service: service.to_owned(), source, bytes: text.into(), cut: false }
}

/// What a small stack writes.
pub fn log_lines() -> Vec<LogLine> {
    let mut lines = vec![
        log_line("db", Source::Stderr, "LOG:  database system is ready to accept connections"),
        log_line("web", Source::Stdout, "\u{1b}[32mlistening\u{1b}[0m on 0.0.0.0:80"),
    ];
    for number in 0..60 {
        lines.push(log_line(
            "web",
            Source::Stdout,
            &format!("10.0.0.{number} GET /items/{number} 200"),
        ));
        if number % 20 == 7 {
            lines.push(log_line(
                "web",
                Source::Stderr,
                &format!("Error: item {number} has no price"),
            ));
            lines.push(log_line("db", Source::Stdout, "日本語のログ\tcheckpoint complete\u{7}"));
        }
    }
    lines
}

pub fn operator() -> Actor {
    Actor { kind: ActorType::Adm, name: "kim".to_owned() }
}

/// A host as it would answer.
pub fn host(name: &str, state: HostState, latency_ms: Option<u64>) -> HostView {
    let down = state == HostState::Down;
    HostView {
        name: HostName::new(name),
        ssh: (name != "local").then(|| format!("ops@{name}")),
        state,
        latency_ms,
        checked_at: None,
        message: down.then(|| format!("ssh: connect to host {name} port 22: Connection timed out")),
        hint: down.then(|| "is the machine on, and is the name right?".to_owned()),
        sandboxes: 0,
        max_sandboxes: Some(30),
        labels: BTreeMap::new(),
        limits: None,
        facts: None,
        sample: None,
        deep: None,
    }
}

/// A record that was created ten minutes ago.
pub fn record(
    id: &str,
    name: Option<&str>,
    profile: &str,
    host: &str,
    state: State,
    now: Time,
) -> SandboxRecord {
    let profile = if profile.starts_with("profile.") {
        profile.to_owned()
    } else {
        format!("profile.{profile}")
    };
    SandboxRecord {
        id: SandboxId::new(id),
        name: name.map(str::to_owned),
        labels: BTreeMap::new(),
        profile: ProfileRef {
            id: ProfileId::new(profile),
            version: "1.0.0".to_owned(),
            hash: "0".repeat(64),
        },
        extension: ExtensionId::new("ext.compose-ssh"),
        host: HostName::new(host),
        host_identity: None,
        workdir: Some(format!("/home/ops/sandboxes/sbx-{id}")),
        state,
        reason: None,
        message: None,
        since: now,
        observed_at: Some(now),
        revision: 3,
        operation: None,
        inputs: BTreeMap::new(),
        handle: None,
        reachability: None,
        services: Vec::new(),
        created_at: now,
        ready_at: None,
        expires_at: None,
        max_expires_at: None,
        expiring_told: None,
        manifest_pending: false,
        ttl_s: Some(14_400),
        based_on_snapshot: None,
        applied_patches: Vec::new(),
        last_patch_sequence: 0,
        patch_state: sandboxer::domain::patch::PatchState::None,
        patch_error: None,
        patch_error_of: None,
        undo_of: None,
        quote_usd: None,
        hold_usd: None,
        cost_usd: None,
        meter: None,
        route: None,
        attempts: Vec::new(),
        rewrites: Vec::new(),
        failure: None,
        teardown: Vec::new(),
        leftovers: Vec::new(),
        not_preserved: BTreeMap::new(),
        telemetry: None,
        certificate: None,
        actor: operator(),
        owner: OwnerId::new("owner-1"),
        idempotency_key: None,
        request_hash: None,
        kept_failed: false,
        adopted_at: None,
        imported: None,
        pending: Vec::new(),
    }
}

/// The record, ready, with everything a ready one has.
pub fn ready(mut record: SandboxRecord, now: Time) -> SandboxRecord {
    let (id, host) = (record.id.clone(), record.host.clone());
    let local = host.is_local();
    let workdir = format!("/home/ops/sandboxes/sbx-{id}/workspace");
    record.state = State::Ready;
    record.reason = None;
    record.message = None;
    record.ready_at = Some(now);
    record.expires_at = Some(now.plus_seconds(14_400));
    record.max_expires_at = Some(now.plus_seconds(86_400));
    let ssh = if local {
        format!("cd {workdir}")
    } else {
        format!("ssh -t ops@{host} 'cd {workdir} && exec $SHELL -l'")
    };
    record.reachability = Some(Reachability {
        host: host.clone(),
        ssh,
        workdir,
        endpoints: vec![Endpoint {
            service: "web".to_owned(),
            container_port: 80,
            host_port: 32_768,
            protocol: "tcp".to_owned(),
            url: "http://127.0.0.1:32768".to_owned(),
            tunnel: (!local).then(|| format!("ssh -N -L 32768:127.0.0.1:32768 ops@{host}")),
        }],
        attachments: Vec::new(),
    });
    record.services = vec![service("web", "running", None), service("db", "running", None)];
    record
}

pub fn service(name: &str, state: &str, exit_code: Option<i32>) -> Service {
    Service {
        name: name.to_owned(),
        state: state.to_owned(),
        exit_code,
        restarts: Some(0),
        health: None,
    }
}

/// A failed record with its evidence.
pub fn failed(mut record: SandboxRecord) -> SandboxRecord {
    record.state = State::Failed;
    record.reason = Some(Reason::ProvisionFailed);
    record.message = Some("the compose runtime could not start 'web'".to_owned());
    record.failure = Some(Failure {
        step: "start".to_owned(),
        exit_status: Some(1),
        output: "Creating sbx network\nweb: Error: image localhost/app:1 not known\nexit status 1"
            .to_owned(),
    });
    record.teardown = vec![
        TeardownLine {
            resource: Resource {
                kind: "network".to_owned(),
                id: format!("sbx-{}_default", record.id),
            },
            outcome: TeardownOutcome::Removed,
            reason: None,
        },
        TeardownLine {
            resource: Resource {
                kind: "directory".to_owned(),
                id: format!("/home/ops/sandboxes/sbx-{}", record.id),
            },
            outcome: TeardownOutcome::Failed,
            reason: Some("rm: cannot remove 'data': Permission denied".to_owned()),
        },
    ];
    record.leftovers = vec![Resource {
        kind: "directory".to_owned(),
        id: format!("/home/ops/sandboxes/sbx-{}", record.id),
    }];
    record
}

/// An operation that another process runs on a record.
pub fn held(mut record: SandboxRecord, kind: OperationKind, now: Time) -> SandboxRecord {
    record.operation = Some(Running {
        id: OperationId::from_random(7),
        kind,
        started_at: now.minus_seconds(40),
        pid: 4711,
        host: "desk-2".to_owned(),
        actor: Actor { kind: ActorType::Atm, name: "nightly".to_owned() },
        cancel_requested: false,
    });
    record
}

/// An ended operation.
pub fn ended(id: &OperationId, state: OperationState, now: Time) -> Operation {
    Operation {
        id: id.clone(),
        kind: OperationKind::Destroy,
        subject: Subject::Host,
        name: None,
        state,
        stage: None,
        done: None,
        of: None,
        bytes: None,
        started_at: now,
        finished_at: Some(now),
        pid: 1,
        host: "here".to_owned(),
        actor: operator(),
        cancel_requested: false,
        cancel_outcome: None,
        error: None,
    }
}

/// A sample of a host on which nothing happens.
pub fn quiet_sample(now: Time) -> HostSample {
    HostSample {
        at: now,
        latency_ms: None,
        cpus: 8,
        load1: 0.0,
        mem_total_bytes: 0,
        mem_available_bytes: 0,
        swap_total_bytes: 0,
        swap_free_bytes: 0,
        disk: None,
        uptime_s: None,
        clock_offset_s: None,
        sandboxes: BTreeMap::new(),
        findings: Vec::new(),
    }
}

/// What a host says of itself.
pub fn facts(hostname: &str, now: Time) -> HostFacts {
    HostFacts {
        at: now,
        machine_id: "0123456789abcdef".to_owned(),
        hostname: hostname.to_owned(),
        kernel: "Linux 6.1.0".to_owned(),
        os: Some("Debian GNU/Linux 12 (bookworm)".to_owned()),
        user: "ops".to_owned(),
        uid: 1000,
        cpus: 8,
        load1: 0.42,
        mem_total_bytes: 32_000_000_000,
        mem_available_bytes: 21_000_000_000,
        disk: None,
        workspace_root: "/home/ops/sandboxes".to_owned(),
        clock_offset_s: Some(0.1),
        tools: BTreeMap::from([
            ("rsync".to_owned(), "/usr/bin/rsync".to_owned()),
            ("tar".to_owned(), "/bin/tar".to_owned()),
        ]),
        boot_id: None,
        engines: Vec::new(),
        runtimes: Vec::new(),
        findings: Vec::new(),
        inventory: None,
    }
}

/// Profiles: three that work, one of a later version, one broken.
pub fn profiles() -> Vec<ProfileView> {
    let spec = |required, kind, default: Option<&str>, help: &str, choices: &[&str]| InputSpec {
        required,
        kind,
        default: default.map(str::to_owned),
        help: Some(help.to_owned()),
        choices: choices.iter().map(|choice| (*choice).to_owned()).collect(),
    };
    let compose = Inputs::new([
        ("repo".to_owned(), spec(true, InputKind::Directory, None, "Repository to deploy", &[])),
        (
            "compose_file".to_owned(),
            spec(
                false,
                InputKind::String,
                Some("docker-compose.yml"),
                "Relative to the repository",
                &[],
            ),
        ),
        (
            "seed".to_owned(),
            spec(
                false,
                InputKind::Choice,
                Some("small"),
                "How much test data",
                &["none", "small", "large"],
            ),
        ),
    ]);
    vec![
        view(
            "profile.sandbox-canary",
            "An isolated workspace and the host's inventory",
            "ext.compose-ssh",
            true,
            Inputs::default(),
        ),
        view(
            "profile.compose-e2e",
            "Run a repository's compose stack in isolation",
            "ext.compose-ssh",
            true,
            compose.clone(),
        ),
        view(
            "profile.compose-checkpoint",
            "A compose stack with snapshots and undo",
            "ext.compose-ssh",
            true,
            compose,
        ),
        view("profile.saas-stub", "A metered stand-in", "ext.saas-stub", false, Inputs::default()),
        ProfileView {
            version: None,
            summary: None,
            extension: None,
            source: "operator".to_owned(),
            path: Some("~/.config/sandboxer/profiles/mine.yaml".to_owned()),
            error: Some(
                "mine.yaml line 4 column 3: unknown key 'tll', did you mean 'ttl'?".to_owned(),
            ),
            hash: None,
            profile: None,
            ..view("profile.mine", "", "", false, Inputs::default())
        },
    ]
}

fn view(id: &str, summary: &str, extension: &str, available: bool, inputs: Inputs) -> ProfileView {
    let profile = Profile {
        id: ProfileId::new(id),
        version: semver::Version::new(1, 0, 0),
        summary: summary.to_owned(),
        extension: ExtensionId::new(extension),
        placement: sandboxer::domain::profile::Placement::default(),
        ttl: Some(Seconds::hours(4)),
        max_ttl: Some(Seconds::hours(24)),
        ready_timeout: Seconds(180),
        settle: Seconds(2),
        stop_grace: Seconds(2),
        undo: false,
        inputs,
        sync: sandboxer::domain::profile::Sync::default(),
        compose: sandboxer::domain::profile::Compose::default(),
        snapshot: sandboxer::domain::profile::SnapshotPolicy::default(),
        patches: sandboxer::domain::profile::PatchLimits::default(),
        routing: sandboxer::domain::profile::Routing::default(),
        config: serde_json::json!({}),
        written: None,
    };
    ProfileView {
        id: id.to_owned(),
        version: Some("1.0.0".to_owned()),
        summary: Some(summary.to_owned()),
        extension: Some(extension.to_owned()),
        available,
        unavailable: (!available).then(|| format!("this version cannot create with {extension}")),
        source: "builtin".to_owned(),
        path: None,
        overrides_builtin: false,
        error: None,
        hash: Some("0".repeat(64)),
        profile: Some(profile),
    }
}

/// A small world to look at: ready, degraded, failed, on a host that is down, held by another process.
pub fn world(now: Time) -> Scenario {
    let made = |id, name, profile, host, ago: u64| {
        let mut record = record(id, name, profile, host, State::Ready, now);
        record.created_at = now.minus_seconds(ago);
        record.since = now.minus_seconds(ago.saturating_sub(8));
        record
    };
    let mut core = ready(
        made("a1b2c3d4", Some("e2e-core"), "compose-e2e", "coulombcore", 7380),
        now.minus_seconds(7380),
    );
    core.labels.insert("team".to_owned(), "core".to_owned());
    let mut sick = ready(
        made("5d20aa17", Some("checkout"), "compose-e2e", "coulombcore", 3000),
        now.minus_seconds(3000),
    );
    sick.services[1] = service("db", "exited", Some(137));
    let mut far = ready(
        made("9c0d11ee", Some("hs-build"), "vm-haskell-build", "vm-haskell", 90_000),
        now.minus_seconds(9000),
    );
    far.observed_at = Some(now.minus_seconds(140));
    let mut kept = ready(
        made("0f00ba12", Some("reference"), "compose-checkpoint", "sandboxer01", 400_000),
        now.minus_seconds(400),
    );
    kept.labels.insert("protect".to_owned(), "true".to_owned());
    kept.expires_at = None;
    let broken = failed(made("0b1c2d3e", Some("nightly"), "compose-e2e", "coulombcore", 2460));
    let busy = held(
        ready(made("77fe01aa", None, "compose-e2e", "sandboxer01", 300), now),
        OperationKind::Recreate,
        now,
    );
    let soon = {
        let mut record = ready(
            made("c0ffee00", Some("demo"), "sandbox-canary", "local", 14_200),
            now.minus_seconds(14_200),
        );
        record.telemetry = Some(
            RawJson::new(&CanaryTelemetry::from(&facts("desk-1", now.minus_seconds(14_200))))
                .unwrap(),
        );
        record.services.clear();
        record
    };
    Scenario {
        records: vec![core, sick, far, kept, broken, busy, soon],
        hosts: vec![
            host("coulombcore", HostState::Up, Some(12)),
            host("sandboxer01", HostState::Up, Some(31)),
            host("local", HostState::Up, None),
            host("vm-haskell", HostState::Down, None),
        ],
        ..Scenario::default()
    }
}

/// Many records on a few hosts.
pub fn many(count: u32, now: Time) -> Vec<SandboxRecord> {
    (0..count)
        .map(|number| {
            let id = format!("{:08x}", number.wrapping_mul(2_654_435_761));
            let name = (number % 3 == 0).then(|| format!("env-{number}"));
            let host = ["coulombcore", "sandboxer01", "local"][number as usize % 3];
            let record = record(&id, name.as_deref(), "compose-e2e", host, State::Ready, now);
            let ago = 120 + 37 * u64::from(number);
            let mut record = ready(record, now.minus_seconds(ago));
            record.created_at = now.minus_seconds(ago);
            record
        })
        .collect()
}
