//! The client over the manager of this process.

use std::sync::Arc;

use async_trait::async_trait;
use futures_util::stream::BoxStream;

use crate::client::{Client, Record, Request, Started};
use crate::domain::Error;
use crate::domain::actor::Actor;
use crate::domain::adoption::{AdoptRequest, Adopted, ImportRequest};
use crate::domain::credit::{Credits, GrantRequest, HistoryEntry};
use crate::domain::event::Event;
use crate::domain::host_view::HostView;
use crate::domain::hub::{FlushReport, HubBacklog};
use crate::domain::lineage::{Lineage, SnapshotView};
use crate::domain::name::OperationId;
use crate::domain::operation::Operation;
use crate::domain::output::{ExecOutput, Interactive, LogLine};
use crate::domain::patch::Patch;
use crate::domain::request::{
    CreateRequest, Decision, EventQuery, ExecRequest, ExtendRequest, Extended, ExtensionView,
    LabelRequest, ListQuery, LogsRequest, PatchRequest, PatchStatus, ProfileView, PruneItem,
    PruneRequest, Recovered, RolloutItem, RolloutRequest, ShellRequest, SnapshotDiff,
    SnapshotDiffRequest, SnapshotImportRequest, SnapshotQuery,
};
use crate::domain::sandbox::SandboxRecord;
use crate::domain::stale::{PlanRequest, ReapPlan, StaleQuery, StaleReport};
use crate::domain::sweep::{SweepReport, SweepRequest};
use crate::domain::telemetry::HostSample;
use crate::domain::update::Update;
use crate::manager::SandboxManager;

/// Every verb, done by this process.
pub struct LocalClient {
    manager: SandboxManager,
}

impl LocalClient {
    /// Over this manager.
    pub fn new(manager: SandboxManager) -> Self {
        Self { manager }
    }
}

#[async_trait]
impl Client for LocalClient {
    async fn start(&self, request: Request) -> Result<Started, Error> {
        let manager = &self.manager;
        Ok(match request {
            Request::Create(request) => manager.create(*request).await?.into(),
            Request::Destroy(request) => manager.destroy(&request).await?.into(),
            Request::Recreate(request) => manager.recreate(&request).await?.into(),
            Request::Sleep(request) => manager.sleep(&request).await?.into(),
            Request::Wake(request) => manager.wake(&request).await?.into(),
            Request::ApplyPatches(request) => manager.apply_patches(&request).await?.into(),
            Request::Snapshot(request) => manager.snapshot(&request).await?.into(),
            Request::Restore(request) => manager.restore(&request).await?.into(),
            Request::VerifySnapshot(request) => manager.verify_snapshot(&request.id).await?.into(),
            Request::CopySnapshot(request) => manager.copy_snapshot(&request).await?.into(),
            Request::DeleteSnapshot(request) => manager.delete_snapshot(&request).await?.into(),
            Request::CheckHost(request) => manager.deep_check(&request.host).await?.into(),
            Request::Reap(request) => manager.reap(*request).await?.into(),
            Request::Undo(request) => manager.undo(&request).await?.into(),
        })
    }

    async fn wait(&self, operation: &OperationId) -> Result<Record, Error> {
        self.manager.wait(operation).await
    }

    async fn plan_create(&self, request: CreateRequest) -> Result<Decision, Error> {
        self.manager.plan_create(&request).await
    }

    async fn list(&self, query: ListQuery) -> Result<Vec<Arc<SandboxRecord>>, Error> {
        self.manager.list(&query).await
    }

    async fn get(&self, reference: &str) -> Result<SandboxRecord, Error> {
        self.manager.get(reference).await
    }

    async fn snapshots(&self, query: SnapshotQuery) -> Result<Vec<Arc<SnapshotView>>, Error> {
        self.manager.snapshots(&query).await
    }

    async fn snapshot_view(&self, reference: &str) -> Result<SnapshotView, Error> {
        self.manager.snapshot_view(reference).await
    }

    async fn export_snapshot(
        &self,
        id: &str,
    ) -> Result<BoxStream<'static, Result<Vec<u8>, Error>>, Error> {
        self.manager.export_snapshot(id).await
    }

    async fn import_snapshot(
        &self,
        request: SnapshotImportRequest,
        source: BoxStream<'static, Result<Vec<u8>, Error>>,
    ) -> Result<Started, Error> {
        Ok(self.manager.import_snapshot(&request, source).await?.into())
    }

    async fn diff_snapshot(&self, request: SnapshotDiffRequest) -> Result<SnapshotDiff, Error> {
        self.manager.diff_snapshot(&request).await
    }

    async fn prune_snapshots(&self, request: PruneRequest) -> Result<Vec<PruneItem>, Error> {
        self.manager.prune_snapshots(&request).await
    }

    async fn add_patch(&self, request: PatchRequest) -> Result<Patch, Error> {
        self.manager.add_patch(&request).await
    }

    async fn remove_patch(&self, snapshot: &str, patch: &str) -> Result<Patch, Error> {
        self.manager.remove_patch(snapshot, patch).await
    }

    async fn patch_status(&self, snapshot: &str) -> Result<Vec<PatchStatus>, Error> {
        self.manager.patch_status(snapshot).await
    }

    async fn roll_out(&self, request: RolloutRequest) -> Result<Vec<RolloutItem>, Error> {
        self.manager.roll_out(&request).await
    }

    async fn lineage(&self, id: &str) -> Result<Lineage, Error> {
        self.manager.lineage(id).await
    }

    async fn cancel(&self, operation: &OperationId) -> Result<(), Error> {
        self.manager.cancel(operation).await
    }

    async fn operations(&self) -> Result<Vec<Operation>, Error> {
        self.manager.operations().await
    }

    async fn operation(&self, reference: &str) -> Result<Operation, Error> {
        self.manager.operation(reference).await
    }

    async fn exec(
        &self,
        request: ExecRequest,
        input: Option<BoxStream<'static, Result<Vec<u8>, Error>>>,
    ) -> Result<BoxStream<'static, Result<ExecOutput, Error>>, Error> {
        self.manager.exec(request, input).await
    }

    async fn logs(
        &self,
        request: LogsRequest,
    ) -> Result<BoxStream<'static, Result<LogLine, Error>>, Error> {
        self.manager.logs(request).await
    }

    async fn shell(&self, request: ShellRequest) -> Result<Interactive, Error> {
        self.manager.shell(&request).await
    }

    async fn extend(&self, request: ExtendRequest) -> Result<Extended, Error> {
        self.manager.extend(&request).await
    }

    async fn label(&self, request: LabelRequest) -> Result<SandboxRecord, Error> {
        self.manager.label(request).await
    }

    async fn recover(&self) -> Result<Vec<Recovered>, Error> {
        self.manager.recover().await
    }

    async fn sweep(&self, request: SweepRequest) -> Result<SweepReport, Error> {
        self.manager.sweep(&request).await
    }

    async fn stale(&self, query: StaleQuery) -> Result<StaleReport, Error> {
        self.manager.stale(&query).await
    }

    async fn plan_reap(&self, request: PlanRequest) -> Result<ReapPlan, Error> {
        self.manager.plan_reap(&request).await
    }

    async fn adopt(&self, request: AdoptRequest) -> Result<Vec<Adopted>, Error> {
        Box::pin(self.manager.adopt(&request)).await
    }

    async fn import(&self, request: ImportRequest) -> Result<Vec<Adopted>, Error> {
        self.manager.import(&request).await
    }

    async fn observe(&self, id: &str) -> Result<SandboxRecord, Error> {
        self.manager.observe(id).await
    }

    async fn refresh_services(&self, host: &str) -> Result<(), Error> {
        self.manager.refresh_services(host).await
    }

    async fn profiles(&self) -> Result<Vec<ProfileView>, Error> {
        Ok(self.manager.catalogue().profiles().iter().map(ProfileView::from).collect())
    }

    async fn profile(&self, id: &str) -> Result<ProfileView, Error> {
        Ok(ProfileView::from(self.manager.catalogue().profile(id)?))
    }

    async fn extensions(&self) -> Result<Vec<ExtensionView>, Error> {
        Ok(self.manager.extensions())
    }

    async fn extension(&self, id: &str) -> Result<ExtensionView, Error> {
        self.manager.extension(id)
    }

    async fn hosts(&self) -> Result<Vec<HostView>, Error> {
        self.manager.hosts().await
    }

    async fn check_host(&self, name: &str) -> Result<HostView, Error> {
        self.manager.check_host(name).await
    }

    async fn inspect_host(&self, name: &str) -> Result<HostView, Error> {
        self.manager.inspect_host(name).await
    }

    async fn sample_host(&self, name: &str) -> Result<HostSample, Error> {
        self.manager.sample_host(name).await
    }

    async fn events(&self, query: EventQuery) -> Result<Vec<Event>, Error> {
        self.manager.events(&query).await
    }

    async fn credits(&self) -> Result<Credits, Error> {
        self.manager.credits().await
    }

    async fn credit_history(&self) -> Result<Vec<HistoryEntry>, Error> {
        self.manager.credit_history().await
    }

    async fn grant_credits(&self, request: GrantRequest) -> Result<Credits, Error> {
        self.manager.grant_credits(request).await
    }

    async fn hub_backlog(&self) -> Result<Option<HubBacklog>, Error> {
        self.manager.hub_backlog().await
    }

    async fn flush_events(&self) -> Result<FlushReport, Error> {
        self.manager.flush_events().await
    }

    async fn subscribe(&self) -> Result<BoxStream<'static, Update>, Error> {
        self.manager.subscribe().await
    }

    fn actor(&self) -> Actor {
        self.manager.actor()
    }

    async fn close(&self) {
        self.manager.close().await;
    }
}
