//! The client over the manager of this process.

use std::sync::Arc;

use async_trait::async_trait;
use futures_util::stream::BoxStream;

use crate::client::Client;
use crate::domain::event::{Actor, Event, Update};
use crate::domain::facts::HostView;
use crate::domain::lineage::{Lineage, SnapshotView};
use crate::domain::name::OperationId;
use crate::domain::operation::Operation;
use crate::domain::output::{ExecOutput, Interactive, LogLine};
use crate::domain::patch::Patch;
use crate::domain::request::{
    ApplyRequest, PatchRequest, PatchStatus, PruneItem, PruneRequest, RestoreRequest, RolloutItem,
    RolloutRequest, SleepRequest, SnapshotCopyRequest, SnapshotDeleteRequest, SnapshotDiff,
    SnapshotDiffRequest, SnapshotImportRequest, SnapshotQuery, SnapshotRequest, SnapshotStarted,
};
use crate::domain::request::{
    CreateRequest, Decision, DestroyRequest, EventQuery, ExecRequest, ExtensionView, LabelRequest,
    ListQuery, LogsRequest, ProfileView, Recovered, RecreateRequest, ShellRequest, Started,
};
use crate::domain::sandbox::SandboxRecord;
use crate::domain::snapshot::SnapshotRecord;
use crate::domain::verbatim::JsonText;
use crate::domain::{Code, Error};
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
    async fn create(&self, request: CreateRequest) -> Result<Started, Error> {
        Ok(self.manager.create(request).await?)
    }

    async fn plan_create(&self, request: CreateRequest) -> Result<Decision, Error> {
        Ok(self.manager.plan_create(&request).await?)
    }

    async fn list(&self, query: ListQuery) -> Result<Vec<Arc<SandboxRecord>>, Error> {
        Ok(self.manager.list(&query).await?)
    }

    async fn list_json(&self, query: ListQuery) -> Result<Vec<JsonText>, Error> {
        Ok(self.manager.list_json(&query).await?)
    }

    async fn get(&self, reference: &str) -> Result<SandboxRecord, Error> {
        Ok(self.manager.get(reference).await?)
    }

    async fn destroy(&self, request: DestroyRequest) -> Result<Started, Error> {
        Ok(self.manager.destroy(&request).await?)
    }

    async fn recreate(&self, request: RecreateRequest) -> Result<Started, Error> {
        Ok(self.manager.recreate(&request).await?)
    }

    async fn sleep(&self, request: SleepRequest) -> Result<Started, Error> {
        Ok(self.manager.sleep(&request).await?)
    }

    async fn wake(&self, request: SleepRequest) -> Result<Started, Error> {
        Ok(self.manager.wake(&request).await?)
    }

    async fn snapshot(&self, request: SnapshotRequest) -> Result<SnapshotStarted, Error> {
        Ok(self.manager.snapshot(&request).await?)
    }

    async fn restore(&self, request: RestoreRequest) -> Result<Started, Error> {
        Ok(self.manager.restore(&request).await?)
    }

    async fn snapshots(&self, query: SnapshotQuery) -> Result<Vec<Arc<SnapshotView>>, Error> {
        Ok(self.manager.snapshots(&query).await?)
    }

    async fn snapshot_view(&self, reference: &str) -> Result<SnapshotView, Error> {
        Ok(self.manager.snapshot_view(reference).await?)
    }

    async fn finish_snapshot(&self, operation: &OperationId) -> Result<SnapshotRecord, Error> {
        Ok(self.manager.finish_snapshot(operation).await?)
    }

    async fn verify_snapshot(&self, id: &str) -> Result<SnapshotStarted, Error> {
        Ok(self.manager.verify_snapshot(id).await?)
    }

    async fn delete_snapshot(
        &self,
        request: SnapshotDeleteRequest,
    ) -> Result<SnapshotStarted, Error> {
        Ok(self.manager.delete_snapshot(&request).await?)
    }

    async fn copy_snapshot(&self, request: SnapshotCopyRequest) -> Result<SnapshotStarted, Error> {
        Ok(self.manager.copy_snapshot(&request).await?)
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
    ) -> Result<SnapshotStarted, Error> {
        Ok(self.manager.import_snapshot(&request, source).await?)
    }

    async fn diff_snapshot(&self, request: SnapshotDiffRequest) -> Result<SnapshotDiff, Error> {
        Ok(self.manager.diff_snapshot(&request).await?)
    }

    async fn prune_snapshots(&self, request: PruneRequest) -> Result<Vec<PruneItem>, Error> {
        Ok(self.manager.prune_snapshots(&request).await?)
    }

    async fn add_patch(&self, request: PatchRequest) -> Result<Patch, Error> {
        Ok(self.manager.add_patch(&request).await?)
    }

    async fn remove_patch(&self, snapshot: &str, patch: &str) -> Result<Patch, Error> {
        Ok(self.manager.remove_patch(snapshot, patch).await?)
    }

    async fn patch_status(&self, snapshot: &str) -> Result<Vec<PatchStatus>, Error> {
        Ok(self.manager.patch_status(snapshot).await?)
    }

    async fn apply_patches(&self, request: ApplyRequest) -> Result<Started, Error> {
        Ok(self.manager.apply_patches(&request).await?)
    }

    async fn roll_out(&self, request: RolloutRequest) -> Result<Vec<RolloutItem>, Error> {
        Ok(self.manager.roll_out(&request).await?)
    }

    async fn lineage(&self, id: &str) -> Result<Lineage, Error> {
        Ok(self.manager.lineage(id).await?)
    }

    async fn finish(&self, operation: &OperationId) -> Result<SandboxRecord, Error> {
        let (operation, record) = self.manager.finish(operation).await?;
        if let Some(error) = operation.error {
            let mut problem = *error;
            if let Some(record) = &record {
                if !problem.details.is_object() {
                    problem.details = serde_json::json!({});
                }
                problem.details["id"] = record.id.as_str().into();
                problem.details["state"] = record.state.as_str().into();
                if let Some(failure) = &record.failure {
                    problem.details["step"] = failure.step.as_str().into();
                }
            }
            return Err(problem);
        }
        record.ok_or_else(|| Error::new(Code::Internal, "the operation has no sandbox"))
    }

    async fn cancel(&self, operation: &OperationId) -> Result<(), Error> {
        Ok(self.manager.cancel(operation).await?)
    }

    async fn operations(&self) -> Result<Vec<Operation>, Error> {
        Ok(self.manager.operations().await?)
    }

    async fn operation(&self, reference: &str) -> Result<Operation, Error> {
        Ok(self.manager.operation(reference).await?)
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
        Ok(self.manager.shell(&request).await?)
    }

    async fn label(&self, request: LabelRequest) -> Result<SandboxRecord, Error> {
        Ok(self.manager.label(request).await?)
    }

    async fn recover(&self) -> Result<Vec<Recovered>, Error> {
        Ok(self.manager.recover().await?)
    }

    async fn observe(&self, id: &str) -> Result<SandboxRecord, Error> {
        Ok(self.manager.observe(id).await?)
    }

    async fn refresh_services(&self, host: &str) -> Result<(), Error> {
        Ok(self.manager.refresh_services(host).await?)
    }

    async fn profiles(&self) -> Result<Vec<ProfileView>, Error> {
        Ok(self.manager.catalogue().profiles().iter().map(ProfileView::from).collect())
    }

    async fn profile(&self, id: &str) -> Result<ProfileView, Error> {
        Ok(ProfileView::from(self.manager.catalogue().profile(id)?))
    }

    async fn extensions(&self) -> Result<Vec<ExtensionView>, Error> {
        Ok(self.manager.catalogue().extensions().iter().map(ExtensionView::from).collect())
    }

    async fn extension(&self, id: &str) -> Result<ExtensionView, Error> {
        Ok(ExtensionView::from(self.manager.catalogue().extension(id)?))
    }

    async fn hosts(&self) -> Result<Vec<HostView>, Error> {
        Ok(self.manager.hosts().await?)
    }

    async fn check_host(&self, name: &str) -> Result<HostView, Error> {
        Ok(self.manager.check_host(name).await?)
    }

    async fn deep_check(&self, name: &str) -> Result<OperationId, Error> {
        Ok(self.manager.deep_check(name).await?)
    }

    async fn finish_deep_check(&self, operation: &OperationId) -> Result<HostView, Error> {
        Ok(self.manager.finish_deep_check(operation).await?)
    }

    async fn events(&self, query: EventQuery) -> Result<Vec<Event>, Error> {
        Ok(self.manager.events(&query).await?)
    }

    async fn subscribe(&self) -> Result<BoxStream<'static, Update>, Error> {
        Ok(self.manager.subscribe().await?)
    }

    fn actor(&self) -> Actor {
        self.manager.actor()
    }

    async fn close(&self) {
        self.manager.close().await;
    }
}
