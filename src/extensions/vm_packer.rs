//! `ext.vm-packer`: a workspace on a prepared, running virtual machine.
//!
//! The VM is built with Packer and imported by an operator; nothing here starts, stops or removes it. It is a host like
//! any other: an ssh alias, or the local port of a tunnel (`ssh://build@127.0.0.1:2222`). What is made is one directory below
//! a root that must be there already; no container engine is needed or asked.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;

use crate::domain::archive::{SnapshotArchives, TreeEntry};
use crate::domain::error::{Code, Error};
use crate::domain::extension::{
    AdoptClaim, AdoptLook, Capabilities, Capability, CaptureRequest, Captured, ExecRun, HostAnswer,
    Inspection, PatchOutcome, PatchRun, Preview, ProvisionRequest, Provisioned, Readiness,
    RestoreSource, Restored, SandboxExtension, Target, Unsettled,
};
use crate::domain::facts::HostIdentity;
use crate::domain::host_report::RuntimeDetection;
use crate::domain::name::{ExtensionId, HostName, SandboxId};
use crate::domain::output::{Interactive, OutputSink};
use crate::domain::profile::{Bytes, Profile};
use crate::domain::reporter::{Report, Reporter};
use crate::domain::sandbox::{Reachability, SandboxRecord, Service};
use crate::domain::teardown::TeardownReport;
use crate::domain::undo::Footprint;
use crate::extensions::archives::store::ArchiveStore;
use crate::extensions::archives::{capture, listing, measure, restore};
use crate::extensions::workspace::inspect::{self, Found};
use crate::extensions::workspace::prepare::{Wanted, check_place, prepare};
use crate::extensions::workspace::reachability::reachability;
use crate::extensions::workspace::teardown::Removals;
use crate::extensions::workspace::{
    Steps, configured_root, exec, manifest, patch, repo, teardown, workdir, workspace,
};
use crate::failpoint;
use crate::transport::{Transport, Transports, probe};

/// This extension's id.
pub(crate) const ID: &str = "ext.vm-packer";

/// Room that must stay free below the root where the profile's `config.min_free` says nothing.
const MIN_FREE: Bytes = Bytes::gib(1);

/// Hint at a root that cannot be used.
const RUNBOOK: &str = "prepare the VM as docs/runbooks/profile-vm-haskell-build.md says; sandboxer makes and changes nothing there but its own directories";

/// Workspaces on prepared VMs.
pub(crate) struct VmPacker {
    id: ExtensionId,
    transports: Arc<dyn Transports>,
    archives: Arc<ArchiveStore>,
    removals: Removals,
}

impl VmPacker {
    /// Over these ways to hosts.
    pub(crate) fn new(transports: Arc<dyn Transports>) -> Self {
        let archives = Arc::new(ArchiveStore::new(Arc::clone(&transports)));
        Self { id: ID.into(), archives, removals: Removals::default(), transports }
    }

    async fn open(&self, host: &HostName) -> Result<Arc<dyn Transport>, Error> {
        self.transports.open(host).await
    }
}

#[async_trait]
impl SandboxExtension for VmPacker {
    fn id(&self) -> &ExtensionId {
        &self.id
    }

    fn capabilities(&self) -> Capabilities {
        // The rest of what the manifest names comes with the verbs that use it.
        Capabilities::from([Capability::Snapshots, Capability::Patches, Capability::Exec])
    }

    async fn ask_host(
        &self,
        profile: &Profile,
        host: &HostName,
        _known: Option<&RuntimeDetection>,
    ) -> Result<HostAnswer, Error> {
        let transport = self.open(host).await?;
        let root = configured_root(profile).unwrap_or(&transport.spec().workspace_root);
        let headroom = Some(probe::headroom(transport.as_ref(), root).await?);
        Ok(HostAnswer { headroom, ..HostAnswer::default() })
    }

    async fn preview(&self, request: &ProvisionRequest) -> Result<Preview, Error> {
        min_free(&request.profile)?;
        repo::preview(request).await
    }

    async fn check_place(&self, request: &ProvisionRequest, bytes: u64) -> Result<(), Error> {
        let min_free = min_free(&request.profile)?;
        let transport = self.open(&request.host).await?;
        let wanted = Wanted { given_root: Some(RUNBOOK), min_free, ..Wanted::default() };
        check_place(request, bytes, transport.as_ref(), wanted).await
    }

    fn may_have_services(&self, _: &Profile) -> bool {
        false
    }

    fn steps(&self, request: &ProvisionRequest, restored: bool) -> u32 {
        // Prepare, transfer where there is something or extract, ready.
        2 + u32::from(restored || repo::repository(&request.inputs).is_some())
    }

    async fn provision(
        &self,
        request: &ProvisionRequest,
        reporter: &dyn Reporter,
    ) -> Result<Provisioned, Error> {
        let min_free = min_free(&request.profile).map_err(Error::untouched)?;
        let plan = repo::plan(request).await.map_err(Error::untouched)?;
        let steps = Steps::new(reporter, self.steps(request, false));
        steps.next("prepare");
        let transport = self.open(&request.host).await.map_err(Error::untouched)?;
        let transport = transport.as_ref();
        let wanted = Wanted { given_root: Some(RUNBOOK), min_free, ..Wanted::default() };
        let prepared = prepare(request, transport, plan.as_ref(), wanted, &steps).await?;
        failpoint::reached("vm.prepared");
        if let Some(plan) = &plan {
            prepared.fill(request, transport, plan, &steps).await?;
            failpoint::reached("vm.transferred");
        }
        // Having one means: provision came to its end.
        Ok(Provisioned {
            handle: serde_json::json!({"root": prepared.root}),
            ..prepared.provisioned()
        })
    }

    async fn wait_ready(
        &self,
        target: &Target,
        _limit: Duration,
        reporter: &dyn Reporter,
    ) -> Result<Readiness, Error> {
        reporter.report(Report { stage: "ready", ..Report::default() });
        let transport = self.open(&target.host).await?;
        let found = inspect::inspect_one(transport.as_ref(), target).await?;
        confirm(target, &found)?;
        confirm_room(target, &found)?;
        Ok(Readiness {
            reachability: reach(transport.as_ref(), target)?,
            services: Vec::new(),
            unsettled: Unsettled::None,
        })
    }

    async fn write_manifest(&self, target: &Target, record: &SandboxRecord) -> Result<(), Error> {
        manifest::write(self.open(&target.host).await?.as_ref(), target, record).await
    }

    async fn teardown(
        &self,
        target: &Target,
        reporter: &dyn Reporter,
    ) -> Result<TeardownReport, Error> {
        teardown::teardown(&self.removals, self.transports.as_ref(), target, &[], reporter).await
    }

    async fn inspect(&self, target: &Target) -> Result<Inspection, Error> {
        let transport = self.open(&target.host).await?;
        let found = inspect::inspect_one(transport.as_ref(), target).await?;
        let mut seen = found.inspection();
        // Without a handle the transfer may have been cut off.
        seen.ready = target.handle.is_some() && confirm(target, &found).is_ok();
        if seen.ready {
            seen.reachability = Some(reach(transport.as_ref(), target)?);
        }
        Ok(seen)
    }

    async fn adopt(&self, target: &Target, claim: AdoptClaim<'_>) -> Result<AdoptLook, Error> {
        let (root, _) = workdir(target)?.rsplit_once('/').unwrap_or_default();
        let identity = HostIdentity::of_machine(claim.machine_id);
        // Without a handle its transfer was cut off.
        let handle = claim.handle.map(|_| serde_json::json!({"root": root}));
        let target = Target {
            handle: handle.clone(),
            host_identity: Some(identity.clone()),
            ..target.clone()
        };
        Ok(AdoptLook { handle, identity, seen: self.inspect(&target).await?, remarks: Vec::new() })
    }

    async fn services(
        &self,
        host: &HostName,
        targets: &[Target],
    ) -> Result<BTreeMap<SandboxId, Vec<Service>>, Error> {
        let transport = self.open(host).await?;
        let inspections = inspect::inspect_all(transport.as_ref(), targets).await?;
        let there = targets
            .iter()
            .filter(|target| inspections.is_of(target) && inspections.has_directory(target));
        Ok(there.map(|target| (target.id.clone(), Vec::new())).collect())
    }

    async fn snapshot(
        &self,
        target: &Target,
        request: &CaptureRequest,
        reporter: &dyn Reporter,
    ) -> Result<Captured, Error> {
        capture::capture(
            self.open(&target.host).await.map_err(Error::untouched)?.as_ref(),
            target,
            request,
            reporter,
        )
        .await
    }

    async fn restore_from_snapshot(
        &self,
        request: &ProvisionRequest,
        source: &RestoreSource,
        reporter: &dyn Reporter,
    ) -> Result<Restored, Error> {
        let min_free = min_free(&request.profile).map_err(Error::untouched)?;
        let steps = Steps::new(reporter, self.steps(request, true));
        steps.next("prepare");
        let transport = self.open(&request.host).await.map_err(Error::untouched)?;
        let transport = transport.as_ref();
        let room = Bytes(min_free.get().saturating_add(restore::room(&source.archive).get()));
        let identity = source.place.host_identity.as_ref();
        let wanted =
            Wanted { given_root: Some(RUNBOOK), min_free: room, identity, ..Wanted::default() };
        let prepared = prepare(request, transport, None, wanted, &steps).await?;
        failpoint::reached("restore.prepared");
        let not_preserved = restore::unpack(transport, request, &prepared, source, &steps).await?;
        let handle = serde_json::json!({"root": prepared.root});
        Ok(Restored {
            provisioned: Provisioned { handle, ..prepared.provisioned() },
            not_preserved,
        })
    }

    async fn measure(&self, target: &Target) -> Result<Footprint, Error> {
        measure::measure(self.open(&target.host).await?.as_ref(), target).await
    }

    async fn entries(&self, target: &Target, excludes: &[String]) -> Result<Vec<TreeEntry>, Error> {
        let transport = self.transports.open_lazily(&target.host).await?;
        listing::workspace_entries(transport.as_ref(), target, excludes).await
    }

    fn archives(&self) -> Option<Arc<dyn SnapshotArchives>> {
        Some(self.archives.clone())
    }

    async fn exec(
        &self,
        target: &Target,
        run: ExecRun<'_>,
        sink: &mut dyn OutputSink,
    ) -> Result<Option<i32>, Error> {
        if run.service.is_some() {
            return Err(exec::no_services(target));
        }
        exec::exec(self.transports.open_lazily(&target.host).await?.as_ref(), target, run, sink)
            .await
    }

    async fn run_patch(
        &self,
        target: &Target,
        run: &PatchRun,
        _reporter: &dyn Reporter,
    ) -> Result<PatchOutcome, Error> {
        let transport = self.open(&target.host).await.map_err(patch::never_began)?;
        patch::run(transport.as_ref(), target, run).await
    }

    async fn shell(&self, target: &Target, service: Option<&str>) -> Result<Interactive, Error> {
        if service.is_some() {
            return Err(exec::no_services(target));
        }
        exec::shell(self.transports.open_lazily(&target.host).await?.as_ref(), target).await
    }
}

fn reach(transport: &dyn Transport, target: &Target) -> Result<Reachability, Error> {
    Ok(reachability(transport.spec(), &workspace(workdir(target)?), std::iter::empty()))
}

/// Room that must stay free below the root.
fn min_free(profile: &Profile) -> Result<Bytes, Error> {
    let Some(text) = profile.config["min_free"].as_str() else { return Ok(MIN_FREE) };
    text.parse().map_err(|error| {
        Error::new(Code::InvalidProfile, format!("config.min_free of {}: {error}", profile.id))
            .detail("field", "config.min_free")
    })
}

/// Whether somebody can work there.
fn confirm(target: &Target, found: &Found) -> Result<(), Error> {
    let place =
        target.workdir.as_deref().or_else(|| configured_root(&target.profile)).unwrap_or_default();
    if !found.ours || !found.workspace {
        let what =
            format!("{place} on {} is not the workspace of sandbox {}", target.host, target.id);
        return Err(not_ready(what, "somebody removed or replaced it"));
    }
    if !found.writable {
        return Err(not_ready(
            format!("{place}/workspace on {} cannot be written", target.host),
            RUNBOOK,
        ));
    }
    Ok(())
}

/// Whether there is room to work. Not asked of a sandbox that is ready: a disk that fills up later takes nothing away.
fn confirm_room(target: &Target, found: &Found) -> Result<(), Error> {
    let min_free = min_free(&target.profile)?;
    match found.free.filter(|free| *free < min_free) {
        Some(free) => Err(not_ready(
            format!("{free} are free on {}, {} wants {min_free}", target.host, target.profile.id),
            "destroy something there, or set config.min_free in a profile of your own",
        )),
        None => Ok(()),
    }
}

fn not_ready(what: String, hint: &str) -> Error {
    Error::new(Code::OperationFailed, what).hint(hint).step("ready")
}
