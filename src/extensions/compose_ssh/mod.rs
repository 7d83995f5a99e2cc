//! `ext.compose-ssh`: a workspace on a host, and in it a compose stack where the profile has one.
//!
//! provision is one prepare call, the transfer, and `up`; `wait_ready` asks the engine, never an exit status alone;
//! `teardown` removes by label and reads back. With `config.workspace_only` there is a workspace and no stack: the
//! canary.

mod adopt;
mod build_links;
mod canary;
mod certify;
mod deps;
mod exec;
mod given;
mod handle;
mod host;
mod inspect;
mod logs;
mod mask;
mod patch;
mod provision;
mod pull;
mod ready;
mod remote_tree;
pub mod render;
mod runtime;
mod sleep;
mod snapshot;
mod source;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;

use crate::domain::archive::{SnapshotArchives, TreeEntry};
use crate::domain::error::Error;
use crate::domain::extension::{
    AdoptClaim, AdoptLook, Capabilities, Capability, CaptureRequest, Captured, ExecRun, HostAnswer,
    Inspection, PatchOutcome, PatchRun, Preview, ProvisionRequest, Provisioned, Readiness,
    RestoreSource, Restored, SandboxExtension, Target,
};
use crate::domain::host_report::RuntimeDetection;
use crate::domain::name::{ExtensionId, HostName, SandboxId, SnapshotId};
use crate::domain::output::{Interactive, LogSink, OutputSink};
use crate::domain::profile::Profile;
use crate::domain::reporter::Reporter;
use crate::domain::sandbox::{SandboxRecord, Service};
use crate::domain::snapshot::ArchiveFacts;
use crate::domain::teardown::TeardownReport;
use crate::domain::time::Time;
use crate::domain::undo::Footprint;
use crate::extensions::archives::store::ArchiveStore;
use crate::extensions::archives::{capture, listing, measure};
use crate::extensions::compose_ssh::deps::{Deps, workspace_only};
use crate::extensions::compose_ssh::handle::Stack;
use crate::extensions::workspace::prepare::{self, Wanted};
use crate::extensions::workspace::teardown::Removals;
use crate::extensions::workspace::{manifest, teardown};
use crate::transport::Transports;

/// This extension's id.
pub const ID: &str = "ext.compose-ssh";

/// Compose stacks and workspaces on hosts over SSH, and on this machine.
pub struct ComposeSsh {
    id: ExtensionId,
    archives: Arc<ArchiveStore>,
    removals: Removals,
    deps: Deps,
}

impl ComposeSsh {
    /// Over these ways to hosts; `now` is the clock that judges the hosts' clocks.
    pub fn new(
        transports: Arc<dyn Transports>,
        compose_cmd: Option<String>,
        now: fn() -> Time,
    ) -> Self {
        Self {
            id: ID.into(),
            archives: Arc::new(ArchiveStore::new(Arc::clone(&transports))),
            removals: Removals::default(),
            deps: Deps { transports, compose_cmd, now },
        }
    }
}

#[async_trait]
impl SandboxExtension for ComposeSsh {
    fn id(&self) -> &ExtensionId {
        &self.id
    }

    fn capabilities(&self) -> Capabilities {
        use Capability::{Adopt, Exec, Logs, Patches, Sleep, Snapshots};
        Capabilities::from([Snapshots, Patches, Sleep, Exec, Logs, Adopt])
    }

    async fn preview(&self, request: &ProvisionRequest) -> Result<Preview, Error> {
        source::preview(request).await
    }

    async fn ask_host(
        &self,
        profile: &Profile,
        host: &HostName,
        known: Option<&RuntimeDetection>,
    ) -> Result<HostAnswer, Error> {
        host::ask(&self.deps, profile, host, known).await
    }

    async fn preview_on_host(
        &self,
        request: &mut ProvisionRequest,
        preview: &mut Preview,
    ) -> Result<(), Error> {
        host::preview(&self.deps, request, preview).await
    }

    async fn check_place(&self, request: &ProvisionRequest, bytes: u64) -> Result<(), Error> {
        let transport = self.deps.open(&request.host).await?;
        prepare::check_place(request, bytes, transport.as_ref(), Wanted::default()).await
    }

    async fn pull(
        &self,
        request: &ProvisionRequest,
        restored: Option<&Target>,
        reporter: &dyn Reporter,
    ) -> Result<(), Error> {
        given::told_of(&request.profile, pull::pull(&self.deps, request, restored, reporter).await)
    }

    fn may_have_services(&self, profile: &Profile) -> bool {
        !workspace_only(profile)
    }

    fn steps(&self, request: &ProvisionRequest, restored: bool) -> u32 {
        if restored { snapshot::step_count(request) } else { provision::step_count(request) }
    }

    async fn provision(
        &self,
        request: &ProvisionRequest,
        reporter: &dyn Reporter,
    ) -> Result<Provisioned, Error> {
        given::told_of(&request.profile, provision::provision(&self.deps, request, reporter).await)
    }

    async fn wait_ready(
        &self,
        target: &Target,
        limit: Duration,
        reporter: &dyn Reporter,
    ) -> Result<Readiness, Error> {
        self.deps.told(target, ready::wait_ready(&self.deps, target, limit, reporter).await).await
    }

    async fn wait_settled(
        &self,
        target: &Target,
        found: Readiness,
        limit: Duration,
    ) -> Result<Readiness, Error> {
        self.deps.told(target, ready::wait_settled(&self.deps, target, found, limit).await).await
    }

    async fn write_manifest(&self, target: &Target, record: &SandboxRecord) -> Result<(), Error> {
        manifest::write(self.deps.open(&target.host).await?.as_ref(), target, record).await
    }

    async fn teardown(
        &self,
        target: &Target,
        reporter: &dyn Reporter,
    ) -> Result<TeardownReport, Error> {
        let built =
            Stack::from_handle(target.handle.as_ref()).map(|stack| stack.built).unwrap_or_default();
        let transports = self.deps.transports.as_ref();
        let removed =
            teardown::teardown(&self.removals, transports, target, &built, reporter).await;
        let report = self.deps.told(target, removed).await?;
        Ok(self.deps.told_left(target, report).await)
    }

    async fn inspect(&self, target: &Target) -> Result<Inspection, Error> {
        self.deps.told(target, inspect::inspect(&self.deps, target).await).await
    }

    async fn adopt(&self, target: &Target, claim: AdoptClaim<'_>) -> Result<AdoptLook, Error> {
        self.deps.told(target, adopt::adopt(&self.deps, target, claim).await).await
    }

    async fn services(
        &self,
        host: &HostName,
        targets: &[Target],
    ) -> Result<BTreeMap<SandboxId, Vec<Service>>, Error> {
        inspect::services(&self.deps, host, targets).await
    }

    async fn snapshot(
        &self,
        target: &Target,
        request: &CaptureRequest,
        reporter: &dyn Reporter,
    ) -> Result<Captured, Error> {
        let transport = self.deps.open(&target.host).await.map_err(Error::untouched)?;
        self.deps
            .told(target, capture::capture(transport.as_ref(), target, request, reporter).await)
            .await
    }

    async fn suits(
        &self,
        profile: &Profile,
        archive: &ArchiveFacts,
        host: &HostName,
    ) -> Result<(), Error> {
        snapshot::suits(&self.deps, profile, archive, host).await
    }

    async fn restore_from_snapshot(
        &self,
        request: &ProvisionRequest,
        source: &RestoreSource,
        reporter: &dyn Reporter,
    ) -> Result<Restored, Error> {
        given::told_of(
            &request.profile,
            snapshot::restore(&self.deps, request, source, reporter).await,
        )
    }

    async fn resume(&self, target: &Target, cancelled: Option<&SnapshotId>) -> Result<(), Error> {
        let transport = self.deps.open(&target.host).await?;
        self.deps.told(target, capture::resume(transport.as_ref(), target, cancelled).await).await
    }

    async fn measure(&self, target: &Target) -> Result<Footprint, Error> {
        let transport = self.deps.open(&target.host).await?;
        self.deps.told(target, measure::measure(transport.as_ref(), target).await).await
    }

    async fn entries(&self, target: &Target, excludes: &[String]) -> Result<Vec<TreeEntry>, Error> {
        let transport = self.deps.way(&target.host).await?;
        listing::workspace_entries(transport.as_ref(), target, excludes).await
    }

    fn archives(&self) -> Option<Arc<dyn SnapshotArchives>> {
        Some(self.archives.clone())
    }

    async fn sleep(&self, target: &Target, reporter: &dyn Reporter) -> Result<(), Error> {
        self.deps.told(target, sleep::sleep(&self.deps, target, reporter).await).await
    }

    async fn wake(
        &self,
        target: &Target,
        limit: Duration,
        reporter: &dyn Reporter,
    ) -> Result<Readiness, Error> {
        self.deps.told(target, sleep::wake(&self.deps, target, limit, reporter).await).await
    }

    async fn run_patch(
        &self,
        target: &Target,
        run: &PatchRun,
        _reporter: &dyn Reporter,
    ) -> Result<PatchOutcome, Error> {
        self.deps.told(target, patch::run(&self.deps, target, run).await).await
    }

    async fn exec(
        &self,
        target: &Target,
        run: ExecRun<'_>,
        sink: &mut dyn OutputSink,
    ) -> Result<Option<i32>, Error> {
        exec::exec(&self.deps, target, run, sink).await
    }

    async fn shell(&self, target: &Target, service: Option<&str>) -> Result<Interactive, Error> {
        exec::shell(&self.deps, target, service).await
    }

    async fn logs(
        &self,
        target: &Target,
        service: Option<&str>,
        tail: Option<u64>,
        follow: bool,
        sink: &mut dyn LogSink,
    ) -> Result<(), Error> {
        self.deps
            .told(target, logs::logs(&self.deps, target, service, tail, follow, sink).await)
            .await
    }
}
