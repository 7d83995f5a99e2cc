//! The contract between sandboxer and a backend adapter.
//!
//! An extension makes, asks about and removes sandboxes on a host. It returns handles and reports progress; it
//! writes no state. What every implementation promises:
//!
//! * A call **may be dropped at any await** (a cancel). What it started on the host then ends by itself, under a
//!   watchdog there; nothing is left that [`SandboxExtension::teardown`] does not find.
//! * `teardown` is idempotent and works on a half-made sandbox with nothing but its id and host: names on the host
//!   derive from the id alone.
//! * Progress may be lost; a caller never waits for it.
//! * It never blocks a thread.
//! * Errors are [`Error`]s: `host_unreachable`, `host_changed`, `timeout`, `missing_dependency`, `invalid_input`
//!   (with the field), `unsupported`, `operation_failed` (with the failed step's evidence, where a program ran).

mod adoption;
mod preview;
mod types;

pub use adoption::{AdoptClaim, AdoptLook};
pub use preview::{Preview, Refusal};
pub use types::*;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;

use crate::domain::Usd;
use crate::domain::archive::{SnapshotArchives, TreeEntry};
use crate::domain::error::{Code, Error};
use crate::domain::facts::HostFacts;
use crate::domain::host_report::RuntimeDetection;
use crate::domain::name::{ExtensionId, HostName, OwnerId, SandboxId, SnapshotId};
use crate::domain::output::{Interactive, LogSink, OutputSink};
use crate::domain::profile::Profile;
use crate::domain::reporter::Reporter;
use crate::domain::sandbox::{SandboxRecord, Service};
use crate::domain::snapshot::ArchiveFacts;
use crate::domain::teardown::TeardownReport;
use crate::domain::undo::Footprint;

/// A backend adapter. See the module's text for what every implementation promises.
#[async_trait]
pub trait SandboxExtension: Send + Sync {
    fn id(&self) -> &ExtensionId;

    /// Verbs beyond making and removing.
    fn capabilities(&self) -> Capabilities;

    /// Preview of `provision`: what it would do and refuse, without touching a host.
    ///
    /// Errors: `invalid_input` for an input that names nothing usable. Refusals are in the preview.
    async fn preview(&self, request: &ProvisionRequest) -> Result<Preview, Error>;

    /// Host as a sandbox of this profile meets it, in one round trip; nothing where it is not asked. `known`: what was found there
    /// last, which holds where the host shows the same fingerprint. Nothing is made there.
    ///
    /// Errors: `missing_dependency` for a host that lacks what it takes, and whatever the way there says.
    async fn ask_host(
        &self,
        _profile: &Profile,
        _host: &HostName,
        _known: Option<&RuntimeDetection>,
    ) -> Result<HostAnswer, Error> {
        Ok(HostAnswer::default())
    }

    /// Makes of a preview what is so on the request's host, which was asked (`compose_host`): what is refused there is in it
    /// then, and the request has what else was found. Nothing is made there.
    async fn preview_on_host(
        &self,
        _request: &mut ProvisionRequest,
        _preview: &mut Preview,
    ) -> Result<(), Error> {
        Ok(())
    }

    /// Looks at the place in which `provision` would make its directory and put so many bytes. Nothing is made there.
    ///
    /// Errors: what `provision` refuses there.
    async fn check_place(&self, _request: &ProvisionRequest, _bytes: u64) -> Result<(), Error> {
        Ok(())
    }

    /// Has what the sandbox is started from on its host, before the one that is there is removed for it. `restored`: it is made
    /// again from its archive, and this is how it stands.
    ///
    /// Errors: `operation_failed` with what is nowhere, `invalid_input` for what the host refuses.
    async fn pull(
        &self,
        _request: &ProvisionRequest,
        _restored: Option<&Target>,
        _reporter: &dyn Reporter,
    ) -> Result<(), Error> {
        Ok(())
    }

    /// Place of its sandboxes where that is no host of the operator's: a backend of its own, which no transport reaches.
    fn place(&self) -> Option<HostName> {
        None
    }

    /// Everything that the backend of [`Self::place`] has of any owner, for an inventory as a host's.
    ///
    /// Errors: why the backend could not be read; nothing is judged then.
    async fn list_owned(&self) -> Result<HostFacts, Error> {
        Err(self.unsupported("list its sandboxes"))
    }

    /// The counter that the backend of [`Self::place`] has of this owner (contract 1); `None` where it has none.
    ///
    /// Errors: why it could not be read.
    async fn owner_counter(&self, _owner: &OwnerId) -> Result<Option<u64>, Error> {
        Err(self.unsupported("count the changes of an owner"))
    }

    /// Makes the backend of [`Self::place`] count at least as much as this stamp; what it counts then.
    ///
    /// Errors: why it could not be written.
    async fn raise_owner_counter(&self, _stamp: &OwnerStamp) -> Result<u64, Error> {
        Err(self.unsupported("count the changes of an owner"))
    }

    /// Text of the manifest that the backend of [`Self::place`] has of a sandbox, by its recorded directory; none where it has none.
    ///
    /// Errors: why it could not be read.
    async fn manifest_text(&self, _workdir: &str) -> Result<Option<String>, Error> {
        Err(self.unsupported("show a manifest"))
    }

    /// The price for a duration; `None` where it costs nothing.
    async fn estimate_cost(
        &self,
        _profile: &Profile,
        _inputs: &BTreeMap<String, String>,
        _duration: Duration,
    ) -> Result<Option<MeterQuote>, Error> {
        Ok(None)
    }

    /// Whether a sandbox of this profile may have services, in which a patch could run.
    fn may_have_services(&self, _profile: &Profile) -> bool {
        true
    }

    /// Number of steps that this one's `provision` (`restored`: `restore_from_snapshot`) and the wait until it is ready
    /// have; 0 where that is not known before they begin.
    fn steps(&self, _request: &ProvisionRequest, _restored: bool) -> u32 {
        0
    }

    /// Makes the sandbox: prepare, transfer, start. Does not wait for readiness.
    ///
    /// Errors: any of the module's list; what was made stays for `teardown`.
    async fn provision(
        &self,
        request: &ProvisionRequest,
        reporter: &dyn Reporter,
    ) -> Result<Provisioned, Error>;

    /// Asks the backend until every long-running service runs, at most for `limit`. It is `ready` when
    /// [`Self::wait_settled`] has come to its end too, and may be worked on before.
    ///
    /// Errors: `timeout` with the services as they are, `operation_failed` when one ended.
    async fn wait_ready(
        &self,
        target: &Target,
        limit: Duration,
        reporter: &dyn Reporter,
    ) -> Result<Readiness, Error>;

    /// Asks the backend until what `wait_ready` or `wake` found has run for the profile's `settle` without a restart, counted
    /// from each container's own start, at most for `limit`. Nothing is `unsettled` then.
    ///
    /// Errors: as [`Self::wait_ready`].
    async fn wait_settled(
        &self,
        _target: &Target,
        found: Readiness,
        _limit: Duration,
    ) -> Result<Readiness, Error> {
        Ok(Readiness { unsettled: Unsettled::None, ..found })
    }

    /// Writes the host's manifest anew from the record, and the target's stamp, if it has one, to the host's counters.
    async fn write_manifest(&self, target: &Target, record: &SandboxRecord) -> Result<(), Error>;

    /// Removes all of it and reads back. Idempotent; needs no handle.
    ///
    /// Errors: only when the host could not be asked (`host_unreachable`, `host_changed`, `timeout`), and `untouched`
    /// where it is certain that nothing was removed. What could not be removed is in the report.
    async fn teardown(
        &self,
        target: &Target,
        reporter: &dyn Reporter,
    ) -> Result<TeardownReport, Error>;

    /// Cost so far; `None` where it costs nothing.
    async fn meter_actual(
        &self,
        _target: &Target,
        _duration: Duration,
    ) -> Result<Option<Usd>, Error> {
        Ok(None)
    }

    /// Resources of it that the recorded host has now, its identity proved first.
    ///
    /// Errors: `host_changed` when the host is another one, and whatever keeps it from being asked.
    async fn inspect(&self, _target: &Target) -> Result<Inspection, Error> {
        Err(self.unsupported("inspect"))
    }

    /// Looks at a sandbox that its host has and no record knows: what of its claim holds, and what is there. The target has no
    /// handle and no engine. Nothing is changed there.
    ///
    /// Errors: as [`Self::inspect`]; `missing_dependency` where nothing on the host can work on it.
    async fn adopt(&self, _target: &Target, _claim: AdoptClaim<'_>) -> Result<AdoptLook, Error> {
        Err(self.unsupported("adopt sandboxes"))
    }

    /// The services of these sandboxes, all of which are on `host`, as the backend reports them now: one question
    /// for all. A sandbox that the backend knows nothing of is not in the answer.
    async fn services(
        &self,
        _host: &HostName,
        _targets: &[Target],
    ) -> Result<BTreeMap<SandboxId, Vec<Service>>, Error> {
        Ok(BTreeMap::new())
    }

    /// Runs a command in the workspace, or in a service's container (`exec`). Its output goes to the sink. None of its input is
    /// read before it runs.
    ///
    /// Answers the command's exit status (128 + n after signal n), or `None` when the sink wanted no more. Errors:
    /// `not_found` for a service that is not there, `conflict` for one that does not run.
    async fn exec(
        &self,
        _target: &Target,
        _run: ExecRun<'_>,
        _sink: &mut dyn OutputSink,
    ) -> Result<Option<i32>, Error> {
        Err(self.unsupported("run commands (exec)"))
    }

    /// A program of this machine that opens a shell in the workspace, or in a service's container.
    async fn shell(&self, _target: &Target, _service: Option<&str>) -> Result<Interactive, Error> {
        Err(self.unsupported("open a shell"))
    }

    /// Lines of its services (`logs`): the last `tail` of each (`None`: all), and with `follow` whatever comes. Lines of
    /// several services come as they are read.
    ///
    /// Errors: `not_found` for a service that is not there.
    async fn logs(
        &self,
        _target: &Target,
        _service: Option<&str>,
        _tail: Option<u64>,
        _follow: bool,
        _sink: &mut dyn LogSink,
    ) -> Result<(), Error> {
        Err(self.unsupported("show logs"))
    }

    /// Makes an archive of it on its host and leaves it sealed there. The sandbox's containers are as they were on every
    /// way out; what a call that was cut off left paused, [`Self::resume`] finds.
    ///
    /// Errors: `unsupported` for a mode that the runtime cannot do; nothing of the archive is left then.
    async fn snapshot(
        &self,
        _target: &Target,
        _request: &CaptureRequest,
        _reporter: &dyn Reporter,
    ) -> Result<Captured, Error> {
        Err(self.unsupported("take snapshots"))
    }

    /// Whether a host has what a sandbox from this archive takes; asked before the archive is brought there.
    ///
    /// Errors: `missing_dependency`, and whatever the way to the host says.
    async fn suits(
        &self,
        _profile: &Profile,
        _archive: &ArchiveFacts,
        _host: &HostName,
    ) -> Result<(), Error> {
        Ok(())
    }

    /// Makes a sandbox from an archive that is on the same host: as [`Self::provision`], with the archive's tree and
    /// volumes in the place of the inputs' directory.
    ///
    /// Errors: as `provision`, and `operation_failed` with `details.kind` = `altered` for an archive that is not what is
    /// known of it.
    async fn restore_from_snapshot(
        &self,
        _request: &ProvisionRequest,
        _source: &RestoreSource,
        _reporter: &dyn Reporter,
    ) -> Result<Restored, Error> {
        Err(self.unsupported("restore snapshots"))
    }

    /// Resumes what a snapshot that was cut off left paused or stopped; one that is `cancelled` begins nothing on the host
    /// from then on. Nothing to do is fine.
    async fn resume(&self, _target: &Target, _cancelled: Option<&SnapshotId>) -> Result<(), Error> {
        Ok(())
    }

    /// Room that its workspace and volumes take, as far as that can be told, and that its host has for an archive of them.
    ///
    /// Errors: `host_changed` when the host is another one; what keeps it from being told.
    async fn measure(&self, _target: &Target) -> Result<Footprint, Error> {
        Err(self.unsupported("tell how large a sandbox is"))
    }

    /// Entries of its workspace now, as the archive of a snapshot would list them. Sockets, devices and `excludes` are left
    /// out, and so are volumes.
    async fn entries(
        &self,
        _target: &Target,
        _excludes: &[String],
    ) -> Result<Vec<TreeEntry>, Error> {
        Err(self.unsupported("list a workspace"))
    }

    /// Work with its archives; none where it makes none.
    fn archives(&self) -> Option<Arc<dyn SnapshotArchives>> {
        None
    }

    /// Stops all that runs; its files and volumes stay. Idempotent.
    async fn sleep(&self, _target: &Target, _reporter: &dyn Reporter) -> Result<(), Error> {
        Err(self.unsupported("sleep"))
    }

    /// Starts what ran when it went to sleep, and waits as [`Self::wait_ready`] does. Endpoints are read anew: engines hand
    /// out new ports. Idempotent.
    async fn wake(
        &self,
        _target: &Target,
        _limit: Duration,
        _reporter: &dyn Reporter,
    ) -> Result<Readiness, Error> {
        Err(self.unsupported("wake"))
    }

    /// Runs one patch's script to its end, at most for its limit. An exit status other than 0 is no error here.
    ///
    /// Errors: only when it is not known how it ended (the link broke), or that it never began (`details.began` = false).
    async fn run_patch(
        &self,
        _target: &Target,
        _run: &PatchRun,
        _reporter: &dyn Reporter,
    ) -> Result<PatchOutcome, Error> {
        Err(self.unsupported("apply patches"))
    }

    /// Refuses what needs a capability that it lacks: `unsupported`, with the verb.
    fn ensure(&self, capability: &Capability, verb: &str) -> Result<(), Error> {
        if self.capabilities().contains(capability) { Ok(()) } else { Err(self.unsupported(verb)) }
    }

    /// Error of a verb this extension lacks.
    fn unsupported(&self, verb: &str) -> Error {
        Error::new(Code::Unsupported, format!("{} cannot {verb}", self.id()))
    }
}
