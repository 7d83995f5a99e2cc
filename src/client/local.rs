//! The client over the manager of this process.

use std::sync::Arc;

use async_trait::async_trait;
use futures_util::stream::{BoxStream, StreamExt};

use crate::client::{Client, Problem};
use crate::domain::Code;
use crate::domain::event::{Actor, Event, Update};
use crate::domain::facts::HostView;
use crate::domain::name::OperationId;
use crate::domain::operation::Operation;
use crate::domain::output::{ExecOutput, Interactive, LogLine};
use crate::domain::request::{
    CreateRequest, Decision, DestroyRequest, EventQuery, ExecRequest, ExtensionView, LabelRequest, ListQuery,
    LogsRequest, ProfileView, Recovered, RecreateRequest, ShellRequest, Started,
};
use crate::domain::sandbox::SandboxRecord;
use crate::domain::verbatim::JsonText;
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
    async fn create(&self, request: CreateRequest) -> Result<Started, Problem> {
        Ok(self.manager.create(request).await?)
    }

    async fn plan_create(&self, request: CreateRequest) -> Result<Decision, Problem> {
        Ok(self.manager.plan_create(&request).await?)
    }

    async fn list(&self, query: ListQuery) -> Result<Vec<Arc<SandboxRecord>>, Problem> {
        Ok(self.manager.list(&query).await?)
    }

    async fn list_json(&self, query: ListQuery) -> Result<Vec<JsonText>, Problem> {
        Ok(self.manager.list_json(&query).await?)
    }

    async fn get(&self, reference: &str) -> Result<SandboxRecord, Problem> {
        Ok(self.manager.get(reference).await?)
    }

    async fn destroy(&self, request: DestroyRequest) -> Result<Started, Problem> {
        Ok(self.manager.destroy(&request).await?)
    }

    async fn recreate(&self, request: RecreateRequest) -> Result<Started, Problem> {
        Ok(self.manager.recreate(&request).await?)
    }

    async fn finish(&self, operation: &OperationId) -> Result<SandboxRecord, Problem> {
        let (operation, record) = self.manager.finish(operation).await?;
        if let Some(error) = operation.error {
            let mut problem = Problem::from(*error);
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
        record.ok_or_else(|| Problem::new(Code::Internal, "the operation has no sandbox"))
    }

    async fn cancel(&self, operation: &OperationId) -> Result<(), Problem> {
        Ok(self.manager.cancel(operation).await?)
    }

    async fn operations(&self) -> Result<Vec<Operation>, Problem> {
        Ok(self.manager.operations().await?)
    }

    async fn operation(&self, reference: &str) -> Result<Operation, Problem> {
        Ok(self.manager.operation(reference).await?)
    }

    async fn exec(&self, request: ExecRequest) -> Result<BoxStream<'static, Result<ExecOutput, Problem>>, Problem> {
        Ok(self.manager.exec(request).await?.map(|piece| piece.map_err(Problem::from)).boxed())
    }

    async fn logs(&self, request: LogsRequest) -> Result<BoxStream<'static, Result<LogLine, Problem>>, Problem> {
        Ok(self.manager.logs(request).await?.map(|line| line.map_err(Problem::from)).boxed())
    }

    async fn shell(&self, request: ShellRequest) -> Result<Interactive, Problem> {
        Ok(self.manager.shell(&request).await?)
    }

    async fn label(&self, request: LabelRequest) -> Result<SandboxRecord, Problem> {
        Ok(self.manager.label(request).await?)
    }

    async fn recover(&self) -> Result<Vec<Recovered>, Problem> {
        Ok(self.manager.recover().await?)
    }

    async fn refresh_services(&self, host: &str) -> Result<(), Problem> {
        Ok(self.manager.refresh_services(host).await?)
    }

    async fn profiles(&self) -> Result<Vec<ProfileView>, Problem> {
        Ok(self.manager.catalogue().profiles().iter().map(ProfileView::from).collect())
    }

    async fn profile(&self, id: &str) -> Result<ProfileView, Problem> {
        Ok(ProfileView::from(self.manager.catalogue().profile(id)?))
    }

    async fn extensions(&self) -> Result<Vec<ExtensionView>, Problem> {
        Ok(self.manager.catalogue().extensions().iter().map(ExtensionView::from).collect())
    }

    async fn extension(&self, id: &str) -> Result<ExtensionView, Problem> {
        Ok(ExtensionView::from(self.manager.catalogue().extension(id)?))
    }

    async fn hosts(&self) -> Result<Vec<HostView>, Problem> {
        Ok(self.manager.hosts().await?)
    }

    async fn check_host(&self, name: &str) -> Result<HostView, Problem> {
        Ok(self.manager.check_host(name).await?)
    }

    async fn events(&self, query: EventQuery) -> Result<Vec<Event>, Problem> {
        Ok(self.manager.events(&query).await?)
    }

    async fn subscribe(&self) -> Result<BoxStream<'static, Update>, Problem> {
        Ok(self.manager.subscribe().await?)
    }

    fn actor(&self) -> Actor {
        self.manager.actor()
    }

    async fn close(&self) {
        self.manager.close().await;
    }
}
